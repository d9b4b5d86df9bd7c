//! Which form of a document's value goes into the index: from the table's schema, its dynamic templates, or inference.

mod capabilities;
mod cursor;
mod exact_types;
mod glob;
mod path_facts;
mod path_table;
mod property;
mod rule;
mod table_mapping;
mod templates;

pub use cursor::SchemaCursor;
pub use exact_types::ExactTypes;
pub use path_facts::ExactPath;
pub use path_table::{PathTable, ROOT, TextTarget};
pub use rule::{FieldRule, GeoForm, INDEX_PREFIX, KEYWORD_SUFFIX, THREE_GRAM, TWO_GRAM, TextForm, WHOLE_BYTES_MAX};
pub use table_mapping::{TIMESTAMP, TYPE, TableMapping};
pub use templates::DetectedType;
