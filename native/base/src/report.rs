//! Reports of an index to its caller.

use serde::Serialize;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SkippedRow {
    pub key: String,
    pub reason: String,
}

/// The outcome of one frame.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ApplyReport {
    pub rows: usize,
    /// Rows that are not in the index, the first 100 by name.
    pub skipped: Vec<SkippedRow>,
    pub skipped_count: usize,
}

/// Rows that a report names; the others are counted.
const SKIPPED_NAMED_MAX: usize = 100;

impl ApplyReport {
    /// Counts a row that is not in the index, and names it while there are few.
    pub fn skip(&mut self, key: &str, reason: String) {
        self.skipped_count += 1;
        if self.skipped.len() < SKIPPED_NAMED_MAX {
            self.skipped.push(SkippedRow { key: key.to_owned(), reason });
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CommitReport {
    pub sequence: u64,
    pub doc_count: u64,
    pub took_micros: u64,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct CheckpointReport {
    /// The sequence that is now safe on disk.
    pub sequence: u64,
    /// Files and bytes that were made durable by this checkpoint.
    pub files_written: usize,
    pub bytes_written: u64,
    pub took_micros: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct IndexStats {
    /// The sequence of the newest commit: what queries see.
    pub applied_sequence: u64,
    /// The sequence that survives a crash.
    pub checkpoint_sequence: u64,
    /// Documents that are not deleted.
    pub doc_count: u64,
    /// Vectors of those documents; 0 for a full-text index.
    pub vector_count: u64,
    /// Terms of a full-text index, dimensions in use of a sparse one; 0 for a dense one.
    pub term_count: u64,
    pub segment_count: usize,
    pub disk_bytes: u64,
    pub memory_bytes: u64,
    /// Documents that the index could not take since it was created.
    pub skipped_count: u64,
    /// Rows applied since the newest commit.
    pub uncommitted_rows: u64,
    pub writer_is_open: bool,
}
