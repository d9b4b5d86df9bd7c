//! The files of an index on disk: immutable files, and `checkpoint.json`, which names those of one commit.
//!
//! A checkpoint writes new files and a draft of `checkpoint.json`; once they are synced, the draft is renamed into place.
//! Files that it does not name are removed afterwards, or by the next `open`. So a crash at any point leaves the older or
//! the newer checkpoint.
//!
//! A checkpoint that cannot be written is given up, with its files, and another one may follow. After a sync that
//! failed none does: the system may have dropped what it could not write, and report the next sync of the same files as
//! done. The index is opened again at the checkpoint that is in place, and that one is written and renamed once more:
//! the files that it names were synced before.

use std::cell::Cell;
use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use memmap2::Mmap;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::disk::{directories_of_checkpoint, sync_each};
use crate::error::{EngineError, damaged, io_failed, unreadable};
use crate::failpoint;
use crate::sparse_file::SparseFile;

const CHECKPOINT: &str = "checkpoint.json";
const CHECKPOINT_DRAFT: &str = "checkpoint.json.draft";
const CHECKPOINT_FORMAT: u32 = 1;
const READ_BYTES: usize = 256 * 1024;

/// Directories in which this process has renamed a draft and not accepted it: whether the checkpoint that is in place
/// is durable is not known.
static IN_DOUBT: LazyLock<Mutex<HashSet<PathBuf>>> = LazyLock::new(Mutex::default);

fn in_doubt() -> MutexGuard<'static, HashSet<PathBuf>> {
    IN_DOUBT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One file of an index, immutable as far as a checkpoint knows it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct NamedFile {
    pub name: String,
    pub bytes: u64,
    /// CRC-32 (IEEE) of these bytes; none where the file carries a checksum of its own.
    pub crc: Option<u32>,
    /// Bytes behind these may have been written after the checkpoint.
    #[serde(default)]
    pub grows: bool,
}

/// The durable state: the files of a commit, and what else the index has to know of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoint<State> {
    pub sequence: u64,
    pub files: Vec<NamedFile>,
    /// Ordinals of documents that the commit lacks because what is stored of them was damaged.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<u32>,
    pub state: State,
}

/// `checkpoint.json`. The format and the fingerprint are read before anything else of it, whatever that is.
#[derive(Serialize, Deserialize)]
struct CheckpointText {
    format: u32,
    fingerprint: String,
    /// CRC-32 of `checkpoint`.
    #[serde(default)]
    crc: u32,
    /// A `Checkpoint` as JSON.
    #[serde(default)]
    checkpoint: String,
}

/// A checkpoint that is written and does not count yet.
pub struct Draft {
    root: PathBuf,
    /// Files that were written since the last checkpoint, the draft among them.
    unsynced: Vec<PathBuf>,
    is_first: bool,
    /// Files that the last checkpoint does not name, and their bytes.
    pub files: usize,
    pub bytes: u64,
}

impl Draft {
    /// Files that have to be durable before `rename`. The names of the files must be durable before a checkpoint speaks of them.
    pub fn unsynced(&self) -> impl Iterator<Item = &Path> {
        self.unsynced.iter().map(PathBuf::as_path).chain(directories_of_checkpoint(&self.root, self.is_first))
    }

    /// Has the index open at this checkpoint; durable once `directory` is synced.
    pub fn rename(&self) -> Result<(), EngineError> {
        failpoint::hit("checkpoint-files.before-rename");
        let renamed = fs::rename(self.root.join(CHECKPOINT_DRAFT), self.root.join(CHECKPOINT));
        renamed.map_err(io_failed("write a checkpoint"))?;
        in_doubt().insert(self.root.clone());
        failpoint::hit("checkpoint-files.after-rename");
        Ok(())
    }

    pub fn directory(&self) -> &Path {
        &self.root
    }
}

