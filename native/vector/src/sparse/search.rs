//! Exact top-k of documents: window by window, postings are added up for the terms that can carry a vector over the
//! floor (the score of the last hit so far), and the other terms are looked up for the few vectors that may reach it
//! (MaxScore by Turtle and Flood, with the maxima of blocks as in Dimopoulos, Nepomnyachiy and Suel).

use super::query_terms::{QueryTerms, upper};
use super::segment::{Sections, WINDOW_BITS, WINDOW_VECTORS};
use super::snapshot::{LiveSegment, Snapshot};
use super::top_hits::TopHits;
use crate::search::{SearchBounds, SearchReport, VectorHit, VectorHits};
use sundew_base::bit_set::BitSet;

/// Adding up this many postings costs as much as looking one up.
const LOOKUP_POSTINGS: usize = 16;
/// With fewer postings than this in a window, its documents are found by reading them again.
const SPARSE_WINDOW_POSTINGS: usize = WINDOW_VECTORS / 8;
/// Windows, and looked-up documents, between two questions for the time.
const WINDOWS_PER_CHECK: usize = 16;
const DOCUMENTS_PER_CHECK: usize = 1024;

/// The best documents among those that share a dimension with the query, each by the best of its vectors. `query` is
/// ascending and finite; `limit` is not 0.
pub fn search_snapshot(snapshot: &Snapshot, query: &[(u32, f32)], bounds: &SearchBounds) -> VectorHits {
    // The largest segment first: its floor spares work in all others.
    let mut segments: Vec<&LiveSegment> = snapshot.segments.iter().collect();
    segments.sort_by_key(|live| std::cmp::Reverse(live.segment.posting_count()));
    let mut search = TopKSearch::new(bounds);
    for live in segments {
        search.report.segments += 1;
        let sections = live.segment.sections();
        let terms = QueryTerms::new(&sections, query);
        if terms.terms.is_empty() {
            continue;
        }
        let segment = SegmentView { live, sections };
        match bounds.allowed {
            Some(allowed) if segment.lookups(allowed.len()) * terms.terms.len() < terms.posting_count() => {
                search.look_up_allowed(&segment, &terms, allowed);
            }
            _ => search.read_windows(&segment, terms),
        }
        if search.is_partial {
            break;
        }
    }
    VectorHits { hits: search.top.finish(), is_partial: search.is_partial, report: search.report }
}

struct SegmentView<'a> {
    live: &'a LiveSegment,
    sections: Sections<'a>,
}

impl SegmentView<'_> {
    /// Cost of looking up the vectors of this number of documents, in postings added up.
    fn lookups(&self, documents: usize) -> usize {
        let Self { live, .. } = self;
        let vectors = documents * live.segment.vector_count() / live.segment.document_count().max(1);
        vectors * LOOKUP_POSTINGS
    }
}

/// The block of a term in the window at hand.
struct ActiveBlock {
    weight: f32,
    block: usize,
    upper: f32,
    is_read: bool,
}

struct TopKSearch<'a> {
    bounds: &'a SearchBounds<'a>,
    top: TopHits,
    report: SearchReport,
    is_partial: bool,
    /// Scores of the documents of a window; all zero between windows.
    sums: Box<[f32; WINDOW_VECTORS]>,
    /// The blocks of the window, ascending by dimension.
    active: Vec<ActiveBlock>,
    candidates: Vec<u16>,
    /// The blocks of the window that are not read in full, those that can add most first.
    looked_up: Vec<LookedUp>,
    /// Postings of the window that were sought one by one.
    lookups: usize,
}

struct LookedUp {
    weight: f32,
    block: usize,
    /// The most that this block and those behind it can add together.
    upper: f32,
}

impl<'a> TopKSearch<'a> {
    fn new(bounds: &'a SearchBounds<'a>) -> Self {
        Self {
            bounds,
            top: TopHits::new(bounds.limit),
            report: SearchReport::default(),
            is_partial: false,
            sums: Box::new([0.0; WINDOW_VECTORS]),
            active: Vec::new(),
            candidates: Vec::new(),
            looked_up: Vec::new(),
            lookups: 0,
        }
    }

    fn took(&mut self, arm: &'static str) {
        if !self.report.arms.contains(&arm) {
            self.report.arms.push(arm);
        }
    }

    /// Looks up every allowed document: for few of them.
    fn look_up_allowed(&mut self, segment: &SegmentView, terms: &QueryTerms, allowed: &BitSet) {
        self.took("filtered_lookup");
        for (at, ordinal) in allowed.iter().enumerate() {
            if at % DOCUMENTS_PER_CHECK == 0 && (self.bounds.is_due)() {
                self.is_partial = true;
                return;
            }
            for local in segment.sections.locals_of(ordinal) {
                if !segment.live.dead.contains(local as u32) {
                    self.look_up(segment, terms, local);
                }
            }
        }
    }

