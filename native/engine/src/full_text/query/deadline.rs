//! When a query has to stop: its deadline, or its caller went away, or it takes longer than its thread has time for.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::error::EngineError;

const QUERY_TIMEOUT: &str = "query_timeout";
const TAKES_LONGER: &str = "takes_longer";

/// A query that is answered inline, by the thread that asks, is given up after four times what was allowed, and not before
/// this time.
const PATIENCE_MIN: Duration = Duration::from_millis(1);

/// Work of fewer nanoseconds is done before another thread would have taken a part of it.
const SHARED_NANOS_MIN: u64 = 200_000;

/// Set by the caller, from any thread, to end a query.
#[derive(Debug, Clone, Default)]
pub struct CancelFlag(Arc<AtomicBool>);

impl CancelFlag {
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

#[derive(Debug, Clone)]
pub struct Deadline {
    cancel: CancelFlag,
    deadline: Option<Instant>,
    /// `None` when it may take its time.
    inline: Option<Arc<Allowance>>,
}

/// Of a query that is answered inline.
#[derive(Debug)]
struct Allowance {
    /// Nanoseconds of work that may be expected, and those that are.
    max: u64,
    expected: AtomicU64,
}

/// Documents between two looks at the clock: a power of two.
const DOCUMENTS_BETWEEN_LOOKS: u64 = 1024;

impl Deadline {
    pub fn new(cancel: &CancelFlag, timeout_ms: Option<u64>) -> Self {
        let deadline = timeout_ms.and_then(|timeout| Instant::now().checked_add(Duration::from_millis(timeout)));
        Self { cancel: cancel.clone(), deadline, inline: None }
    }

    /// For a query that is answered inline, with no more than `nanos` of work to be expected.
    pub fn inline(nanos: u64) -> Self {
        let patience = Duration::from_nanos(nanos.saturating_mul(4)).max(PATIENCE_MIN);
        let allowance = Allowance { max: nanos, expected: AtomicU64::new(0) };
        Self {
            cancel: CancelFlag::default(),
            deadline: Instant::now().checked_add(patience),
            inline: Some(Arc::new(allowance)),
        }
    }

    /// What ends the query before its time.
    pub fn cancel(&self) -> &CancelFlag {
        &self.cancel
    }

    pub fn is_inline(&self) -> bool {
        self.inline.is_some()
    }

    /// Whether other threads may take a part: of what may take its time, or is known by now to be worth it.
    pub fn is_shared(&self) -> bool {
        let is_much = |allowance: &Arc<Allowance>| allowance.expected.load(Ordering::Relaxed) >= SHARED_NANOS_MIN;
        self.inline.as_ref().is_none_or(is_much)
    }

    /// Announces about `nanos` of work, rather too many. Fails when that is more than a query that is answered inline may take.
    pub fn expect(&self, nanos: u64) -> Result<(), EngineError> {
        let Some(Allowance { max, expected }) = self.inline.as_deref() else { return Ok(()) };
        let add = |before: u64| before.checked_add(nanos).filter(|sum| sum <= max);
        expected.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).map(drop).map_err(|_| self.error())
    }

    /// Whether a query that was to be answered inline has failed with `error` because it takes longer.
    pub fn takes_longer(&self, error: &EngineError) -> bool {
        self.is_inline() && error.code == TAKES_LONGER
    }

    pub fn is_due(&self) -> bool {
        self.cancel.is_cancelled() || self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }

    /// Looks at the clock once in a while; `visited` counts documents.
    pub fn is_due_at(&self, visited: u64) -> bool {
        visited & (DOCUMENTS_BETWEEN_LOOKS - 1) == 0 && self.is_due()
    }

    /// Whether a query that has stopped with `error` may answer with what it has found: its time is over, and its
    /// caller is still there.
    pub fn is_end_of_time(&self, error: &EngineError) -> bool {
        error.code == QUERY_TIMEOUT && !self.cancel.is_cancelled()
    }

    pub fn error(&self) -> EngineError {
        if self.is_inline() {
            return EngineError::new(TAKES_LONGER, "the query takes longer than the thread has time for");
        }
        let reason = if self.cancel.is_cancelled() { "the query was cancelled" } else { "the query ran out of time" };
        EngineError::new(QUERY_TIMEOUT, reason)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_answered_inline_takes_no_more_than_its_allowance_and_is_shared_from_some_work_on() {
        let deadline = Deadline::inline(300_000);
        assert!(!deadline.is_shared());
        deadline.expect(SHARED_NANOS_MIN).expect("below the allowance");
        assert!(deadline.is_shared());
        let refused = deadline.expect(u64::MAX).expect_err("above the allowance");
        assert!(deadline.takes_longer(&refused));
        assert!(Deadline::new(&CancelFlag::default(), None).is_shared());
    }
}
