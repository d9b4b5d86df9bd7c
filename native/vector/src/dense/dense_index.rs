//! One dense index: open, apply, commit, checkpoint, close.

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, RwLock, Weak};
use std::thread::JoinHandle;
use std::time::Instant;

use sundew_base::derived_index::DerivedIndex;
use sundew_base::error::EngineError;
use sundew_base::frame::{Frame, Row, RowKind};
use sundew_base::part::dense_set::DenseSet;
use sundew_base::part::{PartBody, PartForm, dense, part_id_of};
use sundew_base::report::{ApplyReport, CommitReport, IndexStats};
use sundew_base::written_checkpoint::WrittenCheckpoint;

use super::builder::{Built, Plan, RowFiles, build, join, plan};
use super::checkpoint::{Checkpoints, Restored};
use super::graph::Scratch;
use super::options::DenseOptions;
use super::rows::flat_rows::PendingRows;
use super::segment::{Segment, SegmentRows, Snapshot};

/// While nothing is written, rows without a graph are scanned up to this share of `tail_bytes`: a search then has them
/// compared in some 20 us.
const IDLE_TAIL_SHARE: usize = 4;

/// Working memory of walks that is kept for the next one.
const SCRATCHES_KEPT: usize = 16;

pub struct DenseIndex {
    options: DenseOptions,
    /// The builder thread keeps the index alive.
    this: Weak<Self>,
    row_files: Option<RowFiles>,
    /// Signalled whenever a graph has been built or given up.
    built: Condvar,
    builders: Mutex<Vec<JoinHandle<()>>>,
    closed: AtomicBool,
    scratches: Mutex<Vec<Scratch>>,
    writing: Mutex<DenseWriter>,
    published: RwLock<Arc<Snapshot>>,
    /// `None` for an index in memory.
    checkpoints: Option<Mutex<Checkpoints>>,
    checkpoint_sequence: AtomicU64,
    /// Of the last checkpoint.
    disk_bytes: AtomicU64,
    skipped_count: AtomicU64,
    uncommitted_rows: AtomicU64,
}

