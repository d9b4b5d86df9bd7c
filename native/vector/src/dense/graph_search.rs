//! The search of one graph: which way to take, and the exact distances of what it finds.

use super::graph::{CodedQuery, FilteredWalk, Graph, Scratch, WalkEnd};
use super::graph_rows::GraphRows;
use super::nearest::Found;
use super::options::Metric;
use super::search::Search;
use crate::bit_set::BitSet;

/// Rows that are compared exactly rather than by their codes first.
const EXACT_ROWS_MAX: usize = 256;

/// Rows between two looks at the clock.
const ROWS_BETWEEN_LOOKS: usize = 4096;

/// Candidates of a walk by effort: 12 at 0, 48 at 0.25, 192 at 0.5, 768 at 0.75, 3,072 at 1, and as many more as hits
/// are wanted; twice as many for the inner product, whose nearest rows are less often neighbours of one another.
pub fn candidates_for(metric: Metric, effort: f32, limit: usize) -> usize {
    let candidates = (12.0 * 256f32.powf(effort)) as usize + limit;
    if metric == Metric::InnerProduct { 2 * candidates } else { candidates }
}

/// Candidates of a walk through one of several graphs: fewer where fewer of the hits are to be expected.
pub fn candidates_in(rows: usize, all_rows: usize, candidates: usize, limit: usize) -> usize {
    let share = (rows as f64 / all_rows.max(1) as f64).sqrt().max(0.25);
    limit + (candidates.saturating_sub(limit) as f64 * share) as usize
}

/// Candidates whose exact distance is computed.
fn rescored_for(limit: usize) -> usize {
    3 * limit + 20
}

/// Rows whose scan costs what a walk costs for each candidate that it keeps, and before it has kept any: a scan knows
/// where it goes next.
const SCANNED_PER_CANDIDATE: usize = 20;
const SCANNED_PER_WALK: usize = 1200;

/// Allowed rows from all over the graph at which a walk starts when it finds none near the query.
const SAMPLED_STARTS: usize = 2048;

/// Of so many allowed rows one is such a start, at most.
const ROWS_PER_START: usize = 16;

/// Efforts from which on a walk that is likely to have missed rows is not believed; the default one is among them.
const SURE_EFFORT: f32 = 0.5;

/// Such a walk is followed by a scan of at most so many times the rows whose scan costs what the walk did: at twice this,
/// the few hard queries of 100,000 clustered rows cost more than all others together, for one percent of recall.
const SURE_SCAN_COST: usize = 8;

/// How hard a walk has to be found for that, as `hardness` tells. Recall of the 10 nearest with 202 candidates by its median:
/// clustered rows 0.99 at 200 to 300, word vectors 0.98 at 550, structureless rows 0.97 at 640, 0.91 at 940, 0.63 at 1,260.
const HARD: f32 = 500.0;

/// Nodes of the upper layers that a walk begins at, at most.
const STARTS_MAX: usize = 64;

/// Where so many of the starts would be allowed if the allowed ones lay everywhere, and none is, a walk among all nodes
/// would find next to none.
const STARTS_TELL: f32 = 3.0;

/// Nodes of the upper layers that a walk with so many candidates begins at: a way that begins at the nearest alone ends in
/// the cluster of that one, however near others are.
fn starts_for(candidates: usize) -> usize {
    (candidates / 8).clamp(1, STARTS_MAX)
}

/// Rows whose scan costs what a walk with so many candidates costs.
pub fn scanned_for(candidates: usize) -> usize {
    SCANNED_PER_WALK + SCANNED_PER_CANDIDATE * candidates
}

/// Nodes that a walk covers for each that lies no further away than the last wanted one, beside its candidates.
fn around(effort: f32) -> f32 {
    1.0 + 2.0 * effort
}

/// Nodes in the ball around a query that holds `wanted` rows well within it, if the `count` allowed of `rows` lie everywhere.
fn ball_for(candidates: usize, effort: f32, wanted: usize, count: usize, rows: usize) -> usize {
    candidates + (around(effort) * (wanted * rows / count.max(1)) as f32) as usize
}

/// Rows whose scan costs about what a search among the `count` allowed of `rows` costs.
pub fn scanned_among(candidates: usize, effort: f32, limit: usize, count: usize, rows: usize) -> usize {
    count.min(scanned_for(ball_for(candidates, effort, limit.min(count), count, rows)))
}

/// Which of the beams holds what a walk has found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Walked {
    Beam,
    Kept,
}

