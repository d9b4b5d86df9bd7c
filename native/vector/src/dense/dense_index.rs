//! One dense index: open, apply, commit, checkpoint, close.

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, RwLock, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use sundew_base::derived_index::DerivedIndex;
use sundew_base::error::EngineError;
use sundew_base::frame::Frame;
use sundew_base::report::{ApplyReport, CommitReport, IndexStats};
use sundew_base::written_checkpoint::WrittenCheckpoint;

use super::builder::{Built, Plan, build};
use super::checkpoint::{Checkpoints, Restored};
use super::dense_writer::DenseWriter;
use super::graph::Scratch;
use super::options::DenseOptions;
use super::rows::flat_rows::PendingRows;
use super::segment::{Segment, SegmentRows, Snapshot};
use super::segment_files::SegmentFiles;

/// Working memory of walks that is kept for the next one.
const SCRATCHES_KEPT: usize = 16;

/// A wait for graphs looks this often whether the index is about to be closed, which is told without the lock of the wait.
const CLOSING_LOOK: Duration = Duration::from_millis(50);

pub struct DenseIndex {
    options: DenseOptions,
    /// The builder thread keeps the index alive.
    this: Weak<Self>,
    /// `None` for an index in memory.
    files: Option<SegmentFiles>,
    /// Signalled whenever a graph has been built or given up.
    built: Condvar,
    builders: Mutex<Vec<JoinHandle<()>>>,
    /// No graph is begun any more, and those under way are called off.
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
        let files = checkpoints.as_ref().map(Checkpoints::segment_files);
        Ok(Arc::new_cyclic(|this| Self {
            writing: Mutex::new(DenseWriter::new(
                snapshot.segments.clone(),
                restored.next_segment_id,
                options.dimension as usize,
            )),
            options,
            this: this.clone(),
            files,
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

    /// `None` for an index in memory.
    pub(super) fn files(&self) -> Option<&SegmentFiles> {
        self.files.as_ref()
    }

    /// Set once nothing is to be built any more.
    pub(super) fn closing(&self) -> &AtomicBool {
        &self.closed
    }

    /// The newest commit, as it stays for the caller.
    pub(super) fn snapshot(&self) -> Arc<Snapshot> {
        Arc::clone(&self.published.read().unwrap_or_else(|poisoned| poisoned.into_inner()))
    }

    /// `None` for an index in memory.
    pub(super) fn checkpoints(&self) -> Option<MutexGuard<'_, Checkpoints>> {
        self.checkpoints.as_ref().map(|checkpoints| checkpoints.lock().unwrap_or_else(|poisoned| poisoned.into_inner()))
    }

    pub(super) fn writing(&self) -> MutexGuard<'_, DenseWriter> {
        self.writing.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    pub(super) fn publish(&self, snapshot: Snapshot) {
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
    /// than graphs are built is slowed down; not while the index is about to be closed.
    pub(super) fn wait_for_room<'a>(&self, mut writing: MutexGuard<'a, DenseWriter>) -> MutexGuard<'a, DenseWriter> {
        while writing.builders > 0 && writing.flat_bytes() > self.options.backlog_bytes_max && self.is_open() {
            let waited = self.built.wait_timeout(writing, CLOSING_LOOK);
            writing = waited.unwrap_or_else(|poisoned| poisoned.into_inner()).0;
        }
        writing
    }

    /// Waits until a graph has been built or given up.
    pub(super) fn wait_for_builder<'a>(&self, writing: MutexGuard<'a, DenseWriter>) -> MutexGuard<'a, DenseWriter> {
        self.built.wait(writing).unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    pub(super) fn is_open(&self) -> bool {
        !self.closed.load(Ordering::Relaxed)
    }

    /// Waits until nothing is left to build.
    pub fn settle(&self) {
        let mut writing = self.writing();
        while writing.builders > 0 {
            writing = self.wait_for_builder(writing);
        }
    }

