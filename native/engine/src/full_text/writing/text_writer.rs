//! The one writer of an index.

use std::sync::Arc;

use sundew_base::report::ApplyReport;
use tantivy::index::SegmentId;
use tantivy::{Index, IndexMeta, Searcher, SegmentMeta};

use super::commit::{Commit, remove_leftovers};
use super::commit_payload::CommitPayload;
use super::pending_documents::{PendingDocuments, without};
use crate::error::EngineError;
use crate::failpoint;
use crate::frame::{Frame, Row, RowKind};
use crate::full_text::documents::document_reader::DocumentReader;
use crate::full_text::errors::tantivy_failed;
use crate::full_text::fields::Fields;
use crate::full_text::merging::{MergedSegment, SegmentMerge};
use crate::full_text::options::IndexOptions;
use crate::full_text::slots::{SlotTable, TakenSlots};

pub struct TextWriter {
    index: Index,
    /// The newest commit.
    metas: IndexMeta,
    /// Of a segment that is being built.
    budget_bytes: usize,
    fields: Arc<Fields>,
    slots: Arc<SlotTable>,
    /// What the next commit changes.
    pending: PendingDocuments,
    documents: DocumentReader,
    next_ordinal: u64,
    merging: Vec<RunningMerge>,
}

struct RunningMerge {
    /// The segment that it makes.
    merged: SegmentId,
    sources: Vec<SegmentId>,
}

impl TextWriter {
    /// `metas` are the index's. `documents` fills `slots`. `next_ordinal`: of the last commit.
    pub fn new(
        (index, metas): (Index, IndexMeta),
        options: &IndexOptions,
        (fields, slots): (Arc<Fields>, Arc<SlotTable>),
        documents: DocumentReader,
        next_ordinal: u64,
    ) -> Self {
        let (budget_bytes, pending) = (options.writer_budget_bytes, PendingDocuments::default());
        Self { index, metas, budget_bytes, fields, slots, pending, documents, next_ordinal, merging: Vec::new() }
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
        let Self { index, budget_bytes, pending, fields, documents, next_ordinal, .. } = self;
        if u64::from(row.ordinal) < *next_ordinal {
            pending.delete(row.ordinal);
        }
        match row.kind {
            RowKind::Delete => Ok(Ok(())),
            RowKind::Transform | RowKind::PartPut | RowKind::PartDelete | RowKind::State => {
                Err(EngineError::internal("a row that holds no document reached the index"))
            }
            RowKind::Put => pending.add(row, documents, index, (&*fields, *budget_bytes)).map_err(tantivy_failed),
        }
    }

    /// Everything that was applied, up to `sequence`, becomes the newest commit. `searcher` shows the last one.
    pub fn commit(&mut self, sequence: u64, skipped_count: u64, searcher: &Searcher) -> Result<(), EngineError> {
        let (deleted, added) = self.pending.take(&self.index, &self.fields).map_err(tantivy_failed)?;
        let payload = Some(self.payload(sequence, skipped_count)?);
        let unfinished: Vec<SegmentId> = self.merging.iter().map(|merge| merge.merged).collect();
        let (index, replaced) = (&self.index, &[][..]);
        let commit = Commit { index, searcher, deleted: &deleted, added, replaced, unfinished: &unfinished, payload };
        failpoint::hit("index.commit.prepared");
        commit.write(&mut self.metas).map_err(tantivy_failed)
    }

    fn payload(&self, sequence: u64, skipped_count: u64) -> Result<String, EngineError> {
        let TakenSlots { slots, overflow } = self.slots.snapshot().as_ref().clone();
        CommitPayload { sequence, next_ordinal: self.next_ordinal, skipped_count, slots, overflow }.to_text()
    }

    /// Of the newest commit.
    pub fn segments(&self) -> &[SegmentMeta] {
        &self.metas.segments
    }

    /// Whether a merge that has begun takes this segment in.
    pub fn is_being_merged(&self, segment: SegmentId) -> bool {
        self.merging.iter().any(|merge| merge.sources.contains(&segment))
    }

    /// Begins to make one segment of these, which are of the newest commit, and of which none is being merged.
    pub fn begin_merge(&mut self, segments: &[SegmentMeta]) -> Result<SegmentMerge, EngineError> {
        let merge = SegmentMerge::begin(&self.index, segments).map_err(tantivy_failed)?;
        let sources = segments.iter().map(SegmentMeta::id).collect();
        self.merging.push(RunningMerge { merged: merge.id(), sources });
        Ok(merge)
    }

    /// The merged segment takes the place of its sources, in a commit that changes nothing else.
    pub fn end_merge(&mut self, merged: MergedSegment, searcher: &Searcher) -> Result<(), EngineError> {
        let id = merged.segment.id();
        self.commit_merged(merged, searcher).map_err(tantivy_failed)?;
        self.merging.retain(|merge| merge.merged != id);
        Ok(())
    }

    fn commit_merged(&mut self, merged: MergedSegment, searcher: &Searcher) -> tantivy::Result<()> {
        let index = &self.index;
        let left = merged.left(index, &self.metas.segments)?;
        let replaced = merged.replaced();
        let segment = if left.is_empty() { merged.segment } else { without(merged.segment, &left)? };
        let added = vec![segment.meta().clone()];
        let unfinished: Vec<SegmentId> = self.unfinished().collect();
        let (deleted, payload) = (&[][..], None);
        Commit { index, searcher, deleted, added, replaced: &replaced, unfinished: &unfinished, payload }
            .write(&mut self.metas)
    }

    /// Segments with files that belong to no commit yet.
    fn unfinished(&self) -> impl Iterator<Item = SegmentId> {
        self.pending.written().chain(self.merging.iter().map(|merge| merge.merged))
    }

    /// Removes the files of a merge that failed, which may fill the disk.
    pub fn give_up_merge(&mut self, merged: SegmentId) {
        self.merging.retain(|merge| merge.merged != merged);
        let unfinished: Vec<SegmentId> = self.unfinished().collect();
        // What cannot be removed now is by a later commit.
        let _ = remove_leftovers(&self.index, &unfinished);
    }

    /// Forgets what was not committed.
    pub fn discard(&mut self) {
        self.pending = PendingDocuments::default();
    }
}
