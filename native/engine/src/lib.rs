//! Sundew's engine: JSON scanning, document frames, schema validation, full-text indexes and retrieval over
//! all kinds of indexes. No JavaScript in here;
//! `native/binding` is the N-API surface.

mod bit_set_cache;
mod document_key;
pub mod edge_scan;
mod float_scan;
pub mod full_text;
pub mod json_scan;
pub mod name_pattern;
pub mod retrieval;
mod schema_keyword;
mod schema_shape;
mod server_members;
pub mod table_schema;
mod transform_scan;
pub mod vector_scan;
pub mod write_frame;
pub mod write_scan;

pub use sundew_base::{self as base, error, failpoint, frame};
