//! Searches over the graph indexes of a table's ranges.

use std::sync::Arc;

use napi::Env;
use napi_derive::napi;
use sundew_base::error::EngineError;
use sundew_graph::GraphIndex;
use sundew_graph::search::{GraphAnswer, GraphRequest, RemovedTargets, body_of, search, search_inline};

use crate::guard::{Answered, EngineTask, call};
use crate::indexes::graph_index;
use crate::json::{from_json, to_json};
use crate::operations::{self, Operation};

pub struct GraphInput {
    indexes: Vec<Arc<GraphIndex>>,
    request_json: String,
    removed_json: String,
    operation: Operation,
}

/// Longer requests are read where there is time for it.
const INLINE_JSON_BYTES_MAX: usize = 8 * 1024;

/// Runs a graph search over the graph index of each range of a table. `removedJson` maps keys of deleted documents to the
/// sequence of each range up to which edges to them are gone. Answers JSON, at once where the search is short, and by a
/// promise otherwise; `cancel` stops that under the number `operation`, 0 never.
#[napi(ts_return_type = "string | Promise<string>")]
pub fn graph_search(
    env: Env,
    handles: Vec<u32>,
    request_json: String,
    removed_json: String,
    operation: u32,
) -> napi::Result<Answered<GraphInput, String>> {
    call(&env, || {
        let indexes = indexes_of(&handles)?;
        if let Some((answer, _)) = answer_inline(&indexes, &request_json, &removed_json)? {
            return to_json(&answer).map(Answered::Inline);
        }
        let input = GraphInput { indexes, request_json, removed_json, operation: Operation::start(operation) };
        Ok(Answered::Later(EngineTask::start(input, |input| {
            let (request, removed) = read(&input.request_json, &input.removed_json)?;
            let answer = search(&input.indexes, &request, &removed, &input.operation)?;
            input.indexes.clear();
            to_json(&answer)
        })))
    })
}

/// As `graphSearch` for edges of a node or a traversal: the body of the answer as its route gives it, but for the time that
/// it took. Null where the search is not short or its answer not whole.
#[napi]
pub fn graph_body_inline(
    env: Env,
    handles: Vec<u32>,
    request_json: String,
    removed_json: String,
) -> napi::Result<Option<String>> {
    call(&env, || {
        let found = answer_inline(&indexes_of(&handles)?, &request_json, &removed_json)?;
        let body = found.and_then(|(answer, request)| body_of(&answer, &request.search));
        body.transpose().map_err(|error| EngineError::internal(format!("body of a graph search: {error}")))
    })
}

/// How often the algorithm that runs under the number `operation` has gone through its graph; 0 where none does.
#[napi]
pub fn graph_iterations(operation: u32) -> u32 {
    operations::iterations(operation)
}

fn indexes_of(handles: &[u32]) -> Result<Vec<Arc<GraphIndex>>, EngineError> {
    handles.iter().map(|handle| graph_index(*handle)).collect()
}

fn answer_inline(
    indexes: &[Arc<GraphIndex>],
    request_json: &str,
    removed_json: &str,
) -> Result<Option<(GraphAnswer, GraphRequest)>, EngineError> {
    if request_json.len() + removed_json.len() > INLINE_JSON_BYTES_MAX {
        return Ok(None);
    }
    let (request, removed) = read(request_json, removed_json)?;
    let answer = search_inline(indexes, &request, &removed)?;
    Ok(answer.map(|answer| (answer, request)))
}

fn read(request_json: &str, removed_json: &str) -> Result<(GraphRequest, RemovedTargets), EngineError> {
    Ok((from_json(request_json, "graph search")?, from_json(removed_json, "removed targets")?))
}
