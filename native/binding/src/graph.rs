//! Searches over the graph indexes of a table's ranges.

use std::sync::Arc;

use napi::Env;
use napi_derive::napi;
use sundew_graph::GraphIndex;
use sundew_graph::search::{GraphRequest, RemovedTargets, search};

use crate::guard::{EngineTask, Started, call};
use crate::indexes::graph_index;
use crate::json::{from_json, to_json};
use crate::operations::Operation;

pub struct GraphInput {
    indexes: Vec<Arc<GraphIndex>>,
    request_json: String,
    removed_json: String,
    operation: Operation,
}

/// Runs a graph search over the graph index of each range of a table. `removedJson` maps keys of deleted documents to the
/// sequence of each range up to which edges to them are gone. Answers JSON. `cancel` stops it under the number `operation`,
/// 0 never.
#[napi(ts_return_type = "Promise<string>")]
pub fn graph_search(
    env: Env,
    handles: Vec<u32>,
    request_json: String,
    removed_json: String,
    operation: u32,
) -> napi::Result<Started<GraphInput, String>> {
    call(&env, || {
        let indexes = handles.iter().map(|handle| graph_index(*handle)).collect::<Result<Vec<_>, _>>()?;
        let input = GraphInput { indexes, request_json, removed_json, operation: Operation::start(operation) };
        Ok(EngineTask::start(input, |input| {
            let request: GraphRequest = from_json(&input.request_json, "graph search")?;
            let removed: RemovedTargets = from_json(&input.removed_json, "removed targets")?;
            let answer = search(&input.indexes, &request, &removed, &|| input.operation.flag.is_cancelled())?;
            input.indexes.clear();
            to_json(&answer)
        }))
    })
}
