//! Documents of a segment as bits, and scores that they have in common.

use std::ops::Range;
use std::sync::Arc;

use tantivy::query::{EmptyScorer, Scorer};
use tantivy::{DocId, DocSet, Score, TERMINATED};

use crate::error::EngineError;

/// Documents of one segment.
#[derive(Debug, PartialEq, Eq)]
pub struct DocBits {
    words: Box<[u64]>,
    len: u32,
}

impl DocBits {
    /// Document `n` is bit `n % 64` of word `n / 64`.
    pub fn of_words(words: Box<[u64]>) -> Self {
        let len = words.iter().map(|word| word.count_ones()).sum();
        Self { words, len }
    }

    /// Words without any document, to be filled.
    pub fn no_words(max_doc: u32) -> Box<[u64]> {
        vec![0; (max_doc as usize).div_ceil(64)].into_boxed_slice()
    }

    /// `docs` are below `max_doc`, each once.
    pub fn collect(
        max_doc: u32,
        visit: impl FnOnce(&mut dyn FnMut(DocId)) -> Result<(), EngineError>,
    ) -> Result<Self, EngineError> {
        let mut words = Self::no_words(max_doc);
        visit(&mut |doc| words[doc as usize / 64] |= 1 << (doc % 64))?;
        Ok(Self::of_words(words))
    }

    pub fn contains(&self, doc: DocId) -> bool {
        self.words.get(doc as usize / 64).is_some_and(|word| word >> (doc % 64) & 1 == 1)
    }

    /// Number of documents.
    pub fn len(&self) -> u32 {
        self.len
    }

    /// The first document at or after `doc`; `TERMINATED` when there is none.
    pub fn from(&self, doc: DocId) -> DocId {
        let mut at = doc as usize / 64;
        let Some(first) = self.words.get(at) else { return TERMINATED };
        let mut word = first & (u64::MAX << (doc % 64));
        while word == 0 {
            at += 1;
            match self.words.get(at) {
                Some(next) => word = *next,
                None => return TERMINATED,
            }
        }
        at as u32 * 64 + word.trailing_zeros()
    }

    /// Ascending.
    pub fn iter(&self) -> impl Iterator<Item = DocId> + '_ {
        let next = |doc: DocId| Some(self.from(doc)).filter(|doc| *doc != TERMINATED);
        std::iter::successors(next(0), move |doc| next(doc + 1))
    }

    /// Those of `docs`, ascending.
    pub fn within(&self, docs: Range<DocId>) -> impl Iterator<Item = DocId> + '_ {
        let end = (docs.end as usize).div_ceil(64).min(self.words.len());
        let first = (docs.start as usize / 64).min(end);
        let left = |word: u64| Some(word).filter(|word| *word != 0);
        let found = self.words[first..end].iter().enumerate().flat_map(move |(at, word)| {
            let bits = std::iter::successors(left(*word), move |word| left(word & (word - 1)));
            bits.map(move |word| (first + at) as u32 * 64 + word.trailing_zeros())
        });
        found.filter(move |doc| docs.contains(doc))
    }

    pub fn without(&self, others: &Self) -> Self {
        Self::of_words(self.words.iter().zip(&others.words).map(|(word, other)| word & !other).collect())
    }

    /// What both hold.
    pub fn and(&self, others: &Self) -> Self {
        Self::of_words(self.words.iter().zip(&others.words).map(|(word, other)| word & other).collect())
    }

    /// Leaves what either holds here and what both hold there.
    fn exchange(&mut self, others: &mut Self) {
        for (word, other) in self.words.iter_mut().zip(&mut others.words) {
            (*word, *other) = (*word | *other, *word & *other);
        }
        let held = self.len + others.len;
        self.len = self.words.iter().map(|word| word.count_ones()).sum();
        others.len = held - self.len;
    }

    pub fn bytes(&self) -> usize {
        self.words.len() * 8
    }
}

/// Documents whose score is as many times a constant as conditions hold for them.
pub struct ConstantDocs {
    /// `levels[n]`: more than `n` conditions hold.
    levels: Vec<Arc<DocBits>>,
    doc: DocId,
    score: Score,
}

