//! Single documents looked for in the postings of words, where a filter lets few through.

use std::borrow::Cow;
use std::sync::Arc;

use tantivy::{DocId, Score};

use crate::error::EngineError;
use crate::full_text::query::deadline::Deadline;
use crate::full_text::query::words::word_cursor::{WordCursor, score_in_order};
use crate::full_text::query::words::word_frequencies::{FrequencyCache, WordFrequencies};
use crate::full_text::query::words::word_walks::{Visit, Watch};
use sundew_base::bit_set::BitSet;

/// Documents that are looked for in one word after the other.
const BATCH: usize = 64;

/// To look for one document in a word costs at least as much as to read this many words of its bits.
const BIT_WORDS: usize = 8;

/// A word that documents are looked for in: by its frequencies where they are kept, or else in its postings.
pub struct Sought<'a> {
    cursor: WordCursor<'a>,
    frequencies: Option<Arc<WordFrequencies>>,
}

impl<'a> Sought<'a> {
    /// Of words in which `wanted` of all `docs` of a segment are looked for.
    pub fn of(
        cursors: Vec<WordCursor<'a>>,
        (wanted, docs): (u64, DocId),
        kept: &FrequencyCache,
        deadline: &Deadline,
    ) -> Result<Vec<Self>, EngineError> {
        let mut watch = Watch::new(deadline);
        let sought = cursors.into_iter().map(|cursor| {
            let frequencies = kept.find(&cursor, (wanted, docs), &mut watch)?;
            Ok(Self { cursor, frequencies })
        });
        sought.collect()
    }

    fn documents(&self) -> Option<&BitSet> {
        self.frequencies.as_deref().map(WordFrequencies::documents)
    }

    /// How often `doc` has the word, which may be never; documents ascend.
    fn frequency(&mut self, doc: DocId) -> u32 {
        match &self.frequencies {
            Some(frequencies) => frequencies.of(doc, &mut self.cursor),
            None => self.cursor.frequency(doc),
        }
    }
}

/// `docs`, but for those that some word does not have as far as that is kept.
fn in_every<'d>(words: &[Sought<'_>], docs: &'d BitSet) -> Cow<'d, BitSet> {
    let of_words = words.iter().filter_map(Sought::documents).filter(|_| is_worth_reading(docs));
    of_words.fold(Cow::Borrowed(docs), |docs, of_word| Cow::Owned(docs.intersection(of_word)))
}

/// `docs`, but for those that no word has where that is kept of all.
fn in_any<'d>(words: &[Sought<'_>], docs: &'d BitSet) -> Cow<'d, BitSet> {
    let of_words: Option<Vec<&BitSet>> = words.iter().map(Sought::documents).collect();
    let Some([first, others @ ..]) = of_words.as_deref().filter(|_| is_worth_reading(docs)) else {
        return Cow::Borrowed(docs);
    };
    let mut any = first.words().to_vec();
    for other in others {
        any.iter_mut().zip(other.words()).for_each(|(any, other)| *any |= other);
    }
    any.iter_mut().zip(docs.words()).for_each(|(any, docs)| *any &= docs);
    Cow::Owned(BitSet::from_words(any))
}

fn is_worth_reading(docs: &BitSet) -> bool {
    docs.len() * BIT_WORDS >= docs.words().len()
}

/// The words of a query, looked for in the few documents that a filter lets through.
pub struct WordSeeks<'a> {
    words: Vec<Sought<'a>>,
    /// Every word is needed, or any suffices.
    every: bool,
    docs: Cow<'a, BitSet>,
    /// Empty where the words add up exactly.
    in_order: Vec<WordCursor<'a>>,
}

impl<'a> WordSeeks<'a> {
    pub fn new(words: Vec<Sought<'a>>, every: bool, docs: &'a BitSet, in_order: Vec<WordCursor<'a>>) -> Self {
        let docs = if every { in_every(&words, docs) } else { in_any(&words, docs) };
        Self { words, every, docs, in_order }
    }

    /// How many documents match, deleted ones too, where that is known before any is looked for.
    pub fn matches_known(&self) -> Option<u64> {
        let is_known = matches!(self.docs, Cow::Owned(_)) && self.words.iter().all(|word| word.frequencies.is_some());
        is_known.then(|| self.docs.len() as u64)
    }

    /// Visits the matches whose score exceeds `threshold`, which every visit raises.
    pub fn for_each(self, threshold: Score, deadline: &Deadline, visit: Visit<'_>) -> Result<(), EngineError> {
        let Self { words, every, docs, mut in_order } = self;
        let seek = if every { seek_every } else { seek_any };
        if in_order.is_empty() {
            return seek(words, &docs, threshold, deadline, visit);
        }
        seek(words, &docs, threshold, deadline, &mut |doc, _| visit(doc, score_in_order(&mut in_order, doc)))
    }
}

/// Each of `docs` in every word.
fn seek_every(
    mut words: Vec<Sought<'_>>,
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
        for word in &mut words {
            match word.frequency(doc) {
                0 => continue 'docs,
                frequency => score += f64::from(word.cursor.score_of(doc, frequency)),
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
fn seek_any(
    mut words: Vec<Sought<'_>>,
    docs: &BitSet,
    mut threshold: Score,
    deadline: &Deadline,
    visit: Visit<'_>,
) -> Result<(), EngineError> {
    // The words that add least come last: by then few documents are left that may exceed the threshold.
    words.sort_by(|a, b| b.cursor.most.total_cmp(&a.cursor.most));
    // With the most that it and those behind it score.
    let mut left = 0.0;
    let mut with_left: Vec<(Sought<'_>, f64)> = Vec::with_capacity(words.len());
    for word in words.into_iter().rev() {
        left += f64::from(word.cursor.most);
        with_left.push((word, left));
    }
    let mut batch = Batch::new();
    let mut docs = docs.iter();
    let mut watch = Watch::new(deadline);
    while batch.fill(&mut docs) {
        watch.block()?;
        for (word, left) in with_left.iter_mut().rev() {
            batch.retain(f64::from(threshold) - *left);
            batch.add(word);
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

impl Candidate {
    /// A frequency of 0 scores 0.
    fn add<'a>(&mut self, cursor: &mut WordCursor<'a>, frequency_of: impl Fn(&mut WordCursor<'a>, DocId) -> u32) {
        let frequency = frequency_of(cursor, self.doc);
        self.score += f64::from(cursor.score_of(self.doc, frequency));
        self.is_match |= frequency > 0;
    }
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
    fn add(&mut self, Sought { cursor, frequencies }: &mut Sought<'_>) {
        let candidates = &mut self.candidates[..self.count];
        match frequencies {
            Some(kept) => {
                candidates.iter_mut().for_each(|candidate| candidate.add(cursor, |cursor, doc| kept.of(doc, cursor)))
            }
            None => candidates.iter_mut().for_each(|candidate| candidate.add(cursor, WordCursor::frequency)),
        }
    }
}
