//! Walks over the postings of words in one segment, block by block.
//!
//! Intersections of words of like frequency compare whole blocks over a table of documents, without branches; others
//! seek. Blocks that cannot hold a better match are stepped over (block-max, Ding and Suel, 2011), and not decoded.

use tantivy::{DocId, Score, TERMINATED};

use crate::error::EngineError;
use crate::full_text::query::deadline::Deadline;
use crate::full_text::query::words::skip_data::BLOCK_DOCS;
use crate::full_text::query::words::word_cursor::{FREQUENCIES, WordCursor, least_frequency, most_of};

/// Of words this many times rarer than the next, each document is looked for by itself.
pub const SEEK_RATIO: u32 = 8;

/// Documents that blocks of two words are compared over at once: a power of two.
const TABLE_DOCS: usize = 4_096;

/// Blocks between two looks at the clock: a power of two.
const BLOCKS_BETWEEN_LOOKS: usize = 64;

/// Takes a match; answers the score that others have to exceed.
pub type Visit<'v> = &'v mut dyn FnMut(DocId, Score) -> Score;

/// Looks at the clock once in a while.
pub struct Watch<'a> {
    deadline: &'a Deadline,
    blocks: usize,
}

impl<'a> Watch<'a> {
    pub fn new(deadline: &'a Deadline) -> Self {
        Self { deadline, blocks: 0 }
    }

    pub fn block(&mut self) -> Result<(), EngineError> {
        self.blocks += 1;
        if self.blocks & (BLOCKS_BETWEEN_LOOKS - 1) == 0 && self.deadline.is_due() {
            return Err(self.deadline.error());
        }
        Ok(())
    }
}

/// The documents of one word whose score exceeds `threshold`, which every visit raises.
pub fn walk_one(
    cursor: &mut WordCursor<'_>,
    mut threshold: Score,
    deadline: &Deadline,
    visit: Visit<'_>,
) -> Result<(), EngineError> {
    let mut watch = Watch::new(deadline);
    let skips = cursor.skips;
    let mut block = 0;
    loop {
        watch.block()?;
        // Blocks that cannot hold a better match are not decoded. The bound of one that is not full is not stored.
        let next = (block..skips.blocks()).find(|block| cursor.most_in(*block) > threshold);
        block = next.unwrap_or(skips.blocks());
        if block > 0 {
            cursor.blocks.seek(skips.last_doc(block - 1).saturating_add(1).min(TERMINATED));
        }
        for (doc, frequency) in cursor.blocks.docs().iter().zip(cursor.blocks.freqs()) {
            let score = cursor.weight.score(cursor.norms.fieldnorm_id(*doc), *frequency);
            if score > threshold {
                threshold = visit(*doc, score);
            }
        }
        if block >= skips.blocks() {
            return Ok(());
        }
        block += 1;
    }
}

/// Two or more cursors, the rarest first. `visit` is told the threshold too.
pub fn intersect(
    cursors: &mut [WordCursor<'_>],
    mut threshold: Score,
    deadline: &Deadline,
    visit: &mut impl FnMut(DocId, Score, Score) -> Score,
) -> Result<(), EngineError> {
    let [first, second, others @ ..] = cursors else { return Ok(()) };
    let others_max = others.iter().map(|other| f64::from(other.most)).sum();
    let mut watch = Watch::new(deadline);
    let mut pair = Pair::new(first, second, others_max);
    while pair.advance(others, threshold) {
        watch.block()?;
        'matches: for &(doc, of_pair) in &pair.found {
            let mut score = of_pair;
            for other in others.iter_mut() {
                if score + others_max <= f64::from(threshold) {
                    continue 'matches;
                }
                match other.seek(doc) {
                    Some(of_word) => score += f64::from(of_word),
                    None => continue 'matches,
                }
            }
            if score > f64::from(threshold) {
                threshold = visit(doc, score as Score, threshold);
            }
        }
    }
    Ok(())
}

/// The documents that two words have in common, the rarer one first, stretch by stretch.
struct Pair<'p, 'a> {
    first: &'p mut WordCursor<'a>,
    second: &'p mut WordCursor<'a>,
    /// The most that a match scores by the other words.
    others_max: f64,
    is_rare: bool,
    /// The first document that was not looked at.
    next: DocId,
    /// The last one of a block of the first word that may exceed the threshold.
    passed: DocId,
    table: BlockTable,
    /// What no document with the first word so often, or the second, scores more than by it.
    most_by_frequency: [[Score; FREQUENCIES]; 2],
    /// Where both words have a document that may exceed the threshold.
    likely: Vec<(usize, usize)>,
    /// Matches of this stretch, with their scores.
    found: Vec<(DocId, f64)>,
}

impl<'p, 'a> Pair<'p, 'a> {
    fn new(first: &'p mut WordCursor<'a>, second: &'p mut WordCursor<'a>, others_max: f64) -> Self {
        let is_rare = first.blocks.doc_freq() < second.blocks.doc_freq() / SEEK_RATIO;
        let most_by_frequency = [first.most_by_frequency(), second.most_by_frequency()];
        let (table, likely, found) =
            (BlockTable::new(), Vec::with_capacity(BLOCK_DOCS), Vec::with_capacity(BLOCK_DOCS));
        Self { first, second, others_max, is_rare, next: 0, passed: 0, table, most_by_frequency, likely, found }
    }

