//! Unions and intersections of words, the shape of most queries, walked over blocks of postings.
//!
//! Tantivy looks each word up twice, for its frequency and for its postings, and boxes a scorer of 1 KB for each: of
//! rare words that is most of a query's time. Here a word is looked up once. Unions are taken here when
//! few of their matches are let through; Tantivy's WAND serves the others.

use std::sync::Arc;

use tantivy::fieldnorm::FieldNormReader;
use tantivy::postings::TermInfo;
use tantivy::query::{Bm25StatisticsProvider, Bm25Weight, BooleanQuery, Occur, Query, TermQuery};
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{DocId, InvertedIndexReader, Score, SegmentReader, Term};

use super::doc_bits::DocBits;
use super::expected_work::nanos_of_words;
use super::fields_of_path::IndexFields;
use super::search::RangeView;
use super::statistics::RangeStatistics;
use super::stop::Stop;
use super::word_walks::{Cursor, Visit, gather, intersect, seek_each};
use crate::error::EngineError;
use crate::full_text::errors::tantivy_failed;

/// Unions of so many matches are gathered as a whole.
const GATHERED_MAX: f64 = 2_048.0;

/// Looking for one document in a word's postings costs about as much as reading so many of them.
const SEEK_COST: u64 = 6;

pub struct WordSearch {
    every: bool,
    words: Vec<Word>,
}

struct Word {
    weight: Bm25Weight,
    /// Documents of all ranges.
    documents: u64,
    /// By segment.
    places: Vec<Option<Place>>,
}

struct Place {
    index: Arc<InvertedIndexReader>,
    field: Field,
    info: TermInfo,
}

impl WordSearch {
    /// `None` when `query` is no union or intersection of words of texts.
    pub fn of(
        query: &dyn Query,
        view: &RangeView,
        statistics: &RangeStatistics<'_, '_>,
    ) -> tantivy::Result<Option<Self>> {
        let Some((every, terms)) = terms_of(query, &view.index) else { return Ok(None) };
        let total_docs = statistics.total_num_docs()?;
        let mut words = Vec::with_capacity(terms.len());
        let mut last = None;
        for term in terms {
            let average = match last {
                Some((field, average)) if field == term.field() => average,
                _ => statistics.total_num_tokens(term.field())? as Score / total_docs as Score,
            };
            last = Some((term.field(), average));
            words.push(Word::find(term, average, total_docs, view, statistics)?);
        }
        Ok(Some(Self { every, words }))
    }

    /// How many documents match at least, over all ranges, deleted ones too.
    pub fn matches_at_least(&self) -> u64 {
        let most = self.words.iter().map(|word| word.documents).max().unwrap_or(0);
        if self.every && self.words.len() > 1 { 0 } else { most }
    }

    /// Over all ranges.
    pub fn expected_nanos(&self) -> u64 {
        let documents: Vec<u64> = self.words.iter().map(|word| word.documents).collect();
        nanos_of_words(self.every, &documents)
    }

    /// Whether it is the way to search where a `share` of all documents is let through.
    pub fn is_better_than_wand(&self, share: f64) -> bool {
        let documents: u64 = self.words.iter().map(|word| word.documents).sum();
        (self.every && self.words.len() > 1) || documents as f64 * share <= GATHERED_MAX
    }

