//! The best matches of a union of words in one segment, window by window.
//!
//! Within a window each word has a bound. Words whose bounds do not exceed the threshold together only add to what the
//! others find (MAXSCORE, Turtle and Flood, 1995; by windows of blocks as in Chakrabarti, Chaudhuri and Ganti, 2011).

use std::cell::Cell;

use tantivy::{DocId, Score, TERMINATED};

use crate::error::EngineError;
use crate::full_text::query::deadline::Deadline;
use crate::full_text::query::words::skip_data::BLOCK_DOCS;
use crate::full_text::query::words::word_cursor::{FREQUENCIES, WordCursor, least_frequency};
use crate::full_text::query::words::word_walks::{Visit, Watch};
use sundew_base::bit_set::BitSet;

/// Documents of the widest window: a power of two, and 64 times a number.
const WINDOW_DOCS: usize = 4_096;

/// Windows also end with the blocks of a word that only adds where these are at most this many times those of the words that
/// lead: the bound of one block is less than that of several.
const GUIDE_RATIO: u64 = 4;

/// A document is looked for in a set before it is scored where the set holds at most one in eight: the length of most documents
/// is not read then. The processor would guess the outcome wrong too often in a greater set.
const SPARSE: usize = 8;

/// Frequencies that are compared at once.
const LANES: usize = 16;

