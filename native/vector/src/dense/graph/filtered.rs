//! Walks that look for allowed nodes only.
//!
//! `walk_until_kept` steps on every node and widens until enough allowed ones lie within the ball that it has covered:
//! right where a fair share of the nodes near the query is allowed. `walk_over` steps on allowed nodes only, and where a
//! neighbour is not allowed, its own neighbours stand in for it (after Patel et al., "ACORN: performant and
//! predicate-agnostic search over vector embeddings and structured data", 2024): right where the region around the query
//! is not allowed.

use super::codes::CodedQuery;
use super::storage::Graph;
use super::walk::{NEAREST, Progress, Scratch};
use sundew_base::bit_set::BitSet;

/// Neighbours that a step of `walk_over` gathers before it stops looking behind those that are not allowed.
const GATHERED_ENOUGH: usize = 32;

/// Candidates of a walk before it knows how many nodes near the query are allowed.
const FIRST_BALL: usize = 12;

/// Allowed nodes that the share of them in the whole graph counts for beside those met near the query.
const EXPECTED_WEIGHT: f32 = 4.0;

/// How a walk ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WalkEnd {
    Done,
    /// More was lost than it was worth, or would be.
    OverBudget,
    Due,
}

/// The parameters of a walk among allowed nodes.
pub struct FilteredWalk<'a> {
    pub query: &'a CodedQuery,
    pub allowed: &'a BitSet,
    /// Nodes that the walk keeps at least while it finds its way.
    pub candidates: usize,
    /// Nodes that a walk covers for each that lies no further away than the last wanted one, beside its candidates.
    pub around: f32,
    /// Allowed nodes that must lie well within the ball that the walk covers.
    pub wanted: usize,
    /// Nodes in a ball beyond which the search has a cheaper way.
    pub ball_max: usize,
    /// The same where far fewer nodes are allowed near the query than elsewhere.
    pub thin_ball_max: usize,
    /// Allowed nodes that are kept, the nearest; at least the wanted ones.
    pub kept: usize,
    /// Comparisons that may be lost for a scan that follows.
    pub lost_max: u64,
}

impl FilteredWalk<'_> {
    #[inline(always)]
    fn keep(&self, node: u32, cost: f32, scratch: &mut Scratch) {
        // The cost first, because it is the better guess: few nodes are among the nearest, half may be allowed.
        if cost < scratch.kept.bound() && self.allowed.contains(node) {
            scratch.kept.insert(cost, node);
        }
        let out = if cost < scratch.beam.bound() { scratch.beam.insert(cost, node) } else { Some((cost, node)) };
        scratch.spilled.extend(out);
    }
}

impl Graph {
    /// Forgets earlier walks.
    pub fn begin_until_kept(&self, walk: &FilteredWalk<'_>, scratch: &mut Scratch) {
        scratch.forget(self.layout.rows);
        // Small, so that a region without allowed nodes is soon known for one.
        scratch.beam.reset(walk.candidates.min(FIRST_BALL) + (walk.around * walk.wanted as f32) as usize);
        scratch.kept.reset(walk.kept);
        scratch.spilled.clear();
    }

    /// Fills `kept` with the nearest allowed nodes around a walk that goes on from `scratch.starts` too.
    pub fn walk_until_kept(
        &self,
        walk: &FilteredWalk<'_>,
        scratch: &mut Scratch,
        is_due: &mut dyn FnMut() -> bool,
    ) -> WalkEnd {
        for at in 0..scratch.starts.len() {
            let (cost, node) = scratch.starts[at];
            if scratch.meet(node) {
                walk.keep(node, cost, scratch);
            }
        }
        let mut progress = Progress::begin();
        loop {
            while let Some(node) = scratch.beam.next() {
                if progress.is_look_due() && is_due() {
                    return WalkEnd::Due;
                }
                self.meet_linked(node, 0, scratch);
                self.weigh_and_keep(walk, scratch);
                progress.step(scratch.fresh.len(), scratch.kept.cost_of(NEAREST.min(walk.wanted)));
                if scratch.lost > walk.lost_max {
                    return WalkEnd::OverBudget;
                }
            }
            // The nearest allowed nodes may lie at the rim of the ball, where a walk misses some: the ball must reach beyond
            // the last of them by as many nodes as lie within, or more, and by as many as any walk keeps.
            let reach = scratch.kept.cost_of(walk.wanted);
            let (limit, bound) = (scratch.beam.limit(), scratch.beam.bound());
            let within = scratch.kept.count_within(bound) as f32;
            let share = walk.allowed.len() as f32 / self.layout.rows as f32;
            let is_thin = within < share * limit as f32 / 8.0;
            let wanted = walk.wanted as f32;
            let covered = match reach <= bound {
                true => scratch.beam.count_within(reach) as f32,
                // The number of nodes that hold the wanted ones if as large a share of them is allowed as of those met.
                false if is_thin => wanted * limit as f32 / within.max(0.5),
                false => wanted * (limit as f32 + EXPECTED_WEIGHT / share) / (within + EXPECTED_WEIGHT),
            };
            let needed = (walk.around * covered) as usize + walk.candidates;
            if (reach <= bound && needed <= limit) || scratch.spilled.is_empty() {
                scratch.progress = progress;
                return WalkEnd::Done;
            }
            if needed > if is_thin { walk.thin_ball_max } else { walk.ball_max } {
                return WalkEnd::OverBudget;
            }
            scratch.widen(needed.clamp(limit + limit / 8 + 1, 4 * limit));
        }
    }

