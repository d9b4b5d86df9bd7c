//! A word's postings in one segment: the block that is decoded, and what is known of those ahead of it.

use tantivy::fieldnorm::FieldNormReader;
use tantivy::postings::BlockSegmentPostings;
use tantivy::query::Bm25Weight;
use tantivy::{DocId, Score, TERMINATED};

use crate::full_text::query::boolean::bool_query::ADDED_IN_ANY_ORDER;
use crate::full_text::query::words::block_bounds::BlockBounds;
use crate::full_text::query::words::skip_data::SkipData;

/// Frequencies whose greatest scores are compared; the score of the last one stands for all above.
pub const FREQUENCIES: usize = 32;

/// Blocks whose bounds are compared for the greatest of a stretch; of more the word's own bound is taken.
const COMPARED_MAX: usize = 32;

/// A double has 53 bits, of which what is added has 24; the least score is itself rounded.
const EXACT_SUM: f64 = (1u64 << 28) as f64;

/// The number of a field, and where in its file the postings of a word begin.
pub type WordPlace = (u32, usize);

pub struct WordCursor<'a> {
    pub place: WordPlace,
    pub blocks: BlockSegmentPostings,
    pub norms: FieldNormReader,
    pub weight: &'a Bm25Weight,
    /// What no document scores more than by this word.
    pub most: Score,
    /// Of the shortest text of the field in the segment.
    pub least_norm: u8,
    /// Of the longest.
    pub greatest_norm: u8,
    /// Where the stored bounds of blocks are those of another average length.
    pub bounds: Option<BlockBounds>,
    pub skips: &'a SkipData,
    pub ahead: BlockAhead,
}

/// The block that `next_block` has come to, at or behind the one that is decoded.
pub struct BlockAhead {
    /// Of the full blocks those before it; the documents behind all of them are a block, too.
    number: usize,
    /// Its documents lie within these two, of which the second is one of them.
    first: DocId,
    last: DocId,
    /// No document of the block scores more.
    pub most: Score,
}

impl BlockAhead {
    /// Before any.
    pub const NONE: Self = Self { number: 0, first: 1, last: 0, most: 0.0 };

    fn is_none(&self) -> bool {
        self.last < self.first
    }
}

