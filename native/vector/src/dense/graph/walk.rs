//! Walks through a graph.

use std::sync::atomic::Ordering;

use super::beam::Beam;
use super::codes::CodedQuery;
use super::storage::Graph;
use sundew_base::bit_set::BitSet;

/// Steps between two looks at the clock.
const STEPS_BETWEEN_LOOKS: u64 = 256;

/// The nearest nodes of a walk, by which it is told when it has stopped finding nearer ones.
pub const NEAREST: usize = 10;

/// The working memory of a walk; kept between walks because it is large.
#[derive(Default)]
pub struct Scratch {
    pub beam: Beam,
    /// The nearest allowed nodes of a walk that steps on others too.
    pub kept: Beam,
    /// The nearest copies of one node.
    pub copies: Beam,
    /// Nodes that were met and did not fit into the beam.
    pub spilled: Vec<(f32, u32)>,
    /// Nodes that a walk begins at, with their costs.
    pub starts: Vec<(f32, u32)>,
    /// Nodes that the walk has met.
    visited: Vec<u64>,
    /// The same one by one, in the upper layers.
    met: Vec<u32>,
    /// Nodes of the upper layers that were compared on the way down, with their costs.
    pub passed: Vec<(u32, f32)>,
    /// Those of an earlier way down, in order: a later one does not compare them again.
    known: Vec<(u32, f32)>,
    pub fresh: Vec<u32>,
    pub costs: Vec<f32>,
    pub dots: Vec<i32>,
    /// Nodes whose cost was computed, since the caller last set it to 0.
    pub visits: u64,
    /// Under a filter: what a scan of the allowed nodes would have to pay in addition, because it was spent on other nodes or
    /// will be spent on the same ones once more.
    pub lost: u64,
    pub progress: Progress,
}

/// How the last walk came by the nearest nodes that it found.
#[derive(Debug, Default, Clone, Copy)]
pub struct Progress {
    /// Nodes whose cost was computed.
    pub visits: u64,
    steps: u64,
    /// The step that found the last of the nearest.
    last_find: u64,
    /// The cost of the last of the nearest.
    reach: f32,
}

impl Progress {
    pub fn begin() -> Self {
        Self { reach: f32::INFINITY, ..Self::default() }
    }

    /// After a step that has computed the cost of `visits` nodes, with what the last of the nearest costs now.
    #[inline(always)]
    pub fn step(&mut self, visits: usize, reach: f32) {
        self.steps += 1;
        self.visits += visits as u64;
        if reach < self.reach {
            (self.reach, self.last_find) = (reach, self.steps);
        }
    }

    /// Whether it is time to look at the clock.
    #[inline(always)]
    pub fn is_look_due(&self) -> bool {
        self.steps % STEPS_BETWEEN_LOOKS == STEPS_BETWEEN_LOOKS - 1
    }

    /// The share of the steps up to the one that found the last of the nearest: small where most of them found nothing.
    pub fn until_last_find(&self) -> f32 {
        self.last_find as f32 / self.steps.max(1) as f32
    }
}

impl Scratch {
    pub fn forget(&mut self, rows: usize) {
        self.visited.clear();
        self.visited.resize(rows.div_ceil(64), 0);
    }

    #[inline(always)]
    pub fn has_met(&self, node: u32) -> bool {
        self.visited[node as usize / 64] >> (node % 64) & 1 == 1
    }

    /// Whether the node is met for the first time.
    #[inline(always)]
    pub fn meet(&mut self, node: u32) -> bool {
        let word = &mut self.visited[node as usize / 64];
        let bit = 1 << (node % 64);
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }
}