/// The state that the next commit will show.
struct DenseWriter {
    pending: PendingRows,
    segments: Vec<Segment>,
    next_segment_id: u64,
    /// Segments that are being built from; they stay as they are but for their dead rows.
    busy: HashSet<u64>,
    /// Threads that build graphs now; two when rows wait while a large graph is being rebuilt.
    builders: usize,
    /// One of them relinks more rows than it adds.
    is_rewriting: bool,
    /// No row was committed since the writer was released.
    is_idle: bool,
    /// The vectors of the row at hand, and their numbers.
    vectors: Vec<f32>,
    numbers: Vec<u16>,
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
            let (checkpoints, restored) = Checkpoints::open(path, &options)?;
            (Some(checkpoints), restored)
        };
        let snapshot = Snapshot { sequence: restored.sequence, segments: restored.segments };
        let row_files = checkpoints.as_ref().map(Checkpoints::row_files);
        Ok(Arc::new_cyclic(|this| Self {
            writing: Mutex::new(DenseWriter {
                pending: PendingRows::default(),
                segments: snapshot.segments.clone(),
                next_segment_id: restored.next_segment_id,
                busy: HashSet::new(),
                builders: 0,
                is_rewriting: false,
                is_idle: false,
                vectors: Vec::with_capacity(options.dimension as usize),
                numbers: Vec::new(),
            }),
            options,
            this: this.clone(),
            row_files,
            built: Condvar::new(),
            builders: Mutex::new(Vec::new()),
            closed: AtomicBool::new(false),
            scratches: Mutex::new(Vec::new()),
            checkpoint_sequence: AtomicU64::new(snapshot.sequence),
            disk_bytes: AtomicU64::new(checkpoints.as_ref().map_or(0, Checkpoints::bytes)),
            published: RwLock::new(Arc::new(snapshot)),
            checkpoints: checkpoints.map(Mutex::new),
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

    fn writing(&self) -> MutexGuard<'_, DenseWriter> {
        self.writing.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn publish(&self, snapshot: Snapshot) {
        *self.published.write().unwrap_or_else(|poisoned| poisoned.into_inner()) = Arc::new(snapshot);
    }

    pub(super) fn take_scratch(&self) -> Scratch {
        self.scratches.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).pop().unwrap_or_default()
    }

    pub(super) fn give_scratch(&self, scratch: Scratch) {
        let mut scratches = self.scratches.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if scratches.len() < SCRATCHES_KEPT {
            scratches.push(scratch);
        }
    }

    /// Waits until the committed rows that no graph holds are within their bound, so that a caller who writes faster
    /// than graphs are built is slowed down.
    fn wait_for_room<'a>(&self, mut writing: MutexGuard<'a, DenseWriter>) -> MutexGuard<'a, DenseWriter> {
        while writing.builders > 0 && writing.flat_bytes() > self.options.backlog_bytes_max {
            writing = self.built.wait(writing).unwrap_or_else(|poisoned| poisoned.into_inner());
        }
        writing
    }

    /// Waits until nothing is left to build.
    pub fn settle(&self) {
        let mut writing = self.writing();
        while writing.builders > 0 {
            writing = self.built.wait(writing).unwrap_or_else(|poisoned| poisoned.into_inner());
        }
    }

    /// Starts a builder thread when there is something to build that none of those that run will come to in time.
    fn start_builder(&self, writing: &mut DenseWriter) {
        let is_urgent = writing.flat_bytes() > self.options.backlog_bytes_max / 2;
        let may_start = match writing.builders {
            0 => true,
            1 => is_urgent && writing.is_rewriting,
            _ => false,
        };
        let is_open = !self.closed.load(Ordering::Relaxed);
        if !may_start || !is_open || writing.plan(&self.options).is_none() {
            return;
        }
        let Some(this) = self.this.upgrade() else { return };
        let spawned = std::thread::Builder::new().name("dense-builder".to_owned()).spawn(move || this.build_all());
        // Without the thread the rows stay where they are and are scanned; the next commit tries again.
        if let Ok(handle) = spawned {
            writing.builders += 1;
            let mut builders = self.builders.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            builders.retain(|builder| !builder.is_finished());
            builders.push(handle);
        }
    }

    fn build_all(&self) {
        let mut is_kept = false;
        loop {
            let mut writing = self.writing();
            let next = writing.plan(&self.options);
            let is_open = !self.closed.load(Ordering::Relaxed);
            let Some(plan) = next.filter(|_| is_open) else {
                if is_kept || !is_open || !writing.is_idle {
                    return self.end_builder(writing);
                }
                drop(writing);
                self.keep_graphs();
                is_kept = true;
                continue;
            };
            is_kept = false;
            writing.busy.extend(plan.segment_ids());
            writing.next_segment_id += 1;
            let id = writing.next_segment_id;
            let is_rewrite = plan.is_rewrite();
            writing.is_rewriting |= is_rewrite;
            drop(writing);
            let work = || build(&self.options, &plan, id, self.row_files.as_ref(), &self.closed);
            let outcome = catch_unwind(AssertUnwindSafe(work));
            let mut writing = self.writing();
            writing.is_rewriting &= !is_rewrite;
            plan.segment_ids().for_each(|id| {
                writing.busy.remove(&id);
            });
            match outcome {
                Ok(Ok(Some(built))) => self.install(&mut writing, &plan, id, &built),
                // Rows stay where they are and are scanned; the next commit tries again.
                _ => return self.end_builder(writing),
            }
            drop(writing);
            self.built.notify_all();
        }
    }

    /// Writes a checkpoint when a graph would have to be built again after a crash. Failures are those of the disk; the
    /// next checkpoint that somebody asks for meets them too.
    fn keep_graphs(&self) {
        let Some(checkpoints) = &self.checkpoints else { return };
        let lacks_graph =
            checkpoints.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).lacks_graph_of(&self.snapshot());
        if lacks_graph {
            let _ = self.checkpoint();
        }
    }

    fn end_builder(&self, mut writing: MutexGuard<'_, DenseWriter>) {
        writing.builders -= 1;
        drop(writing);
        self.built.notify_all();
    }

    /// Puts the new graph in place of the segments that it was built from: in what searches see and in what the next
    /// commit will show, each with the rows that are dead there.
    fn install(&self, writing: &mut DenseWriter, plan: &Plan, id: u64, built: &Built) {
        let replaced: HashSet<u64> = plan.segment_ids().collect();
        let replace = |segments: &[Segment]| -> Vec<Segment> {
            let dead = Arc::new(built.dead_rows(plan, segments));
            let (gone, kept): (Vec<&Segment>, Vec<&Segment>) =
                segments.iter().partition(|segment| replaced.contains(&segment.id));
            let document_count = gone.iter().map(|segment| segment.document_count).sum();
            let new = Segment { id, rows: SegmentRows::Graph(Arc::clone(&built.rows)), dead, document_count };
            std::iter::once(new).chain(kept.into_iter().cloned()).collect()
        };
        writing.segments = replace(&writing.segments);
        let seen = self.snapshot();
        self.publish(Snapshot { sequence: seen.sequence, segments: replace(&seen.segments) });
    }

    /// The inner error is the reason for which the row is left out.
    fn put(&self, writing: &mut DenseWriter, row: &Row<'_>) -> Result<Result<(), String>, EngineError> {
        if part_id_of(row.body)? != self.options.index_id {
            return Ok(Ok(()));
        }
        let body = PartBody::parse(row.body)?;
        // The old vector leaves the index, whether the new one can be indexed or not.
        writing.kill(row.ordinal);
        let dimension = self.options.dimension as usize;
        let of_other_length = || Ok(Err(format!("the vector does not have {dimension} dimensions")));
        writing.vectors.clear();
        match body.form {
            PartForm::Dense if body.payload.len() == 4 * dimension => {
                writing.vectors.extend(dense::values(body.payload)?);
            }
            PartForm::DenseSet => {
                let set = DenseSet::parse(body.payload)?;
                if set.dimension != dimension {
                    return of_other_length();
                }
                (0..set.count()).for_each(|at| writing.vectors.extend(set.vector(at)));
            }
            _ => return of_other_length(),
        }
        Ok(writing.put_vectors(row, &self.options))
    }

    fn apply_row(&self, writing: &mut DenseWriter, row: &Row<'_>) -> Result<Result<(), String>, EngineError> {
        match row.kind {
            RowKind::Put | RowKind::Transform | RowKind::State => {}
            RowKind::Delete => writing.kill(row.ordinal),
            RowKind::PartPut => return self.put(writing, row),
            RowKind::PartDelete => {
                if part_id_of(row.body)? == self.options.index_id {
                    writing.kill(row.ordinal);
                }
            }
        }
        Ok(Ok(()))
    }
}