/// One graph under search.
pub struct GraphSearch<'s, 'a> {
    pub search: &'s mut Search<'a>,
    pub rows: &'s GraphRows,
    pub dead: &'s BitSet,
    pub query: CodedQuery,
    pub scratch: &'s mut Scratch,
}

impl GraphSearch<'_, '_> {
    fn graph(&self) -> &Graph {
        &self.rows.graph
    }

    pub fn run(mut self) {
        let found = match self.search.bounds.allowed {
            None => self.unfiltered(),
            Some(allowed) => {
                let places = self.rows.places_of(allowed, self.dead);
                self.filtered(&places)
            }
        };
        self.search.report.visited += std::mem::take(&mut self.scratch.visits);
        for found in found {
            self.search.offer(found);
        }
    }

    fn unfiltered(&mut self) -> Vec<Found> {
        let (rows, live) = (self.rows.len(), self.rows.len() - self.dead.len());
        let mut limit = self.search.candidates * rows / live.max(1);
        while limit < rows / 8 && live > scanned_for(limit) {
            self.search.took("graph");
            let (graph, query) = (&self.rows.graph, &self.query);
            graph.descend(query, 0, starts_for(limit), self.scratch);
            let search = &mut *self.search;
            if !graph.walk(query, 0, limit, self.scratch, &mut || search.is_due()) {
                return self.rescore(Walked::Beam, |_| true).0;
            }
            let dead = self.dead;
            let (found, is_complete) = self.rescore(Walked::Beam, |place| !dead.contains(place));
            if self.misses_rows(live) {
                break;
            }
            if is_complete || found.len() >= self.search.bounds.limit.min(live) {
                return found;
            }
            limit *= 4;
        }
        self.search.took("exact_fallback");
        let dead = self.dead;
        self.scan((0..rows as u32).filter(|&place| !dead.contains(place)), live)
    }

    fn filtered(&mut self, allowed: &BitSet) -> Vec<Found> {
        let (rows, count) = (self.rows.len(), allowed.len());
        let limit = self.search.bounds.limit;
        let wanted = limit.min(count);
        let candidates = self.search.candidates;
        let scanned = scanned_among(candidates, self.search.effort, limit, count, rows);
        if count <= EXACT_ROWS_MAX || count == scanned || self.search.has_inner_bound() {
            self.search.took("scan");
            return self.scan(allowed.iter(), count);
        }
        self.search.took("filtered_graph");
        let starts = (count / ROWS_PER_START).min(SAMPLED_STARTS);
        let steps = starts + 2 * scanned_for(candidates);
        let balls = |scanned: usize| scanned.saturating_sub(SCANNED_PER_WALK) / SCANNED_PER_CANDIDATE;
        let (graph, query) = (&self.rows.graph, &self.query);
        let walk = FilteredWalk {
            query,
            allowed,
            candidates,
            around: around(self.search.effort),
            wanted,
            ball_max: balls(2 * count),
            thin_ball_max: balls(count.min(steps)),
            kept: rescored_for(limit),
            budget: count as u64,
        };
        let share = count as f32 / rows as f32;
        let told_by = (STARTS_TELL / share).min(STARTS_MAX as f32) as usize;
        graph.descend(query, 0, starts_for(candidates).max(told_by), self.scratch);
        self.scratch.kept.reset(rescored_for(limit));
        let near = self.scratch.starts.iter().filter(|(_, place)| allowed.contains(*place)).count();
        let search = &mut *self.search;
        let end = if near == 0 && share * self.scratch.starts.len() as f32 >= STARTS_TELL {
            WalkEnd::OverBudget
        } else {
            graph.walk_until_kept(&walk, self.scratch, &mut || search.is_due())
        };
        if end != WalkEnd::OverBudget {
            let (found, is_complete) = self.rescore(Walked::Kept, |_| true);
            let is_enough = (is_complete || found.len() >= wanted) && !self.misses_rows(count);
            if end == WalkEnd::Due || is_enough {
                return found;
            }
        } else if count > steps {
            self.search.took("filtered_steps");
            let mut starts_at: Vec<u32> = self.scratch.kept.iter().map(|(_, place)| place).collect();
            starts_at.extend(allowed.iter().step_by(count.div_ceil(starts)));
            let search = &mut *self.search;
            let end = graph.walk_over(&walk, &starts_at, self.scratch, &mut || search.is_due());
            let (found, is_complete) = self.rescore(Walked::Beam, |place| allowed.contains(place));
            if end == WalkEnd::Due || is_complete || (end == WalkEnd::Done && found.len() >= wanted) {
                return found;
            }
        }
        self.search.took("exact_fallback");
        self.scan(allowed.iter(), count)
    }

