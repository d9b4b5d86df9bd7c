//! The search of one graph: which way to take.

use crate::dense::graph::{Beam, CodedQuery, FilteredWalk, Graph, Scratch, WalkEnd};
use crate::dense::metric::Metric;
use crate::dense::query::nearest::Neighbour;
use crate::dense::query::rescoring::{Rescoring, Wanted};
use crate::dense::query::search_cost::{
    LOST_PER_START, STARTS_MAX, SURE_EFFORT, around, candidates_worth, lost_at_most, rescored_for, scanned_among,
    scanned_for, starts_for, steps_among, wider_starts_for,
};
use crate::dense::query::search_state::{Candidates, DenseSearch};
use crate::dense::rows::graph_rows::GraphRows;
use sundew_base::bit_set::BitSet;

/// Nodes that are compared exactly rather than by their codes first.
const EXACT_NODES_MAX: usize = 256;

/// Nodes between two looks at the clock.
const NODES_BETWEEN_LOOKS: usize = 4096;

/// How doubtful the result of a walk must be to be rejected, as `doubt` measures it. In sets of 100,000 rows this holds
/// for nearly all queries where rows lie anywhere in 128 dimensions and for eight in ten in 64; among clustered rows
/// for nearly all queries off the clusters and one in ten of the others; among word vectors for one in a hundred.
const DOUBTFUL: f32 = 500.0;

/// Such a walk is followed by a scan of at most this many rows for each node whose cost it has computed, fewer where there is
/// less doubt and more with more effort. That takes six times as long as the walk.
const SCANNED_PER_VISIT: f32 = 18.0;

/// Where more rows are left, the walk goes on to this many times as many candidates.
const WIDER: usize = 4;

/// Candidates of a walk that goes on, at most: to keep more in order costs more than to find them.
const WIDER_MAX: usize = 4096;

/// Where this many of the starts would be allowed if the allowed ones lay everywhere, and none is, a walk among all nodes
/// would find next to none.
const STARTS_TELL: f32 = 3.0;

/// Which of the beams holds what a walk has found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Walked {
    Beam,
    Kept,
}

impl Walked {
    fn beam(self, scratch: &mut Scratch) -> &mut Beam {
        match self {
            Self::Beam => &mut scratch.beam,
            Self::Kept => &mut scratch.kept,
        }
    }
}

/// The step that follows a walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    Answer,
    /// Go on with this many candidates.
    Widen(usize),
    Scan,
}

/// The rows and nodes of a graph that a filter lets through.
struct Allowed {
    /// `None` where each stands at a node of its own.
    rows: Option<BitSet>,
    nodes: BitSet,
}

impl Allowed {
    fn rows(&self) -> &BitSet {
        self.rows.as_ref().unwrap_or(&self.nodes)
    }
}

/// One graph under search.
pub struct GraphSearch<'s, 'a> {
    pub search: &'s mut DenseSearch<'a>,
    pub rows: &'s GraphRows,
    pub dead: &'s BitSet,
    pub query: &'s CodedQuery,
    pub scratch: &'s mut Scratch,
}

