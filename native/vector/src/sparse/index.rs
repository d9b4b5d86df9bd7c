//! One sparse index: open, apply, commit, checkpoint, search, close.

use std::collections::BTreeMap;
use std::mem;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

use sundew_base::derived_index::DerivedIndex;
use sundew_base::error::EngineError;
use sundew_base::failpoint;
use sundew_base::frame::{Frame, Row, RowKind};
use sundew_base::part::{PartBody, PartForm, part_id_of, sparse, sparse_set};
use sundew_base::report::{ApplyReport, CommitReport, IndexStats};
use sundew_base::segment_files::SegmentFiles;
use sundew_base::written_checkpoint::WrittenCheckpoint;

use super::durable_segments;
use super::options::SparseOptions;
use super::search::search_snapshot;
use super::segment_build::PendingVector;
use super::segment_list::SegmentList;
use super::snapshot::Snapshot;
use crate::search::{SearchBounds, VectorHits};

/// A sparse index. It finds documents that share a dimension with the query, by the dot product; one with several vectors
/// by that with the greatest.
pub struct SparseIndex {
    options: SparseOptions,
    segments: Arc<SegmentList>,
    writing: Mutex<SparseWriter>,
    /// None in memory.
    durable: Option<Mutex<SegmentFiles>>,
    checkpoint_sequence: AtomicU64,
    uncommitted_rows: AtomicU64,
}

#[derive(Default)]
struct SparseWriter {
    /// The vectors of each document with the next commit; none for a deleted one.
    pending: BTreeMap<u32, Vec<PendingVector>>,
    skipped_count: u64,
}

impl SparseIndex {
    /// Opens the index at its last checkpoint; it is empty when the directory is missing or holds no checkpoint.
    ///
    /// Errors: `index_damaged` (delete the directory and build again), `index_incompatible` (made by other options or
    /// an older format; the same remedy).
    pub fn open(path: &Path, options: SparseOptions) -> Result<Arc<Self>, EngineError> {
        let (durable, snapshot, next_id) = if options.mem_only {
            (None, Snapshot::default(), 0)
        } else {
            let files = SegmentFiles::open(path, options.fingerprint())?;
            let (snapshot, next_id) = durable_segments::open(&files)?;
            (Some(Mutex::new(files)), snapshot, next_id)
        };
        let (sequence, skipped_count) = (snapshot.sequence, snapshot.skipped_count);
        let segments = SegmentList::new(snapshot, next_id, options.commit_merge_postings_max);
        Ok(Arc::new(Self {
            options,
            segments: Arc::new(segments),
            writing: Mutex::new(SparseWriter { pending: BTreeMap::new(), skipped_count }),
            durable,
            checkpoint_sequence: AtomicU64::new(sequence),
            uncommitted_rows: AtomicU64::new(0),
        }))
    }

    pub fn options(&self) -> &SparseOptions {
        &self.options
    }

    /// Vectors of the newest commit.
    pub fn row_count(&self) -> u64 {
        self.segments.current().live_vectors()
    }

    /// The documents with the greatest dot products among those that share a dimension with `query`: (dimension, weight),
    /// dimensions strictly ascending, weights finite. The answer is exact, unless `bounds.is_due` ended it early.
    pub fn search(&self, query: &[(u32, f32)], bounds: &SearchBounds) -> Result<VectorHits, EngineError> {
        if !is_vector(query) {
            return Err(EngineError::internal(
                "the dimensions of a sparse query must ascend, and its weights be finite",
            ));
        }
        if bounds.limit == 0 {
            return Ok(VectorHits::default());
        }
        Ok(search_snapshot(&self.segments.current(), query, bounds))
    }

    fn writing(&self) -> MutexGuard<'_, SparseWriter> {
        self.writing.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// None in memory.
    fn durable(&self) -> Option<MutexGuard<'_, SegmentFiles>> {
        self.durable.as_ref().map(|durable| durable.lock().unwrap_or_else(|poisoned| poisoned.into_inner()))
    }

    /// The vectors that the row gives its document, if the index follows it; the inner error is why its vectors are left out.
    fn read_row(&self, row: &Row) -> Option<Result<Vec<PendingVector>, String>> {
        match row.kind {
            RowKind::Put | RowKind::Transform | RowKind::State => None,
            RowKind::Delete => Some(Ok(Vec::new())),
            RowKind::PartPut | RowKind::PartDelete => {
                let body = match part_id_of(row.body) {
                    Ok(id) if id != self.options.index_id => return None,
                    Ok(_) => PartBody::parse(row.body),
                    Err(error) => Err(error),
                };
                let body = match body {
                    Ok(body) => body,
                    Err(error) => return Some(Err(error.message)),
                };
                match body.form {
                    _ if row.kind == RowKind::PartDelete => Some(Ok(Vec::new())),
                    PartForm::Sparse => Some(self.read_vectors(row.sequence, &[body.payload])),
                    PartForm::SparseSet => {
                        let vectors = sparse_set::vectors(body.payload).map_err(|error| error.message);
                        Some(vectors.and_then(|vectors| self.read_vectors(row.sequence, &vectors)))
                    }
                    _ => Some(Err("a sparse index takes sparse vectors only".to_owned())),
                }
            }
        }
    }

    fn read_vectors(&self, sequence: u64, payloads: &[&[u8]]) -> Result<Vec<PendingVector>, String> {
        (0u16..).zip(payloads).map(|(number, payload)| self.read_vector(sequence, number, payload)).collect()
    }

    fn read_vector(&self, sequence: u64, number: u16, payload: &[u8]) -> Result<PendingVector, String> {
        let entries: Vec<(u32, f32)> = sparse::entries(payload).map_err(|error| error.message)?.collect();
        if !is_vector(&entries) {
            return Err("the dimensions of a sparse vector must ascend, and its weights be finite".to_owned());
        }
        let counts = |weight: f32| weight != 0.0 && weight.abs() >= self.options.min_weight;
        let entries = entries.into_iter().filter(|&(_, weight)| counts(weight)).collect();
        Ok(PendingVector { sequence, number, entries })
    }
}

