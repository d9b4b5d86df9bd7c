//! The answers of segments and ranges, and how they are merged.

pub mod distinct;
pub mod exact_sum;
pub mod number_summary;
pub mod partial;
