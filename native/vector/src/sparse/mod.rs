//! Sparse vectors: immutable segments of inverted lists, each with the largest and smallest weight of every block.
//! Answers are exact: scores are f32 sums in ascending order of the dimensions, whatever segment a vector lies in.

mod durable_segments;
mod index;
mod merge_policy;
mod options;
mod query_terms;
mod search;
mod segment;
mod segment_build;
mod segment_list;
mod segment_merge;
mod snapshot;
mod top_hits;

pub use index::SparseIndex;
pub use options::SparseOptions;
