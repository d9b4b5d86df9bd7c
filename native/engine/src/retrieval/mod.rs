//! Retrieval over several indexes: text, dense and sparse legs under one plan, fused into one list.

mod plan;

use std::sync::Arc;

use sundew_base::derived_index::DerivedIndex;

use crate::error::EngineError;
use crate::full_text::{self, CancelFlag, Hits, QueryPlan, TextIndex};

pub use plan::{Fusion, Leg, LegKind, Pruner, Strategy};

/// An index of vectors of one range.
#[derive(Clone)]
pub enum VectorIndex {}

impl VectorIndex {
    pub fn derived(&self) -> &dyn DerivedIndex {
        match *self {}
    }
}

/// The answer of `plan` over the ranges of a table. `texts`: the text index of each range. `vectors`: for each leg its
/// index of each range, leg after leg. `query_vectors`: those of the legs, one after another.
///
/// Errors: those of `full_text::query`; `internal` when the parts do not fit together.
pub fn query(
    texts: &[Arc<TextIndex>],
    vectors: &[VectorIndex],
    plan: &QueryPlan,
    query_vectors: &[u8],
    cancel: &CancelFlag,
) -> Result<Hits, EngineError> {
    let bytes: usize = plan.legs.iter().map(|leg| leg.bytes).sum();
    if vectors.len() != plan.legs.len() * texts.len() || query_vectors.len() != bytes {
        return Err(EngineError::internal("the legs of a plan and their indexes and vectors do not fit together"));
    }
    full_text::query(texts, plan, cancel)
}
