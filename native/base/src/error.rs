//! The one error type of the engine: a stable code and a sentence.

use std::{fmt, io};

/// The error of a call that the engine cannot carry out. `code` is one of the codes of
/// `src/protocol/error-codes.ts`, or one that only the TypeScript side of the boundary sees (`index_damaged`,
/// `index_incompatible`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineError {
    pub code: &'static str,
    pub message: String,
}

impl EngineError {
    pub fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    /// A fault of ours: something that must hold does not.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new("internal", message)
    }
}

impl fmt::Display for EngineError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.code, self.message)
    }
}

impl std::error::Error for EngineError {}

/// The index does not hold what it promised; it is to be deleted and built again.
pub fn damaged(message: impl Into<String>) -> EngineError {
    EngineError::new("index_damaged", message)
}

/// For `map_err`: what could not be done with a file of an index.
pub fn io_failed(what: &'static str) -> impl Fn(io::Error) -> EngineError {
    move |error| EngineError::internal(format!("{what}: {error}"))
}
