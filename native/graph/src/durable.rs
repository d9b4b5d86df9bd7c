//! The files of a graph index: `<id>.segment`, and `<id>-<count>.dead` for the rows that have left it.

use std::path::Path;

use serde::{Deserialize, Serialize};
use sundew_base::bit_set::BitSet;
use sundew_base::checkpoint_files::{Checkpoint, CheckpointFiles, NamedFile};
use sundew_base::error::{EngineError, damaged};
use sundew_base::report::CheckpointReport;
use sundew_vector::plain_bytes::{PlainBytes, bytes_of};

use crate::segment::Segment;
use crate::snapshot::{LiveSegment, Snapshot};

/// What a checkpoint says beside its files.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct GraphState {
    next_id: u64,
    skipped_count: u64,
    /// Of each segment its id, and how many of its rows have left it.
    segments: Vec<(u64, usize)>,
}

pub struct DurableGraph {
    files: CheckpointFiles,
    last: Option<Checkpoint<GraphState>>,
}

impl DurableGraph {
    /// The last checkpoint, and the id of the next segment. Errors: `index_damaged`, `index_incompatible`.
    pub fn open(root: &Path, fingerprint: String) -> Result<(Self, Snapshot, u64), EngineError> {
        let (files, last) = CheckpointFiles::open(root, fingerprint)?;
        let durable = Self { files, last };
        let Some(Checkpoint { sequence, state, .. }) = &durable.last else {
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
        let next_id = state.next_id;
        Ok((durable, snapshot, next_id))
    }

    fn map_segment(&self, id: u64) -> Result<Segment, EngineError> {
        Segment::open(id, PlainBytes::Mapped(self.files.map(self.named(&segment_name(id))?)?))
    }

    fn read_dead(&self, id: u64, count: usize) -> Result<BitSet, EngineError> {
        let name = dead_name(id, count);
        let bytes = self.files.read(self.named(&name)?)?;
        let words = bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word));
        let dead = BitSet::from_words(words.collect());
        if dead.len() == count { Ok(dead) } else { Err(damaged(format!("{name} does not name {count} rows"))) }
    }

    fn known(&self, name: &str) -> Option<&NamedFile> {
        self.last.iter().flat_map(|last| &last.files).find(|file| file.name == name)
    }

    fn named(&self, name: &str) -> Result<&NamedFile, EngineError> {
        self.known(name).ok_or_else(|| damaged(format!("the checkpoint does not name {name}")))
    }

    /// Makes a commit durable. Also answers the segments that were in memory, as they are read from their files.
    pub fn write(
        &mut self,
        snapshot: &Snapshot,
        next_id: u64,
    ) -> Result<(CheckpointReport, Vec<Segment>), EngineError> {
        let mut report = CheckpointReport { sequence: snapshot.sequence, ..CheckpointReport::default() };
        let mut files = Vec::new();
        let mut segments = Vec::new();
        for live in &snapshot.segments {
            let (id, dead) = (live.segment.id, live.dead.len());
            let mut wanted = vec![(segment_name(id), live.segment.bytes())];
            if dead > 0 {
                wanted.push((dead_name(id, dead), bytes_of(live.dead.words())));
            }
            for (name, bytes) in wanted {
                if let Some(file) = self.known(&name) {
                    files.push(file.clone());
                    continue;
                }
                let file = self.files.write(&name, &[bytes])?;
                report.files_written += 1;
                report.bytes_written += file.bytes;
                files.push(file);
            }
            segments.push((id, dead));
        }
        let is_known = |last: &Checkpoint<GraphState>| last.sequence == snapshot.sequence && last.files == files;
        if self.last.as_ref().is_some_and(is_known) {
            return Ok((report, Vec::new()));
        }
        let state = GraphState { next_id, skipped_count: snapshot.skipped_count, segments };
        let checkpoint = Checkpoint { sequence: snapshot.sequence, files, state };
        report.bytes_written += self.files.publish(&checkpoint, &|_| false)?;
        report.files_written += 1;
        self.last = Some(checkpoint);
        let in_memory = snapshot.segments.iter().filter(|live| live.segment.is_in_memory());
        let mapped = in_memory.map(|live| self.map_segment(live.segment.id)).collect::<Result<_, _>>()?;
        Ok((report, mapped))
    }

    /// Error: `index_damaged`.
    pub fn verify(&self) -> Result<(), EngineError> {
        self.last.iter().flat_map(|last| &last.files).try_for_each(|file| self.files.verify(file))
    }
}

fn segment_name(id: u64) -> String {
    format!("{id}.segment")
}

/// Rows only ever leave a segment, so their count tells its states apart.
fn dead_name(id: u64, count: usize) -> String {
    format!("{id}-{count}.dead")
}
