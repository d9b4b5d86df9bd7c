//! How a scan words what is wrong.

use std::borrow::Cow;

use crate::error::EngineError;

/// A name or value for an error message: at most 64 characters.
pub(crate) fn shorten(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(64) {
        None => Cow::Borrowed(text),
        Some((end, _)) => Cow::Owned(format!("{}...", &text[..end])),
    }
}

pub(super) fn invalid(at: usize, what: &str) -> EngineError {
    EngineError::new("invalid_json", format!("invalid JSON at byte {at}: {what}"))
}

pub(super) fn out_of_range(at: usize, what: &str) -> EngineError {
    EngineError::new("number_out_of_range", format!("number at byte {at}: {what}"))
}
