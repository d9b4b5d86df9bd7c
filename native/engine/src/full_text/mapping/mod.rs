//! Which form of a document's value goes into the index: from the table's schema, its dynamic templates, or inference.

mod cursor;
mod glob;
mod path_facts;
mod path_table;
mod property;
mod rule;
mod table_mapping;
mod templates;

pub use cursor::SchemaCursor;
pub use path_table::{PathTable, ROOT, TextTarget};
pub use rule::{DERIVED_SUFFIXES, FieldRule, GeoForm, INDEX_PREFIX, KEYWORD_SUFFIX, THREE_GRAM, TWO_GRAM};
pub use table_mapping::{TIMESTAMP, TableMapping};
pub use templates::DetectedType;
