//! Documents of a segment that have their score in common.

use std::ops::Range;
use std::sync::Arc;

use sundew_base::bit_set::BitSet;
use tantivy::query::{EmptyScorer, Scorer};
use tantivy::{COLLECT_BLOCK_BUFFER_LEN, DocId, DocSet, Score, TERMINATED};

/// The documents of a segment that a condition holds for, deleted ones too.
pub enum Matching {
    Any(BitSet),
    /// Ascending.
    Few(Vec<DocId>),
}

impl Matching {
    pub fn into_bits(self, max_doc: DocId) -> BitSet {
        match self {
            Self::Any(bits) => bits,
            Self::Few(docs) => {
                let mut bits = BitSet::with_room(max_doc as usize);
                docs.into_iter().for_each(|doc| {
                    bits.insert(doc);
                });
                bits
            }
        }
    }
}

/// Documents of a segment.
pub enum Level {
    Bits(Arc<BitSet>),
    /// Ascending, each once.
    Few(Vec<DocId>),
}

impl Level {
    pub fn len(&self) -> usize {
        match self {
            Self::Bits(bits) => bits.len(),
            Self::Few(docs) => docs.len(),
        }
    }

    pub fn contains(&self, doc: DocId) -> bool {
        match self {
            Self::Bits(bits) => bits.contains(doc),
            Self::Few(docs) => docs.binary_search(&doc).is_ok(),
        }
    }

    /// Those of `docs`, ascending.
    pub fn for_each_within(&self, docs: Range<DocId>, visit: impl FnMut(DocId)) {
        match self {
            Self::Bits(bits) => bits.within(docs).for_each(visit),
            Self::Few(few) => {
                let up_to = |end: DocId| few.partition_point(|doc| *doc < end);
                few[up_to(docs.start)..up_to(docs.end)].iter().copied().for_each(visit);
            }
        }
    }

    /// Those that are in `other` too.
    pub fn intersection(&self, other: &BitSet) -> Self {
        match self {
            Self::Bits(bits) => Self::Bits(Arc::new(bits.intersection(other))),
            Self::Few(docs) => Self::Few(docs.iter().copied().filter(|doc| other.contains(*doc)).collect()),
        }
    }
}

/// Documents whose score is as many times a constant as conditions hold for them.
pub struct ConstantDocs {
    all: Arc<BitSet>,
    /// `levels[n]`: more than `n` conditions hold; the first are all.
    levels: Vec<Level>,
    doc: DocId,
    score: Score,
}

impl ConstantDocs {
    /// For one condition.
    pub fn scorer(bits: Arc<BitSet>, score: Score) -> Box<dyn Scorer> {
        Self::with_levels(vec![Level::Bits(Arc::clone(&bits))], bits, score)
    }

    /// For conditions of the same segment, of which each holds for its documents.
    pub fn scorer_of_all(conditions: Vec<Matching>, max_doc: DocId, score: Score) -> Box<dyn Scorer> {
        let (mut sets, mut few) = (Vec::with_capacity(conditions.len()), Vec::new());
        for condition in conditions {
            match condition {
                // The condition's documents move up one level; those already on a level are carried to the next.
                Matching::Any(mut bits) => {
                    sets.iter_mut().for_each(|level: &mut BitSet| level.carry(&mut bits));
                    sets.push(bits);
                }
                Matching::Few(docs) => few.extend(docs),
            }
        }
        if sets.is_empty() {
            sets.push(BitSet::with_room(max_doc as usize));
        }
        // By document: one that is there for several conditions moves up as many levels. Above the sets these are listed, so that
        // nothing need be as large as the segment.
        few.sort_unstable();
        let mut listed: Vec<Vec<DocId>> = Vec::new();
        for same in few.chunk_by(|a, b| a == b) {
            let into_sets = |doc: &&DocId| !sets.iter_mut().any(|level| level.insert(**doc));
            let above = same.iter().filter(into_sets).count();
            if above > listed.len() {
                listed.resize_with(above, Vec::new);
            }
            listed[..above].iter_mut().for_each(|level| level.push(same[0]));
        }
        sets.retain(|level| !level.is_empty());
        let sets: Vec<Arc<BitSet>> = sets.into_iter().map(Arc::new).collect();
        let Some(all) = sets.first().map(Arc::clone) else { return Box::new(EmptyScorer) };
        let levels = sets.into_iter().map(Level::Bits).chain(listed.into_iter().map(Level::Few));
        Self::with_levels(levels.collect(), all, score)
    }

    fn with_levels(levels: Vec<Level>, all: Arc<BitSet>, score: Score) -> Box<dyn Scorer> {
        match first_from(&all, 0) {
            // Tantivy leaves this one out of unions.
            TERMINATED => Box::new(EmptyScorer),
            doc => Box::new(Self { all, levels, doc, score }),
        }
    }

