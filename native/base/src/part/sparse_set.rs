//! Form 7: several sparse vectors of one document, one for each chunk of its text.
//!
//! ```text
//! 0 count u32, then for each vector: start u32, end u32 (bytes of the text that it stands for), 16 bytes, the hash of what
//! it was made from, entries u32; then for each vector the payload of form 2
//! ```

use super::dense_set::DENSE_SET_MAX;
use super::payload::Payload;
use super::u32_at;
use crate::error::EngineError;

/// Start, end and hash of a vector, which the index has no use for, and its count of entries.
const HEAD_BYTES: usize = 28;
const ENTRY_BYTES: usize = 8;

/// The payload of each vector, which `sparse::entries` reads. Error: `internal` for bytes that are not a set of vectors, or
/// one of more than `DENSE_SET_MAX`.
pub fn vectors(bytes: &[u8]) -> Result<Vec<&[u8]>, EngineError> {
    let mut payload = Payload::new(bytes, "a set of sparse vectors");
    let count = payload.u32()? as usize;
    if count == 0 || count > DENSE_SET_MAX {
        return Err(payload.broken("has a count out of bounds"));
    }
    let heads = payload.bytes(HEAD_BYTES * count)?;
    let mut vectors = Vec::with_capacity(count);
    for head in heads.chunks_exact(HEAD_BYTES) {
        let entries = u32_at(head, HEAD_BYTES - 4) as usize;
        vectors.push(payload.bytes(entries * ENTRY_BYTES)?);
    }
    payload.end()?;
    Ok(vectors)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::part::sparse;

    fn set_of(vectors: &[&[(u32, f32)]]) -> Vec<u8> {
        let mut payload = (vectors.len() as u32).to_le_bytes().to_vec();
        for (vector, at) in vectors.iter().zip(0u32..) {
            payload.extend((10 * at).to_le_bytes());
            payload.extend((10 * at + 9).to_le_bytes());
            payload.extend([7; 16]);
            payload.extend((vector.len() as u32).to_le_bytes());
        }
        for vector in vectors {
            payload.extend(vector.iter().flat_map(|entry| entry.0.to_le_bytes()));
            payload.extend(vector.iter().flat_map(|entry| entry.1.to_le_bytes()));
        }
        payload
    }

    #[test]
    fn reads_every_vector() {
        let payload = set_of(&[&[(3, 0.5), (9, 0.25)], &[], &[(4, 2.0)]]);
        let read = |bytes: &&[u8]| sparse::entries(bytes).unwrap().collect::<Vec<_>>();
        let found: Vec<_> = vectors(&payload).unwrap().iter().map(read).collect();
        assert_eq!(found, [vec![(3, 0.5), (9, 0.25)], vec![], vec![(4, 2.0)]]);
    }

    #[test]
    fn refuses_lengths_that_do_not_add_up() {
        let payload = set_of(&[&[(3, 0.5)], &[(4, 2.0)]]);
        assert!((0..payload.len()).all(|length| vectors(&payload[..length]).is_err()));
        assert!(vectors(&[payload.as_slice(), &[0]].concat()).is_err());
        assert!(vectors(&set_of(&[])).is_err());
        assert!(vectors(&set_of(&vec![&[] as &[(u32, f32)]; DENSE_SET_MAX + 1])).is_err());
    }
}
