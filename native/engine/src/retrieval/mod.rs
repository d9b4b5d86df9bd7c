//! Retrieval over several indexes: text, dense, sparse and graph legs under one plan, fused into one list.
//!
//! All legs obey the plan's filters, exclusions, row filter, key prefix and expiry. Each leg is merged over the ranges
//! first, best score first and ties by key, and cut to the window; then the legs are fused once, so that the answer does not
//! depend on how the documents are spread over ranges.

mod allowed;
mod cost_model;
mod describe;
mod fuse;
mod inline_query;
mod legs;
mod ordinal_cache;
mod prune;
mod ranges;
mod run;
mod shared_work;

pub(crate) use ordinal_cache::OrdinalCache;

pub use inline_query::query_inline;
pub use legs::{LegIndex, VectorIndex};
pub use run::query;
