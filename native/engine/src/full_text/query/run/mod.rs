//! Runs compiled plans over the indexes of all ranges, and merges what they find.

pub mod collect;
pub mod cost_model;
pub mod explain;
pub mod filter_bits;
pub mod filter_cache;
pub mod filtered_query;
pub mod hits;
pub mod key_order;
pub mod matching;
pub mod page_order;
pub mod pool;
pub mod range_view;
pub mod search;
pub mod seek_scorer;
pub mod segment_top;
pub mod sort_position;
pub mod sort_values;
pub mod sorted;
pub mod statistics;
pub mod top_k;
pub mod top_k_collector;
