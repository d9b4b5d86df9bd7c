//! Counters and sums of the values of single paths, kept for each segment and brought up to date with every commit.
//!
//! A segment never changes but for its deletions, so its counters are made once, by reading its columns, and from then on
//! deleted documents are taken away. They belong to the same commit as everything else that a query sees, and there is
//! nothing on disk that could be damaged or left behind: what is missing is counted again from the columns.

mod answers;
mod counter_cache;
mod path_totals;
mod ranked_terms;
mod segment_counters;

pub use answers::{Counted, answer_counted};
pub use counter_cache::CounterCache;
