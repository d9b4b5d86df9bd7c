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

/// How doubtful a walk has to be for that, as `doubt` tells. In sets of 100,000 rows this holds for nearly all queries where
/// rows lie anywhere in 128 dimensions and for eight in ten in 64; among clustered rows for nearly all queries off the
/// clusters and one in ten of the others; among word vectors for one in a hundred.
const DOUBTFUL: f32 = 500.0;

/// Such a walk is followed by a scan of at most so many rows for each node whose cost it has computed, fewer where there is
/// less doubt. That takes six times as long as the walk.
const SCANNED_PER_VISIT: f32 = 12.0;

/// Where more rows are left, a second walk keeps so many times as many candidates.
const WIDER: usize = 4;

/// Candidates of a second walk, at most: to keep more in order costs more than to find them.
const WIDER_MAX: usize = 4096;

/// Nodes of the upper layers that a walk begins at, at most.
const STARTS_MAX: usize = 64;

/// The same for a second walk: where a query lies off all clusters, its nearest rows lie at the rims of many, and only the
/// upper layers lead from one to another.
const WIDER_STARTS_MAX: usize = 512;

/// Where so many of the starts would be allowed if the allowed ones lay everywhere, and none is, a walk among all nodes
/// would find next to none.
const STARTS_TELL: f32 = 3.0;

/// Nodes of the upper layers that a walk with so many candidates begins at: a way that begins at the nearest alone ends in
/// the cluster of that one, however near others are.
fn starts_for(candidates: usize) -> usize {
    (candidates / 8).clamp(1, STARTS_MAX)
}

fn wider_starts_for(candidates: usize) -> usize {
    (candidates / 2).min(WIDER_STARTS_MAX)
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

/// What follows a walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    Answer,
    Widen,
    Scan,
}

/// One graph under search.
pub struct GraphSearch<'s, 'a> {
    pub search: &'s mut Search<'a>,
    pub rows: &'s GraphRows,
    pub dead: &'s BitSet,
    pub query: &'s CodedQuery,
    pub scratch: &'s mut Scratch,
    /// What a first walk has found, for when the time is over before a better answer is there.
    pub earlier: Vec<Found>,
}

