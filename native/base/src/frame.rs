//! The document frame: many row operations in one byte string, the form in which documents cross the native
//! boundary. Little-endian; offsets count from the start of the frame. `src/lib/document-frame.ts` is its twin.
//!
//! ```text
//! header 32 bytes   0 magic u32, 4 version u16, 6 flags u16, 8 row count u32, 12 heap offset u32, 16 heap bytes u32
//! row    48 bytes   0 kind u8, 1 flags u8, 2 written ms (bits 32 to 47) u16, 4 ordinal u32, 8 sequence u64,
//!                   16 TTL base ms i64, 24 key offset u32, 28 key bytes u32, 32 body offset u32, 36 body bytes u32,
//!                   40 crc u32, 44 written ms (bits 0 to 31) u32
//! heap              keys (UTF-8) and bodies (UTF-8 JSON objects; of part rows as in `part`)
//! ```
//! All other bytes are zero.
//!
//! A part row belongs to the document of its key and takes a sequence of its own. Where its TTL base is not 0, it applies
//! only while the document has that sequence. A state row sets, or with an empty body removes, what the server notes about
//! its own work under the row's key: it has no ordinal and no sequence, and is of no concern to indexes.

use crate::error::EngineError;

/// "SDF1"
pub const FRAME_MAGIC: u32 = 0x3146_4453;
pub const FRAME_VERSION: u16 = 1;
pub const HEADER_BYTES: usize = 32;
pub const ROW_BYTES: usize = 48;
/// Of 48 bits: the year 10889.
const WRITTEN_MS_MAX: u64 = (1 << 48) - 1;
/// Row flag: the ordinal is new in this generation.
pub const ROW_ORDINAL_IS_NEW: u8 = 1;
/// Flag of a row of edges on its way to the writer: declared edges that the document has stay.
pub const ROW_KEEPS_DECLARED: u8 = 4;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowKind {
    Put,
    Delete,
    Transform,
    /// A part of the document of the key; `part` says what the body holds.
    PartPut,
    PartDelete,
    /// A note of the server about its own work.
    State,
}

impl RowKind {
    pub fn from_code(code: u8) -> Option<Self> {
        match code {
            1 => Some(Self::Put),
            2 => Some(Self::Delete),
            3 => Some(Self::Transform),
            4 => Some(Self::PartPut),
            5 => Some(Self::PartDelete),
            6 => Some(Self::State),
            _ => None,
        }
    }

    pub fn code(self) -> u8 {
        match self {
            Self::Put => 1,
            Self::Delete => 2,
            Self::Transform => 3,
            Self::PartPut => 4,
            Self::PartDelete => 5,
            Self::State => 6,
        }
    }
}

/// One row of a frame, borrowed from its bytes.
#[derive(Debug, Clone, Copy)]
pub struct Row<'a> {
    pub kind: RowKind,
    pub flags: u8,
    pub ordinal: u32,
    pub sequence: u64,
    /// Milliseconds since 1970, or 0 when the row never expires.
    pub ttl_base_ms: i64,
    /// When the document was written, in milliseconds since 1970; 0 where its body says so itself (`_timestamp`).
    pub written_ms: u64,
    pub key: &'a str,
    pub body: &'a [u8],
    /// CRC-32 (IEEE) of `body`.
    pub crc: u32,
}

impl Row<'_> {
    pub fn ordinal_is_new(&self) -> bool {
        self.flags & ROW_ORDINAL_IS_NEW != 0
    }
}

/// A frame whose header has been checked. Rows are checked as they are read.
#[derive(Debug, Clone, Copy)]
pub struct Frame<'a> {
    bytes: &'a [u8],
    row_count: usize,
}

impl<'a> Frame<'a> {
    pub fn parse(bytes: &'a [u8]) -> Result<Self, EngineError> {
        if bytes.len() < HEADER_BYTES || u32_at(bytes, 0) != FRAME_MAGIC {
            return Err(EngineError::internal("not a document frame"));
        }
        let version = u16::from_le_bytes([bytes[4], bytes[5]]);
        if version != FRAME_VERSION {
            return Err(EngineError::internal(format!("document frame of unknown version {version}")));
        }
        let row_count = u32_at(bytes, 8) as usize;
        let heap_offset = u32_at(bytes, 12) as usize;
        let heap_bytes = u32_at(bytes, 16) as usize;
        let rows_end = HEADER_BYTES as u64 + ROW_BYTES as u64 * row_count as u64;
        if heap_offset as u64 != rows_end || heap_offset as u64 + heap_bytes as u64 != bytes.len() as u64 {
            return Err(EngineError::internal("document frame whose lengths do not add up"));
        }
        Ok(Self { bytes, row_count })
    }

