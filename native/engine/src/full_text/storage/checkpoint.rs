//! Checkpoints of a text index: the files of a commit, and what Tantivy replaces with every commit.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sundew_base::checkpoint_files::{Checkpoint, CheckpointFiles, Draft, NamedFile};

use super::directory::{CheckpointPlan, IndexDirectory, RestoredCheckpoint};
use crate::error::EngineError;
use crate::failpoint;
use crate::full_text::errors::io_failed;
use crate::full_text::options::IndexOptions;
use crate::full_text::writing::sequence_of;

/// The content of Tantivy's `meta.json` and `.managed.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TantivyState {
    pub meta: String,
    managed: String,
}

pub type TextCheckpoint = Checkpoint<TantivyState>;
pub type TextFiles = CheckpointFiles<TantivyState>;

/// Opens `root` at its last checkpoint, or as an empty index when there is none; removes what no checkpoint names. An
/// index in memory has no files.
pub fn open_directory(root: &Path, options: &IndexOptions) -> Result<(IndexDirectory, Option<TextFiles>), EngineError> {
    if options.mem_only {
        return Ok((IndexDirectory::in_memory(), None));
    }
    let files = TextFiles::open(root, options.fingerprint())?;
    let limits = (options.memory_file_bytes_max, options.memory_files_bytes_max);
    let directory = IndexDirectory::on_disk(root, limits.0, limits.1, files.last().map(restored))
        .map_err(io_failed("open the index directory"))?;
    Ok((directory, Some(files)))
}

fn restored(checkpoint: &TextCheckpoint) -> RestoredCheckpoint {
    let TantivyState { meta, managed } = &checkpoint.state;
    let files = checkpoint.files.iter().map(|file| (PathBuf::from(&file.name), file.bytes)).collect();
    RestoredCheckpoint { meta: meta.clone().into_bytes(), managed: managed.clone().into_bytes(), files }
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
pub fn files_of_commit(meta: &[u8]) -> HashSet<PathBuf> {
    let Ok(parsed) = serde_json::from_slice::<MetaSegments>(meta) else { return HashSet::new() };
    let mut names = HashSet::new();
    for segment in parsed.segments {
        let id = segment.segment_id.replace('-', "");
        names.extend(files_of_segment(&id));
        if let Some(deletes) = segment.deletes {
            names.insert(PathBuf::from(format!("{id}.{}.del", deletes.opstamp)));
        }
    }
    names
}

/// The names of a segment's files, without those of deletes. `id`: in hexadecimal digits alone.
pub fn files_of_segment(id: &str) -> [PathBuf; 6] {
    ["idx", "pos", "term", "store", "fast", "fieldnorm"].map(|extension| PathBuf::from(format!("{id}.{extension}")))
}

/// Writes what the newest commit has that is not durable. None before the first commit; no draft when all of it is
/// durable. Where it fails, nothing of it is left.
pub fn write_checkpoint(
    directory: &IndexDirectory,
    files: &TextFiles,
) -> Result<Option<(TextCheckpoint, Option<Draft>)>, EngineError> {
    files.begin()?;
    let Some(plan) = directory.begin_checkpoint(files_of_commit) else { return Ok(None) };
    failpoint::hit("index.checkpoint.before-files");
    let written = write_planned(&plan, files).inspect_err(|_| {
        // Of the others the directory knows which are still read or written.
        files.give_up(&|name| plan.in_memory.iter().all(|(file, _)| file != Path::new(name)));
        directory.finish_checkpoint(files.durable_files().iter().map(|file| PathBuf::from(&file.name)).collect());
    });
    written.map(Some)
}

fn write_planned(plan: &CheckpointPlan, files: &TextFiles) -> Result<(TextCheckpoint, Option<Draft>), EngineError> {
    let mut named = Vec::with_capacity(plan.in_memory.len() + plan.on_disk.len());
    for (name, bytes) in &plan.in_memory {
        named.push(files.write(&name.to_string_lossy(), &[bytes])?);
    }
    for (name, bytes) in &plan.on_disk {
        let name = name.to_string_lossy().into_owned();
        let durable = files.durable(&name).cloned();
        // Tantivy's files end in their checksum.
        named.push(durable.unwrap_or(NamedFile { name, bytes: *bytes, crc: None, grows: false }));
    }
    named.sort_by(|one, other| one.name.cmp(&other.name));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let state = TantivyState { meta: text(&plan.meta), managed: text(&plan.managed) };
    let checkpoint = files.checkpoint(sequence_of(&state.meta)?, named, state);
    let draft = files.draft(&checkpoint)?;
    Ok((checkpoint, draft))
}

/// The checkpoint is durable: its files are read from disk, and what only an older one named may go.
pub fn accept_checkpoint(directory: &IndexDirectory, files: &mut TextFiles, checkpoint: TextCheckpoint) {
    let mut names = HashSet::with_capacity(checkpoint.files.len());
    for file in &checkpoint.files {
        let name = PathBuf::from(&file.name);
        directory.moved_to_disk(&name, file.bytes);
        names.insert(name);
    }
    // The directory knows which of the other files are still read or written.
    files.accept(checkpoint, &|_| true);
    directory.finish_checkpoint(names);
}