impl WordCursor<'_> {
    /// Of the document at `at` of the block.
    pub fn score(&self, at: usize) -> Score {
        self.score_of(self.blocks.doc(at), self.blocks.freq(at))
    }

    pub fn score_of(&self, doc: DocId, frequency: u32) -> Score {
        self.weight.score(self.norms.fieldnorm_id(doc), frequency)
    }

    /// The least that a document with the word scores.
    fn least(&self) -> Score {
        self.weight.score(self.greatest_norm, 1)
    }

    /// By frequency, less one: the most that a document scores, however short it is.
    pub fn most_by_frequency(&self) -> [Score; FREQUENCIES] {
        std::array::from_fn(|at| {
            let frequency = if at + 1 < FREQUENCIES { at as u32 + 1 } else { u32::MAX };
            self.weight.score(self.least_norm, frequency)
        })
    }

    /// The score of `doc` if it is there; documents ascend.
    pub fn seek(&mut self, doc: DocId) -> Option<Score> {
        let at = self.blocks.seek(doc);
        (self.blocks.doc(at) == doc).then(|| self.score(at))
    }

    /// How often `doc` has the word, which may be never; documents ascend.
    pub fn frequency(&mut self, doc: DocId) -> u32 {
        let at = self.blocks.seek(doc);
        self.blocks.freq(at) * u32::from(self.blocks.doc(at) == doc)
    }

    /// Goes to the block of the first document from `doc` on, which ascends: answers where that may be, up to the last one of the
    /// block. None is decoded but the one that is not full, before which all documents have to be done with. `None` at the end.
    pub fn next_block(&mut self, doc: DocId) -> Option<(DocId, DocId)> {
        if self.ahead.last < doc || self.ahead.is_none() {
            self.ahead = self.block_from(doc);
        }
        let BlockAhead { first, last, .. } = self.ahead;
        (last < TERMINATED).then_some((first.max(doc), last))
    }

    fn block_from(&mut self, doc: DocId) -> BlockAhead {
        let number = self.skips.block_from(doc, self.ahead.number);
        let first = if number > 0 { self.skips.last_doc(number - 1) + 1 } else { 0 };
        if number < self.skips.blocks() {
            return BlockAhead { number, first, last: self.skips.last_doc(number), most: self.most_in(number) };
        }
        let at = self.blocks.seek(doc.max(first));
        match self.blocks.docs().get(at..) {
            Some(&[first, ..]) => {
                let last = self.blocks.docs().last().copied().unwrap_or(first);
                BlockAhead { number, first, last, most: self.block_max_score() }
            }
            _ => BlockAhead { number, first: TERMINATED, last: TERMINATED, most: 0.0 },
        }
    }

    /// No document from `start` to `end` scores more; `start` ascends, as in `next_block`.
    pub fn most_within(&mut self, start: DocId, end: DocId) -> Score {
        let Some((first, mut last)) = self.next_block(start).filter(|(first, _)| *first <= end) else { return 0.0 };
        debug_assert!(first >= start);
        let mut most = self.ahead.most;
        for block in self.ahead.number + 1..=self.ahead.number + COMPARED_MAX {
            if last >= end || block > self.skips.blocks() {
                return most;
            }
            if block == self.skips.blocks() {
                break;
            }
            most = most.max(self.most_in(block));
            last = self.skips.last_doc(block);
        }
        self.most
    }

    /// No document of a full block scores more. The bounds of a field without norms are stored as 0, and tell nothing.
    pub fn most_in(&self, block: usize) -> Score {
        match (self.skips.best(block), &self.bounds) {
            ((_, 0), _) => self.most,
            ((norm, frequency), Some(bounds)) => bounds.of_best(norm, frequency, self.most),
            ((norm, frequency), None) => self.weight.score(norm, frequency),
        }
    }

    /// The same of the block that is decoded.
    pub fn block_max_score(&mut self) -> Score {
        let stored = match &self.bounds {
            Some(bounds) => bounds.of_block(&mut self.blocks, &self.norms, self.most),
            None => self.blocks.block_max_score(&self.norms, self.weight),
        };
        if stored > 0.0 { stored } else { self.most }
    }
}

