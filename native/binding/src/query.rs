//! Queries over the indexes of a table's ranges.

use std::sync::Arc;

use napi::Env;
use napi::bindgen_prelude::Uint8Array;
use napi_derive::napi;
use sundew_engine::error::EngineError;
use sundew_engine::full_text::{Hits, QueryPlan, TextIndex};
use sundew_engine::retrieval::{self, VectorIndex};

use crate::guard::{EngineTask, Started, call};
use crate::indexes::{text_index, vector_index};
use crate::json::{from_json, to_json};
use crate::operations::{self, Operation};
use crate::owned_array::OwnedArray;

/// One page of hits, in order: the arrays have one element a hit.
#[napi(object, object_from_js = false)]
pub struct NativeHits {
    /// Position of the hit's index among the handles of the query.
    #[napi(ts_type = "Uint32Array")]
    pub ranges: OwnedArray<u32>,
    #[napi(ts_type = "Uint32Array")]
    pub ordinals: OwnedArray<u32>,
    /// The version of the document that matched.
    #[napi(ts_type = "Float64Array")]
    pub sequences: OwnedArray<f64>,
    #[napi(ts_type = "Float32Array")]
    pub scores: OwnedArray<f32>,
    /// JSON: for each hit an array of its sort values and its position, for a page by cursor; empty when the plan does
    /// not sort.
    pub sort: String,
    pub total: f64,
    /// False: there are at least `total` matches.
    pub total_is_exact: bool,
    /// The time was over before all documents were looked at.
    pub is_partial: bool,
    pub max_score: f64,
    /// A JSON object; empty when the plan has no aggregations.
    pub aggregations: String,
    /// A JSON array with the tree of each hit's score; empty when the plan does not ask for it.
    pub explanations: String,
    /// Each hit's distance by the first dense leg that found it, NaN without one; empty without vector legs.
    #[napi(ts_type = "Float32Array")]
    pub distances: OwnedArray<f32>,
    /// A JSON array: for each hit an object of leg -> that leg's own score, the text leg as `full_text`; empty without
    /// vector legs.
    pub leg_scores: String,
    /// A JSON object: how each leg went; empty when the plan does not ask for it.
    pub profile: String,
    pub took_micros: f64,
}

/// Runs a plan over the indexes of a table's ranges. `handles`: the text index of each range. `vectorHandles`: for each
/// leg of the plan its index of each range, leg after leg. `vectors`: the query vectors of the legs, one after another.
/// `cancel` stops the query under the number `operation`, 0 never.
#[napi(ts_return_type = "Promise<NativeHits>")]
pub fn query(
    env: Env,
    handles: Vec<u32>,
    vector_handles: Vec<u32>,
    plan_json: String,
    vectors: Uint8Array,
    operation: u32,
) -> napi::Result<Started<QueryInput, NativeHits>> {
    let opened = call(&env, || {
        let texts = handles.iter().map(|handle| text_index(*handle)).collect::<Result<Vec<_>, _>>()?;
        let vectors = vector_handles.iter().map(|handle| vector_index(*handle)).collect::<Result<Vec<_>, _>>()?;
        Ok((texts, vectors))
    });
    let (indexes, vector_indexes) = opened?;
    let input = QueryInput { indexes, vector_indexes, plan_json, vectors, operation: Operation::start(operation) };
    Ok(EngineTask::start(input, |QueryInput { indexes, vector_indexes, plan_json, vectors, operation }| {
        let plan: QueryPlan = from_json(plan_json, "query plan")?;
        let hits = retrieval::query(indexes, vector_indexes, &plan, vectors, &operation.flag)?;
        indexes.clear();
        vector_indexes.clear();
        native_hits(hits, !plan.sort.is_empty())
    }))
}

pub struct QueryInput {
    indexes: Vec<Arc<TextIndex>>,
    vector_indexes: Vec<VectorIndex>,
    plan_json: String,
    vectors: Uint8Array,
    operation: Operation,
}

/// Stops a running query within about a thousand documents; it then fails with `query_timeout`.
#[napi]
pub fn cancel(env: Env, operation: u32) -> napi::Result<()> {
    call(&env, || {
        operations::cancel(operation);
        Ok(())
    })
}

fn native_hits(found: Hits, is_sorted: bool) -> Result<NativeHits, EngineError> {
    let hits = &found.hits;
    let sort = if is_sorted {
        to_json(&hits.iter().map(|hit| (&hit.sort, &hit.position)).collect::<Vec<_>>())?
    } else {
        String::new()
    };
    Ok(NativeHits {
        ranges: OwnedArray(hits.iter().map(|hit| hit.range).collect()),
        ordinals: OwnedArray(hits.iter().map(|hit| hit.ordinal).collect()),
        // Sequences stay below 2^53.
        sequences: OwnedArray(hits.iter().map(|hit| hit.sequence as f64).collect()),
        scores: OwnedArray(hits.iter().map(|hit| hit.score).collect()),
        sort,
        total: found.total as f64,
        total_is_exact: found.total_is_exact,
        is_partial: found.is_partial,
        max_score: f64::from(found.max_score),
        aggregations: found.aggregations,
        explanations: found.explanations,
        distances: OwnedArray(found.distances),
        leg_scores: found.leg_scores,
        profile: found.profile,
        took_micros: found.took_micros as f64,
    })
}
