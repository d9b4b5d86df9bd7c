//! Bounds on what is scanned.

/// Bounds on what is scanned. The defaults are the documented ones.
#[derive(Debug, Clone)]
pub struct ScanLimits {
    /// Levels of objects and arrays; a document's own object is level 1.
    pub depth_max: u32,
    /// Members of one document, all levels together.
    pub members_max: u32,
    /// Bytes of one member name, without quotes, as sent.
    pub member_name_bytes_max: u32,
    pub document_bytes_max: u32,
    /// Inserts, deletes, transforms and records of one request.
    pub keys_max: u32,
    pub path_segments_max: u32,
}

impl Default for ScanLimits {
    fn default() -> Self {
        Self {
            depth_max: 64,
            members_max: 10_000,
            member_name_bytes_max: 65_535,
            document_bytes_max: 16 << 20,
            keys_max: 100_000,
            path_segments_max: 32,
        }
    }
}
