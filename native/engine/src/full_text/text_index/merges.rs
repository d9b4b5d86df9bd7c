//! Merges of an index's segments, beside rows and queries.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{MutexGuard, PoisonError, Weak};

use tantivy::{Directory, SegmentMeta};

use super::TextIndex;
use crate::error::EngineError;
use crate::failpoint;
use crate::full_text::errors::tantivy_failed;
use crate::full_text::merging::SegmentMerge;
use crate::full_text::storage::files_of_segment;
use crate::full_text::writing::{Merger, TextWriter, large_merges_at_rest, merges_at_rest, merges_while_writing};
use sundew_base::derived_index::DerivedIndex;

/// Merges of each kind go on beside those of the other.
#[derive(Clone, Copy)]
enum MergeKind {
    /// Begun at rest alone; they take so long that rows may come meanwhile.
    Large,
    Other,
}

impl TextIndex {
    /// Starts merges where some are due and none of their kind are under way.
    pub(super) fn start_merges(&self) {
        // Of the segments that both would take in, the large one has most.
        for kind in [MergeKind::Large, MergeKind::Other] {
            let mut merger = self.merger(kind);
            if merger.is_at_work() || self.due_segments(kind, &self.writing()).is_empty() {
                continue;
            }
            let this = Weak::clone(&self.this);
            merger.start(move || {
                if let Some(this) = this.upgrade() {
                    this.merge_in_turn(kind);
                }
            });
        }
    }

    /// Segments of the newest commit that are to become one; none when all is well.
    fn due_segments(&self, kind: MergeKind, writing: &TextWriter) -> Vec<SegmentMeta> {
        if self.closed.load(Ordering::Relaxed) {
            return Vec::new();
        }
        let mut segments = writing.segments().to_vec();
        segments.retain(|segment| !writing.is_being_merged(segment.id()));
        let documents = self.options.merged_documents_max;
        let due = match (kind, self.is_resting.load(Ordering::Relaxed)) {
            (MergeKind::Large, true) => large_merges_at_rest(&segments, documents),
            (MergeKind::Large, false) => Vec::new(),
            (MergeKind::Other, true) => merges_at_rest(&segments, documents),
            (MergeKind::Other, false) => merges_while_writing(&segments),
        };
        segments.retain(|segment| due.contains(&segment.id()));
        if matches!(kind, MergeKind::Large) && !segments.is_empty() {
            let files = segments.iter().flat_map(|segment| files_of_segment(&segment.id().uuid_string()));
            if !self.directory.has_room_to_merge(files) {
                segments.clear();
            }
        }
        segments
    }

    /// Merges one after another until none is due; rows are taken all the while. What fails is tried again after the next
    /// commit or rest: the segments stay as they were.
    fn merge_in_turn(&self, kind: MergeKind) {
        let ended = self.merge_until_none_is_due(kind);
        let durable = self.checkpoint_sequence.load(Ordering::Acquire);
        if self.is_resting.load(Ordering::Relaxed) && durable == self.applied_sequence.load(Ordering::Acquire) {
            // The same commit in fewer segments; otherwise a checkpoint is due anyway. A closed index makes none.
            let _ = self.checkpoint();
        }
        if ended.is_ok() {
            // Of the other kind some may be due now.
            self.start_merges();
        }
    }

    fn merge_until_none_is_due(&self, kind: MergeKind) -> Result<(), EngineError> {
        while let Some(merge) = self.begin_merge(kind)? {
            self.run_merge(merge)?;
            self.refresh_counters();
        }
        Ok(())
    }

    /// The next merge that is due. After none another thread may be started at once, with those that are due by then.
    fn begin_merge(&self, kind: MergeKind) -> Result<Option<SegmentMerge>, EngineError> {
        let merger = self.merger(kind);
        let mut writing = self.writing();
        let due = self.due_segments(kind, &writing);
        if due.is_empty() {
            merger.found_none();
            return Ok(None);
        }
        let merge = writing.begin_merge(&due)?;
        self.directory.begin_merge(&files_of(&merge));
        Ok(Some(merge))
    }

    fn run_merge(&self, merge: SegmentMerge) -> Result<(), EngineError> {
        let (id, files) = (merge.id(), files_of(&merge));
        // A panic of one merge is a failure of that merge: its files go, and its sources may be merged again.
        let write = || {
            failpoint::hit_panic("index.merge");
            merge.write(&self.closed).map_err(tantivy_failed)
        };
        let merged = catch_unwind(AssertUnwindSafe(write))
            .unwrap_or_else(|_| Err(EngineError::internal("a merge of segments panicked")));
        self.directory.end_merge(&files);
        failpoint::hit("index.merge.written");
        let mut writing = self.writing();
        if self.closed.load(Ordering::Relaxed) {
            // No checkpoint names these, whoever has the directory now.
            files.iter().for_each(|file| _ = self.directory.delete(file));
            return Err(EngineError::internal("the index was closed"));
        }
        let outcome = merged.and_then(|merged| writing.end_merge(merged, &self.searcher()));
        if outcome.is_err() {
            writing.give_up_merge(id);
            return outcome;
        }
        self.reload(&writing)
    }