/// The directory of an index, and its last durable checkpoint.
pub struct CheckpointFiles<State> {
    root: PathBuf,
    fingerprint: String,
    last: Option<Checkpoint<State>>,
    /// Of the checkpoint that comes next.
    left_out: Vec<u32>,
    /// A draft was written and not accepted: a sync of its files may have failed.
    is_in_doubt: Cell<bool>,
}

impl<State: Serialize + DeserializeOwned> CheckpointFiles<State> {
    /// Reads the last checkpoint of a directory, which is made where it is missing, and removes what it does not name.
    /// `fingerprint` changes with the format of the files and with options that they depend on.
    ///
    /// Errors: `index_damaged`, `index_incompatible` (the remedy for both is an empty directory), and those of
    /// `io_failed` where the checkpoint is in doubt and cannot be made durable.
    pub fn open(root: &Path, fingerprint: String) -> Result<Self, EngineError> {
        fs::create_dir_all(root).map_err(io_failed("create the index directory"))?;
        let (left_out, is_in_doubt) = (Vec::new(), Cell::new(false));
        let mut files = Self { root: root.to_owned(), fingerprint, last: None, left_out, is_in_doubt };
        files.last = match fs::read(root.join(CHECKPOINT)) {
            Ok(text) => Some(files.read_checkpoint(&text)?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(io_failed("read checkpoint.json")(error)),
        };
        for file in files.durable_files() {
            let length = fs::metadata(root.join(&file.name)).map(|metadata| metadata.len());
            if !length.is_ok_and(|length| length == file.bytes || (file.grows && length > file.bytes)) {
                return Err(damaged(format!("{} is missing or has another length", file.name)));
            }
        }
        files.left_out = files.last.as_ref().map_or_else(Vec::new, |last| last.left_out.clone());
        files.remove_strays(&|_| false);
        if in_doubt().contains(root) {
            files.last.as_ref().map_or(Ok(()), |last| files.write_again(last))?;
            in_doubt().remove(root);
        }
        Ok(files)
    }

    /// Makes a checkpoint durable that is in place: a new file, a new name and a new sync owe nothing to a sync that failed.
    fn write_again(&self, last: &Checkpoint<State>) -> Result<(), EngineError> {
        let draft = self.write_draft(last)?;
        let failed = io_failed("sync a checkpoint");
        sync_each([draft.as_path()].into_iter()).map_err(&failed)?;
        fs::rename(draft, self.root.join(CHECKPOINT)).map_err(&failed)?;
        sync_each(directories_of_checkpoint(&self.root, true).into_iter()).map_err(&failed)
    }

    fn read_checkpoint(&self, text: &[u8]) -> Result<Checkpoint<State>, EngineError> {
        let broken = |error: serde_json::Error| damaged(format!("{CHECKPOINT}: {error}"));
        let text: CheckpointText = serde_json::from_slice(text).map_err(broken)?;
        if text.format != CHECKPOINT_FORMAT || text.fingerprint != self.fingerprint {
            return Err(EngineError::new(
                "index_incompatible",
                "the index was made with other options or by another format",
            ));
        }
        if crc32fast::hash(text.checkpoint.as_bytes()) != text.crc {
            return Err(damaged(format!("{CHECKPOINT}: the checksum does not match")));
        }
        serde_json::from_str(&text.checkpoint).map_err(broken)
    }

    /// The last durable checkpoint; none before the first.
    pub fn last(&self) -> Option<&Checkpoint<State>> {
        self.last.as_ref()
    }

    /// Files of the last checkpoint.
    pub fn durable_files(&self) -> &[NamedFile] {
        self.last.as_ref().map_or(&[], |last| &last.files)
    }

    /// A file of the last checkpoint.
    pub fn durable(&self, name: &str) -> Option<&NamedFile> {
        self.durable_files().iter().find(|file| file.name == name)
    }

    /// As `durable`. Error: `index_damaged`.
    pub fn named(&self, name: &str) -> Result<&NamedFile, EngineError> {
        self.durable(name).ok_or_else(|| damaged(format!("the checkpoint does not name {name}")))
    }

    /// Bytes of the last checkpoint.
    pub fn bytes(&self) -> u64 {
        self.durable_files().iter().map(|file| file.bytes).sum()
    }

    /// As `DerivedIndex::left_out`.
    pub fn left_out(&self) -> &[u32] {
        &self.left_out
    }

    /// As `DerivedIndex::leave_out`.
    pub fn leave_out(&mut self, ordinals: Vec<u32>) {
        self.left_out = ordinals;
    }

    /// To be called before the first file of a checkpoint is written. Fails behind a draft that was not accepted:
    /// whether it counts is not known, so its files stay as they are until the index is opened again.
    pub fn begin(&self) -> Result<(), EngineError> {
        if self.is_in_doubt.get() {
            return Err(EngineError::internal("the last checkpoint was not synced: the index is to be opened again"));
        }
        Ok(())
    }

    /// The checkpoint of a commit, which says what is left out now.
    pub fn checkpoint(&self, sequence: u64, files: Vec<NamedFile>, state: State) -> Checkpoint<State> {
        Checkpoint { sequence, files, left_out: self.left_out.clone(), state }
    }

    /// Writes a file that the last checkpoint does not name; the next one syncs it. `parts` follow one another.
    pub fn write(&self, name: &str, parts: &[&[u8]]) -> Result<NamedFile, EngineError> {
        write_index_file(&self.root, name, parts)
    }

    /// Writes a checkpoint beside the last one; its files have been written. None when it is the last one. Once the draft
    /// is durable under its name, `accept` has to hear of it: until it does, there is no other draft. Where this fails, `give_up`
    /// is to be called.
    pub fn draft(&self, checkpoint: &Checkpoint<State>) -> Result<Option<Draft>, EngineError>
    where
        State: PartialEq,
    {
        if self.last.as_ref() == Some(checkpoint) {
            return Ok(None);
        }
        self.begin()?;
        failpoint::hit("checkpoint-files.before-draft");
        let path = self.write_draft(checkpoint)?;
        let known: HashSet<&NamedFile> = self.durable_files().iter().collect();
        let new: Vec<&NamedFile> = checkpoint.files.iter().filter(|file| !known.contains(file)).collect();
        let (files, bytes) = (new.len(), new.iter().map(|file| file.bytes).sum());
        let unsynced = new.into_iter().map(|file| self.root.join(&file.name)).chain([path]).collect();
        self.is_in_doubt.set(true);
        failpoint::hit("checkpoint-files.before-sync");
        Ok(Some(Draft { root: self.root.clone(), unsynced, is_first: self.last.is_none(), files, bytes }))
    }

    fn write_draft(&self, checkpoint: &Checkpoint<State>) -> Result<PathBuf, EngineError> {
        let internal = |error: serde_json::Error| EngineError::internal(format!("checkpoint: {error}"));
        let text = serde_json::to_string(checkpoint).map_err(internal)?;
        let text = CheckpointText {
            format: CHECKPOINT_FORMAT,
            fingerprint: self.fingerprint.clone(),
            crc: crc32fast::hash(text.as_bytes()),
            checkpoint: text,
        };
        let text = serde_json::to_vec(&text).map_err(internal)?;
        let path = self.root.join(CHECKPOINT_DRAFT);
        let write = || File::create(&path).and_then(|mut file| file.write_all(&text));
        write().map_err(io_failed("write a checkpoint"))?;
        Ok(path)
    }

    /// The checkpoint is durable. Removes files that it does not name, but for those of which `is_in_use` says that they
    /// are.
    pub fn accept(&mut self, checkpoint: Checkpoint<State>, is_in_use: &dyn Fn(&str) -> bool) {
        failpoint::hit("checkpoint-files.before-removal");
        self.last = Some(checkpoint);
        self.is_in_doubt.set(false);
        in_doubt().remove(&self.root);
        self.remove_strays(is_in_use);
        failpoint::hit("checkpoint-files.after-removal");
    }

    /// A checkpoint could not be written: removes what there is of it, so that it takes no room. Files are left of
    /// which `is_in_use` says that they are.
    pub fn give_up(&self, is_in_use: &dyn Fn(&str) -> bool) {
        self.remove_strays(&|name| name != CHECKPOINT_DRAFT && is_in_use(name));
    }

    /// The bytes of a file that a checkpoint names. Only its length is checked.
    pub fn map(&self, file: &NamedFile) -> Result<Mmap, EngineError> {
        let open = || -> io::Result<Mmap> {
            let opened = File::open(self.root.join(&file.name))?;
            // SAFETY: files of an index are written once, before they are named, and removed but never changed or
            // shortened; a removed file stays readable through its map.
            unsafe { Mmap::map(&opened) }
        };
        let map = open().map_err(|error| unreadable(&file.name, &error))?;
        if map.len() as u64 != file.bytes {
            return Err(damaged(format!("{} has another length", file.name)));
        }
        Ok(map)
    }

    /// The bytes of a file whose checksum they match. Error: `index_damaged`.
    pub fn read(&self, file: &NamedFile) -> Result<Vec<u8>, EngineError> {
        let bytes = fs::read(self.root.join(&file.name)).map_err(|error| unreadable(&file.name, &error))?;
        if bytes.len() as u64 != file.bytes || file.crc != Some(crc32fast::hash(&bytes)) {
            return Err(damaged(format!("{}: the checksum does not match", file.name)));
        }
        Ok(bytes)
    }

    /// Reads every file of the last checkpoint and compares its checksum. Error: `index_damaged`.
    pub fn verify(&self) -> Result<(), EngineError> {
        self.durable_files().iter().try_for_each(|file| self.verify_file(file))
    }

    fn verify_file(&self, file: &NamedFile) -> Result<(), EngineError> {
        let checksum = || -> io::Result<u32> {
            let mut opened = File::open(self.root.join(&file.name))?.take(file.bytes);
            let (mut crc, mut buffer) = (crc32fast::Hasher::new(), vec![0; READ_BYTES]);
            loop {
                match opened.read(&mut buffer)? {
                    0 => return Ok(crc.finalize()),
                    count => crc.update(&buffer[..count]),
                }
            }
        };
        match checksum() {
            Ok(crc) if file.crc.is_none_or(|expected| crc == expected) => Ok(()),
            Ok(_) => Err(damaged(format!("{}: the checksum does not match", file.name))),
            Err(error) => Err(unreadable(&file.name, &error)),
        }
    }

    /// A file that cannot be removed costs only room until the next time.
    fn remove_strays(&self, is_in_use: &dyn Fn(&str) -> bool) {
        let named = self.durable_files().iter().map(|file| file.name.as_str());
        let kept: HashSet<&str> = named.chain([CHECKPOINT]).collect();
        for entry in fs::read_dir(&self.root).into_iter().flatten().flatten() {
            if !entry.file_name().to_str().is_some_and(|name| kept.contains(name) || is_in_use(name)) {
                let _ = fs::remove_file(entry.path());
            }
        }
    }
}

/// Writes a file of an index, which the next checkpoint may name, and then syncs. `parts` follow one another.
pub fn write_index_file(root: &Path, name: &str, parts: &[&[u8]]) -> Result<NamedFile, EngineError> {
    let mut crc = crc32fast::Hasher::new();
    let mut bytes = 0;
    let mut write = || -> io::Result<()> {
        let mut file = SparseFile::new(File::create(root.join(name))?);
        for part in parts {
            file.write_all(part)?;
            crc.update(part);
            bytes += part.len() as u64;
        }
        file.finish()
    };
    write().map_err(io_failed("write an index file"))?;
    failpoint::hit("checkpoint-files.after-file");
    Ok(NamedFile { name: name.to_owned(), bytes, crc: Some(crc.finalize()), grows: false })
}
