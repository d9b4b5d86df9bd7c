//! Queries that the others are made of.

use tantivy::Term;
use tantivy::query::{AllQuery, ConstScoreQuery, EmptyQuery, Query, TermQuery};
use tantivy::schema::IndexRecordOption;

use crate::error::EngineError;
use crate::full_text::query::boolean::bool_query::BoolQuery;

pub fn invalid(message: impl Into<String>) -> EngineError {
    EngineError::new("invalid_query", message)
}

pub fn term_query(term: Term) -> Box<dyn Query> {
    Box::new(TermQuery::new(term, IndexRecordOption::WithFreqs))
}

/// Any of the queries.
pub fn any_of(mut queries: Vec<Box<dyn Query>>) -> Box<dyn Query> {
    match queries.len() {
        0 => Box::new(EmptyQuery),
        1 => queries.remove(0),
        _ => Box::new(BoolQuery::any(queries)),
    }
}

/// Every document, with a score of 1 that no conjunction leaves out.
pub fn every_document() -> Box<dyn Query> {
    Box::new(ConstScoreQuery::new(Box::new(AllQuery), 1.0))
}
