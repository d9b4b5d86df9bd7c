//! Unions, intersections and phrases of words, the shape of most queries, walked over blocks of postings.
//!
//! Tantivy looks each word up twice, for its frequency and for its postings, and boxes a scorer of 1 KB for each: of
//! rare words that is most of a query's time. Here a word is looked up once.

use std::sync::Arc;

use tantivy::fieldnorm::FieldNormReader;
use tantivy::postings::TermInfo;
use tantivy::query::{Bm25StatisticsProvider, Bm25Weight, Query, TermQuery};
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{DocId, InvertedIndexReader, Score, SegmentReader, Term};

use crate::error::EngineError;
use crate::full_text::errors::{carried, tantivy_failed};
use crate::full_text::field_files::FieldFiles;
use crate::full_text::query::boolean::bool_query::BoolQuery;
use crate::full_text::query::compile::index_fields::IndexFields;
use crate::full_text::query::deadline::Deadline;
use crate::full_text::query::run::range_view::RangeView;
use crate::full_text::query::run::ranked::cost_model::{nanos_of_phrase, nanos_of_words};
use crate::full_text::query::run::statistics::RangeStatistics;
use crate::full_text::query::words::block_bounds::{BlockBounds, whole};
use crate::full_text::query::words::exact_phrase::ExactPhraseQuery;
use crate::full_text::query::words::phrase_walk::{PhraseMember, find_phrases};
use crate::full_text::query::words::position_lists::PositionLists;
use crate::full_text::query::words::rare_unions::{gather, gather_best};
use crate::full_text::query::words::skip_data::SkipData;
use crate::full_text::query::words::word_cursor::{BlockAhead, WordCursor, add_up_exactly, score_in_order};
use crate::full_text::query::words::word_frequencies::SEEK_COST;
use crate::full_text::query::words::word_seeks::{Sought, WordSeeks};
use crate::full_text::query::words::word_unions::unite;
use crate::full_text::query::words::word_walks::{Visit, intersect, walk_one};
use crate::full_text::segment_columns::SegmentColumns;
use sundew_base::bit_set::BitSet;

/// Unions of at most this many postings are gathered as a whole.
const GATHERED_MAX: u64 = 2_048;

/// And those of at most one posting for as many documents of the segment.
const GATHERED_SPACING: u64 = 512;

/// Words that are looked for one after another, where their frequency is asked.
const KNOWN_MAX: usize = 16;

/// The documents that words ask for.
enum Shape {
    Any,
    Every,
    /// Every word, where all are as far apart as these.
    Phrase(Vec<usize>),
}

/// The words of a query, looked up.
pub struct FoundWords<'q> {
    shape: Shape,
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
    files: FieldFiles,
    skips: SkipData,
}

impl<'q> FoundWords<'q> {
    /// `None` when `query` is not a union, an intersection or a phrase of words of texts, and where a file is gone: the
    /// segment was merged into another, and who opened it before reads on.
    pub fn of(
        query: &'q dyn Query,
        view: &RangeView,
        statistics: &RangeStatistics<'_, '_>,
    ) -> tantivy::Result<Option<Self>> {
        let Some((shape, terms)) = shape_of(query, &view.index) else { return Ok(None) };
        let mut words = Vec::with_capacity(terms.len());
        for term in terms {
            let Some(word) = FoundWord::find(term, view, statistics)? else { return Ok(None) };
            words.push(word);
        }
        Ok(Some(Self { shape, words }))
    }

    /// How many documents match at least, over all ranges, deleted ones too.
    pub fn matches_at_least(&self) -> u64 {
        let most = self.words.iter().map(|word| word.documents).max().unwrap_or(0);
        if matches!(self.shape, Shape::Any) || self.words.len() == 1 { most } else { 0 }
    }

    /// Over all ranges.
    pub fn expected_nanos(&self) -> u64 {
        let documents: Vec<u64> = self.words.iter().map(|word| word.documents).collect();
        match self.shape {
            Shape::Phrase(_) => nanos_of_phrase(&documents),
            Shape::Any => nanos_of_words(false, &documents),
            Shape::Every => nanos_of_words(true, &documents),
        }
    }

    pub fn into_search(self, statistics: &RangeStatistics<'_, '_>) -> tantivy::Result<WordSearch> {
        if matches!(self.shape, Shape::Phrase(_)) {
            return self.into_phrase_search(statistics);
        }
        let total_docs = statistics.total_num_docs()?;
        let mut last = None;
        let mut words = Vec::with_capacity(self.words.len());
        for word in self.words {
            let field = word.term.field();
            let average = match last {
                Some((known, average)) if known == field => average,
                _ => average_length(statistics, field)?,
            };
            last = Some((field, average));
            let weight = Bm25Weight::for_one_term_without_explain(word.documents, total_docs, average);
            words.push(Word { weight, average, postings: word.postings });
        }
        Ok(WordSearch { shape: self.shape, words })
    }

