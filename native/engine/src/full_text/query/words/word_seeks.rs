//! Single documents looked for in the postings of words, where a filter lets few through.

use tantivy::{DocId, Score};

use crate::error::EngineError;
use crate::full_text::query::deadline::Deadline;
use crate::full_text::query::words::word_cursor::WordCursor;
use crate::full_text::query::words::word_walks::Visit;
use sundew_base::bit_set::BitSet;

/// Documents that are looked for in one word after the other: a power of two.
const BATCH: usize = 64;

/// Each of `docs` in every word.
pub fn seek_every(
    cursors: &mut [WordCursor<'_>],
    docs: &BitSet,
    mut threshold: Score,
    deadline: &Deadline,
    visit: Visit<'_>,
) -> Result<(), EngineError> {
    'docs: for (at, doc) in docs.iter().enumerate() {
        if deadline.is_due_at(at as u64 + 1) {
            return Err(deadline.error());
        }
        let mut score = 0.0;
        for cursor in cursors.iter_mut() {
            match cursor.seek(doc) {
                Some(of_word) => score += f64::from(of_word),
                None => continue 'docs,
            }
        }
        if score > f64::from(threshold) {
            threshold = visit(doc, score as Score);
        }
    }
    Ok(())
}

/// Each of `docs` in any of the words, some documents at a time: what a word tells of them does not branch, since a
/// processor could not guess it.
pub fn seek_any(
    cursors: &mut [WordCursor<'_>],
    docs: &BitSet,
    mut threshold: Score,
    deadline: &Deadline,
    visit: Visit<'_>,
) -> Result<(), EngineError> {
    // The words that add least come last: by then few documents are left that may exceed the threshold.
    cursors.sort_by(|a, b| b.most.total_cmp(&a.most));
    // With the most that it and those behind it score.
    let mut left = 0.0;
    let mut with_left: Vec<(&mut WordCursor<'_>, f64)> = Vec::with_capacity(cursors.len());
    for cursor in cursors.iter_mut().rev() {
        left += f64::from(cursor.most);
        with_left.push((cursor, left));
    }
    let mut batch = Batch::new();
    let mut docs = docs.iter();
    let mut looked_for = 0;
    while batch.fill(&mut docs) {
        looked_for += batch.count as u64;
        if deadline.is_due_at(looked_for) {
            return Err(deadline.error());
        }
        for (cursor, left) in with_left.iter_mut().rev() {
            batch.retain(f64::from(threshold) - *left);
            batch.add(cursor);
        }
        for &Candidate { doc, score, is_match } in &batch.candidates[..batch.count] {
            if is_match && score > f64::from(threshold) {
                threshold = visit(doc, score as Score);
            }
        }
    }
    Ok(())
}

#[derive(Clone, Copy, Default)]
struct Candidate {
    doc: DocId,
    score: f64,
    is_match: bool,
}

struct Batch {
    candidates: [Candidate; BATCH],
    count: usize,
}

impl Batch {
    fn new() -> Self {
        Self { candidates: [Candidate::default(); BATCH], count: 0 }
    }

    /// With the next documents; false where there are none.
    fn fill(&mut self, docs: &mut impl Iterator<Item = DocId>) -> bool {
        self.count = 0;
        for (candidate, doc) in self.candidates.iter_mut().zip(docs) {
            *candidate = Candidate { doc, ..Candidate::default() };
            self.count += 1;
        }
        self.count > 0
    }

    /// Those whose score exceeds `needed`, which all do where it is below 0.
    fn retain(&mut self, needed: f64) {
        if needed < 0.0 {
            return;
        }
        let mut kept = 0;
        for at in 0..self.count {
            self.candidates[kept] = self.candidates[at];
            kept += usize::from(self.candidates[at].score > needed);
        }
        self.count = kept;
    }

    /// Looks for all in a word.
    fn add(&mut self, cursor: &mut WordCursor<'_>) {
        for candidate in &mut self.candidates[..self.count] {
            let at = cursor.blocks.seek(candidate.doc);
            let is_there = cursor.blocks.doc(at) == candidate.doc;
            // A frequency of 0 scores 0.
            let frequency = cursor.blocks.freq(at) * u32::from(is_there);
            candidate.score += f64::from(cursor.score_of(candidate.doc, frequency));
            candidate.is_match |= is_there;
        }
    }
}
