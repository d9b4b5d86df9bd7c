//! Checkpoints of a dense index: `<id>.flat` for rows without a graph, `<id>.graph` and the row file of a graph, and
//! `<number>.dead` for the dead rows of all segments.

use std::borrow::Cow;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sundew_base::error::EngineError;
use sundew_base::failpoint;

use super::builder::RowFiles;
use super::graph::Graph;
use super::options::DenseOptions;
use super::rows::flat_rows::FlatRows;
use super::rows::graph_rows::GraphRows;
use super::rows::row_store::{FilesInUse, MappedRows, RowFile, RowStore};
use super::segment::{Segment, SegmentRows, Snapshot};
use sundew_base::bit_set::BitSet;
use sundew_base::checkpoint_files::{Checkpoint, CheckpointFiles, Draft, NamedFile};
use sundew_base::error::{damaged, io_failed};

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
        let row_file = match &segment.rows {
            SegmentRows::Graph(rows) => match &rows.rows {
                RowStore::File(rows) => Some(rows.file.name.clone()),
                RowStore::Memory(_) => None,
            },
            SegmentRows::Flat(_) => None,
        };
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
    root: PathBuf,
    files: CheckpointFiles<SegmentsState>,
    /// Row files that no checkpoint may name yet.
    in_use: FilesInUse,
}

impl Checkpoints {
    pub fn row_files(&self) -> RowFiles {
        RowFiles { root: self.root.clone(), in_use: self.in_use.clone() }
    }

    /// Opens `root` at its last checkpoint, or empty when there is none. Errors: `index_damaged`, `index_incompatible`.
    pub fn open(root: &Path, options: &DenseOptions) -> Result<(Self, Restored), EngineError> {
        // Row files come before the first checkpoint.
        fs::create_dir_all(root).map_err(io_failed("create the index directory"))?;
        let files = CheckpointFiles::open(root, options.fingerprint())?;
        let checkpoints = Self { root: root.to_path_buf(), files, in_use: FilesInUse::default() };
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
        let name = flat_file_name(entry.id);
        let bytes = self.files.read(self.files.named(&name)?)?;
        decode_flat_rows(&bytes, entry.rows, options.dimension as usize)
            .ok_or_else(|| damaged(format!("{name} has another length than its rows")))
    }

    /// Maps the files of a graph; nothing is read.
    fn open_graph(
        &self,
        entry: &SegmentEntry,
        row_file: &str,
        options: &DenseOptions,
    ) -> Result<Arc<GraphRows>, EngineError> {
        let name = graph_file_name(entry.id);
        let dimension = options.dimension as usize;
        let file = File::open(self.root.join(&name)).map_err(|error| damaged(format!("{name}: {error}")))?;
        let graph = Graph::map(options.metric, &file, dimension, entry.rows)?;
        let (named, bytes) = (self.files.named(row_file)?, entry.rows * dimension * 4);
        if named.bytes != bytes as u64 {
            return Err(damaged(format!("{row_file} has another length than its rows")));
        }
        let crc = named.crc.ok_or_else(|| damaged(format!("{row_file} has no checksum")))?;
        let file = RowFile::new(&self.root, row_file.to_owned(), &self.in_use);
        Ok(GraphRows::new(graph, RowStore::File(MappedRows::map(file, bytes, crc)?)))
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

    /// Writes what the commit has that is not durable: nothing when all of it is.
    pub fn write(
        &self,
        snapshot: &Snapshot,
        next_segment_id: u64,
        skipped_count: u64,
    ) -> Result<Option<(Checkpoint<SegmentsState>, Draft)>, EngineError> {
        if self.is_written(snapshot) {
            return Ok(None);
        }
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
        let checkpoint = Checkpoint { sequence: snapshot.sequence, files, state };
        let draft = self.files.draft(&checkpoint)?;
        Ok(draft.map(|draft| (checkpoint, draft)))
    }

    /// Notes that the written files are durable.
    pub fn accept(&mut self, checkpoint: Checkpoint<SegmentsState>) -> Result<(), EngineError> {
        let in_use = &self.in_use;
        self.files.accept(checkpoint, &|name| in_use.contains(name))
    }

    /// Writes the files of a segment that are not durable yet, and names all of its files.
    fn write_segment<'a>(&self, segment: &'a Segment, files: &mut Vec<NamedFile>) -> Result<(), EngineError> {
        let mut keep = |name: String, bytes: &dyn Fn() -> Cow<'a, [u8]>| -> Result<(), EngineError> {
            files.push(match self.files.durable(&name) {
                Some(file) => file.clone(),
                None => self.files.write(&name, &[&bytes()])?,
            });
            Ok(())
        };
        let rows = match &segment.rows {
            SegmentRows::Flat(rows) => return keep(flat_file_name(segment.id), &|| encode_flat_rows(rows).into()),
            SegmentRows::Graph(rows) => rows,
        };
        keep(graph_file_name(segment.id), &|| rows.graph.bytes().into())?;
        failpoint::hit("vector.checkpoint.before-rows");
        let RowStore::File(rows) = &rows.rows else { return Ok(()) };
        let (name, bytes) = (rows.file.name.clone(), rows.bytes() as u64);
        files.push(NamedFile { name, bytes, crc: Some(rows.crc), grows: true });
        Ok(())
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

fn flat_file_name(id: u64) -> String {
    format!("{id}.flat")
}

fn graph_file_name(id: u64) -> String {
    format!("{id}.graph")
}

/// Ordinals, sequences, values and numbers, each column as a whole; little-endian.
fn encode_flat_rows(rows: &FlatRows) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(rows.bytes());
    bytes.extend(rows.ordinals.iter().flat_map(|ordinal| ordinal.to_le_bytes()));
    bytes.extend(rows.sequences.iter().flat_map(|sequence| sequence.to_le_bytes()));
    bytes.extend(rows.values.iter().flat_map(|value| value.to_le_bytes()));
    bytes.extend(rows.numbers.iter().flat_map(|number| number.to_le_bytes()));
    bytes
}

fn decode_flat_rows(bytes: &[u8], count: usize, dimension: usize) -> Option<FlatRows> {
    if bytes.len() != count * (14 + 4 * dimension) {
        return None;
    }
    let (ordinals, bytes) = bytes.split_at(4 * count);
    let (sequences, bytes) = bytes.split_at(8 * count);
    let (values, numbers) = bytes.split_at(4 * count * dimension);
    Some(FlatRows {
        dimension,
        ordinals: ordinals.as_chunks::<4>().0.iter().map(|bytes| u32::from_le_bytes(*bytes)).collect(),
        numbers: numbers.as_chunks::<2>().0.iter().map(|bytes| u16::from_le_bytes(*bytes)).collect(),
        sequences: sequences.as_chunks::<8>().0.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect(),
        values: values.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect(),
    })
}
