//! Answers as the routes give them.

use serde::Serialize;

use super::request::{EdgeCursor, FoundEdge, FoundNode, GraphAnswer, Search};
use super::shown_values::as_text;

#[derive(Serialize)]
struct EdgesBody<'a> {
    edges: &'a [FoundEdge],
    count: usize,
    total: u64,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "as_text")]
    next: &'a Option<EdgeCursor>,
}

#[derive(Serialize)]
struct NodesBody<'a> {
    results: &'a [FoundNode],
    count: usize,
    total: u64,
}

/// The body of the answer to a request for edges or nodes but for the time that it took; none for another search, and for an
/// answer that is not whole.
pub fn body_of(answer: &GraphAnswer, search: &Search) -> Option<serde_json::Result<String>> {
    let GraphAnswer { edges, nodes, next, total, partial: None, .. } = answer else { return None };
    match search {
        Search::Edges { .. } => {
            Some(serde_json::to_string(&EdgesBody { edges, count: edges.len(), total: *total, next }))
        }
        Search::Traverse(_) => {
            Some(serde_json::to_string(&NodesBody { results: nodes, count: nodes.len(), total: *total }))
        }
        _ => None,
    }
}
