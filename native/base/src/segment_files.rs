//! The files of an index of immutable segments: `<id>.segment`, and `<id>-<count>.dead` for the rows that have left it.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::bit_set::BitSet;
use crate::checkpoint_files::{Checkpoint, CheckpointFiles, Draft};
use crate::error::{EngineError, damaged};
use crate::plain_bytes::{PlainBytes, bytes_of};

/// The state that a checkpoint holds beside its files.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SegmentsState {
    /// From which the index numbers its segments on.
    #[serde(alias = "last_id")]
    pub next_id: u64,
    pub skipped_count: u64,
    pub segments: Vec<SegmentState>,
}

/// Graph indexes used to write it as a pair, which is read as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SegmentState {
    pub id: u64,
    /// Rows that have left it.
    pub dead: usize,
}

/// A segment of a commit, to be made durable.
pub struct WrittenSegment<'a> {
    pub id: u64,
    pub bytes: &'a [u8],
    pub dead: &'a BitSet,
}

pub struct SegmentFiles {
    files: CheckpointFiles<SegmentsState>,
}

impl SegmentFiles {
    /// Errors: `index_damaged`, `index_incompatible`.
    pub fn open(root: &Path, fingerprint: String) -> Result<Self, EngineError> {
        Ok(Self { files: CheckpointFiles::open(root, fingerprint)? })
    }

    /// The sequence of the last checkpoint and what it holds; nothing before the first.
    pub fn last(&self) -> (u64, SegmentsState) {
        self.files.last().map_or_else(Default::default, |last| (last.sequence, last.state.clone()))
    }

    /// As `DerivedIndex::left_out`.
    pub fn left_out(&self) -> &[u32] {
        self.files.left_out()
    }

    /// As `DerivedIndex::leave_out`.
    pub fn leave_out(&mut self, ordinals: Vec<u32>) {
        self.files.leave_out(ordinals);
    }

    /// The bytes of a durable segment. Error: `index_damaged`.
    pub fn map(&self, id: u64) -> Result<PlainBytes, EngineError> {
        let file = self.files.named(&segment_name(id))?;
        Ok(PlainBytes::Mapped(self.files.map(file)?))
    }

    /// The rows that have left a durable segment of `rows`. Error: `index_damaged`.
    pub fn dead(&self, state: &SegmentState, rows: usize) -> Result<BitSet, EngineError> {
        if state.dead == 0 {
            return Ok(BitSet::default());
        }
        let name = dead_name(state);
        let bytes = self.files.read(self.files.named(&name)?)?;
        let words = bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word));
        let dead = BitSet::from_words(words.collect());
        if dead.len() != state.dead || dead.words().len() > rows.div_ceil(64) {
            return Err(damaged(format!("{name} does not name {} of {rows} rows", state.dead)));
        }
        Ok(dead)
    }

    /// Writes what a commit has that is not durable: nothing when all of it is. Where it fails, nothing of it is left.
    pub fn write<'a>(
        &self,
        sequence: u64,
        next_id: u64,
        skipped_count: u64,
        segments: impl Iterator<Item = WrittenSegment<'a>>,
    ) -> Result<(Checkpoint<SegmentsState>, Option<Draft>), EngineError> {
        self.files.begin()?;
        let written = self.write_new(sequence, next_id, skipped_count, segments);
        written.inspect_err(|_| self.files.give_up(&|_| false))
    }

    fn write_new<'a>(
        &self,
        sequence: u64,
        next_id: u64,
        skipped_count: u64,
        segments: impl Iterator<Item = WrittenSegment<'a>>,
    ) -> Result<(Checkpoint<SegmentsState>, Option<Draft>), EngineError> {
        let mut files = Vec::new();
        let mut keep = |name: String, bytes: &[u8]| -> Result<(), EngineError> {
            files.push(match self.files.durable(&name) {
                Some(file) => file.clone(),
                None => self.files.write(&name, &[bytes])?,
            });
            Ok(())
        };
        let mut states = Vec::new();
        for WrittenSegment { id, bytes, dead } in segments {
            let state = SegmentState { id, dead: dead.len() };
            keep(segment_name(id), bytes)?;
            if state.dead > 0 {
                keep(dead_name(&state), bytes_of(dead.words()))?;
            }
            states.push(state);
        }
        let state = SegmentsState { next_id, skipped_count, segments: states };
        let checkpoint = self.files.checkpoint(sequence, files, state);
        let draft = self.files.draft(&checkpoint)?;
        Ok((checkpoint, draft))
    }

    /// Notes that the written files are durable.
    pub fn accept(&mut self, checkpoint: Checkpoint<SegmentsState>) {
        self.files.accept(checkpoint, &|_| false);
    }

    pub fn is_durable(&self, id: u64) -> bool {
        self.files.durable(&segment_name(id)).is_some()
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
fn dead_name(state: &SegmentState) -> String {
    format!("{}-{}.dead", state.id, state.dead)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_of_every_release_are_read() {
        let expected = SegmentsState {
            next_id: 9,
            skipped_count: 1,
            segments: vec![SegmentState { id: 4, dead: 0 }, SegmentState { id: 7, dead: 2 }],
        };
        for text in [
            r#"{"next_id":9,"skipped_count":1,"segments":[{"id":4,"dead":0},{"id":7,"dead":2}]}"#,
            r#"{"last_id":9,"skipped_count":1,"segments":[[4,0],[7,2]]}"#,
        ] {
            assert_eq!(serde_json::from_str::<SegmentsState>(text).expect(text), expected);
        }
    }
}
