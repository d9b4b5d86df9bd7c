//! Files of segments, most of which are written before a checkpoint names them.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use sundew_base::checkpoint_files::NamedFile;
use sundew_base::error::{EngineError, damaged};

/// The directory of an index, and which files of it are in use: these are not removed though no checkpoint names them.
#[derive(Debug, Clone)]
pub struct SegmentFiles {
    root: PathBuf,
    in_use: Arc<Mutex<InUse>>,
}

#[derive(Debug, Default)]
struct InUse {
    names: HashSet<String>,
    /// The directory may belong to another opening of the index, which gives the same names again.
    is_closed: bool,
}

impl SegmentFiles {
    pub fn new(root: &Path) -> Self {
        Self { root: root.to_owned(), in_use: Arc::default() }
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// A file that is about to be written. It is removed when nobody uses it any more, unless a checkpoint has named it
    /// meanwhile: then that is left to a later one.
    pub fn new_file(&self, name: String) -> Arc<SegmentFile> {
        self.file(name, false)
    }

    /// A file that the last checkpoint names.
    pub fn named_file(&self, name: &str) -> Arc<SegmentFile> {
        self.file(name.to_owned(), true)
    }

    fn file(&self, name: String, is_named: bool) -> Arc<SegmentFile> {
        self.lock().names.insert(name.clone());
        Arc::new(SegmentFile { name, files: self.clone(), is_named: AtomicBool::new(is_named) })
    }

    pub fn is_in_use(&self, name: &str) -> bool {
        self.lock().names.contains(name)
    }

    /// From here on no file is removed.
    pub fn close(&self) {
        self.lock().is_closed = true;
    }

    fn lock(&self) -> MutexGuard<'_, InUse> {
        self.in_use.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

#[derive(Debug)]
pub struct SegmentFile {
    pub name: String,
    files: SegmentFiles,
    is_named: AtomicBool,
}

impl SegmentFile {
    pub fn path(&self) -> PathBuf {
        self.files.root.join(&self.name)
    }
}

impl Drop for SegmentFile {
    fn drop(&mut self) {
        let mut in_use = self.files.lock();
        in_use.names.remove(&self.name);
        if !in_use.is_closed && !self.is_named.load(Ordering::Relaxed) {
            // What cannot be removed now is removed by the next checkpoint.
            let _ = fs::remove_file(self.path());
        }
    }
}

/// A file of a segment as far as the segment reads it.
#[derive(Debug, Clone)]
pub struct WrittenFile {
    pub file: Arc<SegmentFile>,
    pub bytes: u64,
    /// CRC-32 of these bytes.
    pub crc: u32,
    /// Another segment may write behind these bytes.
    pub grows: bool,
}

impl WrittenFile {
    /// Error: `index_damaged` for a file without a checksum.
    pub fn of(file: Arc<SegmentFile>, named: &NamedFile) -> Result<Self, EngineError> {
        assert_eq!(file.name, named.name);
        let crc = named.crc.ok_or_else(|| damaged(format!("{} has no checksum", named.name)))?;
        Ok(Self { file, bytes: named.bytes, crc, grows: named.grows })
    }

    /// For a checkpoint, which removes the file from here on.
    pub fn named(&self) -> NamedFile {
        self.file.is_named.store(true, Ordering::Relaxed);
        NamedFile { name: self.file.name.clone(), bytes: self.bytes, crc: Some(self.crc), grows: self.grows }
    }
}
