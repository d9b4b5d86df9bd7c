//! The documents of one segment that have words in a row: what the two rarest have in common, block by block, and then
//! where all of them stand.
//!
//! Positions are read only of documents that could be among the best: no document has the phrase more often than any of
//! its words.

use tantivy::{DocId, Score};

use crate::error::EngineError;
use crate::full_text::query::deadline::Deadline;
use crate::full_text::query::words::position_lists::PositionLists;
use crate::full_text::query::words::word_cursor::{FREQUENCIES, WordCursor, least_frequency};
use crate::full_text::query::words::word_walks::{BlockTable, SEEK_RATIO, Visit, Watch};

/// A word of a phrase. Its cursor weighs documents as the phrase does.
pub struct PhraseMember<'a> {
    pub cursor: WordCursor<'a>,
    pub positions: PositionLists,
    /// By how much the last word of the phrase is behind this one.
    pub lead: u32,
}

impl PhraseMember<'_> {
    /// Where the phrase would end for each of the word's positions in the document at `at` of the block.
    fn ends(&mut self, at: usize, ends: &mut Vec<u32>) {
        let mut end = self.lead;
        ends.clear();
        ends.extend(self.positions.gaps(&mut self.cursor.blocks, at).iter().map(|gap| {
            end += gap;
            end
        }));
    }

    /// Keeps the ends at which this word stands, too; both ascend.
    fn keep_ends(&mut self, at: usize, ends: &mut Vec<u32>) {
        let (mut end, mut from, mut kept) = (self.lead, 0, 0);
        for gap in self.positions.gaps(&mut self.cursor.blocks, at) {
            end += gap;
            while from < ends.len() && ends[from] < end {
                from += 1;
            }
            if from < ends.len() && ends[from] == end {
                ends[kept] = end;
                (from, kept) = (from + 1, kept + 1);
            }
        }
        ends.truncate(kept);
    }
}

/// Visits, in order, the documents that have the phrase, that `lets_through`, and whose score exceeds `threshold`, which
/// every visit raises. Two members or more.
pub fn find_phrases(
    members: &mut [PhraseMember<'_>],
    lets_through: impl Fn(DocId) -> bool,
    threshold: Score,
    deadline: &Deadline,
    visit: Visit<'_>,
) -> Result<(), EngineError> {
    members.sort_by_key(|member| member.cursor.blocks.doc_freq());
    let [first, second, others @ ..] = members else { return Ok(()) };
    let is_rare = first.cursor.blocks.doc_freq() < second.cursor.blocks.doc_freq() / SEEK_RATIO;
    let mut watch = Watch::new(deadline);
    let mut table = BlockTable::new();
    let (most_by_frequency, likely, ends) = (first.cursor.most_by_frequency(), Vec::new(), Vec::new());
    let mut walk = PhraseWalk { first, second, others, lets_through, threshold, most_by_frequency, likely, ends };
    // The first document that was not looked at, and the last one of a block that may exceed the threshold.
    let (mut next, mut passed) = (0, 0);
    while let Some((start, end)) = walk.first.cursor.next_block(next) {
        watch.block()?;
        if end > passed {
            if !walk.may_exceed(start, end) {
                next = end + 1;
                continue;
            }
            passed = end;
        }
        let from = walk.first.cursor.blocks.seek(start);
        if is_rare {
            for at in from..walk.first.cursor.blocks.block_len() {
                walk.look_up(at, visit);
            }
            next = end + 1;
            continue;
        }
        let second = &mut walk.second.cursor;
        let doc = walk.first.cursor.blocks.doc(from);
        // Only behind its last document a word has none at or after what is looked for.
        let Some((_, end_of_second)) = second.next_block(doc) else { return Ok(()) };
        if second.ahead.most <= walk.threshold {
            next = end.min(end_of_second) + 1;
            continue;
        }
        let (docs, at) = (&walk.first.cursor.blocks.docs()[from..], second.blocks.seek(doc));
        let compared = table.compare(docs, &second.blocks.docs()[at..]);
        next = docs[compared - 1] + 1;
        walk.try_documents(table.common().map(|(first, second)| (from + first, at + second)), visit);
    }
    Ok(())
}

struct PhraseWalk<'p, 'a, L> {
    /// The rarest word, and the next.
    first: &'p mut PhraseMember<'a>,
    second: &'p mut PhraseMember<'a>,
    others: &'p mut [PhraseMember<'a>],
    lets_through: L,
    threshold: Score,
    /// What no document with the phrase so often scores more than.
    most_by_frequency: [Score; FREQUENCIES],
    /// Where both words have a document that may exceed the threshold.
    likely: Vec<(usize, usize)>,
    ends: Vec<u32>,
}

