//! Vectors of rows: in memory, in files, and what equal ones share.

pub mod copies;
pub mod flat_file;
pub mod flat_rows;
pub mod graph_rows;
pub mod row_store;