impl<'s> GraphSearch<'s, '_> {
    fn graph(&self) -> &'s Graph {
        &self.rows.graph
    }

    pub fn run(mut self) {
        let mut found = match self.search.bounds.allowed {
            None => self.unfiltered(),
            Some(allowed) => {
                let places = self.rows.places_of(allowed, self.dead);
                self.filtered(&places)
            }
        };
        if self.search.is_partial && !self.earlier.is_empty() {
            found = std::mem::take(&mut self.earlier);
        }
        self.search.report.visited += std::mem::take(&mut self.scratch.visits);
        for found in found {
            self.search.offer(found);
        }
    }

    fn unfiltered(&mut self) -> Vec<Found> {
        let (rows, live) = (self.rows.len(), self.rows.len() - self.dead.len());
        let first = self.search.candidates * rows / live.max(1);
        let mut limit = first;
        while limit < rows / 8 && live > scanned_for(limit) {
            self.search.took("graph");
            let (graph, query) = (self.graph(), self.query);
            let starts = if limit == first { starts_for(limit) } else { wider_starts_for(limit) };
            graph.descend(query, 0, starts, self.scratch);
            let search = &mut *self.search;
            if !graph.walk(query, 0, limit, self.scratch, &mut || search.is_due()) {
                return self.rescore(Walked::Beam, |_| true).0;
            }
            let next = self.next(live, limit, limit == first);
            let dead = self.dead;
            let (found, is_complete) = self.rescore(Walked::Beam, |place| !dead.contains(place));
            if next == Next::Answer && (is_complete || found.len() >= self.search.bounds.limit.min(live)) {
                return found;
            }
            self.earlier = found;
            if next == Next::Scan {
                break;
            }
            limit *= WIDER;
        }
        self.search.took("exact_fallback");
        let dead = self.dead;
        self.scan((0..rows as u32).filter(|&place| !dead.contains(place)), live)
    }

    fn filtered(&mut self, allowed: &BitSet) -> Vec<Found> {
        let (rows, count) = (self.rows.len(), allowed.len());
        let limit = self.search.bounds.limit;
        let first = self.search.candidates;
        let scanned = scanned_among(first, self.search.effort, limit, count, rows);
        if count <= EXACT_ROWS_MAX || count == scanned || self.search.has_inner_bound() {
            self.search.took("scan");
            return self.scan(allowed.iter(), count);
        }
        for candidates in [first, WIDER * first] {
            self.search.took("filtered_graph");
            let end = self.walk_until_kept(allowed, candidates, candidates == first);
            if end == WalkEnd::OverBudget {
                if candidates == first
                    && let Some(found) = self.walk_over(allowed)
                {
                    return found;
                }
                break;
            }
            let next = self.next(count, candidates, candidates == first);
            let (found, is_complete) = self.rescore(Walked::Kept, |_| true);
            let is_enough = is_complete || found.len() >= limit.min(count);
            if end == WalkEnd::Due || (next == Next::Answer && is_enough) {
                return found;
            }
            self.earlier = found;
            if next != Next::Widen {
                break;
            }
        }
        self.search.took("exact_fallback");
        self.scan(allowed.iter(), count)
    }

    /// Rows from which a walk that steps on allowed ones only begins, and rows whose scan costs what that walk does.
    fn steps_among(&self, count: usize) -> (usize, usize) {
        let starts = (count / ROWS_PER_START).min(SAMPLED_STARTS);
        (starts, starts + 2 * scanned_for(self.search.candidates))
    }

    fn walk_for<'w>(&self, allowed: &'w BitSet, candidates: usize) -> FilteredWalk<'w>
    where
        's: 'w,
    {
        let (count, limit) = (allowed.len(), self.search.bounds.limit);
        let balls = |scanned: usize| scanned.saturating_sub(SCANNED_PER_WALK) / SCANNED_PER_CANDIDATE;
        FilteredWalk {
            query: self.query,
            allowed,
            candidates,
            around: around(self.search.effort),
            wanted: limit.min(count),
            ball_max: balls(2 * count),
            thin_ball_max: balls(count.min(self.steps_among(count).1)),
            kept: rescored_for(limit),
            budget: count as u64,
        }
    }

    /// A walk on all nodes that fills `kept`.
    fn walk_until_kept(&mut self, allowed: &BitSet, candidates: usize, is_first: bool) -> WalkEnd {
        let share = allowed.len() as f32 / self.rows.len() as f32;
        let told_by = (STARTS_TELL / share).min(STARTS_MAX as f32) as usize;
        let starts = if is_first { starts_for(candidates).max(told_by) } else { wider_starts_for(candidates) };
        self.graph().descend(self.query, 0, starts, self.scratch);
        self.scratch.kept.reset(rescored_for(self.search.bounds.limit));
        let near = self.scratch.starts.iter().filter(|(_, place)| allowed.contains(*place)).count();
        if near == 0 && share * self.scratch.starts.len() as f32 >= STARTS_TELL {
            return WalkEnd::OverBudget;
        }
        let walk = self.walk_for(allowed, candidates);
        let search = &mut *self.search;
        self.rows.graph.walk_until_kept(&walk, self.scratch, &mut || search.is_due())
    }

    /// What a walk on allowed nodes only finds, if it finds enough and costs less than a scan.
    fn walk_over(&mut self, allowed: &BitSet) -> Option<Vec<Found>> {
        let count = allowed.len();
        let (starts, scanned) = self.steps_among(count);
        if count <= scanned {
            return None;
        }
        self.search.took("filtered_steps");
        let mut starts_at: Vec<u32> = self.scratch.kept.iter().map(|(_, place)| place).collect();
        starts_at.extend(allowed.iter().step_by(count.div_ceil(starts)));
        let walk = self.walk_for(allowed, self.search.candidates);
        let search = &mut *self.search;
        let end = self.rows.graph.walk_over(&walk, &starts_at, self.scratch, &mut || search.is_due());
        let (found, is_complete) = self.rescore(Walked::Beam, |place| allowed.contains(place));
        let is_enough = is_complete || (end == WalkEnd::Done && found.len() >= walk.wanted);
        (end == WalkEnd::Due || is_enough).then_some(found)
    }

    /// What follows a walk with so many candidates that has filled the beam, where a scan would compare `count` rows.
    fn next(&self, count: usize, candidates: usize, is_first: bool) -> Next {
        if self.search.effort < SURE_EFFORT {
            return Next::Answer;
        }
        let doubt = self.doubt() / DOUBTFUL;
        let visits = self.scratch.progress.visits as f32;
        if count as f32 <= doubt.min(1.0) * SCANNED_PER_VISIT * visits {
            Next::Scan
        } else if doubt > 1.0 && is_first && WIDER * candidates <= WIDER_MAX {
            Next::Widen
        } else {
            Next::Answer
        }
    }

    /// How likely the last walk has missed some of the nearest rows: how late it found the last of those that it did find,
    /// times the local dimension, by which the nodes within a distance grow (Levina and Bickel, "Maximum likelihood
    /// estimation of intrinsic dimension", 2004, from two distances), times how little the walk tells of the nodes around
    /// the query. That is the nodes it met for each that it kept, few where neighbours share their neighbours; or more,
    /// where a query off all clusters has filled the beam with one of them.
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
        if dimension.is_finite() { progress.until_last_find() * dimension * untold } else { 0.0 }
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
                self.rows.graph.weigh_fresh(self.query, self.scratch);
            }
        }
        self.rescore(Walked::Beam, |_| true).0
    }
}
