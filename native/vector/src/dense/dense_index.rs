//! One dense index: open, apply, commit, checkpoint, close.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, RwLock};
use std::time::Instant;

use sundew_base::derived_index::DerivedIndex;
use sundew_base::error::EngineError;
use sundew_base::frame::{Frame, Row, RowKind};
use sundew_base::report::{ApplyReport, CheckpointReport, CommitReport, IndexStats, SkippedRow};
use sundew_base::vector_body::{VectorBody, VectorForm};

use super::checkpoint::{Checkpoints, Restored};
use super::flat_rows::{FlatRows, PendingRows};
use super::options::DenseOptions;
use super::part::{Part, PartRows, Snapshot};

/// Skipped rows that a report names.
const SKIPPED_NAMED_MAX: usize = 100;

pub struct DenseIndex {
    options: DenseOptions,
    writing: Mutex<Writing>,
    published: RwLock<Arc<Snapshot>>,
    /// `None` for an index in memory.
    checkpoints: Option<Mutex<Checkpoints>>,
    checkpoint_sequence: AtomicU64,
    skipped_count: AtomicU64,
    uncommitted_rows: AtomicU64,
}

/// What the next commit will show.
struct Writing {
    pending: PendingRows,
    parts: Vec<Part>,
    next_part_id: u64,
    /// The vector of the row at hand.
    vector: Vec<f32>,
}

impl DenseIndex {
    /// Opens the index at its last checkpoint; creates it when the directory is missing or holds no checkpoint.
    ///
    /// Errors: `index_damaged` (delete the directory and build again), `index_incompatible` (made by other options or
    /// an older format; the same remedy).
    pub fn open(path: &Path, options: DenseOptions) -> Result<Arc<Self>, EngineError> {
        let (checkpoints, restored) = if options.mem_only {
            (None, Restored::default())
        } else {
            let (checkpoints, restored) = Checkpoints::open(&PathBuf::from(path), &options)?;
            (Some(Mutex::new(checkpoints)), restored)
        };
        let snapshot = Snapshot { sequence: restored.sequence, parts: restored.parts };
        Ok(Arc::new(Self {
            writing: Mutex::new(Writing {
                pending: PendingRows::default(),
                parts: snapshot.parts.clone(),
                next_part_id: restored.next_part_id,
                vector: vec![0.0; options.dimension as usize],
            }),
            options,
            checkpoint_sequence: AtomicU64::new(snapshot.sequence),
            published: RwLock::new(Arc::new(snapshot)),
            checkpoints,
            skipped_count: AtomicU64::new(restored.skipped_count),
            uncommitted_rows: AtomicU64::new(0),
        }))
    }

    pub fn options(&self) -> &DenseOptions {
        &self.options
    }

    /// The newest commit, as it stays for the caller.
    pub(super) fn snapshot(&self) -> Arc<Snapshot> {
        Arc::clone(&self.published.read().unwrap_or_else(|poisoned| poisoned.into_inner()))
    }

    fn writing(&self) -> MutexGuard<'_, Writing> {
        self.writing.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// The inner error is the reason for which the row is left out.
    fn put(&self, writing: &mut Writing, row: &Row<'_>) -> Result<Result<(), String>, EngineError> {
        let body = VectorBody::parse(row.body)?;
        if body.index_id != self.options.index_id {
            return Ok(Ok(()));
        }
        // Whatever the new vector is, the old one is no longer the document's.
        writing.kill(row.ordinal);
        let dimension = self.options.dimension as usize;
        if body.form != VectorForm::Dense || body.count() != dimension {
            return Ok(Err(format!("the vector does not have {dimension} dimensions")));
        }
        let mut vector = std::mem::take(&mut writing.vector);
        vector.clear();
        vector.extend(body.dense());
        let prepared = self.options.metric.prepare(&mut vector);
        if prepared.is_ok() {
            writing.pending.put(row.ordinal, row.sequence, &vector);
        }
        writing.vector = vector;
        Ok(prepared)
    }

    fn apply_row(&self, writing: &mut Writing, row: &Row<'_>) -> Result<Result<(), String>, EngineError> {
        match row.kind {
            RowKind::Put | RowKind::Transform => {}
            RowKind::Delete => writing.kill(row.ordinal),
            RowKind::VectorPut => return self.put(writing, row),
            RowKind::VectorDelete => {
                if VectorBody::parse(row.body)?.index_id == self.options.index_id {
                    writing.kill(row.ordinal);
                }
            }
        }
        Ok(Ok(()))
    }
}

impl Writing {
    /// Takes the vector of the ordinal out of the index, if there is one.
    fn kill(&mut self, ordinal: u32) {
        self.pending.remove(ordinal);
        for part in &mut self.parts {
            if part.kill(ordinal) {
                return;
            }
        }
    }

