//! From the body of a document to what is indexed of it.

pub mod document_reader;
pub mod geo_values;
