//! Checkpoints: the steps by which a commit becomes durable, and the opening of a directory from the last one.
//!
//! `checkpoint.json` names every file of one commit with its length, and holds what Tantivy keeps in `meta.json`.
//! It is replaced by a rename after all of them are synced, so the directory always holds one whole commit.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sundew_base::disk::{Disk, directories_of_checkpoint};

use super::directory::{CheckpointPlan, IndexDirectory, RestoredCheckpoint, remove_if_there};
use crate::error::EngineError;
use crate::failpoint;
use crate::full_text::errors::{damaged, incompatible, io_failed};
use crate::full_text::options::IndexOptions;

const CHECKPOINT_FILE: &str = "checkpoint.json";
const CHECKPOINT_DRAFT: &str = "checkpoint.json.tmp";
const CHECKPOINT_FORMAT: u32 = 1;

#[derive(Serialize, Deserialize)]
struct CheckpointFile {
    format: u32,
    fingerprint: String,
    meta: String,
    managed: String,
    /// CRC-32 of `meta` followed by `managed`.
    crc: u32,
    files: Vec<NamedFile>,
}

#[derive(Serialize, Deserialize)]
struct NamedFile {
    name: String,
    bytes: u64,
}

pub struct OpenedDirectory {
    pub directory: IndexDirectory,
    /// Whether the directory holds an index: a checkpoint was there.
    pub is_restored: bool,
}

/// Opens `root` at its last checkpoint, or as an empty index when there is none; removes what no checkpoint names.
pub fn open_directory(root: &Path, options: &IndexOptions) -> Result<OpenedDirectory, EngineError> {
    if options.mem_only {
        return Ok(OpenedDirectory { directory: IndexDirectory::in_memory(), is_restored: false });
    }
    fs::create_dir_all(root).map_err(io_failed("create the index directory"))?;
    let checkpoint = read_checkpoint(root, options)?;
    let is_restored = checkpoint.is_some();
    let files = checkpoint.as_ref().map(|restored| restored.files.keys().cloned().collect()).unwrap_or_default();
    remove_strays(root, &files).map_err(io_failed("remove stray index files"))?;
    let limits = (options.memory_file_bytes_max, options.memory_files_bytes_max);
    let directory =
        IndexDirectory::on_disk(root, limits.0, limits.1, checkpoint).map_err(io_failed("open the index directory"))?;
    Ok(OpenedDirectory { directory, is_restored })
}

fn read_checkpoint(root: &Path, options: &IndexOptions) -> Result<Option<RestoredCheckpoint>, EngineError> {
    let bytes = match fs::read(root.join(CHECKPOINT_FILE)) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(io_failed("read the checkpoint")(error)),
    };
    let checkpoint: CheckpointFile =
        serde_json::from_slice(&bytes).map_err(|error| damaged(format!("{CHECKPOINT_FILE}: {error}")))?;
    if checkpoint.format != CHECKPOINT_FORMAT {
        return Err(incompatible(format!("the checkpoint has format {}", checkpoint.format)));
    }
    if checksum(&checkpoint.meta, &checkpoint.managed) != checkpoint.crc {
        return Err(damaged(format!("{CHECKPOINT_FILE} does not match its checksum")));
    }
    if checkpoint.fingerprint != options.fingerprint() {
        return Err(incompatible("the index was built with other options".to_owned()));
    }
    let mut files = HashMap::with_capacity(checkpoint.files.len());
    for file in checkpoint.files {
        let length = fs::metadata(root.join(&file.name)).map(|metadata| metadata.len());
        match length {
            Ok(length) if length == file.bytes => files.insert(PathBuf::from(file.name), length),
            Ok(length) => {
                return Err(damaged(format!("{} has {length} bytes, not {}", file.name, file.bytes)));
            }
            Err(error) => return Err(damaged(format!("{}: {error}", file.name))),
        };
    }
    let (meta, managed) = (checkpoint.meta.into_bytes(), checkpoint.managed.into_bytes());
    Ok(Some(RestoredCheckpoint { meta, managed, files }))
}

fn checksum(meta: &str, managed: &str) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(meta.as_bytes());
    hasher.update(managed.as_bytes());
    hasher.finalize()
}

/// Removes index files that are not in `named`. Only names that an index gives are touched.
fn remove_strays(root: &Path, named: &HashSet<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(root)? {
        let name = entry?.file_name();
        let path = PathBuf::from(&name);
        let is_segment_file = name.to_str().is_some_and(is_segment_file_name);
        if (is_segment_file && !named.contains(&path)) || name == CHECKPOINT_DRAFT {
            remove_if_there(&root.join(path))?;
        }
    }
    Ok(())
}

const SEGMENT_ID_CHARACTERS: usize = 32;

