//! What segments and ranges answer, and how answers are merged.

pub mod distinct;
pub mod exact_sum;
pub mod number_summary;
pub mod partial;
