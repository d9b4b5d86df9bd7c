//! The terms of a query in one segment, and which of them must be read in full.

use std::ops::Range;

use super::segment::Sections;

/// Bounds of the share of the floor that the terms that are not read in full may reach together, and where it begins.
const SKIPPED_SHARE_MIN: f32 = 0.02;
const SKIPPED_SHARE_MAX: f32 = 0.7;
const SKIPPED_SHARE_FIRST: f32 = 0.05;
/// How the share shrinks when looking up candidates costs more than was spared, and grows otherwise.
const SHRINK: f32 = 0.5;
const GROW: f32 = 1.1;

/// A term that has postings in the segment.
pub struct QueryTerm {
    /// Its weight in the query.
    pub weight: f32,
    /// Blocks that lie ahead.
    pub blocks: Range<usize>,
    /// The most that it can add to a score, not below 0.
    pub upper: f32,
    /// The postings that it has.
    pub postings: usize,
    /// Its postings are added up; those of other terms are looked up for candidates.
    pub is_read: bool,
}

pub struct QueryTerms {
    /// Ascending by dimension.
    pub terms: Vec<QueryTerm>,
    /// Sums of a document's products differ by less than this, in whatever order; none when they may overflow.
    pub slack: Option<f32>,
    /// Positions of the terms, those with many postings for what they can add first.
    by_gain: Vec<usize>,
    skipped_share: f32,
}

impl QueryTerms {
    pub fn new(sections: &Sections, query: &[(u32, f32)]) -> Self {
        let mut magnitude = 0.0;
        let mut terms = Vec::with_capacity(query.len());
        for &(term, weight) in query.iter().filter(|(_, weight)| *weight != 0.0) {
            let Ok(at) = sections.terms.binary_search(&term) else { continue };
            let (max, min) = (sections.term_max[at], sections.term_min[at]);
            magnitude += weight.abs() * max.abs().max(min.abs());
            let blocks = sections.blocks_of_term_at(at);
            let postings = (sections.block_starts[blocks.end] - sections.block_starts[blocks.start]) as usize;
            terms.push(QueryTerm { weight, blocks, upper: upper(weight, max, min), postings, is_read: true });
        }
        let gain = |at: &usize| terms[*at].postings as f32 / terms[*at].upper.max(f32::MIN_POSITIVE);
        let mut by_gain: Vec<usize> = (0..terms.len()).collect();
        by_gain.sort_unstable_by(|one, other| gain(other).total_cmp(&gain(one)));
        let slack = terms.len() as f32 * (4.0 * f32::EPSILON * magnitude + f32::MIN_POSITIVE);
        let slack = (magnitude < f32::MAX / 4.0 && slack.is_finite()).then_some(slack);
        Self { terms, slack, by_gain, skipped_share: SKIPPED_SHARE_FIRST }
    }

    pub fn posting_count(&self) -> usize {
        self.terms.iter().map(|term| term.postings).sum()
    }

    /// Learns from a window: what looking up its candidates cost, and what reading all terms would have cost beyond.
    pub fn learn(&mut self, looked_up: usize, spared: usize) {
        let factor = if looked_up > spared { SHRINK } else { GROW };
        self.skipped_share = (self.skipped_share * factor).clamp(SKIPPED_SHARE_MIN, SKIPPED_SHARE_MAX);
    }

    /// Chooses the terms that need not be read in full when only scores of `bound` and more count: together they cannot
    /// reach it, and they have as many postings as possible.
    pub fn choose_read(&mut self, bound: f32) {
        let mut left = bound * self.skipped_share;
        for &at in &self.by_gain {
            let term = &mut self.terms[at];
            term.is_read = bound <= 0.0 || term.upper > left;
            if !term.is_read {
                left -= term.upper;
            }
        }
    }
}

/// The most that a weight of the query can add to a score, not below 0, where weights go from `min` to `max`.
pub fn upper(weight: f32, max: f32, min: f32) -> f32 {
    (weight * if weight > 0.0 { max } else { min }).max(0.0)
}