    pub fn row_count(&self) -> usize {
        self.row_count
    }

    /// Row `index`, counted from 0; it must be below `row_count`.
    pub fn row(&self, index: usize) -> Result<Row<'a>, EngineError> {
        assert!(index < self.row_count, "row {index} of a frame of {} rows", self.row_count);
        let at = HEADER_BYTES + index * ROW_BYTES;
        let record = &self.bytes[at..at + ROW_BYTES];
        let kind = RowKind::from_code(record[0]).ok_or_else(|| {
            EngineError::internal(format!("document frame: row {index} of unknown kind {}", record[0]))
        })?;
        let key = self.heap_slice(u32_at(record, 24), u32_at(record, 28), index)?;
        let key = std::str::from_utf8(key)
            .map_err(|_| EngineError::internal(format!("document frame: the key of row {index} is not UTF-8")))?;
        Ok(Row {
            kind,
            flags: record[1],
            ordinal: u32_at(record, 4),
            sequence: u64_at(record, 8),
            ttl_base_ms: u64_at(record, 16) as i64,
            written_ms: u64::from(u32_at(record, 44)) | u64::from(u16::from_le_bytes([record[2], record[3]])) << 32,
            key,
            body: self.heap_slice(u32_at(record, 32), u32_at(record, 36), index)?,
            crc: u32_at(record, 40),
        })
    }

    pub fn rows(self) -> impl Iterator<Item = Result<Row<'a>, EngineError>> {
        (0..self.row_count).map(move |index| self.row(index))
    }

    fn heap_slice(&self, offset: u32, length: u32, index: usize) -> Result<&'a [u8], EngineError> {
        let start = offset as usize;
        start
            .checked_add(length as usize)
            .and_then(|end| self.bytes.get(start..end))
            .ok_or_else(|| EngineError::internal(format!("document frame: row {index} points outside the frame")))
    }
}

/// Writes a frame. The row count and, for one allocation, the heap size are known beforehand.
pub struct FrameWriter {
    bytes: Vec<u8>,
    row_count: usize,
    rows_written: usize,
}

impl FrameWriter {
    /// Refuses frames that 32-bit offsets cannot address.
    pub fn new(row_count: usize, heap_bytes: usize) -> Result<Self, EngineError> {
        let heap_offset = HEADER_BYTES + ROW_BYTES * row_count;
        if heap_offset as u64 + heap_bytes as u64 > u64::from(u32::MAX) {
            return Err(EngineError::new("limit_exceeded", "the documents of one write exceed 4 GiB"));
        }
        let mut bytes = Vec::with_capacity(heap_offset + heap_bytes);
        bytes.resize(heap_offset, 0);
        bytes[0..4].copy_from_slice(&FRAME_MAGIC.to_le_bytes());
        bytes[4..6].copy_from_slice(&FRAME_VERSION.to_le_bytes());
        bytes[8..12].copy_from_slice(&(row_count as u32).to_le_bytes());
        bytes[12..16].copy_from_slice(&(heap_offset as u32).to_le_bytes());
        Ok(Self { bytes, row_count, rows_written: 0 })
    }

    /// Appends a row whose body is the concatenation of `body`. Ordinal, sequence and flags stay 0.
    pub fn push(&mut self, kind: RowKind, ttl_base_ms: i64, key: &[u8], body: &[&[u8]]) {
        assert!(self.rows_written < self.row_count, "more rows than announced");
        let key_offset = self.bytes.len();
        self.bytes.extend_from_slice(key);
        let body_offset = self.bytes.len();
        for part in body {
            self.bytes.extend_from_slice(part);
        }
        let body_bytes = self.bytes.len() - body_offset;
        let crc = crc32fast::hash(&self.bytes[body_offset..]);
        let at = HEADER_BYTES + self.rows_written * ROW_BYTES;
        let record = &mut self.bytes[at..at + ROW_BYTES];
        record[0] = kind.code();
        record[16..24].copy_from_slice(&ttl_base_ms.to_le_bytes());
        record[24..28].copy_from_slice(&(key_offset as u32).to_le_bytes());
        record[28..32].copy_from_slice(&(key.len() as u32).to_le_bytes());
        record[32..36].copy_from_slice(&(body_offset as u32).to_le_bytes());
        record[36..40].copy_from_slice(&(body_bytes as u32).to_le_bytes());
        record[40..44].copy_from_slice(&crc.to_le_bytes());
        self.rows_written += 1;
    }

