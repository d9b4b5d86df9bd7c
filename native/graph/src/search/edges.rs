//! The edges of one node, and what is true of all edges.

use std::collections::BinaryHeap;

use sundew_base::bit_set::BitSet;

use super::request::{EdgeCursor, FoundSource, GraphAnswer, GraphRequest};
use super::view::{GraphView, Step};

/// A page of the edges of the first start, behind `after`. `total` counts all of its edges.
pub fn page<'a>(
    view: &mut GraphView<'a>,
    request: &'a GraphRequest,
    limit: usize,
    after: Option<&EdgeCursor>,
) -> GraphAnswer {
    let Some(start) = request.starts.first() else { return GraphAnswer::default() };
    let start = view.node_of_key(start);
    let mut steps = Vec::new();
    view.expand(start, &mut steps);
    let place = |view: &GraphView<'_>, step: &Step| {
        EdgeCursor(!step.forward, view.type_name(step.edge_type).to_owned(), view.key(step.node).to_owned())
    };
    // The greatest of those kept is on top, and leaves for a smaller one: a hub costs no more memory than a page.
    let mut kept: BinaryHeap<(EdgeCursor, usize)> = BinaryHeap::new();
    for (at, step) in steps.iter().enumerate() {
        let key = place(view, step);
        if after.is_some_and(|after| key <= *after) {
            continue;
        }
        kept.push((key, at));
        if kept.len() > limit {
            kept.pop();
        }
    }
    let edges = kept.into_sorted_vec().into_iter().map(|(_, at)| view.edge_of(start, &steps[at])).collect();
    GraphAnswer { edges, total: steps.len() as u64, ..GraphAnswer::default() }
}

/// Edges that are there, and the nodes at their ends.
pub fn count(view: &mut GraphView<'_>) -> GraphAnswer {
    let (mut edge_count, mut nodes) = (0, BitSet::default());
    view.each_edge(false, |_, source, target, is_gone| {
        if !is_gone {
            edge_count += 1;
            nodes.insert(source);
            nodes.insert(target);
        }
    });
    GraphAnswer { edge_count, node_count: nodes.len() as u64, ..GraphAnswer::default() }
}

/// Documents of which edges have expired or lead to a removed target, until they have `limit` such edges together.
pub fn sources<'a>(view: &mut GraphView<'a>, _: &'a GraphRequest, limit: usize) -> GraphAnswer {
    let mut found: Vec<(usize, u32, usize)> = Vec::new();
    let mut gone = 0;
    view.each_edge(true, |range, source, _, is_gone| {
        if !is_gone || gone >= limit {
            return;
        }
        gone += 1;
        match found.last_mut() {
            Some((_, last, edges)) if *last == source => *edges += 1,
            _ => found.push((range, source, 1)),
        }
    });
    let named =
        |(range, source, edges): (usize, u32, usize)| FoundSource { range, key: view.key(source).to_owned(), edges };
    let sources = found.into_iter().map(named).collect();
    GraphAnswer { sources, total: gone as u64, ..GraphAnswer::default() }
}
