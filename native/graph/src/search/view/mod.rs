//! The graph as one search sees it: one commit of each range, with what has expired, is removed or hidden left out.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use sundew_base::bit_set::BitSet;
use sundew_base::error::EngineError;

mod expand;
mod local_nodes;
mod page;

use self::local_nodes::LocalNodes;
use super::bounds::{Bounds, Watch};
use super::node_set::NodeSet;
use super::request::{Direction, FoundEdge, GraphRequest, RemovedTargets};
use crate::key_hash::{BuildKeyHasher, hash_key};
use crate::segment::Columns;
use crate::snapshot::{LiveSegment, Snapshot};

const ABSENT: u32 = u32::MAX;

/// One edge as it is followed: from a node at hand to another one.
#[derive(Debug, Clone, Copy)]
pub struct Step {
    /// The other end.
    pub node: u32,
    /// Its rank among the names of types.
    pub edge_type: u32,
    pub weight: f32,
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
    columns: Columns<'a>,
    range: usize,
    /// Rank of each of its types among all names; `ABSENT` where the request leaves it out.
    types: Vec<u32>,
    /// Nodes of the search by its own; of the primary segment none, where both are the same.
    nodes: LocalNodes,
}

/// Nodes are numbers: those of the primary segment, the largest one, and behind them those that it lacks, in the order in
/// which they are met. So a search over one segment looks no key up but those that it is asked for.
pub struct GraphView<'a> {
    segments: Vec<SegmentView<'a>>,
    range_segments: Vec<Range<usize>>,
    range_starts: &'a [String],
    type_names: Vec<&'a str>,
    primary: usize,
    /// Nodes of the primary segment, which are numbered in the order of their keys.
    primary_nodes: u32,
    /// Keys of the other nodes.
    others: Vec<&'a str>,
    by_key: HashMap<&'a str, u32, BuildKeyHasher>,
    met: NodeSet,
    hidden: BitSet,
    removed: HashMap<u32, &'a [u64]>,
    direction: Direction,
    min_weight: f32,
    max_weight: f32,
    /// By rank: whether edges of the type are followed. Empty for all.
    followed_types: Rc<[bool]>,
    expired_at_or_before_ms: i64,
    /// The answer names every node that was met.
    reports_nodes: bool,
    /// Why the first of the refused edges was.
    refused: Option<String>,
    bounds: Bounds<'a>,
}

impl<'a> GraphView<'a> {
    pub fn new(
        snapshots: &'a [Arc<Snapshot>],
        request: &'a GraphRequest,
        removed: &'a RemovedTargets,
        watch: &'a dyn Watch,
    ) -> Self {
        let type_names = type_names(snapshots, request);
        let segments = segment_views(snapshots, &type_names);
        let size = |segment: &SegmentView<'_>| segment.columns.node_count();
        let primary = (0..segments.len()).max_by_key(|at| size(&segments[*at])).unwrap_or(0);
        let range_segments = (0..snapshots.len())
            .map(|range| {
                let start = segments.partition_point(|segment| segment.range < range);
                start..segments.partition_point(|segment| segment.range <= range)
            })
            .collect();
        let primary_nodes = segments.get(primary).map_or(0, size);
        let mut view = Self {
            segments,
            range_segments,
            range_starts: &request.range_starts,
            type_names,
            primary,
            primary_nodes,
            others: Vec::new(),
            by_key: HashMap::default(),
            met: NodeSet::with_room(primary_nodes as usize),
            hidden: BitSet::default(),
            removed: HashMap::new(),
            direction: request.direction,
            min_weight: request.min_weight.unwrap_or(f32::NEG_INFINITY),
            max_weight: request.max_weight.unwrap_or(f32::INFINITY),
            followed_types: Rc::default(),
            expired_at_or_before_ms: request.expired_at_or_before_ms.unwrap_or(i64::MIN),
            reports_nodes: request.reports_nodes,
            refused: None,
            bounds: Bounds::new(request, watch),
        };
        for key in &request.hidden {
            let node = view.number_of(key, hash_key(key.as_bytes()));
            view.hidden.insert(node);
        }
        for (key, through) in removed {
            let node = view.number_of(key, hash_key(key.as_bytes()));
            view.removed.insert(node, through);
        }
        view
    }

    /// Nodes are below it, those included that are not met yet.
    pub fn node_end(&self) -> usize {
        self.primary_nodes as usize + self.others.len()
    }

    /// Keys of the nodes that were met.
    pub fn met_keys(&self) -> impl Iterator<Item = &'a str> + '_ {
        self.met.iter().map(|node| self.key(node))
    }

