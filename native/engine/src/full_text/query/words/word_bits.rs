//! The documents of a union of words where no scores are asked for: a bit for each.
//!
//! Tantivy's union counts and sums over windows of documents; setting bits reads each posting once.

use std::sync::Arc;

use tantivy::postings::BlockSegmentPostings;
use tantivy::query::{Explanation, Query, Scorer, Weight};
use tantivy::schema::IndexRecordOption;
use tantivy::{DocId, Score, SegmentReader, Term};

use crate::full_text::errors::carried;
use crate::full_text::query::compile::index_fields::IndexFields;
use crate::full_text::query::constant_docs::ConstantDocs;
use crate::full_text::query::deadline::Deadline;
use crate::full_text::query::words::word_search::terms_of;
use sundew_base::bit_set::BitSet;

/// Documents that have any of some words.
pub struct WordBits {
    words: Vec<Term>,
    deadline: Deadline,
}

impl WordBits {
    /// `None` when `query` is no union of several words.
    pub fn of(query: &dyn Query, index: &IndexFields, deadline: &Deadline) -> Option<Self> {
        let (every, words) = terms_of(query, index)?;
        let is_union = !every && words.len() > 1;
        is_union.then(|| Self { words: words.into_iter().cloned().collect(), deadline: deadline.clone() })
    }
}

impl Weight for WordBits {
    fn scorer(&self, reader: &SegmentReader, boost: Score) -> tantivy::Result<Box<dyn Scorer>> {
        let mut bits = BitSet::words_for(reader.max_doc());
        for word in &self.words {
            if self.deadline.is_due() {
                return Err(carried(self.deadline.error()));
            }
            let index = reader.inverted_index(word.field())?;
            if let Some(mut postings) = index.read_block_postings(word, IndexRecordOption::Basic)? {
                add_documents(&mut postings, &mut bits);
            }
        }
        Ok(ConstantDocs::scorer(Arc::new(BitSet::from_words(bits)), boost))
    }

    fn explain(&self, _: &SegmentReader, _: DocId) -> tantivy::Result<Explanation> {
        Ok(Explanation::new("any of several words", 1.0))
    }
}

/// Sets the bits of all documents from the current block of `postings` on.
pub fn add_documents(postings: &mut BlockSegmentPostings, bits: &mut [u64]) {
    while !postings.docs().is_empty() {
        BitSet::add_to_words(bits, postings.docs());
        postings.advance();
    }
}
