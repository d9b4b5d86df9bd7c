//! Constrained decoding: which tokens of a vocabulary may follow in an output that is held to a GBNF grammar.
//!
//! The parser is llguidance's: an Earley parser over a trie of the vocabulary. Unlike the one of llama.cpp it merges
//! equal parses, so that an ambiguous grammar costs a bounded amount of work for each token.

mod beginnings;
mod expression;
mod gbnf;
mod gbnf_reader;
mod lark;
mod matcher;
mod vocabulary;

pub use matcher::Matcher;
pub use vocabulary::{Vocabulary, VocabularyParts};
