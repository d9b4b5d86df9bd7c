//! The files of a sparse index: `<id>.segment`, and `<id>-<count>.dead` for the vectors that have left it.

use std::path::Path;

use serde::{Deserialize, Serialize};
use sundew_base::error::EngineError;

use super::segment::Segment;
use super::segment_list::SegmentList;
use super::snapshot::{LiveSegment, Snapshot};
use crate::plain_bytes::{PlainBytes, bytes_of};
use sundew_base::bit_set::BitSet;
use sundew_base::checkpoint_files::{Checkpoint, CheckpointFiles, Draft};
use sundew_base::error::damaged;

/// The state that a checkpoint holds beside its files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SegmentsState {
    next_id: u64,
    skipped_count: u64,
    segments: Vec<SegmentState>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct SegmentState {
    id: u64,
    /// Vectors that have left it.
    dead: usize,
}

pub struct DurableSegments {
    files: CheckpointFiles<SegmentsState>,
}

impl DurableSegments {
    /// The last checkpoint, and the id of the next segment. Errors: `index_damaged`, `index_incompatible`.
    pub fn open(root: &Path, fingerprint: String) -> Result<(Self, Snapshot, u64), EngineError> {
        let durable = Self { files: CheckpointFiles::open(root, fingerprint)? };
        let Some(Checkpoint { sequence, state, .. }) = durable.files.last() else {
            return Ok((durable, Snapshot::default(), 0));
        };
        let segments = state.segments.iter().map(|state| durable.open_segment(state)).collect::<Result<_, _>>()?;
        let (snapshot, next_id) = (Snapshot::new(*sequence, segments, state.skipped_count), state.next_id);
        Ok((durable, snapshot, next_id))
    }

    fn open_segment(&self, state: &SegmentState) -> Result<LiveSegment, EngineError> {
        let segment = self.map_segment(state.id)?;
        if state.dead == 0 {
            return Ok(LiveSegment::new(segment));
        }
        let file = self.files.named(&dead_name(state))?;
        let words = PlainBytes::Mapped(self.files.map(file)?);
        let words = words.numbers::<u64>(0, file.bytes as usize / 8).unwrap_or_default();
        let dead = BitSet::from_words(words.to_vec());
        if dead.len() != state.dead || dead.words().len() > segment.vector_count().div_ceil(64) {
            return Err(damaged(format!("{} does not hold {} vectors", file.name, state.dead)));
        }
        Ok(LiveSegment::without(segment, dead))
    }

    fn map_segment(&self, id: u64) -> Result<Segment, EngineError> {
        let file = self.files.named(&segment_name(id))?;
        Segment::open(id, PlainBytes::Mapped(self.files.map(file)?))
    }

    /// Writes what the newest commit has that is not durable: nothing when all of it is.
    pub fn write(&self, list: &SegmentList) -> Result<(Checkpoint<SegmentsState>, Option<Draft>), EngineError> {
        let snapshot = list.current();
        // Read later, so that it is above the ids of the snapshot.
        let next_id = list.next_id();
        let mut files = Vec::new();
        let mut keep = |name: String, bytes: &[u8]| -> Result<(), EngineError> {
            files.push(match self.files.durable(&name) {
                Some(file) => file.clone(),
                None => self.files.write(&name, &[bytes])?,
            });
            Ok(())
        };
        let mut segments = Vec::new();
        for live in &snapshot.segments {
            let state = SegmentState { id: live.segment.id, dead: live.dead.len() };
            keep(segment_name(state.id), live.segment.bytes())?;
            if state.dead > 0 {
                keep(dead_name(&state), bytes_of(live.dead.words()))?;
            }
            segments.push(state);
        }
        let state = SegmentsState { next_id, skipped_count: snapshot.skipped_count, segments };
        let checkpoint = Checkpoint { sequence: snapshot.sequence, files, state };
        let draft = self.files.draft(&checkpoint)?;
        Ok((checkpoint, draft))
    }

    /// Notes that the written files are durable.
    pub fn accept(&mut self, checkpoint: Checkpoint<SegmentsState>) -> Result<(), EngineError> {
        self.files.accept(checkpoint, &|_| false)
    }

    /// Has durable segments read from their files from now on.
    pub fn read_from_disk(&self, list: &SegmentList) -> Result<(), EngineError> {
        let snapshot = list.current();
        let in_memory = snapshot.segments.iter().filter(|live| live.segment.is_in_memory());
        let durable = in_memory.filter(|live| self.files.durable(&segment_name(live.segment.id)).is_some());
        let mapped = durable.map(|live| self.map_segment(live.segment.id)).collect::<Result<Vec<_>, _>>()?;
        list.moved_to_disk(mapped);
        Ok(())
    }

    /// Error: `index_damaged`.
    pub fn verify(&self) -> Result<(), EngineError> {
        self.files.verify()
    }
}

fn segment_name(id: u64) -> String {
    format!("{id}.segment")
}

/// Vectors only ever leave a segment, so their count tells its states apart.
fn dead_name(state: &SegmentState) -> String {
    format!("{}-{}.dead", state.id, state.dead)
}