    /// Waits for the merges that have begun, and those that these begin at their end.
    pub fn wait_for_merges(&self) {
        let under_way = |kind| self.merger(kind).under_way();
        while let Some(merging) = under_way(MergeKind::Large).or_else(|| under_way(MergeKind::Other)) {
            merging.wait();
        }
    }

    fn merger(&self, kind: MergeKind) -> MutexGuard<'_, Merger> {
        let merger = match kind {
            MergeKind::Large => &self.large_merger,
            MergeKind::Other => &self.merger,
        };
        merger.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The files that a merge is about to write.
fn files_of(merge: &SegmentMerge) -> [PathBuf; 6] {
    files_of_segment(&merge.id().uuid_string())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use sundew_base::frame::{FrameWriter, RowKind};

    use super::*;
    use crate::full_text::options::IndexOptions;

    fn frame(kind: RowKind, ordinals: std::ops::Range<u32>) -> Vec<u8> {
        let mut writer = FrameWriter::new(ordinals.len(), 64 * ordinals.len()).expect("a small frame");
        let body: &[u8] = if kind == RowKind::Put { br#"{"text":"soup"}"# } else { b"" };
        for (at, ordinal) in ordinals.enumerate() {
            writer.push(kind, 0, format!("k{ordinal}").as_bytes(), &[body]);
            writer.set_position(at, ordinal, u64::from(ordinal) + 1, 0);
        }
        writer.finish()
    }

    #[test]
    fn documents_that_leave_while_their_segments_are_merged_leave_the_merged_one() {
        let options = IndexOptions { mem_only: true, ..IndexOptions::named("test") };
        let index = TextIndex::open(Path::new("unused"), options).expect("an index in memory");
        let step = |sequence: u64, kind: RowKind, ordinals: std::ops::Range<u32>| {
            index.apply(&frame(kind, ordinals)).expect("rows are applied");
            index.commit(sequence).expect("a commit");
        };
        step(1, RowKind::Put, 0..30);
        step(2, RowKind::Put, 30..33);
        step(3, RowKind::Put, 33..40);
        step(4, RowKind::Delete, 0..1);
        let sources = index.writing().segments().to_vec();
        let merge = index.writing().begin_merge(&sources).expect("a merge begins");
        step(5, RowKind::Delete, 1..2);
        // All of a segment, and a document of another that comes again.
        step(6, RowKind::Delete, 30..33);
        step(7, RowKind::Put, 34..35);
        // Not committed before the merge ends.
        index.apply(&frame(RowKind::Delete, 2..4)).expect("rows are applied");
        index.run_merge(merge).expect("the merge ends");
        assert_eq!((index.document_count(), index.writing().segments().len()), (35, 2));
        index.commit(8).expect("a commit");
        assert_eq!(index.document_count(), 33);
        index.verify().expect("all checksums match");
    }

    #[test]
    fn rows_and_other_merges_go_on_beside_a_large_merge() {
        let options = IndexOptions { mem_only: true, merged_documents_max: 50, ..IndexOptions::named("test") };
        let index = TextIndex::open(Path::new("unused"), options).expect("an index in memory");
        let step = |sequence: u64, kind: RowKind, ordinals: std::ops::Range<u32>| {
            index.apply(&frame(kind, ordinals)).expect("rows are applied");
            index.commit(sequence).expect("a commit");
        };
        (0..3).for_each(|at| step(u64::from(at) + 1, RowKind::Put, at * 40..(at + 1) * 40));
        index.is_resting.store(true, Ordering::Relaxed);
        let large = index.begin_merge(MergeKind::Large).expect("a merge begins").expect("120 documents are large");
        assert!(index.begin_merge(MergeKind::Large).expect("segments").is_none(), "all are being merged");
        assert!(index.begin_merge(MergeKind::Other).expect("segments").is_none());
        step(4, RowKind::Put, 120..130);
        step(5, RowKind::Put, 130..140);
        step(6, RowKind::Delete, 0..5);
        assert!(index.begin_merge(MergeKind::Large).expect("segments").is_none(), "rows come");
        index.is_resting.store(true, Ordering::Relaxed);
        let other = index.begin_merge(MergeKind::Other).expect("a merge begins").expect("two of ten documents");
        index.run_merge(other).expect("the merge ends");
        step(7, RowKind::Delete, 120..121);
        let sizes = || index.writing().segments().iter().map(SegmentMeta::num_docs).collect::<Vec<_>>();
        assert_eq!(sizes(), [35, 40, 40, 19]);
        index.run_merge(large).expect("the merge ends");
        assert_eq!(sizes(), [115, 19]);
        index.verify().expect("all checksums match");
    }
}
