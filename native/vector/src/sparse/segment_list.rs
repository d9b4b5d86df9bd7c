//! The segments of an index as commits and merges replace them.

use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::thread::JoinHandle;

use sundew_base::error::EngineError;

use super::merge_policy::{SegmentSize, next_merge};
use super::segment::{POSTINGS_MAX, Segment};
use super::segment_build::{PendingVector, build_segment};
use super::segment_merge::merge_segments;
use super::snapshot::{LiveSegment, Snapshot};

/// Segments of more vectors than this are merged no further.
const MERGED_VECTORS_MAX: usize = 16 << 20;
/// A commit that leaves more segments than this waits for the merge beside it.
const SEGMENTS_MAX: usize = 64;

pub struct SegmentList {
    current: RwLock<Arc<Snapshot>>,
    /// Held by whoever replaces `current`.
    changing: Mutex<()>,
    next_id: AtomicU64,
    merging: Mutex<Option<JoinHandle<()>>>,
    is_merging: AtomicBool,
    is_closed: AtomicBool,
    /// The last checkpoint could not be written: segments on disk are not merged, since what they become waits in memory.
    is_unwritten: AtomicBool,
    /// Segments with up to this many postings together are merged by the commit itself, larger ones beside it.
    commit_merge_postings_max: usize,
}

impl SegmentList {
    /// `next_id` is above the ids of all segments that ever were.
    pub fn new(snapshot: Snapshot, next_id: u64, commit_merge_postings_max: usize) -> Self {
        Self {
            current: RwLock::new(Arc::new(snapshot)),
            changing: Mutex::default(),
            next_id: AtomicU64::new(next_id),
            merging: Mutex::default(),
            is_merging: AtomicBool::new(false),
            is_closed: AtomicBool::new(false),
            is_unwritten: AtomicBool::new(false),
            commit_merge_postings_max,
        }
    }

    pub fn current(&self) -> Arc<Snapshot> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub fn next_id(&self) -> u64 {
        self.next_id.load(Ordering::Relaxed)
    }

    /// Whether the last checkpoint could be written.
    pub fn checkpoint_tried(&self, is_written: bool) {
        self.is_unwritten.store(!is_written, Ordering::Relaxed);
    }

    fn take_id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    fn changing(&self) -> MutexGuard<'_, ()> {
        self.changing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn publish(&self, snapshot: Snapshot) {
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(snapshot);
    }

    /// Makes the next snapshot: documents of `changes` leave the older segments, and their vectors make a new one.
    pub fn commit(
        self: &Arc<Self>,
        sequence: u64,
        skipped_count: u64,
        changes: BTreeMap<u32, Vec<PendingVector>>,
    ) -> Result<(), EngineError> {
        let ordinals: Vec<u32> = changes.keys().copied().collect();
        // A vector without entries is found by no query.
        let vectors: Vec<(u32, PendingVector)> = changes
            .into_iter()
            .flat_map(|(ordinal, vectors)| vectors.into_iter().map(move |vector| (ordinal, vector)))
            .filter(|(_, vector)| !vector.entries.is_empty())
            .collect();
        let added = if vectors.is_empty() { None } else { Some(build_segment(self.take_id(), &vectors)?) };
        drop(vectors);
        let has_too_many = {
            let _changing = self.changing();
            let mut segments = self.current().segments.clone();
            for ordinal in ordinals {
                // An ordinal is alive in one segment at most.
                let _ = segments.iter_mut().any(|live| live.kill(ordinal));
            }
            segments.retain(|live| live.live_vectors() > 0);
            segments.extend(added.map(LiveSegment::new));
            if !self.is_merging.load(Ordering::Acquire) {
                self.merge_small(&mut segments)?;
            }
            let count = segments.len();
            self.publish(Snapshot::new(sequence, segments, skipped_count));
            count > SEGMENTS_MAX
        };
        self.merge_beside();
        if has_too_many {
            self.wait_for_merge();
        }
        Ok(())
    }

