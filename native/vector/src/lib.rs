//! Vector indexes: dense by graph segments, sparse by inverted lists. They know documents by their ordinals only.

pub mod dense;
mod errors;
pub mod search;
pub mod sparse;