    #[inline(always)]
    fn weigh_and_keep(&self, walk: &FilteredWalk<'_>, scratch: &mut Scratch) {
        self.costs(walk.query, &scratch.fresh, &mut scratch.dots, &mut scratch.costs);
        scratch.visits += scratch.fresh.len() as u64;
        scratch.lost += scratch.fresh.iter().filter(|&&node| !walk.allowed.contains(node)).count() as u64;
        for at in 0..scratch.fresh.len() {
            walk.keep(scratch.fresh[at], scratch.costs[at], scratch);
        }
        if let Some(next) = scratch.beam.peek() {
            self.prefetch_links(next);
        }
    }

    /// Fills the beam with the nearest allowed nodes that a walk from `starts` meets, which should be allowed themselves: others
    /// would displace hits.
    pub fn walk_over(
        &self,
        walk: &FilteredWalk<'_>,
        starts: &[u32],
        scratch: &mut Scratch,
        is_due: &mut dyn FnMut() -> bool,
    ) -> WalkEnd {
        scratch.forget(self.layout.rows);
        scratch.lost = scratch.visits;
        scratch.beam.reset(walk.candidates.max(walk.kept));
        scratch.fresh.clear();
        for &start in starts {
            if scratch.meet(start) {
                scratch.fresh.push(start);
            }
        }
        self.weigh_fresh::<false>(walk.query, scratch);
        let mut progress = Progress::begin();
        let mut bridges = Vec::new();
        while let Some(node) = scratch.beam.next() {
            if progress.is_look_due() && is_due() {
                return WalkEnd::Due;
            }
            self.meet_allowed(node, walk.allowed, scratch, &mut bridges);
            self.weigh_fresh::<false>(walk.query, scratch);
            progress.step(scratch.fresh.len(), scratch.beam.cost_of(NEAREST.min(walk.wanted)));
            if scratch.lost > walk.lost_max {
                return WalkEnd::OverBudget;
            }
        }
        WalkEnd::Done
    }

    /// Gathers the allowed nodes one or two links away that are met for the first time.
    fn meet_allowed(&self, node: u32, allowed: &BitSet, scratch: &mut Scratch, bridges: &mut Vec<u32>) {
        scratch.fresh.clear();
        bridges.clear();
        for other in self.linked(node, 0) {
            if scratch.has_met(other) {
                continue;
            }
            if allowed.contains(other) {
                scratch.meet(other);
                self.prefetch(other);
                scratch.fresh.push(other);
            } else {
                self.prefetch_links(other);
                bridges.push(other);
            }
        }
        for &bridge in bridges.iter() {
            if scratch.fresh.len() >= GATHERED_ENOUGH {
                break;
            }
            scratch.meet(bridge);
            scratch.visits += 1;
            scratch.lost += 1;
            for other in self.linked(bridge, 0) {
                if allowed.contains(other) && scratch.meet(other) {
                    self.prefetch(other);
                    scratch.fresh.push(other);
                }
            }
        }
    }
}

impl Scratch {
    /// Makes the beam wider and fills it with the nearest of what had no room.
    pub fn widen(&mut self, limit: usize) {
        let room = limit.saturating_sub(self.beam.limit());
        self.beam.widen(limit.max(self.beam.limit()));
        if self.spilled.len() > room {
            self.spilled.select_nth_unstable_by(room, |a, b| a.0.total_cmp(&b.0));
        }
        let nearest = room.min(self.spilled.len());
        for (cost, node) in self.spilled.drain(..nearest) {
            self.beam.insert(cost, node);
        }
    }
}
