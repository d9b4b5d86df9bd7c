//! The life of an index of any kind: open, apply, commit, checkpoint, close. Options and reports cross as JSON, frames as
//! bytes.

use std::os::fd::BorrowedFd;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use napi::Env;
use napi::bindgen_prelude::{Uint8Array, Uint32Array};
use napi_derive::napi;
use serde::{Deserialize, Serialize};
use sundew_engine::base::joint_checkpoint::checkpoint_together;

use sundew_engine::error::EngineError;
use sundew_engine::full_text::{CheckpointReport, DerivedIndex, IndexOptions, TextIndex, text_stats};
use sundew_engine::retrieval::{LegIndex, VectorIndex};
use sundew_graph::{GraphIndex, GraphOptions};
use sundew_vector::dense::{DenseIndex, DenseOptions};
use sundew_vector::sparse::{SparseIndex, SparseOptions};

use crate::guard::{EngineTask, Started, call};
use crate::json::{from_json, to_json};
use crate::registry::Registry;

static INDEXES: Registry<OpenIndex> = Registry::new("index");

#[derive(Clone)]
pub enum OpenIndex {
    Text(Arc<TextIndex>),
    Vector(VectorIndex),
    Graph(Arc<GraphIndex>),
}

impl OpenIndex {
    fn derived(&self) -> &dyn DerivedIndex {
        match self {
            Self::Text(index) => &**index,
            Self::Vector(index) => index.derived(),
            Self::Graph(index) => &**index,
        }
    }
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum OptionsOfKind {
    FullText(IndexOptions),
    Dense(DenseOptions),
    Sparse(SparseOptions),
    Graph(GraphOptions),
}

type IndexTask<T> = Started<OpenIndex, T>;

/// The index, the path of a file, and what is to be done.
type DenseTask<T> = Started<(Arc<DenseIndex>, String, fn(&DenseIndex, &Path) -> Result<T, EngineError>), T>;

/// The full-text index of a handle.
pub fn text_index(handle: u32) -> Result<Arc<TextIndex>, EngineError> {
    match INDEXES.get(handle)? {
        OpenIndex::Text(index) => Ok(index),
        _ => Err(EngineError::internal(format!("index handle {handle} is not of a text index"))),
    }
}

/// The dense or sparse index of a handle.
fn vector_index(handle: u32) -> Result<VectorIndex, EngineError> {
    match INDEXES.get(handle)? {
        OpenIndex::Vector(index) => Ok(index),
        _ => Err(EngineError::internal(format!("index handle {handle} is not of a vector index"))),
    }
}

/// The index that a leg searches: the vector index of a handle, 0 for a leg that has its documents with it.
pub fn leg_index(handle: u32) -> Result<LegIndex, EngineError> {
    if handle == 0 { Ok(LegIndex::Listed) } else { vector_index(handle).map(LegIndex::Vectors) }
}

/// The graph index of a handle.
pub fn graph_index(handle: u32) -> Result<Arc<GraphIndex>, EngineError> {
    match INDEXES.get(handle)? {
        OpenIndex::Graph(index) => Ok(index),
        _ => Err(EngineError::internal(format!("index handle {handle} is not of a graph index"))),
    }
}

/// Opens the index in a directory, at its last checkpoint; answers its handle. `optionsJson` has the options of the
/// kind that its member `type` names: `full_text`, `dense`, `sparse` or `graph`. Errors with the codes `index_damaged`
/// and `index_incompatible` mean that the directory is to be emptied and the index built again.
#[napi(ts_return_type = "Promise<number>")]
pub fn open_index(directory: String, options_json: String) -> Started<(String, String), u32> {
    EngineTask::start((directory, options_json), |(directory, options)| {
        let path = Path::new(directory);
        let index = match from_json(options, "index options")? {
            OptionsOfKind::FullText(options) => OpenIndex::Text(TextIndex::open(path, options)?),
            OptionsOfKind::Dense(options) => OpenIndex::Vector(VectorIndex::Dense(DenseIndex::open(path, options)?)),
            OptionsOfKind::Sparse(options) => OpenIndex::Vector(VectorIndex::Sparse(SparseIndex::open(path, options)?)),
            OptionsOfKind::Graph(options) => OpenIndex::Graph(GraphIndex::open(path, options)?),
        };
        Ok(INDEXES.insert(index))
    })
}

/// Takes the rows of a document frame; they are seen after the next commit. Answers a JSON report.
#[napi(ts_return_type = "Promise<string>")]
pub fn apply_frame(env: Env, handle: u32, frame: Uint8Array) -> napi::Result<Started<(OpenIndex, Uint8Array), String>> {
    let index = call(&env, || INDEXES.get(handle))?;
    Ok(EngineTask::start((index, frame), |(index, frame)| to_json(&index.derived().apply(frame)?)))
}

/// The index, the sequence, and the documents that are left out from now on.
type Commit = (OpenIndex, u64, Option<Vec<u32>>);

/// Shows what was applied; `sequence` is the last one of it. `leftOut` has the ordinals of all documents that are left out as of
/// this commit because what is stored of them is damaged; without it they are as before. Answers a JSON report.
#[napi(ts_return_type = "Promise<string>")]
pub fn commit_index(
    env: Env,
    handle: u32,
    sequence: f64,
    left_out: Option<Uint32Array>,
) -> napi::Result<Started<Commit, String>> {
    let index = call(&env, || INDEXES.get(handle))?;
    let left_out = left_out.map(|ordinals| ordinals.to_vec());
    Ok(EngineTask::start((index, sequence as u64, left_out), |(index, sequence, left_out)| {
        if let Some(ordinals) = left_out.take() {
            index.derived().leave_out(ordinals);
        }
        to_json(&index.derived().commit(*sequence)?)
    }))
}

/// Ordinals of the documents that are left out of the index, in no order.
#[napi]
pub fn index_left_out(env: Env, handle: u32) -> napi::Result<Uint32Array> {
    call(&env, || Ok(INDEXES.get(handle)?.derived().left_out().into()))
}

/// Makes the last commit durable. Answers a JSON report.
#[napi(ts_return_type = "Promise<string>")]
pub fn checkpoint_index(env: Env, handle: u32) -> napi::Result<IndexTask<String>> {
    on_index(&env, handle, |index| to_json(&index.derived().checkpoint()?))
}

/// The outcome of one of many checkpoints.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum CheckpointOutcome {
    Done(CheckpointReport),
    Failed(String),
    /// There was no time left for it.
    Left,
}

