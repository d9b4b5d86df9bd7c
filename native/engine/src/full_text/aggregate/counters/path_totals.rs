//! The counters of one path over all segments of a table.

use std::sync::OnceLock;

use tantivy::index::SegmentId;

use super::ranked_terms::RankedTerms;
use crate::error::EngineError;
use crate::full_text::aggregate::answers::number_summary::NumberSummary;
use crate::full_text::query::Deadline;

/// Which segments, and how many of their documents are deleted.
pub type ViewIdentity = Vec<(SegmentId, u32)>;

/// Each part is there once it was asked for, until the next commit.
pub struct PathTotals {
    /// The segments whose counters are added up.
    pub identity: ViewIdentity,
    pub numbers: OnceLock<NumberSummary>,
    /// All values, repeated ones as often as documents repeat them; `None` where geo points are among them.
    pub values: OnceLock<Option<u64>>,
    pub terms: OnceLock<RankedTerms>,
}

impl PathTotals {
    pub fn new(identity: ViewIdentity) -> Self {
        Self { identity, numbers: OnceLock::new(), values: OnceLock::new(), terms: OnceLock::new() }
    }
}

/// The content of `part`, made by `make` where it is empty; `None` where `make` gives none. A query that is to end at
/// once makes nothing.
pub fn known_or_made<'a, T>(
    part: &'a OnceLock<T>,
    deadline: &Deadline,
    make: impl FnOnce() -> Result<Option<T>, EngineError>,
) -> Result<Option<&'a T>, EngineError> {
    if let Some(known) = part.get() {
        return Ok(Some(known));
    }
    if deadline.is_inline() {
        return Err(deadline.error());
    }
    Ok(make()?.map(|made| part.get_or_init(|| made)))
}