impl DenseWriter {
    /// Takes those of `vectors` that can be compared as the document's. Error: why one of them cannot.
    fn put_vectors(&mut self, row: &Row<'_>, options: &DenseOptions) -> Result<(), String> {
        let dimension = options.dimension as usize;
        let mut refused = Ok(());
        self.numbers.clear();
        for at in 0..self.vectors.len() / dimension {
            let vector = &mut self.vectors[at * dimension..][..dimension];
            match options.metric.prepare(vector) {
                Ok(()) => {
                    let to = self.numbers.len();
                    self.vectors.copy_within(at * dimension..(at + 1) * dimension, to * dimension);
                    self.numbers.push(at as u16);
                }
                Err(reason) => refused = Err(reason),
            }
        }
        let taken = self.numbers.len() * dimension;
        self.pending.put(row.ordinal, row.sequence, &self.numbers, &self.vectors[..taken]);
        refused
    }

    fn plan(&self, options: &DenseOptions) -> Option<Plan> {
        let tail_bytes = if self.is_idle { options.tail_bytes / IDLE_TAIL_SHARE } else { options.tail_bytes };
        plan(&self.segments, &self.busy, options.dimension as usize, tail_bytes)
    }

    /// Takes the vectors of the document out of the index, if it has any.
    fn kill(&mut self, ordinal: u32) {
        self.pending.remove(ordinal);
        for segment in &mut self.segments {
            if segment.kill(ordinal) {
                return;
            }
        }
    }

    /// Bytes of the committed rows that no graph holds.
    fn flat_bytes(&self) -> usize {
        let flat = self.segments.iter().filter(|segment| matches!(segment.rows, SegmentRows::Flat(_)));
        flat.map(Segment::memory_bytes).sum()
    }

    /// Makes the pending rows a segment. Neighbouring segments of like size become one, so that there are few of them and
    /// every row is copied a few times only.
    fn add_pending(&mut self, options: &DenseOptions) {
        let busy = &self.busy;
        self.segments.retain(|segment| segment.live_count() > 0 || busy.contains(&segment.id));
        let mut documents = self.pending.document_count();
        if documents == 0 {
            return;
        }
        self.is_idle = false;
        let rows = self.pending.take(options.dimension as usize);
        let mut segment = self.new_segment(SegmentRows::Flat(Arc::new(rows)), documents);
        while let Some(last) = self.segments.pop() {
            let is_like = last.rows.len() <= 2 * segment.rows.len() && last.memory_bytes() < options.tail_bytes;
            let joined = if is_like && !self.busy.contains(&last.id) { join(&last, &segment) } else { None };
            let Some(joined) = joined else {
                self.segments.push(last);
                break;
            };
            documents += last.document_count;
            segment = self.new_segment(SegmentRows::Flat(Arc::new(joined)), documents);
        }
        self.segments.push(segment);
    }