/// Visits, in order, the documents that `bits` hold, where they are known, and whose score exceeds `threshold`, which every
/// visit raises.
pub fn unite(
    cursors: &mut [WordCursor<'_>],
    bits: Option<&BitSet>,
    threshold: Score,
    deadline: &Deadline,
    visit: Visit<'_>,
) -> Result<(), EngineError> {
    let mut union = Union::new(cursors, threshold);
    let ended = union.search_all(bits, deadline, visit);
    // Each window leaves zeros.
    ZEROS.set(Some(union.scores));
    ended
}

thread_local! {
    /// Nothing but zeros, which are not written for every query: they are as large as the nearest cache of a processor.
    static ZEROS: Cell<Option<Box<[f64; WINDOW_DOCS]>>> = const { Cell::new(None) };
}

struct Member<'c, 'a> {
    cursor: &'c mut WordCursor<'a>,
    /// Where its block is read on, once it leads in a window.
    at: usize,
    /// Windows end with its blocks.
    guides: bool,
    most_by_frequency: [Score; FREQUENCIES],
}

impl Member<'_, '_> {
    fn last(&self) -> DocId {
        self.cursor.blocks.docs().last().copied().unwrap_or(TERMINATED)
    }

    /// The positions of its block from where it stands up to `end`.
    fn within(&self, end: DocId) -> std::ops::Range<usize> {
        let docs = self.cursor.blocks.docs().get(self.at..).unwrap_or(&[]);
        self.at..self.at + docs.partition_point(|doc| *doc <= end)
    }
}

struct Union<'c, 'a> {
    /// The one that scores least at most first.
    members: Vec<Member<'c, 'a>>,
    /// Of the first ones, which without the others do not exceed the threshold.
    followers: usize,
    /// The first document that was not looked at.
    next: DocId,
    threshold: f64,
    /// The bounds of a window with their members, the least first.
    bounds: Vec<(Score, usize)>,
    /// Sums of the first bounds: of none, of one, and so on.
    sums: Vec<f64>,
    scores: Box<[f64; WINDOW_DOCS]>,
    found: [u64; WINDOW_DOCS / 64],
    /// Of one word's block: positions, and what the word scores there.
    candidates: [(usize, Score); BLOCK_DOCS],
}

impl<'c, 'a> Union<'c, 'a> {
    fn new(cursors: &'c mut [WordCursor<'a>], threshold: Score) -> Self {
        let member = |cursor: &'c mut WordCursor<'a>| Member {
            at: 0,
            guides: false,
            most_by_frequency: cursor.most_by_frequency(),
            cursor,
        };
        let mut members: Vec<_> = cursors.iter_mut().map(member).collect();
        members.sort_by(|a, b| a.cursor.most.total_cmp(&b.cursor.most));
        let (bounds, sums) = (Vec::with_capacity(members.len()), Vec::with_capacity(members.len() + 1));
        let scores = ZEROS.take().unwrap_or_else(|| Box::new([0.0; WINDOW_DOCS]));
        let (found, candidates) = ([0; WINDOW_DOCS / 64], [(0, 0.0); BLOCK_DOCS]);
        let threshold = f64::from(threshold);
        Self { members, followers: 0, next: 0, threshold, bounds, sums, scores, found, candidates }
    }

    fn search_all(&mut self, bits: Option<&BitSet>, deadline: &Deadline, visit: Visit<'_>) -> Result<(), EngineError> {
        let mut watch = Watch::new(deadline);
        let all = |_| true;
        let is_sparse = bits.is_some_and(|bits| bits.len() * SPARSE <= bits.words().len() * 64);
        while let Some((start, end)) = self.next_window() {
            watch.block()?;
            if !self.may_exceed(start, end) {
                self.next = end + 1;
                continue;
            }
            let end = match bits {
                Some(bits) if is_sparse => self.search(start, end, (&|doc| bits.contains(doc), &all), visit),
                Some(bits) => self.search(start, end, (&all, &|doc| bits.contains(doc)), visit),
                None => self.search(start, end, (&all, &all), visit),
            };
            self.next = end + 1;
        }
        Ok(())
    }

    /// From the first document that may be a match as far as the blocks of the leading words go, none of which need be decoded.
    fn next_window(&mut self) -> Option<(DocId, DocId)> {
        let mut sum: f64 = self.members[..self.followers].iter().map(|follower| f64::from(follower.cursor.most)).sum();
        let before = self.followers;
        while let Some(next) = self.members.get(self.followers)
            && sum + f64::from(next.cursor.most) <= self.threshold
        {
            sum += f64::from(next.cursor.most);
            self.followers += 1;
        }
        let (followers, leaders) = self.members.split_at_mut(self.followers);
        if self.followers > before {
            let led: u64 = leaders.iter().map(|leader| u64::from(leader.cursor.blocks.doc_freq())).sum();
            for follower in &mut *followers {
                follower.guides = u64::from(follower.cursor.blocks.doc_freq()) <= GUIDE_RATIO * led;
            }
        }
        let (mut start, mut end) = (TERMINATED, TERMINATED);
        for leader in leaders {
            if let Some((first, last)) = leader.cursor.next_block(self.next) {
                (start, end) = (start.min(first), end.min(last));
            }
        }
        if start == TERMINATED {
            return None;
        }
        for guide in followers.iter_mut().filter(|follower| follower.guides) {
            if let Some((_, last)) = guide.cursor.next_block(start) {
                end = end.min(last);
            }
        }
        Some((start, end))
    }

    /// Whether a document of the window may score more than the threshold: finds the bounds of all words.
    fn may_exceed(&mut self, start: DocId, end: DocId) -> bool {
        self.bounds.clear();
        let bounds = self.members.iter_mut().map(|member| member.cursor.most_within(start, end));
        self.bounds.extend(bounds.zip(0..));
        self.bounds.iter().map(|(bound, _)| f64::from(*bound)).sum::<f64>() > self.threshold
    }

    /// After `may_exceed`. Only documents that both of `tests` let through: the first is asked before a document is
    /// scored, the other after. Returns the last document that was searched.
    fn search(
        &mut self,
        start: DocId,
        end: DocId,
        tests: (&impl Fn(DocId) -> bool, &impl Fn(DocId) -> bool),
        visit: Visit<'_>,
    ) -> DocId {
        self.bounds.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        self.sums.clear();
        let mut sum = 0.0;
        self.sums.push(sum);
        for (bound, _) in &self.bounds {
            sum += f64::from(*bound);
            self.sums.push(sum);
        }
        // With as many of the least bounds no document exceeds the threshold.
        let adding = self.sums[1..].partition_point(|sum| *sum <= self.threshold);
        let leading = self.bounds.len() - adding;
        let end = if leading > 1 { end.min(start.saturating_add(WINDOW_DOCS as DocId - 1)) } else { end };
        let end = self.lead(adding, start, end);
        match leading {
            0 => {}
            1 => self.search_one(adding, end, tests, visit),
            _ => self.search_several(adding, start, end, tests, visit),
        }
        end
    }

    /// Brings the words behind the first `adding` bounds to the window, which ends with the block of each.
    fn lead(&mut self, adding: usize, start: DocId, mut end: DocId) -> DocId {
        for (_, member) in &self.bounds[adding..] {
            let member = &mut self.members[*member];
            member.at = member.cursor.blocks.seek(start);
            // Behind its last document it stays where it is.
            if member.last() >= start {
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
        let (leading, of_others) = (self.bounds[adding].1, self.sums[adding]);
        let member = &self.members[leading];
        let range = member.within(end);
        let least = least_frequency(&member.most_by_frequency, self.threshold - of_others);
        let mut count = 0;
        for from in range.clone().step_by(LANES) {
            let to = (from + LANES).min(range.end);
            let mut wanted = at_least(&member.cursor.blocks.freqs()[from..to], least);
            while wanted != 0 {
                let at = from + wanted.trailing_zeros() as usize;
                wanted &= wanted - 1;
                if before(member.cursor.blocks.doc(at)) {
                    self.candidates[count].0 = at;
                    count += 1;
                }
            }
        }
        // The lengths of all are read before any score decides what is done next: they lie far apart, and are waited
        // for together.
        let mut kept = 0;
        for number in 0..count {
            let at = self.candidates[number].0;
            let score = member.cursor.score(at);
            self.candidates[kept] = (at, score);
            kept += usize::from(f64::from(score) + of_others > self.threshold);
        }
        for number in 0..kept {
            let (at, score) = self.candidates[number];
            let score = f64::from(score);
            let doc = self.members[leading].cursor.blocks.doc(at);
            if score + of_others > self.threshold && after(doc) {
                self.complete(adding, doc, score, visit);
            }
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
                self.scores[slot] += f64::from(member.cursor.score(at));
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

    /// Adds what the words of the first `adding` bounds score, and visits a match.
    fn complete(&mut self, adding: usize, doc: DocId, mut score: f64, visit: Visit<'_>) {
        for at in (0..adding).rev() {
            if score + self.sums[at + 1] <= self.threshold {
                return;
            }
            let (bound, member) = self.bounds[at];
            if bound > 0.0
                && let Some(of_word) = self.members[member].cursor.seek(doc)
            {
                score += f64::from(of_word);
            }
        }
        if score > self.threshold {
            self.threshold = f64::from(visit(doc, score as Score));
        }
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
