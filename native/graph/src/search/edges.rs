//! The edges of one node, and what is true of all edges.

use sundew_base::bit_set::BitSet;

use super::request::{EdgeCursor, FoundSource, GraphAnswer, GraphRequest};
use super::view::GraphView;

/// A page of the edges of the first start, behind `after`. `total` counts all of its edges.
pub fn page<'a>(
    view: &mut GraphView<'a>,
    request: &'a GraphRequest,
    limit: usize,
    after: Option<&EdgeCursor>,
) -> GraphAnswer {
    let Some(start) = request.starts.first() else { return GraphAnswer::default() };
    let start = view.node_of_key(start);
    let (steps, total) = view.page_of(start, limit, after);
    let edges = steps.iter().map(|step| view.edge_of(start, step)).collect();
    let next = steps.last().filter(|_| steps.len() == limit).map(|last| {
        EdgeCursor(!last.forward, view.type_name(last.edge_type).to_owned(), view.key(last.node).to_owned())
    });
    GraphAnswer { edges, next, total, ..GraphAnswer::default() }
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
