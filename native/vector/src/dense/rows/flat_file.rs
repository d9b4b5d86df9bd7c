//! Files of rows without a graph (all little-endian): ordinals u32, sequences u64, vectors f32, numbers u16, each column as
//! a whole.

use std::sync::Arc;

use sundew_base::checkpoint_files::{NamedFile, write_index_file};
use sundew_base::error::EngineError;
use sundew_base::plain_bytes::bytes_of;

use super::flat_rows::FlatRows;
use super::row_store::{MappedRows, RowStore};
use crate::dense::segment_files::{SegmentFile, SegmentFiles, WrittenFile};

pub fn flat_file_name(segment_id: u64) -> String {
    format!("{segment_id}.flat")
}

/// Writes rows that lie in memory.
pub fn write_flat_rows(files: &SegmentFiles, segment_id: u64, rows: &FlatRows) -> Result<NamedFile, EngineError> {
    let RowStore::Memory(values) = &rows.values else { unreachable!("rows of a file are not written again") };
    let columns = [bytes_of(&rows.ordinals), bytes_of(&rows.sequences), bytes_of(values), bytes_of(&rows.numbers)];
    write_index_file(files.root(), &flat_file_name(segment_id), &columns)
}

/// Has the vectors of rows lie in a file that no checkpoint names yet. They stay in memory where it cannot be written.
pub fn spill_flat_rows(files: &SegmentFiles, segment_id: u64, rows: &mut FlatRows) {
    let file = files.new_file(flat_file_name(segment_id));
    let written = write_flat_rows(files, segment_id, rows);
    // The next checkpoint meets what is wrong with the disk.
    let _ = written.and_then(|named| map_flat_rows(rows, file, &named));
}

/// Has the vectors of rows lie in the file that holds the same.
pub fn map_flat_rows(rows: &mut FlatRows, file: Arc<SegmentFile>, named: &NamedFile) -> Result<(), EngineError> {
    let (count, dimension) = (rows.len(), rows.dimension);
    rows.values = RowStore::File(MappedRows::map(WrittenFile::of(file, named)?, 12 * count, 4 * dimension * count)?);
    Ok(())
}

/// `None` where the bytes have another length than the rows.
pub fn decode_flat_rows(bytes: &[u8], count: usize, dimension: usize) -> Option<FlatRows> {
    if bytes.len() != count * (14 + 4 * dimension) {
        return None;
    }
    let (ordinals, bytes) = bytes.split_at(4 * count);
    let (sequences, bytes) = bytes.split_at(8 * count);
    let (values, numbers) = bytes.split_at(4 * count * dimension);
    let values = values.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
    Some(FlatRows {
        dimension,
        ordinals: ordinals.as_chunks::<4>().0.iter().map(|bytes| u32::from_le_bytes(*bytes)).collect(),
        numbers: numbers.as_chunks::<2>().0.iter().map(|bytes| u16::from_le_bytes(*bytes)).collect(),
        sequences: sequences.as_chunks::<8>().0.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect(),
        values: RowStore::Memory(values),
    })
}
