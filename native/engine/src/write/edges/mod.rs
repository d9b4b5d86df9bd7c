//! The edges of documents: of their member `_edges`, and of the fields from which an index makes edges.

mod edge_reader;
mod edge_rows;
mod edge_rules;
mod new_edge;

pub(super) use edge_rows::{EdgeContext, EdgeRows};
pub use edge_rules::{EdgeRules, GraphTarget};