impl Graph {
    /// The nodes that a node is linked to in a layer; a damaged file may name some that do not exist, which are left out.
    #[inline(always)]
    pub fn linked(&self, node: u32, level: u32) -> impl Iterator<Item = u32> + '_ {
        let rows = self.layout.rows as u32;
        let words = self.links(node, level).iter().map(|link| link.load(Ordering::Acquire));
        words.take_while(|&word| word != 0).map(|word| word - 1).filter(move |&node| node < rows)
    }

    /// Makes the query for what is near to a node.
    pub(super) fn query_of(&self, row: u32, query: &mut CodedQuery) {
        let head = self.head(row);
        query.codes.clear();
        query.codes.extend_from_slice(self.codes(row));
        query.weigh(self.metric, head.scale, head.norm);
    }

    /// Goes down to `level`; `scratch.starts` then holds the nodes nearest to the query that were met in the layer above,
    /// at most `width` of them, each with its cost.
    pub fn descend(&self, query: &CodedQuery, level: u32, width: usize, scratch: &mut Scratch) {
        scratch.passed.clear();
        scratch.known.clear();
        self.go_down(query, level, width, scratch);
    }

    fn go_down(&self, query: &CodedQuery, level: u32, width: usize, scratch: &mut Scratch) {
        self.costs(query, &[self.entry], &mut scratch.dots, &mut scratch.costs);
        scratch.starts.clear();
        scratch.starts.push((scratch.costs[0], self.entry));
        if level < self.top_level {
            scratch.forget(self.layout.rows);
        }
        for level in (level + 1..=self.top_level).rev() {
            scratch.beam.reset(width);
            self.walk_on::<false>(query, level, scratch, &mut || false);
            scratch.starts.clear();
            scratch.starts.extend(scratch.beam.iter());
            for node in scratch.met.drain(..) {
                scratch.visited[node as usize / 64] &= !(1 << (node % 64));
            }
        }
    }

    /// Fills the beam with the `limit` nearest nodes of a layer that a walk from `scratch.starts` meets. False when
    /// `is_due` ended it.
    pub fn walk(
        &self,
        query: &CodedQuery,
        level: u32,
        limit: usize,
        scratch: &mut Scratch,
        is_due: &mut dyn FnMut() -> bool,
    ) -> bool {
        scratch.forget(self.layout.rows);
        scratch.beam.reset(limit);
        let is_done = self.walk_on::<false>(query, level, scratch, is_due);
        scratch.met.clear();
        is_done
    }

    /// Fills the beam with the nearest of a node's neighbours in the lowest layer and their neighbours.
    pub(super) fn look_around(&self, node: u32, query: &CodedQuery, limit: usize, scratch: &mut Scratch) {
        scratch.forget(self.layout.rows);
        scratch.beam.reset(limit);
        scratch.meet(node);
        self.meet_linked(node, 0, scratch);
        let near = scratch.fresh.clone();
        self.weigh_fresh::<false>(query, scratch);
        for other in near {
            self.meet_linked(other, 0, scratch);
            self.weigh_fresh::<false>(query, scratch);
        }
    }

    /// The same in the lowest layer, in such a way that the walk can go on.
    pub fn walk_widely(
        &self,
        query: &CodedQuery,
        limit: usize,
        scratch: &mut Scratch,
        is_due: &mut dyn FnMut() -> bool,
    ) -> bool {
        scratch.forget(self.layout.rows);
        scratch.beam.reset(limit);
        scratch.spilled.clear();
        self.walk_on::<true>(query, 0, scratch, is_due)
    }

    /// Goes on with a walk, from `scratch.starts` too, to more candidates. The progress is that of all of it.
    pub fn walk_on_widely(
        &self,
        query: &CodedQuery,
        limit: usize,
        scratch: &mut Scratch,
        is_due: &mut dyn FnMut() -> bool,
    ) -> bool {
        let earlier = scratch.progress.visits;
        scratch.widen(limit);
        let is_done = self.walk_on::<true>(query, 0, scratch, is_due);
        scratch.progress.visits += earlier;
        is_done
    }

    /// Sets `scratch.starts` to more nodes of the upper layers, while a walk rests.
    pub fn more_starts(&self, query: &CodedQuery, width: usize, scratch: &mut Scratch) {
        let walk = (std::mem::take(&mut scratch.beam), std::mem::take(&mut scratch.visited));
        let progress = scratch.progress;
        scratch.known.extend_from_slice(&scratch.passed);
        scratch.known.sort_unstable_by_key(|&(node, _)| node);
        self.go_down(query, 0, width, scratch);
        (scratch.beam, scratch.visited) = walk;
        scratch.progress = progress;
    }

    /// Adds a node to `scratch.starts`.
    pub fn start_at(&self, node: u32, query: &CodedQuery, scratch: &mut Scratch) {
        if scratch.starts.iter().all(|&(_, start)| start != node) {
            self.costs(query, &[node], &mut scratch.dots, &mut scratch.costs);
            scratch.visits += 1;
            scratch.starts.push((scratch.costs[0], node));
        }
    }

    fn walk_on<const SPILLS: bool>(
        &self,
        query: &CodedQuery,
        level: u32,
        scratch: &mut Scratch,
        is_due: &mut dyn FnMut() -> bool,
    ) -> bool {
        for at in 0..scratch.starts.len() {
            let (cost, node) = scratch.starts[at];
            if !scratch.meet(node) {
                continue;
            }
            if level > 0 {
                scratch.met.push(node);
            }
            let is_near = cost < scratch.beam.bound();
            let out = if is_near { scratch.beam.insert(cost, node) } else { Some((cost, node)) };
            if SPILLS {
                scratch.spilled.extend(out);
            }
        }
        let mut progress = Progress::begin();
        while let Some(node) = scratch.beam.next() {
            if progress.is_look_due() && is_due() {
                return false;
            }
            self.meet_linked(node, level, scratch);
            if level > 0 {
                scratch.met.extend_from_slice(&scratch.fresh);
                self.offer_known(scratch);
            }
            self.weigh_fresh::<SPILLS>(query, scratch);
            if level > 0 {
                scratch.passed.extend(scratch.fresh.iter().copied().zip(scratch.costs.iter().copied()));
            }
            progress.step(scratch.fresh.len(), scratch.beam.cost_of(NEAREST));
        }
        scratch.progress = progress;
        true
    }

    /// Offers the nodes in these words of the set to the beam, but for those that the walk has met.
    pub fn scan(
        &self,
        query: &CodedQuery,
        nodes: &BitSet,
        words: std::ops::Range<usize>,
        scratch: &mut Scratch,
        beam: &mut Beam,
    ) {
        for at in words {
            let mut left = nodes.words()[at] & !scratch.visited[at];
            scratch.fresh.clear();
            while left != 0 {
                scratch.fresh.push(at as u32 * 64 + left.trailing_zeros());
                left &= left - 1;
            }
            scratch.fresh.iter().for_each(|&node| self.prefetch(node));
            self.costs(query, &scratch.fresh, &mut scratch.dots, &mut scratch.costs);
            scratch.visits += scratch.fresh.len() as u64;
            let mut bound = beam.bound();
            for (&node, &cost) in scratch.fresh.iter().zip(&scratch.costs) {
                if cost < bound {
                    beam.insert(cost, node);
                    bound = beam.bound();
                }
            }
        }
    }

    /// Offers those of the gathered nodes to the beam whose cost an earlier way down has computed.
    fn offer_known(&self, scratch: &mut Scratch) {
        let Scratch { fresh, known, beam, .. } = scratch;
        if known.is_empty() {
            return;
        }
        fresh.retain(|node| {
            let Ok(at) = known.binary_search_by_key(node, |&(known, _)| known) else { return true };
            let cost = known[at].1;
            if cost < beam.bound() {
                beam.insert(cost, *node);
            }
            false
        });
    }

    /// Offers the nodes in the set that the upper layers have passed, but for those that the walk has met; a scan meets them
    /// no more.
    pub fn offer_passed(&self, nodes: &BitSet, scratch: &mut Scratch, beam: &mut Beam) {
        for (node, cost) in std::mem::take(&mut scratch.passed) {
            if nodes.contains(node) && scratch.meet(node) && cost < beam.bound() {
                beam.insert(cost, node);
            }
        }
    }

    /// Gathers the linked nodes that are met for the first time.
    #[inline(always)]
    pub fn meet_linked(&self, node: u32, level: u32, scratch: &mut Scratch) {
        scratch.fresh.clear();
        for other in self.linked(node, level) {
            if scratch.meet(other) {
                self.prefetch(other);
                scratch.fresh.push(other);
            }
        }
    }

    /// Offers the gathered nodes to the beam.
    #[inline(always)]
    pub fn weigh_fresh<const SPILLS: bool>(&self, query: &CodedQuery, scratch: &mut Scratch) {
        self.costs(query, &scratch.fresh, &mut scratch.dots, &mut scratch.costs);
        scratch.visits += scratch.fresh.len() as u64;
        for (&node, &cost) in scratch.fresh.iter().zip(&scratch.costs) {
            let is_near = cost < scratch.beam.bound();
            let out = if is_near { scratch.beam.insert(cost, node) } else { Some((cost, node)) };
            if SPILLS {
                scratch.spilled.extend(out);
            }
        }
        if let Some(next) = scratch.beam.peek() {
            self.prefetch_links(next);
        }
    }
}
