//! Queries over the indexes of a table's ranges.

use std::sync::{Arc, OnceLock};

use napi::Env;
use napi::bindgen_prelude::Uint8Array;
use napi_derive::napi;
use sundew_engine::error::EngineError;
use sundew_engine::full_text::{Hits, QueryPlan, TextIndex};
use sundew_engine::retrieval::{self, LegIndex};

use crate::guard::{Answered, EngineTask, call};
use crate::indexes::{leg_index, text_index};
use crate::json::{from_json, to_json};
use crate::operations::{self, Operation};
use crate::owned_array::OwnedArray;

/// One page of hits, in order. Members of text are there when the plan asks for them.
#[napi(object, object_from_js = false)]
pub struct NativeHits {
    /// Of each hit: position of its index among the handles of the query, ordinal, version of the document that
    /// matched, score, distance by the first dense leg that found it (NaN without one), what each of `legs` scored it
    /// (NaN where that one did not find it), and which of its vectors each of `legs` found (NaN also for text). In one
    /// array, because each array costs as much as all that is in it.
    #[napi(ts_type = "Float64Array")]
    pub numbers: OwnedArray<f64>,
    pub total: f64,
    /// False: there are at least `total` matches.
    pub total_is_exact: bool,
    /// The time was over before all documents were looked at.
    pub is_partial: bool,
    pub max_score: f64,
    /// JSON: for each hit an array of its sort values and its position, for a page by cursor.
    pub sort: Option<String>,
    /// A JSON object.
    pub aggregations: Option<String>,
    /// A JSON array with the tree of each hit's score.
    pub explanations: Option<String>,
    /// The legs that made the answer, the text leg as `full_text`. Of plans with vector legs.
    pub legs: Option<Vec<String>>,
    /// A JSON object: how each leg went.
    pub profile: Option<String>,
}

/// Larger plans are read where there is time for it.
const INLINE_PLAN_BYTES_MAX: usize = 8 * 1024;

/// Nanoseconds that a query of one who asks alone may take on the calling thread: nobody else waits for it.
const ALONE_NANOS_MAX: u64 = 1_000_000;

/// Nanoseconds that a query may take on the calling thread. Where there is one core, handing it over only costs; where there
/// are several, what takes longer than the way to another thread and back leaves this one free for other requests, and
/// several ranges are searched side by side.
fn inline_nanos_max(is_alone: bool, ranges: usize) -> u64 {
    static CORES: OnceLock<usize> = OnceLock::new();
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    match *CORES.get_or_init(cores) {
        _ if is_alone && ranges == 1 => ALONE_NANOS_MAX,
        1 => 250_000,
        _ => 150_000,
    }
}

/// Runs a plan over the indexes of a table's ranges. `handles`: the text index of each range. `vectorHandles`: for each
/// leg of the plan its index of each range, leg after leg, 0 for a leg that has its documents with it. `vectors`: the query
/// vectors of the legs, one after another.
/// A query that is sure to be cheap is answered at once, everything else by a promise; `cancel` stops that under the number
/// `operation`, 0 never. `isAlone`: no other caller waits, so that a longer answer at once is better than a promise.
#[napi(ts_return_type = "NativeHits | Promise<NativeHits>")]
pub fn query(
    env: Env,
    handles: Vec<u32>,
    vector_handles: Vec<u32>,
    plan_json: String,
    vectors: Uint8Array,
    operation: u32,
    is_alone: bool,
) -> napi::Result<Answered<QueryInput, NativeHits>> {
    call(&env, || {
        let indexes = handles.iter().map(|handle| text_index(*handle)).collect::<Result<Vec<_>, _>>()?;
        let vector_indexes = vector_handles.iter().map(|handle| leg_index(*handle)).collect::<Result<Vec<_>, _>>()?;
        let mut read = None;
        if plan_json.len() <= INLINE_PLAN_BYTES_MAX {
            let plan: QueryPlan = from_json(&plan_json, "query plan")?;
            let nanos_max = inline_nanos_max(is_alone, indexes.len());
            if let Some(hits) = retrieval::query_inline(&indexes, &vector_indexes, &plan, &vectors, nanos_max)? {
                return native_hits(hits, !plan.sort.is_empty()).map(Answered::Inline);
            }
            read = Some(Box::new(plan));
        }
        let operation = Operation::start(operation);
        let input = QueryInput { indexes, vector_indexes, plan_json, read, vectors, operation };
        Ok(Answered::Later(EngineTask::start(input, run_query)))
    })
}

fn run_query(input: &mut QueryInput) -> Result<NativeHits, EngineError> {
    let QueryInput { indexes, vector_indexes, plan_json, read, vectors, operation } = input;
    let plan = match read.take() {
        Some(plan) => plan,
        None => Box::new(from_json(plan_json, "query plan")?),
    };
    let hits = retrieval::query(indexes, vector_indexes, &plan, vectors, &operation.flag)?;
    indexes.clear();
    vector_indexes.clear();
    native_hits(hits, !plan.sort.is_empty())
}

pub struct QueryInput {
    indexes: Vec<Arc<TextIndex>>,
    vector_indexes: Vec<LegIndex>,
    plan_json: String,
    /// The plan, where it was small enough to be read on the calling thread already.
    read: Option<Box<QueryPlan>>,
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
    let sort = match is_sorted {
        true => Some(to_json(&hits.iter().map(|hit| (&hit.sort, &hit.position)).collect::<Vec<_>>())?),
        false => None,
    };
    let legs = found.legs.len();
    let mut numbers = Vec::with_capacity((5 + 2 * legs) * hits.len());
    for (at, hit) in hits.iter().enumerate() {
        let distance = found.distances.get(at).copied().unwrap_or(f32::NAN);
        // Sequences stay below 2^53.
        let (sequence, score, distance) = (hit.sequence as f64, f64::from(hit.score), f64::from(distance));
        numbers.extend([f64::from(hit.range), f64::from(hit.ordinal), sequence, score, distance]);
        for of_legs in [&found.leg_scores, &found.leg_numbers] {
            numbers.extend(of_legs.iter().skip(at * legs).take(legs).map(|number| f64::from(*number)));
        }
    }
    let given = |text: String| if text.is_empty() { None } else { Some(text) };
    Ok(NativeHits {
        numbers: OwnedArray(numbers),
        total: found.total as f64,
        total_is_exact: found.total_is_exact,
        is_partial: found.is_partial,
        max_score: f64::from(found.max_score),
        sort,
        aggregations: given(found.aggregations),
        explanations: given(found.explanations),
        legs: if legs == 0 { None } else { Some(found.legs) },
        profile: given(found.profile),
    })
}
