//! Documents that one of a few clauses has, each clause by itself: the way into a needed union that few documents are asked of.
//!
//! Tantivy's unions read all documents of a window of 4,096 before the first one is asked about, with a score for each place.

use tantivy::query::Scorer;
use tantivy::{DocId, DocSet, Score, TERMINATED};

/// What a seek in a clause costs, in documents of a window.
const COST_OF_A_SEEK: u64 = 2;
/// What the windows of a union cost before they are read, in documents.
const COST_OF_WINDOWS: u64 = 3_000;

pub struct SeekingUnion {
    /// In the order of the query.
    scorers: Vec<Box<dyn Scorer>>,
    /// Where each stands.
    docs: Vec<DocId>,
    doc: DocId,
}

impl SeekingUnion {
    pub fn new(scorers: Vec<Box<dyn Scorer>>) -> Self {
        let docs = scorers.iter().map(|scorer| scorer.doc()).collect();
        let mut union = Self { scorers, docs, doc: TERMINATED };
        union.doc = union.least();
        union
    }

    /// Whether to seek costs less than to read windows; `asked`: documents that it is asked about.
    pub fn is_cheaper(&self, asked: u64) -> bool {
        asked.saturating_mul(self.scorers.len() as u64 * COST_OF_A_SEEK) < self.cost() + COST_OF_WINDOWS
    }

    fn least(&self) -> DocId {
        self.docs.iter().copied().min().unwrap_or(TERMINATED)
    }
}

impl DocSet for SeekingUnion {
    fn advance(&mut self) -> DocId {
        self.seek(self.doc.saturating_add(1).min(TERMINATED))
    }

    fn seek(&mut self, target: DocId) -> DocId {
        for (scorer, doc) in self.scorers.iter_mut().zip(&mut self.docs) {
            if *doc < target {
                *doc = scorer.seek(target);
            }
        }
        self.doc = self.least();
        self.doc
    }

    fn doc(&self) -> DocId {
        self.doc
    }

    fn size_hint(&self) -> u32 {
        self.scorers.iter().map(|scorer| scorer.size_hint()).max().unwrap_or(0)
    }

    fn cost(&self) -> u64 {
        self.scorers.iter().map(|scorer| scorer.cost()).sum()
    }
}

impl Scorer for SeekingUnion {
    fn score(&mut self) -> Score {
        let at = self.doc;
        let standing = self.scorers.iter_mut().zip(&self.docs).filter(|(_, doc)| **doc == at);
        standing.map(|(scorer, _)| f64::from(scorer.score())).sum::<f64>() as Score
    }
}
