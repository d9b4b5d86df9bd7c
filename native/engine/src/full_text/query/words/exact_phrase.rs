//! Words one after another, as far apart as they were written.

use tantivy::Term;
use tantivy::query::{EnableScoring, PhraseQuery, Query, Weight};

/// Tantivy's phrase without slop, which tells the offsets of its words.
#[derive(Debug, Clone)]
pub struct ExactPhraseQuery {
    terms: Vec<(usize, Term)>,
    whole: PhraseQuery,
}

impl ExactPhraseQuery {
    /// Two terms or more of one field, each with its offset.
    pub fn new(mut terms: Vec<(usize, Term)>) -> Self {
        // As the other query does it: scores add up the words in this order.
        terms.sort_by_key(|(offset, _)| *offset);
        Self { whole: PhraseQuery::new_with_offset(terms.clone()), terms }
    }

    pub fn terms(&self) -> impl Iterator<Item = &Term> {
        self.terms.iter().map(|(_, term)| term)
    }

    pub fn offsets(&self) -> impl Iterator<Item = usize> {
        self.terms.iter().map(|(offset, _)| *offset)
    }
}

impl Query for ExactPhraseQuery {
    fn weight(&self, scoring: EnableScoring<'_>) -> tantivy::Result<Box<dyn Weight>> {
        self.whole.weight(scoring)
    }

    fn query_terms<'a>(&'a self, visitor: &mut dyn FnMut(&'a Term, bool)) {
        self.whole.query_terms(visitor);
    }
}
