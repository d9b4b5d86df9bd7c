//! Form 6: what an enrichment has made of a document, as one value of a media type.
//!
//! ```text
//! 0 media type bytes u32, the media type (UTF-8), the value: all that follows
//! ```

use super::payload::Payload;
use crate::error::EngineError;

/// One asset, borrowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asset<'a> {
    /// Such as `text/plain`.
    pub media_type: &'a str,
    pub value: &'a [u8],
}

/// Error: `internal` for bytes that are not an asset.
pub fn read_asset(bytes: &[u8]) -> Result<Asset<'_>, EngineError> {
    let mut payload = Payload::new(bytes, "an asset");
    let media_type_bytes = payload.u32()? as usize;
    let media_type = payload.text(media_type_bytes)?;
    Ok(Asset { media_type, value: &bytes[4 + media_type_bytes..] })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_type_and_value() {
        let payload = [&10u32.to_le_bytes()[..], b"text/plain", b"amber"].concat();
        let asset = read_asset(&payload).unwrap();
        assert_eq!((asset.media_type, asset.value), ("text/plain", &b"amber"[..]));
        assert!(read_asset(&payload[..13]).is_err());
    }
}
