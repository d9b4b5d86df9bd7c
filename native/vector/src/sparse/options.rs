//! The options of a sparse index.

use serde::Deserialize;

/// The layout of what an index writes. An index of another format is rebuilt.
const INDEX_FORMAT: u32 = 2;

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SparseOptions {
    pub name: String,
    /// Which making of an index of this name it is; a directory of another incarnation is not opened.
    #[serde(default)]
    pub incarnation: String,
    /// Nothing is written to disk, and a checkpoint does nothing.
    #[serde(default)]
    pub mem_only: bool,
    /// Rows of this index only are taken from frames.
    pub index_id: u32,
    /// Weights nearer to zero than this are left out of the index.
    #[serde(default)]
    pub min_weight: f32,
    /// Segments with up to this many postings together are merged by the commit itself, larger ones on a thread beside it.
    #[serde(default = "default_commit_merge_postings_max")]
    pub commit_merge_postings_max: usize,
}

fn default_commit_merge_postings_max() -> usize {
    400_000
}

impl SparseOptions {
    /// The defaults for an index on disk.
    pub fn named(name: &str, index_id: u32) -> Self {
        Self {
            name: name.to_owned(),
            incarnation: String::new(),
            mem_only: false,
            index_id,
            min_weight: 0.0,
            commit_merge_postings_max: default_commit_merge_postings_max(),
        }
    }

    pub(super) fn fingerprint(&self) -> String {
        let Self { name, incarnation, index_id, min_weight, .. } = self;
        format!("sparse-{INDEX_FORMAT}-{index_id}-{min_weight}-{incarnation}-{name}")
    }
}
