//! Equality with a whole string whose term is a number that others may share: what the term finds is compared by the
//! column.

use tantivy::columnar::Column;
use tantivy::query::{EmptyScorer, EnableScoring, Explanation, Query, Scorer, TermQuery, Weight};
use tantivy::{DocId, DocSet, Score, SegmentReader, TERMINATED, TantivyError, Term};

#[derive(Debug, Clone)]
pub struct LongStringQuery {
    pub term: TermQuery,
    pub column: String,
    pub text: String,
}

impl Query for LongStringQuery {
    fn weight(&self, scoring: EnableScoring<'_>) -> tantivy::Result<Box<dyn Weight>> {
        let of_term = self.term.weight(scoring)?;
        Ok(Box::new(LongStringWeight { of_term, column: self.column.clone(), text: self.text.clone() }))
    }

    fn query_terms<'a>(&'a self, visitor: &mut dyn FnMut(&'a Term, bool)) {
        self.term.query_terms(visitor);
    }
}

struct LongStringWeight {
    of_term: Box<dyn Weight>,
    column: String,
    text: String,
}

impl Weight for LongStringWeight {
    fn scorer(&self, reader: &SegmentReader, boost: Score) -> tantivy::Result<Box<dyn Scorer>> {
        let Some(strings) = reader.fast_fields().str(&self.column)? else { return Ok(Box::new(EmptyScorer)) };
        let Some(ordinal) = strings.dictionary().term_ord(&self.text)? else { return Ok(Box::new(EmptyScorer)) };
        let mut scorer = LongStringScorer {
            of_term: self.of_term.scorer(reader, boost)?,
            ordinals: strings.ords().clone(),
            ordinal,
        };
        let first = scorer.doc();
        scorer.next_equal(first);
        Ok(Box::new(scorer))
    }

    fn explain(&self, reader: &SegmentReader, document: DocId) -> tantivy::Result<Explanation> {
        let mut scorer = self.scorer(reader, 1.0)?;
        if scorer.doc() > document || scorer.seek(document) != document {
            return Err(TantivyError::InvalidArgument(format!("document {document} does not match")));
        }
        self.of_term.explain(reader, document)
    }
}

struct LongStringScorer {
    of_term: Box<dyn Scorer>,
    /// Of each document's strings, in the segment's dictionary.
    ordinals: Column<u64>,
    ordinal: u64,
}

impl LongStringScorer {
    /// The document, or the next one, that holds the string.
    fn next_equal(&mut self, mut document: DocId) -> DocId {
        while document != TERMINATED && !self.ordinals.values_for_doc(document).any(|ordinal| ordinal == self.ordinal) {
            document = self.of_term.advance();
        }
        document
    }
}

impl DocSet for LongStringScorer {
    fn advance(&mut self) -> DocId {
        let document = self.of_term.advance();
        self.next_equal(document)
    }

    fn seek(&mut self, target: DocId) -> DocId {
        let document = self.of_term.seek(target);
        self.next_equal(document)
    }

    fn doc(&self) -> DocId {
        self.of_term.doc()
    }

    fn size_hint(&self) -> u32 {
        self.of_term.size_hint()
    }
}

impl Scorer for LongStringScorer {
    fn score(&mut self) -> Score {
        self.of_term.score()
    }
}
