//! The best hits by score, without scoring what cannot be among them.

pub mod cost_model;
pub mod segment_top;
pub mod top_k;
pub mod top_k_collector;
