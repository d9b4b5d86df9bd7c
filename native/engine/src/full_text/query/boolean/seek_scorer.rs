//! Scores of single documents, asked for in ascending order: the way to score what a rare filter lets through.
//!
//! Tantivy's unions read whole windows of documents. Here each clause seeks by itself, so that a document costs a seek
//! for each clause, however frequent their words are.

use tantivy::query::{Occur, Scorer, Weight};
use tantivy::{DocId, DocSet, Score, SeekDangerResult, SegmentReader};

/// A query, taken apart where it is made of clauses.
pub enum SeekWeight {
    Whole(Box<dyn Weight>),
    Clauses(Clauses<SeekWeight>),
}

pub struct Clauses<T> {
    must: Vec<T>,
    should: Vec<T>,
    must_not: Vec<T>,
    min_should: usize,
}

impl<T> Clauses<T> {
    pub fn new(min_should: usize) -> Self {
        Self { must: Vec::new(), should: Vec::new(), must_not: Vec::new(), min_should }
    }

    pub fn push(&mut self, occur: Occur, clause: T) {
        match occur {
            Occur::Must => self.must.push(clause),
            Occur::Should => self.should.push(clause),
            Occur::MustNot => self.must_not.push(clause),
        }
    }

    fn try_map<U>(&self, map: impl Fn(&T) -> tantivy::Result<U>) -> tantivy::Result<Clauses<U>> {
        Ok(Clauses {
            must: self.must.iter().map(&map).collect::<Result<_, _>>()?,
            should: self.should.iter().map(&map).collect::<Result<_, _>>()?,
            must_not: self.must_not.iter().map(&map).collect::<Result<_, _>>()?,
            min_should: self.min_should,
        })
    }
}

impl SeekWeight {
    pub fn scorer(&self, reader: &SegmentReader) -> tantivy::Result<SeekScorer> {
        Ok(match self {
            Self::Whole(weight) => SeekScorer::of(weight.scorer(reader, 1.0)?),
            Self::Clauses(clauses) => SeekScorer::Clauses(clauses.try_map(|clause| clause.scorer(reader))?),
        })
    }
}

/// The scorers of one segment.
pub enum SeekScorer {
    Whole(Seeker),
    Clauses(Clauses<SeekScorer>),
}

pub struct Seeker {
    scorer: Box<dyn Scorer>,
    /// No document from where the scorer was asked last up to this one matches.
    next: DocId,
    /// The scorer stands at `next`, which matches.
    is_there: bool,
}

impl Seeker {
    fn score(&mut self, doc: DocId) -> Option<Score> {
        if doc > self.next || (doc == self.next && !self.is_there) {
            self.is_there = match self.scorer.seek_danger(doc) {
                SeekDangerResult::Found => {
                    self.next = doc;
                    true
                }
                SeekDangerResult::SeekLowerBound(bound) => {
                    self.next = bound;
                    false
                }
            };
        }
        (doc == self.next && self.is_there).then(|| self.scorer.score())
    }
}

impl SeekScorer {
    pub fn of(scorer: Box<dyn Scorer>) -> Self {
        let next = scorer.doc();
        Self::Whole(Seeker { scorer, next, is_there: true })
    }

    /// The scorer that was not taken apart, when nothing was asked yet.
    pub fn into_whole(self) -> Option<Box<dyn Scorer>> {
        match self {
            Self::Whole(seeker) => Some(seeker.scorer),
            Self::Clauses(_) => None,
        }
    }

    /// The score of `doc` when it matches; documents ascend.
    pub fn score(&mut self, doc: DocId) -> Option<Score> {
        let clauses = match self {
            Self::Whole(seeker) => return seeker.score(doc),
            Self::Clauses(clauses) => clauses,
        };
        let (mut needed, mut others) = (0.0, 0.0);
        for clause in &mut clauses.must {
            needed += f64::from(clause.score(doc)?);
        }
        let mut matching = 0;
        for clause in &mut clauses.should {
            if let Some(score) = clause.score(doc) {
                others += f64::from(score);
                matching += 1;
            }
        }
        let is_found = matching >= clauses.min_should && (matching > 0 || !clauses.must.is_empty());
        let is_excluded = |clause: &mut Self| clause.score(doc).is_some();
        let score = needed as Score + others as Score;
        (is_found && !clauses.must_not.iter_mut().any(is_excluded)).then_some(score)
    }

    /// About how many documents a walk over all matches reads.
    pub fn documents(&self) -> u64 {
        match self {
            Self::Whole(seeker) => u64::from(seeker.scorer.size_hint()),
            Self::Clauses(clauses) => {
                let least = clauses.must.iter().map(Self::documents).min();
                least.unwrap_or_else(|| clauses.should.iter().map(Self::documents).sum())
            }
        }
    }
}