/// Segment files are named `<32 hexadecimal digits>.<extension>`.
fn is_segment_file_name(name: &str) -> bool {
    let Some((id, _)) = name.split_once('.') else { return false };
    id.len() == SEGMENT_ID_CHARACTERS && id.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[derive(Deserialize)]
struct MetaSegments {
    segments: Vec<MetaSegment>,
}

#[derive(Deserialize)]
struct MetaSegment {
    segment_id: String,
    deletes: Option<MetaDeletes>,
}

#[derive(Deserialize)]
struct MetaDeletes {
    opstamp: u64,
}

/// The names of the files that a commit consists of.
fn files_of_commit(meta: &[u8]) -> HashSet<PathBuf> {
    let Ok(parsed) = serde_json::from_slice::<MetaSegments>(meta) else { return HashSet::new() };
    let mut names = HashSet::new();
    for segment in parsed.segments {
        let id = segment.segment_id.replace('-', "");
        for extension in ["idx", "pos", "term", "store", "fast", "fieldnorm"] {
            names.insert(PathBuf::from(format!("{id}.{extension}")));
        }
        if let Some(deletes) = segment.deletes {
            names.insert(PathBuf::from(format!("{id}.{}.del", deletes.opstamp)));
        }
    }
    names
}

/// Files and bytes that were written or synced.
pub struct CheckpointWork {
    pub files: usize,
    pub bytes: u64,
    /// The commit that is now durable, as Tantivy describes it.
    pub meta: Vec<u8>,
}

/// Makes the newest commit durable. `durable` holds the files of the last checkpoint, and those of the new one after.
pub fn write_checkpoint(
    directory: &IndexDirectory,
    options: &IndexOptions,
    durable: &mut HashSet<PathBuf>,
    disk: &dyn Disk,
) -> Result<Option<CheckpointWork>, EngineError> {
    let (Some(root), Some(plan)) = (directory.root(), directory.begin_checkpoint(files_of_commit)) else {
        return Ok(None);
    };
    let failed = |error| io_failed("write a checkpoint")(error);
    let (draft, checkpoint) = (root.join(CHECKPOINT_DRAFT), root.join(CHECKPOINT_FILE));
    failpoint::hit("index.checkpoint.before-files");
    let mut work = CheckpointWork { files: 0, bytes: 0, meta: Vec::new() };
    let mut unsynced = write_files(root, &plan, durable, &mut work).map_err(failed)?;
    failpoint::hit("index.checkpoint.before-draft");
    fs::write(&draft, describe(&plan, options)?).map_err(failed)?;
    unsynced.push(draft.clone());
    failpoint::hit("index.checkpoint.before-directory-sync");
    disk.sync(&unsynced, &directories_of_checkpoint(root, !checkpoint.exists())).map_err(failed)?;
    failpoint::hit("index.checkpoint.before-rename");
    fs::rename(&draft, &checkpoint).map_err(failed)?;
    failpoint::hit("index.checkpoint.after-rename");
    disk.sync(&[], &[root]).map_err(failed)?;
    failpoint::hit("index.checkpoint.before-release");
    for (name, bytes) in &plan.in_memory {
        directory.moved_to_disk(name, bytes.len() as u64);
    }
    *durable =
        plan.in_memory.iter().map(|(name, _)| name).chain(plan.on_disk.iter().map(|(name, _)| name)).cloned().collect();
    directory.finish_checkpoint(durable.clone()).map_err(failed)?;
    failpoint::hit("index.checkpoint.after-release");
    work.meta = plan.meta;
    Ok(Some(work))
}

/// Writes the files that are only in memory. Answers all files that may not be on the disk yet.
fn write_files(
    root: &Path,
    plan: &CheckpointPlan,
    durable: &HashSet<PathBuf>,
    work: &mut CheckpointWork,
) -> io::Result<Vec<PathBuf>> {
    let mut unsynced = Vec::new();
    for (name, bytes) in &plan.in_memory {
        let path = root.join(name);
        // A checkpoint that failed half way may have left a part of the file.
        fs::write(&path, bytes.as_slice())?;
        unsynced.push(path);
        work.bytes += bytes.len() as u64;
        failpoint::hit("index.checkpoint.after-file");
    }
    for (name, bytes) in plan.on_disk.iter().filter(|(name, _)| !durable.contains(name)) {
        unsynced.push(root.join(name));
        work.bytes += bytes;
    }
    work.files += unsynced.len();
    Ok(unsynced)
}

fn describe(plan: &CheckpointPlan, options: &IndexOptions) -> Result<Vec<u8>, EngineError> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (meta, managed) = (text(&plan.meta), text(&plan.managed));
    let in_memory = plan.in_memory.iter().map(|(name, bytes)| (name, bytes.len() as u64));
    let on_disk = plan.on_disk.iter().map(|(name, bytes)| (name, *bytes));
    let files = in_memory
        .chain(on_disk)
        .map(|(name, bytes)| NamedFile { name: name.to_string_lossy().into_owned(), bytes })
        .collect();
    let crc = checksum(&meta, &managed);
    let checkpoint =
        CheckpointFile { format: CHECKPOINT_FORMAT, fingerprint: options.fingerprint(), meta, managed, crc, files };
    serde_json::to_vec(&checkpoint).map_err(|error| EngineError::internal(format!("checkpoint: {error}")))
}
