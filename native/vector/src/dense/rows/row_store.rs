//! The float32 rows of a graph, which are read for exact distances: in memory, or in a file that is mapped. Graphs that
//! grow out of one another share the file; each sees the rows that it began with and those that it added behind them.

use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use memmap2::Mmap;
use sundew_base::error::EngineError;

use sundew_base::error::{damaged, io_failed};

/// Names of the row files that are in use; they are not removed though no checkpoint names them.
#[derive(Debug, Clone, Default)]
pub struct FilesInUse(Arc<Mutex<HashSet<String>>>);

impl FilesInUse {
    pub fn contains(&self, name: &str) -> bool {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).contains(name)
    }

    fn change(&self, change: impl FnOnce(&mut HashSet<String>)) {
        change(&mut self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner()));
    }
}

pub struct RowFile {
    pub name: String,
    path: PathBuf,
    in_use: FilesInUse,
}

impl RowFile {
    pub fn new(root: &Path, name: String, in_use: &FilesInUse) -> Arc<Self> {
        in_use.change(|names| {
            names.insert(name.clone());
        });
        Arc::new(Self { path: root.join(&name), name, in_use: in_use.clone() })
    }
}

impl Drop for RowFile {
    fn drop(&mut self) {
        self.in_use.change(|names| {
            names.remove(&self.name);
        });
    }
}

pub enum RowStore {
    Memory(Vec<f32>),
    File(MappedRows),
}

pub struct MappedRows {
    pub file: Arc<RowFile>,
    map: Mmap,
    /// CRC-32 of the rows.
    pub crc: u32,
}

impl MappedRows {
    /// `bytes` of rows at the beginning of the file.
    pub fn map(file: Arc<RowFile>, bytes: usize, crc: u32) -> Result<Self, EngineError> {
        let handle = File::open(&file.path).map_err(|error| damaged(format!("{}: {error}", file.name)))?;
        let length = handle.metadata().map_err(io_failed("open a row file"))?.len();
        if length < bytes as u64 {
            return Err(damaged(format!("{} has {length} bytes, fewer than {bytes}", file.name)));
        }
        // SAFETY: bytes that a graph sees are never written again; whoever truncates them breaks the data directory.
        let map =
            unsafe { memmap2::MmapOptions::new().len(bytes).map(&handle) }.map_err(io_failed("map a row file"))?;
        #[cfg(unix)]
        {
            // A search reads a few rows here and there.
            let _ = map.advise(memmap2::Advice::Random);
        }
        Ok(Self { file, map, crc })
    }

    pub fn bytes(&self) -> usize {
        self.map.len()
    }

    /// Writes rows behind those of `earlier`, or at the beginning of `file`.
    pub fn append<'a>(
        file: Arc<RowFile>,
        earlier: Option<&Self>,
        added: impl Iterator<Item = &'a [f32]>,
    ) -> Result<Self, EngineError> {
        let failed = io_failed("write a row file");
        let mut bytes = earlier.map_or(0, |earlier| earlier.map.len());
        let mut hasher = earlier.map_or_else(crc32fast::Hasher::new, |rows| {
            crc32fast::Hasher::new_with_initial_len(rows.crc, bytes as u64)
        });
        let mut handle =
            OpenOptions::new().write(true).create(true).truncate(false).open(&file.path).map_err(&failed)?;
        handle.set_len(bytes as u64).map_err(&failed)?;
        handle.seek(SeekFrom::Start(bytes as u64)).map_err(&failed)?;
        let mut writer = BufWriter::with_capacity(1 << 20, handle);
        let mut row = Vec::new();
        for vector in added {
            row.clear();
            row.extend(vector.iter().flat_map(|value| value.to_le_bytes()));
            hasher.update(&row);
            writer.write_all(&row).map_err(&failed)?;
            bytes += row.len();
        }
        writer.flush().map_err(&failed)?;
        Self::map(file, bytes, hasher.finalize())
    }
}

impl RowStore {
    pub fn vector(&self, row: u32, dimension: usize) -> &[f32] {
        let start = row as usize * dimension;
        match self {
            Self::Memory(values) => &values[start..start + dimension],
            Self::File(rows) => {
                let bytes = &rows.map[4 * start..4 * (start + dimension)];
                // SAFETY: any bytes are floats; a map begins at a page, so rows are aligned to 4.
                unsafe { std::slice::from_raw_parts(bytes.as_ptr().cast(), dimension) }
            }
        }
    }

    pub fn memory_bytes(&self) -> usize {
        match self {
            Self::Memory(values) => values.len() * 4,
            Self::File(_) => 0,
        }
    }
}
