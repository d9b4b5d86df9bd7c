//! The documents of a small commit, which are written as one segment on the committing thread.
//!
//! Tantivy's indexing thread begins every segment with a term table for its whole budget (4 MB, cleared); for a few
//! documents that takes longer than everything else in a commit.

use tantivy::index::SegmentId;
use tantivy::indexer::{AddOperation, SegmentWriter};
use tantivy::query::{EmptyScorer, EnableScoring, Explanation, Query, Scorer, TermQuery, Weight};
use tantivy::schema::IndexRecordOption;
use tantivy::{DocId, IndexWriter, Score, SegmentReader, Term};

use super::document::IndexedDocument;
use super::fields::Fields;

/// A commit of more documents, or more bytes of text, goes to the indexing thread.
const DOCUMENTS_MAX: usize = 128;
const TEXT_BYTES_MAX: usize = 256 * 1024;

/// Sizes the term table: 32,768 places, and it grows.
const SEGMENT_BUDGET_BYTES: usize = 1_000_000;

#[derive(Default)]
pub struct PendingDocuments {
    documents: Vec<IndexedDocument>,
    /// Documents that leave the older segments.
    deleted_ordinals: Vec<u32>,
    text_bytes: usize,
    /// The documents of this commit have been handed over; so are all that follow.
    is_large: bool,
}

impl PendingDocuments {
    pub fn add(
        &mut self,
        writer: &IndexWriter<IndexedDocument>,
        fields: &Fields,
        document: IndexedDocument,
    ) -> tantivy::Result<()> {
        if self.is_large {
            return writer.add_document(document).map(|_| ());
        }
        self.text_bytes += document.text.len();
        self.documents.push(document);
        if self.documents.len() > DOCUMENTS_MAX || self.text_bytes > TEXT_BYTES_MAX {
            self.is_large = true;
            self.hand_over_deletes(writer, fields, None)?;
            for document in self.documents.drain(..) {
                writer.add_document(document)?;
            }
        }
        Ok(())
    }

    /// A newer version of the document comes, or it is deleted.
    pub fn delete(&mut self, writer: &IndexWriter<IndexedDocument>, fields: &Fields, ordinal: u32) {
        if self.is_large {
            writer.delete_term(fields.ordinal_term(ordinal));
            return;
        }
        self.documents.retain(|document| document.ordinal != ordinal);
        self.deleted_ordinals.push(ordinal);
    }

    fn hand_over_deletes(
        &mut self,
        writer: &IndexWriter<IndexedDocument>,
        fields: &Fields,
        except: Option<SegmentId>,
    ) -> tantivy::Result<()> {
        for ordinal in self.deleted_ordinals.drain(..) {
            writer.delete_query(Box::new(OlderVersions { term: fields.ordinal_term(ordinal), except }))?;
        }
        Ok(())
    }

    /// Writes what is held back as a segment of the commit that follows.
    pub fn write_segment(&mut self, writer: &IndexWriter<IndexedDocument>, fields: &Fields) -> tantivy::Result<()> {
        if std::mem::take(&mut self.is_large) {
            self.text_bytes = 0;
            return Ok(());
        }
        self.text_bytes = 0;
        let documents = std::mem::take(&mut self.documents);
        if documents.is_empty() {
            return self.hand_over_deletes(writer, fields, None);
        }
        let segment = writer.new_segment();
        self.hand_over_deletes(writer, fields, Some(segment.id()))?;
        let mut segment_writer = SegmentWriter::for_segment(SEGMENT_BUDGET_BYTES, segment.clone())?;
        for document in documents {
            segment_writer.add_document(AddOperation { opstamp: writer.commit_opstamp(), document })?;
        }
        let max_doc = segment_writer.max_doc();
        segment_writer.finalize()?;
        let segment = segment.with_max_doc(max_doc);
        segment.meta().untrack_temp_docstore();
        writer.add_segment(segment.meta().clone())
    }
}

/// The documents of one ordinal but for those in one segment. Tantivy applies the deletes of a commit to the whole of
/// an added segment, also those that came before it.
#[derive(Debug, Clone)]
struct OlderVersions {
    term: Term,
    except: Option<SegmentId>,
}

impl Query for OlderVersions {
    fn weight(&self, scoring: EnableScoring<'_>) -> tantivy::Result<Box<dyn Weight>> {
        let of_ordinal = TermQuery::new(self.term.clone(), IndexRecordOption::Basic).weight(scoring)?;
        Ok(Box::new(OlderVersionsWeight { of_ordinal, except: self.except }))
    }
}

struct OlderVersionsWeight {
    of_ordinal: Box<dyn Weight>,
    except: Option<SegmentId>,
}

impl Weight for OlderVersionsWeight {
    fn scorer(&self, reader: &SegmentReader, boost: Score) -> tantivy::Result<Box<dyn Scorer>> {
        if self.except == Some(reader.segment_id()) {
            return Ok(Box::new(EmptyScorer));
        }
        self.of_ordinal.scorer(reader, boost)
    }

    fn explain(&self, reader: &SegmentReader, document: DocId) -> tantivy::Result<Explanation> {
        self.of_ordinal.explain(reader, document)
    }
}
