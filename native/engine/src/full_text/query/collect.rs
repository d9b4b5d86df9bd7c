//! Collecting the matches of one index in the order of their scores.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::sync::Arc;

use tantivy::columnar::{Column, StrColumn};
use tantivy::query::{BooleanQuery, Occur, Query, TermQuery, Weight};
use tantivy::{DocId, DocSet, Score, SegmentReader, TERMINATED};

use super::plan::QueryPlan;
use super::stop::Stop;
use crate::error::EngineError;
use crate::full_text::errors::tantivy_failed;
use crate::full_text::segment_columns::SegmentColumns;

/// A match, and what places it among others of its score: its key, as a rank within its segment.
#[derive(Debug, Clone, Copy)]
pub struct Scored {
    pub score: Score,
    pub key_rank: u64,
    pub doc: DocId,
    pub segment: u32,
}

/// Bits of a score's 23 that are rounded away. The terms of a document are added up in the order in which the index
/// meets them, which differs between ranges and between pages: without rounding, so would the last bits, and with them
/// the order of documents that ought to tie.
const SCORE_BITS_ROUNDED: u32 = 6;

pub fn rounded(score: Score) -> Score {
    let half = 1u32 << (SCORE_BITS_ROUNDED - 1);
    let bits = score.to_bits().wrapping_add(half) & !((1 << SCORE_BITS_ROUNDED) - 1);
    let rounded = Score::from_bits(bits);
    if score.is_finite() && rounded.is_finite() { rounded } else { score }
}

/// A score below any that is rounded to `rounded`.
fn below_rounded(rounded: Score) -> Score {
    if rounded.is_finite() {
        rounded - rounded.abs() * Score::EPSILON * (1 << SCORE_BITS_ROUNDED) as Score
    } else {
        rounded
    }
}

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

pub struct Collected<T> {
    pub matches: Vec<T>,
    pub total: u64,
    pub total_is_exact: bool,
    /// The time was over before all documents were looked at.
    pub is_partial: bool,
    pub max_score: Score,
}

impl<T> Default for Collected<T> {
    fn default() -> Self {
        Self { matches: Vec::new(), total: 0, total_is_exact: true, is_partial: false, max_score: 0.0 }
    }
}

impl<T> Collected<T> {
    /// Lets a visit that the end of time has stopped pass as one that is partial, where the plan allows it.
    pub fn note_end(
        &mut self,
        visited: Result<(), EngineError>,
        plan: &QueryPlan,
        stop: &Stop,
    ) -> Result<(), EngineError> {
        match visited {
            Err(error) if plan.allows_partial && stop.is_end_of_time(&error) => {
                self.is_partial = true;
                self.total_is_exact = false;
                Ok(())
            }
            visited => visited,
        }
    }
}

/// The documents of a segment that a query may show.
pub struct Visible<'a> {
    reader: &'a SegmentReader,
    expiry: Option<(&'a Column<i64>, i64)>,
}

impl<'a> Visible<'a> {
    pub fn new(reader: &'a SegmentReader, columns: &'a SegmentColumns, plan: &QueryPlan) -> Self {
        Self { reader, expiry: plan.expired_at_or_before_ms.map(|bound| (&columns.ttl_base, bound)) }
    }

    pub fn shows(&self, doc: DocId) -> bool {
        if self.reader.is_deleted(doc) {
            return false;
        }
        match &self.expiry {
            Some((ttl_base, bound)) => !ttl_base.first(doc).is_some_and(|base| base > 0 && base <= *bound),
            None => true,
        }
    }
}

/// The segments of one index, each with the columns that every query reads.
#[derive(Clone, Copy)]
pub struct Segments<'a> {
    pub readers: &'a [SegmentReader],
    pub columns: &'a [Arc<SegmentColumns>],
}

impl<'a> Segments<'a> {
    pub fn iter(self) -> impl Iterator<Item = (u32, &'a SegmentReader, &'a SegmentColumns)> {
        let both = self.readers.iter().zip(self.columns);
        both.enumerate().map(|(at, (reader, columns))| (at as u32, reader, &**columns))
    }
}

/// Whether Tantivy skips what cannot reach the best matches: unions and intersections of terms.
pub fn can_skip(query: &dyn Query) -> bool {
    if query.is::<TermQuery>() {
        return true;
    }
    let Some(boolean) = query.downcast_ref::<BooleanQuery>() else { return false };
    let clauses = boolean.clauses();
    let all_are = |wanted: Occur| clauses.iter().all(|(occur, clause)| *occur == wanted && clause.is::<TermQuery>());
    (all_are(Occur::Should) && boolean.get_minimum_number_should_match() <= 1) || all_are(Occur::Must)
}

/// The best matches of one segment.
struct SegmentTop<'a> {
    visible: Visible<'a>,
    keys: &'a StrColumn,
    segment: u32,
    wanted: usize,
    /// No match below this score can be among the best of the index.
    floor: Score,
    best: BinaryHeap<WorstFirst>,
    max_score: Score,
}