    fn look_up(&mut self, segment: &SegmentView, terms: &QueryTerms, local: usize) {
        let (mut score, mut is_found) = (0.0, false);
        for term in &terms.terms {
            let windows = &segment.sections.block_windows[term.blocks.clone()];
            let Ok(block) = windows.binary_search(&((local >> WINDOW_BITS) as u16)) else { continue };
            if let Some(weight) = segment.sections.weight_in(term.blocks.start + block, offset_of(local)) {
                score += term.weight * weight;
                is_found = true;
            }
        }
        self.report.visited += terms.terms.len() as u64;
        if is_found {
            self.take(segment, local, score);
        }
    }

    fn read_windows(&mut self, segment: &SegmentView, mut terms: QueryTerms) {
        self.took("block_max");
        let windows = segment.sections.ordinals.len().div_ceil(WINDOW_VECTORS);
        for window in 0..windows {
            if window % WINDOWS_PER_CHECK == 0 && (self.bounds.is_due)() {
                self.is_partial = true;
                return;
            }
            // A score below the bound is below the floor in whatever order it was added up.
            let bound = terms.slack.map_or(f32::NEG_INFINITY, |slack| self.top.floor() - slack);
            if bound > 0.0 {
                terms.choose_read(bound);
            }
            self.enter_window(segment, &mut terms, window);
            let reachable: f32 = self.active.iter().map(|active| active.upper).sum();
            if self.active.is_empty() || bound > 0.0 && reachable < bound || !self.may_hold_allowed(segment, window) {
                continue;
            }
            if bound > 0.0 {
                self.read_window_above(segment, window, terms.slack.unwrap_or(0.0));
                let spared = self.looked_up.iter().map(|one| segment.sections.block(one.block).0.len()).sum();
                terms.learn(self.lookups * LOOKUP_POSTINGS, spared);
            } else {
                self.read_whole_window(segment, window);
            }
        }
    }

    /// Takes the blocks of `window` from the terms.
    fn enter_window(&mut self, segment: &SegmentView, terms: &mut QueryTerms, window: usize) {
        self.active.clear();
        for term in &mut terms.terms {
            let block = term.blocks.start;
            if block < term.blocks.end && segment.sections.block_windows[block] as usize == window {
                let upper = upper(term.weight, segment.sections.block_max[block], segment.sections.block_min[block]);
                self.active.push(ActiveBlock { weight: term.weight, block, upper, is_read: term.is_read });
                term.blocks.start += 1;
            }
        }
    }

    fn may_hold_allowed(&self, segment: &SegmentView, window: usize) -> bool {
        let Some(allowed) = self.bounds.allowed else { return true };
        let ordinals = &segment.sections.ordinals[window * WINDOW_VECTORS..];
        let ordinals = &ordinals[..ordinals.len().min(WINDOW_VECTORS)];
        match (ordinals.first(), ordinals.last()) {
            (Some(&first), Some(&last)) => allowed.has_any(first, last),
            _ => false,
        }
    }

    /// Adds up all postings and takes every document that has one.
    fn read_whole_window(&mut self, segment: &SegmentView, window: usize) {
        let mut touched = [0u64; WINDOW_VECTORS / 64];
        for active in &self.active {
            let (offsets, weights) = segment.sections.block(active.block);
            add_up(&mut self.sums, offsets, weights, active.weight);
            for &offset in offsets {
                let offset = offset as usize % WINDOW_VECTORS;
                touched[offset / 64] |= 1 << (offset % 64);
            }
            self.report.visited += offsets.len() as u64;
        }
        for (at, &word) in touched.iter().enumerate() {
            let mut left = word;
            while left != 0 {
                let offset = at * 64 + left.trailing_zeros() as usize;
                left &= left - 1;
                self.take_if_live(segment, window * WINDOW_VECTORS + offset, self.sums[offset]);
            }
        }
        self.sums.fill(0.0);
    }

    /// Takes the documents that reach the floor, which is above `slack`.
    fn read_window_above(&mut self, segment: &SegmentView, window: usize, slack: f32) {
        self.list_looked_up();
        let upper_of_others = self.looked_up.first().map_or(0.0, |first| first.upper);
        let mut postings = 0;
        for active in self.active.iter().filter(|active| active.is_read) {
            let (offsets, weights) = segment.sections.block(active.block);
            add_up(&mut self.sums, offsets, weights, active.weight);
            postings += offsets.len();
        }
        self.report.visited += postings as u64;
        self.candidates.clear();
        self.lookups = 0;
        if postings == 0 {
            return;
        }
        self.find_candidates(segment, postings, self.top.floor() - slack - upper_of_others);
        for at in 0..self.candidates.len() {
            let offset = self.candidates[at];
            let local = window * WINDOW_VECTORS + offset as usize;
            let sum = self.sums[offset as usize];
            if self.looked_up.is_empty() {
                self.take_if_live(segment, local, sum);
            } else if self.may_take(segment, local) && self.may_reach(segment, offset, sum, slack) {
                let score = self.score_in_order(segment, offset);
                self.lookups += self.active.len();
                self.take(segment, local, score);
            }
        }
        self.report.visited += self.lookups as u64;
        self.clear_sums(segment, postings);
    }

