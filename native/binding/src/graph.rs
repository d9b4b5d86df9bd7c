//! Searches over the graph indexes of a table's ranges.

use std::sync::Arc;

use napi::Env;
use napi_derive::napi;
use sundew_graph::GraphIndex;
use sundew_graph::search::{GraphRequest, RemovedTargets, search, search_at_once};

use crate::guard::{Answered, EngineTask, call};
use crate::indexes::graph_index;
use crate::json::{from_json, to_json};
use crate::operations::Operation;

pub struct GraphInput {
    indexes: Vec<Arc<GraphIndex>>,
    request_json: String,
    removed_json: String,
    operation: Operation,
}

/// Longer requests are read where there is time for it.
const AT_ONCE_JSON_BYTES_MAX: usize = 8 * 1024;

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
        let indexes = handles.iter().map(|handle| graph_index(*handle)).collect::<Result<Vec<_>, _>>()?;
        if request_json.len() + removed_json.len() <= AT_ONCE_JSON_BYTES_MAX {
            let request: GraphRequest = from_json(&request_json, "graph search")?;
            let removed: RemovedTargets = from_json(&removed_json, "removed targets")?;
            if let Some(answer) = search_at_once(&indexes, &request, &removed)? {
                return to_json(&answer).map(Answered::AtOnce);
            }
        }
        let input = GraphInput { indexes, request_json, removed_json, operation: Operation::start(operation) };
        Ok(Answered::Later(EngineTask::start(input, |input| {
            let request: GraphRequest = from_json(&input.request_json, "graph search")?;
            let removed: RemovedTargets = from_json(&input.removed_json, "removed targets")?;
            let answer = search(&input.indexes, &request, &removed, &|| input.operation.flag.is_cancelled())?;
            input.indexes.clear();
            to_json(&answer)
        })))
    })
}
