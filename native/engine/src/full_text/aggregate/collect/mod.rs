//! What one segment collects: a tree of collectors over the columns.

pub mod columns;
pub mod group_keys;
pub mod groups;
pub mod segment_tree;
