//! The one error type of the engine: a stable code and a sentence.

use std::fmt;

/// What the engine answers when it cannot do what was asked. `code` is one of the codes of
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
