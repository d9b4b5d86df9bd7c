//! Tantivy's directory: young files in memory, older ones on disk, nothing synced but by a checkpoint.
//!
//! Files that a commit leaves unsynced are made again from the documents after a crash, so a commit does not wait for the disk.
//! Files that the last durable checkpoint names stay until a newer one is durable.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use sundew_base::disk::available_bytes;
use tantivy::Directory;
use tantivy::directory::error::{DeleteError, LockError, OpenDirectoryError, OpenReadError, OpenWriteError};
use tantivy::directory::{
    DirectoryLock, FileHandle, FileSlice, Lock, MmapDirectory, OwnedBytes, WatchCallback, WatchHandle, WritePtr,
};

use super::file_writer::{FileStore, FileWriter};
use super::locks::LockTable;
use crate::full_text::errors::of_system;

pub const META_FILE: &str = "meta.json";
pub const MANAGED_FILE: &str = ".managed.json";

#[derive(Clone)]
pub struct IndexDirectory {
    shared: Arc<Shared>,
}

struct Shared {
    /// `None` keeps everything in memory.
    disk: Option<Disk>,
    memory_file_bytes_max: usize,
    memory_files_bytes_max: usize,
    locks: Arc<LockTable>,
    state: Mutex<State>,
}

struct Disk {
    root: PathBuf,
    mapped: MmapDirectory,
}

#[derive(Default)]
struct State {
    memory: HashMap<PathBuf, OwnedBytes>,
    memory_bytes: usize,
    /// Finished files on disk and their bytes.
    on_disk: HashMap<PathBuf, u64>,
    being_written: HashSet<PathBuf>,
    /// Files of merges under way.
    of_merges: HashSet<PathBuf>,
    /// Named by the last durable checkpoint, or by one in the making.
    pinned: HashSet<PathBuf>,
    /// Deleted by Tantivy while pinned.
    deleted_while_pinned: HashSet<PathBuf>,
    /// The two files that Tantivy replaces: never on disk under their own names.
    meta: Option<Vec<u8>>,
    managed: Option<Vec<u8>>,
}

/// The files that a checkpoint has to make durable.
pub struct CheckpointPlan {
    pub meta: Vec<u8>,
    pub managed: Vec<u8>,
    /// Files of the commit that are only in memory.
    pub in_memory: Vec<(PathBuf, OwnedBytes)>,
    /// Files of the commit that are on disk, perhaps unsynced.
    pub on_disk: Vec<(PathBuf, u64)>,
}

/// The files that the last checkpoint named, durable with all of their bytes, and Tantivy's two own files.
pub struct RestoredCheckpoint {
    pub meta: Vec<u8>,
    pub managed: Vec<u8>,
    pub files: HashMap<PathBuf, u64>,
}

impl IndexDirectory {
    pub fn in_memory() -> Self {
        Self::over(None, usize::MAX, usize::MAX, State::default())
    }

    pub fn on_disk(
        root: &Path,
        memory_file_bytes_max: usize,
        memory_files_bytes_max: usize,
        checkpoint: Option<RestoredCheckpoint>,
    ) -> io::Result<Self> {
        let mapped = MmapDirectory::open(root).map_err(|error| match error {
            OpenDirectoryError::IoError { io_error, .. } => of_system(&io_error),
            other => io::Error::other(other.to_string()),
        })?;
        let mut state = State::default();
        if let Some(restored) = checkpoint {
            state.pinned = restored.files.keys().cloned().collect();
            state.on_disk = restored.files;
            state.meta = Some(restored.meta);
            state.managed = Some(restored.managed);
        }
        let disk = Disk { root: root.to_owned(), mapped };
        Ok(Self::over(Some(disk), memory_file_bytes_max, memory_files_bytes_max, state))
    }

