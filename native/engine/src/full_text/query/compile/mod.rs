//! Turns the conditions of a plan into queries of Tantivy for one index.

pub mod clauses;
pub mod compile_plan;
pub mod context;
pub mod dropped_words;
pub mod field_checks;
pub mod index_fields;
pub mod text_checks;
pub mod text_nodes;
pub mod value_nodes;
pub mod word_nodes;
