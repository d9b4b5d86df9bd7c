//! The parts of a search-as-you-type field: neighbouring words joined, and their beginnings.

use tantivy::tokenizer::{Token, TokenStream};

use super::words::{TOKEN_BYTES_MAX, WordRules, WordStream};

/// Beginnings that are indexed, characters.
const PREFIX_CHARACTERS_MIN: usize = 2;
pub const PREFIX_CHARACTERS_MAX: usize = 20;
/// Words that a beginning may reach over.
const PREFIX_WORDS_MAX: usize = 3;

/// A stream over tokens that are already there.
#[derive(Default)]
pub struct PreparedTokens {
    tokens: Vec<Token>,
    /// One more than the current token's position; 0 before the first.
    next: usize,
    none: Token,
}

impl PreparedTokens {
    pub fn new(tokens: Vec<Token>) -> Self {
        Self { tokens, next: 0, none: Token::default() }
    }
}

impl TokenStream for PreparedTokens {
    fn advance(&mut self) -> bool {
        if self.next >= self.tokens.len() {
            return false;
        }
        self.next += 1;
        true
    }

    fn token(&self) -> &Token {
        self.next.checked_sub(1).and_then(|at| self.tokens.get(at)).unwrap_or(&self.none)
    }

    fn token_mut(&mut self) -> &mut Token {
        let at = self.next.checked_sub(1);
        at.and_then(|at| self.tokens.get_mut(at)).unwrap_or(&mut self.none)
    }
}

fn lowercase_words(text: &str) -> Vec<Token> {
    let mut words = Vec::new();
    WordStream::new(text, WordRules::plain()).process(&mut |token| words.push(token.clone()));
    words
}

fn joined(words: &[Token]) -> String {
    let texts: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
    texts.join(" ")
}

/// Every `size` neighbouring words, joined by a space.
pub fn shingles(text: &str, size: usize) -> PreparedTokens {
    let words = lowercase_words(text);
    let tokens = words
        .windows(size)
        .enumerate()
        .map(|(position, window)| Token {
            offset_from: window[0].offset_from,
            offset_to: window[size - 1].offset_to,
            position,
            text: joined(window),
            position_length: 1,
        })
        .filter(|token| token.text.len() <= TOKEN_BYTES_MAX)
        .collect();
    PreparedTokens::new(tokens)
}

/// The beginnings, 2 to 20 characters, of every word together with up to two words after it. The beginnings of the
/// shorter joins are beginnings of the longest.
pub fn edge_prefixes(text: &str) -> PreparedTokens {
    let words = lowercase_words(text);
    let mut tokens = Vec::new();
    for position in 0..words.len() {
        let window = &words[position..words.len().min(position + PREFIX_WORDS_MAX)];
        let longest = joined(window);
        let ends = longest.char_indices().map(|(at, character)| at + character.len_utf8());
        for end in ends.take(PREFIX_CHARACTERS_MAX).skip(PREFIX_CHARACTERS_MIN - 1) {
            if longest[..end].ends_with(' ') {
                continue;
            }
            tokens.push(Token {
                offset_from: window[0].offset_from,
                offset_to: window[0].offset_to,
                position,
                text: longest[..end].to_owned(),
                position_length: 1,
            });
        }
    }
    PreparedTokens::new(tokens)
}
