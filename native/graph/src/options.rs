//! The options of a graph index.

use serde::Deserialize;

/// The layout of what an index writes. An index of another format is rebuilt.
const INDEX_FORMAT: u32 = 3;

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GraphOptions {
    pub name: String,
    /// Which making of an index of this name it is; a directory of another incarnation is not opened.
    #[serde(default)]
    pub incarnation: String,
    /// Nothing is written to disk, and a checkpoint does nothing.
    #[serde(default)]
    pub mem_only: bool,
    /// Parts of this id only are taken from frames.
    pub index_id: u32,
}

impl GraphOptions {
    /// The defaults for an index on disk.
    pub fn named(name: &str, index_id: u32) -> Self {
        Self { name: name.to_owned(), incarnation: String::new(), mem_only: false, index_id }
    }

    pub(crate) fn fingerprint(&self) -> String {
        let Self { name, incarnation, index_id, .. } = self;
        format!("graph-{INDEX_FORMAT}-{index_id}-{incarnation}-{name}")
    }
}