    /// Finds the matches of the next stretch; false at the end. Where none can exceed `threshold`, none is looked for.
    fn advance(&mut self, others: &mut [WordCursor<'_>], threshold: Score) -> bool {
        self.found.clear();
        let Some((start, end)) = self.first.next_block(self.next) else { return false };
        if end > self.passed {
            if !self.may_exceed((start, end), others, threshold) {
                self.next = end + 1;
                return true;
            }
            self.passed = end;
        }
        let from = self.first.blocks.seek(start);
        if self.is_rare {
            self.seek_each(from, threshold);
            self.next = end + 1;
            return true;
        }
        let doc = self.first.blocks.doc(from);
        // Only behind its last document a word has none at or after what is looked for.
        let Some((_, end_of_second)) = self.second.next_block(doc) else { return false };
        let of_pair = f64::from(self.first.ahead.most) + f64::from(self.second.ahead.most);
        if of_pair + self.others_max <= f64::from(threshold) {
            self.next = end.min(end_of_second) + 1;
        } else {
            self.compare_blocks(from, threshold);
        }
        true
    }

    /// Whether a document of this stretch, which is one of the first word's blocks, may score more than `threshold`.
    fn may_exceed(&mut self, (start, end): (DocId, DocId), others: &mut [WordCursor<'_>], threshold: Score) -> bool {
        let (of_first, threshold) = (f64::from(self.first.ahead.most), f64::from(threshold));
        if threshold <= 0.0 {
            return true;
        }
        if of_first + f64::from(self.second.most) + self.others_max <= threshold {
            return false;
        }
        let of_pair = of_first + f64::from(self.second.most_within(start, end));
        let of_other = |other: &mut WordCursor<'_>| f64::from(other.most_within(start, end));
        of_pair + self.others_max > threshold && of_pair + others.iter_mut().map(of_other).sum::<f64>() > threshold
    }

    /// The block of the first word from `from` on, document by document.
    fn seek_each(&mut self, from: usize, threshold: Score) {
        let first = &*self.first;
        let threshold = f64::from(threshold);
        let beside = f64::from(self.second.most) + self.others_max;
        let least = least_frequency(&self.most_by_frequency[0], threshold - beside);
        for at in from..first.blocks.block_len() {
            if first.blocks.freq(at) < least {
                continue;
            }
            let score = f64::from(first.score(at));
            let doc = first.blocks.doc(at);
            if score + beside > threshold
                && let Some(of_second) = self.second.seek(doc)
            {
                self.found.push((doc, score + f64::from(of_second)));
            }
        }
    }

    /// As far as both blocks and the table go; that of the first is read from `from` on. The length of a document is
    /// read only where the frequencies let it exceed the threshold.
    fn compare_blocks(&mut self, from: usize, threshold: Score) {
        let docs = &self.first.blocks.docs()[from..];
        let at = self.second.blocks.seek(docs[0]);
        let compared = self.table.compare(docs, &self.second.blocks.docs()[at..]);
        self.next = docs[compared - 1] + 1;
        self.likely.clear();
        let [of_first, of_second] = &self.most_by_frequency;
        let both = self.table.common().map(|(first, second)| (from + first, at + second));
        self.likely.extend(both.filter(|&(first, second)| {
            let of_pair = f64::from(most_of(of_first, self.first.blocks.freq(first)))
                + f64::from(most_of(of_second, self.second.blocks.freq(second)));
            of_pair + self.others_max > f64::from(threshold)
        }));
        let scored = self.likely.iter().map(|&(first, second)| {
            let score = f64::from(self.first.score(first)) + f64::from(self.second.score(second));
            (self.first.blocks.doc(first), score)
        });
        self.found.extend(scored);
    }
}

/// Finds what the blocks of two words have in common, without branches.
pub struct BlockTable {
    /// For each document modulo the size: one more than its position in the second block.
    positions: [u8; TABLE_DOCS],
    common: [(u8, u8); BLOCK_DOCS],
    count: usize,
}

impl BlockTable {
    pub fn new() -> Self {
        Self { positions: [0; TABLE_DOCS], common: [(0, 0); BLOCK_DOCS], count: 0 }
    }

    /// Compares both as far as they and the table go; answers how many of `docs` that are. Both ascend.
    pub fn compare(&mut self, docs: &[DocId], others: &[DocId]) -> usize {
        self.count = 0;
        let (Some(last), Some(last_other)) = (docs.last(), others.last()) else { return docs.len() };
        let end = docs[0].saturating_add(TABLE_DOCS as DocId - 1).min(*last).min(*last_other);
        let up_to_end = |docs: &[DocId]| docs.partition_point(|doc| *doc <= end);
        let docs = &docs[..up_to_end(docs)];
        let others = &others[..up_to_end(others)];
        // All lie within as many documents as the table has entries.
        for (position, doc) in others.iter().enumerate() {
            self.positions[*doc as usize % TABLE_DOCS] = position as u8 + 1;
        }
        for (position, doc) in docs.iter().enumerate() {
            let other = self.positions[*doc as usize % TABLE_DOCS];
            self.common[self.count % BLOCK_DOCS] = (position as u8, other);
            self.count += usize::from(other != 0);
        }
        for doc in others {
            self.positions[*doc as usize % TABLE_DOCS] = 0;
        }
        docs.len()
    }

    /// The positions in both of each document that both have.
    pub fn common(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        self.common[..self.count].iter().map(|(of_first, other)| (usize::from(*of_first), usize::from(*other) - 1))
    }
}
