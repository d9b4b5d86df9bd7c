//! Nodes within some steps of others, breadth first.

use super::request::{FoundNode, GraphAnswer, GraphRequest, TraverseOptions};
use super::view::{GraphView, Step};

/// How a node was reached.
#[derive(Clone, Copy)]
struct Reached {
    node: u32,
    depth: u32,
    /// Place of where it was reached from among all that was reached; its own for a start.
    from: u32,
    step: Step,
    distance: f64,
}

const NOT_REACHED: u32 = u32::MAX;

/// Starts are not among the nodes found. The order is that of depths, then of keys.
pub fn traverse<'a>(view: &mut GraphView<'a>, request: &'a GraphRequest, options: &TraverseOptions) -> GraphAnswer {
    let mut reached = Vec::new();
    let mut starts: Vec<u32> = request.starts.iter().map(|key| view.node_of_key(key)).collect();
    starts.sort_unstable_by_key(|node| view.key(*node));
    starts.dedup();
    starts.retain(|node| !view.is_hidden(*node));
    for node in starts {
        let step = Step { node, edge_type: 0, weight: 0.0, created_ms: 0, forward: true };
        reached.push(Reached { node, depth: 0, from: reached.len() as u32, step, distance: 0.0 });
    }
    let start_count = reached.len();
    if options.deduplicate_nodes {
        each_node_once(view, &mut reached, options.max_depth);
    } else {
        each_path_once(view, &mut reached, options.max_depth);
    }
    let found = &reached[start_count..];
    let page = found.iter().take(options.max_results);
    let nodes = page.map(|found| render(view, &reached, found, options)).collect();
    GraphAnswer { nodes, total: found.len() as u64, ..GraphAnswer::default() }
}

/// Of several ways of one length the one through the least key is taken, by the least type.
fn each_node_once(view: &mut GraphView<'_>, reached: &mut Vec<Reached>, max_depth: u32) {
    // Place of each node in `reached`.
    let mut places: Vec<u32> = Vec::new();
    let place_of = |places: &mut Vec<u32>, node: u32| {
        if places.len() <= node as usize {
            places.resize(node as usize + 1, NOT_REACHED);
        }
        places[node as usize]
    };
    for (at, start) in reached.iter().enumerate() {
        place_of(&mut places, start.node);
        places[start.node as usize] = at as u32;
    }
    let (mut level, mut steps) = (0..reached.len(), Vec::new());
    for depth in 1..=max_depth {
        for from in level.clone() {
            let Reached { node, distance, .. } = reached[from];
            view.expand(node, &mut steps);
            for step in &steps {
                let distance = distance + f64::from(step.weight);
                let next = Reached { node: step.node, depth, from: from as u32, step: *step, distance };
                let place = place_of(&mut places, step.node);
                if place == NOT_REACHED {
                    places[step.node as usize] = reached.len() as u32;
                    reached.push(next);
                } else if let Some(known) = reached.get_mut(place as usize) {
                    let is_parallel = known.depth == depth && known.from == from as u32;
                    if is_parallel && step.rank() < known.step.rank() {
                        *known = next;
                    }
                }
            }
            if view.must_stop() {
                break;
            }
        }
        let next = level.end..reached.len();
        if next.is_empty() {
            return;
        }
        reached[next.clone()].sort_unstable_by_key(|reached| view.key(reached.node));
        for at in next.clone() {
            places[reached[at].node as usize] = at as u32;
        }
        if view.must_stop() {
            return;
        }
        level = next;
    }
}

/// Nodes of paths on which no node comes twice, in the order of depths and then of the keys on the path.
fn each_path_once(view: &mut GraphView<'_>, reached: &mut Vec<Reached>, max_depth: u32) {
    let (mut level, mut steps) = (0..reached.len(), Vec::new());
    for depth in 1..=max_depth {
        for from in level.clone() {
            let Reached { node, distance, .. } = reached[from];
            view.expand(node, &mut steps);
            steps.retain(|step| !is_on_path(reached, from, step.node));
            steps.sort_unstable_by_key(|step| (view.key(step.node), step.rank()));
            steps.dedup_by_key(|step| step.node);
            for step in &steps {
                let distance = distance + f64::from(step.weight);
                reached.push(Reached { node: step.node, depth, from: from as u32, step: *step, distance });
            }
            if view.must_stop() || view.meets_nodes(reached.len()) {
                return;
            }
        }
        level = level.end..reached.len();
    }
}

fn is_on_path(reached: &[Reached], mut at: usize, node: u32) -> bool {
    loop {
        let here = &reached[at];
        if here.node == node {
            return true;
        }
        if here.depth == 0 {
            return false;
        }
        at = here.from as usize;
    }
}

fn render(view: &GraphView<'_>, reached: &[Reached], found: &Reached, options: &TraverseOptions) -> FoundNode {
    let mut node = FoundNode {
        key: view.key(found.node).to_owned(),
        depth: found.depth,
        distance: found.distance,
        path: Vec::new(),
        path_edges: Vec::new(),
        edges: Vec::new(),
    };
    if options.include_edges {
        node.edges.push(view.edge_of(reached[found.from as usize].node, &found.step));
    }
    if options.include_paths {
        let mut here = found;
        while here.depth > 0 {
            let from = &reached[here.from as usize];
            node.path.push(view.key(here.node).to_owned());
            node.path_edges.push(view.edge_of(from.node, &here.step));
            here = from;
        }
        node.path.push(view.key(here.node).to_owned());
        node.path.reverse();
        node.path_edges.reverse();
    }
    node
}
