//! How faults of Tantivy, files and indexes become engine errors.

use std::io;
use std::sync::Arc;

use tantivy::TantivyError;

pub use sundew_base::error::{damaged, io_failed};

use crate::error::EngineError;

/// An error of ours on its way through Tantivy; `tantivy_failed` takes it out again.
pub fn carried(error: EngineError) -> TantivyError {
    TantivyError::IoError(Arc::new(io::Error::other(error)))
}

pub fn tantivy_failed(error: TantivyError) -> EngineError {
    if let TantivyError::IoError(outer) = &error
        && let Some(ours) = outer.get_ref().and_then(|inner| inner.downcast_ref::<EngineError>())
    {
        return ours.clone();
    }
    match error {
        TantivyError::DataCorruption(corruption) => damaged(format!("{corruption:?}")),
        TantivyError::OpenReadError(error) => damaged(error.to_string()),
        other => EngineError::internal(format!("full-text index: {other}")),
    }
}
