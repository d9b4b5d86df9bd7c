//! Form 2: one sparse vector. The payload is all indices u32, ascending and unique, then as many values f32.

use super::{f32_at, u32_at};
use crate::error::EngineError;

/// Indices and values of a payload; their order is for the reader to check. Error: `internal` when its length is not that
/// of whole entries.
pub fn entries(payload: &[u8]) -> Result<impl ExactSizeIterator<Item = (u32, f32)> + '_, EngineError> {
    if !payload.len().is_multiple_of(8) {
        return Err(EngineError::internal("a sparse vector of a broken length"));
    }
    let (indices, values) = payload.split_at(payload.len() / 2);
    Ok(indices.chunks_exact(4).zip(values.chunks_exact(4)).map(|(index, value)| (u32_at(index, 0), f32_at(value, 0))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_whole_entries_only() {
        let mut payload: Vec<u8> = [3u32, 9].iter().flat_map(|index| index.to_le_bytes()).collect();
        payload.extend([0.5f32, 0.25].iter().flat_map(|value| value.to_le_bytes()));
        assert_eq!(entries(&payload).unwrap().collect::<Vec<_>>(), [(3, 0.5), (9, 0.25)]);
        assert!(entries(&payload[..12]).is_err());
    }
}
