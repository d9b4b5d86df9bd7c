//! Tests of the tokens of a text and of whole strings.

use std::collections::HashSet;
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

use tantivy::tokenizer::Token;

use super::near_test::NearTest;
use super::sequences::Sequence;
use crate::full_text::query::{Network, Pattern, TokenTest};

/// A condition under one analyzer.
pub enum TokenMatcher {
    Exact(HashSet<String>),
    Sequence(Sequence),
    Prefix(String),
    Shape(Arc<Pattern>),
    Near(NearTest),
    /// Of a script whose tokens are pairs of characters.
    Character(char),
}

/// A condition on a whole string.
pub enum WholeMatcher {
    Equal(String),
    Prefix(String),
    Shape(Arc<Pattern>),
    Near(NearTest),
    Address(Network),
    Between(Bound<String>, Bound<String>),
}

impl TokenMatcher {
    pub fn exact(words: impl IntoIterator<Item = String>) -> Self {
        Self::Exact(words.into_iter().collect())
    }

    /// Whether the token is wanted wherever it stands.
    fn accepts(&self, token: &str) -> bool {
        match self {
            Self::Exact(words) => words.contains(token),
            Self::Prefix(prefix) => token.starts_with(prefix.as_str()),
            Self::Shape(pattern) => accepts(&pattern.walker(), token),
            Self::Near(word) => word.accepts(token),
            Self::Character(_) | Self::Sequence(_) => false,
        }
    }

    pub fn mark(&self, tokens: &[Token], marked: &mut [bool]) {
        let mut mark_each = |wants: &dyn Fn(&str) -> bool| {
            for (token, marked) in tokens.iter().zip(marked.iter_mut()) {
                *marked = *marked || wants(&token.text);
            }
        };
        match self {
            Self::Sequence(sequence) => sequence.mark(tokens, marked),
            Self::Shape(pattern) => {
                let walker = pattern.walker();
                mark_each(&|token| accepts(&walker, token));
            }
            _ => mark_each(&|token| self.accepts(token)),
        }
    }
}

impl WholeMatcher {
    pub fn accepts(&self, whole: &str) -> bool {
        match self {
            Self::Equal(text) => whole == text,
            Self::Prefix(prefix) => whole.starts_with(prefix.as_str()),
            Self::Shape(pattern) => accepts(&pattern.walker(), whole),
            Self::Near(word) => word.accepts(whole),
            Self::Address(network) => network.contains(whole),
            Self::Between(low, high) => {
                let bounds = (low.as_ref().map(String::as_str), high.as_ref().map(String::as_str));
                RangeBounds::<str>::contains(&bounds, whole)
            }
        }
    }
}

/// A pattern that grows too large for a token does not match it.
fn accepts<T: TokenTest>(test: &T, token: &str) -> bool {
    let mut state = test.start().ok().flatten();
    for byte in token.bytes() {
        state = state.and_then(|state| test.step(state, byte).ok().flatten());
    }
    state.is_some_and(|state| test.accepts(state).unwrap_or(false))
}
