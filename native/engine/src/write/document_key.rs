//! The rules for keys of documents.

use crate::error::EngineError;
use crate::json::shorten;

/// Error: `invalid_key`.
pub(crate) fn check_key(key: &str, key_bytes_max: usize) -> Result<(), EngineError> {
    if key.is_empty() {
        return Err(EngineError::new("invalid_key", "a document key is empty"));
    }
    if key.len() > key_bytes_max {
        let message = format!("the key {:?} has {} bytes; the limit is {key_bytes_max}", shorten(key), key.len());
        return Err(EngineError::new("invalid_key", message));
    }
    if key.bytes().any(|byte| byte < 0x20 || byte == 0x7F) {
        return Err(EngineError::new("invalid_key", format!("the key {:?} has a control character", shorten(key))));
    }
    Ok(())
}
