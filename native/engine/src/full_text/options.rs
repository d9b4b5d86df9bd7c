//! The options with which an index is opened.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The layout of what an index writes: fields, terms, commit payload. An index of another format is rebuilt.
const INDEX_FORMAT: u32 = 10;

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IndexOptions {
    pub name: String,
    /// Which making of an index of this name it is; a directory of another incarnation is not opened.
    #[serde(default)]
    pub incarnation: String,
    /// Nothing is written to disk, and a checkpoint does nothing.
    #[serde(default)]
    pub mem_only: bool,
    /// The table's schema in its wire form, or null.
    #[serde(default)]
    pub schema: Value,
    /// Moves when the analyzers change what they emit.
    #[serde(default = "default_analysis_version")]
    pub analysis_version: u32,
    /// Bytes of memory that are gathered before a segment is written, though no commit has asked for it.
    #[serde(default = "default_writer_budget_bytes")]
    pub writer_budget_bytes: usize,
    /// Bytes of index files that may wait in memory for a checkpoint, all together.
    #[serde(default = "default_memory_files_bytes_max")]
    pub memory_files_bytes_max: usize,
    /// Bytes above which one file goes to disk at once.
    #[serde(default = "default_memory_file_bytes_max")]
    pub memory_file_bytes_max: usize,
    /// Documents that a merge of an index at rest brings together at most, unless it is a large one, which takes so
    /// long that others go on beside it.
    #[serde(default = "default_merged_documents_max")]
    pub merged_documents_max: u64,
}

fn default_analysis_version() -> u32 {
    1
}

fn default_writer_budget_bytes() -> usize {
    64_000_000
}

fn default_memory_files_bytes_max() -> usize {
    64 * 1024 * 1024
}

fn default_memory_file_bytes_max() -> usize {
    4 * 1024 * 1024
}

/// Some seconds of one thread.
fn default_merged_documents_max() -> u64 {
    1 << 20
}

impl IndexOptions {
    /// The defaults for a table without a schema.
    pub fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            incarnation: String::new(),
            mem_only: false,
            schema: Value::Null,
            analysis_version: default_analysis_version(),
            writer_budget_bytes: default_writer_budget_bytes(),
            memory_files_bytes_max: default_memory_files_bytes_max(),
            memory_file_bytes_max: default_memory_file_bytes_max(),
            merged_documents_max: default_merged_documents_max(),
        }
    }

    /// Equal for two options under which one can go on with what the other has made. The schema is not part of it: a
    /// change that what is indexed does not survive comes with another incarnation, and rules for new fields (dynamic
    /// templates) hold from the next document on.
    pub(crate) fn fingerprint(&self) -> String {
        let what = serde_json::json!([self.name, self.incarnation, self.analysis_version]);
        let text = what.to_string();
        format!("{INDEX_FORMAT}-{:08x}-{:x}", crc32fast::hash(text.as_bytes()), text.len())
    }
}
