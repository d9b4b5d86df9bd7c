//! A member of documents that holds something for each of several indexes: where its value begins, and why it is not taken.

use std::borrow::Cow;

use crate::error::EngineError;
use crate::json::{ScanLimits, Scanner, shorten};

/// Bounds for members that a scan has accepted.
pub(super) fn accepted_limits() -> ScanLimits {
    ScanLimits { member_name_bytes_max: u32::MAX, ..ScanLimits::default() }
}

/// At the value of a member that is given with its name and that a scan has accepted.
pub(super) fn scanner_at_value<'m>(member: &'m [u8], limits: &'m ScanLimits) -> Result<Scanner<'m>, EngineError> {
    let mut scanner = Scanner::new(member, limits)?;
    if scanner.peek() != Some(b'"') {
        return Err(EngineError::internal("a scan entry that does not begin with the name of its member"));
    }
    scanner.string()?;
    scanner.skip_whitespace();
    scanner.jump(scanner.position() + 1);
    scanner.skip_whitespace();
    Ok(scanner)
}

/// The fault of a value, before it is known of which document and index it is.
#[derive(Debug)]
pub(super) enum Fault {
    Refused(Cow<'static, str>),
    Json(EngineError),
}

impl Fault {
    /// `code`: of what is refused; an error of the scan keeps its own.
    pub fn at(self, position: MemberPosition<'_>, code: &'static str) -> EngineError {
        match self {
            Self::Json(error) => error,
            Self::Refused(what) => position.error(code, &what),
        }
    }
}

impl From<EngineError> for Fault {
    fn from(error: EngineError) -> Self {
        Self::Json(error)
    }
}

pub(super) fn refuse<T>(what: impl Into<Cow<'static, str>>) -> Result<T, Fault> {
    Err(Fault::Refused(what.into()))
}

/// Which document, and what of it.
#[derive(Clone, Copy)]
pub(super) struct MemberPosition<'a> {
    pub key: &'a str,
    pub member: &'static str,
    pub index: &'a str,
}

impl MemberPosition<'_> {
    pub fn error(&self, code: &'static str, what: &str) -> EngineError {
        let Self { key, member, index } = self;
        EngineError::new(code, format!("document {:?}: \"{member}.{}\" {what}", shorten(key), shorten(index)))
    }
}
