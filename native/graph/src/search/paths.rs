//! The best paths between nodes: Dijkstra's algorithm over labels of cost and hops, so that a bound on hops is kept
//! exactly, and Yen's algorithm (Management Science 17, 1971) for the next best.

use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, BinaryHeap, HashSet};

use sundew_base::error::EngineError;

use super::request::{FoundEdge, FoundPath, GraphAnswer, GraphRequest, PathOptions, WeightMode};
use super::view::{GraphView, Step};

/// A path as nodes and the steps between them.
#[derive(Clone)]
struct Path {
    cost: f64,
    nodes: Vec<u32>,
    steps: Vec<Step>,
}

/// What a search for a path must not use.
#[derive(Default)]
struct Blocked {
    nodes: HashSet<u32>,
    /// From a node to the next.
    hops: HashSet<(u32, u32)>,
}

pub fn paths<'a>(
    view: &mut GraphView<'a>,
    request: &'a GraphRequest,
    options: &PathOptions,
) -> Result<GraphAnswer, EngineError> {
    let mut nodes = |keys: &'a [String]| -> Vec<u32> {
        let mut nodes: Vec<u32> = keys.iter().map(|key| view.node_of_key(key)).collect();
        nodes.sort_unstable_by_key(|node| view.key(*node));
        nodes.dedup();
        nodes.retain(|node| !view.is_hidden(*node));
        nodes
    };
    let (starts, targets) = (nodes(&request.starts), nodes(&request.targets));
    let mut found = Vec::new();
    if options.k == 0 {
        for target in targets {
            let starts: Vec<_> = starts.iter().map(|start| Path::at(*start)).collect();
            found.extend(best(view, options, &starts, &HashSet::from([target]), &Blocked::default())?);
        }
    } else {
        found = k_best(view, options, &starts, &targets.into_iter().collect())?;
    }
    let paths: Vec<FoundPath> = found.iter().map(|path| path.render(view, options.weight_mode)).collect();
    Ok(GraphAnswer { total: paths.len() as u64, paths, ..GraphAnswer::default() })
}

impl Path {
    fn at(node: u32) -> Self {
        Self { cost: 0.0, nodes: vec![node], steps: Vec::new() }
    }

    fn end(&self) -> u32 {
        self.nodes[self.nodes.len() - 1]
    }

    fn render(&self, view: &GraphView<'_>, mode: WeightMode) -> FoundPath {
        let edges: Vec<FoundEdge> =
            self.nodes.iter().zip(&self.steps).map(|(node, step)| view.edge_of(*node, step)).collect();
        let weights = self.steps.iter().map(|step| f64::from(step.weight));
        let total_weight = if mode == WeightMode::MaxWeight {
            weights.product()
        } else {
            weights.fold(0.0, |sum, weight| sum + weight)
        };
        let nodes = self.nodes.iter().map(|node| view.key(*node).to_owned()).collect();
        FoundPath { nodes, length: edges.len(), edges, total_weight }
    }

    /// By cost, then hops, then the keys on the way.
    fn compare(&self, other: &Self, view: &GraphView<'_>) -> Ordering {
        let keys = |path: &Self| path.nodes.iter().map(|node| view.key(*node)).collect::<Vec<_>>();
        let costs = self.cost.total_cmp(&other.cost).then(self.nodes.len().cmp(&other.nodes.len()));
        costs.then_with(|| keys(self).cmp(&keys(other)))
    }
}

/// What an edge adds to the cost of a path. Error: `invalid_query` for a weight that the mode cannot take.
fn cost_of(view: &GraphView<'_>, from: u32, step: &Step, mode: WeightMode) -> Result<f64, EngineError> {
    let weight = f64::from(step.weight);
    let refuse = |what: &str| {
        let FoundEdge { source, target, edge_type, .. } = view.edge_of(from, step);
        let message = format!("the edge {edge_type:?} from {source:?} to {target:?} has the weight {weight}; {what}");
        Err(EngineError::new("invalid_query", message))
    };
    match mode {
        WeightMode::MinHops => Ok(1.0),
        WeightMode::MinWeight if weight < 0.0 => refuse("`weight_mode` \"min_weight\" needs weights of 0 or more"),
        WeightMode::MinWeight => Ok(weight),
        WeightMode::MaxWeight if !(weight > 0.0 && weight <= 1.0) => {
            refuse("`weight_mode` \"max_weight\" needs weights above 0 and up to 1")
        }
        WeightMode::MaxWeight => Ok(-weight.ln()),
    }
}

/// A way to a node, ordered by cost, hops, and the keys of the node and of the one before.
struct Label<'a> {
    cost: f64,
    hops: u32,
    key: &'a str,
    from_key: &'a str,
    rank: (u32, bool),
    node: u32,
    /// Place of the label that it continues; its own number of start for a start.
    from: u32,
    step: Option<Step>,
}

impl Ord for Label<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        let order = |label: &Self| (label.hops, label.rank);
        let costs = self.cost.total_cmp(&other.cost).then(self.hops.cmp(&other.hops));
        costs
            .then_with(|| (self.key, self.from_key).cmp(&(other.key, other.from_key)))
            .then_with(|| order(self).cmp(&order(other)))
    }
}

