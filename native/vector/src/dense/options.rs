//! The options of a dense index.

use serde::{Deserialize, Serialize};

use super::metric::Metric;

/// The layout of what a dense index writes. An index of another format is rebuilt.
const DENSE_FORMAT: u32 = 5;

/// The rows of larger segments without a graph lie in a file.
const FLAT_BYTES_MAX: usize = 2 * 1024 * 1024;

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DenseOptions {
    pub name: String,
    /// Which making of an index of this name it is; a directory of another incarnation is not opened.
    #[serde(default)]
    pub incarnation: String,
    /// Nothing is written to disk, and a checkpoint does nothing.
    #[serde(default)]
    pub mem_only: bool,
    /// The index id that the vector rows of a frame carry.
    pub index_id: u32,
    pub dimension: u32,
    pub metric: Metric,
    /// Bytes of float32 rows that are scanned before they become a graph while more are written; a quarter when not.
    #[serde(default = "default_tail_bytes")]
    pub tail_bytes: usize,
    /// Bytes of committed float32 rows that may wait for the graph builder; beyond, `apply` waits.
    #[serde(default = "default_backlog_bytes_max")]
    pub backlog_bytes_max: usize,
    /// Bytes of a graph in memory that stay there while another one takes its place; a larger one is read from its file
    /// meanwhile.
    #[serde(default = "default_replaced_bytes_max")]
    pub replaced_bytes_max: usize,
    /// Threads that build a graph; 0 for half of the cores, or all when much waits, at most eight.
    #[serde(default)]
    pub build_threads: usize,
    /// Links of a node in the upper layers of a graph; twice as many in the lowest.
    #[serde(default = "default_links")]
    pub links: usize,
    /// Candidates that are kept while a node's neighbours are looked for.
    #[serde(default = "default_build_candidates")]
    pub build_candidates: usize,
}

/// Scanned in less time than a walk through a large graph takes; half of it costs a fifth more work where rows come slowly.
fn default_tail_bytes() -> usize {
    2 * 1024 * 1024
}

fn default_backlog_bytes_max() -> usize {
    256 * 1024 * 1024
}

fn default_replaced_bytes_max() -> usize {
    32 * 1024 * 1024
}

fn default_links() -> usize {
    16
}

fn default_build_candidates() -> usize {
    128
}

impl DenseOptions {
    /// An index with the default tuning.
    pub fn new(name: &str, index_id: u32, dimension: u32, metric: Metric) -> Self {
        Self {
            name: name.to_owned(),
            incarnation: String::new(),
            mem_only: false,
            index_id,
            dimension,
            metric,
            tail_bytes: default_tail_bytes(),
            backlog_bytes_max: default_backlog_bytes_max(),
            replaced_bytes_max: default_replaced_bytes_max(),
            build_threads: 0,
            links: default_links(),
            build_candidates: default_build_candidates(),
        }
    }

    /// Bytes of rows without a graph that stay in memory as one segment.
    pub(super) fn flat_bytes_max(&self) -> usize {
        self.tail_bytes.min(FLAT_BYTES_MAX)
    }

    /// Equal for two options under which one can go on with what the other has made.
    pub(super) fn fingerprint(&self) -> String {
        let what = serde_json::json!([self.name, self.incarnation, self.index_id, self.dimension, self.metric]);
        let text = what.to_string();
        format!("dense-{DENSE_FORMAT}-{:08x}-{:x}", crc32fast::hash(text.as_bytes()), text.len())
    }
}

/// Which distances a hit may have, both ends included; distances as in `VectorHit::distance`.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct DistanceBounds {
    pub under: Option<f32>,
    pub over: Option<f32>,
}

impl DistanceBounds {
    pub fn accept(&self, distance: f32) -> bool {
        self.under.is_none_or(|under| distance <= under) && self.over.is_none_or(|over| distance >= over)
    }

    pub fn is_open(&self) -> bool {
        self.under.is_none() && self.over.is_none()
    }
}