    fn list_looked_up(&mut self) {
        let others = self.active.iter().filter(|active| !active.is_read);
        self.looked_up.clear();
        self.looked_up.extend(others.map(|&ActiveBlock { weight, block, upper, .. }| LookedUp {
            weight,
            block,
            upper,
        }));
        self.looked_up.sort_unstable_by(|one, other| other.upper.total_cmp(&one.upper));
        let mut sum = 0.0;
        for one in self.looked_up.iter_mut().rev() {
            sum += one.upper;
            one.upper = sum;
        }
    }

    /// Whether the document can still reach the floor once the other terms are looked up.
    fn may_reach(&mut self, segment: &SegmentView, offset: u16, sum: f32, slack: f32) -> bool {
        let bound = self.top.floor() - slack;
        let mut sum = sum;
        for one in &self.looked_up {
            if sum + one.upper < bound {
                return false;
            }
            self.lookups += 1;
            sum += one.weight * segment.sections.weight_in(one.block, offset).unwrap_or(0.0);
        }
        sum >= bound
    }

    /// The score as brute force has it: ascending by dimension.
    fn score_in_order(&self, segment: &SegmentView, offset: u16) -> f32 {
        let found = self
            .active
            .iter()
            .filter_map(|active| segment.sections.weight_in(active.block, offset).map(|weight| active.weight * weight));
        found.fold(0.0, |score, product| score + product)
    }

    /// Collects the documents whose sum reaches `threshold`, which is above 0.
    fn find_candidates(&mut self, segment: &SegmentView, postings: usize, threshold: f32) {
        if postings >= SPARSE_WINDOW_POSTINGS {
            for (at, sums) in self.sums.as_chunks::<16>().0.iter().enumerate() {
                if sums.iter().fold(false, |any, &sum| any | (sum >= threshold)) {
                    let reach = (0..16).filter(|&lane| sums[lane] >= threshold);
                    self.candidates.extend(reach.map(|lane| (at * 16 + lane) as u16));
                }
            }
            return;
        }
        for active in self.active.iter().filter(|active| active.is_read) {
            let offsets = segment.sections.block(active.block).0;
            let reach = offsets.iter().filter(|&&offset| self.sums[offset as usize % WINDOW_VECTORS] >= threshold);
            self.candidates.extend(reach.map(|offset| offset % WINDOW_VECTORS as u16));
        }
        self.candidates.sort_unstable();
        self.candidates.dedup();
    }

    fn clear_sums(&mut self, segment: &SegmentView, postings: usize) {
        if postings >= SPARSE_WINDOW_POSTINGS {
            self.sums.fill(0.0);
            return;
        }
        for active in self.active.iter().filter(|active| active.is_read) {
            for &offset in segment.sections.block(active.block).0 {
                self.sums[offset as usize % WINDOW_VECTORS] = 0.0;
            }
        }
    }

    fn may_take(&self, segment: &SegmentView, local: usize) -> bool {
        let Some(&ordinal) = segment.sections.ordinals.get(local) else { return false };
        !segment.live.dead.contains(local as u32) && self.bounds.allowed.is_none_or(|allowed| allowed.contains(ordinal))
    }

    fn take_if_live(&mut self, segment: &SegmentView, local: usize, sum: f32) {
        if finite(sum) >= self.top.floor() && self.may_take(segment, local) {
            self.take(segment, local, sum);
        }
    }

    fn take(&mut self, segment: &SegmentView, local: usize, sum: f32) {
        self.report.candidates += 1;
        let score = finite(sum);
        if score >= self.top.floor() {
            let Sections { ordinals, numbers, sequences, .. } = segment.sections;
            let (ordinal, number, sequence) = (ordinals[local], numbers[local], sequences[local]);
            self.top.push(VectorHit { ordinal, number, sequence, distance: score, score });
        }
    }
}

fn add_up(sums: &mut [f32; WINDOW_VECTORS], offsets: &[u16], weights: &[f32], weight: f32) {
    for (&offset, &of_document) in offsets.iter().zip(weights) {
        sums[offset as usize % WINDOW_VECTORS] += weight * of_document;
    }
}

fn offset_of(local: usize) -> u16 {
    (local % WINDOW_VECTORS) as u16
}

/// Sums of huge products may overflow; an answer holds numbers only, and no negative zero.
fn finite(sum: f32) -> f32 {
    if sum.is_nan() { 0.0 } else { sum.clamp(f32::MIN, f32::MAX) + 0.0 }
}
