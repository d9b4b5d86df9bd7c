//! The one writer of an index, over its openings.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sundew_base::report::ApplyReport;
use tantivy::index::SegmentId;
use tantivy::indexer::{IndexWriterOptions, LogMergePolicy};
use tantivy::{FutureResult, Index, IndexWriter, SegmentMeta};

use super::commit_payload::CommitPayload;
use super::pending_documents::PendingDocuments;
use crate::error::EngineError;
use crate::failpoint;
use crate::frame::{Frame, Row, RowKind};
use crate::full_text::documents::document::QueuedDocument;
use crate::full_text::documents::document_reader::DocumentReader;
use crate::full_text::errors::tantivy_failed;
use crate::full_text::fields::Fields;
use crate::full_text::options::IndexOptions;
use crate::full_text::slots::SlotTable;

/// Segments of like size that are merged into one.
const MERGED_SEGMENTS_MIN: usize = 12;

/// Segments up to this size count as of like size. Tantivy's own 10,000 merges the segments of single writes with much
/// larger ones again and again; with this they are merged among themselves first.
const SMALLEST_LAYER_DOCUMENTS: u32 = 100;

/// A segment with more deleted documents than this share is merged.
const DELETED_SHARE_MAX: f32 = 0.3;

pub struct TextWriter {
    index: Index,
    threads: usize,
    budget_bytes: usize,
    fields: Arc<Fields>,
    slots: Arc<SlotTable>,
    /// Open from the first row until `release`.
    writer: Option<IndexWriter<QueuedDocument>>,
    /// Whether it is, for those who do not wait for the one who writes.
    is_open: Arc<AtomicBool>,
    /// Documents of a commit that is small so far.
    pending: PendingDocuments,
    documents: DocumentReader,
    next_ordinal: u64,
}

impl TextWriter {
    /// `documents` fills `slots`. `next_ordinal`: of the last commit.
    pub fn new(
        index: Index,
        options: &IndexOptions,
        (fields, slots): (Arc<Fields>, Arc<SlotTable>),
        documents: DocumentReader,
        next_ordinal: u64,
    ) -> Self {
        let (threads, budget_bytes) = (options.writer_threads.max(1), options.writer_budget_bytes());
        let (is_open, pending) = (Arc::default(), PendingDocuments::default());
        Self { index, threads, budget_bytes, fields, slots, writer: None, is_open, pending, documents, next_ordinal }
    }

    pub fn is_open(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.is_open)
    }

    fn open(&mut self) -> Result<(), EngineError> {
        if self.writer.is_some() {
            return Ok(());
        }
        let options = IndexWriterOptions::builder()
            .num_worker_threads(self.threads)
            .memory_budget_per_thread(self.budget_bytes)
            .num_merge_threads(1)
            .build();
        let writer = self.index.writer_with_options(options).map_err(tantivy_failed)?;
        let mut merge_policy = LogMergePolicy::default();
        merge_policy.set_min_num_segments(MERGED_SEGMENTS_MIN);
        merge_policy.set_min_layer_size(SMALLEST_LAYER_DOCUMENTS);
        merge_policy.set_del_docs_ratio_before_merge(DELETED_SHARE_MAX);
        writer.set_merge_policy(Box::new(merge_policy));
        // A new writer gives its first operation the opstamp of the last commit. A merge of that commit would take such a
        // delete for one of the commit's own, and lose it for the segments that have deletes by then.
        writer.run([]).map_err(tantivy_failed)?;
        self.writer = Some(writer);
        self.is_open.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// A document that cannot be indexed is left out and named in the report; its older version leaves the index all the
    /// same.
    pub fn apply(&mut self, frame: &Frame<'_>) -> Result<ApplyReport, EngineError> {
        self.open()?;
        let mut report = ApplyReport::default();
        for row in frame.rows() {
            let row = row?;
            report.rows += 1;
            if matches!(row.kind, RowKind::PartPut | RowKind::PartDelete | RowKind::State) {
                continue;
            }
            if let Err(reason) = self.apply_row(&row)? {
                report.skip(row.key, reason);
            }
            self.next_ordinal = self.next_ordinal.max(u64::from(row.ordinal) + 1);
        }
        Ok(report)
    }

    /// The inner error is the reason for which the row is left out.
    fn apply_row(&mut self, row: &Row<'_>) -> Result<Result<(), String>, EngineError> {
        let Self { writer: Some(writer), pending, fields, documents, next_ordinal, .. } = self else {
            return Err(EngineError::internal("the writer was just opened"));
        };
        if u64::from(row.ordinal) < *next_ordinal {
            pending.delete(writer, fields, row.ordinal).map_err(tantivy_failed)?;
        }
        match row.kind {
            RowKind::Delete => Ok(Ok(())),
            RowKind::Transform | RowKind::PartPut | RowKind::PartDelete | RowKind::State => {
                Err(EngineError::internal("a row that holds no document reached the index"))
            }
            RowKind::Put => match documents.read(row) {
                Ok(document) => pending.add(writer, fields, document).map(Ok).map_err(tantivy_failed),
                Err(reason) => Ok(Err(reason)),
            },
        }
    }

    /// Everything that was applied, up to `sequence`, becomes the newest commit.
    pub fn commit(&mut self, sequence: u64, skipped_count: u64) -> Result<(), EngineError> {
        self.write_pending()?;
        let (next_ordinal, slots) = (self.next_ordinal, self.slots.snapshot().as_ref().clone());
        let payload = CommitPayload { sequence, next_ordinal, skipped_count, slots }.to_text()?;
        let Some(writer) = &mut self.writer else { return Err(EngineError::internal("the writer was just opened")) };
        let mut prepared = writer.prepare_commit().map_err(tantivy_failed)?;
        failpoint::hit("index.commit.prepared");
        prepared.set_payload(&payload);
        prepared.commit().map_err(tantivy_failed)?;
        Ok(())
    }

    /// Gives what is held back to Tantivy.
    pub fn write_pending(&mut self) -> Result<(), EngineError> {
        self.open()?;
        let Self { writer: Some(writer), pending, fields, .. } = self else {
            return Err(EngineError::internal("the writer was just opened"));
        };
        pending.write_segment(writer, fields).map_err(tantivy_failed)
    }

    /// Begins to make one segment of these.
    pub fn merge(&mut self, segments: &[SegmentId]) -> Result<FutureResult<Option<SegmentMeta>>, EngineError> {
        self.open()?;
        let Some(writer) = &mut self.writer else { return Err(EngineError::internal("the writer was just opened")) };
        Ok(writer.merge(segments))
    }

    /// Waits for merges and gives memory and threads back. Tells whether there was something to give back.
    pub fn release(&mut self) -> Result<bool, EngineError> {
        let Some(writer) = self.writer.take() else { return Ok(false) };
        self.is_open.store(false, Ordering::Relaxed);
        writer.wait_merging_threads().map_err(tantivy_failed)?;
        Ok(true)
    }

    /// As `release`, with what was not committed.
    pub fn discard(&mut self) {
        self.pending = PendingDocuments::default();
        drop(self.writer.take());
        self.is_open.store(false, Ordering::Relaxed);
    }
}