    fn over(disk: Option<Disk>, memory_file_bytes_max: usize, memory_files_bytes_max: usize, state: State) -> Self {
        let locks = Arc::new(LockTable::default());
        let shared = Shared { disk, memory_file_bytes_max, memory_files_bytes_max, locks, state: Mutex::new(state) };
        Self { shared: Arc::new(shared) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    pub fn root(&self) -> Option<&Path> {
        self.shared.disk.as_ref().map(|disk| disk.root.as_path())
    }

    /// Bytes on disk and bytes in memory.
    pub fn bytes(&self) -> (u64, u64) {
        let state = self.state();
        (state.on_disk.values().sum(), state.memory_bytes as u64)
    }

    /// Whether the disk has twice the bytes of these files: once for what they are merged into, and once for everything else that
    /// grows meanwhile. False where it does not say so.
    pub fn has_room_to_merge(&self, files: impl Iterator<Item = PathBuf>) -> bool {
        let Some(disk) = &self.shared.disk else { return true };
        let bytes: u64 = {
            let state = self.state();
            files.filter_map(|file| state.on_disk.get(&file)).sum()
        };
        available_bytes(&disk.root).is_ok_and(|available| available / 2 >= bytes)
    }

    fn path_on_disk(&self, name: &Path) -> io::Result<PathBuf> {
        let disk = self.shared.disk.as_ref().ok_or_else(|| io::Error::other("the index has no directory"))?;
        Ok(disk.root.join(name))
    }

    /// A merge that needs these files begins. Where the disk does not take one it fails: the sources serve, and what is
    /// merged may be much more than has come since the last checkpoint.
    pub fn begin_merge(&self, files: &[PathBuf]) {
        self.state().of_merges.extend(files.iter().cloned());
    }

    /// The merge has written its files, or has failed.
    pub fn end_merge(&self, files: &[PathBuf]) {
        let mut state = self.state();
        files.iter().for_each(|file| _ = state.of_merges.remove(file));
    }

    /// The files of the newest commit, which stay from now on until `finish_checkpoint` names them no more.
    pub fn begin_checkpoint(&self, files_of: impl Fn(&[u8]) -> HashSet<PathBuf>) -> Option<CheckpointPlan> {
        let mut state = self.state();
        let meta = state.meta.clone()?;
        let names = files_of(&meta);
        let mut plan = CheckpointPlan {
            meta,
            managed: state.managed.clone().unwrap_or_else(|| b"[]".to_vec()),
            in_memory: Vec::new(),
            on_disk: Vec::new(),
        };
        for name in names {
            if let Some(bytes) = state.memory.get(&name) {
                plan.in_memory.push((name.clone(), bytes.clone()));
            } else if let Some(&bytes) = state.on_disk.get(&name) {
                plan.on_disk.push((name.clone(), bytes));
            } else {
                continue;
            }
            state.pinned.insert(name);
        }
        Some(plan)
    }

    /// From now on the file is read from disk.
    pub fn moved_to_disk(&self, name: &Path, bytes: u64) {
        let mut state = self.state();
        if let Some(held) = state.memory.remove(name) {
            state.memory_bytes -= held.len();
        }
        state.on_disk.insert(name.to_owned(), bytes);
    }

    /// The last durable checkpoint names exactly `files`: what only an older one named, or one that was given up, may go. What
    /// cannot be removed goes when the index is next opened.
    pub fn finish_checkpoint(&self, files: HashSet<PathBuf>) {
        let mut deletable = Vec::new();
        {
            let mut state = self.state();
            let deleted = std::mem::take(&mut state.deleted_while_pinned);
            for name in deleted {
                if files.contains(&name) {
                    state.deleted_while_pinned.insert(name);
                } else if let Some(held) = state.memory.remove(&name) {
                    state.memory_bytes -= held.len();
                } else {
                    state.on_disk.remove(&name);
                    deletable.push(name);
                }
            }
            state.pinned = files;
        }
        for name in deletable {
            let _ = self.path_on_disk(&name).and_then(fs::remove_file);
        }
    }
}

impl fmt::Debug for IndexDirectory {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "IndexDirectory({:?})", self.root())
    }
}

fn not_there(path: &Path) -> OpenReadError {
    OpenReadError::FileDoesNotExist(path.to_owned())
}

impl FileStore for IndexDirectory {
    fn may_stay_in_memory(&self, file_bytes: usize) -> bool {
        self.shared.disk.is_none()
            || (file_bytes <= self.shared.memory_file_bytes_max
                && self.state().memory_bytes + file_bytes <= self.shared.memory_files_bytes_max)
    }

    fn keeps_refused(&self, name: &Path) -> bool {
        !self.state().of_merges.contains(name)
    }

    fn create_on_disk(&self, name: &Path) -> io::Result<File> {
        File::options().read(true).write(true).create_new(true).open(self.path_on_disk(name)?)
    }

    fn finish_on_disk(&self, name: &Path) {
        let bytes = self.path_on_disk(name).and_then(fs::metadata).map_or(0, |metadata| metadata.len());
        let mut state = self.state();
        state.being_written.remove(name);
        state.on_disk.insert(name.to_owned(), bytes);
    }

    fn remove_from_disk(&self, name: &Path) {
        // What cannot be removed now is with the next opening.
        let _ = self.path_on_disk(name).and_then(fs::remove_file);
    }

