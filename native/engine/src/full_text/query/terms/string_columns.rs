//! Conditions on whole strings that their terms cannot answer: prefixes, ranges, patterns. The strings of a segment's
//! column lie sorted in its dictionary; those that are wanted are found there, then the documents that hold them.

use std::ops::Bound;
use std::sync::Arc;

use tantivy::columnar::{Dictionary, StrColumn};
use tantivy::query::{EmptyScorer, EnableScoring, Explanation, Query, Scorer, Weight};
use tantivy::{DocId, DocSet, Score, SegmentReader, TantivyError};

use crate::full_text::errors::carried;
use crate::full_text::mapping::ExactTypes;
use crate::full_text::query::compile::index_fields::ExactField;
use crate::full_text::query::constant_docs::{ConstantDocs, Matching};
use crate::full_text::query::deadline::Deadline;
use crate::full_text::query::terms::constant_score_union::BitsOfSegment;
use crate::full_text::query::terms::docs_by_string::DocsByString;
use crate::full_text::query::terms::exact_docs::ExactDocs;
use crate::full_text::query::terms::term_expansion::{NearestScorer, Tokens};
use crate::full_text::query::terms::term_range::end_of_prefix;
use sundew_base::bit_set::BitSet;

/// Documents between two looks at the clock: a power of two.
const DOCUMENTS_BETWEEN_LOOKS: u32 = 1 << 16;

/// Documents that are put into a set one by one.
const FEW_MAX: usize = 256;

/// Whole strings of one column between two bounds.
#[derive(Debug, Clone)]
pub struct StringRangeQuery {
    column: Arc<str>,
    /// Whose strings count.
    types: Option<Arc<ExactTypes>>,
    lower: Bound<Vec<u8>>,
    upper: Bound<Vec<u8>>,
    /// Ways back to documents that are kept between queries.
    known: Option<Arc<DocsByString>>,
}

impl StringRangeQuery {
    pub fn new(field: &ExactField, lower: Bound<&str>, upper: Bound<&str>, known: &Option<Arc<DocsByString>>) -> Self {
        let bytes = |text: &str| text.as_bytes().to_vec();
        Self {
            column: Arc::from(field.column.as_str()),
            types: field.types.clone(),
            lower: lower.map(bytes),
            upper: upper.map(bytes),
            known: known.clone(),
        }
    }

    pub fn with_prefix(field: &ExactField, prefix: &str, known: &Option<Arc<DocsByString>>) -> Self {
        let upper = end_of_prefix(prefix.as_bytes()).map_or(Bound::Unbounded, Bound::Excluded);
        Self { upper, ..Self::new(field, Bound::Included(prefix), Bound::Unbounded, known) }
    }

    /// Ordinals in the dictionary: the first that is wanted, and the one behind the last.
    fn ordinals(&self, dictionary: &Dictionary) -> tantivy::Result<(u64, u64)> {
        let (lower, upper) = dictionary.term_bounds_to_ord(self.lower.as_ref(), self.upper.as_ref())?;
        let first = match lower {
            Bound::Included(ordinal) => ordinal,
            Bound::Excluded(ordinal) => ordinal.saturating_add(1),
            Bound::Unbounded => 0,
        };
        let end = match upper {
            Bound::Included(ordinal) => ordinal.saturating_add(1),
            Bound::Excluded(ordinal) => ordinal,
            Bound::Unbounded => u64::MAX,
        };
        Ok((first, end.min(dictionary.num_terms() as u64)))
    }
}

impl Query for StringRangeQuery {
    fn weight(&self, _: EnableScoring<'_>) -> tantivy::Result<Box<dyn Weight>> {
        Ok(Box::new(self.clone()))
    }
}

impl StringRangeQuery {
    /// The documents by the way back, where it is known and faster than the column.
    fn known_docs(&self, reader: &SegmentReader) -> Option<Vec<DocId>> {
        let (Bound::Included(lower), Bound::Excluded(upper)) = (&self.lower, &self.upper) else { return None };
        let known = self.known.as_ref()?.of(reader, &self.column)?;
        let (first, end) = (known.first_from(lower)?, known.first_from(upper)?);
        if first < end { known.docs(first..end, reader.max_doc()) } else { Some(Vec::new()) }
    }
}

