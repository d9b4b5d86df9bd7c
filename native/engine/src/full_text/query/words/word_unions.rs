//! The best matches of a union of words in one segment, window by window.
//!
//! Within a window each word has a bound. Words whose bounds do not exceed the threshold together only add to what the
//! others find (MAXSCORE, Turtle and Flood, 1995; by windows of blocks as in Chakrabarti, Chaudhuri and Ganti, 2011).

use tantivy::{DocId, Score, TERMINATED};

use crate::error::EngineError;
use crate::full_text::query::deadline::Deadline;
use crate::full_text::query::words::word_walks::{Visit, Watch, WordCursor};
use sundew_base::bit_set::BitSet;

/// Documents of the widest window: a power of two, and 64 times a number.
const WINDOW_DOCS: usize = 4_096;

/// Of a word that only adds, all blocks are read where they are at most this many times those of the words that lead:
/// the bounds of its blocks save more scores than their reading costs.
const GUIDE_RATIO: u64 = 4;

/// A document is looked for in a set before it is scored where the set holds at most one in eight: the length of most documents
/// is not read then. The processor would guess the outcome wrong too often in a greater set.
const SPARSE: usize = 8;

/// Frequencies that are compared at once.
const LANES: usize = 16;

/// Frequencies whose greatest scores are kept; the score of the last one stands for all above.
const FREQUENCIES: usize = 32;

