//! When a query has to stop: its deadline, or its caller went away, or it takes longer than its thread has time for.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::error::EngineError;

const QUERY_TIMEOUT: &str = "query_timeout";
const TAKES_LONGER: &str = "takes_longer";

/// What is answered at once is given up after this time, whatever was expected of it.
const AT_ONCE_MAX: Duration = Duration::from_millis(1);

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
pub struct Stop {
    cancel: CancelFlag,
    deadline: Option<Instant>,
    /// Nanoseconds of work that may still be expected; `None` when it may take its time.
    expected_max: Option<Arc<AtomicU64>>,
}

/// Documents between two looks at the clock: a power of two.
const DOCUMENTS_BETWEEN_LOOKS: u64 = 1024;

impl Stop {
    pub fn new(cancel: &CancelFlag, timeout_ms: Option<u64>) -> Self {
        let deadline = timeout_ms.and_then(|timeout| Instant::now().checked_add(Duration::from_millis(timeout)));
        Self { cancel: cancel.clone(), deadline, expected_max: None }
    }

    /// For a query that is to end at once: within a millisecond, and with no more than `nanos` of work to be expected.
    pub fn at_once(nanos: u64) -> Self {
        let deadline = Instant::now().checked_add(AT_ONCE_MAX);
        Self { cancel: CancelFlag::default(), deadline, expected_max: Some(Arc::new(AtomicU64::new(nanos))) }
    }

    pub fn is_at_once(&self) -> bool {
        self.expected_max.is_some()
    }

    /// Announces about so many nanoseconds of work, rather too many. Fails when the query is to end at once and will not.
    pub fn expect(&self, nanos: u64) -> Result<(), EngineError> {
        let Some(left) = &self.expected_max else { return Ok(()) };
        let spend = |left: u64| left.checked_sub(nanos);
        left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, spend).map(drop).map_err(|_| self.error())
    }

    /// Whether a query that was to end at once has failed with `error` because it takes longer.
    pub fn takes_longer(&self, error: &EngineError) -> bool {
        self.is_at_once() && error.code == TAKES_LONGER
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
        if self.is_at_once() {
            return EngineError::new(TAKES_LONGER, "the query takes longer than the thread has time for");
        }
        let reason = if self.cancel.is_cancelled() { "the query was cancelled" } else { "the query ran out of time" };
        EngineError::new(QUERY_TIMEOUT, reason)
    }
}