    fn new_segment(&mut self, rows: SegmentRows, document_count: usize) -> Segment {
        self.next_segment_id += 1;
        Segment::new(self.next_segment_id, rows, document_count)
    }
}

impl DerivedIndex for DenseIndex {
    /// A vector that cannot be indexed is left out and named in the report; the document's older ones leave the index
    /// all the same.
    fn apply(&self, frame: &[u8]) -> Result<ApplyReport, EngineError> {
        let frame = Frame::parse(frame)?;
        let mut writing = self.wait_for_room(self.writing());
        let mut report = ApplyReport::default();
        for row in frame.rows() {
            let row = row?;
            report.rows += 1;
            if let Err(reason) = self.apply_row(&mut writing, &row)? {
                report.skip(row.key, reason);
            }
        }
        self.uncommitted_rows.fetch_add(report.rows as u64, Ordering::Relaxed);
        self.skipped_count.fetch_add(report.skipped_count as u64, Ordering::Relaxed);
        Ok(report)
    }

    fn commit(&self, sequence: u64) -> Result<CommitReport, EngineError> {
        let started = Instant::now();
        let mut writing = self.writing();
        writing.add_pending(&self.options);
        let snapshot = Snapshot { sequence, segments: writing.segments.clone() };
        let doc_count = snapshot.document_count() as u64;
        self.publish(snapshot);
        self.uncommitted_rows.store(0, Ordering::Relaxed);
        self.start_builder(&mut writing);
        Ok(CommitReport { sequence, doc_count, took_micros: started.elapsed().as_micros() as u64 })
    }

    fn write_checkpoint(&self) -> Result<WrittenCheckpoint<'_>, EngineError> {
        let started = Instant::now();
        let Some(checkpoints) = &self.checkpoints else { return Ok(WrittenCheckpoint::nothing(0)) };
        let mut checkpoints = checkpoints.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let (snapshot, next_segment_id) = {
            let writing = self.writing();
            (self.snapshot(), writing.next_segment_id)
        };
        let (sequence, skipped_count) = (snapshot.sequence, self.skipped_count.load(Ordering::Relaxed));
        let Some((checkpoint, draft)) = checkpoints.write(&snapshot, next_segment_id, skipped_count)? else {
            return Ok(WrittenCheckpoint::nothing(sequence));
        };
        Ok(WrittenCheckpoint::new(sequence, started, draft, move |_| {
            checkpoints.accept(checkpoint)?;
            self.disk_bytes.store(checkpoints.bytes(), Ordering::Relaxed);
            self.checkpoint_sequence.store(sequence, Ordering::Release);
            Ok(())
        }))
    }

    /// Has all but the last few rows that are scanned taken into a graph, and graphs made durable.
    fn rest(&self) -> Result<(), EngineError> {
        let mut writing = self.writing();
        writing.is_idle = true;
        self.start_builder(&mut writing);
        let is_settled = writing.builders == 0;
        drop(writing);
        if is_settled {
            self.keep_graphs();
        }
        Ok(())
    }

    fn stats(&self) -> IndexStats {
        let snapshot = self.snapshot();
        IndexStats {
            applied_sequence: snapshot.sequence,
            checkpoint_sequence: self.checkpoint_sequence.load(Ordering::Acquire),
            doc_count: snapshot.document_count() as u64,
            vector_count: snapshot.live_count() as u64,
            term_count: 0,
            segment_count: snapshot.segments.len(),
            disk_bytes: self.disk_bytes.load(Ordering::Relaxed),
            memory_bytes: snapshot.segments.iter().map(|segment| segment.memory_bytes() as u64).sum(),
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
        self.closed.store(true, Ordering::Relaxed);
        let builders = std::mem::take(&mut *self.builders.lock().unwrap_or_else(|poisoned| poisoned.into_inner()));
        for builder in builders {
            builder.join().map_err(|_| EngineError::internal("the builder of a dense index panicked"))?;
        }
        let snapshot = self.snapshot();
        let mut writing = self.writing();
        writing.pending = PendingRows::default();
        writing.segments = snapshot.segments.clone();
        self.uncommitted_rows.store(0, Ordering::Relaxed);
        Ok(())
    }
}