    /// Each word weighs as much as all of them together: as often as it is there at most, the phrase is.
    fn into_phrase_search(self, statistics: &RangeStatistics<'_, '_>) -> tantivy::Result<WordSearch> {
        let terms: Vec<Term> = self.words.iter().map(|word| word.term.clone()).collect();
        let known = KnownFrequencies { words: Some(&self), others: statistics };
        let weight = Bm25Weight::for_terms(&known, &terms)?;
        let average = terms.first().map_or(Ok(0.0), |term| average_length(statistics, term.field()))?;
        let words =
            self.words.into_iter().map(|word| Word { weight: weight.clone(), average, postings: word.postings });
        Ok(WordSearch { shape: self.shape, words: words.collect() })
    }
}

impl<'q> FoundWord<'q> {
    /// `None` where a file is gone.
    fn find(term: &'q Term, view: &RangeView, statistics: &RangeStatistics<'_, '_>) -> tantivy::Result<Option<Self>> {
        let field = term.field();
        let mut postings = Vec::with_capacity(view.searcher.segment_readers().len());
        for (_, reader, columns) in view.segments().iter() {
            let index = reader.inverted_index(field)?;
            let Some(info) = index.get_term_info(term)? else {
                postings.push(None);
                continue;
            };
            let Some(files) = columns.field_files(reader, field) else { return Ok(None) };
            let skips = SkipData::open(&files, &info).map_err(carried)?;
            postings.push(Some(WordPostings { index, field, info, files, skips }));
        }
        let here = postings.iter().flatten().map(|found| u64::from(found.info.doc_freq)).sum();
        Ok(Some(Self { term, documents: statistics.doc_freq_beside(term, here)?, postings }))
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
    shape: Shape,
    words: Vec<Word>,
}

struct Word {
    weight: Bm25Weight,
    /// Length of texts that the weight is made with.
    average: Score,
    /// By segment.
    postings: Vec<Option<WordPostings>>,
}

impl WordSearch {
    /// How many documents of a segment match, deleted ones too, where that is known before a search.
    pub fn matches_known(&self, segment: usize) -> Option<u64> {
        match &self.words[..] {
            [word] => Some(word.postings[segment].as_ref().map_or(0, |found| u64::from(found.info.doc_freq))),
            _ => None,
        }
    }

    pub fn is_one_word(&self) -> bool {
        self.words.len() == 1
    }

    /// A score that at least `wanted` documents of `segments` have, of which all documents are to be shown. Of every
    /// full block of a word's postings one document is known before any is decoded, and of a union it scores no less by
    /// the other words. `None` where there are fewer blocks, or where a document needs several words.
    pub fn reached(&self, wanted: usize, segments: &[u32]) -> Option<Score> {
        if wanted == 0 || !(matches!(self.shape, Shape::Any) || self.is_one_word()) {
            return None;
        }
        let mut reached: Option<Score> = None;
        let mut scores = Vec::new();
        // Of words that weigh less the blocks, which are many, are not looked at.
        let mut words: Vec<(Score, &Word)> = self.words.iter().map(|word| (whole(&word.weight), word)).collect();
        words.sort_by(|(a, _), (b, _)| b.total_cmp(a));
        for (most, word) in words {
            if reached.is_some_and(|reached| most <= reached) {
                break;
            }
            scores.clear();
            for segment in segments {
                let Some(WordPostings { skips, .. }) = &word.postings[*segment as usize] else { continue };
                let known = (0..skips.blocks()).map(|block| skips.best_at_least(block));
                let known = known.filter(|(_, frequency)| *frequency > 0);
                scores.extend(known.map(|(norm, frequency)| word.weight.score(norm, frequency)));
            }
            if scores.len() >= wanted {
                let (_, last, _) = scores.select_nth_unstable_by(wanted - 1, |a, b| b.total_cmp(a));
                reached = Some(reached.map_or(*last, |reached| reached.max(*last)));
            }
        }
        reached
    }

    /// As `for_each`, where `matches_known` and all of them are to be shown.
    pub fn for_each_best(
        &self,
        (segment, reader, columns): (usize, &SegmentReader, &SegmentColumns),
        threshold: Score,
        deadline: &Deadline,
        visit: Visit<'_>,
    ) -> Result<(), EngineError> {
        let mut cursors = self.cursors(segment, reader, columns).map_err(tantivy_failed)?;
        let [cursor] = &mut cursors[..] else { return Ok(()) };
        walk_one(cursor, threshold, deadline, visit)
    }

