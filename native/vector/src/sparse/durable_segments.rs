//! The segments of a sparse index on disk.

use sundew_base::checkpoint_files::{Checkpoint, Draft};
use sundew_base::error::EngineError;
use sundew_base::segment_files::{SegmentFiles, SegmentsState, WrittenSegment};

use super::segment::Segment;
use super::segment_list::SegmentList;
use super::snapshot::{LiveSegment, Snapshot};

/// The last checkpoint, and the id of the next segment. Error: `index_damaged`.
pub fn open(files: &SegmentFiles) -> Result<(Snapshot, u64), EngineError> {
    let (sequence, state) = files.last();
    let mut segments = Vec::new();
    for state in &state.segments {
        let segment = Segment::open(state.id, files.map(state.id)?)?;
        let dead = files.dead(state, segment.vector_count())?;
        segments.push(LiveSegment::without(segment, dead));
    }
    Ok((Snapshot::new(sequence, segments, state.skipped_count), state.next_id))
}

/// Writes what the newest commit has that is not durable: nothing when all of it is.
pub fn write(
    files: &SegmentFiles,
    list: &SegmentList,
) -> Result<(Checkpoint<SegmentsState>, Option<Draft>), EngineError> {
    let snapshot = list.current();
    // Read later, so that it is above the ids of the snapshot.
    let next_id = list.next_id();
    let segments = snapshot.segments.iter().map(|live| WrittenSegment {
        id: live.segment.id,
        bytes: live.segment.bytes(),
        dead: &live.dead,
    });
    files.write(snapshot.sequence, next_id, snapshot.skipped_count, segments)
}

/// Has durable segments read from their files from now on.
pub fn read_from_disk(files: &SegmentFiles, list: &SegmentList) -> Result<(), EngineError> {
    let snapshot = list.current();
    let in_memory = snapshot.segments.iter().filter(|live| live.segment.is_in_memory());
    let durable = in_memory.map(|live| live.segment.id).filter(|id| files.is_durable(*id));
    let mapped = durable.map(|id| Segment::open(id, files.map(id)?)).collect::<Result<Vec<_>, _>>()?;
    list.moved_to_disk(mapped);
    Ok(())
}
