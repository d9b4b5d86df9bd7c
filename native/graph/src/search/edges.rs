//! The edges of one node, and what is true of all edges.

use std::cmp::Ordering;

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
    let total = steps.len() as u64;
    if let Some(after) = after {
        let first_behind = view.first_behind(&after.2);
        steps.retain(|step| is_behind(view, step, after, first_behind));
    }
    let compare = |left: &Step, right: &Step| {
        let of = |step: &Step| (!step.forward, step.edge_type);
        of(left).cmp(&of(right)).then_with(|| view.compare(left.node, right.node))
    };
    // Of a hub only the page is sorted.
    if steps.len() > limit {
        steps.select_nth_unstable_by(limit, compare);
        steps.truncate(limit);
    }
    steps.sort_unstable_by(compare);
    let edges = steps.iter().map(|step| view.edge_of(start, step)).collect();
    GraphAnswer { edges, total, ..GraphAnswer::default() }
}

fn is_behind(view: &GraphView<'_>, step: &Step, after: &EdgeCursor, first_behind: u32) -> bool {
    let EdgeCursor(leads_in, edge_type, key) = after;
    let order = (!step.forward).cmp(leads_in).then_with(|| view.type_name(step.edge_type).cmp(edge_type));
    match order {
        Ordering::Less => false,
        Ordering::Equal => view.is_behind(step.node, key, first_behind),
        Ordering::Greater => true,
    }
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