    /// The words, where to look for each document of `bits` in them costs less than to read their postings.
    pub fn seeks<'a>(
        &'a self,
        (segment, reader, columns): (usize, &SegmentReader, &SegmentColumns),
        bits: &'a BitSet,
        deadline: &Deadline,
    ) -> Result<Option<WordSeeks<'a>>, EngineError> {
        let every = match self.shape {
            Shape::Any => false,
            Shape::Every => true,
            Shape::Phrase(_) => return Ok(None),
        };
        let found: Vec<&WordPostings> = self.words.iter().filter_map(|word| word.postings[segment].as_ref()).collect();
        let is_hopeless = found.is_empty() || (every && found.len() < self.words.len());
        let documents = found.iter().map(|found| u64::from(found.info.doc_freq));
        if is_hopeless || bits.len() as u64 * SEEK_COST > read_of(every, documents) {
            return Ok(None);
        }
        let cursors = || self.cursors(segment, reader, columns).map_err(tantivy_failed);
        let sought = cursors()?;
        let in_order = if add_up_exactly(&sought) { Vec::new() } else { cursors()? };
        let wanted = (bits.len() as u64, reader.max_doc());
        let words = Sought::of(sought, wanted, &columns.frequencies, deadline)?;
        Ok(Some(WordSeeks::new(words, every, bits, in_order)))
    }

    /// Visits the documents that `bits` hold, where they are known, and whose score exceeds `threshold`, which every visit
    /// raises. Where all are known before the first visit, the `wanted` best come first.
    pub fn for_each(
        &self,
        (segment, reader, columns): (usize, &SegmentReader, &SegmentColumns),
        wanted: usize,
        threshold: Score,
        bits: Option<&BitSet>,
        deadline: &Deadline,
        visit: Visit<'_>,
    ) -> Result<(), EngineError> {
        if deadline.is_due() {
            return Err(deadline.error());
        }
        let cursors = self.cursors(segment, reader, columns).map_err(tantivy_failed)?;
        if cursors.is_empty() || (!matches!(self.shape, Shape::Any) && cursors.len() < self.words.len()) {
            return Ok(());
        }
        if let Shape::Phrase(offsets) = &self.shape {
            let mut members = self.members(segment, offsets, cursors)?;
            let lets_through = |doc: DocId| bits.is_none_or(|bits| bits.contains(doc));
            return find_phrases(&mut members, lets_through, threshold, deadline, visit);
        }
        if add_up_exactly(&cursors) {
            return self.walk(cursors, (reader.max_doc(), wanted), threshold, bits, deadline, visit);
        }
        // The best do not come first, since cursors do not go back.
        let mut in_order = self.cursors(segment, reader, columns).map_err(tantivy_failed)?;
        let mut rescored = |doc, _| visit(doc, score_in_order(&mut in_order, doc));
        self.walk(cursors, (reader.max_doc(), 0), threshold, bits, deadline, &mut rescored)
    }

    /// Of one word or more, all of which the segment has.
    fn walk(
        &self,
        mut cursors: Vec<WordCursor<'_>>,
        (max_doc, wanted): (DocId, usize),
        threshold: Score,
        bits: Option<&BitSet>,
        deadline: &Deadline,
        visit: Visit<'_>,
    ) -> Result<(), EngineError> {
        let every = matches!(self.shape, Shape::Every);
        let lets_through = |doc: DocId| bits.is_none_or(|bits| bits.contains(doc));
        let read = read_of(every, cursors.iter().map(|cursor| u64::from(cursor.blocks.doc_freq())));
        match (&mut cursors[..], every) {
            ([_, _, ..], true) => {
                cursors.sort_by_key(|cursor| cursor.blocks.doc_freq());
                intersect(&mut cursors, threshold, deadline, &mut |doc, score, threshold| {
                    if lets_through(doc) { visit(doc, score) } else { threshold }
                })
            }
            _ if read > GATHERED_MAX.max(u64::from(max_doc) / GATHERED_SPACING) => {
                unite(&mut cursors, bits, threshold, deadline, visit)
            }
            _ => {
                let mut threshold = threshold;
                let mut found = match threshold > 0.0 {
                    true => gather_best(&mut cursors, lets_through, threshold, deadline)?,
                    false => gather(&mut cursors, lets_through, deadline)?,
                };
                if (1..found.len()).contains(&wanted) {
                    found.select_nth_unstable_by(wanted, |a, b| b.1.total_cmp(&a.1));
                }
                for (doc, score) in found {
                    if score > threshold {
                        threshold = visit(doc, score);
                    }
                }
                Ok(())
            }
        }
    }

    /// Of all words, of which each is in the segment.
    fn members<'a>(
        &self,
        segment: usize,
        offsets: &[usize],
        cursors: Vec<WordCursor<'a>>,
    ) -> Result<Vec<PhraseMember<'a>>, EngineError> {
        let last = offsets.iter().max().copied().unwrap_or(0);
        let mut members = Vec::with_capacity(cursors.len());
        for ((word, offset), cursor) in self.words.iter().zip(offsets).zip(cursors) {
            let found = word.postings[segment].as_ref();
            let found = found.ok_or_else(|| EngineError::internal("a word of a phrase has no postings".to_owned()))?;
            let positions = PositionLists::open(&found.files, &found.info)?;
            members.push(PhraseMember { cursor, positions, lead: (last - offset) as u32 });
        }
        Ok(members)
    }

    /// Of the words that the segment has.
    fn cursors(
        &self,
        segment: usize,
        reader: &SegmentReader,
        columns: &SegmentColumns,
    ) -> tantivy::Result<Vec<WordCursor<'_>>> {
        let mut cursors: Vec<WordCursor<'_>> = Vec::with_capacity(self.words.len());
        let mut last: Option<(Field, Option<BlockBounds>)> = None;
        for word in &self.words {
            let Some(found) = &word.postings[segment] else { continue };
            let norms = columns.norms(reader, found.field)?;
            let bounds = match &last {
                Some((field, bounds)) if *field == found.field => bounds.clone(),
                _ => BlockBounds::of(written_average(&found.index, &norms.all), word.average),
            };
            last = Some((found.field, bounds.clone()));
            let blocks = found.index.read_block_postings_from_terminfo(&found.info, IndexRecordOption::WithFreqs)?;
            cursors.push(WordCursor {
                place: (found.field.field_id(), found.info.postings_range.start),
                blocks,
                norms: norms.all,
                weight: &word.weight,
                most: whole(&word.weight),
                least_norm: norms.least,
                greatest_norm: norms.greatest,
                bounds,
                skips: &found.skips,
                ahead: BlockAhead::NONE,
            });
        }
        Ok(cursors)
    }
}

