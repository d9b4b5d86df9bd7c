//! All documents that have a term between two bounds of the term dictionary: prefixes, and ranges of exact strings.

use std::ops::Bound;
use std::sync::Arc;

use tantivy::directory::OwnedBytes;
use tantivy::query::{EnableScoring, Explanation, Query, Scorer, Weight};
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{DocId, DocSet, Score, SegmentReader, TantivyError, Term};

use crate::full_text::errors::{carried, damaged};
use crate::full_text::query::constant_docs::{ConstantDocs, Matching};
use crate::full_text::query::terms::constant_score_union::BitsOfSegment;
use crate::full_text::query::words::short_postings::add_short;
use crate::full_text::query::words::skip_data::BLOCK_DOCS;
use crate::full_text::query::words::word_bits::add_documents;
use crate::full_text::segment_columns::SegmentColumns;
use sundew_base::bit_set::BitSet;

/// Bounds are serialised term values, without the field.
#[derive(Debug, Clone)]
pub struct TermRangeQuery {
    field: Field,
    lower: Bound<Vec<u8>>,
    upper: Bound<Vec<u8>>,
    /// Segments whose files may be read beside Tantivy's reader.
    segments: Arc<[Arc<SegmentColumns>]>,
}

impl TermRangeQuery {
    pub fn new(field: Field, lower: Bound<Vec<u8>>, upper: Bound<Vec<u8>>) -> Self {
        Self { field, lower, upper, segments: Arc::default() }
    }

    /// All terms that begin with `prefix`'s value.
    pub fn with_prefix(prefix: &Term) -> Self {
        let start = prefix.serialized_value_bytes().to_vec();
        let upper = match end_of_prefix(&start) {
            Some(end) => Bound::Excluded(end),
            None => Bound::Unbounded,
        };
        Self::new(prefix.field(), Bound::Included(start), upper)
    }

    /// The same where all postings are in the files of `segments`: short ones are read from their bytes.
    pub fn reading(self, segments: &Arc<[Arc<SegmentColumns>]>) -> Self {
        Self { segments: Arc::clone(segments), ..self }
    }

    fn postings(&self, reader: &SegmentReader) -> tantivy::Result<Option<OwnedBytes>> {
        let columns = self.segments.iter().find(|columns| columns.segment == reader.segment_id());
        let files = columns.and_then(|columns| columns.field_files(reader, self.field));
        Ok(files.map(|files| files.postings.read_bytes()).transpose()?)
    }
}

/// The least byte string above all that begin with `prefix`.
pub fn end_of_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|&byte| byte != u8::MAX)?;
    let mut end = prefix[..=last].to_vec();
    end[last] += 1;
    Some(end)
}

impl Query for TermRangeQuery {
    fn weight(&self, _: EnableScoring<'_>) -> tantivy::Result<Box<dyn Weight>> {
        Ok(Box::new(self.clone()))
    }
}

impl BitsOfSegment for TermRangeQuery {
    fn docs(&self, reader: &SegmentReader) -> tantivy::Result<Matching> {
        let inverted_index = reader.inverted_index(self.field)?;
        let mut range = inverted_index.terms().range();
        range = match &self.lower {
            Bound::Included(bound) => range.ge(bound),
            Bound::Excluded(bound) => range.gt(bound),
            Bound::Unbounded => range,
        };
        range = match &self.upper {
            Bound::Included(bound) => range.le(bound),
            Bound::Excluded(bound) => range.lt(bound),
            Bound::Unbounded => range,
        };
        let mut terms = range.without_keys().into_stream()?;
        let mut documents = BitSet::words_for(reader.max_doc());
        let of_field = self.postings(reader)?;
        let mut reused = None;
        while terms.advance() {
            let term = terms.value();
            if let Some(of_field) = of_field.as_ref().filter(|_| (term.doc_freq as usize) < BLOCK_DOCS) {
                let postings = of_field.get(term.postings_range.clone());
                let added = postings.and_then(|postings| add_short(postings, term.doc_freq, &mut documents));
                added
                    .ok_or_else(|| carried(damaged("the postings of a term are not what its entry says".to_owned())))?;
                continue;
            }
            let postings = match &mut reused {
                Some(postings) => {
                    inverted_index.reset_block_postings_from_terminfo(term, postings)?;
                    postings
                }
                None => {
                    let opened = inverted_index.read_block_postings_from_terminfo(term, IndexRecordOption::Basic)?;
                    reused.insert(opened)
                }
            };
            add_documents(postings, &mut documents);
        }
        Ok(Matching::Any(BitSet::from_words(documents)))
    }
}

impl Weight for TermRangeQuery {
    fn scorer(&self, reader: &SegmentReader, boost: Score) -> tantivy::Result<Box<dyn Scorer>> {
        Ok(ConstantDocs::scorer(Arc::new(self.docs(reader)?.into_bits(reader.max_doc())), boost))
    }

    fn explain(&self, reader: &SegmentReader, document: DocId) -> tantivy::Result<Explanation> {
        let mut scorer = self.scorer(reader, 1.0)?;
        if scorer.doc() > document || scorer.seek(document) != document {
            return Err(TantivyError::InvalidArgument(format!("document {document} does not match")));
        }
        Ok(Explanation::new("term range", 1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::end_of_prefix;

    #[test]
    fn the_end_of_a_prefix_is_the_next_string_that_does_not_begin_with_it() {
        assert_eq!(end_of_prefix(b"ab"), Some(b"ac".to_vec()));
        assert_eq!(end_of_prefix(&[b'a', 0xff]), Some(b"b".to_vec()));
        assert_eq!(end_of_prefix(&[0xff, 0xff]), None);
        assert_eq!(end_of_prefix(b""), None);
    }
}
