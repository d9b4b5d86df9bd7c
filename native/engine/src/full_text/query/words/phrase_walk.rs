//! The documents of one segment that have words in a row: what the two rarest have in common, block by block, and then
//! where all of them stand.
//!
//! Positions are read only of documents that could be among the best: no document has the phrase more often than any of
//! its words.

use tantivy::{DocId, Score};

use crate::error::EngineError;
use crate::full_text::query::deadline::Deadline;
use crate::full_text::query::words::position_lists::PositionLists;
use crate::full_text::query::words::word_cursor::WordCursor;
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
    let mut walk = PhraseWalk { first, second, others, lets_through, threshold, ends: Vec::new() };
    let mut from = 0;
    loop {
        if from >= walk.first.cursor.blocks.block_len() {
            walk.first.cursor.blocks.advance();
            from = 0;
        }
        let docs = walk.first.cursor.blocks.docs();
        let Some(&next) = docs.get(from) else { return Ok(()) };
        let end = docs.len();
        watch.block()?;
        if walk.first.cursor.block_max_score() <= walk.threshold {
            from = end;
        } else if is_rare {
            for at in from..end {
                walk.look_up(at, visit);
            }
            from = end;
        } else {
            let at = walk.second.cursor.blocks.seek(next);
            let others = walk.second.cursor.blocks.docs().get(at..).unwrap_or(&[]);
            // Only behind its last document a word has none at or after what is looked for.
            let Some(&last) = others.last() else { return Ok(()) };
            if walk.second.cursor.block_max_score() <= walk.threshold {
                from += walk.first.cursor.blocks.docs()[from..].partition_point(|doc| *doc <= last);
                continue;
            }
            let docs = &walk.first.cursor.blocks.docs()[from..];
            let compared = table.compare(docs, &walk.second.cursor.blocks.docs()[at..]);
            for (of_first, of_second) in table.common() {
                walk.try_document(from + of_first, at + of_second, visit);
            }
            from += compared;
        }
    }
}

struct PhraseWalk<'p, 'a, L> {
    /// The rarest word, and the next.
    first: &'p mut PhraseMember<'a>,
    second: &'p mut PhraseMember<'a>,
    others: &'p mut [PhraseMember<'a>],
    lets_through: L,
    threshold: Score,
    ends: Vec<u32>,
}

impl<L: Fn(DocId) -> bool> PhraseWalk<'_, '_, L> {
    /// The document at `at` of the first word's block, if the second word has it.
    fn look_up(&mut self, at: usize, visit: Visit<'_>) {
        let doc = self.first.cursor.blocks.doc(at);
        let at_second = self.second.cursor.blocks.seek(doc);
        if self.second.cursor.blocks.doc(at_second) == doc {
            self.try_document(at, at_second, visit);
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
