//! Dense vectors: the nearest neighbours of a query among the vectors of one embeddings index and one range.

mod builder;
mod checkpoint;
mod dense_index;
mod dense_writer;
mod float_kernels;
mod graph;
mod graph_file;
mod links;
mod metric;
mod options;
mod query;
mod replaced_graphs;
mod rows;
mod segment;
mod segment_files;

pub use dense_index::DenseIndex;
pub use links::LinkReport;
pub use metric::Metric;
pub use options::{DenseOptions, DistanceBounds};
