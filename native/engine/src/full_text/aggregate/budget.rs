//! How much memory the aggregations of one query may take.

use std::sync::atomic::{AtomicI64, Ordering};

use crate::error::EngineError;

/// Groups, states and distinct values that all segments hold at one time; each takes some hundred bytes at most.
const ENTRIES_MAX: i64 = 3_000_000;

/// Buckets in one answer, those of nested aggregations included.
pub const BUCKETS_MAX: usize = 65_536;

pub struct Budget {
    left: AtomicI64,
}

impl Budget {
    pub fn new() -> Self {
        Self { left: AtomicI64::new(ENTRIES_MAX) }
    }

    /// Takes `entries`; fails with `limit_exceeded` when there are not as many left.
    pub fn charge(&self, entries: usize) -> Result<(), EngineError> {
        let entries = entries as i64;
        if self.left.fetch_sub(entries, Ordering::Relaxed) >= entries {
            return Ok(());
        }
        Err(EngineError::new(
            "limit_exceeded",
            format!("the aggregations need more than {ENTRIES_MAX} groups and distinct values; narrow the query"),
        ))
    }
}

pub fn too_many_buckets() -> EngineError {
    EngineError::new(
        "limit_exceeded",
        format!("the aggregations answer more than {BUCKETS_MAX} buckets; ask for fewer, or for wider ones"),
    )
}

#[cfg(test)]
mod tests {
    use super::{Budget, ENTRIES_MAX};

    #[test]
    fn the_last_entry_is_granted_and_none_after_it() {
        let budget = Budget::new();
        assert!(budget.charge(ENTRIES_MAX as usize - 1).is_ok());
        assert!(budget.charge(1).is_ok());
        assert_eq!(budget.charge(1).expect_err("an error").code, "limit_exceeded");
    }
}
