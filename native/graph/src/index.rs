//! One graph index of one range: open, apply, commit, checkpoint, close.

use std::mem;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Instant;

use sundew_base::derived_index::DerivedIndex;
use sundew_base::error::EngineError;
use sundew_base::failpoint;
use sundew_base::frame::{Frame, Row, RowKind};
use sundew_base::part::{PartBody, PartForm, part_id_of};
use sundew_base::report::{ApplyReport, CommitReport, IndexStats};
use sundew_base::segment_files::SegmentFiles;
use sundew_base::written_checkpoint::WrittenCheckpoint;

use crate::durable_segments;
use crate::options::GraphOptions;
use crate::pending::PendingRows;
use crate::segment_merge::merged;
use crate::snapshot::{LiveSegment, Snapshot};

/// Segments of like size that are merged into one.
const MERGED_TOGETHER: usize = 4;
/// Edges that a commit merges; what is larger waits until the index rests.
const COMMIT_MERGE_EDGES_MAX: usize = 1_000_000;
/// A commit that leaves more segments than this merges whatever their size.
const SEGMENTS_MAX: usize = 24;
/// An index at rest is merged into one segment when this many times the edges of the others are more than the largest has:
/// a search is fastest over one segment, and keys are then kept once.
const REST_RATIO: usize = 8;

pub struct GraphIndex {
    options: GraphOptions,
    writing: Mutex<GraphWriter>,
    published: RwLock<Arc<Snapshot>>,
    /// None in memory.
    durable: Option<Mutex<SegmentFiles>>,
    checkpoint_sequence: AtomicU64,
    uncommitted_rows: AtomicU64,
    /// The last checkpoint could not be written: segments on disk are not merged, since what they become waits in memory.
    is_unwritten: AtomicBool,
}

struct GraphWriter {
    pending: PendingRows,
    skipped_count: u64,
    last_id: u64,
}

impl GraphIndex {
    /// Opens the index at its last checkpoint; it is empty when the directory is missing or holds no checkpoint.
    ///
    /// Errors: `index_damaged` (delete the directory and build again), `index_incompatible` (made by other options or
    /// an older format; the same remedy).
    pub fn open(path: &Path, options: GraphOptions) -> Result<Arc<Self>, EngineError> {
        let (durable, snapshot, last_id) = if options.mem_only {
            (None, Snapshot::default(), 0)
        } else {
            let files = SegmentFiles::open(path, options.fingerprint())?;
            let (snapshot, last_id) = durable_segments::open(&files)?;
            (Some(Mutex::new(files)), snapshot, last_id)
        };
        let (sequence, skipped_count) = (snapshot.sequence, snapshot.skipped_count);
        Ok(Arc::new(Self {
            options,
            writing: Mutex::new(GraphWriter { pending: PendingRows::default(), skipped_count, last_id }),
            published: RwLock::new(Arc::new(snapshot)),
            durable,
            checkpoint_sequence: AtomicU64::new(sequence),
            uncommitted_rows: AtomicU64::new(0),
            is_unwritten: AtomicBool::new(false),
        }))
    }

    /// The newest commit.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        Arc::clone(&self.published.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn publish(&self, snapshot: Snapshot) {
        *self.published.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(snapshot);
    }

    fn writing(&self) -> MutexGuard<'_, GraphWriter> {
        self.writing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// None in memory.
    fn durable(&self) -> Option<MutexGuard<'_, SegmentFiles>> {
        self.durable.as_ref().map(|durable| durable.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Takes in what the row makes of its document, if it is one of ours. Error: why its edges are left out.
    fn take(&self, row: &Row, pending: &mut PendingRows) -> Result<(), EngineError> {
        match row.kind {
            RowKind::Put | RowKind::Transform | RowKind::State => return Ok(()),
            RowKind::Delete => {}
            RowKind::PartPut | RowKind::PartDelete => {
                if part_id_of(row.body)? != self.options.index_id {
                    return Ok(());
                }
                let body = PartBody::parse(row.body)?;
                if row.kind == RowKind::PartPut {
                    if body.form != PartForm::Edges {
                        return Err(EngineError::internal("a graph index takes edges only"));
                    }
                    return pending.put(row.ordinal, row.key, row.sequence, body.payload);
                }
            }
        }
        pending.remove(row.ordinal);
        Ok(())
    }

    /// Has those segments merged that may be.
    fn merge(
        &self,
        segments: &mut Vec<LiveSegment>,
        merge: impl FnOnce(&mut Vec<LiveSegment>) -> Result<(), EngineError>,
    ) -> Result<(), EngineError> {
        let is_unwritten = self.is_unwritten.load(Ordering::Relaxed);
        let is_kept = |live: &LiveSegment| is_unwritten && !live.segment.is_in_memory();
        let (kept, mut merged) = mem::take(segments).into_iter().partition(is_kept);
        *segments = kept;
        merge(&mut merged)?;
        segments.append(&mut merged);
        Ok(())
    }

    fn merge_after_commit(writing: &mut GraphWriter, segments: &mut Vec<LiveSegment>) -> Result<(), EngineError> {
        loop {
            drop_empty_and_sort(segments);
            let edges_max = if segments.len() > SEGMENTS_MAX { usize::MAX } else { COMMIT_MERGE_EDGES_MAX };
            let count = mergeable(segments);
            let edges: usize = segments[..count].iter().map(|live| live.live_edges).sum();
            if count == 0 || edges > edges_max {
                return Ok(());
            }
            writing.merge_smallest(segments, count)?;
        }
    }

    fn merge_at_rest(writing: &mut GraphWriter, segments: &mut Vec<LiveSegment>) -> Result<(), EngineError> {
        drop_empty_and_sort(segments);
        let Some((largest, others)) = segments.split_last() else { return Ok(()) };
        let rest: usize = others.iter().map(size_of_segment).sum();
        let is_hollow = largest.dead.len() * REST_RATIO > largest.segment.counts().rows;
        let count =
            if is_hollow || rest * REST_RATIO > size_of_segment(largest) { segments.len() } else { others.len() };
        if count > 1 || is_hollow { writing.merge_smallest(segments, count) } else { Ok(()) }
    }
}