impl BitsOfSegment for StringRangeQuery {
    fn docs(&self, reader: &SegmentReader) -> tantivy::Result<Matching> {
        let exact = ExactDocs::open(reader, &self.types)?;
        let of_exact = |mut docs: Vec<DocId>| {
            if let Some(exact) = &exact {
                docs.retain(|doc| exact.has(*doc));
            }
            docs
        };
        if let Some(docs) = self.known_docs(reader) {
            return Ok(Matching::Few(of_exact(docs)));
        }
        let mut found = Vec::new();
        if let Some(strings) = reader.fast_fields().str(&self.column)? {
            if let Some(known) = &self.known {
                known.missed(reader, &self.column, &strings);
            }
            let (first, end) = self.ordinals(strings.dictionary())?;
            if first < end {
                let known = self.known.as_ref().and_then(|known| known.of(reader, &self.column));
                if let Some(docs) = known.and_then(|known| known.docs(first..end, reader.max_doc())) {
                    return Ok(Matching::Few(of_exact(docs)));
                }
                strings.ords().get_docids_for_value_range(first..=end - 1, 0..reader.max_doc(), &mut found);
            }
        }
        let mut found = of_exact(found);
        if found.len() <= FEW_MAX {
            // A document may have several of the strings.
            found.dedup();
            return Ok(Matching::Few(found));
        }
        let mut documents = BitSet::words_for(reader.max_doc());
        for document in found {
            documents[document as usize / 64] |= 1 << (document % 64);
        }
        Ok(Matching::Any(BitSet::from_words(documents)))
    }
}

impl Weight for StringRangeQuery {
    fn scorer(&self, reader: &SegmentReader, boost: Score) -> tantivy::Result<Box<dyn Scorer>> {
        Ok(ConstantDocs::scorer(Arc::new(self.docs(reader)?.into_bits(reader.max_doc())), boost))
    }

    fn explain(&self, reader: &SegmentReader, document: DocId) -> tantivy::Result<Explanation> {
        explained(self.scorer(reader, 1.0)?, document, "string range")
    }
}

/// A document scores as with `ExpandedTermsQuery`, each whole string taken for a token.
#[derive(Debug, Clone)]
pub struct ExpandedStringsQuery {
    pub field: ExactField,
    pub tokens: Tokens,
    pub deadline: Deadline,
}

impl ExpandedStringsQuery {
    /// For each distance, the ordinals in the dictionary of the strings that are so far from what is wanted.
    fn ordinals(&self, strings: &StrColumn) -> tantivy::Result<Option<Vec<tantivy::BitSet>>> {
        let empty = || tantivy::BitSet::with_max_value(strings.dictionary().num_terms() as u32);
        let mut by_distance: Vec<tantivy::BitSet> = (0..=self.tokens.distance_max()).map(|_| empty()).collect();
        let mut found = false;
        self.tokens.walk(strings.dictionary(), &[], &self.deadline, &mut |_, ordinal, distance| {
            by_distance[distance].insert(*ordinal as u32);
            found = true;
            Ok(())
        })?;
        Ok(found.then_some(by_distance))
    }
}

impl Query for ExpandedStringsQuery {
    fn weight(&self, _: EnableScoring<'_>) -> tantivy::Result<Box<dyn Weight>> {
        Ok(Box::new(self.clone()))
    }
}

impl Weight for ExpandedStringsQuery {
    fn scorer(&self, reader: &SegmentReader, boost: Score) -> tantivy::Result<Box<dyn Scorer>> {
        let Some(strings) = reader.fast_fields().str(&self.field.column)? else { return Ok(Box::new(EmptyScorer)) };
        let Some(ordinals) = self.ordinals(&strings)? else { return Ok(Box::new(EmptyScorer)) };
        let mut by_distance: Vec<tantivy::BitSet> =
            ordinals.iter().map(|_| tantivy::BitSet::with_max_value(reader.max_doc())).collect();
        let exact = ExactDocs::open(reader, &self.field.types)?;
        for document in 0..reader.max_doc() {
            if document & (DOCUMENTS_BETWEEN_LOOKS - 1) == 0 && self.deadline.is_due() {
                return Err(carried(self.deadline.error()));
            }
            if exact.as_ref().is_some_and(|exact| !exact.has(document)) {
                continue;
            }
            for ordinal in strings.ords().values_for_doc(document) {
                for (documents, ordinals) in by_distance.iter_mut().zip(&ordinals) {
                    if ordinals.contains(ordinal as u32) {
                        documents.insert(document);
                    }
                }
            }
        }
        Ok(Box::new(NearestScorer::new(by_distance, reader.max_doc(), boost)))
    }

    fn explain(&self, reader: &SegmentReader, document: DocId) -> tantivy::Result<Explanation> {
        explained(self.scorer(reader, 1.0)?, document, "expanded strings")
    }
}

fn explained(mut scorer: Box<dyn Scorer>, document: DocId, what: &'static str) -> tantivy::Result<Explanation> {
    if scorer.doc() > document || scorer.seek(document) != document {
        return Err(TantivyError::InvalidArgument(format!("document {document} does not match")));
    }
    Ok(Explanation::new(what, scorer.score()))
}
