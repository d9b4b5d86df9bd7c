//! The errors of vector indexes.

use sundew_base::error::EngineError;

pub fn invalid_query(message: impl Into<String>) -> EngineError {
    EngineError::new("invalid_query", message)
}
