//! Queries that are answered on the thread that asks, because handing them to another one would take longer.

use std::sync::Arc;

use super::cost_model::known_nanos;
use super::legs::LegIndex;
use super::run::query_until;
use crate::error::EngineError;
use crate::full_text::{Deadline, Hits, QueryPlan, TextIndex};

/// The answer of `super::query` when that is sure to take less than about `nanos_max`; `None` when it may take longer, and
/// nothing of it is done then. Waits for nothing but locks that are held for a few steps.
///
/// Errors: those of `super::query` but `query_timeout`.
pub fn query_inline(
    texts: &[Arc<TextIndex>],
    vectors: &[LegIndex],
    plan: &QueryPlan,
    query_vectors: &[u8],
    nanos_max: u64,
) -> Result<Option<Hits>, EngineError> {
    let deadline = Deadline::inline(nanos_max);
    let Some(nanos) = known_nanos(texts, vectors, plan) else { return Ok(None) };
    let outcome = deadline.expect(nanos).and_then(|()| query_until(texts, vectors, plan, query_vectors, &deadline));
    match outcome {
        Err(error) if deadline.takes_longer(&error) => Ok(None),
        outcome => outcome.map(Some),
    }
}
