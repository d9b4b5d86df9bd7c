//! A tree of collectors over the columns of one segment.

pub mod columns;
pub mod group_keys;
pub mod groups;
pub mod segment_tree;