impl GraphWriter {
    fn merge_smallest(&mut self, segments: &mut Vec<LiveSegment>, count: usize) -> Result<(), EngineError> {
        self.last_id += 1;
        let one = merged(self.last_id, &segments[..count])?;
        segments.splice(..count, [LiveSegment::new(one, Default::default())]);
        Ok(())
    }
}

fn size_of_segment(live: &LiveSegment) -> usize {
    live.live_edges + live.live_rows()
}

fn drop_empty_and_sort(segments: &mut Vec<LiveSegment>) {
    segments.retain(|live| live.live_rows() > 0);
    segments.sort_by_key(size_of_segment);
}

/// How many of the smallest segments are to be merged: those of like size, once there are enough of them, or the smallest
/// where most of it has left.
fn mergeable(segments: &[LiveSegment]) -> usize {
    let mut sum = 0;
    let alike = segments.iter().take_while(|live| {
        let is_alike = sum == 0 || size_of_segment(live) <= sum * 2;
        sum += size_of_segment(live);
        is_alike
    });
    let count = alike.count();
    if count >= MERGED_TOGETHER {
        return count;
    }
    let is_hollow = |live: &LiveSegment| live.dead.len() > live.live_rows();
    segments.iter().rposition(is_hollow).map_or(0, |last| last + 1)
}

impl DerivedIndex for GraphIndex {
    /// Edges that cannot be read are left out and named in the report; the older ones leave the index all the same.
    fn apply(&self, frame: &[u8]) -> Result<ApplyReport, EngineError> {
        let frame = Frame::parse(frame)?;
        let mut writing = self.writing();
        let mut report = ApplyReport::default();
        for row in frame.rows() {
            let row = row?;
            report.rows += 1;
            if let Err(error) = self.take(&row, &mut writing.pending) {
                report.skip(row.key, error.message);
                writing.pending.remove(row.ordinal);
            }
        }
        writing.skipped_count += report.skipped_count as u64;
        self.uncommitted_rows.fetch_add(report.rows as u64, Ordering::Relaxed);
        Ok(report)
    }

    fn commit(&self, sequence: u64) -> Result<CommitReport, EngineError> {
        let started = Instant::now();
        let mut writing = self.writing();
        let pending = mem::take(&mut writing.pending);
        let mut segments = self.snapshot().segments.clone();
        if !pending.is_empty() {
            segments.iter_mut().for_each(|live| live.kill(pending.ordinals()));
            writing.last_id += 1;
            let added = pending.build(writing.last_id)?;
            segments.extend(added.map(|segment| LiveSegment::new(segment, Default::default())));
            self.merge(&mut segments, |some| Self::merge_after_commit(&mut writing, some))?;
        }
        let snapshot = Snapshot { sequence, segments, skipped_count: writing.skipped_count };
        let doc_count = snapshot.live_rows();
        self.publish(snapshot);
        self.uncommitted_rows.store(0, Ordering::Relaxed);
        Ok(CommitReport { sequence, doc_count, took_micros: started.elapsed().as_micros() as u64 })
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
        failpoint::hit("graph.checkpoint.before-files");
        let last_id = self.writing().last_id;
        let written = durable_segments::write(&durable, &self.snapshot(), last_id);
        self.is_unwritten.store(written.is_err(), Ordering::Relaxed);
        let (checkpoint, draft) = written?;
        let sequence = checkpoint.sequence;
        let Some(draft) = draft else { return Ok(WrittenCheckpoint::nothing(sequence)) };
        Ok(WrittenCheckpoint::new(sequence, started, draft, move |is_last| {
            durable.accept(checkpoint);
            self.checkpoint_sequence.store(sequence, Ordering::Release);
            if !is_last {
                // No commit comes meanwhile: it would be undone.
                let _writing = self.writing();
                self.publish(durable_segments::read_from_disk(&durable, &self.snapshot())?);
            }
            Ok(())
        }))
    }

    fn rest(&self) -> Result<(), EngineError> {
        let mut writing = self.writing();
        let snapshot = self.snapshot();
        let mut segments = snapshot.segments.clone();
        let last_id = writing.last_id;
        self.merge(&mut segments, |some| Self::merge_at_rest(&mut writing, some))?;
        if writing.last_id != last_id || segments.len() != snapshot.segments.len() {
            self.publish(Snapshot { segments, ..Snapshot::clone(&snapshot) });
        }
        Ok(())
    }

    /// `term_count` is the number of edges, expired ones included.
    fn stats(&self) -> IndexStats {
        let snapshot = self.snapshot();
        let bytes = |is_in_memory: bool| -> u64 {
            let segments = snapshot.segments.iter().map(|live| &live.segment);
            segments.filter(|one| one.is_in_memory() == is_in_memory).map(|one| one.bytes().len() as u64).sum()
        };
        let uncommitted_rows = self.uncommitted_rows.load(Ordering::Relaxed);
        IndexStats {
            applied_sequence: snapshot.sequence,
            checkpoint_sequence: self.checkpoint_sequence.load(Ordering::Acquire),
            doc_count: snapshot.live_rows(),
            term_count: snapshot.live_edges(),
            vector_count: 0,
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
        self.writing().pending = PendingRows::default();
        self.uncommitted_rows.store(0, Ordering::Relaxed);
        Ok(())
    }
}
