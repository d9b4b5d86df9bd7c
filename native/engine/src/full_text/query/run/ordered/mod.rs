//! Hits in the order of values or keys, and the places of cursors in it.

pub mod key_order;
pub mod page_order;
pub mod sort_column;
pub mod sort_position;
pub mod sort_values;
pub mod sorted;