    /// Whether the walk that has filled the beam is likely to have missed some of the nearest, and a scan of `count` rows
    /// is worth its cost.
    fn misses_rows(&self, count: usize) -> bool {
        self.search.effort >= SURE_EFFORT
            && count <= SURE_SCAN_COST * scanned_for(self.scratch.beam.limit())
            && self.hardness() > HARD
    }

    /// How little the walk that has filled the beam tells of the rows around the query: the nodes it met for each that it
    /// kept, few where neighbours share their neighbours, times the local dimension, by which the nodes within a distance
    /// grow (Levina and Bickel, "Maximum likelihood estimation of intrinsic dimension", 2004, from two distances).
    fn hardness(&self) -> f32 {
        const INNER: usize = 16;
        let beam = &self.scratch.beam;
        let kept = beam.iter().count();
        let [inner, outer] = [kept / INNER, kept].map(|count| self.squared_distance(beam.cost_of(count)));
        let dimension = 2.0 * (INNER as f32).ln() / (outer / inner).ln();
        // Nodes at the same distance tell nothing.
        if dimension.is_finite() { dimension * self.scratch.visits as f32 / kept as f32 } else { 0.0 }
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

    fn found(&self, place: u32) -> Found {
        let graph = self.graph();
        let cost = self.search.metric.cost(self.search.query, self.rows.vector(place));
        Found { cost, ordinal: graph.ordinal(place), sequence: graph.sequence(place) }
    }

    fn accepts(&self, found: &Found) -> bool {
        self.search.distance.accept(self.search.metric.distance(found.cost))
    }

    /// Whether no row further away than this one can be accepted.
    fn is_beyond(&self, found: &Found) -> bool {
        let (metric, bounds) = (self.search.metric, self.search.distance);
        let distance = metric.distance(found.cost);
        match metric {
            Metric::InnerProduct => bounds.over.is_some_and(|over| distance < over),
            _ => bounds.under.is_some_and(|under| distance > under),
        }
    }

    /// Exact distances of the nearest kept nodes of the beam, and whether rows further away are of no interest.
    fn rescore(&mut self, walked: Walked, is_wanted: impl Fn(u32) -> bool) -> (Vec<Found>, bool) {
        let has_bounds = !self.search.distance.is_open();
        let count = if has_bounds { usize::MAX } else { rescored_for(self.search.bounds.limit) };
        let beam = if walked == Walked::Kept { &self.scratch.kept } else { &self.scratch.beam };
        let places: Vec<u32> =
            beam.iter().map(|(_, place)| place).filter(|&place| is_wanted(place)).take(count).collect();
        self.search.report.candidates += places.len() as u64;
        places.iter().for_each(|&place| self.rows.prefetch(place));
        let mut found: Vec<Found> = places.into_iter().map(|place| self.found(place)).collect();
        let is_complete = has_bounds && found.last().is_some_and(|last| self.is_beyond(last));
        found.retain(|found| self.accepts(found));
        (found, is_complete)
    }

    /// The nearest of the places, `count` of them, by their codes first when they are many.
    fn scan(&mut self, places: impl Iterator<Item = u32>, count: usize) -> Vec<Found> {
        let has_bounds = !self.search.distance.is_open();
        if count <= EXACT_ROWS_MAX || has_bounds {
            self.search.report.candidates += count as u64;
            let mut scanned = Vec::with_capacity(count.min(EXACT_ROWS_MAX));
            for (place, at) in places.zip(0usize..) {
                if at.is_multiple_of(ROWS_BETWEEN_LOOKS) && self.search.is_due() {
                    break;
                }
                let found = self.found(place);
                if self.accepts(&found) {
                    scanned.push(found);
                }
            }
            return scanned;
        }
        self.scratch.beam.reset(rescored_for(self.search.bounds.limit) + self.search.bounds.limit);
        let mut places = places.peekable();
        while places.peek().is_some() && !self.search.is_due() {
            for _ in 0..ROWS_BETWEEN_LOOKS / 32 {
                self.scratch.fresh.clear();
                self.scratch.fresh.extend(places.by_ref().take(32));
                self.scratch.fresh.iter().for_each(|&place| self.rows.graph.prefetch(place));
                self.rows.graph.weigh_fresh(&self.query, self.scratch);
            }
        }
        self.rescore(Walked::Beam, |_| true).0
    }
}