impl DerivedIndex for SparseIndex {
    /// A vector that cannot be indexed is left out and named in the report; the older vectors leave the index all the same.
    fn apply(&self, frame: &[u8]) -> Result<ApplyReport, EngineError> {
        let frame = Frame::parse(frame)?;
        let mut writing = self.writing();
        let mut report = ApplyReport::default();
        for row in frame.rows() {
            let row = row?;
            report.rows += 1;
            let Some(change) = self.read_row(&row) else { continue };
            let vectors = change.unwrap_or_else(|reason| {
                report.skip(row.key, reason);
                Vec::new()
            });
            writing.pending.insert(row.ordinal, vectors);
        }
        writing.skipped_count += report.skipped_count as u64;
        self.uncommitted_rows.fetch_add(report.rows as u64, Ordering::Relaxed);
        Ok(report)
    }

    fn commit(&self, sequence: u64) -> Result<CommitReport, EngineError> {
        let started = Instant::now();
        let mut writing = self.writing();
        let pending = mem::take(&mut writing.pending);
        self.segments.commit(sequence, writing.skipped_count, pending)?;
        self.uncommitted_rows.store(0, Ordering::Relaxed);
        Ok(CommitReport {
            sequence,
            doc_count: self.segments.current().live_documents(),
            took_micros: started.elapsed().as_micros() as u64,
        })
    }

    fn left_out(&self) -> Vec<u32> {
        self.durable().map_or_else(Vec::new, |durable| durable.left_out().to_vec())
    }

    fn leave_out(&self, ordinals: Vec<u32>) {
        if let Some(mut durable) = self.durable() {
            durable.leave_out(ordinals);
        }
    }

    fn write_checkpoint(&self) -> Result<WrittenCheckpoint<'_>, EngineError> {
        let started = Instant::now();
        let Some(mut durable) = self.durable() else { return Ok(WrittenCheckpoint::nothing(0)) };
        failpoint::hit("vector.checkpoint.before-files");
        let written = durable_segments::write(&durable, &self.segments);
        self.segments.checkpoint_tried(written.is_ok());
        let (checkpoint, draft) = written?;
        let sequence = checkpoint.sequence;
        let Some(draft) = draft else { return Ok(WrittenCheckpoint::nothing(sequence)) };
        Ok(WrittenCheckpoint::new(sequence, started, draft, move |is_last| {
            durable.accept(checkpoint);
            self.checkpoint_sequence.store(sequence, Ordering::Release);
            if is_last { Ok(()) } else { durable_segments::read_from_disk(&durable, &self.segments) }
        }))
    }

    fn rest(&self) -> Result<(), EngineError> {
        self.segments.wait_for_merge();
        Ok(())
    }

    fn stats(&self) -> IndexStats {
        let snapshot = self.segments.current();
        let bytes = |is_in_memory: bool| -> u64 {
            let segments = snapshot.segments.iter().map(|live| &live.segment);
            segments.filter(|one| one.is_in_memory() == is_in_memory).map(|one| one.bytes().len() as u64).sum()
        };
        let uncommitted_rows = self.uncommitted_rows.load(Ordering::Relaxed);
        IndexStats {
            applied_sequence: snapshot.sequence,
            checkpoint_sequence: self.checkpoint_sequence.load(Ordering::Acquire),
            doc_count: snapshot.live_documents(),
            vector_count: snapshot.live_vectors(),
            term_count: snapshot.term_count(),
            segment_count: snapshot.segments.len(),
            disk_bytes: bytes(false),
            memory_bytes: bytes(true),
            skipped_count: snapshot.skipped_count,
            uncommitted_rows,
            writer_is_open: uncommitted_rows > 0,
        }
    }

    fn verify(&self) -> Result<(), EngineError> {
        self.durable().map_or(Ok(()), |durable| durable.verify())
    }

    fn close(&self) -> Result<(), EngineError> {
        self.writing().pending.clear();
        self.uncommitted_rows.store(0, Ordering::Relaxed);
        self.segments.stop_merging();
        Ok(())
    }
}

/// Strictly ascending dimensions, finite weights.
fn is_vector(entries: &[(u32, f32)]) -> bool {
    entries.is_sorted_by(|one, next| one.0 < next.0) && entries.iter().all(|(_, weight)| weight.is_finite())
}
