//! The errors of vector indexes.

use std::io;

use sundew_base::error::EngineError;

/// The index does not hold what it promised; it is to be deleted and built anew.
pub fn damaged(message: impl Into<String>) -> EngineError {
    EngineError::new("index_damaged", message)
}

pub fn invalid_query(message: impl Into<String>) -> EngineError {
    EngineError::new("invalid_query", message)
}

pub fn io_failed(what: &'static str) -> impl Fn(io::Error) -> EngineError {
    move |error| EngineError::internal(format!("{what}: {error}"))
}
