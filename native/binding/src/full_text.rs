//! Full-text indexes: open, apply, commit, checkpoint, query, close. Reports, options and plans cross as JSON, frames
//! and hits as bytes and typed arrays.

use std::path::Path;
use std::sync::Arc;

use napi::Env;
use napi::bindgen_prelude::Uint8Array;
use napi_derive::napi;
use serde::Serialize;
use serde::de::DeserializeOwned;
use sundew_engine::error::EngineError;
use sundew_engine::full_text::{self, DerivedIndex, HighlightPlan, Hits, IndexOptions, QueryPlan, TextIndex};

use crate::guard::{EngineTask, Started, call};
use crate::operations::{self, Operation};
use crate::owned_array::OwnedArray;
use crate::registry::Registry;

static INDEXES: Registry<TextIndex> = Registry::new("index");

type IndexTask<T> = Started<Arc<TextIndex>, T>;

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
    pub took_micros: f64,
}

/// Opens the index in a directory, at its last checkpoint; answers its handle. Errors with the codes `index_damaged`
/// and `index_incompatible` mean that the directory is to be emptied and the index built again.
#[napi(ts_return_type = "Promise<number>")]
pub fn open_index(directory: String, options_json: String) -> Started<(String, String), u32> {
    EngineTask::start((directory, options_json), |(directory, options)| {
        let options: IndexOptions = from_json(options, "index options")?;
        Ok(INDEXES.insert(TextIndex::open(Path::new(directory), options)?))
    })
}

/// Takes the rows of a document frame; they are seen after the next commit. Answers a JSON report.
#[napi(ts_return_type = "Promise<string>")]
pub fn apply_frame(
    env: Env,
    handle: u32,
    frame: Uint8Array,
) -> napi::Result<Started<(Arc<TextIndex>, Uint8Array), String>> {
    let index = call(&env, || INDEXES.get(handle))?;
    Ok(EngineTask::start((index, frame), |(index, frame)| to_json(&index.apply(frame)?)))
}

/// Shows what was applied; `sequence` is the last one of it. Answers a JSON report.
#[napi(ts_return_type = "Promise<string>")]
pub fn commit_index(env: Env, handle: u32, sequence: f64) -> napi::Result<Started<(Arc<TextIndex>, u64), String>> {
    let index = call(&env, || INDEXES.get(handle))?;
    Ok(EngineTask::start((index, sequence as u64), |(index, sequence)| to_json(&index.commit(*sequence)?)))
}

/// Makes the last commit durable. Answers a JSON report.
#[napi(ts_return_type = "Promise<string>")]
pub fn checkpoint_index(env: Env, handle: u32) -> napi::Result<IndexTask<String>> {
    on_index(&env, handle, |index| to_json(&index.checkpoint()?))
}

/// Gives the writer's memory and threads back until the next apply.
#[napi(ts_return_type = "Promise<void>")]
pub fn release_index_writer(env: Env, handle: u32) -> napi::Result<IndexTask<()>> {
    on_index(&env, handle, |index| index.release_writer())
}

/// Numbers about the index, as JSON.
#[napi]
pub fn index_stats(env: Env, handle: u32) -> napi::Result<String> {
    call(&env, || to_json(&INDEXES.get(handle)?.stats()))
}

/// Compares the checksums of all files of the last commit; an error with the code `index_damaged` names those that
/// differ.
#[napi(ts_return_type = "Promise<void>")]
pub fn verify_index(env: Env, handle: u32) -> napi::Result<IndexTask<()>> {
    on_index(&env, handle, |index| index.verify())
}

/// Gives the handle back at once. Queries that run finish; rows that were not committed are lost.
#[napi(ts_return_type = "Promise<void>")]
pub fn close_index(env: Env, handle: u32) -> napi::Result<Started<Option<Arc<TextIndex>>, ()>> {
    let index = call(&env, || INDEXES.remove(handle))?;
    // The last reference goes on the pool: it unmaps files and waits for threads.
    Ok(EngineTask::start(Some(index), |index| index.take().map_or(Ok(()), |index| index.close())))
}

/// Runs a plan over the indexes of a table's ranges. `cancel` stops it under the number `operation`, 0 never.
#[napi(ts_return_type = "Promise<NativeHits>")]
pub fn query(
    env: Env,
    handles: Vec<u32>,
    plan_json: String,
    operation: u32,
) -> napi::Result<Started<QueryInput, NativeHits>> {
    let indexes = call(&env, || handles.iter().map(|handle| INDEXES.get(*handle)).collect::<Result<Vec<_>, _>>())?;
    let input = QueryInput { indexes, plan_json, operation: Operation::start(operation) };
    Ok(EngineTask::start(input, |QueryInput { indexes, plan_json, operation }| {
        let plan: QueryPlan = from_json(plan_json, "query plan")?;
        let hits = full_text::query(indexes, &plan, &operation.flag)?;
        indexes.clear();
        native_hits(hits, !plan.sort.is_empty())
    }))
}

pub struct QueryInput {
    indexes: Vec<Arc<TextIndex>>,
    plan_json: String,
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

/// One byte a row of the frame: 1 where the document matches the plan under the mapping of these options.
#[napi(ts_return_type = "Promise<Uint8Array>")]
pub fn match_documents(
    options_json: String,
    plan_json: String,
    frame: Uint8Array,
) -> Started<(String, String, Uint8Array), OwnedArray<u8>> {
    EngineTask::start((options_json, plan_json, frame), |(options, plan, frame)| {
        let options: IndexOptions = from_json(options, "index options")?;
        let plan: QueryPlan = from_json(plan, "query plan")?;
        full_text::match_documents(&options, &plan, frame).map(OwnedArray)
    })
}

/// For each row of the frame an object of path -> marked fragments, as a JSON array; by the mapping of these options.
#[napi(ts_return_type = "Promise<string>")]
pub fn highlight_documents(
    options_json: String,
    plan_json: String,
    highlight_json: String,
    frame: Uint8Array,
) -> Started<HighlightInput, String> {
    let input = HighlightInput { options_json, plan_json, highlight_json, frame };
    EngineTask::start(input, |HighlightInput { options_json, plan_json, highlight_json, frame }| {
        let options: IndexOptions = from_json(options_json, "index options")?;
        let plan: QueryPlan = from_json(plan_json, "query plan")?;
        let wanted: HighlightPlan = from_json(highlight_json, "highlights")?;
        full_text::highlight_documents(&options, &plan, &wanted, frame)
    })
}

pub struct HighlightInput {
    options_json: String,
    plan_json: String,
    highlight_json: String,
    frame: Uint8Array,
}

fn on_index<T>(
    env: &Env,
    handle: u32,
    work: fn(&mut Arc<TextIndex>) -> Result<T, EngineError>,
) -> napi::Result<IndexTask<T>>
where
    T: napi::bindgen_prelude::ToNapiValue + napi::bindgen_prelude::TypeName + Send + 'static,
{
    let index = call(env, || INDEXES.get(handle))?;
    Ok(EngineTask::start(index, work))
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
        took_micros: found.took_micros as f64,
    })
}

fn from_json<T: DeserializeOwned>(json: &str, what: &str) -> Result<T, EngineError> {
    serde_json::from_str(json).map_err(|error| EngineError::internal(format!("{what}: {error}")))
}

fn to_json(value: &impl Serialize) -> Result<String, EngineError> {
    serde_json::to_string(value).map_err(|error| EngineError::internal(format!("report: {error}")))
}
