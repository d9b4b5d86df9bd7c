//! Searches over the graph indexes of all ranges of a table. An answer depends on the edges alone: neither on how documents
//! are spread over ranges, nor on the segments that their edges lie in.

mod algorithms;
mod body;
mod bounds;
mod cheapest_path;
mod edges;
mod fewest_hops;
mod node_set;
mod path;
mod paths;
mod pattern;
mod request;
mod shown_values;
mod traverse;
mod view;

use std::sync::Arc;

use sundew_base::error::EngineError;

pub use body::body_of;
pub use bounds::Watch;
pub use request::{
    Algorithm, AlgorithmOptions, Direction, FoundPath, GraphAnswer, GraphRequest, PatternEdge, PatternElement,
    PatternOptions, RemovedTargets, Search, WeightMode,
};

use crate::index::GraphIndex;
use crate::snapshot::Snapshot;
use view::GraphView;

/// Answers a request on the newest commit of each index. The indexes are those of the table's ranges, in order.
///
/// Errors: `invalid_query` for a weight that the mode cannot take, unless the request wants the nodes that were met:
/// `GraphAnswer::refused` then; `query_timeout` when `watch` has cancelled it.
pub fn search(
    indexes: &[Arc<GraphIndex>],
    request: &GraphRequest,
    removed: &RemovedTargets,
    watch: &dyn Watch,
) -> Result<GraphAnswer, EngineError> {
    let snapshots: Vec<Arc<Snapshot>> = indexes.iter().map(|index| index.snapshot()).collect();
    let mut view = GraphView::new(&snapshots, request, removed, watch);
    let mut answer = match &request.search {
        Search::Edges { limit, after } => edges::page(&mut view, request, *limit, after.as_ref()),
        Search::Traverse(options) => traverse::traverse(&mut view, request, options),
        Search::Paths(options) => paths::paths(&mut view, request, options)?,
        Search::Pattern(options) => pattern::matches(&mut view, request, options),
        Search::Algorithm(options) => algorithms::run(&mut view, options),
        Search::Count => edges::count(&mut view),
        Search::Sources { limit } => edges::sources(&mut view, request, *limit),
    };
    if view.bounds().was_cancelled() {
        return Err(EngineError::new("query_timeout", "the graph search was given up"));
    }
    answer.partial = view.bounds().partial();
    if request.reports_nodes {
        answer.touched = view.met_keys().map(str::to_owned).collect();
    }
    Ok(answer)
}

/// Edges and nodes that a search on the calling thread may look at: tens of microseconds. Three hops over ten edges
/// each look at 1,110.
const INLINE_STEPS_MAX: u64 = 2_000;
/// A search begins with a look at every segment.
const INLINE_SEGMENTS_MAX: usize = 32;

/// The whole answer where the search is short; none where it is not, which the next call then finds out for itself. The way
/// to another thread and back takes longer than such a search.
pub fn search_inline(
    indexes: &[Arc<GraphIndex>],
    request: &GraphRequest,
    removed: &RemovedTargets,
) -> Result<Option<GraphAnswer>, EngineError> {
    let is_short = match request.search {
        Search::Edges { .. } | Search::Traverse(_) | Search::Paths(_) => true,
        Search::Pattern(_) | Search::Algorithm(_) | Search::Count | Search::Sources { .. } => false,
    };
    let segments: usize = indexes.iter().map(|index| index.snapshot().segments.len()).sum();
    if !is_short || segments > INLINE_SEGMENTS_MAX {
        return Ok(None);
    }
    let bounded = GraphRequest {
        edges_max: request.edges_max.min(INLINE_STEPS_MAX),
        nodes_max: request.nodes_max.min(INLINE_STEPS_MAX),
        ..request.clone()
    };
    let answer = search(indexes, &bounded, removed, &|| false)?;
    Ok(Some(answer).filter(|answer| answer.partial.is_none()))
}