    /// Visits, in order, the documents that `lets_through` and whose score exceeds `threshold`, which every visit sets
    /// anew. `bits`, where they are known, hold all that is let through.
    pub fn for_each(
        &self,
        reader: &SegmentReader,
        segment: usize,
        threshold: Score,
        bits: Option<&DocBits>,
        stop: &Stop,
        visit: Visit<'_>,
    ) -> Result<(), EngineError> {
        if stop.is_due() {
            return Err(stop.error());
        }
        let mut cursors = self.cursors(reader, segment).map_err(tantivy_failed)?;
        if cursors.is_empty() || (self.every && cursors.len() < self.words.len()) {
            return Ok(());
        }
        let documents = cursors.iter().map(|cursor| u64::from(cursor.blocks.doc_freq()));
        let read = if self.every { documents.min().unwrap_or(0) } else { documents.sum::<u64>() };
        if let Some(bits) = bits.filter(|bits| u64::from(bits.len()) * SEEK_COST <= read) {
            return seek_each(&mut cursors, self.every, bits, threshold, stop, visit);
        }
        let lets_through = |doc: DocId| bits.is_none_or(|bits| bits.contains(doc));
        match (&mut cursors[..], self.every) {
            ([_, _, ..], true) => {
                cursors.sort_by_key(|cursor| cursor.blocks.doc_freq());
                intersect(&mut cursors, threshold, stop, &mut |doc, score, threshold| {
                    if lets_through(doc) { visit(doc, score) } else { threshold }
                })
            }
            _ => {
                let mut threshold = threshold;
                for (doc, score) in gather(&mut cursors, lets_through, stop)? {
                    if score > threshold {
                        threshold = visit(doc, score);
                    }
                }
                Ok(())
            }
        }
    }

    /// Of the words that the segment has.
    fn cursors(&self, reader: &SegmentReader, segment: usize) -> tantivy::Result<Vec<Cursor<'_>>> {
        let mut cursors: Vec<Cursor<'_>> = Vec::with_capacity(self.words.len());
        let mut last: Option<(Field, FieldNormReader)> = None;
        for word in &self.words {
            let Some(place) = &word.places[segment] else { continue };
            let norms = match &last {
                Some((field, norms)) if *field == place.field => norms.clone(),
                _ => {
                    let norms = reader.fieldnorms_readers().get_field(place.field)?;
                    norms.unwrap_or_else(|| FieldNormReader::constant(reader.max_doc(), 1))
                }
            };
            last = Some((place.field, norms.clone()));
            let blocks = place.index.read_block_postings_from_terminfo(&place.info, IndexRecordOption::WithFreqs)?;
            cursors.push(Cursor { blocks, norms, weight: &word.weight });
        }
        Ok(cursors)
    }
}

impl Word {
    fn find(
        term: &Term,
        average: Score,
        total_docs: u64,
        view: &RangeView,
        statistics: &RangeStatistics<'_, '_>,
    ) -> tantivy::Result<Self> {
        let field = term.field();
        let mut places = Vec::with_capacity(view.searcher.segment_readers().len());
        for reader in view.searcher.segment_readers() {
            let index = reader.inverted_index(field)?;
            let info = index.get_term_info(term)?;
            places.push(info.map(|info| Place { index, field, info }));
        }
        let here = places.iter().flatten().map(|place| u64::from(place.info.doc_freq)).sum();
        let documents = statistics.doc_freq_beside(term, here)?;
        let weight = Bm25Weight::for_one_term_without_explain(documents, total_docs, average);
        Ok(Self { weight, documents, places })
    }
}

/// The words, and whether each of them is asked for.
fn terms_of<'q>(query: &'q dyn Query, index: &IndexFields) -> Option<(bool, Vec<&'q Term>)> {
    let is_text = |term: &&Term| term.field() == index.fields.overflow || index.fields.slot_of(term.field()).is_some();
    let term_of = |query: &'q dyn Query| Some(query.downcast_ref::<TermQuery>()?.term()).filter(is_text);
    if let Some(term) = term_of(query) {
        return Some((true, vec![term]));
    }
    let boolean = query.downcast_ref::<BooleanQuery>()?;
    let (first, _) = boolean.clauses().first()?;
    let of_one_kind = |(occur, clause): &'q (Occur, Box<dyn Query>)| {
        if occur == first { term_of(&**clause) } else { None }
    };
    let terms = boolean.clauses().iter().map(of_one_kind).collect::<Option<Vec<_>>>()?;
    match first {
        Occur::Must => Some((true, terms)),
        Occur::Should if boolean.get_minimum_number_should_match() <= 1 => Some((false, terms)),
        _ => None,
    }
}
