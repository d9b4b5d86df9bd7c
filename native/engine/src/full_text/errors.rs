//! How faults of Tantivy, files and indexes become engine errors.

use std::io;
use std::sync::Arc;

use tantivy::TantivyError;
use tantivy::directory::error::OpenReadError;

pub use sundew_base::error::{damaged, io_failed, unreadable};

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
        TantivyError::OpenReadError(OpenReadError::IoError { io_error, filepath }) => {
            unreadable(&filepath.to_string_lossy(), &io_error)
        }
        TantivyError::OpenReadError(error) => damaged(error.to_string()),
        TantivyError::IoError(error) => io_failed("full-text index")(of_system(&error)),
        other => EngineError::internal(format!("full-text index: {other}")),
    }
}

/// An error of its own, with the number of the system's where it has one.
pub fn of_system(error: &io::Error) -> io::Error {
    error.raw_os_error().map_or_else(|| io::Error::other(error.to_string()), io::Error::from_raw_os_error)
}