    pub fn key(&self, node: u32) -> &'a str {
        match node.checked_sub(self.primary_nodes) {
            None => self.segments[self.primary].columns.key(node),
            Some(other) => self.others[other as usize],
        }
    }

    /// The order of the keys of two nodes.
    pub fn compare(&self, left: u32, right: u32) -> Ordering {
        if left < self.primary_nodes && right < self.primary_nodes {
            left.cmp(&right)
        } else {
            self.key(left).cmp(self.key(right))
        }
    }

    pub fn type_name(&self, rank: u32) -> &'a str {
        self.type_names[rank as usize]
    }

    pub fn is_hidden(&self, node: u32) -> bool {
        self.hidden.contains(node)
    }

    pub fn direction(&self) -> Direction {
        self.direction
    }

    pub fn bounds(&self) -> &Bounds<'a> {
        &self.bounds
    }

    pub fn bounds_mut(&mut self) -> &mut Bounds<'a> {
        &mut self.bounds
    }

    /// Refuses an edge. Where nodes are reported, the search goes on without it, and the first reason is kept.
    ///
    /// Error: otherwise `invalid_query`.
    pub fn refuse(&mut self, why: impl FnOnce(&Self) -> String) -> Result<(), EngineError> {
        if !self.reports_nodes {
            return Err(EngineError::new("invalid_query", why(self)));
        }
        if self.refused.is_none() {
            self.refused = Some(why(self));
        }
        Ok(())
    }

    pub fn take_refused(&mut self) -> Option<String> {
        self.refused.take()
    }

    /// The node of a key, which may have no edge at all.
    pub fn node_of_key(&mut self, key: &'a str) -> u32 {
        let node = self.number_of(key, hash_key(key.as_bytes()));
        self.meet(node);
        node
    }

    fn number_of(&mut self, key: &'a str, hash: u64) -> u32 {
        let primary = self.segments.get(self.primary);
        if let Some(node) = primary.and_then(|segment| segment.columns.node_of(key, hash)) {
            return node;
        }
        let next = self.node_end() as u32;
        *self.by_key.entry(key).or_insert_with(|| {
            self.others.push(key);
            next
        })
    }

    fn node_of_local(&mut self, segment: usize, local: u32) -> u32 {
        if segment == self.primary {
            return local;
        }
        let SegmentView { columns, nodes, .. } = &self.segments[segment];
        if let Some(node) = nodes.get(local) {
            return node;
        }
        let key = columns.key(local);
        let node = self.number_of(key, hash_key(key.as_bytes()));
        let SegmentView { columns, nodes, .. } = &mut self.segments[segment];
        nodes.insert(local, node, columns.node_count());
        node
    }

    #[inline]
    fn meet(&mut self, node: u32) {
        if self.met.insert(node) {
            self.bounds.meets_nodes(self.met.len());
        }
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

    /// The number of a node in a segment. `hash` is that of its key, once it was needed.
    fn local(&self, node: u32, segment: usize, hash: &mut Option<u64>) -> Option<u32> {
        if segment == self.primary {
            return (node < self.primary_nodes).then_some(node);
        }
        let key = self.key(node);
        let hash = *hash.get_or_insert_with(|| hash_key(key.as_bytes()));
        self.segments[segment].columns.node_of(key, hash)
    }

    /// The segments that the edges away from a node may lie in.
    fn home(&self, node: u32) -> Range<usize> {
        if let [only] = &*self.range_segments {
            return only.clone();
        }
        let key = self.key(node);
        let range = self.range_starts.partition_point(|start| start.as_str() <= key).saturating_sub(1);
        self.range_segments[range].clone()
    }

    /// An edge that the request asks for and that has not expired; its other end is not known yet.
    #[inline]
    fn step(&self, segment: usize, row: usize, edge: usize, forward: bool) -> Option<Step> {
        let SegmentView { columns, types, .. } = &self.segments[segment];
        let edge_type = types[columns.edge_type(edge) as usize];
        let weight = columns.weight(edge);
        let passes = edge_type != ABSENT
            && self.followed_types.get(edge_type as usize).is_none_or(|is_followed| *is_followed)
            && weight >= self.min_weight
            && weight <= self.max_weight
            && self.is_alive(columns, row, edge);
        passes.then_some(Step { node: 0, edge_type, weight, forward })
    }

    #[inline]
    fn is_alive(&self, columns: &Columns<'_>, row: usize, edge: usize) -> bool {
        self.expired_at_or_before_ms == i64::MIN || columns.created_ms(row, edge) > self.expired_at_or_before_ms
    }

    /// Whether the edge was written after its ends were deleted, if they ever were.
    #[inline]
    fn is_there(&self, segment: usize, row: usize, edge: usize, ends: [u32; 2]) -> bool {
        if self.removed.is_empty() {
            return true;
        }
        let SegmentView { columns, range, .. } = &self.segments[segment];
        ends.iter().filter_map(|node| self.removed.get(node)).all(|through| {
            let through = through.get(*range).copied().unwrap_or(0);
            columns.since(row, edge) > through
        })
    }

    /// The edge of a step from `from`, with its strings.
    pub fn edge_of(&self, from: u32, step: &Step) -> FoundEdge {
        let (source, target) = if step.forward { (from, step.node) } else { (step.node, from) };
        let stored = self.stored_edge(source, target, step);
        FoundEdge {
            source: self.key(source).to_owned(),
            target: self.key(target).to_owned(),
            edge_type: self.type_name(step.edge_type).to_owned(),
            weight: step.weight,
            created_ms: stored.map_or(0, |(columns, row, edge)| columns.created_ms(row, edge)),
            updated_ms: stored.map_or(0, |(columns, row, edge)| columns.updated_ms(row, edge)),
            metadata: stored.map_or("", |(columns, _, edge)| columns.metadata(edge)).to_owned(),
        }
    }

    /// Where the edge lies that a step between these nodes stands for. The edges of a row are sorted by type and target.
    fn stored_edge(&self, source: u32, target: u32, step: &Step) -> Option<(&Columns<'a>, usize, usize)> {
        let (mut hash, mut target_hash) = (None, None);
        self.home(source).find_map(|at| {
            let SegmentView { live, columns, types, .. } = &self.segments[at];
            let row = self.local(source, at, &mut hash).and_then(|local| columns.row_of_node(local))?;
            if !live.is_live(row) {
                return None;
            }
            let local_target = self.local(target, at, &mut target_hash)?;
            let local_type = types.iter().position(|rank| *rank == step.edge_type)? as u32;
            let mut twins = columns.edges_between(row, local_type, local_target);
            let is_shown = |edge: &usize| {
                columns.weight(*edge) == step.weight
                    && self.is_alive(columns, row, *edge)
                    && self.is_there(at, row, *edge, [source, target])
            };
            twins.find(is_shown).map(|edge| (columns, row, edge))
        })
    }

    /// Calls `visit` for every live edge: source, target, and whether it has expired or leads to a removed target.
    /// `only_gone`: the others may be left out.
    pub fn each_edge(&mut self, only_gone: bool, mut visit: impl FnMut(usize, u32, u32, bool)) {
        for segment in 0..self.segments.len() {
            let SegmentView { live, columns, range, .. } = self.segments[segment];
            if only_gone && self.removed.is_empty() && live.segment.oldest_ms() > self.expired_at_or_before_ms {
                continue;
            }
            for row in (0..columns.ordinals.len()).filter(|row| live.is_live(*row)) {
                let source = self.node_of_local(segment, columns.row_nodes[row]);
                self.meet(source);
                let mut last = None;
                for edge in columns.row_edges(row) {
                    if !self.bounds.counts_edge() {
                        return;
                    }
                    let local = columns.targets[edge];
                    let target = self.node_of_local(segment, local);
                    self.meet(target);
                    let step = self.step(segment, row, edge, true);
                    let is_gone = step.is_none() || !self.is_there(segment, row, edge, [source, target]);
                    let identity = step.map(|step| (step.edge_type, local));
                    if is_gone || last != identity {
                        visit(range, source, target, is_gone);
                    }
                    if !is_gone {
                        last = identity;
                    }
                }
            }
        }
    }
}

/// Names of the types that the request asks for, in their order.
fn type_names<'a>(snapshots: &'a [Arc<Snapshot>], request: &GraphRequest) -> Vec<&'a str> {
    let wanted = |name: &str| request.edge_types.is_empty() || request.edge_types.iter().any(|each| each == name);
    let mut names: Vec<&str> = Vec::new();
    for live in snapshots.iter().flat_map(|snapshot| &snapshot.segments) {
        names.extend(live.segment.columns().type_names().filter(|name| wanted(name)));
    }
    names.sort_unstable();
    names.dedup();
    names
}

fn segment_views<'a>(snapshots: &'a [Arc<Snapshot>], type_names: &[&str]) -> Vec<SegmentView<'a>> {
    let rank = |name: &str| type_names.binary_search(&name).map_or(ABSENT, |rank| rank as u32);
    let mut views = Vec::new();
    for (range, snapshot) in snapshots.iter().enumerate() {
        for live in &snapshot.segments {
            let columns = live.segment.columns();
            let types = columns.type_names().map(rank).collect();
            views.push(SegmentView { live, columns, range, types, nodes: LocalNodes::default() });
        }
    }
    views
}