impl SegmentTop<'_> {
    /// Takes a visible match.
    fn take(&mut self, doc: DocId, score: Score) {
        let score = rounded(score);
        self.max_score = self.max_score.max(score);
        if self.wanted == 0 || score < self.floor {
            return;
        }
        let key_rank = || self.keys.ords().first(doc).unwrap_or(u64::MAX);
        if self.best.len() < self.wanted {
            let found = Scored { score, key_rank: key_rank(), doc, segment: self.segment };
            self.best.push(WorstFirst(found));
        } else if let Some(mut worst) = self.best.peek_mut()
            && score >= worst.0.score
        {
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
}

/// The `offset + limit` best matches of an index, segment after segment; not yet ordered.
pub fn collect_best(
    segments: Segments<'_>,
    weight: &dyn Weight,
    skips: bool,
    plan: &QueryPlan,
    stop: &Stop,
) -> Result<Collected<Scored>, EngineError> {
    let mut collected = Collected::default();
    let wanted = plan.offset + plan.limit;
    let mut floor = Score::MIN;
    for (segment, reader, columns) in segments.iter() {
        let visible = Visible::new(reader, columns, plan);
        let mut top = SegmentTop {
            visible,
            keys: &columns.keys,
            segment,
            wanted,
            floor,
            best: BinaryHeap::with_capacity(wanted.min(1024)),
            max_score: Score::MIN,
        };
        let visited = if skips && !plan.exact_total {
            collect_skipping(reader, weight, plan, stop, &mut top, &mut collected)
        } else {
            visit_all(reader, weight, stop, |doc, score| {
                if top.visible.shows(doc) {
                    collected.total += 1;
                    let score = score();
                    top.take(doc, score);
                }
            })
        };
        collected.note_end(visited, plan, stop)?;
        collected.max_score = collected.max_score.max(top.max_score);
        collected.matches.extend(top.best.into_iter().map(|worst| worst.0));
        floor = floor_of(&mut collected.matches, wanted).max(floor);
        if collected.is_partial {
            break;
        }
    }
    Ok(collected)
}

/// Forgets the matches that have `wanted` better ones, and gives the least score that may still be among those.
fn floor_of(matches: &mut Vec<Scored>, wanted: usize) -> Score {
    if wanted == 0 || matches.len() < wanted {
        return Score::MIN;
    }
    let (_, last, _) = matches.select_nth_unstable_by(wanted - 1, |a, b| b.score.total_cmp(&a.score));
    let floor = last.score;
    matches.retain(|found| found.score >= floor);
    floor
}

/// Counts exactly up to `total_exact_up_to`, then lets Tantivy skip.
fn collect_skipping(
    reader: &SegmentReader,
    weight: &dyn Weight,
    plan: &QueryPlan,
    stop: &Stop,
    top: &mut SegmentTop<'_>,
    collected: &mut Collected<Scored>,
) -> Result<(), EngineError> {
    let mut visited = 0u64;
    let mut stopped = false;
    let threshold = |floor: Score, total: u64| {
        // Just below the floor: a match of the same score may have the lesser key.
        if total > plan.total_exact_up_to { below_rounded(floor).next_down() } else { Score::MIN }
    };
    let first = threshold(top.floor, collected.total);
    let mut visit = |doc: DocId, score: Score| {
        visited += 1;
        if stop.is_due_at(visited) {
            stopped = true;
        }
        if stopped {
            return Score::MAX;
        }
        if top.visible.shows(doc) {
            collected.total += 1;
            top.take(doc, score);
        }
        threshold(top.floor, collected.total)
    };
    weight.for_each_pruning(first, reader, &mut visit).map_err(tantivy_failed)?;
    if stopped {
        return Err(stop.error());
    }
    if collected.total > plan.total_exact_up_to {
        collected.total_is_exact = false;
    }
    Ok(())
}

/// Every document that `weight` matches, deleted ones too, with a way to ask for its score.
pub fn visit_all(
    reader: &SegmentReader,
    weight: &dyn Weight,
    stop: &Stop,
    mut visit: impl FnMut(DocId, &mut dyn FnMut() -> Score),
) -> Result<(), EngineError> {
    if stop.is_due() {
        return Err(stop.error());
    }
    let mut scorer = weight.scorer(reader, 1.0).map_err(tantivy_failed)?;
    let mut visited = 0u64;
    let mut doc = scorer.doc();
    while doc != TERMINATED {
        visited += 1;
        if stop.is_due_at(visited) {
            return Err(stop.error());
        }
        visit(doc, &mut || scorer.score());
        doc = scorer.advance();
    }
    Ok(())
}

/// Only the number of matches.
pub fn count(
    segments: Segments<'_>,
    weight: &dyn Weight,
    plan: &QueryPlan,
    stop: &Stop,
) -> Result<Collected<()>, EngineError> {
    let mut collected = Collected::default();
    for (_, reader, columns) in segments.iter() {
        let mut total = 0u64;
        let counted = if plan.expired_at_or_before_ms.is_some() {
            let visible = Visible::new(reader, columns, plan);
            visit_all(reader, weight, stop, |doc, _| total += u64::from(visible.shows(doc)))
        } else if stop.is_due() {
            Err(stop.error())
        } else {
            total = u64::from(weight.count(reader).map_err(tantivy_failed)?);
            Ok(())
        };
        collected.total += total;
        collected.note_end(counted, plan, stop)?;
        if collected.is_partial {
            break;
        }
    }
    Ok(collected)
}
