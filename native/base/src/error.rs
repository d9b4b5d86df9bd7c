//! The one error type of the engine: a stable code and a sentence.

use std::{fmt, io};

/// The error of a call that the engine cannot carry out. `code` is one of the codes of
/// `src/protocol/error-codes.ts`, or one that only the TypeScript side of the boundary sees (`index_damaged`,
/// `index_incompatible`, `checkpoint_unwritten`).
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
    move |error| lacks(&error).unwrap_or_else(|| EngineError::internal(format!("{what}: {error}")))
}

/// The error of a file of an index that is there as far as the index knows, and cannot be read.
pub fn unreadable(name: &str, error: &io::Error) -> EngineError {
    lacks(error).unwrap_or_else(|| damaged(format!("{name}: {error}")))
}

/// The error of a checkpoint of which nothing was synced yet.
pub fn unwritten(error: EngineError) -> EngineError {
    if LACKS.contains(&error.code) { EngineError::new("checkpoint_unwritten", error.message) } else { error }
}

/// The codes of a machine that lacks something.
const LACKS: [&str; 3] = ["unavailable", "insufficient_storage", "read_only"];

/// The error of a machine that lacks descriptors, memory, rights or room now, which says nothing of the file.
fn lacks(error: &io::Error) -> Option<EngineError> {
    Some(EngineError::new(lacking(error)?, format!("an index cannot use its files now: {error}")))
}

/// Whether the machine does not take a file now.
pub fn is_refused(error: &io::Error) -> bool {
    lacking(error).is_some()
}

fn lacking(error: &io::Error) -> Option<&'static str> {
    Some(match error.raw_os_error()? {
        libc::EMFILE | libc::ENFILE | libc::ENOMEM | libc::EACCES | libc::EPERM => "unavailable",
        libc::ENOSPC | libc::EDQUOT => "insufficient_storage",
        libc::EROFS => "read_only",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_machine_lacks_is_no_damage_of_a_file() {
        for (number, code) in [
            (libc::EMFILE, "unavailable"),
            (libc::ENOMEM, "unavailable"),
            (libc::ENOSPC, "insufficient_storage"),
            (libc::EROFS, "read_only"),
            (libc::EIO, "index_damaged"),
            (libc::ENOENT, "index_damaged"),
        ] {
            assert_eq!(unreadable("a file", &io::Error::from_raw_os_error(number)).code, code);
        }
        assert_eq!(io_failed("read")(io::Error::from_raw_os_error(libc::EMFILE)).code, "unavailable");
        assert_eq!(io_failed("read")(io::Error::other("odd")).code, "internal");
    }

    #[test]
    fn a_checkpoint_that_lacks_room_is_told_from_one_that_met_a_fault() {
        let code_of = |number| unwritten(io_failed("write")(io::Error::from_raw_os_error(number))).code;
        for number in [libc::ENOSPC, libc::EDQUOT, libc::EROFS, libc::EMFILE, libc::ENOMEM] {
            assert_eq!(code_of(number), "checkpoint_unwritten");
        }
        assert_eq!(code_of(libc::EIO), "internal");
        assert_eq!(unwritten(damaged("a file")).code, "index_damaged");
    }
}