    /// Starts a builder thread when there is something to build that none of those that run will come to in time.
    pub(super) fn start_builder(&self, writing: &mut DenseWriter) {
        let is_urgent = writing.flat_bytes() > self.options.backlog_bytes_max / 2;
        let may_start = match writing.builders {
            0 => true,
            1 => is_urgent && writing.is_rewriting,
            _ => false,
        };
        if !may_start || !self.is_open() || writing.plan(&self.options).is_none() {
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
            let is_open = self.is_open();
            let Some(mut plan) = next.filter(|_| is_open) else {
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
            let work = || {
                self.spill_replaced(&mut plan);
                build(&self.options, &plan, id, self.files.as_ref(), &self.closed)
            };
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
    pub(super) fn keep_graphs(&self) {
        if self.checkpoints().is_some_and(|checkpoints| checkpoints.lacks_graph_of(&self.snapshot())) {
            let _ = self.checkpoint();
        }
    }

    /// Wakes those that wait for a graph.
    pub(super) fn tell_built(&self) {
        self.built.notify_all();
    }

    fn end_builder(&self, mut writing: MutexGuard<'_, DenseWriter>) {
        writing.builders -= 1;
        drop(writing);
        self.tell_built();
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
            if let Err(reason) = writing.apply(&row, &self.options)? {
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
        writing.add_pending(&self.options, self.files.as_ref());
        let snapshot = Snapshot { sequence, segments: writing.segments.clone() };
        let doc_count = snapshot.document_count() as u64;
        self.publish(snapshot);
        self.uncommitted_rows.store(0, Ordering::Relaxed);
        self.start_builder(&mut writing);
        Ok(CommitReport { sequence, doc_count, took_micros: started.elapsed().as_micros() as u64 })
    }

    fn left_out(&self) -> Vec<u32> {
        self.checkpoints().map_or_else(Vec::new, |checkpoints| checkpoints.left_out().to_vec())
    }

    fn leave_out(&self, ordinals: Vec<u32>) {
        if let Some(mut checkpoints) = self.checkpoints() {
            checkpoints.leave_out(ordinals);
        }
    }

    fn write_checkpoint(&self) -> Result<WrittenCheckpoint<'_>, EngineError> {
        let started = Instant::now();
        let Some(mut checkpoints) = self.checkpoints() else { return Ok(WrittenCheckpoint::nothing(0)) };
        let (snapshot, next_segment_id) = {
            let writing = self.writing();
            (self.snapshot(), writing.next_segment_id)
        };
        let (sequence, skipped_count) = (snapshot.sequence, self.skipped_count.load(Ordering::Relaxed));
        let Some((checkpoint, draft)) = checkpoints.write(&snapshot, next_segment_id, skipped_count)? else {
            return Ok(WrittenCheckpoint::nothing(sequence));
        };
        Ok(WrittenCheckpoint::new(sequence, started, draft, move |_| {
            checkpoints.accept(checkpoint);
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
        self.checkpoints().map_or(Ok(()), |checkpoints| checkpoints.verify())
    }

    fn close_soon(&self) {
        self.closed.store(true, Ordering::Relaxed);
    }

    fn close(&self) -> Result<(), EngineError> {
        self.close_soon();
        let builders = std::mem::take(&mut *self.builders.lock().unwrap_or_else(|poisoned| poisoned.into_inner()));
        let ended: Vec<_> = builders.into_iter().map(JoinHandle::join).collect();
        let has_panicked = ended.iter().any(Result::is_err);
        if !has_panicked {
            // Others build on threads of their own.
            self.settle();
        }
        if let Some(files) = &self.files {
            files.close();
        }
        if has_panicked {
            return Err(EngineError::internal("the builder of a dense index panicked"));
        }
        let snapshot = self.snapshot();
        let mut writing = self.writing();
        writing.pending = PendingRows::default();
        writing.segments = snapshot.segments.clone();
        self.uncommitted_rows.store(0, Ordering::Relaxed);
        Ok(())
    }
}
