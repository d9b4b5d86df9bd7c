//! Dense vectors: the nearest neighbours of a query among the vectors of one embeddings index and one range.

mod builder;
mod checkpoint;
mod copies;
mod dense_index;
mod flat_rows;
mod float_kernels;
mod graph;
mod graph_rows;
mod graph_search;
mod metric;
mod nearest;
mod options;
mod rescoring;
mod row_store;
mod search;
mod search_cost;
mod search_state;
mod segment;

pub use dense_index::DenseIndex;
pub use metric::Metric;
pub use options::{DenseOptions, DistanceBounds};
