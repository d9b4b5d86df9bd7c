//! Checkpoints of a dense index: `<id>.flat` for rows without a graph, `<id>.graph` and the row file of a graph, and
//! `<number>.dead` for the dead rows of all segments.

use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sundew_base::error::EngineError;
use sundew_base::failpoint;

use super::graph_file::{graph_file_name, map_graph};
use super::options::DenseOptions;
use super::rows::flat_file::{decode_flat_rows, flat_file_name, map_flat_rows, write_flat_rows};
use super::rows::flat_rows::FlatRows;
use super::rows::graph_rows::GraphRows;
use super::rows::row_store::{MappedRows, RowStore};
use super::segment::{Segment, SegmentRows, Snapshot};
use super::segment_files::{SegmentFiles, WrittenFile};
use sundew_base::bit_set::BitSet;
use sundew_base::checkpoint_files::{Checkpoint, CheckpointFiles, Draft, NamedFile};
use sundew_base::error::damaged;

/// The state that a checkpoint holds beside its files.
#[derive(PartialEq, Eq, Serialize, Deserialize)]
pub struct SegmentsState {
    next_segment_id: u64,
    skipped_count: u64,
    /// Counts checkpoints.
    number: u64,
    segments: Vec<SegmentEntry>,
    /// Words of the dead rows of all segments, one segment after another.
    dead_file: String,
}

#[derive(PartialEq, Eq, Serialize, Deserialize)]
struct SegmentEntry {
    id: u64,
    rows: usize,
    /// Whose vectors live there.
    documents: usize,
    /// The file of float32 rows of a graph; `None` for rows without a graph.
    row_file: Option<String>,
}

impl SegmentEntry {
    fn of(segment: &Segment) -> Self {
        let row_file = segment.rows.as_graph().and_then(|rows| rows.rows.written()).map(|rows| rows.file.name.clone());
        Self { id: segment.id, rows: segment.rows.len(), documents: segment.document_count, row_file }
    }
}

/// The content of a directory.
#[derive(Default)]
pub struct Restored {
    pub sequence: u64,
    pub next_segment_id: u64,
    pub skipped_count: u64,
    pub segments: Vec<Segment>,
}

pub struct Checkpoints {
    files: CheckpointFiles<SegmentsState>,
    segment_files: SegmentFiles,
}

impl Checkpoints {
    pub fn segment_files(&self) -> SegmentFiles {
        self.segment_files.clone()
    }

    /// Opens `root` at its last checkpoint, or empty when there is none. Errors: `index_damaged`, `index_incompatible`.
    pub fn open(root: &Path, options: &DenseOptions) -> Result<(Self, Restored), EngineError> {
        let files = CheckpointFiles::open(root, options.fingerprint())?;
        let checkpoints = Self { files, segment_files: SegmentFiles::new(root) };
        let restored = checkpoints.restore(options)?;
        Ok((checkpoints, restored))
    }

    fn restore(&self, options: &DenseOptions) -> Result<Restored, EngineError> {
        let Some(Checkpoint { sequence, state, .. }) = self.files.last() else { return Ok(Restored::default()) };
        let dead = self.files.read(self.files.named(&state.dead_file)?)?;
        let mut words = dead.as_chunks::<8>().0.iter().map(|bytes| u64::from_le_bytes(*bytes));
        let mut segments = Vec::with_capacity(state.segments.len());
        for entry in &state.segments {
            let dead: Vec<u64> = words.by_ref().take(entry.rows.div_ceil(64)).collect();
            if dead.len() != entry.rows.div_ceil(64) {
                return Err(damaged(format!("{} is too short", state.dead_file)));
            }
            let rows = match &entry.row_file {
                None => SegmentRows::Flat(Arc::new(self.open_flat(entry, options)?)),
                Some(row_file) => SegmentRows::Graph(self.open_graph(entry, row_file, options)?),
            };
            let (dead, document_count) = (Arc::new(BitSet::from_words(dead)), entry.documents);
            segments.push(Segment { id: entry.id, rows, dead, document_count });
        }
        let (next_segment_id, skipped_count) = (state.next_segment_id, state.skipped_count);
        Ok(Restored { sequence: *sequence, next_segment_id, skipped_count, segments })
    }

    fn open_flat(&self, entry: &SegmentEntry, options: &DenseOptions) -> Result<FlatRows, EngineError> {
        let file = self.files.named(&flat_file_name(entry.id))?;
        let bytes = self.files.read(file)?;
        let mut rows = decode_flat_rows(&bytes, entry.rows, options.dimension as usize)
            .ok_or_else(|| damaged(format!("{} has another length than its rows", file.name)))?;
        if rows.bytes() >= options.flat_bytes_max() {
            map_flat_rows(&mut rows, self.segment_files.named_file(&file.name), file)?;
        }
        Ok(rows)
    }

    /// Maps the files of a graph; nothing is read.
    fn open_graph(
        &self,
        entry: &SegmentEntry,
        row_file: &str,
        options: &DenseOptions,
    ) -> Result<Arc<GraphRows>, EngineError> {
        let (dimension, graph_file) = (options.dimension as usize, self.files.named(&graph_file_name(entry.id))?);
        let (row_file, bytes) = (self.files.named(row_file)?, entry.rows * dimension * 4);
        if row_file.bytes != bytes as u64 {
            return Err(damaged(format!("{} has another length than its rows", row_file.name)));
        }
        let rows = MappedRows::map_scattered(self.named_by_last(row_file)?)?;
        let graph = self.named_by_last(graph_file)?;
        Ok(Arc::new(map_graph(graph, Arc::new(RowStore::File(rows)), entry.rows, options)?))
    }

