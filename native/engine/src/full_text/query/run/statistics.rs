//! BM25 statistics over all the indexes of a query, so that a document scores the same in one range or in several.

use std::collections::HashMap;
use std::sync::Mutex;

use tantivy::query::Bm25StatisticsProvider;
use tantivy::schema::Field;
use tantivy::{Searcher, Term};

use crate::full_text::documents::document_reader::overflow_prefix;
use crate::full_text::query::compile::index_fields::IndexFields;
use crate::full_text::slots::Slot;

pub struct GlobalStatistics<'a> {
    ranges: Vec<(&'a Searcher, &'a IndexFields)>,
    total_docs: u64,
    /// By range and what was asked there.
    frequencies: Mutex<HashMap<(usize, Term), u64>>,
}

impl<'a> GlobalStatistics<'a> {
    pub fn new(ranges: Vec<(&'a Searcher, &'a IndexFields)>) -> Self {
        let segments = ranges.iter().flat_map(|(searcher, _)| searcher.segment_readers());
        let total_docs = segments.map(|segment| u64::from(segment.max_doc())).sum();
        Self { ranges, total_docs, frequencies: Mutex::new(HashMap::new()) }
    }

    pub fn for_range(&self, range: usize) -> RangeStatistics<'_, 'a> {
        RangeStatistics { global: self, range }
    }
}

/// Answers in the terms of one range: the same path may lie in another slot of another range.
pub struct RangeStatistics<'g, 'a> {
    global: &'g GlobalStatistics<'a>,
    range: usize,
}

impl RangeStatistics<'_, '_> {
    /// Among how many ranges the frequencies are spread.
    pub fn ranges(&self) -> u64 {
        self.global.ranges.len() as u64
    }

    fn slot(&self, field: Field) -> Option<&Slot> {
        let (_, index) = self.global.ranges[self.range];
        index.slots.slots.get(index.fields.slot_of(field)?)
    }
}

/// The term of another range's index that says the same: it has the token of `term` for the path and analyzer of `slot`, in
/// a slot or in the overflow.
pub fn term_in(term: &Term, slot: Option<&Slot>, index: &IndexFields) -> Option<Term> {
    let Some(slot) = slot else { return Some(term.clone()) };
    let token = std::str::from_utf8(term.serialized_value_bytes()).ok()?;
    Some(match index.slots.find(&slot.path, slot.analyzer) {
        Some(taken) => Term::from_field_text(index.fields.slots[taken], token),
        None => {
            let prefix = overflow_prefix(&slot.path, slot.analyzer);
            Term::from_field_text(index.fields.overflow, &format!("{prefix}{token}"))
        }
    })
}

impl RangeStatistics<'_, '_> {
    /// `doc_freq` where it is known how many documents of this range have the term.
    pub fn doc_freq_beside(&self, term: &Term, here: u64) -> tantivy::Result<u64> {
        if self.global.ranges.len() == 1 { Ok(here) } else { self.doc_freq(term) }
    }
}

impl Bm25StatisticsProvider for RangeStatistics<'_, '_> {
    /// Fields without length norms count one token a document.
    fn total_num_tokens(&self, field: Field) -> tantivy::Result<u64> {
        let Some(slot) = self.slot(field) else { return Ok(self.global.total_docs) };
        let mut total = 0;
        for (searcher, index) in &self.global.ranges {
            if let Some(taken) = index.slots.find(&slot.path, slot.analyzer) {
                total += searcher.total_num_tokens(index.fields.slots[taken])?;
            }
        }
        Ok(total)
    }

    fn total_num_docs(&self) -> tantivy::Result<u64> {
        Ok(self.global.total_docs)
    }

    fn doc_freq(&self, term: &Term) -> tantivy::Result<u64> {
        let asked = (self.range, term.clone());
        let frequencies = || self.global.frequencies.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some(known) = frequencies().get(&asked) {
            return Ok(*known);
        }
        let slot = self.slot(term.field());
        let mut total = 0;
        for (searcher, index) in &self.global.ranges {
            if let Some(there) = term_in(term, slot, index) {
                total += searcher.doc_freq(&there)?;
            }
        }
        frequencies().insert(asked, total);
        Ok(total)
    }
}
