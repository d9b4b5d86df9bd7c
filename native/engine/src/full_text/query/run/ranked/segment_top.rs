//! The best matches of one segment, by score and then by key.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use tantivy::{DocId, Score};

use crate::full_text::query::constant_docs::Level;
use crate::full_text::query::run::collect::Scored;
use crate::full_text::segment_columns::SegmentColumns;

/// Ties of one segment whose keys are looked up; for more, the least keys of blocks are worth their reading.
const TIES_READ: u32 = 256;

/// Orders the worst match first in a `BinaryHeap`: lowest score, then highest key.
struct WorstFirst(Scored);

impl Ord for WorstFirst {
    fn cmp(&self, other: &Self) -> Ordering {
        other.0.score.total_cmp(&self.0.score).then(self.0.key_rank.cmp(&other.0.key_rank))
    }
}

impl PartialOrd for WorstFirst {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for WorstFirst {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for WorstFirst {}

/// The best matches of one segment.
pub struct SegmentTop<'a> {
    columns: &'a SegmentColumns,
    segment: u32,
    wanted: usize,
    /// No match below this score can be among the best of the index.
    pub floor: Score,
    best: BinaryHeap<WorstFirst>,
    pub max_score: Score,
    /// Matches that tied with the worst of the best.
    ties: u32,
}

impl<'a> SegmentTop<'a> {
    pub fn new(columns: &'a SegmentColumns, segment: u32, wanted: usize, floor: Score) -> Self {
        let best = BinaryHeap::with_capacity(wanted.min(1024));
        Self { columns, segment, wanted, floor, best, max_score: Score::MIN, ties: 0 }
    }

    pub fn wanted(&self) -> usize {
        self.wanted
    }

    pub fn into_matches(self) -> impl Iterator<Item = Scored> {
        self.best.into_iter().map(|worst| worst.0)
    }

    /// Takes a visible match.
    pub fn take(&mut self, doc: DocId, score: Score) {
        self.max_score = self.max_score.max(score);
        if self.wanted == 0 || score < self.floor {
            return;
        }
        let key_rank = || self.columns.keys.ords().first(doc).unwrap_or(u64::MAX);
        if self.best.len() < self.wanted {
            let found = Scored { score, key_rank: key_rank(), doc, segment: self.segment };
            self.best.push(WorstFirst(found));
        } else if let Some(mut worst) = self.best.peek_mut()
            && score >= worst.0.score
        {
            if score == worst.0.score {
                self.ties += 1;
                if self.ties > TIES_READ && self.columns.least_key_rank(doc) > worst.0.key_rank {
                    return;
                }
            }
            let key_rank = key_rank();
            if score > worst.0.score || key_rank < worst.0.key_rank {
                *worst = WorstFirst(Scored { score, key_rank, doc, segment: self.segment });
            }
        }
        if self.best.len() == self.wanted
            && let Some(worst) = self.best.peek()
        {
            self.floor = self.floor.max(worst.0.score);
        }
    }

    /// Takes visible matches of one score: all of `docs` that are not in `others`.
    pub fn take_alike(&mut self, docs: &Level, others: Option<&Level>, score: Score) {
        let is_taken = |doc: DocId| others.is_none_or(|others| !others.contains(doc));
        if score < self.floor {
            return;
        }
        if docs.len() <= TIES_READ as usize {
            docs.for_each_within(0..DocId::MAX, |doc| {
                if is_taken(doc) {
                    self.take(doc, score);
                }
            });
            return;
        }
        self.max_score = self.max_score.max(score);
        for (block, least_key) in self.columns.blocks_by_key() {
            let worst = self.best.peek().filter(|_| self.best.len() == self.wanted).map(|worst| &worst.0);
            let is_full = worst.is_some_and(|worst| (worst.score, least_key) > (score, worst.key_rank));
            if is_full || score < self.floor || self.wanted == 0 {
                break;
            }
            docs.for_each_within(block, |doc| {
                if is_taken(doc) {
                    self.take(doc, score);
                }
            });
        }
    }
}
