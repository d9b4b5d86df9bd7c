//! Checkpoints: the steps by which a commit becomes durable, and the opening of a directory from the last one.
//!
//! `checkpoint.json` names every file of one commit with its length and checksum. It is replaced by a rename after all of
//! them are synced, so the directory always holds one whole commit.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sundew_base::error::EngineError;
use sundew_base::failpoint;

use super::builder::RowFiles;
use super::errors::{damaged, incompatible, io_failed};
use super::flat_rows::FlatRows;
use super::graph::Graph;
use super::graph_rows::GraphRows;
use super::options::DenseOptions;
use super::part::{Part, PartRows, Snapshot};
use super::row_bits::RowBits;
use super::row_store::{FilesInUse, MappedRows, RowFile, RowStore};

const CHECKPOINT_FILE: &str = "checkpoint.json";
const CHECKPOINT_DRAFT: &str = "checkpoint.json.tmp";
const ROW_FILE_SUFFIX: &str = ".rows";

/// The file: `commit` as text, so that its checksum does not depend on how JSON is written.
#[derive(Serialize, Deserialize)]
struct CheckpointFile {
    crc: u32,
    commit: String,
}

#[derive(Default, Serialize, Deserialize)]
struct Manifest {
    fingerprint: String,
    sequence: u64,
    next_part_id: u64,
    skipped_count: u64,
    checkpoint_number: u64,
    parts: Vec<PartEntry>,
    /// Words of the dead rows of all parts, one part after another.
    dead_file: String,
    files: Vec<NamedFile>,
}

#[derive(Serialize, Deserialize)]
struct PartEntry {
    id: u64,
    rows: usize,
    /// The file of float32 rows of a graph; `None` for rows without a graph.
    row_file: Option<String>,
}

