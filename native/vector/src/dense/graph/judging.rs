//! Whether links of the lowest layer that nobody has found by a walk lead to where a walk would lead.

use std::sync::atomic::{AtomicBool, Ordering};

use super::codes::CodedQuery;
use super::insert::{Cancelled, STARTS};
use super::storage::Graph;
use super::walk::Scratch;

/// How many of the rows are linked to the nearest node that a walk to them meets, or to one as near, while the walk in
/// turn comes as near to them as half of their links. Walks begin in the upper layers, which have to be linked by
/// walks.
pub fn judge_links(
    graph: &Graph,
    rows: impl Iterator<Item = u32>,
    candidates: usize,
    cancelled: &AtomicBool,
) -> Result<usize, Cancelled> {
    let (mut scratch, mut query) = (Scratch::default(), CodedQuery::default());
    let (mut linked, mut dots, mut costs) = (Vec::new(), Vec::new(), Vec::new());
    let mut good = 0;
    for row in rows {
        if cancelled.load(Ordering::Relaxed) {
            return Err(Cancelled);
        }
        graph.query_of(row, &mut query);
        graph.descend(&query, 0, STARTS, &mut scratch);
        graph.walk(&query, 0, candidates, &mut scratch, &mut || false);
        let met = scratch.beam.iter().find(|&(_, node)| node != row).map_or(f32::INFINITY, |(cost, _)| cost);
        linked.clear();
        linked.extend(graph.linked(row, 0));
        graph.costs_between(row, &linked, &mut dots, &mut costs);
        costs.sort_unstable_by(f32::total_cmp);
        let half = costs.get(costs.len().saturating_sub(1) / 2);
        good += usize::from(half.is_some_and(|&half| costs[0] <= met && met <= half));
    }
    Ok(good)
}