    pub fn all(&self) -> &BitSet {
        &self.all
    }

    fn score_of(&self, level: usize) -> Score {
        (level + 1) as Score * self.score
    }

    /// The documents of each score, those for which most conditions hold first: all of a level that are not in the other.
    pub fn by_score(&self) -> impl Iterator<Item = (Score, &Level, Option<&Level>)> + '_ {
        let levels = self.levels.iter().enumerate().rev();
        levels.map(|(level, docs)| (self.score_of(level), docs, self.levels.get(level + 1)))
    }
}

/// The first document at or after `doc`; `TERMINATED` when there is none.
fn first_from(docs: &BitSet, doc: DocId) -> DocId {
    docs.next_from(doc).unwrap_or(TERMINATED)
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
            self.doc = first_from(&self.all, self.doc + 1);
        }
        self.doc
    }

    fn seek(&mut self, target: DocId) -> DocId {
        if self.doc < target {
            self.doc = first_from(&self.all, target);
        }
        self.doc
    }

    fn fill_buffer(&mut self, buffer: &mut [DocId; COLLECT_BLOCK_BUFFER_LEN]) -> usize {
        if self.doc == TERMINATED {
            return 0;
        }
        let words = self.all.words();
        let mut at = self.doc as usize / 64;
        let mut word = words[at] & (u64::MAX << (self.doc % 64));
        let mut filled = 0;
        loop {
            while word != 0 {
                let doc = at as DocId * 64 + word.trailing_zeros();
                if filled == buffer.len() {
                    self.doc = doc;
                    return filled;
                }
                buffer[filled] = doc;
                filled += 1;
                word &= word - 1;
            }
            at += 1;
            let Some(next) = words.get(at) else {
                self.doc = TERMINATED;
                return filled;
            };
            word = *next;
        }
    }

    fn doc(&self) -> DocId {
        self.doc
    }

    fn size_hint(&self) -> u32 {
        self.all.len() as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bits(max_doc: u32, docs: &[DocId]) -> BitSet {
        let visit = |take: &mut dyn FnMut(DocId)| {
            docs.iter().for_each(|doc| take(*doc));
            Ok::<(), ()>(())
        };
        BitSet::collect(max_doc, visit).expect("bits")
    }

    #[test]
    fn documents_come_in_blocks_as_they_come_one_by_one() {
        let spread = |doc: &DocId| doc.is_multiple_of(3) || (500..600).contains(doc);
        let wanted: Vec<DocId> = (0..1_000).filter(spread).collect();
        for first in [0, 1, 64, 550, 998] {
            let mut scorer = ConstantDocs::scorer(Arc::new(bits(1_000, &wanted)), 1.0);
            scorer.seek(first);
            let (mut found, mut buffer) = (Vec::new(), [0; COLLECT_BLOCK_BUFFER_LEN]);
            loop {
                let filled = scorer.fill_buffer(&mut buffer);
                found.extend_from_slice(&buffer[..filled]);
                if filled < buffer.len() {
                    break;
                }
            }
            assert_eq!(scorer.doc(), TERMINATED);
            assert_eq!(found, wanted.iter().copied().filter(|doc| *doc >= first).collect::<Vec<_>>());
        }
    }

    #[test]
    fn conditions_that_hold_add_up() {
        let conditions = |few: [bool; 3]| {
            let held: [&[DocId]; 3] = [&[1, 2, 129], &[2, 3], &[2, 129]];
            let matching = |(docs, few): (&[DocId], bool)| match few {
                true => Matching::Few(docs.to_vec()),
                false => Matching::Any(bits(130, docs)),
            };
            held.into_iter().zip(few).map(matching).collect::<Vec<_>>()
        };
        for few in [[false; 3], [true; 3], [false, true, true], [true, false, true]] {
            check(|| ConstantDocs::scorer_of_all(conditions(few), 130, 0.5));
        }
    }

    fn check(scored: impl Fn() -> Box<dyn Scorer>) {
        let mut scorer = scored();
        let mut scores = Vec::new();
        while scorer.doc() != TERMINATED {
            scores.push((scorer.doc(), scorer.score()));
            scorer.advance();
        }
        assert_eq!(scores, [(1, 0.5), (2, 1.5), (3, 0.5), (129, 1.0)]);
        let Ok(docs) = scored().downcast::<ConstantDocs>() else {
            panic!("documents");
        };
        let by_score: Vec<(Score, Vec<DocId>)> = docs
            .by_score()
            .map(|(score, docs, above)| {
                let mut only = Vec::new();
                docs.for_each_within(0..130, |doc| only.push(doc));
                only.retain(|doc| above.is_none_or(|above| !above.contains(*doc)));
                (score, only)
            })
            .collect();
        assert_eq!(by_score, [(1.5, vec![2]), (1.0, vec![129]), (0.5, vec![1, 3])]);
    }
}
