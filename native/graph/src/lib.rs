//! Graph indexes: the edges that lead from the documents of one range, as immutable segments of adjacency lists in both
//! directions, and searches that span the indexes of all ranges. An edge names its target by key: the target may lie in
//! another range, or not exist.

mod durable_segments;
mod index;
mod key_hash;
mod names;
mod options;
mod pending;
pub mod search;
mod segment;
mod segment_merge;
mod segment_writer;
mod snapshot;

pub use index::GraphIndex;
pub use options::GraphOptions;
