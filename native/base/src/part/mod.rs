//! The body of a part: one blob for a document and a definition (an index, an enrichment), in SQLite and in frames.
//! Little-endian; `src/lib/parts/` is its twin.
//!
//! ```text
//! 0 part id u32, 4 form u8, 5 flags u8, 6 two zero bytes,
//! 8 where flag 1 is set: 16 bytes, hash of what the part was made from (flag 2: an asset that a model has not finished)
//!   payload, by its form: 0 a deletion (empty), 1 `dense`, 2 `sparse`, 3 `dense_set`, 4 `edges`, 5 `chunk_set`, 6 `asset`,
//!   7 `sparse_set`
//! ```
//!
//! Readers compare the part id first: the rest of the body does not concern other indexes, and may have a
//! form that they do not know.

pub mod asset;
pub mod chunk_set;
pub mod dense;
pub mod dense_set;
pub mod edges;
mod payload;
pub mod sparse;
pub mod sparse_set;

pub use payload::{f32_at, u32_at};

use crate::error::EngineError;

pub const PART_HEAD_BYTES: usize = 8;
/// Flag: the hash of what the part was made from stands before the payload.
pub const HAS_SOURCE_HASH: u8 = 1;
/// Flag of an asset: a model has not finished it.
pub const IS_TRUNCATED: u8 = 2;
pub const SOURCE_HASH_BYTES: usize = 16;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartForm {
    Deleted,
    Dense,
    Sparse,
    DenseSet,
    Edges,
    ChunkSet,
    Asset,
    SparseSet,
}

impl PartForm {
    pub fn code(self) -> u8 {
        self as u8
    }

    fn from_code(code: u8) -> Option<Self> {
        use PartForm::*;
        [Deleted, Dense, Sparse, DenseSet, Edges, ChunkSet, Asset, SparseSet]
            .into_iter()
            .find(|form| form.code() == code)
    }
}

/// A part's body, borrowed. The payload is read by the file of its form; it need not be aligned.
#[derive(Debug, Clone, Copy)]
pub struct PartBody<'a> {
    /// The index or artifact that the part belongs to; unique within a table, never used again there.
    pub id: u32,
    pub form: PartForm,
    pub source_hash: Option<&'a [u8; SOURCE_HASH_BYTES]>,
    pub payload: &'a [u8],
}

/// The part id of a row, whatever else its body holds. Error: `internal` for a body that is too short.
pub fn part_id_of(body: &[u8]) -> Result<u32, EngineError> {
    let too_short = || EngineError::internal("a part that is too short");
    body.first_chunk().map(|bytes| u32::from_le_bytes(*bytes)).ok_or_else(too_short)
}

impl<'a> PartBody<'a> {
    /// Reads the head; the payload is left to its form. Error: `internal` for bytes that are not the body of a part.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, EngineError> {
        let (Some(head), Some(payload)) = (bytes.get(..PART_HEAD_BYTES), bytes.get(PART_HEAD_BYTES..)) else {
            return Err(EngineError::internal("a part that is too short"));
        };
        let of_form = if head[4] == PartForm::Asset.code() { IS_TRUNCATED } else { 0 };
        let (source_hash, payload) = match head[5] & !of_form {
            0 => (None, payload),
            HAS_SOURCE_HASH => match payload.split_first_chunk() {
                Some((hash, payload)) => (Some(hash), payload),
                None => return Err(EngineError::internal("a part without the hash that it announces")),
            },
            other => return Err(EngineError::internal(format!("a part with unknown flags {other}"))),
        };
        let unknown = || EngineError::internal(format!("a part of unknown form {}", head[4]));
        let form = PartForm::from_code(head[4]).ok_or_else(unknown)?;
        if form == PartForm::Deleted && !payload.is_empty() {
            return Err(EngineError::internal("the deletion of a part with a payload"));
        }
        Ok(Self { id: u32_at(head, 0), form, source_hash, payload })
    }
}

/// The eight bytes before the payload of a part without a source hash.
pub fn part_head(id: u32, form: PartForm) -> [u8; PART_HEAD_BYTES] {
    let mut head = [0; PART_HEAD_BYTES];
    head[..4].copy_from_slice(&id.to_le_bytes());
    head[4] = form.code();
    head
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_a_part_was_made_from() {
        let mut body = part_head(7, PartForm::Dense).to_vec();
        body[5] = HAS_SOURCE_HASH;
        body.extend([9; SOURCE_HASH_BYTES]);
        body.extend(1.5f32.to_le_bytes());
        let read = PartBody::parse(&body).unwrap();
        assert_eq!((read.id, read.form, read.source_hash), (7, PartForm::Dense, Some(&[9; SOURCE_HASH_BYTES])));
        assert_eq!(read.payload, 1.5f32.to_le_bytes());
        assert!(PartBody::parse(&body[..20]).is_err());
        body[5] |= IS_TRUNCATED;
        assert!(PartBody::parse(&body).is_err());
        body[4] = PartForm::Asset.code();
        assert_eq!(PartBody::parse(&body).unwrap().payload, 1.5f32.to_le_bytes());
    }

    #[test]
    fn the_part_id_is_known_whatever_the_form() {
        assert_eq!(part_id_of(&[7, 0, 0, 0, 99, 1]).unwrap(), 7);
        assert!(part_id_of(&[7, 0, 0]).is_err());
    }

    #[test]
    fn every_form_has_the_code_of_its_twin() {
        let codes = (0..8).map(|code| PartForm::from_code(code).unwrap().code()).collect::<Vec<_>>();
        assert_eq!(codes, [0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(PartForm::from_code(8), None);
    }

    #[test]
    fn refuses_bytes_that_are_not_a_part() {
        assert!(PartBody::parse(&[0; 7]).is_err());
        assert!(PartBody::parse(&[0, 0, 0, 0, 9, 0, 0, 0]).is_err());
        assert!(PartBody::parse(&[0, 0, 0, 0, 0, 2, 0, 0]).is_err());
        assert!(PartBody::parse(&[0, 0, 0, 0, 0, 0, 0, 0, 1]).is_err());
    }
}
