//! The payload that an index writes with every commit: atomic with the segments that it speaks of.

use serde::{Deserialize, Serialize};

use crate::error::EngineError;
use crate::full_text::analysis::Analyzer;
use crate::full_text::errors::damaged;
use crate::full_text::slots::Slot;

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct CommitPayload {
    pub sequence: u64,
    /// Ordinals at or above this one are in no document of the index.
    pub next_ordinal: u64,
    pub skipped_count: u64,
    pub slots: Vec<Slot>,
    /// As in `TakenSlots`.
    #[serde(default)]
    pub overflow: Vec<Analyzer>,
}

impl CommitPayload {
    /// `text`: as Tantivy keeps it; none before the first commit. Error: `index_damaged`.
    pub fn read(text: Option<&str>) -> Result<Self, EngineError> {
        let Some(text) = text else { return Ok(Self::default()) };
        serde_json::from_str(text).map_err(|error| damaged(format!("commit payload: {error}")))
    }

    pub fn to_text(&self) -> Result<String, EngineError> {
        serde_json::to_string(self).map_err(|error| EngineError::internal(error.to_string()))
    }
}

#[derive(Deserialize)]
struct MetaPayload {
    payload: Option<String>,
}

/// The sequence of the commit that `meta`, Tantivy's `meta.json`, describes.
pub fn sequence_of(meta: &str) -> Result<u64, EngineError> {
    let meta: MetaPayload =
        serde_json::from_str(meta).map_err(|error| EngineError::internal(format!("meta.json: {error}")))?;
    Ok(CommitPayload::read(meta.payload.as_deref())?.sequence)
}
