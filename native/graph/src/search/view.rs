//! The graph as one search sees it: one commit of each range, with what has expired, is removed or hidden left out.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::request::{Direction, FoundEdge, GraphRequest, RemovedTargets};
use crate::key_hash::BuildKeyHasher;
use crate::snapshot::{LiveSegment, Snapshot};

/// Edges between two looks at the clock.
const EDGES_BETWEEN_LOOKS: u64 = 4096;
const ABSENT: u32 = u32::MAX;
const UNKNOWN: u32 = u32::MAX - 1;

/// One edge as it is followed: from a node at hand to another one.
#[derive(Debug, Clone, Copy)]
pub struct Step {
    /// The other end.
    pub node: u32,
    /// Its rank among the names of types.
    pub edge_type: u32,
    pub weight: f32,
    pub created_ms: i64,
    /// From source to target.
    pub forward: bool,
}

impl Step {
    /// Tells steps between the same two nodes apart, the same way whatever they were read from.
    pub fn rank(&self) -> (u32, bool) {
        (self.edge_type, !self.forward)
    }
}

/// Which edges are followed from a node.
#[derive(Debug, Clone)]
pub struct FollowedEdges {
    pub direction: Direction,
    /// By rank; empty for all.
    pub types: Rc<[bool]>,
    /// Both inclusive.
    pub weights: (f32, f32),
}

struct SegmentView<'a> {
    live: &'a LiveSegment,
    range: usize,
    /// Rank of each of its types among all names; `ABSENT` where the request leaves it out.
    types: Vec<u32>,
    /// Node of the search for each of its nodes, plus 1.
    nodes: Vec<u32>,
}

pub struct GraphView<'a> {
    segments: Vec<SegmentView<'a>>,
    range_segments: Vec<Range<usize>>,
    range_starts: &'a [String],
    type_names: Vec<&'a str>,
    keys: Vec<&'a str>,
    /// Of each node, its number in each segment.
    locals: Vec<u32>,
    by_key: HashMap<&'a str, u32, BuildKeyHasher>,
    hidden: HashSet<&'a str, BuildKeyHasher>,
    is_hidden: Vec<bool>,
    removed: &'a RemovedTargets,
    removed_of: Vec<Option<&'a [u64]>>,
    direction: Direction,
    min_weight: f32,
    max_weight: f32,
    /// By rank: whether edges of the type are followed. Empty for all.
    followed_types: Rc<[bool]>,
    expired_at_or_before_ms: i64,
    edges_max: u64,
    nodes_max: u64,
    edges_seen: u64,
    until: Instant,
    is_cancelled: &'a dyn Fn() -> bool,
    was_cancelled: bool,
    partial: Option<&'static str>,
}

impl<'a> GraphView<'a> {
    pub fn new(
        snapshots: &'a [Arc<Snapshot>],
        request: &'a GraphRequest,
        removed: &'a RemovedTargets,
        is_cancelled: &'a dyn Fn() -> bool,
    ) -> Self {
        let of_range =
            |(range, snapshot): (usize, &'a Arc<Snapshot>)| snapshot.segments.iter().map(move |live| (range, live));
        let lives: Vec<(usize, &LiveSegment)> = snapshots.iter().enumerate().flat_map(of_range).collect();
        let wanted = |name: &str| request.edge_types.is_empty() || request.edge_types.iter().any(|each| each == name);
        let mut type_names: Vec<&str> =
            lives.iter().flat_map(|(_, live)| live.segment.type_names()).filter(|name| wanted(name)).collect();
        type_names.sort_unstable();
        type_names.dedup();
        let rank = |name: &str| type_names.binary_search(&name).map_or(ABSENT, |rank| rank as u32);
        let segments: Vec<SegmentView<'_>> = lives
            .iter()
            .map(|&(range, live)| SegmentView {
                live,
                range,
                types: live.segment.type_names().map(rank).collect(),
                nodes: vec![0; live.segment.counts().nodes],
            })
            .collect();
        let range_segments = (0..snapshots.len())
            .map(|range| {
                let start = segments.partition_point(|segment| segment.range < range);
                start..segments.partition_point(|segment| segment.range <= range)
            })
            .collect();
        Self {
            segments,
            range_segments,
            range_starts: &request.range_starts,
            type_names,
            keys: Vec::new(),
            locals: Vec::new(),
            by_key: HashMap::default(),
            hidden: request.hidden.iter().map(String::as_str).collect(),
            is_hidden: Vec::new(),
            removed,
            removed_of: Vec::new(),
            direction: request.direction,
            min_weight: request.min_weight.unwrap_or(f32::NEG_INFINITY),
            max_weight: request.max_weight.unwrap_or(f32::INFINITY),
            followed_types: Rc::default(),
            expired_at_or_before_ms: request.expired_at_or_before_ms.unwrap_or(i64::MIN),
            edges_max: request.edges_max,
            nodes_max: request.nodes_max,
            edges_seen: 0,
            until: Instant::now() + Duration::from_millis(request.millis_max),
            is_cancelled,
            was_cancelled: false,
            partial: None,
        }
    }

    pub fn node_count(&self) -> usize {
        self.keys.len()
    }

    pub fn node_keys(&self) -> impl Iterator<Item = &'a str> + '_ {
        self.keys.iter().copied()
    }

    pub fn key(&self, node: u32) -> &'a str {
        self.keys[node as usize]
    }