    fn named_by_last(&self, named: &NamedFile) -> Result<WrittenFile, EngineError> {
        WrittenFile::of(self.segment_files.named_file(&named.name), named)
    }

    /// The same graph, read from the file that it has or would have after a checkpoint.
    pub fn spill_graph(
        &self,
        segment_id: u64,
        rows: &GraphRows,
        options: &DenseOptions,
    ) -> Result<GraphRows, EngineError> {
        let name = graph_file_name(segment_id);
        let written = match self.files.durable(&name) {
            Some(named) => self.named_by_last(named)?,
            None => {
                // A checkpoint in doubt may name the file.
                self.files.begin()?;
                let file = self.segment_files.new_file(name);
                let named = self.files.write(&file.name, &[rows.graph.bytes()])?;
                WrittenFile::of(file, &named)?
            }
        };
        map_graph(written, Arc::clone(&rows.rows), rows.len(), options)
    }

    /// As `DerivedIndex::left_out`.
    pub fn left_out(&self) -> &[u32] {
        self.files.left_out()
    }

    /// As `DerivedIndex::leave_out`.
    pub fn leave_out(&mut self, ordinals: Vec<u32>) {
        self.files.leave_out(ordinals);
    }

    /// Whether a graph would have to be built again after a crash.
    pub fn lacks_graph_of(&self, snapshot: &Snapshot) -> bool {
        let mut graphs = snapshot.segments.iter().filter(|segment| matches!(segment.rows, SegmentRows::Graph(_)));
        graphs.any(|segment| self.files.durable(&graph_file_name(segment.id)).is_none())
    }

    fn is_written(&self, snapshot: &Snapshot) -> bool {
        self.files.last().is_some_and(|last| {
            let (ids, written) = (snapshot.segments.iter().map(|segment| segment.id), last.state.segments.iter());
            last.sequence == snapshot.sequence && ids.eq(written.map(|segment| segment.id))
        })
    }

    /// Writes what the commit has that is not durable: nothing when all of it is. Where it fails, no file is left that
    /// no segment uses.
    pub fn write(
        &self,
        snapshot: &Snapshot,
        next_segment_id: u64,
        skipped_count: u64,
    ) -> Result<Option<(Checkpoint<SegmentsState>, Draft)>, EngineError> {
        if self.is_written(snapshot) {
            return Ok(None);
        }
        self.files.begin()?;
        let written = self.write_new(snapshot, next_segment_id, skipped_count);
        written.inspect_err(|_| self.files.give_up(&|name| self.segment_files.is_in_use(name)))
    }

    fn write_new(
        &self,
        snapshot: &Snapshot,
        next_segment_id: u64,
        skipped_count: u64,
    ) -> Result<Option<(Checkpoint<SegmentsState>, Draft)>, EngineError> {
        failpoint::hit("vector.checkpoint.before-files");
        let number = self.files.last().map_or(0, |last| last.state.number) + 1;
        let dead_file = format!("{number}.dead");
        let mut files = Vec::new();
        for segment in &snapshot.segments {
            self.write_segment(segment, &mut files)?;
        }
        let dead: Vec<u8> = snapshot
            .segments
            .iter()
            .flat_map(|segment| segment.dead.words())
            .flat_map(|word| word.to_le_bytes())
            .collect();
        files.push(self.files.write(&dead_file, &[&dead])?);
        let segments = snapshot.segments.iter().map(SegmentEntry::of).collect();
        let state = SegmentsState { next_segment_id, skipped_count, number, segments, dead_file };
        let checkpoint = self.files.checkpoint(snapshot.sequence, files, state);
        let draft = self.files.draft(&checkpoint)?;
        Ok(draft.map(|draft| (checkpoint, draft)))
    }

    /// Notes that the written files are durable.
    pub fn accept(&mut self, checkpoint: Checkpoint<SegmentsState>) {
        let segment_files = &self.segment_files;
        self.files.accept(checkpoint, &|name| segment_files.is_in_use(name));
    }

    /// Writes the files of a segment that are not written yet, and names all of its files.
    fn write_segment(&self, segment: &Segment, files: &mut Vec<NamedFile>) -> Result<(), EngineError> {
        let rows = match &segment.rows {
            SegmentRows::Flat(rows) => {
                let (name, written) = (flat_file_name(segment.id), rows.values.written());
                files.push(self.keep(&name, written, || write_flat_rows(&self.segment_files, segment.id, rows))?);
                return Ok(());
            }
            SegmentRows::Graph(rows) => rows,
        };
        let name = graph_file_name(segment.id);
        let write = || self.files.write(&name, &[rows.graph.bytes()]);
        files.push(self.keep(&name, rows.written.as_ref(), write)?);
        failpoint::hit("vector.checkpoint.before-rows");
        files.extend(rows.rows.written().map(WrittenFile::named));
        Ok(())
    }

    /// The file of that name, written only where it is not.
    fn keep(
        &self,
        name: &str,
        written: Option<&WrittenFile>,
        write: impl FnOnce() -> Result<NamedFile, EngineError>,
    ) -> Result<NamedFile, EngineError> {
        match (self.files.durable(name), written) {
            (Some(durable), _) => Ok(durable.clone()),
            (None, Some(written)) => Ok(written.named()),
            (None, None) => write(),
        }
    }

    /// Bytes of the last checkpoint.
    pub fn bytes(&self) -> u64 {
        self.files.bytes()
    }

    /// Reads every file of the last checkpoint. Error: `index_damaged`.
    pub fn verify(&self) -> Result<(), EngineError> {
        self.files.verify()
    }
}
