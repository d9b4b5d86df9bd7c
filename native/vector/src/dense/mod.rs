//! Dense vectors: the nearest neighbours of a query among the vectors of one embeddings index and one range.

mod checkpoint;
mod dense_index;
mod errors;
mod flat_rows;
mod float_kernels;
mod nearest;
mod options;
mod part;
mod prepared;
mod row_bits;
mod search;

pub use dense_index::DenseIndex;
pub use options::{DenseOptions, DistanceBounds, Metric};