/// The indexes, the descriptor of their disk, and the time at which none begins any more.
type JointCheckpoint = (Vec<OpenIndex>, i32, Instant);

/// Makes the last commits of many indexes durable with few syncs of their file system, and with them everything that was
/// written there before. `disk` is the descriptor of one of its files or directories, opened before that was written and
/// kept open until the promise settles. Checkpoints that have not begun `withinMs` from now are left out. Answers a JSON
/// array: for each index `{done: report}`, `{failed: message}` or `"left"`.
#[napi(ts_return_type = "Promise<string>")]
pub fn checkpoint_indexes(
    env: Env,
    handles: Vec<u32>,
    disk: i32,
    within_ms: f64,
) -> napi::Result<Started<JointCheckpoint, String>> {
    let until = Instant::now() + Duration::from_millis(within_ms.max(0.0) as u64);
    let indexes = call(&env, || handles.into_iter().map(|handle| INDEXES.get(handle)).collect())?;
    Ok(EngineTask::start((indexes, disk, until), |(indexes, disk, until)| {
        let derived: Vec<&dyn DerivedIndex> = indexes.iter().map(OpenIndex::derived).collect();
        // SAFETY: the caller keeps the descriptor open.
        let disk = unsafe { BorrowedFd::borrow_raw(*disk) };
        let outcomes = checkpoint_together(&derived, disk, *until)?.into_iter().map(|report| match report {
            Some(Ok(report)) => CheckpointOutcome::Done(report),
            Some(Err(error)) => CheckpointOutcome::Failed(error.message),
            None => CheckpointOutcome::Left,
        });
        to_json(&outcomes.collect::<Vec<_>>())
    }))
}

