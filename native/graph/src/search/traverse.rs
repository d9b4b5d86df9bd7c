//! Nodes within some steps of others, breadth first.

use super::node_set::NodeSet;
use super::request::{Direction, FoundNode, GraphAnswer, GraphRequest, TraverseOptions};
use super::shown_values::decimal;
use super::view::{GraphView, Step};

/// How a node was reached.
#[derive(Clone, Copy)]
struct Reached {
    /// Its node is the one reached.
    step: Step,
    depth: u32,
    /// Index of where it was reached from among all that was reached; its own for a start.
    from: u32,
    distance: f64,
}

/// Starts are not among the nodes found. The order is that of depths, then of keys.
pub fn traverse<'a>(view: &mut GraphView<'a>, request: &'a GraphRequest, options: &TraverseOptions) -> GraphAnswer {
    let mut reached = Vec::new();
    let mut starts: Vec<u32> = request.starts.iter().map(|key| view.node_of_key(key)).collect();
    starts.sort_unstable_by(|left, right| view.compare(*left, *right));
    starts.dedup();
    starts.retain(|node| !view.is_hidden(*node));
    for node in starts {
        let step = Step { node, edge_type: 0, weight: 0.0, forward: true };
        reached.push(Reached { step, depth: 0, from: reached.len() as u32, distance: 0.0 });
    }
    let start_count = reached.len();
    if options.deduplicate_nodes {
        each_node_once(view, &mut reached, options);
    } else {
        each_path_once(view, &mut reached, options.max_depth);
    }
    let found = &reached[start_count..];
    let page = found.iter().take(options.max_results);
    let nodes = page.map(|found| render(view, &reached, found, options)).collect();
    GraphAnswer { nodes, total: found.len() as u64, ..GraphAnswer::default() }
}

/// Of several ways of one length the one through the least key is taken, by the least type.
fn each_node_once(view: &mut GraphView<'_>, reached: &mut Vec<Reached>, options: &TraverseOptions) {
    let mut is_reached = NodeSet::with_room(view.node_end());
    for start in reached.iter() {
        is_reached.insert(start.step.node);
    }
    let start_count = reached.len();
    let (mut level, mut steps) = (0..reached.len(), Vec::new());
    for depth in 1..=options.max_depth {
        for from in level.clone() {
            let Reached { step: Step { node, .. }, distance, .. } = reached[from];
            view.expand(node, &mut steps);
            // One way, the edges of a document come in the order of their types.
            if view.direction() == Direction::Both {
                steps.sort_unstable_by_key(|step| (step.node, step.rank()));
            }
            for step in steps.iter().filter(|step| is_reached.insert(step.node)) {
                let distance = distance + decimal(step.weight);
                reached.push(Reached { step: *step, depth, from: from as u32, distance });
            }
            if view.bounds().must_stop() {
                break;
            }
        }
        level = level.end..reached.len();
        let compare = |left: &Reached, right: &Reached| view.compare(left.step.node, right.step.node);
        let is_last = depth == options.max_depth || view.bounds().must_stop();
        // Of the last level only what the answer shows is sorted.
        let shown = (start_count + options.max_results).saturating_sub(level.start);
        let mut found = &mut reached[level.clone()];
        if is_last && shown < found.len() {
            found.select_nth_unstable_by(shown, compare);
            found = &mut found[..shown];
        }
        found.sort_unstable_by(compare);
        if is_last || level.is_empty() {
            return;
        }
    }
}

/// Nodes of paths on which no node comes twice, in the order of depths and then of the keys on the path.
fn each_path_once(view: &mut GraphView<'_>, reached: &mut Vec<Reached>, max_depth: u32) {
    let (mut level, mut steps) = (0..reached.len(), Vec::new());
    for depth in 1..=max_depth {
        for from in level.clone() {
            let Reached { step: Step { node, .. }, distance, .. } = reached[from];
            view.expand(node, &mut steps);
            steps.retain(|step| !is_on_path(reached, from, step.node));
            steps.sort_unstable_by(|left, right| {
                view.compare(left.node, right.node).then_with(|| left.rank().cmp(&right.rank()))
            });
            steps.dedup_by_key(|step| step.node);
            for step in &steps {
                let distance = distance + decimal(step.weight);
                reached.push(Reached { step: *step, depth, from: from as u32, distance });
            }
            if view.bounds().must_stop() || view.bounds_mut().meets_nodes(reached.len()) {
                return;
            }
        }
        level = level.end..reached.len();
    }
}

fn is_on_path(reached: &[Reached], mut at: usize, node: u32) -> bool {
    loop {
        let here = &reached[at];
        if here.step.node == node {
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
        key: view.key(found.step.node).to_owned(),
        depth: found.depth,
        distance: found.distance,
        path: Vec::new(),
        path_edges: Vec::new(),
        edges: Vec::new(),
    };
    if options.include_edges {
        node.edges.push(view.edge_of(reached[found.from as usize].step.node, &found.step));
    }
    if options.include_paths {
        let mut here = found;
        while here.depth > 0 {
            let from = &reached[here.from as usize];
            node.path.push(view.key(here.step.node).to_owned());
            node.path_edges.push(view.edge_of(from.step.node, &here.step));
            here = from;
        }
        node.path.push(view.key(here.step.node).to_owned());
        node.path.reverse();
        node.path_edges.reverse();
    }
    node
}
