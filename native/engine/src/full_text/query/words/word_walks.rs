//! Walks over the postings of words in one segment, block by block.
//!
//! Intersections of words of like frequency compare whole blocks over a table of documents, without branches; others
//! seek. Blocks that cannot hold a better match are stepped over (block-max, Ding and Suel, 2011).

use tantivy::fieldnorm::FieldNormReader;
use tantivy::postings::BlockSegmentPostings;
use tantivy::query::Bm25Weight;
use tantivy::{DocId, Score, TERMINATED};

use crate::error::EngineError;
use crate::full_text::query::deadline::Deadline;
use crate::full_text::query::words::block_bounds::BlockBounds;
use crate::full_text::query::words::skip_data::{BLOCK_DOCS, SkipData};

/// Of words this many times rarer than the next, each document is looked for by itself.
pub const SEEK_RATIO: u32 = 8;

/// Documents that blocks of two words are compared over at once: a power of two.
const TABLE_DOCS: usize = 4_096;

/// Blocks between two looks at the clock: a power of two.
const BLOCKS_BETWEEN_LOOKS: usize = 64;

/// Takes a match; answers the score that others have to exceed.
pub type Visit<'v> = &'v mut dyn FnMut(DocId, Score) -> Score;

/// A word's postings in one segment, block by block.
pub struct WordCursor<'a> {
    pub blocks: BlockSegmentPostings,
    pub norms: FieldNormReader,
    pub weight: &'a Bm25Weight,
    /// What no document scores more than by this word.
    pub most: Score,
    /// Of the shortest text of the field in the segment.
    pub least_norm: u8,
    /// Where the stored bounds of blocks are those of another average length.
    pub bounds: Option<BlockBounds>,
}

impl WordCursor<'_> {
    /// Of the document at `at` of the block.
    pub fn score(&self, at: usize) -> Score {
        self.weight.score(self.norms.fieldnorm_id(self.blocks.doc(at)), self.blocks.freq(at))
    }

    /// No document of the block scores more. The bounds of a field without norms are stored as 0, and tell nothing.
    pub fn block_max_score(&mut self) -> Score {
        let stored = match &self.bounds {
            Some(bounds) => bounds.of_block(&mut self.blocks, &self.norms, self.most),
            None => self.blocks.block_max_score(&self.norms, self.weight),
        };
        if stored > 0.0 { stored } else { self.most }
    }

    /// The same of a block whose greatest score `skips` tell.
    fn most_in(&self, skips: &SkipData, block: usize) -> Score {
        match (skips.best(block), &self.bounds) {
            ((_, 0), _) => self.most,
            ((norm, frequency), Some(bounds)) => bounds.of_best(norm, frequency, self.most),
            ((norm, frequency), None) => self.weight.score(norm, frequency),
        }
    }

    /// The score of `doc` if it is there; documents ascend.
    pub fn seek(&mut self, doc: DocId) -> Option<Score> {
        let at = self.blocks.seek(doc);
        (self.blocks.doc(at) == doc).then(|| self.score(at))
    }
}

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