impl PartEntry {
    fn of(part: &Part) -> Self {
        let row_file = match &part.rows {
            PartRows::Graph(rows) => match &rows.rows {
                RowStore::File(rows) => Some(rows.file.name.clone()),
                RowStore::Memory(_) => None,
            },
            PartRows::Flat(_) => None,
        };
        Self { id: part.id, rows: part.rows.len(), row_file }
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct NamedFile {
    name: String,
    bytes: u64,
    crc: u32,
}

/// What a directory held.
#[derive(Default)]
pub struct Restored {
    pub sequence: u64,
    pub next_part_id: u64,
    pub skipped_count: u64,
    pub parts: Vec<Part>,
}

pub struct Checkpoints {
    root: PathBuf,
    fingerprint: String,
    number: u64,
    /// Files of the last checkpoint by name.
    durable: HashMap<String, NamedFile>,
    /// Row files that no checkpoint may name yet.
    in_use: FilesInUse,
    /// Sequence and parts of the last checkpoint; no second one of the same is written.
    written: Option<(u64, Vec<u64>)>,
}

impl Checkpoints {
    pub fn row_files(&self) -> RowFiles {
        RowFiles { root: self.root.clone(), in_use: self.in_use.clone() }
    }

    /// Opens `root` at its last checkpoint, or empty when there is none; removes what no checkpoint names.
    pub fn open(root: &Path, options: &DenseOptions) -> Result<(Self, Restored), EngineError> {
        fs::create_dir_all(root).map_err(io_failed("create the index directory"))?;
        let mut checkpoints = Self {
            root: root.to_path_buf(),
            fingerprint: options.fingerprint(),
            number: 0,
            durable: HashMap::new(),
            in_use: FilesInUse::default(),
            written: None,
        };
        let restored = match checkpoints.read_manifest()? {
            Some(manifest) => checkpoints.restore(manifest, options)?,
            None => Restored::default(),
        };
        checkpoints.remove_strays().map_err(io_failed("remove stray index files"))?;
        Ok((checkpoints, restored))
    }

    fn read_manifest(&self) -> Result<Option<Manifest>, EngineError> {
        let bytes = match fs::read(self.root.join(CHECKPOINT_FILE)) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(io_failed("read the checkpoint")(error)),
        };
        let unreadable = |error: serde_json::Error| damaged(format!("{CHECKPOINT_FILE}: {error}"));
        let file: CheckpointFile = serde_json::from_slice(&bytes).map_err(unreadable)?;
        if crc32fast::hash(file.commit.as_bytes()) != file.crc {
            return Err(damaged(format!("{CHECKPOINT_FILE} does not match its checksum")));
        }
        let commit: serde_json::Value = serde_json::from_str(&file.commit).map_err(unreadable)?;
        if commit["fingerprint"] != self.fingerprint.as_str() {
            return Err(incompatible("the index was built with other options or by another version"));
        }
        Ok(Some(serde_json::from_value(commit).map_err(unreadable)?))
    }

    fn restore(&mut self, manifest: Manifest, options: &DenseOptions) -> Result<Restored, EngineError> {
        for file in &manifest.files {
            let length = fs::metadata(self.root.join(&file.name))
                .map_err(|error| damaged(format!("{}: {error}", file.name)))?
                .len();
            // Rows that were added after the checkpoint may lie behind those that it knows.
            let fits = if file.name.ends_with(ROW_FILE_SUFFIX) { length >= file.bytes } else { length == file.bytes };
            if !fits {
                return Err(damaged(format!("{} has {length} bytes, not {}", file.name, file.bytes)));
            }
        }
        self.durable = manifest.files.into_iter().map(|file| (file.name.clone(), file)).collect();
        self.number = manifest.checkpoint_number;
        self.written = Some((manifest.sequence, manifest.parts.iter().map(|part| part.id).collect()));
        let dead = self.read_checked(&manifest.dead_file)?;
        let mut words = dead.as_chunks::<8>().0.iter().map(|bytes| u64::from_le_bytes(*bytes));
        let mut parts = Vec::with_capacity(manifest.parts.len());
        for entry in &manifest.parts {
            let dead: Vec<u64> = words.by_ref().take(entry.rows.div_ceil(64)).collect();
            if dead.len() != entry.rows.div_ceil(64) {
                return Err(damaged(format!("{} is too short", manifest.dead_file)));
            }
            let rows = match &entry.row_file {
                None => PartRows::Flat(Arc::new(self.open_flat(entry, options)?)),
                Some(row_file) => PartRows::Graph(self.open_graph(entry, row_file, options)?),
            };
            parts.push(Part { id: entry.id, rows, dead: Arc::new(RowBits::from_words(dead)) });
        }
        Ok(Restored {
            sequence: manifest.sequence,
            next_part_id: manifest.next_part_id,
            skipped_count: manifest.skipped_count,
            parts,
        })
    }

    fn open_flat(&self, entry: &PartEntry, options: &DenseOptions) -> Result<FlatRows, EngineError> {
        let name = flat_file_name(entry.id);
        let bytes = self.read_checked(&name)?;
        decode_flat_rows(&bytes, entry.rows, options.dimension as usize)
            .ok_or_else(|| damaged(format!("{name} has another length than its rows")))
    }

    /// Maps the files of a graph; nothing is read.
    fn open_graph(
        &self,
        entry: &PartEntry,
        row_file: &str,
        options: &DenseOptions,
    ) -> Result<Arc<GraphRows>, EngineError> {
        let name = graph_file_name(entry.id);
        let dimension = options.dimension as usize;
        let file = File::open(self.root.join(&name)).map_err(|error| damaged(format!("{name}: {error}")))?;
        let graph = Graph::map(options.metric, &file, dimension, entry.rows)?;
        let named = self.durable.get(row_file).filter(|file| file.bytes == (entry.rows * dimension * 4) as u64);
        let named = named.ok_or_else(|| damaged(format!("{row_file} has another length than its rows")))?;
        let file = RowFile::new(&self.root, row_file.to_owned(), &self.in_use);
        let rows = MappedRows::map(file, entry.rows * dimension * 4, named.crc)?;
        Ok(GraphRows::new(graph, RowStore::File(rows)))
    }

    fn read_checked(&self, name: &str) -> Result<Vec<u8>, EngineError> {
        let file = self.durable.get(name).ok_or_else(|| damaged(format!("the checkpoint does not name {name}")))?;
        let bytes = fs::read(self.root.join(name)).map_err(|error| damaged(format!("{name}: {error}")))?;
        if bytes.len() as u64 != file.bytes || crc32fast::hash(&bytes) != file.crc {
            return Err(damaged(format!("{name} does not match its checksum")));
        }
        Ok(bytes)
    }

    /// Whether a graph would have to be built again after a crash.
    pub fn lacks_graph_of(&self, snapshot: &Snapshot) -> bool {
        let mut graphs = snapshot.parts.iter().filter(|part| matches!(part.rows, PartRows::Graph(_)));
        graphs.any(|part| !self.durable.contains_key(&graph_file_name(part.id)))
    }

    /// Makes the commit durable; gives files and bytes that were written for it.
    pub fn write(
        &mut self,
        snapshot: &Snapshot,
        next_part_id: u64,
        skipped_count: u64,
    ) -> Result<(usize, u64), EngineError> {
        let part_ids: Vec<u64> = snapshot.parts.iter().map(|part| part.id).collect();
        let written = Some((snapshot.sequence, part_ids));
        if self.written == written {
            return Ok((0, 0));
        }
        failpoint::hit("dense.checkpoint.before-files");
        let number = self.number + 1;
        let dead_file = format!("{number}.dead");
        let (mut files, mut fresh) = (Vec::new(), Vec::new());
        for part in &snapshot.parts {
            self.write_part(part, &mut files, &mut fresh)?;
            failpoint::hit("dense.checkpoint.after-file");
        }
        let dead: Vec<u8> =
            snapshot.parts.iter().flat_map(|part| part.dead.words()).flat_map(|word| word.to_le_bytes()).collect();
        fresh.push(self.write_synced(&dead_file, &dead)?);
        let (file_count, byte_count) = (fresh.len(), fresh.iter().map(|file| file.bytes).sum());
        files.extend(fresh);
        let manifest = Manifest {
            fingerprint: self.fingerprint.clone(),
            sequence: snapshot.sequence,
            next_part_id,
            skipped_count,
            checkpoint_number: number,
            parts: snapshot.parts.iter().map(PartEntry::of).collect(),
            dead_file,
            files: files.clone(),
        };
        self.replace_checkpoint(&manifest)?;
        self.durable = files.into_iter().map(|file| (file.name.clone(), file)).collect();
        self.number = number;
        self.written = written;
        self.remove_strays().map_err(io_failed("remove old index files"))?;
        failpoint::hit("dense.checkpoint.after-removal");
        Ok((file_count, byte_count))
    }

    /// Writes and syncs what of a part is not durable. Files of earlier checkpoints go to `files`, others to `fresh`.
    fn write_part<'a>(
        &self,
        part: &'a Part,
        files: &mut Vec<NamedFile>,
        fresh: &mut Vec<NamedFile>,
    ) -> Result<(), EngineError> {
        let mut keep = |name: String, bytes: &dyn Fn() -> Cow<'a, [u8]>| match self.durable.get(&name) {
            Some(file) => {
                files.push(file.clone());
                Ok::<(), EngineError>(())
            }
            None => {
                fresh.push(self.write_synced(&name, &bytes())?);
                Ok(())
            }
        };
        let rows = match &part.rows {
            PartRows::Flat(rows) => return keep(flat_file_name(part.id), &|| encode_flat_rows(rows).into()),
            PartRows::Graph(rows) => rows,
        };
        keep(graph_file_name(part.id), &|| rows.graph.bytes().into())?;
        failpoint::hit("dense.checkpoint.before-rows");
        let RowStore::File(rows) = &rows.rows else { return Ok(()) };
        let named = NamedFile { name: rows.file.name.clone(), bytes: rows.bytes() as u64, crc: rows.crc };
        if self.durable.get(&named.name).is_some_and(|file| file.bytes == named.bytes) {
            files.push(named);
            return Ok(());
        }
        let sync = || File::open(self.root.join(&named.name))?.sync_all();
        sync().map_err(io_failed("sync a row file"))?;
        fresh.push(named);
        Ok(())
    }

    fn replace_checkpoint(&self, manifest: &Manifest) -> Result<(), EngineError> {
        let failed = io_failed("write a checkpoint");
        let unwritable = |error: serde_json::Error| EngineError::internal(format!("checkpoint: {error}"));
        let commit = serde_json::to_string(manifest).map_err(unwritable)?;
        let file = CheckpointFile { crc: crc32fast::hash(commit.as_bytes()), commit };
        let bytes = serde_json::to_vec(&file).map_err(unwritable)?;
        sync_directory(&self.root).map_err(&failed)?;
        self.write_synced(CHECKPOINT_DRAFT, &bytes)?;
        failpoint::hit("dense.checkpoint.before-rename");
        fs::rename(self.root.join(CHECKPOINT_DRAFT), self.root.join(CHECKPOINT_FILE)).map_err(&failed)?;
        failpoint::hit("dense.checkpoint.after-rename");
        sync_directory(&self.root).map_err(&failed)
    }

    fn write_synced(&self, name: &str, bytes: &[u8]) -> Result<NamedFile, EngineError> {
        let write = || -> io::Result<()> {
            let mut file = File::create(self.root.join(name))?;
            file.write_all(bytes)?;
            file.sync_all()
        };
        write().map_err(io_failed("write an index file"))?;
        Ok(NamedFile { name: name.to_owned(), bytes: bytes.len() as u64, crc: crc32fast::hash(bytes) })
    }

    /// Removes index files that the checkpoint does not name. Only names that an index gives are touched.
    fn remove_strays(&self) -> io::Result<()> {
        for entry in fs::read_dir(&self.root)? {
            let name = entry?.file_name();
            let Some(name) = name.to_str() else { continue };
            let is_old = is_index_file_name(name) && !self.durable.contains_key(name) && !self.in_use.contains(name);
            if name == CHECKPOINT_DRAFT || is_old {
                fs::remove_file(self.root.join(name))?;
            }
        }
        Ok(())
    }

    /// Bytes of the last checkpoint.
    pub fn bytes(&self) -> u64 {
        self.durable.values().map(|file| file.bytes).sum()
    }

    /// Reads every file of the last checkpoint. Error: `index_damaged`.
    pub fn verify(&self) -> Result<(), EngineError> {
        let mut buffer = vec![0; 1 << 20];
        for file in self.durable.values() {
            let unreadable = |error: io::Error| damaged(format!("{}: {error}", file.name));
            let mut reader = File::open(self.root.join(&file.name)).map_err(unreadable)?.take(file.bytes);
            let mut hasher = crc32fast::Hasher::new();
            loop {
                match reader.read(&mut buffer).map_err(unreadable)? {
                    0 => break,
                    count => hasher.update(&buffer[..count]),
                }
            }
            if hasher.finalize() != file.crc {
                return Err(damaged(format!("{} does not match its checksum", file.name)));
            }
        }
        Ok(())
    }
}

