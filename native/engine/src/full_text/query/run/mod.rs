//! Runs compiled plans over the indexes of all ranges, and merges what they find.

pub mod collect;
pub mod explain;
pub mod filter;
pub mod hits;
pub mod matching;
pub mod open_views;
pub mod ordered;
pub mod pool;
pub mod range_view;
pub mod ranked;
pub mod search;
pub mod statistics;
pub mod text_stats;