    pub fn type_name(&self, rank: u32) -> &'a str {
        self.type_names[rank as usize]
    }

    pub fn is_hidden(&self, node: u32) -> bool {
        self.is_hidden[node as usize]
    }

    pub fn was_cancelled(&self) -> bool {
        self.was_cancelled
    }

    /// The bound that was met.
    pub fn partial(&self) -> Option<&'static str> {
        self.partial
    }

    /// Whether the search has to end with what it has.
    pub fn must_stop(&self) -> bool {
        self.partial.is_some() || self.was_cancelled
    }

    /// The node of a key, which may have no edge at all.
    pub fn node_of_key(&mut self, key: &'a str) -> u32 {
        for segment in 0..self.segments.len() {
            if let Some(local) = self.segments[segment].live.segment.node_of(key) {
                return self.node_of_local(segment, local);
            }
        }
        match self.by_key.get(key) {
            Some(node) => *node,
            None => {
                let node = self.add(key);
                self.by_key.insert(key, node);
                node
            }
        }
    }

    fn node_of_local(&mut self, segment: usize, local: u32) -> u32 {
        if let Some(node) = self.segments[segment].nodes[local as usize].checked_sub(1) {
            return node;
        }
        let live: &'a LiveSegment = self.segments[segment].live;
        let key = live.segment.key(local);
        let known = if self.segments.len() > 1 { self.by_key.get(key).copied() } else { None };
        let node = known.unwrap_or_else(|| self.add(key));
        self.segments[segment].nodes[local as usize] = node + 1;
        self.locals[node as usize * self.segments.len() + segment] = local;
        node
    }

    fn add(&mut self, key: &'a str) -> u32 {
        let node = self.keys.len() as u32;
        self.keys.push(key);
        self.locals.resize(self.locals.len() + self.segments.len(), UNKNOWN);
        if self.segments.len() != 1 {
            self.by_key.insert(key, node);
        }
        self.is_hidden.push(!self.hidden.is_empty() && self.hidden.contains(key));
        let removed = self.removed;
        self.removed_of.push(if removed.is_empty() { None } else { removed.get(key).map(Vec::as_slice) });
        if self.keys.len() as u64 > self.nodes_max {
            self.stop("nodes");
        }
        node
    }

    /// From now on edges are followed as one step of a pattern says.
    pub fn follow(&mut self, followed: &FollowedEdges) {
        self.direction = followed.direction;
        (self.min_weight, self.max_weight) = followed.weights;
        self.followed_types = Rc::clone(&followed.types);
    }

    /// By rank: which of these types there are. Empty where none is named, which stands for all.
    pub fn types_named(&self, names: &[String]) -> Rc<[bool]> {
        if names.is_empty() {
            return Rc::default();
        }
        self.type_names.iter().map(|name| names.iter().any(|each| each == name)).collect()
    }

    /// Whether this number of nodes, each counted as often as it was reached, ends the search.
    pub fn meets_nodes(&mut self, reached: usize) -> bool {
        if reached as u64 > self.nodes_max {
            self.stop("nodes");
        }
        self.must_stop()
    }

    pub fn stop(&mut self, bound: &'static str) {
        self.partial.get_or_insert(bound);
    }

    fn local(&mut self, node: u32, segment: usize) -> Option<u32> {
        let at = node as usize * self.segments.len() + segment;
        if self.locals[at] == UNKNOWN {
            let found = self.segments[segment].live.segment.node_of(self.keys[node as usize]);
            self.locals[at] = found.unwrap_or(ABSENT);
            if let Some(local) = found {
                self.segments[segment].nodes[local as usize] = node + 1;
            }
        }
        let local = self.locals[at];
        if local == ABSENT { None } else { Some(local) }
    }

    /// The segments that the edges away from a key may lie in.
    fn home(&self, key: &str) -> Range<usize> {
        let range = self.range_starts.partition_point(|start| start.as_str() <= key).saturating_sub(1);
        self.range_segments[range].clone()
    }

    /// Replaces `steps` by the edges of a node in the direction of the request, in no particular order.
    pub fn expand(&mut self, node: u32, steps: &mut Vec<Step>) {
        steps.clear();
        let direction = self.direction;
        if self.is_hidden(node) {
            return;
        }
        if direction != Direction::In {
            for segment in self.home(self.key(node)) {
                self.expand_out(node, segment, steps);
            }
        }
        if direction != Direction::Out {
            for segment in 0..self.segments.len() {
                self.expand_in(node, segment, steps);
            }
        }
    }

    fn expand_out(&mut self, node: u32, segment: usize, steps: &mut Vec<Step>) {
        let Some(local) = self.local(node, segment) else { return };
        let live: &'a LiveSegment = self.segments[segment].live;
        let Some(row) = live.segment.row_of_node(local).filter(|row| live.is_live(*row)) else { return };
        let mut last = None;
        for edge in live.segment.row_edges(row) {
            if !self.counts_edge() {
                return;
            }
            let target = live.segment.targets()[edge];
            let Some(mut step) = self.step(segment, row, edge, true) else { continue };
            // An edge that is declared and follows from a field is one.
            if last == Some((step.edge_type, target)) {
                continue;
            }
            step.node = self.node_of_local(segment, target);
            let ends = [node, step.node];
            if self.is_there(segment, row, edge, ends) && !self.is_hidden(step.node) {
                last = Some((step.edge_type, target));
                steps.push(step);
            }
        }
    }

    fn expand_in(&mut self, node: u32, segment: usize, steps: &mut Vec<Step>) {
        let Some(local) = self.local(node, segment) else { return };
        let live: &'a LiveSegment = self.segments[segment].live;
        let mut last = None;
        for (row, edge) in live.segment.edges_into(local) {
            if !self.counts_edge() {
                return;
            }
            if !live.is_live(row) {
                continue;
            }
            let Some(mut step) = self.step(segment, row, edge, false) else { continue };
            if last == Some((step.edge_type, row)) {
                continue;
            }
            step.node = self.node_of_local(segment, live.segment.row_nodes()[row]);
            if !self.is_there(segment, row, edge, [step.node, node]) {
                continue;
            }
            // Both ways, an edge of a node to itself was met on the way out.
            let is_known = step.node == node && self.direction == Direction::Both;
            if !is_known && !self.is_hidden(step.node) {
                last = Some((step.edge_type, row));
                steps.push(step);
            }
        }
    }

    /// An edge that the request asks for and that has not expired; its other end is not known yet.
    fn step(&self, segment: usize, row: usize, edge: usize, forward: bool) -> Option<Step> {
        let SegmentView { live, types, .. } = &self.segments[segment];
        let facts = live.segment.facts(row, edge);
        let edge_type = types[facts.edge_type as usize];
        let passes = edge_type != ABSENT
            && self.followed_types.get(edge_type as usize).is_none_or(|is_followed| *is_followed)
            && facts.created_ms > self.expired_at_or_before_ms
            && facts.weight >= self.min_weight
            && facts.weight <= self.max_weight;
        let step = Step { node: 0, edge_type, weight: facts.weight, created_ms: facts.created_ms, forward };
        passes.then_some(step)
    }

    /// Whether the edge was written after its ends were deleted, if they ever were.
    fn is_there(&self, segment: usize, row: usize, edge: usize, ends: [u32; 2]) -> bool {
        let SegmentView { live, range, .. } = &self.segments[segment];
        ends.into_iter().filter_map(|node| self.removed_of[node as usize]).all(|through| {
            let through = through.get(*range).copied().unwrap_or(0);
            live.segment.facts(row, edge).since > through
        })
    }

    /// Counts one edge that is looked at; false when the search has to end.
    pub fn counts_edge(&mut self) -> bool {
        self.edges_seen += 1;
        if self.edges_seen > self.edges_max {
            self.stop("edges");
        } else if self.edges_seen.is_multiple_of(EDGES_BETWEEN_LOOKS) {
            self.was_cancelled |= (self.is_cancelled)();
            if Instant::now() >= self.until {
                self.stop("time");
            }
        }
        !self.must_stop()
    }

    /// The edge of a step from `from`, with its strings.
    pub fn edge_of(&self, from: u32, step: &Step) -> FoundEdge {
        let (source, target) = if step.forward { (from, step.node) } else { (step.node, from) };
        FoundEdge {
            source: self.key(source).to_owned(),
            target: self.key(target).to_owned(),
            edge_type: self.type_name(step.edge_type).to_owned(),
            weight: step.weight,
            created_ms: step.created_ms,
        }
    }

    /// Calls `visit` for every live edge: source, target, and whether it has expired or leads to a removed target.
    /// `only_gone`: the others may be left out.
    pub fn each_edge(&mut self, only_gone: bool, mut visit: impl FnMut(usize, u32, u32, bool)) {
        for segment in 0..self.segments.len() {
            let live: &'a LiveSegment = self.segments[segment].live;
            if only_gone && self.removed.is_empty() && live.segment.oldest_ms() > self.expired_at_or_before_ms {
                continue;
            }
            for row in (0..live.segment.counts().rows).filter(|row| live.is_live(*row)) {
                let source = self.node_of_local(segment, live.segment.row_nodes()[row]);
                let mut last = None;
                for edge in live.segment.row_edges(row) {
                    if !self.counts_edge() {
                        return;
                    }
                    let local = live.segment.targets()[edge];
                    let target = self.node_of_local(segment, local);
                    let step = self.step(segment, row, edge, true);
                    let is_gone = step.is_none() || !self.is_there(segment, row, edge, [source, target]);
                    let identity = step.map(|step| (step.edge_type, local));
                    if is_gone || last != identity {
                        visit(self.segments[segment].range, source, target, is_gone);
                    }
                    if !is_gone {
                        last = identity;
                    }
                }
            }
        }
    }
}
