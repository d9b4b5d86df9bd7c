//! The path of the least cost: Dijkstra's algorithm over labels of cost and hops, so that a bound on hops is kept exactly.

use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, HashMap, HashSet};

use sundew_base::error::EngineError;

use super::path::{Blocked, Path, cost_of, refusal};
use super::request::WeightMode;
use super::view::{GraphView, Step};
use crate::key_hash::BuildKeyHasher;

/// A way to a node. Ordered by cost and hops alone: ways that are equal in both are taken together and sorted by keys.
struct Label {
    cost: f64,
    hops: u32,
    /// Index of the label that it continues among those settled; for a start, its own number among the starts.
    from: u32,
    /// Its node is the one reached.
    step: Step,
}

impl Ord for Label {
    fn cmp(&self, other: &Self) -> Ordering {
        self.cost.total_cmp(&other.cost).then(self.hops.cmp(&other.hops))
    }
}

impl PartialOrd for Label {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Label {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Label {}

/// See `best`. Error: `invalid_query` for a weight that the mode cannot take.
pub fn cheapest(
    view: &mut GraphView<'_>,
    mode: WeightMode,
    max_depth: u32,
    starts: &[Path],
    targets: &[u32],
    blocked: &Blocked,
) -> Result<Option<Path>, EngineError> {
    let targets: HashSet<u32> = targets.iter().copied().collect();
    let mut waiting = BinaryHeap::new();
    let start_hops = starts.first().map_or(0, |start| start.steps.len() as u32);
    for (at, start) in starts.iter().enumerate() {
        let step = Step { node: start.end(), edge_type: 0, weight: 0.0, forward: true };
        waiting.push(Reverse(Label { cost: start.cost, hops: start_hops, from: at as u32, step }));
    }
    let mut settled: Vec<Label> = Vec::new();
    // The fewest hops by which each node was settled: only a way of fewer hops can still lead further.
    let mut fewest: HashMap<u32, u32, BuildKeyHasher> = HashMap::default();
    let (mut equals, mut steps) = (Vec::new(), Vec::new());
    while let Some(Reverse(first)) = waiting.pop() {
        // An edge adds a hop, so that what these lead to comes behind all of them.
        equals.push(first);
        while waiting.peek().is_some_and(|Reverse(next)| next.cmp(&equals[0]).is_eq()) {
            equals.extend(waiting.pop().map(|Reverse(next)| next));
        }
        sort_by_keys(&mut equals, &settled, start_hops, view);
        for label in equals.drain(..) {
            let Label { cost, hops, step: Step { node, .. }, .. } = label;
            let fewest_here = fewest.entry(node).or_insert(u32::MAX);
            if hops >= *fewest_here {
                continue;
            }
            *fewest_here = hops;
            let settled_at = settled.len() as u32;
            settled.push(label);
            if targets.contains(&node) {
                return Ok(Some(path_of(&settled, settled_at as usize, start_hops, starts)));
            }
            if hops >= max_depth {
                continue;
            }
            view.expand(node, &mut steps);
            if view.bounds().must_stop() {
                return Ok(None);
            }
            for step in &steps {
                let is_known = fewest.get(&step.node).is_some_and(|fewest| hops + 1 >= *fewest);
                if is_known || blocked.has(node, step.node) {
                    continue;
                }
                match cost_of(step, mode) {
                    Ok(more) => {
                        let cost = cost + more;
                        waiting.push(Reverse(Label { cost, hops: hops + 1, from: settled_at, step: *step }));
                    }
                    Err(needs) => view.refuse(|view| refusal(view, node, step, needs))?,
                }
            }
        }
    }
    Ok(None)
}

/// By the keys of the node and of the one before it, then by the edge.
fn sort_by_keys(equals: &mut [Label], settled: &[Label], start_hops: u32, view: &GraphView<'_>) {
    let before = |label: &Label| (label.hops > start_hops).then(|| settled[label.from as usize].step.node);
    equals.sort_unstable_by(|left, right| {
        let nodes = view.compare(left.step.node, right.step.node);
        let from = || match (before(left), before(right)) {
            (Some(left), Some(right)) => view.compare(left, right),
            (left, right) => left.cmp(&right),
        };
        nodes.then_with(from).then_with(|| left.step.rank().cmp(&right.step.rank()))
    });
}

fn path_of(settled: &[Label], mut at: usize, start_hops: u32, starts: &[Path]) -> Path {
    let cost = settled[at].cost;
    let (mut nodes, mut steps) = (Vec::new(), Vec::new());
    while settled[at].hops > start_hops {
        nodes.push(settled[at].step.node);
        steps.push(settled[at].step);
        at = settled[at].from as usize;
    }
    let start = &starts[settled[at].from as usize];
    let nodes = start.nodes.iter().copied().chain(nodes.into_iter().rev()).collect();
    let steps = start.steps.iter().copied().chain(steps.into_iter().rev()).collect();
    Path { cost, nodes, steps }
}
