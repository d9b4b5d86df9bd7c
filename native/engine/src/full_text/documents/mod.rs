//! From the body of a document to what is indexed of it.

pub mod analyzed_text;
pub mod document;
pub mod document_reader;
pub mod geo_values;
