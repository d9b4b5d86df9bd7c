//! Unions and intersections of words, the shape of most queries, walked over blocks of postings.
//!
//! Tantivy looks each word up twice, for its frequency and for its postings, and boxes a scorer of 1 KB for each: of
//! rare words that is most of a query's time. Here a word is looked up once.

use std::sync::Arc;

use tantivy::fieldnorm::FieldNormReader;
use tantivy::postings::TermInfo;
use tantivy::query::{Bm25StatisticsProvider, Bm25Weight, BooleanQuery, Occur, Query, TermQuery};
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{DocId, InvertedIndexReader, Score, SegmentReader, Term};

use crate::error::EngineError;
use crate::full_text::errors::tantivy_failed;
use crate::full_text::query::compile::index_fields::IndexFields;
use crate::full_text::query::deadline::Deadline;
use crate::full_text::query::run::range_view::RangeView;
use crate::full_text::query::run::ranked::cost_model::nanos_of_words;
use crate::full_text::query::run::statistics::RangeStatistics;
use crate::full_text::query::words::word_unions::unite;
use crate::full_text::query::words::word_walks::{Visit, WordCursor, gather, intersect, seek_each};
use crate::full_text::segment_columns::SegmentColumns;
use sundew_base::bit_set::BitSet;

/// Unions of at most this many postings are gathered as a whole.
const GATHERED_MAX: u64 = 2_048;

/// Looking for one document in a word's postings costs about as much as reading this many of them.
const SEEK_COST: u64 = 6;

/// Words that are looked for one after another, where their frequency is asked.
const KNOWN_MAX: usize = 16;

/// The words of a query, looked up.
pub struct FoundWords<'q> {
    every: bool,
    words: Vec<FoundWord<'q>>,
}

struct FoundWord<'q> {
    term: &'q Term,
    /// Documents of all ranges.
    documents: u64,
    /// By segment.
    postings: Vec<Option<WordPostings>>,
}

struct WordPostings {
    index: Arc<InvertedIndexReader>,
    field: Field,
    info: TermInfo,
}

impl<'q> FoundWords<'q> {
    /// `None` when `query` is not a union or intersection of words of texts.
    pub fn of(
        query: &'q dyn Query,
        view: &RangeView,
        statistics: &RangeStatistics<'_, '_>,
    ) -> tantivy::Result<Option<Self>> {
        let Some((every, terms)) = terms_of(query, &view.index) else { return Ok(None) };
        let words = terms.into_iter().map(|term| FoundWord::find(term, view, statistics));
        Ok(Some(Self { every, words: words.collect::<tantivy::Result<_>>()? }))
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

    pub fn into_search(self, statistics: &RangeStatistics<'_, '_>) -> tantivy::Result<WordSearch> {
        let total_docs = statistics.total_num_docs()?;
        let mut last = None;
        let mut words = Vec::with_capacity(self.words.len());
        for word in self.words {
            let field = word.term.field();
            let average = match last {
                Some((known, average)) if known == field => average,
                _ => statistics.total_num_tokens(field)? as Score / total_docs as Score,
            };
            last = Some((field, average));
            let weight = Bm25Weight::for_one_term_without_explain(word.documents, total_docs, average);
            words.push(Word { weight, postings: word.postings });
        }
        Ok(WordSearch { every: self.every, words })
    }
}

impl<'q> FoundWord<'q> {
    fn find(term: &'q Term, view: &RangeView, statistics: &RangeStatistics<'_, '_>) -> tantivy::Result<Self> {
        let field = term.field();
        let mut postings = Vec::with_capacity(view.searcher.segment_readers().len());
        for reader in view.searcher.segment_readers() {
            let index = reader.inverted_index(field)?;
            let info = index.get_term_info(term)?;
            postings.push(info.map(|info| WordPostings { index, field, info }));
        }
        let here = postings.iter().flatten().map(|found| u64::from(found.info.doc_freq)).sum();
        Ok(Self { term, documents: statistics.doc_freq_beside(term, here)?, postings })
    }
}

/// Statistics that need not look up again what was found.
pub struct KnownFrequencies<'a> {
    pub words: Option<&'a FoundWords<'a>>,
    pub others: &'a dyn Bm25StatisticsProvider,
}

