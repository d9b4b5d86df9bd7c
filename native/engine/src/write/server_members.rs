//! Members of documents that only the server writes, and how requests that name them are refused.

use crate::error::EngineError;

/// Members of a document that only the server writes: what it makes of the others.
pub(crate) fn is_kept_by_server(member: &str) -> bool {
    matches!(member, "_summaries" | "_chunks" | "_artifacts")
}

pub(crate) fn kept_by_server(member: &str) -> String {
    format!("\"{member}\" is kept by the server; leave it out")
}

pub(crate) fn shape(message: impl Into<String>) -> EngineError {
    EngineError::new("invalid_request", message)
}
