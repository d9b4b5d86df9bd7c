//! Clauses whose scores are added up: what matches, and the sum of a document, whichever way leads to it.

pub mod bool_query;
pub mod seek_scorer;
pub mod seeking_union;
pub mod several;