impl ConstantDocs {
    /// For one condition.
    pub fn scorer(bits: Arc<DocBits>, score: Score) -> Box<dyn Scorer> {
        Self::with_levels(vec![bits], score)
    }

    /// For conditions of the same segment, of which each holds for its documents.
    pub fn scorer_of_all(mut conditions: Vec<DocBits>, score: Score) -> Box<dyn Scorer> {
        for last in 1..conditions.len() {
            // The last condition's documents climb one level; who leaves a level's bits is carried to the next.
            let (levels, rest) = conditions.split_at_mut(last);
            levels.iter_mut().for_each(|level| level.exchange(&mut rest[0]));
        }
        conditions.retain(|level| level.len > 0);
        Self::with_levels(conditions.into_iter().map(Arc::new).collect(), score)
    }

    fn with_levels(levels: Vec<Arc<DocBits>>, score: Score) -> Box<dyn Scorer> {
        match levels.first().map_or(TERMINATED, |all| all.from(0)) {
            // Tantivy leaves this one out of unions.
            TERMINATED => Box::new(EmptyScorer),
            doc => Box::new(Self { levels, doc, score }),
        }
    }

    pub fn all(&self) -> &DocBits {
        &self.levels[0]
    }

    fn score_of(&self, level: usize) -> Score {
        (level + 1) as Score * self.score
    }

    /// The documents of each score, those for which most conditions hold first.
    pub fn by_score(&self) -> impl Iterator<Item = (Score, Arc<DocBits>)> + '_ {
        self.levels.iter().enumerate().rev().map(|(level, docs)| {
            let docs = match self.levels.get(level + 1) {
                Some(above) => Arc::new(docs.without(above)),
                None => Arc::clone(docs),
            };
            (self.score_of(level), docs)
        })
    }
}

impl Scorer for ConstantDocs {
    fn score(&mut self) -> Score {
        let above = self.levels[1..].iter().take_while(|level| level.contains(self.doc)).count();
        self.score_of(above)
    }
}

impl DocSet for ConstantDocs {
    fn advance(&mut self) -> DocId {
        if self.doc != TERMINATED {
            self.doc = self.levels[0].from(self.doc + 1);
        }
        self.doc
    }

    fn seek(&mut self, target: DocId) -> DocId {
        if self.doc < target {
            self.doc = self.levels[0].from(target);
        }
        self.doc
    }

    fn doc(&self) -> DocId {
        self.doc
    }

    fn size_hint(&self) -> u32 {
        self.levels[0].len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bits(max_doc: u32, docs: &[DocId]) -> DocBits {
        let visit = |take: &mut dyn FnMut(DocId)| {
            docs.iter().for_each(|doc| take(*doc));
            Ok(())
        };
        DocBits::collect(max_doc, visit).expect("bits")
    }

    #[test]
    fn documents_are_found_from_anywhere() {
        let docs = [0, 63, 64, 200];
        let bits = bits(201, &docs);
        assert_eq!((bits.iter().collect::<Vec<_>>(), bits.len()), (docs.to_vec(), 4));
        assert_eq!([1, 64, 65, 201, TERMINATED].map(|doc| bits.from(doc)), [63, 64, 200, TERMINATED, TERMINATED]);
        assert_eq!(bits.within(1..200).collect::<Vec<_>>(), [63, 64]);
    }

    #[test]
    fn conditions_that_hold_add_up() {
        let conditions = || vec![bits(130, &[1, 2, 129]), bits(130, &[2, 3]), bits(130, &[2, 129])];
        let mut scorer = ConstantDocs::scorer_of_all(conditions(), 0.5);
        let mut scores = Vec::new();
        while scorer.doc() != TERMINATED {
            scores.push((scorer.doc(), scorer.score()));
            scorer.advance();
        }
        assert_eq!(scores, [(1, 0.5), (2, 1.5), (3, 0.5), (129, 1.0)]);
        let Ok(docs) = ConstantDocs::scorer_of_all(conditions(), 0.5).downcast::<ConstantDocs>() else {
            panic!("documents");
        };
        let by_score: Vec<(Score, Vec<DocId>)> =
            docs.by_score().map(|(score, docs)| (score, docs.iter().collect())).collect();
        assert_eq!(by_score, [(1.5, vec![2]), (1.0, vec![129]), (0.5, vec![1, 3])]);
    }
}