    /// Makes the pending rows a part. Neighbouring parts of like size become one, so that there are few of them and
    /// every row is copied a few times only.
    fn add_pending(&mut self, dimension: usize) {
        self.parts.retain(|part| part.live_count() > 0);
        if self.pending.len() == 0 {
            return;
        }
        let rows = self.pending.take(dimension);
        let mut part = self.new_part(PartRows::Flat(Arc::new(rows)));
        while let Some(last) = self.parts.pop() {
            let (PartRows::Flat(older), PartRows::Flat(newer)) = (&last.rows, &part.rows);
            if older.len() > 2 * newer.len() {
                self.parts.push(last);
                break;
            }
            let merged = FlatRows::merged((older, &last.dead), (newer, &part.dead));
            part = self.new_part(PartRows::Flat(Arc::new(merged)));
        }
        self.parts.push(part);
    }

    fn new_part(&mut self, rows: PartRows) -> Part {
        self.next_part_id += 1;
        Part::new(self.next_part_id, rows)
    }
}

impl DerivedIndex for DenseIndex {
    /// A vector that cannot be indexed is left out and named in the report; the document's older one leaves the index
    /// all the same.
    fn apply(&self, frame: &[u8]) -> Result<ApplyReport, EngineError> {
        let frame = Frame::parse(frame)?;
        let mut writing = self.writing();
        let mut report = ApplyReport::default();
        for row in frame.rows() {
            let row = row?;
            report.rows += 1;
            if let Err(reason) = self.apply_row(&mut writing, &row)? {
                report.skipped_count += 1;
                if report.skipped.len() < SKIPPED_NAMED_MAX {
                    report.skipped.push(SkippedRow { key: row.key.to_owned(), reason });
                }
            }
        }
        self.uncommitted_rows.fetch_add(report.rows as u64, Ordering::Relaxed);
        self.skipped_count.fetch_add(report.skipped_count as u64, Ordering::Relaxed);
        Ok(report)
    }

    fn commit(&self, sequence: u64) -> Result<CommitReport, EngineError> {
        let started = Instant::now();
        let mut writing = self.writing();
        writing.add_pending(self.options.dimension as usize);
        let snapshot = Snapshot { sequence, parts: writing.parts.clone() };
        let doc_count = snapshot.live_count() as u64;
        *self.published.write().unwrap_or_else(|poisoned| poisoned.into_inner()) = Arc::new(snapshot);
        self.uncommitted_rows.store(0, Ordering::Relaxed);
        Ok(CommitReport { sequence, doc_count, took_micros: started.elapsed().as_micros() as u64 })
    }

    fn checkpoint(&self) -> Result<CheckpointReport, EngineError> {
        let started = Instant::now();
        let Some(checkpoints) = &self.checkpoints else { return Ok(CheckpointReport::default()) };
        let mut checkpoints = checkpoints.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let (snapshot, next_part_id) = {
            let writing = self.writing();
            (self.snapshot(), writing.next_part_id)
        };
        let skipped_count = self.skipped_count.load(Ordering::Relaxed);
        let (files_written, bytes_written) = checkpoints.write(&snapshot, next_part_id, skipped_count)?;
        self.checkpoint_sequence.store(snapshot.sequence, Ordering::Release);
        let took_micros = started.elapsed().as_micros() as u64;
        Ok(CheckpointReport { sequence: snapshot.sequence, files_written, bytes_written, took_micros })
    }

    fn release_writer(&self) -> Result<(), EngineError> {
        Ok(())
    }

    fn stats(&self) -> IndexStats {
        let snapshot = self.snapshot();
        let disk_bytes = match &self.checkpoints {
            Some(checkpoints) => checkpoints.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).bytes(),
            None => 0,
        };
        IndexStats {
            applied_sequence: snapshot.sequence,
            checkpoint_sequence: self.checkpoint_sequence.load(Ordering::Acquire),
            doc_count: snapshot.live_count() as u64,
            term_count: 0,
            segment_count: snapshot.parts.len(),
            disk_bytes,
            memory_bytes: snapshot.parts.iter().map(|part| part.memory_bytes() as u64).sum(),
            skipped_count: self.skipped_count.load(Ordering::Relaxed),
            uncommitted_rows: self.uncommitted_rows.load(Ordering::Relaxed),
            writer_is_open: self.uncommitted_rows.load(Ordering::Relaxed) > 0,
        }
    }

    fn verify(&self) -> Result<(), EngineError> {
        match &self.checkpoints {
            Some(checkpoints) => checkpoints.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).verify(),
            None => Ok(()),
        }
    }

    fn close(&self) -> Result<(), EngineError> {
        let snapshot = self.snapshot();
        let mut writing = self.writing();
        writing.pending = PendingRows::default();
        writing.parts = snapshot.parts.clone();
        self.uncommitted_rows.store(0, Ordering::Relaxed);
        Ok(())
    }
}
