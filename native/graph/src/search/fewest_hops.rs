//! The path of the fewest edges: breadth first from both ends, always by the end that has fewer edges to go on over.

use std::collections::{HashMap, HashSet};

use super::path::{Blocked, Path};
use super::request::Direction;
use super::view::{GraphView, Step};
use crate::key_hash::BuildKeyHasher;

type NodeMap<T> = HashMap<u32, T, BuildKeyHasher>;
type NodeSet = HashSet<u32, BuildKeyHasher>;

/// The nodes reached from one end. Each search goes on from whole levels, so that every way of the fewest edges is known
/// when both meet.
struct Side {
    direction: Direction,
    /// Level of each node.
    levels: NodeMap<u32>,
    /// The nodes of the last level.
    frontier: Vec<u32>,
    /// Of each level behind the ends, the hops by which its nodes were reached: the node before, and the node.
    hops: Vec<Vec<(u32, u32)>>,
}

impl Side {
    fn new(direction: Direction, ends: impl Iterator<Item = u32>) -> Self {
        let frontier: Vec<u32> = ends.collect();
        let levels = frontier.iter().map(|node| (*node, 0)).collect();
        Self { direction, levels, frontier, hops: Vec::new() }
    }

    /// Edges that the next level may have to look at; the count ends once it is above `enough`.
    fn edges(&self, view: &GraphView<'_>, enough: usize) -> usize {
        let mut edges = 0;
        for node in &self.frontier {
            edges += view.edges_max_of(*node, self.direction);
            if edges > enough {
                break;
            }
        }
        edges
    }

    /// Whether the next level costs no more than that of `other`. A hub is one node, and may have most edges of the graph.
    fn is_cheaper_than(&self, other: &Self, view: &GraphView<'_>) -> bool {
        if self.frontier.len() > other.frontier.len() {
            return !other.is_cheaper_than(self, view);
        }
        let edges = self.edges(view, usize::MAX);
        edges <= other.edges(view, edges)
    }

    /// Reaches the next level. `is_open` tells which hops may be taken.
    fn advance(&mut self, view: &mut GraphView<'_>, is_open: impl Fn(u32, u32) -> bool) {
        let level = self.hops.len() as u32 + 1;
        let (mut next, mut hops, mut steps) = (Vec::new(), Vec::new(), Vec::new());
        for node in &self.frontier {
            view.expand_towards(*node, self.direction, &mut steps);
            if view.bounds().must_stop() {
                return;
            }
            for step in steps.iter().filter(|step| is_open(*node, step.node)) {
                let known = *self.levels.entry(step.node).or_insert_with(|| {
                    next.push(step.node);
                    level
                });
                if known == level {
                    hops.push((*node, step.node));
                }
            }
        }
        self.frontier = next;
        self.hops.push(hops);
    }
}

/// See `best`; the bound is on the hops of the whole path. None also when the search had to stop.
pub fn fewest_hops(
    view: &mut GraphView<'_>,
    max_depth: u32,
    starts: &[Path],
    targets: &[u32],
    blocked: &Blocked,
) -> Option<Path> {
    let start_hops = starts.first()?.steps.len();
    let hops_max = (max_depth as usize).checked_sub(start_hops)?;
    let mut ahead = Side::new(view.direction(), starts.iter().map(Path::end));
    let mut behind = Side::new(view.direction().reversed(), targets.iter().copied());
    let is_start: NodeSet = ahead.frontier.iter().copied().collect();
    let mut meeting: Vec<u32> = targets.iter().copied().filter(|target| is_start.contains(target)).collect();
    while meeting.is_empty() {
        let is_spent = ahead.frontier.is_empty() || behind.frontier.is_empty();
        if is_spent || ahead.hops.len() + behind.hops.len() >= hops_max {
            return None;
        }
        let (moved, other) = if ahead.is_cheaper_than(&behind, view) {
            ahead.advance(view, |from, to| !blocked.has(from, to));
            (&ahead, &behind)
        } else {
            // A start may be blocked as a node, and is where this search leads to.
            let is_open = |to, from| {
                !blocked.hops.contains(&(from, to)) && (!blocked.nodes.contains(&from) || is_start.contains(&from))
            };
            behind.advance(view, is_open);
            (&behind, &ahead)
        };
        if view.bounds().must_stop() {
            return None;
        }
        meeting = moved.frontier.iter().copied().filter(|node| other.levels.contains_key(node)).collect();
    }
    let nodes = least_nodes(view, &ahead, &behind, &meeting);
    path_through(view, starts, &nodes)
}

/// Of the ways over nodes where both searches meet, the one whose last node has the least key, then the node before it, and
/// so on. From the start on.
fn least_nodes(view: &GraphView<'_>, ahead: &Side, behind: &Side, meeting: &[u32]) -> Vec<u32> {
    let least = |nodes: &mut dyn Iterator<Item = u32>| nodes.min_by(|left, right| view.compare(*left, *right));
    // Nodes on such ways, from where both meet to the targets. A hop of `behind` leads away from the targets.
    let mut on_way: NodeSet = meeting.iter().copied().collect();
    for hops in behind.hops.iter().rev() {
        on_way.extend(
            hops.iter().filter(|(_, node)| on_way.contains(node)).map(|(before, _)| *before).collect::<Vec<_>>(),
        );
    }
    let level_of = |node: &u32| behind.levels.get(node).copied();
    let Some(mut here) = least(&mut on_way.iter().copied().filter(|node| level_of(node) == Some(0))) else {
        return Vec::new();
    };
    let mut nodes = vec![here];
    for hops in &behind.hops {
        let mut nexts = hops.iter().filter(|(before, node)| *before == here && on_way.contains(node)).map(|hop| hop.1);
        here = least(&mut nexts).unwrap_or(here);
        nodes.push(here);
    }
    for hops in ahead.hops.iter().rev() {
        let mut befores = hops.iter().filter(|(_, node)| *node == here).map(|hop| hop.0);
        here = least(&mut befores).unwrap_or(here);
        nodes.push(here);
    }
    nodes.reverse();
    nodes
}

/// The path that continues a start over these nodes, by the edge of the least type where there are several.
fn path_through(view: &mut GraphView<'_>, starts: &[Path], nodes: &[u32]) -> Option<Path> {
    let mut path = starts.iter().find(|start| Some(&start.end()) == nodes.first())?.clone();
    let mut steps: Vec<Step> = Vec::new();
    for hop in nodes.windows(2) {
        view.expand_between(hop[0], hop[1], &mut steps);
        let step = *steps.iter().min_by_key(|step| step.rank())?;
        path.nodes.push(hop[1]);
        path.steps.push(step);
    }
    path.cost = path.steps.len() as f64;
    Some(path)
}