    fn abandon(&self, name: &Path) {
        self.state().being_written.remove(name);
        self.remove_from_disk(name);
    }

    fn finish_in_memory(&self, name: &Path, mut bytes: Vec<u8>) {
        bytes.shrink_to_fit();
        let mut state = self.state();
        state.being_written.remove(name);
        state.memory_bytes += bytes.len();
        state.memory.insert(name.to_owned(), OwnedBytes::new(bytes));
    }
}

impl Directory for IndexDirectory {
    fn get_file_handle(&self, path: &Path) -> Result<Arc<dyn FileHandle>, OpenReadError> {
        self.open_read(path).map(|slice| Arc::new(slice) as Arc<dyn FileHandle>)
    }

    fn open_read(&self, path: &Path) -> Result<FileSlice, OpenReadError> {
        {
            let state = self.state();
            if let Some(bytes) = state.memory.get(path) {
                return Ok(FileSlice::new(Arc::new(bytes.clone())));
            }
            if !state.on_disk.contains_key(path) {
                return Err(not_there(path));
            }
        }
        match &self.shared.disk {
            Some(disk) => disk.mapped.open_read(path),
            None => Err(not_there(path)),
        }
    }

    fn delete(&self, path: &Path) -> Result<(), DeleteError> {
        {
            let mut state = self.state();
            if state.pinned.contains(path) {
                state.deleted_while_pinned.insert(path.to_owned());
                return Ok(());
            }
            if let Some(bytes) = state.memory.remove(path) {
                state.memory_bytes -= bytes.len();
                return Ok(());
            }
            if state.on_disk.remove(path).is_none() {
                return Err(DeleteError::FileDoesNotExist(path.to_owned()));
            }
        }
        let removed = self.path_on_disk(path).and_then(fs::remove_file);
        removed.map_err(|error| DeleteError::IoError { io_error: Arc::new(error), filepath: path.to_owned() })
    }

    fn exists(&self, path: &Path) -> Result<bool, OpenReadError> {
        let state = self.state();
        Ok(match path.to_str() {
            Some(META_FILE) => state.meta.is_some(),
            Some(MANAGED_FILE) => state.managed.is_some(),
            _ => state.memory.contains_key(path) || state.on_disk.contains_key(path),
        })
    }

    fn open_write(&self, path: &Path) -> Result<WritePtr, OpenWriteError> {
        let mut state = self.state();
        let known = state.memory.contains_key(path) || state.on_disk.contains_key(path);
        if known || !state.being_written.insert(path.to_owned()) {
            return Err(OpenWriteError::FileAlreadyExists(path.to_owned()));
        }
        Ok(WritePtr::new(Box::new(FileWriter::new(self.clone(), path.to_owned()))))
    }

    fn atomic_read(&self, path: &Path) -> Result<Vec<u8>, OpenReadError> {
        let state = self.state();
        let held = match path.to_str() {
            Some(META_FILE) => state.meta.clone(),
            Some(MANAGED_FILE) => state.managed.clone(),
            _ => None,
        };
        held.ok_or_else(|| not_there(path))
    }

    fn atomic_write(&self, path: &Path, data: &[u8]) -> io::Result<()> {
        let mut state = self.state();
        match path.to_str() {
            Some(META_FILE) => state.meta = Some(data.to_vec()),
            Some(MANAGED_FILE) => state.managed = Some(data.to_vec()),
            _ => return Err(io::Error::other(format!("unexpected file {}", path.display()))),
        }
        Ok(())
    }

    fn sync_directory(&self) -> io::Result<()> {
        Ok(())
    }

    fn acquire_lock(&self, lock: &Lock) -> Result<DirectoryLock, LockError> {
        self.shared.locks.acquire(lock)
    }

    /// Readers are reloaded by hand, after a commit.
    fn watch(&self, _: WatchCallback) -> tantivy::Result<WatchHandle> {
        Ok(WatchHandle::empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_merged_where_the_disk_has_twice_their_bytes() {
        let files = [("small", 1), ("large", u64::MAX / 4)].map(|(name, bytes)| (PathBuf::from(name), bytes));
        let restored = RestoredCheckpoint { meta: Vec::new(), managed: Vec::new(), files: files.into() };
        let directory = IndexDirectory::on_disk(&std::env::temp_dir(), 0, 0, Some(restored)).expect("a directory");
        let has_room = |names: &[&str]| directory.has_room_to_merge(names.iter().map(PathBuf::from));
        assert!(has_room(&["small"]));
        assert!(!has_room(&["small", "large"]));
    }
}
