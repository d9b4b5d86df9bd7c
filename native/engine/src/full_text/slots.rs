//! Which document path's text lies in which slot, and the tokenizers through which Tantivy reads it.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, RwLock};

use serde::{Deserialize, Serialize};
use tantivy::tokenizer::{BoxTokenStream, TokenStream, Tokenizer, TokenizerManager};

use super::analysis::Analyzer;
use super::fields::SLOT_COUNT;

pub fn slot_tokenizer_name(slot: usize) -> String {
    format!("slot_{slot}")
}

/// A taken slot, as it is written into the commit payload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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
    analyzers: Arc<[AtomicU8; SLOT_COUNT]>,
}

impl SlotTable {
    pub fn new(taken: Vec<Slot>) -> Self {
        let analyzers: Arc<[AtomicU8; SLOT_COUNT]> = Arc::new(std::array::from_fn(|_| AtomicU8::new(0)));
        for (analyzer, slot) in analyzers.iter().zip(&taken) {
            analyzer.store(slot.analyzer.code(), Ordering::Release);
        }
        Self { taken: RwLock::new(Arc::new(taken)), analyzers }
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
        self.analyzers[slot].store(wanted.analyzer.code(), Ordering::Release);
        Arc::make_mut(&mut taken).push(wanted.clone());
        Some(slot)
    }

    pub fn register_tokenizers(&self, tokenizers: &TokenizerManager) {
        for slot in 0..SLOT_COUNT {
            let tokenizer = SlotTokenizer { slot, analyzers: Arc::clone(&self.analyzers) };
            tokenizers.register(&slot_tokenizer_name(slot), tokenizer);
        }
    }
}

pub fn find_slot(taken: &[Slot], path: &str, analyzer: Analyzer) -> Option<usize> {
    taken.iter().position(|slot| slot.path == path && slot.analyzer == analyzer)
}

/// Looks its analyzer up at every value: a segment in the making cloned its tokenizers before the slot was taken.
#[derive(Clone)]
struct SlotTokenizer {
    slot: usize,
    analyzers: Arc<[AtomicU8; SLOT_COUNT]>,
}

impl Tokenizer for SlotTokenizer {
    type TokenStream<'a> = BoxTokenStream<'a>;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> BoxTokenStream<'a> {
        let code = self.analyzers[self.slot].load(Ordering::Acquire);
        Analyzer::from_code(code).unwrap_or(Analyzer::Standard).token_stream(text)
    }
}

/// Collects the tokens of `text`: query side and tests.
pub fn tokens_of(analyzer: Analyzer, text: &str) -> Vec<tantivy::tokenizer::Token> {
    let mut tokens = Vec::new();
    analyzer.token_stream(text).process(&mut |token| tokens.push(token.clone()));
    tokens
}