impl Bm25StatisticsProvider for KnownFrequencies<'_> {
    fn total_num_tokens(&self, field: Field) -> tantivy::Result<u64> {
        self.others.total_num_tokens(field)
    }

    fn total_num_docs(&self) -> tantivy::Result<u64> {
        self.others.total_num_docs()
    }

    fn doc_freq(&self, term: &Term) -> tantivy::Result<u64> {
        let known = self.words.and_then(|found| found.words.iter().take(KNOWN_MAX).find(|word| word.term == term));
        known.map_or_else(|| self.others.doc_freq(term), |word| Ok(word.documents))
    }
}

pub struct WordSearch {
    every: bool,
    words: Vec<Word>,
}

struct Word {
    weight: Bm25Weight,
    /// By segment.
    postings: Vec<Option<WordPostings>>,
}

impl WordSearch {
    /// Visits, in order, the documents that `lets_through` and whose score exceeds `threshold`, which every visit
    /// raises. `bits`, where they are known, hold all that is let through.
    pub fn for_each(
        &self,
        (segment, reader, columns): (usize, &SegmentReader, &SegmentColumns),
        threshold: Score,
        bits: Option<&BitSet>,
        deadline: &Deadline,
        visit: Visit<'_>,
    ) -> Result<(), EngineError> {
        if deadline.is_due() {
            return Err(deadline.error());
        }
        let mut cursors = self.cursors(segment, reader, columns).map_err(tantivy_failed)?;
        if cursors.is_empty() || (self.every && cursors.len() < self.words.len()) {
            return Ok(());
        }
        let documents = cursors.iter().map(|cursor| u64::from(cursor.blocks.doc_freq()));
        let read = if self.every { documents.min().unwrap_or(0) } else { documents.sum::<u64>() };
        if let Some(bits) = bits.filter(|bits| bits.len() as u64 * SEEK_COST <= read) {
            return seek_each(&mut cursors, self.every, bits, threshold, deadline, visit);
        }
        let lets_through = |doc: DocId| bits.is_none_or(|bits| bits.contains(doc));
        match (&mut cursors[..], self.every) {
            ([_, _, ..], true) => {
                cursors.sort_by_key(|cursor| cursor.blocks.doc_freq());
                intersect(&mut cursors, threshold, deadline, &mut |doc, score, threshold| {
                    if lets_through(doc) { visit(doc, score) } else { threshold }
                })
            }
            _ if read > GATHERED_MAX => unite(&mut cursors, lets_through, threshold, deadline, visit),
            _ => {
                let mut threshold = threshold;
                for (doc, score) in gather(&mut cursors, lets_through, deadline)? {
                    if score > threshold {
                        threshold = visit(doc, score);
                    }
                }
                Ok(())
            }
        }
    }

    /// Of the words that the segment has.
    fn cursors(
        &self,
        segment: usize,
        reader: &SegmentReader,
        columns: &SegmentColumns,
    ) -> tantivy::Result<Vec<WordCursor<'_>>> {
        let mut cursors: Vec<WordCursor<'_>> = Vec::with_capacity(self.words.len());
        let mut last: Option<(Field, FieldNormReader)> = None;
        for word in &self.words {
            let Some(found) = &word.postings[segment] else { continue };
            let norms = match &last {
                Some((field, norms)) if *field == found.field => norms.clone(),
                _ => {
                    let norms = reader.fieldnorms_readers().get_field(found.field)?;
                    norms.unwrap_or_else(|| FieldNormReader::constant(reader.max_doc(), 1))
                }
            };
            last = Some((found.field, norms.clone()));
            let blocks = found.index.read_block_postings_from_terminfo(&found.info, IndexRecordOption::WithFreqs)?;
            let least_norm = columns.least_norm(found.field, &norms);
            cursors.push(WordCursor { blocks, norms, weight: &word.weight, least_norm });
        }
        Ok(cursors)
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
