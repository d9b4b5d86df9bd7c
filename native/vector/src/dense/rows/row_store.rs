//! The float32 rows of a segment, in memory, or in a file that is mapped. Graphs that grow out of one another share the
//! file; each sees the rows that it began with and those that it added behind them.

use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Seek, SeekFrom, Write};
use std::sync::Arc;

use memmap2::{Advice, Mmap, MmapOptions};
use sundew_base::error::EngineError;

use crate::dense::segment_files::{SegmentFile, WrittenFile};
use sundew_base::error::{damaged, io_failed, unreadable};

pub enum RowStore {
    Memory(Vec<f32>),
    File(MappedRows),
}

pub struct MappedRows {
    pub written: WrittenFile,
    map: Mmap,
}

impl MappedRows {
    /// The `bytes` of rows that begin at byte `offset`, a multiple of four.
    pub fn map(written: WrittenFile, offset: usize, bytes: usize) -> Result<Self, EngineError> {
        assert_eq!(offset % align_of::<f32>(), 0, "rows of a map are read in place");
        let name = &written.file.name;
        let handle = File::open(written.file.path()).map_err(|error| unreadable(name, &error))?;
        let length = handle.metadata().map_err(io_failed("open a row file"))?.len();
        if length < (offset + bytes) as u64 {
            return Err(damaged(format!("{name} has {length} bytes, fewer than {}", offset + bytes)));
        }
        // SAFETY: bytes that a segment sees are never written again; whoever truncates them breaks the data directory.
        let map = unsafe { MmapOptions::new().offset(offset as u64).len(bytes).map(&handle) };
        Ok(Self { map: map.map_err(io_failed("map a row file"))?, written })
    }

    /// The rows of a graph: a search reads a few here and there.
    pub fn map_scattered(written: WrittenFile) -> Result<Self, EngineError> {
        let bytes = written.bytes as usize;
        let rows = Self::map(written, 0, bytes)?;
        #[cfg(unix)]
        {
            let _ = rows.map.advise(Advice::Random);
        }
        Ok(rows)
    }

    /// Writes rows of a graph behind those of `earlier`, or at the beginning of `file`.
    pub fn append<'a>(
        file: Arc<SegmentFile>,
        earlier: Option<&Self>,
        added: impl Iterator<Item = &'a [f32]>,
    ) -> Result<Self, EngineError> {
        let failed = io_failed("write a row file");
        let mut bytes = earlier.map_or(0, |earlier| earlier.written.bytes);
        let mut hasher = earlier.map_or_else(crc32fast::Hasher::new, |earlier| {
            crc32fast::Hasher::new_with_initial_len(earlier.written.crc, bytes)
        });
        let mut handle =
            OpenOptions::new().write(true).create(true).truncate(false).open(file.path()).map_err(&failed)?;
        handle.set_len(bytes).map_err(&failed)?;
        handle.seek(SeekFrom::Start(bytes)).map_err(&failed)?;
        let mut writer = BufWriter::with_capacity(1 << 20, handle);
        let mut row = Vec::new();
        for vector in added {
            row.clear();
            row.extend(vector.iter().flat_map(|value| value.to_le_bytes()));
            hasher.update(&row);
            writer.write_all(&row).map_err(&failed)?;
            bytes += row.len() as u64;
        }
        writer.flush().map_err(&failed)?;
        Self::map_scattered(WrittenFile { file, bytes, crc: hasher.finalize(), grows: true })
    }
}

impl RowStore {
    pub fn vector(&self, row: u32, dimension: usize) -> &[f32] {
        let start = row as usize * dimension;
        match self {
            Self::Memory(values) => &values[start..start + dimension],
            Self::File(rows) => {
                let bytes = &rows.map[4 * start..4 * (start + dimension)];
                // SAFETY: every four bytes are a float, and `map` has checked that the first row begins at a multiple of four.
                unsafe { std::slice::from_raw_parts(bytes.as_ptr().cast(), dimension) }
            }
        }
    }

    pub fn push(&mut self, vector: &[f32]) {
        match self {
            Self::Memory(values) => values.extend_from_slice(vector),
            Self::File(_) => unreachable!("rows of a file are never written"),
        }
    }

    pub fn memory_bytes(&self) -> usize {
        match self {
            Self::Memory(values) => values.len() * 4,
            Self::File(_) => 0,
        }
    }

    /// None in memory.
    pub fn written(&self) -> Option<&WrittenFile> {
        match self {
            Self::Memory(_) => None,
            Self::File(rows) => Some(&rows.written),
        }
    }
}
