//! Form 3: several dense vectors of one document, one for each chunk of its text.
//!
//! ```text
//! 0 dimension u32, 4 count u32, then for each vector: start u32, end u32 (bytes of the text that it stands for) and
//! 16 bytes, the hash of what it was made from; then for each vector: an f32 for each dimension
//! ```

use super::f32_at;
use super::payload::Payload;
use crate::error::EngineError;

/// Vectors of one document.
pub const DENSE_SET_MAX: usize = 4_096;

/// Start, end and hash of a vector, which the index has no use for.
const SPAN_BYTES: usize = 24;

/// A set of dense vectors, borrowed.
#[derive(Debug, Clone, Copy)]
pub struct DenseSet<'a> {
    pub dimension: usize,
    count: usize,
    values: &'a [u8],
}

impl<'a> DenseSet<'a> {
    /// Error: `internal` for bytes that are not a set of vectors, or one of more than `DENSE_SET_MAX`.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, EngineError> {
        let mut payload = Payload::new(bytes, "a set of vectors");
        let dimension = payload.u32()? as usize;
        let count = payload.u32()? as usize;
        if dimension == 0 || count == 0 || count > DENSE_SET_MAX {
            return Err(payload.broken("has a count out of bounds"));
        }
        payload.bytes(SPAN_BYTES * count)?;
        let value_bytes = dimension.checked_mul(4 * count).ok_or_else(|| payload.broken("is too large"))?;
        let values = payload.bytes(value_bytes)?;
        payload.end()?;
        Ok(Self { dimension, count, values })
    }

    pub fn count(&self) -> usize {
        self.count
    }

    /// The values of vector `at`, which is below `count`.
    pub fn vector(&self, at: usize) -> impl ExactSizeIterator<Item = f32> + 'a {
        let bytes = 4 * self.dimension;
        self.values[at * bytes..(at + 1) * bytes].chunks_exact(4).map(|value| f32_at(value, 0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set_of(vectors: &[[f32; 2]]) -> Vec<u8> {
        let mut payload = Vec::new();
        payload.extend(2u32.to_le_bytes());
        payload.extend((vectors.len() as u32).to_le_bytes());
        for at in 0..vectors.len() as u32 {
            payload.extend((10 * at).to_le_bytes());
            payload.extend((10 * at + 9).to_le_bytes());
            payload.extend([7; 16]);
        }
        payload.extend(vectors.iter().flatten().flat_map(|value| value.to_le_bytes()));
        payload
    }

    #[test]
    fn reads_every_vector() {
        let payload = set_of(&[[1.0, 2.0], [3.0, 4.0]]);
        let set = DenseSet::parse(&payload).unwrap();
        assert_eq!((set.dimension, set.count()), (2, 2));
        assert_eq!(set.vector(1).collect::<Vec<_>>(), [3.0, 4.0]);
    }

    #[test]
    fn refuses_lengths_that_do_not_add_up() {
        let payload = set_of(&[[1.0, 2.0]]);
        assert!((0..payload.len()).all(|length| DenseSet::parse(&payload[..length]).is_err()));
        assert!(DenseSet::parse(&[payload.as_slice(), &[0]].concat()).is_err());
        assert!(DenseSet::parse(&set_of(&[])).is_err());
        assert!(DenseSet::parse(&set_of(&vec![[0.0, 1.0]; DENSE_SET_MAX + 1])).is_err());
    }
}