/// Whether the words of a document have one score, in whatever order they are added up: in double precision a sum of at most
/// `EXACT_SUM` times the least of what is added is not rounded on the way. It may be where one of the words is in nearly all of a
/// great many documents.
pub fn add_up_exactly(cursors: &[WordCursor<'_>]) -> bool {
    let most: f64 = cursors.iter().map(|cursor| f64::from(cursor.most)).sum();
    cursors.len() <= ADDED_IN_ANY_ORDER || cursors.iter().all(|cursor| most <= f64::from(cursor.least()) * EXACT_SUM)
}

/// The score of a document by all words in the order of the query, for words that do not add up exactly; documents ascend.
pub fn score_in_order(cursors: &mut [WordCursor<'_>], doc: DocId) -> Score {
    cursors.iter_mut().filter_map(|cursor| cursor.seek(doc)).map(f64::from).sum::<f64>() as Score
}

/// What no document with the word so often scores more than.
pub fn most_of(most_by_frequency: &[Score; FREQUENCIES], frequency: u32) -> Score {
    most_by_frequency[(frequency.saturating_sub(1) as usize).min(FREQUENCIES - 1)]
}

/// Below this frequency no document scores more than `needed`.
pub fn least_frequency(most_by_frequency: &[Score; FREQUENCIES], needed: f64) -> u32 {
    let below = most_by_frequency[..FREQUENCIES - 1].iter().take_while(|most| f64::from(**most) <= needed).count();
    below as u32 + 1
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tantivy::SegmentReader;

    use super::*;
    use crate::full_text::fields::Fields;
    use crate::full_text::query::words::word_fixture::{FoundWord, segment_of};
    use crate::full_text::random::Random;

    const SEED: u64 = 20_261_127;

    const WORDS: [(&str, usize); 4] = [("ash", 1), ("beech", 6), ("elm", 90), ("dogwood", 400)];

    /// A segment of texts that have each word as often as its share tells, once and sometimes more often.
    fn segment(documents: u32) -> (SegmentReader, Arc<Fields>) {
        println!("seed {SEED}");
        let mut random = Random(SEED);
        segment_of(documents, |_| {
            let mut text = vec!["filler"; 1 + random.below(60)];
            for (word, one_in) in WORDS {
                let times = if random.below(one_in) == 0 { 1 + random.below(3) * random.below(3) } else { 0 };
                text.extend(vec![word; times]);
            }
            text.join(" ")
        })
    }

    /// The documents of a word with their scores by an average length of texts, and what tells of its blocks.
    fn check(reader: &SegmentReader, fields: &Fields, word: &str, average: Score) {
        let found = FoundWord::find(reader, fields, word, average, 10_000_000);
        let cursor = || found.cursor();
        let mut scored = Vec::new();
        let mut all = cursor();
        while !all.blocks.docs().is_empty() {
            scored.extend((0..all.blocks.block_len()).map(|at| (all.blocks.doc(at), all.score(at))));
            all.blocks.advance();
        }
        let within = |start: DocId, end: DocId| scored.iter().filter(move |(doc, _)| (start..=end).contains(doc));
        let mut random = Random(SEED);
        for width in [1, 90, 3_000, 40_000] {
            let (mut blocks, mut bounds) = (cursor(), cursor());
            let mut start = random.below(width) as DocId;
            loop {
                let end = start + random.below(width) as DocId;
                let most = bounds.most_within(start, end);
                assert!(within(start, end).all(|(_, score)| *score <= most), "{word} {start}..={end}: {most}");
                let Some((first, last)) = blocks.next_block(start) else { break };
                assert!(within(start, last).all(|(doc, _)| *doc >= first), "{word} {start}: {first}");
                assert!(within(last, last).count() == 1 && first >= start && last >= first, "{word} {start}: {last}");
                assert!(within(first, last).all(|(_, score)| *score <= blocks.ahead.most), "{word} {first}..={last}");
                // Whatever was looked at, what lies from there on can be read.
                assert_eq!(blocks.seek(last), within(last, last).next().map(|(_, score)| *score));
                start = end + 1;
            }
            assert_eq!(within(start, TERMINATED).count(), 0, "{word} {start}");
        }
    }

    #[test]
    fn words_add_up_exactly_unless_one_of_several_is_next_to_nothing() {
        let (reader, fields) = segment(500);
        let find = |word, documents| FoundWord::find(&reader, &fields, word, 31.0, documents);
        let (rare, frequent) = (find("dogwood", 1_000_000_000), find("beech", 1_000_000_000));
        // It is in all of 500 documents, or in half of a thousand.
        let (mut in_all, in_half) = (find("ash", 500), find("ash", 1_000));
        in_all.weight = in_all.weight.boost_by(1e-5);
        let exact = |words: [&FoundWord; 3], count: usize| add_up_exactly(&words.map(FoundWord::cursor)[..count]);
        assert!(exact([&rare, &frequent, &in_half], 3));
        assert!(!exact([&rare, &frequent, &in_all], 3) && !exact([&in_all, &frequent, &rare], 3));
        assert!(exact([&rare, &in_all, &frequent], 2), "two have one sum in any case");
    }

    #[test]
    fn blocks_ahead_hold_the_documents_and_bound_the_scores_of_a_walk() {
        // Of a word in all documents the last block is full; of the others it is not.
        let (reader, fields) = segment(128 * 160);
        for (word, _) in WORDS {
            for average in [12.0, 31.0, 90.0] {
                check(&reader, &fields, word, average);
            }
        }
    }
}
