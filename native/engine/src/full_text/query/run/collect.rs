//! Visiting and counting the matches of one index.

use std::sync::Arc;

use tantivy::columnar::Column;
use tantivy::fastfield::AliveBitSet;
use tantivy::query::{Scorer, Weight};
use tantivy::{COLLECT_BLOCK_BUFFER_LEN, DocId, DocSet, Score, SegmentReader, TERMINATED};

use crate::error::EngineError;
use crate::full_text::errors::tantivy_failed;
use crate::full_text::plan::QueryPlan;
use crate::full_text::query::deadline::Deadline;
use crate::full_text::segment_columns::SegmentColumns;

/// A match, and what orders it among others of its score: its key, as a rank within its segment.
#[derive(Debug, Clone, Copy)]
pub struct Scored {
    pub score: Score,
    pub key_rank: u64,
    pub doc: DocId,
    pub segment: u32,
}

pub struct Collected<T> {
    pub matches: Vec<T>,
    pub total: u64,
    pub total_is_exact: bool,
    /// When the total is not exact: at least this many documents match, over all ranges.
    pub matches_at_least: u64,
    /// The time was over before all documents were looked at.
    pub is_partial: bool,
    pub max_score: Score,
}

impl<T> Default for Collected<T> {
    fn default() -> Self {
        Self {
            matches: Vec::new(),
            total: 0,
            total_is_exact: true,
            matches_at_least: 0,
            is_partial: false,
            max_score: 0.0,
        }
    }
}

impl<T> Collected<T> {
    /// Lets a visit that the end of time has stopped pass as one that is partial, where the plan allows it.
    pub fn note_end(
        &mut self,
        visited: Result<(), EngineError>,
        plan: &QueryPlan,
        deadline: &Deadline,
    ) -> Result<(), EngineError> {
        match visited {
            Err(error) if plan.allows_partial && deadline.is_end_of_time(&error) => {
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
    alive: Option<&'a AliveBitSet>,
    expiry: Option<(&'a Column<i64>, i64)>,
}

impl<'a> Visible<'a> {
    pub fn new(reader: &'a SegmentReader, columns: &'a SegmentColumns, plan: &QueryPlan) -> Self {
        let expiry = plan.expired_at_or_before_ms.filter(|_| columns.expires);
        Self { alive: reader.alive_bitset(), expiry: expiry.map(|bound| (&columns.ttl_base, bound)) }
    }

    /// Whether the query may show every document of the segment.
    pub fn shows_all(&self) -> bool {
        self.alive.is_none() && self.expiry.is_none()
    }

    /// Whether some documents may have expired.
    pub fn hides_expired(&self) -> bool {
        self.expiry.is_some()
    }

    pub fn shows(&self, doc: DocId) -> bool {
        if self.alive.is_some_and(|alive| alive.is_deleted(doc)) {
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

/// Every document that `weight` matches, deleted ones too, with a way to ask for its score.
pub fn visit_all(
    reader: &SegmentReader,
    weight: &dyn Weight,
    deadline: &Deadline,
    visit: impl FnMut(DocId, &mut dyn FnMut() -> Score),
) -> Result<(), EngineError> {
    if deadline.is_due() {
        return Err(deadline.error());
    }
    visit_scorer(weight.scorer(reader, 1.0).map_err(tantivy_failed)?, deadline, visit)
}

/// The same from a scorer.
pub fn visit_scorer(
    mut scorer: Box<dyn Scorer>,
    deadline: &Deadline,
    mut visit: impl FnMut(DocId, &mut dyn FnMut() -> Score),
) -> Result<(), EngineError> {
    let mut visited = 0u64;
    let mut doc = scorer.doc();
    while doc != TERMINATED {
        visited += 1;
        if deadline.is_due_at(visited) {
            return Err(deadline.error());
        }
        visit(doc, &mut || scorer.score());
        doc = scorer.advance();
    }
    Ok(())
}

/// The same some at a time, without a way to their scores: never an empty block.
pub fn visit_blocks(
    mut scorer: Box<dyn Scorer>,
    deadline: &Deadline,
    mut visit: impl FnMut(&[DocId]),
) -> Result<(), EngineError> {
    let mut docs = [0; COLLECT_BLOCK_BUFFER_LEN];
    let mut visited = 0u64;
    loop {
        let filled = scorer.fill_buffer(&mut docs);
        if filled > 0 {
            visit(&docs[..filled]);
        }
        if filled < docs.len() {
            return Ok(());
        }
        visited += filled as u64;
        if deadline.is_due_at(visited) {
            return Err(deadline.error());
        }
    }
}

/// Only the number of matches.
pub fn count(
    segments: Segments<'_>,
    weight: &dyn Weight,
    plan: &QueryPlan,
    deadline: &Deadline,
) -> Result<Collected<()>, EngineError> {
    let mut collected = Collected::default();
    for (_, reader, columns) in segments.iter() {
        let mut total = 0u64;
        let visible = Visible::new(reader, columns, plan);
        let counted = if visible.hides_expired() {
            visit_all(reader, weight, deadline, |doc, _| total += u64::from(visible.shows(doc)))
        } else if deadline.is_due() {
            Err(deadline.error())
        } else {
            total = u64::from(weight.count(reader).map_err(tantivy_failed)?);
            Ok(())
        };
        collected.total += total;
        collected.note_end(counted, plan, deadline)?;
        if collected.is_partial {
            break;
        }
    }
    Ok(collected)
}
