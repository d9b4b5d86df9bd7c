//! Phrases whose positions have several words to choose from.

use std::sync::Arc;

use tantivy::fieldnorm::FieldNormReader;
use tantivy::postings::{Postings, SegmentPostings};
use tantivy::query::{Bm25Weight, EmptyScorer, EnableScoring, Explanation, Query, Scorer, Weight};
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{DocId, DocSet, Score, SegmentReader, TERMINATED, TantivyError, Term};

use crate::error::EngineError;
use crate::full_text::errors::carried;
use crate::full_text::query::deadline::Deadline;
use crate::full_text::query::terms::levenshtein::FuzzyWord;
use crate::full_text::query::terms::term_expansion::Tokens;
use crate::full_text::query::words::phrase_windows::phrase_windows;

/// Words that one position may stand for, in one segment.
const POSITION_WORDS_MAX: usize = 1_024;

/// A word of a phrase, and the words near it.
#[derive(Debug, Clone)]
pub struct PhraseWord {
    pub term: Term,
    pub near: Option<Arc<FuzzyWord>>,
}

/// The words that may stand at one position of the phrase.
#[derive(Debug, Clone)]
pub struct PhrasePosition {
    pub offset: usize,
    pub words: Vec<PhraseWord>,
}

/// One word of each position, in one field, as far apart as the positions are; the least and the greatest shift
/// differ by `slop` at most. Scored by BM25 over all the words as they were asked for.
#[derive(Debug, Clone)]
pub struct WordPositionsQuery {
    pub field: Field,
    /// The beginning of the field's tokens.
    pub token_prefix: String,
    pub positions: Vec<PhrasePosition>,
    pub slop: u32,
    pub deadline: Deadline,
}

impl Query for WordPositionsQuery {
    fn weight(&self, scoring: EnableScoring<'_>) -> tantivy::Result<Box<dyn Weight>> {
        let bm25 = match scoring {
            EnableScoring::Enabled { statistics_provider, .. } => {
                let words = self.positions.iter().flat_map(|position| &position.words);
                let terms: Vec<Term> = words.map(|word| word.term.clone()).collect();
                Some(Bm25Weight::for_terms(statistics_provider, &terms)?)
            }
            EnableScoring::Disabled { .. } => None,
        };
        Ok(Box::new(WordPositionsWeight { query: self.clone(), bm25 }))
    }
}

struct WordPositionsWeight {
    query: WordPositionsQuery,
    bm25: Option<Bm25Weight>,
}

impl WordPositionsWeight {
    fn postings_of(&self, reader: &SegmentReader, position: &PhrasePosition) -> tantivy::Result<Vec<SegmentPostings>> {
        const OPTION: IndexRecordOption = IndexRecordOption::WithFreqsAndPositions;
        let inverted_index = reader.inverted_index(self.query.field)?;
        let mut found: Vec<SegmentPostings> = Vec::new();
        for word in &position.words {
            let Some(near) = &word.near else {
                found.extend(inverted_index.read_postings(&word.term, OPTION)?);
                continue;
            };
            let prefix = self.query.token_prefix.as_bytes();
            let tokens = Tokens::Fuzzy(Arc::clone(near));
            tokens.walk(inverted_index.terms(), prefix, &self.query.deadline, &mut |_, term, _| {
                if found.len() >= POSITION_WORDS_MAX {
                    let message = format!("a word of a fuzzy phrase stands for more than {POSITION_WORDS_MAX} words");
                    return Err(carried(EngineError::new("limit_exceeded", message)));
                }
                found.push(inverted_index.read_postings_from_terminfo(term, OPTION)?);
                Ok(())
            })?;
        }
        Ok(found)
    }
}

impl Weight for WordPositionsWeight {
    fn scorer(&self, reader: &SegmentReader, boost: Score) -> tantivy::Result<Box<dyn Scorer>> {
        let mut cursors = Vec::new();
        for position in &self.query.positions {
            let postings = self.postings_of(reader, position)?;
            if postings.is_empty() {
                return Ok(Box::new(EmptyScorer));
            }
            cursors.push(PhraseCursor::new(position.offset, postings));
        }
        let norms = match &self.bm25 {
            Some(_) => reader.fieldnorms_readers().get_field(self.query.field)?,
            None => None,
        };
        let norms = norms.unwrap_or_else(|| FieldNormReader::constant(reader.max_doc(), 1));
        let bm25 = self.bm25.as_ref().map(|bm25| bm25.boost_by(boost));
        let mut scorer = PositionsScorer { cursors, slop: self.query.slop, bm25, boost, norms, frequency: 0 };
        let first = scorer.cursors[0].document;
        scorer.settle(first);
        Ok(Box::new(scorer))
    }

