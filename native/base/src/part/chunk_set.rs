//! Form 5: the chunks of a text of one document, in the order of the text.
//!
//! ```text
//! 0 count u32, then for each chunk: start u32, end u32 (characters of the text), text bytes u32, the text (UTF-8)
//! ```

use super::payload::Payload;
use crate::error::EngineError;

/// Chunks of one document.
pub const CHUNKS_MAX: usize = 4_096;

/// One chunk, borrowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chunk<'a> {
    /// Where it lies in the text that was cut, in characters (Unicode code points); the end is exclusive.
    pub start: u32,
    pub end: u32,
    pub text: &'a str,
}

/// Reads all chunks of a payload. Error: `internal` for bytes that are not a set of chunks.
pub fn read_chunks(bytes: &[u8]) -> Result<Vec<Chunk<'_>>, EngineError> {
    let mut payload = Payload::new(bytes, "a set of chunks");
    let count = payload.u32()? as usize;
    if count > CHUNKS_MAX {
        return Err(payload.broken("has a count out of bounds"));
    }
    let mut chunks = Vec::with_capacity(count);
    for _ in 0..count {
        let (start, end, text_bytes) = (payload.u32()?, payload.u32()?, payload.u32()? as usize);
        if start > end {
            return Err(payload.broken("has a chunk that ends before it starts"));
        }
        chunks.push(Chunk { start, end, text: payload.text(text_bytes)? });
    }
    payload.end()?;
    Ok(chunks)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn payload_of(chunks: &[Chunk<'_>]) -> Vec<u8> {
        let mut payload = (chunks.len() as u32).to_le_bytes().to_vec();
        for chunk in chunks {
            for number in [chunk.start, chunk.end, chunk.text.len() as u32] {
                payload.extend(number.to_le_bytes());
            }
            payload.extend_from_slice(chunk.text.as_bytes());
        }
        payload
    }

    #[test]
    fn reads_every_chunk() {
        let chunks = [Chunk { start: 0, end: 4, text: "tea " }, Chunk { start: 4, end: 8, text: "café" }];
        assert_eq!(read_chunks(&payload_of(&chunks)).unwrap(), chunks);
    }

    #[test]
    fn refuses_lengths_that_do_not_add_up() {
        let payload = payload_of(&[Chunk { start: 0, end: 4, text: "tea " }]);
        assert!((0..payload.len()).all(|length| read_chunks(&payload[..length]).is_err()));
        assert!(read_chunks(&[payload.as_slice(), &[0]].concat()).is_err());
        assert!(read_chunks(&payload_of(&[Chunk { start: 5, end: 4, text: "" }])).is_err());
    }
}
