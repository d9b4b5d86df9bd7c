//! When a query has to stop: its deadline, or its caller went away.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::error::EngineError;

const QUERY_TIMEOUT: &str = "query_timeout";

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
}

/// Documents between two looks at the clock: a power of two.
const DOCUMENTS_BETWEEN_LOOKS: u64 = 1024;

impl Stop {
    pub fn new(cancel: &CancelFlag, timeout_ms: Option<u64>) -> Self {
        let deadline = timeout_ms.and_then(|timeout| Instant::now().checked_add(Duration::from_millis(timeout)));
        Self { cancel: cancel.clone(), deadline }
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
        let reason = if self.cancel.is_cancelled() { "the query was cancelled" } else { "the query ran out of time" };
        EngineError::new(QUERY_TIMEOUT, reason)
    }
}