    /// The segments that are to be merged next; none when all is well.
    fn choose(&self, segments: &[LiveSegment]) -> Vec<LiveSegment> {
        let is_unwritten = self.is_unwritten.load(Ordering::Relaxed);
        let may_be: Vec<&LiveSegment> =
            segments.iter().filter(|live| !is_unwritten || live.segment.is_in_memory()).collect();
        let sizes: Vec<SegmentSize> =
            may_be.iter().map(|live| SegmentSize { live: live.live_vectors(), dead: live.dead.len() }).collect();
        let chosen: Vec<LiveSegment> =
            next_merge(&sizes, MERGED_VECTORS_MAX).into_iter().map(|at| may_be[at].clone()).collect();
        let postings: usize = chosen.iter().map(|live| live.segment.posting_count()).sum();
        if postings < POSTINGS_MAX { chosen } else { Vec::new() }
    }

    fn merge_small(&self, segments: &mut Vec<LiveSegment>) -> Result<(), EngineError> {
        loop {
            let chosen = self.choose(segments);
            let postings: usize = chosen.iter().map(|live| live.segment.posting_count()).sum();
            if chosen.is_empty() || postings > self.commit_merge_postings_max {
                return Ok(());
            }
            let merged = merge_segments(self.take_id(), &chosen)?;
            replace(segments, &chosen, merged);
        }
    }

    /// Starts the thread that merges what a commit did not, unless it runs or there is nothing for it.
    fn merge_beside(self: &Arc<Self>) {
        if self.choose(&self.current().segments).is_empty() || self.is_closed.load(Ordering::Acquire) {
            return;
        }
        let mut merging = self.merging.lock().unwrap_or_else(PoisonError::into_inner);
        if self.is_merging.swap(true, Ordering::AcqRel) {
            return;
        }
        let list = Arc::clone(self);
        let spawned = std::thread::Builder::new().name("sparse-merge".to_owned()).spawn(move || {
            let _running = Running(&list.is_merging);
            list.merge_all();
        });
        match spawned {
            Ok(thread) => *merging = Some(thread),
            // The next commit tries again.
            Err(_) => self.is_merging.store(false, Ordering::Release),
        }
    }

    /// Merges until there is nothing to merge. Commits go on meanwhile.
    fn merge_all(&self) {
        loop {
            let chosen = self.choose(&self.current().segments);
            if chosen.is_empty() || self.is_closed.load(Ordering::Acquire) {
                return;
            }
            let Ok(merged) = merge_segments(self.take_id(), &chosen) else { return };
            let _changing = self.changing();
            let current = self.current();
            let mut segments = current.segments.clone();
            replace(&mut segments, &chosen, merged);
            self.publish(Snapshot::new(current.sequence, segments, current.skipped_count));
        }
    }

    /// Puts a segment whose bytes now lie in a file in place of the one in memory.
    pub fn moved_to_disk(&self, mapped: Vec<Segment>) {
        let _changing = self.changing();
        let current = self.current();
        let mut segments = current.segments.clone();
        for segment in mapped {
            if let Some(live) = segments.iter_mut().find(|live| live.segment.id == segment.id) {
                live.segment = Arc::new(segment);
            }
        }
        self.publish(Snapshot::new(current.sequence, segments, current.skipped_count));
    }

    pub fn wait_for_merge(&self) {
        let thread = self.merging.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            // A panic has left the segments as they were.
            let _ = thread.join();
        }
    }

    pub fn stop_merging(&self) {
        self.is_closed.store(true, Ordering::Release);
        self.wait_for_merge();
    }
}

struct Running<'a>(&'a AtomicBool);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

/// Puts `merged` in place of the segments that it was made of; documents that have left them since leave it too.
fn replace(segments: &mut Vec<LiveSegment>, chosen: &[LiveSegment], merged: Segment) {
    let mut merged = LiveSegment::new(merged);
    for before in chosen {
        let now = segments.iter().find(|live| live.segment.id == before.segment.id);
        for (local, &ordinal) in before.segment.sections().ordinals.iter().enumerate() {
            let has_left = now.is_none_or(|now| now.dead.contains(local as u32));
            if has_left && !before.dead.contains(local as u32) {
                merged.kill(ordinal);
            }
        }
    }
    let ids: HashSet<u64> = chosen.iter().map(|live| live.segment.id).collect();
    segments.retain(|live| !ids.contains(&live.segment.id));
    if merged.live_vectors() > 0 {
        segments.push(merged);
    }
}
