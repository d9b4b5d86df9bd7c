//! The files of a sparse index: `<id>.segment`, and `<id>-<count>.dead` for the documents that have left it.

use std::collections::HashMap;
use std::path::Path;

use serde::{Deserialize, Serialize};
use sundew_base::error::EngineError;
use sundew_base::report::CheckpointReport;

use super::segment::Segment;
use super::segment_list::SegmentList;
use super::snapshot::{LiveSegment, Snapshot};
use crate::plain_bytes::{PlainBytes, bytes_of};
use sundew_base::bit_set::BitSet;
use sundew_base::checkpoint_files::{Checkpoint, CheckpointFiles, NamedFile};
use sundew_base::error::damaged;

/// What a checkpoint says beside its files.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct SegmentsState {
    next_id: u64,
    skipped_count: u64,
    segments: Vec<SegmentState>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct SegmentState {
    id: u64,
    /// Documents that have left it.
    dead: usize,
}

pub struct DurableSegments {
    files: CheckpointFiles,
    /// The last checkpoint; none before the first.
    checkpoint: Option<Checkpoint<SegmentsState>>,
}

impl DurableSegments {
    /// The last checkpoint, and the id of the next segment. Errors: `index_damaged`, `index_incompatible`.
    pub fn open(root: &Path, fingerprint: String) -> Result<(Self, Snapshot, u64), EngineError> {
        let (files, checkpoint) = CheckpointFiles::open::<SegmentsState>(root, fingerprint)?;
        let durable = Self { files, checkpoint };
        let Some(Checkpoint { sequence, state, .. }) = &durable.checkpoint else {
            return Ok((durable, Snapshot::default(), 0));
        };
        let segments = state.segments.iter().map(|state| durable.open_segment(state)).collect::<Result<_, _>>()?;
        let (snapshot, next_id) = (Snapshot::new(*sequence, segments, state.skipped_count), state.next_id);
        Ok((durable, snapshot, next_id))
    }

    fn open_segment(&self, state: &SegmentState) -> Result<LiveSegment, EngineError> {
        let mut live = LiveSegment::new(self.map_segment(state.id)?);
        if state.dead > 0 {
            let file = self.named(&dead_name(state))?;
            let words = PlainBytes::Mapped(self.files.map(file)?);
            let words = words.numbers::<u64>(0, file.bytes as usize / 8).unwrap_or_default();
            let dead = BitSet::from_words(words.to_vec());
            if dead.len() != state.dead || dead.words().len() > live.segment.document_count().div_ceil(64) {
                return Err(damaged(format!("{} does not hold {} documents", file.name, state.dead)));
            }
            live.dead = dead.into();
        }
        Ok(live)
    }

    fn map_segment(&self, id: u64) -> Result<Segment, EngineError> {
        let file = self.named(&segment_name(id))?;
        Segment::open(id, PlainBytes::Mapped(self.files.map(file)?))
    }

    fn named(&self, name: &str) -> Result<&NamedFile, EngineError> {
        let mut files = self.checkpoint.iter().flat_map(|checkpoint| &checkpoint.files);
        files.find(|file| file.name == name).ok_or_else(|| damaged(format!("no file {name} in the checkpoint")))
    }

    /// Makes the newest commit durable, and reads its new segments from their files from now on.
    pub fn write(&mut self, list: &SegmentList) -> Result<CheckpointReport, EngineError> {
        let snapshot = list.current();
        // Read later, so that it is above the ids of the snapshot.
        let next_id = list.next_id();
        let mut report = CheckpointReport { sequence: snapshot.sequence, ..CheckpointReport::default() };
        let known: HashMap<&str, &NamedFile> = self.known_files();
        let mut files = Vec::new();
        let mut keep = |name: String, bytes: &[u8]| -> Result<(), EngineError> {
            if let Some(&file) = known.get(name.as_str()) {
                files.push(file.clone());
                return Ok(());
            }
            let file = self.files.write(&name, &[bytes])?;
            report.files_written += 1;
            report.bytes_written += file.bytes;
            files.push(file);
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
        let is_known = |last: &Checkpoint<SegmentsState>| last.sequence == snapshot.sequence && last.files == files;
        if self.checkpoint.as_ref().is_some_and(is_known) {
            return Ok(report);
        }
        let state = SegmentsState { next_id, skipped_count: snapshot.skipped_count, segments };
        let checkpoint = Checkpoint { sequence: snapshot.sequence, files, state };
        report.bytes_written += self.files.publish(&checkpoint, &|_| false)?;
        report.files_written += 1;
        self.checkpoint = Some(checkpoint);
        let in_memory = snapshot.segments.iter().filter(|live| live.segment.is_in_memory());
        let mapped = in_memory.map(|live| self.map_segment(live.segment.id)).collect::<Result<Vec<_>, _>>()?;
        list.moved_to_disk(mapped);
        Ok(report)
    }

    fn known_files(&self) -> HashMap<&str, &NamedFile> {
        let files = self.checkpoint.iter().flat_map(|checkpoint| &checkpoint.files);
        files.map(|file| (file.name.as_str(), file)).collect()
    }

    /// Error: `index_damaged`.
    pub fn verify(&self) -> Result<(), EngineError> {
        let mut files = self.checkpoint.iter().flat_map(|checkpoint| &checkpoint.files);
        files.try_for_each(|file| self.files.verify(file))
    }
}

fn segment_name(id: u64) -> String {
    format!("{id}.segment")
}

/// Documents only ever leave a segment, so their count tells its states apart.
fn dead_name(state: &SegmentState) -> String {
    format!("{}-{}.dead", state.id, state.dead)
}
