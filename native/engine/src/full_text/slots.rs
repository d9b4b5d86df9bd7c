//! Which document path's text lies in which slot.

use std::sync::{Arc, RwLock};

use serde::{Deserialize, Serialize};
use tantivy::tokenizer::TokenStream;

use super::analysis::Analyzer;
use super::fields::SLOT_COUNT;

/// A taken slot, as it is written into the commit payload.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Slot {
    pub path: String,
    pub analyzer: Analyzer,
    /// Searched by a query without a field when some field of the table is opted in.
    #[serde(default)]
    pub in_all: bool,
    /// Searched by a query without a field when none is: false for the parts of a search-as-you-type field.
    #[serde(default)]
    pub primary: bool,
}

/// Append-only: a slot keeps its path for the life of the index.
pub struct SlotTable {
    taken: RwLock<Arc<Vec<Slot>>>,
}

impl SlotTable {
    pub fn new(taken: Vec<Slot>) -> Self {
        Self { taken: RwLock::new(Arc::new(taken)) }
    }

    pub fn snapshot(&self) -> Arc<Vec<Slot>> {
        Arc::clone(&self.taken.read().unwrap_or_else(|poisoned| poisoned.into_inner()))
    }

    /// The slot of `wanted`'s path and analyzer, taken now if it has none; `None` when all are taken.
    pub fn slot_for(&self, wanted: &Slot) -> Option<usize> {
        let mut taken = self.taken.write().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some(slot) = find_slot(&taken, &wanted.path, wanted.analyzer) {
            return Some(slot);
        }
        let slot = taken.len();
        if slot >= SLOT_COUNT {
            return None;
        }
        Arc::make_mut(&mut taken).push(wanted.clone());
        Some(slot)
    }
}

pub fn find_slot(taken: &[Slot], path: &str, analyzer: Analyzer) -> Option<usize> {
    taken.iter().position(|slot| slot.path == path && slot.analyzer == analyzer)
}

/// Collects the tokens of `text`: query side and tests.
pub fn tokens_of(analyzer: Analyzer, text: &str) -> Vec<tantivy::tokenizer::Token> {
    let mut tokens = Vec::new();
    analyzer.token_stream(text).process(&mut |token| tokens.push(token.clone()));
    tokens
}
