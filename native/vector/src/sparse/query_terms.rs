//! The terms of a query in one segment, and which of them must be read in full.

use std::ops::Range;

use super::segment::Sections;

/// The share of the floor that the terms that are not read in full may reach together. More of them leave fewer postings
/// to add up and more candidates to look up.
const SKIPPED_SHARE: f32 = 0.2;

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
        let slack = terms.len() as f32 * (4.0 * f32::EPSILON * magnitude + f32::MIN_POSITIVE);
        Self { terms, slack: (magnitude < f32::MAX / 4.0 && slack.is_finite()).then_some(slack) }
    }

    pub fn posting_count(&self) -> usize {
        self.terms.iter().map(|term| term.postings).sum()
    }

    /// Chooses the terms that need not be read in full when only scores of `bound` and more count: together they cannot
    /// reach it, and they have as many postings as possible.
    pub fn choose_read(&mut self, bound: f32) {
        let gain = |term: &QueryTerm| term.postings as f32 / term.upper.max(f32::MIN_POSITIVE);
        let mut order: Vec<usize> = (0..self.terms.len()).collect();
        order.sort_unstable_by(|&one, &other| gain(&self.terms[other]).total_cmp(&gain(&self.terms[one])));
        let mut left = bound * SKIPPED_SHARE;
        for at in order {
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
