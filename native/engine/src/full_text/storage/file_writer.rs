//! The writer of one index file: a buffer in memory that goes over to disk when it grows too large.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use sundew_base::error::is_refused;
use sundew_base::sparse_file::SparseFile;
use tantivy::directory::{AntiCallToken, TerminatingWrite};

/// Where finished files go.
pub trait FileStore: Send + Sync {
    fn may_stay_in_memory(&self, bytes: usize) -> bool;
    /// Whether a file that the disk does not take stays in memory, however large it is.
    fn keeps_refused(&self, name: &Path) -> bool;
    /// Readable as well.
    fn create_on_disk(&self, name: &Path) -> io::Result<File>;
    fn finish_on_disk(&self, name: &Path);
    /// The file on disk is not wanted: writing it failed, or was given up.
    fn remove_from_disk(&self, name: &Path);
    fn abandon(&self, name: &Path);
    fn finish_in_memory(&self, name: &Path, bytes: Vec<u8>);
}

/// A file that is dropped before its end leaves nothing behind.
pub struct FileWriter<Store: FileStore> {
    store: Store,
    name: PathBuf,
    buffer: Vec<u8>,
    /// Set while the file is on disk; never synced here.
    file: Option<OnDisk>,
    /// The disk did not take it: it stays in memory.
    is_refused: bool,
    is_finished: bool,
}

struct OnDisk {
    file: SparseFile,
    bytes: usize,
}

impl<Store: FileStore> FileWriter<Store> {
    pub fn new(store: Store, name: PathBuf) -> Self {
        Self { store, name, buffer: Vec::new(), file: None, is_refused: false, is_finished: false }
    }

    fn go_to_disk(&mut self) -> io::Result<()> {
        let mut file = SparseFile::new(self.store.create_on_disk(&self.name)?);
        file.write_all(&self.buffer)?;
        self.file = Some(OnDisk { file, bytes: self.buffer.len() });
        self.buffer = Vec::new();
        Ok(())
    }

    /// Takes the file into memory, as it was before the call that failed with this error, or fails with it.
    fn stay_in_memory(&mut self, error: io::Error) -> io::Result<()> {
        if !is_refused(&error) || !self.store.keeps_refused(&self.name) {
            return Err(error);
        }
        if let Some(OnDisk { mut file, bytes }) = self.file.take() {
            self.buffer = file.read_back(bytes)?;
        }
        self.store.remove_from_disk(&self.name);
        self.is_refused = true;
        Ok(())
    }
}

impl<Store: FileStore> Write for FileWriter<Store> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(on_disk) = &mut self.file {
            match on_disk.file.write_all(bytes) {
                Ok(()) => on_disk.bytes += bytes.len(),
                Err(error) => {
                    self.stay_in_memory(error)?;
                    self.buffer.extend_from_slice(bytes);
                }
            }
            return Ok(bytes.len());
        }
        self.buffer.extend_from_slice(bytes);
        if !self.is_refused && !self.store.may_stay_in_memory(self.buffer.len()) {
            self.go_to_disk().or_else(|error| self.stay_in_memory(error))?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<Store: FileStore> TerminatingWrite for FileWriter<Store> {
    fn terminate_ref(&mut self, _: AntiCallToken) -> io::Result<()> {
        let finished = self.file.as_mut().map_or(Ok(()), |on_disk| on_disk.file.finish());
        finished.or_else(|error| self.stay_in_memory(error))?;
        match self.file.take() {
            Some(_) => self.store.finish_on_disk(&self.name),
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

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    /// A full disk, which makes files and takes no bytes.
    #[derive(Clone)]
    struct FullDisk {
        keeps_refused: bool,
        kept: Arc<Mutex<Option<Vec<u8>>>>,
    }

    impl FileStore for FullDisk {
        fn may_stay_in_memory(&self, bytes: usize) -> bool {
            bytes <= 4
        }

        fn keeps_refused(&self, _: &Path) -> bool {
            self.keeps_refused
        }

        fn create_on_disk(&self, _: &Path) -> io::Result<File> {
            File::options().read(true).write(true).open("/dev/full")
        }

        fn finish_on_disk(&self, _: &Path) {
            unreachable!("the disk takes nothing");
        }

        fn remove_from_disk(&self, _: &Path) {}

        fn abandon(&self, _: &Path) {}

        fn finish_in_memory(&self, _: &Path, bytes: Vec<u8>) {
            *self.kept.lock().expect("a lock") = Some(bytes);
        }
    }

    /// What is kept of a file that is written in these pieces, and how that ends.
    fn write(pieces: &[usize], keeps_refused: bool) -> (Option<Vec<u8>>, io::Result<()>) {
        let kept = Arc::default();
        let store = FullDisk { keeps_refused, kept: Arc::clone(&kept) };
        let mut writer = FileWriter::new(store, PathBuf::from("a.idx"));
        let written = pieces.iter().zip(1..).try_for_each(|(&bytes, fill)| writer.write_all(&vec![fill; bytes]));
        let outcome = written.and_then(|()| writer.terminate());
        let kept = kept.lock().expect("a lock").take();
        (kept, outcome)
    }

    /// Full at the first bytes, at later ones, at the end, and never.
    #[test]
    fn a_file_that_the_disk_does_not_take_stays_in_memory_as_it_is() {
        for pieces in [&[9_000, 20][..], &[5, 4_000, 9_000, 7], &[5, 300], &[4]] {
            let whole: Vec<u8> = pieces.iter().zip(1..).flat_map(|(&bytes, fill)| vec![fill; bytes]).collect();
            let (kept, outcome) = write(pieces, true);
            outcome.expect("written");
            assert!(kept == Some(whole), "{pieces:?}");
        }
    }

    #[test]
    fn a_file_that_is_not_to_be_kept_then_fails() {
        for pieces in [&[9_000, 20][..], &[5, 4_000, 9_000, 7], &[5, 300]] {
            let (kept, outcome) = write(pieces, false);
            assert_eq!(outcome.expect_err("a full disk").kind(), io::ErrorKind::StorageFull);
            assert_eq!(kept, None);
        }
    }
}
