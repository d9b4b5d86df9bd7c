//! BM25 statistics over all the indexes of a query, so that a document scores the same in one range or in several.

use std::collections::HashMap;
use std::sync::Mutex;

use tantivy::query::Bm25StatisticsProvider;
use tantivy::schema::Field;
use tantivy::{Searcher, Term};

use crate::full_text::analysis::Analyzer;
use crate::full_text::documents::document_reader::overflow_prefix;
use crate::full_text::query::compile::index_fields::IndexFields;

pub struct GlobalStatistics<'a> {
    ranges: Vec<(&'a Searcher, &'a IndexFields)>,
    total_docs: u64,
    /// By `shared_term`.
    frequencies: Mutex<HashMap<Term, u64>>,
}

impl<'a> GlobalStatistics<'a> {
    pub fn new(ranges: Vec<(&'a Searcher, &'a IndexFields)>) -> Self {
        let total_docs = ranges.iter().map(|(searcher, _)| documents_of(searcher)).sum();
        Self { ranges, total_docs, frequencies: Mutex::new(HashMap::new()) }
    }

    pub fn for_range(&self, range: usize) -> RangeStatistics<'_, 'a> {
        RangeStatistics { global: self, range }
    }
}

/// Deleted ones too.
fn documents_of(searcher: &Searcher) -> u64 {
    searcher.segment_readers().iter().map(|segment| u64::from(segment.max_doc())).sum()
}

/// Answers in the terms of one range: the same path may lie in another slot of another range, or beyond the slots.
pub struct RangeStatistics<'g, 'a> {
    global: &'g GlobalStatistics<'a>,
    range: usize,
}

impl RangeStatistics<'_, '_> {
    /// Among how many ranges the frequencies are spread.
    pub fn ranges(&self) -> u64 {
        self.global.ranges.len() as u64
    }

    fn index(&self) -> &IndexFields {
        self.global.ranges[self.range].1
    }

    /// `doc_freq` where it is known how many documents of this range have the term.
    pub fn doc_freq_beside(&self, term: &Term, here: u64) -> tantivy::Result<u64> {
        if self.global.ranges.len() == 1 { Ok(here) } else { self.doc_freq(term) }
    }
}

/// What a term of `index` is called between ranges: a token of a text as it lies beyond the slots.
pub fn shared_term(term: &Term, index: &IndexFields) -> Term {
    let slot = index.fields.slot_of(term.field()).and_then(|slot| index.slots.slots.get(slot));
    match (slot, std::str::from_utf8(term.serialized_value_bytes())) {
        (Some(slot), Ok(token)) => {
            let prefix = overflow_prefix(&slot.path, slot.analyzer);
            Term::from_field_text(index.fields.overflow, &format!("{prefix}{token}"))
        }
        _ => term.clone(),
    }
}

/// The term of `index` that ranges call `shared`.
pub fn term_in(shared: &Term, index: &IndexFields) -> Term {
    let in_slot = || {
        let mut parts = std::str::from_utf8(shared.serialized_value_bytes()).ok()?.splitn(3, '\0');
        let (path, analyzer, token) = (parts.next()?, Analyzer::named(parts.next()?)?, parts.next()?);
        let slot = index.slots.find(path, analyzer)?;
        Some(Term::from_field_text(index.fields.slots[slot], token))
    };
    let is_text = shared.field() == index.fields.overflow;
    is_text.then(in_slot).flatten().unwrap_or_else(|| shared.clone())
}

/// Whether an index has texts that begin with `prefix` in its overflow.
fn has_overflow(searcher: &Searcher, index: &IndexFields, prefix: &str) -> tantivy::Result<bool> {
    for reader in searcher.segment_readers() {
        let tokens = reader.inverted_index(index.fields.overflow)?;
        let mut from_prefix = tokens.terms().range().ge(prefix).into_stream()?;
        if from_prefix.advance() && from_prefix.key().starts_with(prefix.as_bytes()) {
            return Ok(true);
        }
    }
    Ok(false)
}

impl Bm25StatisticsProvider for RangeStatistics<'_, '_> {
    /// Fields without length norms count one token a document. Where a text has a slot in some ranges and none in others,
    /// its documents in the others are taken to be as long as those in the slots.
    fn total_num_tokens(&self, field: Field) -> tantivy::Result<u64> {
        let index = self.index();
        let slot = index.fields.slot_of(field).and_then(|slot| index.slots.slots.get(slot));
        let total_docs = self.global.total_docs;
        let Some(slot) = slot else { return Ok(total_docs) };
        let (mut tokens, mut documents) = (0, 0);
        for (searcher, index) in &self.global.ranges {
            if let Some(taken) = index.slots.find(&slot.path, slot.analyzer) {
                tokens += searcher.total_num_tokens(index.fields.slots[taken])?;
            } else if index.slots.are_full()
                && has_overflow(searcher, index, &overflow_prefix(&slot.path, slot.analyzer))?
            {
                continue;
            }
            documents += documents_of(searcher);
        }
        Ok(if documents == total_docs { tokens } else { (tokens as f64 / documents as f64 * total_docs as f64) as u64 })
    }

    fn total_num_docs(&self) -> tantivy::Result<u64> {
        Ok(self.global.total_docs)
    }

    fn doc_freq(&self, term: &Term) -> tantivy::Result<u64> {
        let shared = shared_term(term, self.index());
        let frequencies = || self.global.frequencies.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some(known) = frequencies().get(&shared) {
            return Ok(*known);
        }
        let mut total = 0;
        for (searcher, index) in &self.global.ranges {
            total += searcher.doc_freq(&term_in(&shared, index))?;
        }
        frequencies().insert(shared, total);
        Ok(total)
    }
}
