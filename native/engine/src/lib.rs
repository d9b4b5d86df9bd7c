//! Sundew's engine: JSON scanning, document frames, schema validation, full-text indexes and retrieval over
//! all kinds of indexes. No JavaScript in here;
//! `native/binding` is the N-API surface.

mod bounded_cache;
pub mod full_text;
pub mod json;
pub mod name_pattern;
pub mod retrieval;
pub mod schema;
pub mod write;

pub use sundew_base::{self as base, error, failpoint, frame};
