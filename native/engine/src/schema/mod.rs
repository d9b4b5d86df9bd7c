//! Table schemas: whether one is usable, and whether a document matches it.

mod schema_shape;
mod service_keyword;
mod table_schema;

pub(crate) use service_keyword::service_values;
pub use table_schema::TableSchema;
