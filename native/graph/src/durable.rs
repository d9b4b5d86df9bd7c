//! The files of a graph index: `<id>.segment`, and `<id>-<count>.dead` for the rows that have left it.

use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sundew_base::bit_set::BitSet;
use sundew_base::checkpoint_files::{Checkpoint, CheckpointFiles, Draft};
use sundew_base::error::{EngineError, damaged};
use sundew_vector::plain_bytes::{PlainBytes, bytes_of};

use crate::segment::Segment;
use crate::snapshot::{LiveSegment, Snapshot};

/// The state that a checkpoint holds beside its files.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GraphState {
    last_id: u64,
    skipped_count: u64,
    /// Of each segment its id, and how many of its rows have left it.
    segments: Vec<(u64, usize)>,
}

pub struct DurableGraph {
    files: CheckpointFiles<GraphState>,
}

impl DurableGraph {
    /// The last checkpoint, and the id of the newest segment. Errors: `index_damaged`, `index_incompatible`.
    pub fn open(root: &Path, fingerprint: String) -> Result<(Self, Snapshot, u64), EngineError> {
        let durable = Self { files: CheckpointFiles::open(root, fingerprint)? };
        let Some(Checkpoint { sequence, state, .. }) = durable.files.last() else {
            return Ok((durable, Snapshot::default(), 0));
        };
        let open = |(id, dead): &(u64, usize)| -> Result<LiveSegment, EngineError> {
            let segment = durable.map_segment(*id)?;
            let dead = if *dead == 0 { BitSet::default() } else { durable.read_dead(*id, *dead)? };
            if dead.words().len() > segment.counts().rows.div_ceil(64) {
                return Err(damaged(format!("{id}.segment has fewer rows than have left it")));
            }
            Ok(LiveSegment::new(segment, dead))
        };
        let segments = state.segments.iter().map(open).collect::<Result<_, _>>()?;
        let snapshot = Snapshot { sequence: *sequence, segments, skipped_count: state.skipped_count };
        let last_id = state.last_id;
        Ok((durable, snapshot, last_id))
    }

    fn map_segment(&self, id: u64) -> Result<Segment, EngineError> {
        Segment::open(id, PlainBytes::Mapped(self.files.map(self.files.named(&segment_name(id))?)?))
    }

    fn read_dead(&self, id: u64, count: usize) -> Result<BitSet, EngineError> {
        let name = dead_name(id, count);
        let bytes = self.files.read(self.files.named(&name)?)?;
        let words = bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word));
        let dead = BitSet::from_words(words.collect());
        if dead.len() == count { Ok(dead) } else { Err(damaged(format!("{name} does not name {count} rows"))) }
    }

    /// Writes what a commit has that is not durable: nothing when all of it is.
    pub fn write(
        &self,
        snapshot: &Snapshot,
        last_id: u64,
    ) -> Result<(Checkpoint<GraphState>, Option<Draft>), EngineError> {
        let (mut files, mut segments) = (Vec::new(), Vec::new());
        let mut keep = |name: String, bytes: &[u8]| -> Result<(), EngineError> {
            files.push(match self.files.durable(&name) {
                Some(file) => file.clone(),
                None => self.files.write(&name, &[bytes])?,
            });
            Ok(())
        };
        for live in &snapshot.segments {
            let (id, dead) = (live.segment.id, live.dead.len());
            keep(segment_name(id), live.segment.bytes())?;
            if dead > 0 {
                keep(dead_name(id, dead), bytes_of(live.dead.words()))?;
            }
            segments.push((id, dead));
        }
        let state = GraphState { last_id, skipped_count: snapshot.skipped_count, segments };
        let checkpoint = Checkpoint { sequence: snapshot.sequence, files, state };
        let draft = self.files.draft(&checkpoint)?;
        Ok((checkpoint, draft))
    }

    /// Notes that the written files are durable.
    pub fn accept(&mut self, checkpoint: Checkpoint<GraphState>) -> Result<(), EngineError> {
        self.files.accept(checkpoint, &|_| false)
    }

    /// The snapshot with its durable segments read from their files.
    pub fn read_from_disk(&self, snapshot: &Snapshot) -> Result<Snapshot, EngineError> {
        let mut read = snapshot.clone();
        for live in read.segments.iter_mut().filter(|live| live.segment.is_in_memory()) {
            if self.files.durable(&segment_name(live.segment.id)).is_some() {
                live.segment = Arc::new(self.map_segment(live.segment.id)?);
            }
        }
        Ok(read)
    }

    /// Error: `index_damaged`.
    pub fn verify(&self) -> Result<(), EngineError> {
        self.files.verify()
    }
}

fn segment_name(id: u64) -> String {
    format!("{id}.segment")
}

/// Rows only ever leave a segment, so their count tells its states apart.
fn dead_name(id: u64, count: usize) -> String {
    format!("{id}-{count}.dead")
}