    fn explain(&self, reader: &SegmentReader, document: DocId) -> tantivy::Result<Explanation> {
        let mut scorer = self.scorer(reader, 1.0)?;
        if scorer.doc() > document || scorer.seek(document) != document {
            return Err(TantivyError::InvalidArgument(format!("document {document} does not match")));
        }
        Ok(Explanation::new("phrase with alternatives", scorer.score()))
    }
}

/// The documents that have any of a position's words.
struct PhraseCursor {
    offset: usize,
    postings: Vec<SegmentPostings>,
    document: DocId,
    read: Vec<u32>,
}

impl PhraseCursor {
    fn new(offset: usize, postings: Vec<SegmentPostings>) -> Self {
        let mut cursor = Self { offset, postings, document: 0, read: Vec::new() };
        cursor.document = cursor.nearest();
        cursor
    }

    fn nearest(&self) -> DocId {
        self.postings.iter().map(DocSet::doc).min().unwrap_or(TERMINATED)
    }

    fn seek(&mut self, target: DocId) -> DocId {
        if self.document < target {
            for postings in self.postings.iter_mut().filter(|postings| postings.doc() < target) {
                postings.seek(target);
            }
            self.document = self.nearest();
        }
        self.document
    }

    /// Where the words stand in the document, each less the position's offset; ascending.
    fn shifts(&mut self, into: &mut Vec<i64>) {
        into.clear();
        for postings in self.postings.iter_mut().filter(|postings| postings.doc() == self.document) {
            postings.positions(&mut self.read);
            into.extend(self.read.iter().map(|&at| i64::from(at) - self.offset as i64));
        }
        into.sort_unstable();
        into.dedup();
    }
}

struct PositionsScorer {
    cursors: Vec<PhraseCursor>,
    slop: u32,
    bm25: Option<Bm25Weight>,
    boost: Score,
    norms: FieldNormReader,
    frequency: u32,
}

impl PositionsScorer {
    /// Moves on to the first document from `target` on that has the phrase.
    fn settle(&mut self, mut target: DocId) -> DocId {
        let mut shifts: Vec<Vec<i64>> = vec![Vec::new(); self.cursors.len()];
        while target != TERMINATED {
            let furthest = self.cursors.iter_mut().map(|cursor| cursor.seek(target)).max().unwrap_or(TERMINATED);
            if furthest != target {
                target = furthest;
                continue;
            }
            for (cursor, shifts) in self.cursors.iter_mut().zip(&mut shifts) {
                cursor.shifts(shifts);
            }
            let offsets: Vec<i64> = self.cursors.iter().map(|cursor| cursor.offset as i64).collect();
            self.frequency = 0;
            phrase_windows(&shifts, &offsets, i64::from(self.slop), |_| self.frequency += 1);
            if self.frequency > 0 {
                return target;
            }
            target += 1;
        }
        for cursor in &mut self.cursors {
            cursor.document = TERMINATED;
        }
        TERMINATED
    }
}

impl DocSet for PositionsScorer {
    fn advance(&mut self) -> DocId {
        let next = self.doc().saturating_add(1).min(TERMINATED);
        self.settle(next)
    }

    fn seek(&mut self, target: DocId) -> DocId {
        if self.doc() >= target { self.doc() } else { self.settle(target) }
    }

    fn doc(&self) -> DocId {
        self.cursors[0].document
    }

    fn size_hint(&self) -> u32 {
        let documents =
            |cursor: &PhraseCursor| cursor.postings.iter().map(DocSet::size_hint).fold(0, u32::saturating_add);
        self.cursors.iter().map(documents).min().unwrap_or(0)
    }

    fn cost(&self) -> u64 {
        u64::from(self.size_hint()) * 10 * self.cursors.len() as u64
    }
}

impl Scorer for PositionsScorer {
    fn score(&mut self) -> Score {
        match &self.bm25 {
            Some(bm25) => bm25.score(self.norms.fieldnorm_id(self.doc()), self.frequency),
            None => self.boost,
        }
    }
}