impl<L: Fn(DocId) -> bool> PhraseWalk<'_, '_, L> {
    /// Whether a document of this stretch, which is one of the first word's blocks, may score more than the threshold: as often as
    /// each of its words is there at most, the phrase is.
    fn may_exceed(&mut self, start: DocId, end: DocId) -> bool {
        let threshold = self.threshold;
        let others = std::iter::once(&mut *self.second).chain(self.others.iter_mut());
        threshold <= 0.0
            || (self.first.cursor.ahead.most > threshold
                && others.map(|other| other.cursor.most_within(start, end)).all(|most| most > threshold))
    }

    /// The document at `at` of the first word's block, if the second word has it.
    fn look_up(&mut self, at: usize, visit: Visit<'_>) {
        let doc = self.first.cursor.blocks.doc(at);
        let at_second = self.second.cursor.blocks.seek(doc);
        if self.second.cursor.blocks.doc(at_second) == doc {
            self.try_documents(std::iter::once((at, at_second)), visit);
        }
    }

    /// Documents that both words have, each at its position within its block. Their lengths are read only where the frequencies let
    /// them exceed the threshold, and before any positions: they lie far apart, and are waited for together.
    fn try_documents(&mut self, both: impl Iterator<Item = (usize, usize)>, visit: Visit<'_>) {
        let (first, second) = (&self.first.cursor, &self.second.cursor);
        let at_most = |at: &(usize, usize)| first.blocks.freq(at.0).min(second.blocks.freq(at.1));
        let least = least_frequency(&self.most_by_frequency, self.threshold);
        self.likely.clear();
        self.likely.extend(both.filter(|at| at_most(at) >= least));
        let mut kept = 0;
        for number in 0..self.likely.len() {
            let at = self.likely[number];
            self.likely[kept] = at;
            kept += usize::from(first.score_of(first.blocks.doc(at.0), at_most(&at)) > self.threshold);
        }
        for number in 0..kept {
            let (at_first, at_second) = self.likely[number];
            self.try_document(at_first, at_second, visit);
        }
    }

    /// A document that both words have, each at its position within its block.
    fn try_document(&mut self, at_first: usize, at_second: usize, visit: Visit<'_>) {
        let WordCursor { blocks, norms, weight, .. } = &self.first.cursor;
        let (doc, weight) = (blocks.doc(at_first), *weight);
        let norm = norms.fieldnorm_id(doc);
        let at_most = blocks.freq(at_first).min(self.second.cursor.blocks.freq(at_second));
        if weight.score(norm, at_most) <= self.threshold || !(self.lets_through)(doc) {
            return;
        }
        self.first.ends(at_first, &mut self.ends);
        self.second.keep_ends(at_second, &mut self.ends);
        for other in &mut *self.others {
            if self.ends.is_empty() {
                return;
            }
            let at = other.cursor.blocks.seek(doc);
            if other.cursor.blocks.doc(at) != doc {
                return;
            }
            other.keep_ends(at, &mut self.ends);
        }
        if self.ends.is_empty() {
            return;
        }
        let score = weight.score(norm, self.ends.len() as u32);
        if score > self.threshold {
            self.threshold = visit(doc, score);
        }
    }
}