impl<'s> GraphSearch<'s, '_> {
    fn graph(&self) -> &'s Graph {
        &self.rows.graph
    }

    pub fn run(mut self) {
        self.scratch.passed.clear();
        self.scratch.lost = 0;
        let found = match self.search.bounds.allowed {
            None => self.unfiltered(),
            Some(allowed) => {
                let rows = self.rows.rows_of(allowed, self.dead);
                let allowed = if self.graph().copies().is_empty() {
                    Allowed { rows: None, nodes: rows }
                } else {
                    Allowed { nodes: self.rows.nodes_of(rows.clone()), rows: Some(rows) }
                };
                self.filtered(&allowed)
            }
        };
        self.search.report.visited += std::mem::take(&mut self.scratch.visits);
        self.note_reach(&found);
        for found in found {
            self.search.offer(found);
        }
    }

    /// Rows behind the last of those that were asked for may be missing.
    fn note_reach(&mut self, found: &[Neighbour]) {
        let limit = self.search.bounds.limit;
        if found.len() < limit {
            return;
        }
        let mut costs: Vec<f32> = found.iter().map(|found| found.cost).collect();
        let last = *costs.select_nth_unstable_by(limit - 1, f32::total_cmp).1;
        self.search.reach = self.search.reach.min(last);
    }

    fn unfiltered(&mut self) -> Vec<Neighbour> {
        let (rows, nodes) = (self.rows.len(), self.rows.node_count());
        let live = rows - self.dead.len();
        let wanted = Wanted::NotAmong(self.dead);
        let scaled = |candidates: usize| candidates * rows / live.max(1);
        let Candidates { first, full } = self.search.candidates;
        let candidates = Candidates { first: scaled(first), full: scaled(full) };
        let is_walked = |candidates: usize| candidates < nodes / 8 && nodes > scanned_for(candidates);
        if !is_walked(candidates.full) {
            return self.scan_living();
        }
        self.search.took("graph");
        let (graph, query) = (self.graph(), self.query);
        graph.descend(query, 0, starts_for(candidates.first), self.scratch);
        self.start_at_equal();
        let search = &mut *self.search;
        if !graph.walk_widely(query, candidates.first, self.scratch, &mut || search.is_due()) {
            return self.rescore(Walked::Beam, wanted).0;
        }
        let mut next = self.next(nodes, candidates);
        let mut limit = candidates.first;
        loop {
            match next {
                Next::Answer => {
                    let (found, is_complete) = self.rescore(Walked::Beam, wanted);
                    let is_enough = is_complete || found.len() >= self.search.bounds.limit.min(live);
                    if is_enough || self.search.is_partial {
                        return found;
                    }
                    if !is_walked(WIDER * limit) {
                        // The beam is full of what is not wanted.
                        return self.scan_living();
                    }
                    next = Next::Widen(WIDER * limit);
                }
                Next::Widen(to) => {
                    limit = to;
                    graph.more_starts(query, wider_starts_for(limit), self.scratch);
                    let search = &mut *self.search;
                    let is_done = graph.walk_on_widely(query, limit, self.scratch, &mut || search.is_due());
                    next = if is_done { self.next_at_last(nodes) } else { Next::Answer };
                }
                Next::Scan => {
                    let nodes = self.living();
                    self.scan_rest(Walked::Beam, &nodes);
                    next = Next::Answer;
                }
            }
        }
    }

    /// The nodes at which a row lives.
    fn living(&self) -> BitSet {
        let mut rows = BitSet::full(self.rows.len());
        self.dead.iter().for_each(|row| rows.remove(row));
        self.rows.nodes_of(rows)
    }

    fn scan_living(&mut self) -> Vec<Neighbour> {
        self.search.took("exact_fallback");
        let nodes = self.living();
        self.scan(&nodes, Wanted::NotAmong(self.dead))
    }

    fn filtered(&mut self, allowed: &Allowed) -> Vec<Neighbour> {
        let (rows, count) = (self.rows.node_count(), allowed.nodes.len());
        let wanted = Wanted::Among(allowed.rows());
        let limit = self.search.bounds.limit;
        let candidates = self.search.candidates;
        let scanned = scanned_among(candidates.full, self.search.effort, limit, count, rows);
        // A walk that turns out to cost more ends in a scan.
        if count <= EXACT_NODES_MAX || 4 * count <= 5 * scanned || self.search.has_inner_bound() {
            self.search.took("scan");
            return self.scan(&allowed.nodes, wanted);
        }
        self.search.took("filtered_graph");
        let mut end = self.walk_until_kept(&allowed.nodes, candidates.first, true);
        let mut next = self.next(count, candidates);
        loop {
            match (end, next) {
                (WalkEnd::OverBudget, _) if self.may_step(count) => {
                    if let Some(found) = self.walk_over(allowed) {
                        return found;
                    }
                    if let Some(found) = self.scan_behind(allowed) {
                        return found;
                    }
                    break;
                }
                // Nodes that the walk has met are not compared again. A distance bound asks for all rows, which were not kept.
                (WalkEnd::OverBudget, _) if self.search.distance.is_open() => {
                    self.search.took("exact_fallback");
                    (end, next) = (WalkEnd::Done, Next::Scan);
                }
                (WalkEnd::OverBudget, _) => break,
                (WalkEnd::Due, _) | (_, Next::Answer) => {
                    let (found, is_complete) = self.rescore(Walked::Kept, wanted);
                    let is_enough = is_complete || found.len() >= limit.min(allowed.rows().len());
                    if is_enough || self.search.is_partial {
                        return found;
                    }
                    break;
                }
                (WalkEnd::Done, Next::Widen(to)) => {
                    end = self.walk_until_kept(&allowed.nodes, to, false);
                    next = self.next_at_last(count);
                }
                (WalkEnd::Done, Next::Scan) => {
                    self.scan_rest(Walked::Kept, &allowed.nodes);
                    next = Next::Answer;
                }
            }
        }
        self.search.took("exact_fallback");
        self.scan(&allowed.nodes, wanted)
    }

    fn walk_for<'w>(&self, allowed: &'w BitSet, candidates: usize) -> FilteredWalk<'w>
    where
        's: 'w,
    {
        let (count, limit) = (allowed.len(), self.search.bounds.limit);
        FilteredWalk {
            query: self.query,
            allowed,
            candidates,
            around: around(self.search.effort),
            wanted: limit.min(count),
            ball_max: candidates_worth(count),
            thin_ball_max: candidates_worth(count.min(steps_among(count, self.search.candidates.full).1)),
            kept: rescored_for(limit),
            lost_max: lost_at_most(count),
        }
    }

    /// Counts what the way down has passed, from the one at `from` on, and a scan of the allowed nodes will not meet.
    fn note_lost(&mut self, allowed: &BitSet, from: usize) {
        let passed = &self.scratch.passed[from..];
        self.scratch.lost += passed.iter().filter(|(node, _)| !allowed.contains(*node)).count() as u64;
    }

    /// Whether a walk on allowed nodes only costs less than a scan.
    fn may_step(&self, count: usize) -> bool {
        let (starts, scanned) = steps_among(count, self.search.candidates.full);
        count > scanned && self.scratch.visits + starts as u64 / 8 < lost_at_most(count)
    }

    /// A walk on all nodes that fills `kept`; or the same walk again, to go on with more candidates.
    fn walk_until_kept(&mut self, allowed: &BitSet, candidates: usize, is_first: bool) -> WalkEnd {
        let walk = self.walk_for(allowed, candidates);
        let graph = self.graph();
        if is_first {
            let share = allowed.len() as f32 / self.rows.node_count() as f32;
            let told_by = (STARTS_TELL / share).min(STARTS_MAX as f32) as usize;
            graph.descend(self.query, 0, starts_for(candidates).max(told_by), self.scratch);
            let near = self.scratch.starts.iter().filter(|(_, node)| allowed.contains(*node)).count();
            self.note_lost(allowed, 0);
            graph.begin_until_kept(&walk, self.scratch);
            if near == 0 && share * self.scratch.starts.len() as f32 >= STARTS_TELL {
                return WalkEnd::OverBudget;
            }
            self.start_at_equal();
        } else {
            let passed = self.scratch.passed.len();
            let left = walk.lost_max.saturating_sub(self.scratch.lost) / LOST_PER_START;
            graph.more_starts(self.query, wider_starts_for(candidates).min(left as usize).max(1), self.scratch);
            self.note_lost(allowed, passed);
        }
        let search = &mut *self.search;
        graph.walk_until_kept(&walk, self.scratch, &mut || search.is_due())
    }

    /// The hits of a walk on allowed nodes only, if they are enough.
    fn walk_over(&mut self, allowed: &Allowed) -> Option<Vec<Neighbour>> {
        let count = allowed.nodes.len();
        let (starts, _) = steps_among(count, self.search.candidates.full);
        self.search.took("filtered_steps");
        let mut starts_at: Vec<u32> = self.scratch.kept.iter().map(|(_, node)| node).collect();
        starts_at.extend(allowed.nodes.iter().step_by(count.div_ceil(starts)));
        let walk = self.walk_for(&allowed.nodes, self.search.candidates.full);
        let search = &mut *self.search;
        let end = self.rows.graph.walk_over(&walk, &starts_at, self.scratch, &mut || search.is_due());
        let (found, is_complete) = self.rescore(Walked::Beam, Wanted::Among(allowed.rows()));
        let is_enough = is_complete || (end == WalkEnd::Done && found.len() >= walk.wanted);
        (end == WalkEnd::Due || is_enough).then_some(found)
    }

    /// The hits of a scan that goes on from a walk on allowed nodes only. A distance bound asks for all rows, which that walk has
    /// not kept.
    fn scan_behind(&mut self, allowed: &Allowed) -> Option<Vec<Neighbour>> {
        if !self.search.distance.is_open() {
            return None;
        }
        self.search.took("exact_fallback");
        self.scan_rest(Walked::Beam, &allowed.nodes);
        let (found, _) = self.rescore(Walked::Beam, Wanted::Among(allowed.rows()));
        let is_enough = found.len() >= self.search.bounds.limit.min(allowed.rows().len());
        (is_enough || self.search.is_partial).then_some(found)
    }

    /// Has the walk begin also where a vector equal to the query stands: it is always found.
    fn start_at_equal(&mut self) {
        let graph = self.graph();
        for &row in graph.rows_with_key(self.search.key) {
            graph.start_at(graph.leader_of(row), self.query, self.scratch);
        }
    }

    /// The step that follows the first walk, where a scan would compare `count` nodes.
    fn next(&self, count: usize, Candidates { first, full }: Candidates) -> Next {
        if self.search.effort < SURE_EFFORT {
            return Next::Answer;
        }
        let doubt = self.doubt();
        let wider = if doubt > 1.0 { (WIDER * full).min(WIDER_MAX).max(full) } else { full };
        let more_effort = full as f32 / first as f32;
        if count as f32 <= more_effort * self.scanned_in(doubt) || count <= scanned_for(wider) {
            Next::Scan
        } else if wider > first {
            Next::Widen(wider)
        } else {
            Next::Answer
        }
    }

    /// The step that follows a walk that has gone on already.
    fn next_at_last(&self, count: usize) -> Next {
        let is_sure = self.search.effort < SURE_EFFORT || count as f32 > self.scanned_in(self.doubt());
        if is_sure { Next::Answer } else { Next::Scan }
    }

    /// Rows that may be scanned after a walk that is in doubt.
    fn scanned_in(&self, doubt: f32) -> f32 {
        doubt.min(1.0) * SCANNED_PER_VISIT * self.scratch.progress.visits as f32
    }

    /// How likely the last walk has missed some of the nearest rows: how late it found the last of those that it did find,
    /// times the local dimension, by which the nodes within a distance grow (Levina and Bickel, "Maximum likelihood
    /// estimation of intrinsic dimension", 2004, from two distances), times how little the walk tells of the nodes around
    /// the query. That is the nodes it met for each that it kept, few where neighbours share their neighbours; or more,
    /// where a query off all clusters has filled the beam with one of them. From 1 on its result is rejected.
    fn doubt(&self) -> f32 {
        const INNER: usize = 16;
        const UNTOLD_DIMENSIONS: f32 = 6.0;
        let beam = &self.scratch.beam;
        let kept = beam.iter().count();
        let [inner, outer] = [kept / INNER, kept].map(|count| self.squared_distance(beam.cost_of(count)));
        let dimension = 2.0 * (INNER as f32).ln() / (outer / inner).ln();
        let progress = &self.scratch.progress;
        let untold = (progress.visits as f32 / kept as f32).max(dimension / UNTOLD_DIMENSIONS);
        // Nodes at the same distance tell nothing.
        if dimension.is_finite() { progress.until_last_find() * dimension * untold / DOUBTFUL } else { 0.0 }
    }

    /// Square of the distance, or a multiple of it, by which the graph was linked.
    fn squared_distance(&self, cost: f32) -> f32 {
        match self.search.metric {
            Metric::L2Squared | Metric::Cosine => cost,
            Metric::InnerProduct => {
                let norm: f32 = self.search.query.iter().map(|value| value * value).sum();
                norm + self.graph().longest.powi(2) + 2.0 * cost
            }
        }
    }

    /// The rows at these nodes.
    fn rows_at(&mut self, nodes: &[u32], wanted: Wanted<'_>, found: Vec<Neighbour>) -> (Vec<Neighbour>, Option<f32>) {
        let (rows, query) = (self.rows, self.query);
        let mut rescoring =
            Rescoring { search: &mut *self.search, rows, query, wanted, scratch: &mut *self.scratch, found };
        let last_cost = rescoring.nodes(nodes);
        (rescoring.found, last_cost)
    }

    /// Exact distances of the rows at the nearest wanted nodes of the beam, and whether rows further away are of no interest.
    fn rescore(&mut self, walked: Walked, wanted: Wanted<'_>) -> (Vec<Neighbour>, bool) {
        let has_bounds = !self.search.distance.is_open();
        let count = if has_bounds { usize::MAX } else { rescored_for(self.search.bounds.limit) };
        let graph = self.graph();
        let beam = walked.beam(self.scratch);
        let nodes: Vec<u32> =
            beam.iter().map(|(_, node)| node).filter(|&node| wanted.has_at(graph, node)).take(count).collect();
        let (found, last_cost) = self.rows_at(&nodes, wanted, Vec::new());
        let distance = last_cost.map(|cost| self.search.metric.distance(cost));
        let is_beyond = |distance: f32| self.search.distance.under.is_some_and(|under| distance > under);
        (found, has_bounds && distance.is_some_and(is_beyond))
    }

    /// The rows nearest to the query that stand at the nodes, by codes first when they are many.
    fn scan(&mut self, nodes: &BitSet, wanted: Wanted<'_>) -> Vec<Neighbour> {
        if nodes.len() <= EXACT_NODES_MAX || !self.search.distance.is_open() {
            let all: Vec<u32> = nodes.iter().collect();
            let mut found = Vec::new();
            for nodes in all.chunks(NODES_BETWEEN_LOOKS) {
                if self.search.is_due() {
                    break;
                }
                found = self.rows_at(nodes, wanted, found).0;
            }
            return found;
        }
        let limit = self.search.bounds.limit;
        self.scratch.beam.reset(rescored_for(limit) + limit);
        self.scratch.forget(self.rows.len());
        self.scan_rest(Walked::Beam, nodes);
        self.rescore(Walked::Beam, wanted).0
    }

    /// Offers those of the nodes that the walk has not met.
    fn scan_rest(&mut self, walked: Walked, nodes: &BitSet) {
        let mut beam = std::mem::take(walked.beam(self.scratch));
        self.graph().offer_passed(nodes, self.scratch, &mut beam);
        for words in (0..nodes.words().len()).step_by(NODES_BETWEEN_LOOKS / 64) {
            if self.search.is_due() {
                break;
            }
            let end = (words + NODES_BETWEEN_LOOKS / 64).min(nodes.words().len());
            self.graph().scan(self.query, nodes, words..end, self.scratch, &mut beam);
        }
        *walked.beam(self.scratch) = beam;
    }
}