    /// Sets the flags of the row that was pushed last.
    pub fn set_flags(&mut self, flags: u8) {
        assert!(self.rows_written > 0, "no row was pushed");
        self.bytes[HEADER_BYTES + (self.rows_written - 1) * ROW_BYTES + 1] = flags;
    }

    /// Says when the document of the row that was pushed last was written, in milliseconds since 1970.
    pub fn set_written_ms(&mut self, written_ms: u64) {
        assert!(self.rows_written > 0, "no row was pushed");
        let at = HEADER_BYTES + (self.rows_written - 1) * ROW_BYTES;
        let bytes = written_ms.min(WRITTEN_MS_MAX).to_le_bytes();
        self.bytes[at + 44..at + 48].copy_from_slice(&bytes[..4]);
        self.bytes[at + 2..at + 4].copy_from_slice(&bytes[4..6]);
    }

    /// Sets what only the storage writer knows; for tests and benches that stand in for it.
    pub fn set_position(&mut self, index: usize, ordinal: u32, sequence: u64, flags: u8) {
        let at = HEADER_BYTES + index * ROW_BYTES;
        self.bytes[at + 1] = flags;
        self.bytes[at + 4..at + 8].copy_from_slice(&ordinal.to_le_bytes());
        self.bytes[at + 8..at + 16].copy_from_slice(&sequence.to_le_bytes());
    }

    pub fn finish(mut self) -> Vec<u8> {
        assert_eq!(self.rows_written, self.row_count, "fewer rows than announced");
        let heap_bytes = self.bytes.len() - HEADER_BYTES - ROW_BYTES * self.row_count;
        self.bytes[16..20].copy_from_slice(&(heap_bytes as u32).to_le_bytes());
        self.bytes
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) | u64::from(u32_at(bytes, at + 4)) << 32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two_rows() -> Vec<u8> {
        let mut writer = FrameWriter::new(2, 64).unwrap();
        writer.push(RowKind::Put, 12, b"k1", &[b"{\"a\":", b"1}"]);
        writer.set_written_ms(0x0123_4567_89AB);
        writer.push(RowKind::Delete, 0, b"k2", &[]);
        writer.set_position(1, 7, 1 << 40, ROW_ORDINAL_IS_NEW);
        writer.finish()
    }

    #[test]
    fn reads_back_what_was_written() {
        let bytes = two_rows();
        let frame = Frame::parse(&bytes).unwrap();
        assert_eq!(frame.row_count(), 2);
        let put = frame.row(0).unwrap();
        assert_eq!((put.kind, put.key, put.body, put.ttl_base_ms), (RowKind::Put, "k1", &b"{\"a\":1}"[..], 12));
        assert_eq!(put.crc, crc32fast::hash(b"{\"a\":1}"));
        assert_eq!((put.written_ms, put.flags), (0x0123_4567_89AB, 0));
        let delete = frame.row(1).unwrap();
        assert_eq!((delete.kind, delete.ordinal, delete.sequence), (RowKind::Delete, 7, 1 << 40));
        assert_eq!(delete.written_ms, 0);
        assert!(delete.ordinal_is_new() && !put.ordinal_is_new());
    }

    #[test]
    fn refuses_bytes_that_are_not_a_frame() {
        let bytes = two_rows();
        assert!(Frame::parse(&bytes[..20]).is_err());
        assert!(Frame::parse(&bytes[..bytes.len() - 1]).is_err());
        let mut wrong_version = bytes.clone();
        wrong_version[4] = 2;
        assert!(Frame::parse(&wrong_version).is_err());
        let mut wild_offset = bytes.clone();
        wild_offset[HEADER_BYTES + 32..HEADER_BYTES + 36].copy_from_slice(&u32::MAX.to_le_bytes());
        assert!(Frame::parse(&wild_offset).unwrap().row(0).is_err());
    }
}
