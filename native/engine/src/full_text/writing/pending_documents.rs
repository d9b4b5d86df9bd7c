//! The documents of a small commit, which are written as one segment on the committing thread.
//!
//! Tantivy's indexing thread begins every segment with a term table for its whole budget (4 MB, cleared); for a few
//! documents that takes longer than everything else in a commit.
//!
//! The documents of a large commit go to that thread by the dozen: handing over each by itself wakes it each time.

use tantivy::index::SegmentId;
use tantivy::indexer::{AddOperation, SegmentWriter, UserOperation};
use tantivy::query::{EmptyScorer, EnableScoring, Explanation, Query, Scorer, TermQuery, Weight};
use tantivy::schema::IndexRecordOption;
use tantivy::{DocId, Index, IndexWriter, Opstamp, Score, Segment, SegmentMeta, SegmentReader, Term};

use super::lazy_writer::LazyWriter;
use crate::full_text::documents::document::{IndexedDocument, QueuedDocument};
use crate::full_text::fields::Fields;

/// A commit of more documents, or more bytes of text, goes to the indexing thread.
const DOCUMENTS_MAX: usize = 128;
const TEXT_BYTES_MAX: usize = 256 * 1024;

/// Sizes the term table: 32,768 slots, and it grows. Clearing it is most of what a commit of one document costs.
const SEGMENT_BUDGET_BYTES: usize = 1_000_000;

/// As `SEGMENT_BUDGET_BYTES` for little text: 4,096 slots.
const SMALL_SEGMENT_BUDGET_BYTES: usize = 100_000;
const SMALL_TEXT_BYTES_MAX: usize = 8 * 1024;

/// What is handed over at once: bounded, because it is written as a whole before the thread looks at its budget.
const HANDED_OVER_MAX: usize = 64;

#[derive(Default)]
pub struct PendingDocuments {
    documents: Vec<IndexedDocument>,
    /// Documents that leave the older segments.
    deleted_ordinals: Vec<u32>,
    text_bytes: usize,
    /// The documents of this commit go to the indexing thread.
    is_large: bool,
    /// Of a large commit: what comes next, in order.
    operations: Vec<UserOperation<QueuedDocument>>,
}

impl PendingDocuments {
    /// All that the commit changes is held here.
    pub fn is_small(&self) -> bool {
        !self.is_large
    }

    pub fn add(&mut self, writer: &mut LazyWriter, fields: &Fields, document: IndexedDocument) -> tantivy::Result<()> {
        if self.is_large {
            return self.hand_over(writer, UserOperation::Add(document.into()));
        }
        self.text_bytes += document.text.len();
        self.documents.push(document);
        if self.documents.len() > DOCUMENTS_MAX || self.text_bytes > TEXT_BYTES_MAX {
            self.is_large = true;
            self.text_bytes = 0;
            self.hand_over_deletes(writer.opened()?, fields, None)?;
            for document in std::mem::take(&mut self.documents) {
                self.hand_over(writer, UserOperation::Add(document.into()))?;
            }
        }
        Ok(())
    }

    fn hand_over(&mut self, writer: &mut LazyWriter, operation: UserOperation<QueuedDocument>) -> tantivy::Result<()> {
        if let UserOperation::Add(document) = &operation {
            self.text_bytes += document.0.text.len();
        }
        self.operations.push(operation);
        if self.operations.len() >= HANDED_OVER_MAX || self.text_bytes > TEXT_BYTES_MAX {
            return self.hand_over_all(writer.opened()?);
        }
        Ok(())
    }

    fn hand_over_all(&mut self, writer: &IndexWriter<QueuedDocument>) -> tantivy::Result<()> {
        self.text_bytes = 0;
        writer.run(self.operations.drain(..)).map(|_| ())
    }

    /// A newer version of the document comes, or it is deleted.
    pub fn delete(&mut self, writer: &mut LazyWriter, fields: &Fields, ordinal: u32) -> tantivy::Result<()> {
        if self.is_large {
            return self.hand_over(writer, UserOperation::Delete(fields.ordinal_term(ordinal)));
        }
        self.documents.retain(|document| document.ordinal != ordinal);
        self.deleted_ordinals.push(ordinal);
        Ok(())
    }

    fn hand_over_deletes(
        &mut self,
        writer: &IndexWriter<QueuedDocument>,
        fields: &Fields,
        except: Option<SegmentId>,
    ) -> tantivy::Result<()> {
        for ordinal in self.deleted_ordinals.drain(..) {
            writer.delete_query(Box::new(OlderVersions { term: fields.ordinal_term(ordinal), except }))?;
        }
        Ok(())
    }

    /// Gives what is held back to the writer, for the commit that follows.
    pub fn hand_to(&mut self, writer: &IndexWriter<QueuedDocument>, fields: &Fields) -> tantivy::Result<()> {
        if std::mem::take(&mut self.is_large) {
            return self.hand_over_all(writer);
        }
        if self.documents.is_empty() {
            self.text_bytes = 0;
            return self.hand_over_deletes(writer, fields, None);
        }
        let segment = writer.new_segment();
        self.hand_over_deletes(writer, fields, Some(segment.id()))?;
        writer.add_segment(self.write_segment(segment, writer.commit_opstamp())?)
    }

    /// The changes of a small commit: the terms of the documents that leave older segments, and a segment of the new ones.
    pub fn take(&mut self, index: &Index, fields: &Fields) -> tantivy::Result<(Vec<Term>, Option<SegmentMeta>)> {
        let deleted = self.deleted_ordinals.drain(..).map(|ordinal| fields.ordinal_term(ordinal)).collect();
        if self.documents.is_empty() {
            self.text_bytes = 0;
            return Ok((deleted, None));
        }
        let added = self.write_segment(index.new_segment(), 0)?;
        Ok((deleted, Some(added)))
    }

    fn write_segment(&mut self, segment: Segment, opstamp: Opstamp) -> tantivy::Result<SegmentMeta> {
        let is_small = std::mem::take(&mut self.text_bytes) <= SMALL_TEXT_BYTES_MAX;
        let budget_bytes = if is_small { SMALL_SEGMENT_BUDGET_BYTES } else { SEGMENT_BUDGET_BYTES };
        let mut segment_writer = SegmentWriter::for_segment(budget_bytes, segment.clone())?;
        for document in self.documents.drain(..) {
            segment_writer.add_document(AddOperation { opstamp, document })?;
        }
        let max_doc = segment_writer.max_doc();
        segment_writer.finalize()?;
        let segment = segment.with_max_doc(max_doc);
        segment.meta().untrack_temp_docstore();
        Ok(segment.meta().clone())
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
