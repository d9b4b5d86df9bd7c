//! The body of a vector row: what is stored for one document and one embeddings index, in SQLite and in frames.
//! Little-endian; `src/lib/vector-body.ts` is its twin.
//!
//! ```text
//! 0 index id u32, 4 form u8 (1 dense, 2 sparse, 0 for the delete of a vector), 5 flags u8, 6 two zero bytes,
//! 8 where flag 1 is set: 16 bytes, hash of what the vector was made from
//!   dense: f32 for each dimension
//!   sparse: all indices u32, ascending and unique, then as many values f32
//! ```
//!
//! Forms 3 to 6 are those of other parts of a document (a set of dense vectors, edges, a set of chunks, an asset). Whoever
//! reads a row compares the index id first: the rest of the body is no business of other indexes.

use crate::error::EngineError;

pub const VECTOR_HEAD_BYTES: usize = 8;
/// Flag: the hash of what the vector was made from stands before the payload.
pub const HAS_SOURCE_HASH: u8 = 1;
pub const SOURCE_HASH_BYTES: usize = 16;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VectorForm {
    Deleted,
    Dense,
    Sparse,
}

impl VectorForm {
    pub fn code(self) -> u8 {
        match self {
            Self::Deleted => 0,
            Self::Dense => 1,
            Self::Sparse => 2,
        }
    }
}

/// A vector row's body, borrowed. The payload need not be aligned; read it with `f32_at` and `u32_at`.
#[derive(Debug, Clone, Copy)]
pub struct VectorBody<'a> {
    /// Incarnation of the embeddings index; unique within a node, never used again.
    pub index_id: u32,
    pub form: VectorForm,
    pub source_hash: Option<&'a [u8; SOURCE_HASH_BYTES]>,
    pub payload: &'a [u8],
}

/// The index that a row is for, whatever else its body holds. Error: `internal` for a body that is too short.
pub fn index_id_of(body: &[u8]) -> Result<u32, EngineError> {
    let too_short = || EngineError::internal("a vector row that is too short");
    body.first_chunk().map(|bytes| u32::from_le_bytes(*bytes)).ok_or_else(too_short)
}

impl<'a> VectorBody<'a> {
    /// Error: `internal` for bytes that are not a vector body.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, EngineError> {
        let (Some(head), Some(payload)) = (bytes.get(..VECTOR_HEAD_BYTES), bytes.get(VECTOR_HEAD_BYTES..)) else {
            return Err(EngineError::internal("a vector row that is too short"));
        };
        let (source_hash, payload) = match head[5] {
            0 => (None, payload),
            HAS_SOURCE_HASH => match payload.split_first_chunk() {
                Some((hash, payload)) => (Some(hash), payload),
                None => return Err(EngineError::internal("a vector row without the hash that it announces")),
            },
            other => return Err(EngineError::internal(format!("a vector row with unknown flags {other}"))),
        };
        let (form, unit) = match head[4] {
            0 => (VectorForm::Deleted, 0),
            1 => (VectorForm::Dense, 4),
            2 => (VectorForm::Sparse, 8),
            other => return Err(EngineError::internal(format!("a vector row of unknown form {other}"))),
        };
        let fits = if unit == 0 { payload.is_empty() } else { payload.len().is_multiple_of(unit) };
        if !fits {
            return Err(EngineError::internal("a vector row of a broken length"));
        }
        Ok(Self { index_id: u32_at(head, 0), form, source_hash, payload })
    }

    /// Dimensions of a dense vector, non-zeros of a sparse one.
    pub fn count(&self) -> usize {
        match self.form {
            VectorForm::Deleted => 0,
            VectorForm::Dense => self.payload.len() / 4,
            VectorForm::Sparse => self.payload.len() / 8,
        }
    }

    pub fn dense(&self) -> impl ExactSizeIterator<Item = f32> + 'a {
        let payload = self.payload;
        payload.chunks_exact(4).map(|bytes| f32_at(bytes, 0))
    }

    /// Indices and values of a sparse vector.
    pub fn sparse(&self) -> impl ExactSizeIterator<Item = (u32, f32)> + 'a {
        let (indices, values) = self.payload.split_at(self.payload.len() / 2);
        indices.chunks_exact(4).zip(values.chunks_exact(4)).map(|(index, value)| (u32_at(index, 0), f32_at(value, 0)))
    }
}

/// The eight bytes before the payload.
pub fn vector_head(index_id: u32, form: VectorForm) -> [u8; VECTOR_HEAD_BYTES] {
    let mut head = [0; VECTOR_HEAD_BYTES];
    head[..4].copy_from_slice(&index_id.to_le_bytes());
    head[4] = form.code();
    head
}

pub fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

pub fn f32_at(bytes: &[u8], at: usize) -> f32 {
    f32::from_bits(u32_at(bytes, at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_dense_and_sparse_payloads() {
        let mut dense = vector_head(7, VectorForm::Dense).to_vec();
        dense.extend(1.5f32.to_le_bytes());
        dense.extend((-2.0f32).to_le_bytes());
        let body = VectorBody::parse(&dense).unwrap();
        assert_eq!((body.index_id, body.form, body.count()), (7, VectorForm::Dense, 2));
        assert_eq!(body.dense().collect::<Vec<_>>(), [1.5, -2.0]);

        let mut sparse = vector_head(8, VectorForm::Sparse).to_vec();
        sparse.extend([3u32, 9].iter().flat_map(|index| index.to_le_bytes()));
        sparse.extend([0.5f32, 0.25].iter().flat_map(|value| value.to_le_bytes()));
        let body = VectorBody::parse(&sparse).unwrap();
        assert_eq!(body.sparse().collect::<Vec<_>>(), [(3, 0.5), (9, 0.25)]);
    }

    #[test]
    fn reads_what_a_vector_was_made_from() {
        let mut body = vector_head(7, VectorForm::Dense).to_vec();
        body[5] = HAS_SOURCE_HASH;
        body.extend([9; SOURCE_HASH_BYTES]);
        body.extend(1.5f32.to_le_bytes());
        let read = VectorBody::parse(&body).unwrap();
        assert_eq!((read.source_hash, read.dense().collect::<Vec<_>>()), (Some(&[9; SOURCE_HASH_BYTES]), vec![1.5]));
        assert!(VectorBody::parse(&body[..20]).is_err());
    }

    #[test]
    fn the_index_is_known_whatever_the_form() {
        assert_eq!(index_id_of(&[7, 0, 0, 0, 99, 1]).unwrap(), 7);
        assert!(index_id_of(&[7, 0, 0]).is_err());
    }

    #[test]
    fn refuses_bytes_that_are_not_a_vector() {
        assert!(VectorBody::parse(&[0; 7]).is_err());
        assert!(VectorBody::parse(&[0, 0, 0, 0, 9, 0, 0, 0]).is_err());
        assert!(VectorBody::parse(&[0, 0, 0, 0, 0, 2, 0, 0]).is_err());
        assert!(VectorBody::parse(&[0, 0, 0, 0, 1, 0, 0, 0, 1]).is_err());
        assert!(VectorBody::parse(&[0, 0, 0, 0, 2, 0, 0, 0, 1, 2, 3, 4]).is_err());
        assert!(VectorBody::parse(&[0, 0, 0, 0, 0, 0, 0, 0, 1]).is_err());
    }
}
