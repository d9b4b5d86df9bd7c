//! Vector indexes: dense by graph segments, sparse by inverted lists. They know documents by their ordinals only.

pub mod checkpoint_files;
pub mod dense;
pub mod ordinal_set;
pub mod plain_bytes;
pub mod search;
pub mod sparse;
