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

/// The slots that are taken, and what lies beyond them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TakenSlots {
    pub slots: Vec<Slot>,
    /// The analyzers of texts in the overflow field that a query without a field searches.
    pub overflow: Vec<Analyzer>,
}

impl TakenSlots {
    pub fn are_full(&self) -> bool {
        self.slots.len() >= SLOT_COUNT
    }

    /// The slot with the text of `path` by `analyzer`.
    pub fn find(&self, path: &str, analyzer: Analyzer) -> Option<usize> {
        self.slots.iter().position(|slot| slot.path == path && slot.analyzer == analyzer)
    }
}

/// Append-only: a slot keeps its path for the life of the index.
pub struct SlotTable {
    taken: RwLock<Arc<TakenSlots>>,
}

impl SlotTable {
    pub fn new(taken: TakenSlots) -> Self {
        Self { taken: RwLock::new(Arc::new(taken)) }
    }

    pub fn snapshot(&self) -> Arc<TakenSlots> {
        Arc::clone(&self.taken.read().unwrap_or_else(|poisoned| poisoned.into_inner()))
    }

    /// The slot of `wanted`'s path and analyzer, taken now if it has none; `None` when all are taken. `is_searched`: a query
    /// without a field finds the text.
    pub fn slot_for(&self, wanted: &Slot, is_searched: bool) -> Option<usize> {
        let mut taken = self.taken.write().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some(slot) = taken.find(&wanted.path, wanted.analyzer) {
            return Some(slot);
        }
        if taken.are_full() {
            if is_searched && !taken.overflow.contains(&wanted.analyzer) {
                Arc::make_mut(&mut taken).overflow.push(wanted.analyzer);
            }
            return None;
        }
        let slot = taken.slots.len();
        Arc::make_mut(&mut taken).slots.push(wanted.clone());
        Some(slot)
    }
}

/// Collects the tokens of `text`: query side and tests.
pub fn tokens_of(analyzer: Analyzer, text: &str) -> Vec<tantivy::tokenizer::Token> {
    let mut tokens = Vec::new();
    analyzer.token_stream(text).process(&mut |token| tokens.push(token.clone()));
    tokens
}
