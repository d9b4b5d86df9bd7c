//! Form 1: one dense vector. The payload is an f32 for each dimension.

use super::f32_at;
use crate::error::EngineError;

/// The values of a payload. Error: `internal` when its length is not that of whole values.
pub fn values(payload: &[u8]) -> Result<impl ExactSizeIterator<Item = f32> + '_, EngineError> {
    if !payload.len().is_multiple_of(4) {
        return Err(EngineError::internal("a dense vector of a broken length"));
    }
    Ok(payload.chunks_exact(4).map(|bytes| f32_at(bytes, 0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_whole_values_only() {
        let payload: Vec<u8> = [1.5f32, -2.0].iter().flat_map(|value| value.to_le_bytes()).collect();
        assert_eq!(values(&payload).unwrap().collect::<Vec<_>>(), [1.5, -2.0]);
        assert!(values(&payload[..7]).is_err());
    }
}