impl PartialOrd for Label<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Label<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Label<'_> {}

/// The best path that continues one of `starts` to a target.
fn best(
    view: &mut GraphView<'_>,
    options: &PathOptions,
    starts: &[Path],
    targets: &HashSet<u32>,
    blocked: &Blocked,
) -> Result<Option<Path>, EngineError> {
    let mut waiting = BinaryHeap::new();
    for (at, start) in starts.iter().enumerate() {
        let (node, hops) = (start.end(), start.steps.len() as u32);
        let key = view.key(node);
        let (from, cost) = (at as u32, start.cost);
        waiting.push(Reverse(Label { cost, hops, key, from_key: "", rank: (0, false), node, from, step: None }));
    }
    let mut settled: Vec<Label<'_>> = Vec::new();
    // The fewest hops by which each node was settled: only a way of fewer hops can still lead further.
    let mut fewest: Vec<u32> = Vec::new();
    let mut steps = Vec::new();
    while let Some(Reverse(label)) = waiting.pop() {
        if fewest.len() <= label.node as usize {
            fewest.resize(view.node_count().max(label.node as usize + 1), u32::MAX);
        }
        if label.hops >= fewest[label.node as usize] {
            continue;
        }
        fewest[label.node as usize] = label.hops;
        let (node, hops, cost, key) = (label.node, label.hops, label.cost, label.key);
        let place = settled.len() as u32;
        settled.push(label);
        if targets.contains(&node) {
            return Ok(Some(path_of(&settled, place as usize, starts)));
        }
        if hops >= options.max_depth {
            continue;
        }
        view.expand(node, &mut steps);
        if view.must_stop() {
            return Ok(None);
        }
        for step in &steps {
            let is_known = fewest.get(step.node as usize).is_some_and(|fewest| hops + 1 >= *fewest);
            if is_known || blocked.nodes.contains(&step.node) || blocked.hops.contains(&(node, step.node)) {
                continue;
            }
            let cost = cost + cost_of(view, node, step, options.weight_mode)?;
            let (rank, next) = (step.rank(), view.key(step.node));
            let label = Label {
                cost,
                hops: hops + 1,
                key: next,
                from_key: key,
                rank,
                node: step.node,
                from: place,
                step: Some(*step),
            };
            waiting.push(Reverse(label));
        }
    }
    Ok(None)
}

fn path_of(settled: &[Label<'_>], mut at: usize, starts: &[Path]) -> Path {
    let cost = settled[at].cost;
    let (mut nodes, mut steps) = (Vec::new(), Vec::new());
    while let Some(step) = settled[at].step {
        nodes.push(settled[at].node);
        steps.push(step);
        at = settled[at].from as usize;
    }
    let start = &starts[settled[at].from as usize];
    let nodes = start.nodes.iter().copied().chain(nodes.into_iter().rev()).collect();
    let steps = start.steps.iter().copied().chain(steps.into_iter().rev()).collect();
    Path { cost, nodes, steps }
}

/// The `k` best paths without a node twice, best first.
fn k_best(
    view: &mut GraphView<'_>,
    options: &PathOptions,
    starts: &[u32],
    targets: &HashSet<u32>,
) -> Result<Vec<Path>, EngineError> {
    let from: Vec<Path> = starts.iter().map(|start| Path::at(*start)).collect();
    let mut found: Vec<Path> = best(view, options, &from, targets, &Blocked::default())?.into_iter().collect();
    let mut candidates: BTreeMap<Vec<u32>, Path> = BTreeMap::new();
    while let Some(last) = found.last().filter(|_| found.len() < options.k).cloned() {
        // A spur of no nodes begins at another start.
        for kept in 0..last.nodes.len() {
            let root = &last.nodes[..kept];
            let alike: Vec<&Path> =
                found.iter().filter(|path| path.nodes.len() > kept && path.nodes[..kept] == *root).collect();
            let mut blocked = Blocked { nodes: root.iter().copied().collect(), ..Blocked::default() };
            let spur = if kept == 0 {
                let used: HashSet<u32> = alike.iter().map(|path| path.nodes[0]).collect();
                starts.iter().filter(|start| !used.contains(start)).map(|start| Path::at(*start)).collect()
            } else {
                let end = root[kept - 1];
                blocked.hops.extend(alike.iter().map(|path| (end, path.nodes[kept])));
                let steps = last.steps[..kept - 1].to_vec();
                let mut cost = 0.0;
                for (node, step) in root.iter().zip(&steps) {
                    cost += cost_of(view, *node, step, options.weight_mode)?;
                }
                vec![Path { cost, nodes: root.to_vec(), steps }]
            };
            // A path ends at the first target that it meets.
            if kept > 0 && targets.contains(&root[kept - 1]) {
                continue;
            }
            if let Some(path) = best(view, options, &spur, targets, &blocked)? {
                candidates.insert(path.nodes.clone(), path);
            }
            if view.must_stop() {
                return Ok(found);
            }
        }
        let next = candidates.values().min_by(|left, right| left.compare(right, view)).cloned();
        let Some(next) = next else { break };
        candidates.remove(&next.nodes);
        found.push(next);
    }
    Ok(found)
}