/// The documents of one word whose score exceeds `threshold`, which every visit raises. `skips` are of its postings.
pub fn walk_one(
    cursor: &mut WordCursor<'_>,
    skips: &SkipData,
    mut threshold: Score,
    deadline: &Deadline,
    visit: Visit<'_>,
) -> Result<(), EngineError> {
    let mut watch = Watch::new(deadline);
    let mut block = 0;
    loop {
        watch.block()?;
        // Blocks that cannot hold a better match are not decoded. The bound of one that is not full is not stored.
        let next = (block..skips.blocks()).find(|block| cursor.most_in(skips, *block) > threshold);
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

/// All matches of a union, in order.
pub fn gather(
    cursors: &mut [WordCursor<'_>],
    lets_through: impl Fn(DocId) -> bool,
    deadline: &Deadline,
) -> Result<Vec<(DocId, Score)>, EngineError> {
    let mut watch = Watch::new(deadline);
    let postings: u32 = cursors.iter().map(|cursor| cursor.blocks.doc_freq()).sum();
    let mut found: Vec<(DocId, Score)> = Vec::with_capacity(postings as usize);
    for cursor in cursors.iter_mut() {
        while !cursor.blocks.docs().is_empty() {
            watch.block()?;
            let wanted = cursor.blocks.docs().iter().enumerate().filter(|(_, doc)| lets_through(**doc));
            found.extend(wanted.map(|(at, doc)| (*doc, cursor.score(at))));
            cursor.blocks.advance();
        }
    }
    if cursors.len() > 1 {
        // Stable, and fast on what is a few sorted runs: the words of a document are added up in their order.
        found.sort_by_key(|(doc, _)| *doc);
        found.dedup_by(|next, kept| {
            let is_same = next.0 == kept.0;
            if is_same {
                kept.1 += next.1;
            }
            is_same
        });
    }
    Ok(found)
}

/// Two or more cursors, the rarest first. `visit` is told the threshold too.
pub fn intersect(
    cursors: &mut [WordCursor<'_>],
    mut threshold: Score,
    deadline: &Deadline,
    visit: &mut impl FnMut(DocId, Score, Score) -> Score,
) -> Result<(), EngineError> {
    let [first, second, others @ ..] = cursors else { return Ok(()) };
    let others_max = others.iter().map(|other| other.most).sum();
    let mut watch = Watch::new(deadline);
    let mut pair = Pair::new(first, second, others_max);
    while pair.advance(threshold) {
        watch.block()?;
        'matches: for &(doc, of_pair) in &pair.found {
            let mut score = of_pair;
            for other in others.iter_mut() {
                if score + others_max <= threshold {
                    continue 'matches;
                }
                match other.seek(doc) {
                    Some(of_word) => score += of_word,
                    None => continue 'matches,
                }
            }
            if score > threshold {
                threshold = visit(doc, score, threshold);
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
    others_max: Score,
    is_rare: bool,
    /// Where the first one's block is read on.
    from: usize,
    table: BlockTable,
    /// Matches of this stretch, with their scores.
    found: Vec<(DocId, Score)>,
}

impl<'p, 'a> Pair<'p, 'a> {
    fn new(first: &'p mut WordCursor<'a>, second: &'p mut WordCursor<'a>, others_max: Score) -> Self {
        let is_rare = first.blocks.doc_freq() < second.blocks.doc_freq() / SEEK_RATIO;
        let (table, found) = (BlockTable::new(), Vec::with_capacity(BLOCK_DOCS));
        Self { first, second, others_max, is_rare, from: 0, table, found }
    }

    /// Finds the matches of the next stretch; false at the end. Where none can exceed `threshold`, none is looked for.
    fn advance(&mut self, threshold: Score) -> bool {
        self.found.clear();
        if self.from >= self.first.blocks.block_len() {
            self.first.blocks.advance();
            self.from = 0;
        }
        if self.first.blocks.docs().is_empty() {
            return false;
        }
        if self.is_rare {
            self.seek_each(threshold);
            return true;
        }
        let at = self.second.blocks.seek(self.first.blocks.doc(self.from));
        // Only behind its last document a word has none at or after what is looked for.
        let Some(&last) = self.second.blocks.docs()[at.min(self.second.blocks.block_len())..].last() else {
            return false;
        };
        let at_most = self.first.block_max_score() + self.second.block_max_score() + self.others_max;
        if at_most <= threshold {
            self.from += self.first.blocks.docs()[self.from..].partition_point(|doc| *doc <= last);
        } else {
            self.compare_blocks(at);
        }
        true
    }

    /// The block of the first word, document by document.
    fn seek_each(&mut self, threshold: Score) {
        let (first, from) = (&mut *self.first, self.from);
        self.from = first.blocks.block_len();
        let beside = self.second.most + self.others_max;
        if first.block_max_score() + beside <= threshold {
            return;
        }
        for at in from..self.from {
            let score = first.score(at);
            let doc = first.blocks.doc(at);
            if score + beside > threshold
                && let Some(of_second) = self.second.seek(doc)
            {
                self.found.push((doc, score + of_second));
            }
        }
    }

    /// As far as both blocks and the table go; that of the second is read from `at` on.
    fn compare_blocks(&mut self, at: usize) {
        let (docs, others) = (&self.first.blocks.docs()[self.from..], &self.second.blocks.docs()[at..]);
        let compared = self.table.compare(docs, others);
        for (of_first, of_second) in self.table.common() {
            let (of_first, of_second) = (self.from + of_first, at + of_second);
            let score = self.first.score(of_first) + self.second.score(of_second);
            self.found.push((self.first.blocks.doc(of_first), score));
        }
        self.from += compared;
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
