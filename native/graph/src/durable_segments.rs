//! The segments of a graph index on disk.

use std::sync::Arc;

use sundew_base::checkpoint_files::{Checkpoint, Draft};
use sundew_base::error::EngineError;
use sundew_base::segment_files::{SegmentFiles, SegmentsState, WrittenSegment};

use crate::segment::Segment;
use crate::snapshot::{LiveSegment, Snapshot};

/// The last checkpoint, and the id of the newest segment. Error: `index_damaged`.
pub fn open(files: &SegmentFiles) -> Result<(Snapshot, u64), EngineError> {
    let (sequence, state) = files.last();
    let mut segments = Vec::new();
    for state in &state.segments {
        let segment = Segment::open(state.id, files.map(state.id)?)?;
        let dead = files.dead(state, segment.counts().rows)?;
        segments.push(LiveSegment::new(segment, dead));
    }
    Ok((Snapshot { sequence, segments, skipped_count: state.skipped_count }, state.next_id))
}

/// Writes what a commit has that is not durable: nothing when all of it is. `last_id`: of the newest segment.
pub fn write(
    files: &SegmentFiles,
    snapshot: &Snapshot,
    last_id: u64,
) -> Result<(Checkpoint<SegmentsState>, Option<Draft>), EngineError> {
    let segments = snapshot.segments.iter().map(|live| WrittenSegment {
        id: live.segment.id,
        bytes: live.segment.bytes(),
        dead: &live.dead,
    });
    files.write(snapshot.sequence, last_id, snapshot.skipped_count, segments)
}

/// The snapshot with its durable segments read from their files.
pub fn read_from_disk(files: &SegmentFiles, snapshot: &Snapshot) -> Result<Snapshot, EngineError> {
    let mut read = snapshot.clone();
    for live in read.segments.iter_mut().filter(|live| live.segment.is_in_memory()) {
        let id = live.segment.id;
        if files.is_durable(id) {
            live.segment = Arc::new(Segment::open(id, files.map(id)?)?);
        }
    }
    Ok(read)
}