/// Begins what the index puts off until it rests.
#[napi(ts_return_type = "Promise<void>")]
pub fn rest_index(env: Env, handle: u32) -> napi::Result<IndexTask<()>> {
    on_index(&env, handle, |index| index.derived().rest())
}

/// Has the rows of a dense index wait without a graph until `linkIndex`.
#[napi(ts_return_type = "Promise<void>")]
pub fn hold_index(env: Env, handle: u32) -> napi::Result<DenseTask<()>> {
    on_dense(&env, handle, String::new(), |index, _| {
        index.hold();
        Ok(())
    })
}

/// Makes one graph of what a dense index shows, with the links that a file of `writeIndexLinks` gives to its vectors. Answers a
/// JSON report.
#[napi(ts_return_type = "Promise<string>")]
pub fn link_index(env: Env, handle: u32, path: String) -> napi::Result<DenseTask<String>> {
    on_dense(&env, handle, path, |index, path| to_json(&index.link_again(path)))
}

/// Writes the links of the graphs of a dense index into a file; answers its bytes, and 0 without a file where there are none.
#[napi(ts_return_type = "Promise<number>")]
pub fn write_index_links(env: Env, handle: u32, path: String) -> napi::Result<DenseTask<f64>> {
    on_dense(&env, handle, path, |index, path| Ok(index.write_links(path)? as f64))
}

/// Numbers about the index, as JSON.
#[napi]
pub fn index_stats(env: Env, handle: u32) -> napi::Result<String> {
    call(&env, || match INDEXES.get(handle)? {
        OpenIndex::Text(index) => to_json(&text_stats(&index)),
        index => to_json(&index.derived().stats()),
    })
}

/// Bytes of index files that are in memory and wait for a checkpoint.
#[napi]
pub fn index_memory_bytes(env: Env, handle: u32) -> napi::Result<f64> {
    call(&env, || Ok(INDEXES.get(handle)?.derived().memory_bytes() as f64))
}

/// Compares the checksums of all files of the last commit; an error with the code `index_damaged` names those that
/// differ.
#[napi(ts_return_type = "Promise<void>")]
pub fn verify_index(env: Env, handle: u32) -> napi::Result<IndexTask<()>> {
    on_index(&env, handle, |index| index.derived().verify())
}

/// `closeIndex` follows soon: calls that wait for background work end without it.
#[napi]
pub fn close_index_soon(env: Env, handle: u32) -> napi::Result<()> {
    call(&env, || {
        INDEXES.get(handle)?.derived().close_soon();
        Ok(())
    })
}

/// Gives the handle back at once. Queries that run finish; rows that were not committed are lost.
#[napi(ts_return_type = "Promise<void>")]
pub fn close_index(env: Env, handle: u32) -> napi::Result<Started<Option<OpenIndex>, ()>> {
    let index = call(&env, || INDEXES.remove(handle))?;
    // The last reference goes on the pool: it unmaps files and waits for threads.
    Ok(EngineTask::start(Some(index), |index| index.take().map_or(Ok(()), |index| index.derived().close())))
}

fn on_dense<T>(
    env: &Env,
    handle: u32,
    path: String,
    work: fn(&DenseIndex, &Path) -> Result<T, EngineError>,
) -> napi::Result<DenseTask<T>>
where
    T: napi::bindgen_prelude::ToNapiValue + napi::bindgen_prelude::TypeName + Send + 'static,
{
    let index = call(env, || match vector_index(handle)? {
        VectorIndex::Dense(index) => Ok(index),
        VectorIndex::Sparse(_) => Err(EngineError::internal(format!("index handle {handle} is not of a dense index"))),
    })?;
    Ok(EngineTask::start((index, path, work), |(index, path, work)| work(index, Path::new(path))))
}

fn on_index<T>(env: &Env, handle: u32, work: fn(&mut OpenIndex) -> Result<T, EngineError>) -> napi::Result<IndexTask<T>>
where
    T: napi::bindgen_prelude::ToNapiValue + napi::bindgen_prelude::TypeName + Send + 'static,
{
    let index = call(env, || INDEXES.get(handle))?;
    Ok(EngineTask::start(index, work))
}
