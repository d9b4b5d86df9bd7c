//! The one writer of an index, over its openings.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use sundew_base::report::ApplyReport;
use tantivy::index::SegmentId;
use tantivy::{FutureResult, Index, Searcher, SegmentMeta};

use super::commit_payload::CommitPayload;
use super::lazy_writer::{LazyWriter, MERGED_SEGMENTS_MIN};
use super::pending_documents::PendingDocuments;
use super::small_commit::SmallCommit;
use crate::error::EngineError;
use crate::failpoint;
use crate::frame::{Frame, Row, RowKind};
use crate::full_text::documents::document_reader::DocumentReader;
use crate::full_text::errors::tantivy_failed;
use crate::full_text::fields::Fields;
use crate::full_text::options::IndexOptions;
use crate::full_text::slots::{SlotTable, TakenSlots};

pub struct TextWriter {
    writer: LazyWriter,
    fields: Arc<Fields>,
    slots: Arc<SlotTable>,
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
        let (writer, pending) = (LazyWriter::new(index, options), PendingDocuments::default());
        Self { writer, fields, slots, pending, documents, next_ordinal }
    }

    /// Tells at any time whether the index holds a writer of Tantivy.
    pub fn open_flag(&self) -> Arc<AtomicBool> {
        self.writer.open_flag()
    }

    /// A document that cannot be indexed is left out and named in the report; its older version leaves the index all the
    /// same.
    pub fn apply(&mut self, frame: &Frame<'_>) -> Result<ApplyReport, EngineError> {
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
        let Self { writer, pending, fields, documents, next_ordinal, .. } = self;
        if u64::from(row.ordinal) < *next_ordinal {
            pending.delete(row.ordinal);
        }
        match row.kind {
            RowKind::Delete => Ok(Ok(())),
            RowKind::Transform | RowKind::PartPut | RowKind::PartDelete | RowKind::State => {
                Err(EngineError::internal("a row that holds no document reached the index"))
            }
            RowKind::Put => {
                let bounds = (&*fields, writer.budget_bytes);
                pending.add(row, documents, &writer.index, bounds).map_err(tantivy_failed)
            }
        }
    }

    /// Everything that was applied, up to `sequence`, becomes the newest commit. `searcher` shows the last one.
    pub fn commit(&mut self, sequence: u64, skipped_count: u64, searcher: &Searcher) -> Result<(), EngineError> {
        let is_small = self.pending.is_small() && !self.writer.is_open();
        if is_small && searcher.segment_readers().len() + 1 < MERGED_SEGMENTS_MIN {
            return self.commit_small(sequence, skipped_count, searcher);
        }
        self.write_pending()?;
        let payload = self.payload(sequence, skipped_count)?;
        let mut prepared = self.writer.opened().and_then(|writer| writer.prepare_commit()).map_err(tantivy_failed)?;
        failpoint::hit("index.commit.prepared");
        prepared.set_payload(&payload);
        prepared.commit().map_err(tantivy_failed)?;
        Ok(())
    }

    fn commit_small(&mut self, sequence: u64, skipped_count: u64, searcher: &Searcher) -> Result<(), EngineError> {
        let index = &self.writer.index;
        let (deleted, added) = self.pending.take(index, &self.fields).map_err(tantivy_failed)?;
        let payload = self.payload(sequence, skipped_count)?;
        failpoint::hit("index.commit.prepared");
        SmallCommit { index, searcher, deleted: &deleted, added, payload: &payload }.write().map_err(tantivy_failed)
    }

    fn payload(&self, sequence: u64, skipped_count: u64) -> Result<String, EngineError> {
        let TakenSlots { slots, overflow } = self.slots.snapshot().as_ref().clone();
        CommitPayload { sequence, next_ordinal: self.next_ordinal, skipped_count, slots, overflow }.to_text()
    }

    /// Gives what is held back to Tantivy's writer.
    pub fn write_pending(&mut self) -> Result<(), EngineError> {
        let Self { writer, pending, fields, .. } = self;
        writer.opened().and_then(|writer| pending.hand_to(writer, fields)).map_err(tantivy_failed)
    }

    /// Begins to make one segment of these.
    pub fn merge(&mut self, segments: &[SegmentId]) -> Result<FutureResult<Option<SegmentMeta>>, EngineError> {
        self.writer.opened().map(|writer| writer.merge(segments)).map_err(tantivy_failed)
    }

    /// Waits for merges and gives memory and threads back. Tells whether there was something to give back.
    pub fn release(&mut self) -> Result<bool, EngineError> {
        let Some(writer) = self.writer.take() else { return Ok(false) };
        writer.wait_merging_threads().map_err(tantivy_failed)?;
        Ok(true)
    }

    /// As `release`, with what was not committed.
    pub fn discard(&mut self) {
        self.pending = PendingDocuments::default();
        drop(self.writer.take());
    }
}
