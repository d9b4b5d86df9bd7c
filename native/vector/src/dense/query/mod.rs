//! A search: what it may cost, the walks and scans that it makes, and the exact distances in the end.

pub mod graph_search;
pub mod nearest;
pub mod rescoring;
pub mod search;
pub mod search_cost;
pub mod search_state;
