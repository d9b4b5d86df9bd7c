//! The writer of one index file: a buffer in memory that goes over to disk when it grows too large.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use sundew_base::sparse_file::SparseFile;
use tantivy::directory::{AntiCallToken, TerminatingWrite};

/// Where finished files go.
pub trait FileStore: Send + Sync {
    fn may_stay_in_memory(&self, bytes: usize) -> bool;
    fn create_on_disk(&self, name: &Path) -> io::Result<File>;
    fn finish_on_disk(&self, name: &Path);
    /// The file is not wanted: writing it failed, or was given up.
    fn abandon(&self, name: &Path);
    fn finish_in_memory(&self, name: &Path, bytes: Vec<u8>);
}

/// A file that is dropped before its end leaves nothing behind.
pub struct FileWriter<Store: FileStore> {
    store: Store,
    name: PathBuf,
    buffer: Vec<u8>,
    /// Set once the file has gone over to disk; never synced here.
    file: Option<SparseFile>,
    is_finished: bool,
}

impl<Store: FileStore> FileWriter<Store> {
    pub fn new(store: Store, name: PathBuf) -> Self {
        Self { store, name, buffer: Vec::new(), file: None, is_finished: false }
    }
}

impl<Store: FileStore> Write for FileWriter<Store> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(file) = &mut self.file {
            file.write_all(bytes)?;
            return Ok(bytes.len());
        }
        self.buffer.extend_from_slice(bytes);
        if !self.store.may_stay_in_memory(self.buffer.len()) {
            let mut file = SparseFile::new(self.store.create_on_disk(&self.name)?);
            file.write_all(&self.buffer)?;
            self.buffer = Vec::new();
            self.file = Some(file);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<Store: FileStore> TerminatingWrite for FileWriter<Store> {
    fn terminate_ref(&mut self, _: AntiCallToken) -> io::Result<()> {
        match self.file.take() {
            Some(file) => {
                file.finish()?;
                self.store.finish_on_disk(&self.name);
            }
            None => self.store.finish_in_memory(&self.name, std::mem::take(&mut self.buffer)),
        }
        self.is_finished = true;
        Ok(())
    }
}

impl<Store: FileStore> Drop for FileWriter<Store> {
    fn drop(&mut self) {
        if !self.is_finished {
            self.file = None;
            self.store.abandon(&self.name);
        }
    }
}
