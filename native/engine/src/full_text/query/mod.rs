//! Queries: a plan, compiled for each range's index, run over all of them, merged.

mod collect;
mod compile;
mod fields_of_path;
mod hits;
mod matching;
mod plan;
mod search;
mod sort_values;
mod sorted;
mod statistics;
mod stop;
mod term_range;
mod text_nodes;
mod value_nodes;

pub use hits::{Hit, Hits};
pub use matching::match_documents;
pub use plan::{Node, QueryPlan, RangeKind, SortField, TermValue, WeightedField};
pub use search::query;
pub use stop::CancelFlag;