/// Visits, in order, the documents that `bits` hold, where they are known, and whose score exceeds `threshold`, which every
/// visit raises.
pub fn unite(
    cursors: &mut [WordCursor<'_>],
    bits: Option<&BitSet>,
    threshold: Score,
    deadline: &Deadline,
    visit: Visit<'_>,
) -> Result<(), EngineError> {
    let mut watch = Watch::new(deadline);
    let mut union = Union::new(cursors, threshold);
    let all = |_| true;
    let is_sparse = bits.is_some_and(|bits| bits.len() * SPARSE <= bits.words().len() * 64);
    while let Some((start, end)) = union.next_window() {
        watch.block()?;
        let end = match bits {
            Some(bits) if is_sparse => union.search(start, end, (&|doc| bits.contains(doc), &all), visit),
            Some(bits) => union.search(start, end, (&all, &|doc| bits.contains(doc)), visit),
            None => union.search(start, end, (&all, &all), visit),
        };
        union.leave(end);
    }
    Ok(())
}

struct Member<'c, 'a> {
    cursor: &'c mut WordCursor<'a>,
    /// Where its block is read on.
    at: usize,
    /// Windows end with its blocks, so that its bound is that of one block.
    guides: bool,
    /// By frequency, less one: the most that a document scores, however short it is.
    most_by_frequency: [Score; FREQUENCIES],
}

impl Member<'_, '_> {
    fn doc(&self) -> DocId {
        self.cursor.blocks.docs().get(self.at).copied().unwrap_or(TERMINATED)
    }

    fn last(&self) -> DocId {
        self.cursor.blocks.docs().last().copied().unwrap_or(TERMINATED)
    }

    /// The most that a document from `start` to `end` scores by this word, as far as its block tells.
    fn bound(&mut self, start: DocId, end: DocId) -> Score {
        // It has been sought up to the window at most: what is before its block is before the window.
        if self.cursor.blocks.docs().first().is_none_or(|first| *first > end) {
            0.0
        } else if self.last() >= end {
            self.cursor.block_max_score()
        } else if self.guides && self.last() < start {
            0.0
        } else {
            self.cursor.most
        }
    }

    /// Below this frequency no document scores more than `needed`.
    fn least_frequency(&self, needed: Score) -> u32 {
        let below = self.most_by_frequency[..FREQUENCIES - 1].iter().take_while(|most| **most <= needed).count();
        below as u32 + 1
    }

    /// The positions of its block from where it stands up to `end`.
    fn within(&self, end: DocId) -> std::ops::Range<usize> {
        let docs = self.cursor.blocks.docs().get(self.at..).unwrap_or(&[]);
        self.at..self.at + docs.partition_point(|doc| *doc <= end)
    }

    /// Behind `end`, which is not behind its block.
    fn leave(&mut self, end: DocId) {
        if self.doc() > end {
            return;
        }
        if self.last() > end {
            self.at = self.within(end).end;
        } else {
            self.cursor.blocks.advance();
            self.at = 0;
        }
    }
}

struct Union<'c, 'a> {
    /// The one that scores least at most first.
    members: Vec<Member<'c, 'a>>,
    /// Of the first ones, which without the others do not exceed the threshold.
    followers: usize,
    threshold: Score,
    /// The bounds of a window with their members, the least first.
    bounds: Vec<(Score, usize)>,
    /// Sums of the first bounds: of none, of one, and so on.
    sums: Vec<Score>,
    scores: Box<[Score; WINDOW_DOCS]>,
    found: [u64; WINDOW_DOCS / 64],
}

impl<'c, 'a> Union<'c, 'a> {
    fn new(cursors: &'c mut [WordCursor<'a>], threshold: Score) -> Self {
        let member = |cursor: &'c mut WordCursor<'a>| {
            let most_by_frequency = std::array::from_fn(|at| {
                let frequency = if at + 1 < FREQUENCIES { at as u32 + 1 } else { u32::MAX };
                cursor.weight.score(cursor.least_norm, frequency)
            });
            Member { at: 0, guides: true, most_by_frequency, cursor }
        };
        let mut members: Vec<_> = cursors.iter_mut().map(member).collect();
        members.sort_by(|a, b| a.cursor.most.total_cmp(&b.cursor.most));
        let (bounds, sums) = (Vec::with_capacity(members.len()), Vec::with_capacity(members.len() + 1));
        let scores = Box::new([0.0; WINDOW_DOCS]);
        Self { members, followers: 0, threshold, bounds, sums, scores, found: [0; WINDOW_DOCS / 64] }
    }

    /// From the first document that may be a match as far as the blocks of the leading words go.
    fn next_window(&mut self) -> Option<(DocId, DocId)> {
        let mut sum: Score = self.members[..self.followers].iter().map(|follower| follower.cursor.most).sum();
        let before = self.followers;
        while let Some(next) = self.members.get(self.followers)
            && sum + next.cursor.most <= self.threshold
        {
            sum += next.cursor.most;
            self.followers += 1;
        }
        let (followers, leaders) = self.members.split_at_mut(self.followers);
        if self.followers > before {
            let led: u64 = leaders.iter().map(|leader| u64::from(leader.cursor.blocks.doc_freq())).sum();
            for follower in &mut *followers {
                follower.guides = u64::from(follower.cursor.blocks.doc_freq()) <= GUIDE_RATIO * led;
            }
        }
        let start = leaders.iter().map(Member::doc).min().filter(|doc| *doc != TERMINATED)?;
        let mut end = start.saturating_add(WINDOW_DOCS as DocId - 1);
        for leader in leaders {
            end = end.min(leader.last());
        }
        for guide in followers.iter_mut().filter(|follower| follower.guides) {
            if guide.last() < start {
                guide.cursor.blocks.seek(start);
            }
            // Behind its last document it stays where it is.
            if guide.last() >= start {
                end = end.min(guide.last());
            }
        }
        Some((start, end))
    }

    fn leave(&mut self, end: DocId) {
        let leaders = &mut self.members[self.followers..];
        leaders.iter_mut().for_each(|leader| leader.leave(end));
    }

    /// Only documents that both of `tests` let through: the first is asked before a document is scored, the other after. Returns the
    /// last document that was searched.
    fn search(
        &mut self,
        start: DocId,
        end: DocId,
        tests: (&impl Fn(DocId) -> bool, &impl Fn(DocId) -> bool),
        visit: Visit<'_>,
    ) -> DocId {
        self.bounds.clear();
        self.bounds.extend(self.members.iter_mut().enumerate().map(|(at, member)| (member.bound(start, end), at)));
        self.bounds.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        self.sums.clear();
        let mut sum = 0.0;
        self.sums.push(sum);
        for (bound, _) in &self.bounds {
            sum += bound;
            self.sums.push(sum);
        }
        // With as many of the least bounds no document exceeds the threshold.
        let adding = self.sums[1..].partition_point(|sum| *sum <= self.threshold);
        let end = self.lead(adding, start, end);
        match self.bounds.len() - adding {
            0 => {}
            1 => self.search_one(adding, end, tests, visit),
            _ => self.search_several(adding, start, end, tests, visit),
        }
        end
    }

    /// Brings the words behind the first `adding` bounds to the window. One that only adds elsewhere leads here where its bound
    /// exceeds those of the others: it may stand anywhere up to the window, and the window ends with its block.
    fn lead(&mut self, adding: usize, start: DocId, mut end: DocId) -> DocId {
        for (_, member) in self.bounds[adding..].iter().filter(|(_, member)| *member < self.followers) {
            let member = &mut self.members[*member];
            member.at = member.cursor.blocks.seek(start);
            if member.last() < start {
                // Behind its last document it stays where it is.
                member.at = member.cursor.blocks.block_len();
            } else {
                end = end.min(member.last());
            }
        }
        end
    }

    /// The matches of one word, to which the first `adding` bounds' words add.
    fn search_one(
        &mut self,
        adding: usize,
        end: DocId,
        (before, after): (&impl Fn(DocId) -> bool, &impl Fn(DocId) -> bool),
        visit: Visit<'_>,
    ) {
        let leading = self.bounds[adding].1;
        let range = self.members[leading].within(end);
        let mut least = self.members[leading].least_frequency(self.threshold - self.sums[adding]);
        let mut from = range.start;
        while from < range.end {
            let to = (from + LANES).min(range.end);
            let member = &self.members[leading];
            let mut wanted = at_least(&member.cursor.blocks.freqs()[from..to], least);
            while wanted != 0 {
                let at = from + wanted.trailing_zeros() as usize;
                wanted &= wanted - 1;
                let member = &self.members[leading];
                let doc = member.cursor.blocks.doc(at);
                if !before(doc) {
                    continue;
                }
                let score = member.cursor.score(at);
                if score + self.sums[adding] <= self.threshold || !after(doc) {
                    continue;
                }
                if self.complete(adding, doc, score, visit) {
                    least = self.members[leading].least_frequency(self.threshold - self.sums[adding]);
                }
            }
            from = to;
        }
    }

    /// The matches of all words but those of the first `adding` bounds, added up over a table.
    fn search_several(
        &mut self,
        adding: usize,
        start: DocId,
        end: DocId,
        (before, after): (&impl Fn(DocId) -> bool, &impl Fn(DocId) -> bool),
        visit: Visit<'_>,
    ) {
        for (_, leading) in &self.bounds[adding..] {
            let member = &self.members[*leading];
            for at in member.within(end) {
                let doc = member.cursor.blocks.doc(at);
                if !before(doc) {
                    continue;
                }
                let slot = (doc - start) as usize % WINDOW_DOCS;
                self.scores[slot] += member.cursor.score(at);
                self.found[slot / 64] |= 1 << (slot % 64);
            }
        }
        for word in 0..=((end - start) as usize / 64) {
            let mut found = std::mem::take(&mut self.found[word]);
            while found != 0 {
                let slot = word * 64 + found.trailing_zeros() as usize;
                found &= found - 1;
                let score = std::mem::take(&mut self.scores[slot]);
                let doc = start + slot as DocId;
                if score + self.sums[adding] > self.threshold && after(doc) {
                    self.complete(adding, doc, score, visit);
                }
            }
        }
    }

    /// Adds what the words of the first `adding` bounds score, and visits a match; whether it did.
    fn complete(&mut self, adding: usize, doc: DocId, mut score: Score, visit: Visit<'_>) -> bool {
        for at in (0..adding).rev() {
            if score + self.sums[at + 1] <= self.threshold {
                return false;
            }
            let (bound, member) = self.bounds[at];
            if bound > 0.0
                && let Some(of_word) = self.members[member].cursor.seek(doc)
            {
                score += of_word;
            }
        }
        let is_match = score > self.threshold;
        if is_match {
            self.threshold = visit(doc, score);
        }
        is_match
    }
}

/// A bit for each of up to `LANES` frequencies that is not below `least`.
fn at_least(frequencies: &[u32], least: u32) -> u32 {
    let bit = |(at, frequency): (usize, &u32)| u32::from(*frequency >= least) << at;
    match <&[u32; LANES]>::try_from(frequencies) {
        Ok(lanes) => lanes.iter().enumerate().map(bit).sum(),
        Err(_) => frequencies.iter().enumerate().map(bit).sum(),
    }
}