fn sync_directory(root: &Path) -> io::Result<()> {
    File::open(root)?.sync_all()
}

fn flat_file_name(id: u64) -> String {
    format!("{id}.flat")
}

fn graph_file_name(id: u64) -> String {
    format!("{id}.graph")
}

/// Index files are named `<number>.<extension>`.
fn is_index_file_name(name: &str) -> bool {
    let Some((number, extension)) = name.split_once('.') else { return false };
    !number.is_empty()
        && number.bytes().all(|byte| byte.is_ascii_digit())
        && matches!(extension, "flat" | "dead" | "graph" | "rows")
}

/// Ordinals, sequences and values, each column as a whole; little-endian.
fn encode_flat_rows(rows: &FlatRows) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(rows.bytes());
    bytes.extend(rows.ordinals.iter().flat_map(|ordinal| ordinal.to_le_bytes()));
    bytes.extend(rows.sequences.iter().flat_map(|sequence| sequence.to_le_bytes()));
    bytes.extend(rows.values.iter().flat_map(|value| value.to_le_bytes()));
    bytes
}

fn decode_flat_rows(bytes: &[u8], count: usize, dimension: usize) -> Option<FlatRows> {
    if bytes.len() != count * (12 + 4 * dimension) {
        return None;
    }
    let (ordinals, bytes) = bytes.split_at(4 * count);
    let (sequences, values) = bytes.split_at(8 * count);
    Some(FlatRows {
        dimension,
        ordinals: ordinals.as_chunks::<4>().0.iter().map(|bytes| u32::from_le_bytes(*bytes)).collect(),
        sequences: sequences.as_chunks::<8>().0.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect(),
        values: values.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect(),
    })
}