/// How many postings a search reads, roughly; `documents` have each of the words.
fn read_of(every: bool, documents: impl Iterator<Item = u64>) -> u64 {
    if every { documents.min().unwrap_or(0) } else { documents.sum() }
}

/// Length of a field's texts that queries are scored with, over all ranges.
pub fn average_length(statistics: &dyn Bm25StatisticsProvider, field: Field) -> tantivy::Result<Score> {
    Ok(statistics.total_num_tokens(field)? as Score / statistics.total_num_docs()? as Score)
}

/// The same of a segment when it was written, as Tantivy computes it.
pub fn written_average(index: &InvertedIndexReader, norms: &FieldNormReader) -> Score {
    index.total_num_tokens() as Score / norms.num_docs() as Score
}

/// The words, and what is asked of them.
fn shape_of<'q>(query: &'q dyn Query, index: &IndexFields) -> Option<(Shape, Vec<&'q Term>)> {
    if let Some(phrase) = query.downcast_ref::<ExactPhraseQuery>() {
        return Some((Shape::Phrase(phrase.offsets().collect()), phrase.terms().collect()));
    }
    let (every, terms) = terms_of(query, index)?;
    Some((if every { Shape::Every } else { Shape::Any }, terms))
}

/// The words of a union or an intersection, and whether each of them is asked for.
pub fn terms_of<'q>(query: &'q dyn Query, index: &IndexFields) -> Option<(bool, Vec<&'q Term>)> {
    let is_text = |term: &&Term| term.field() == index.fields.overflow || index.fields.slot_of(term.field()).is_some();
    let term_of = |query: &'q dyn Query| Some(query.downcast_ref::<TermQuery>()?.term()).filter(is_text);
    if let Some(term) = term_of(query) {
        return Some((true, vec![term]));
    }
    let boolean = query.downcast_ref::<BoolQuery>()?;
    if boolean.clauses().is_empty() || !(boolean.is_union() || boolean.is_intersection()) {
        return None;
    }
    let terms = boolean.clauses().iter().map(|(_, clause)| term_of(&**clause)).collect::<Option<_>>()?;
    Some((boolean.is_intersection(), terms))
}
