//! Analysed text on its way to Tantivy: the tokens, written one after another as a string.
//!
//! Analysis is a third of the work of indexing. Done where the document is read, it runs beside Tantivy's indexing
//! thread instead of on it. A token is three things: the distance from the position of the token before it, its length
//! in bytes, each as one character, and its text.

use tantivy::tokenizer::{Token, TokenStream, Tokenizer};

use crate::full_text::analysis::Analyzer;

pub const ANALYZED_TOKENIZER: &str = "analyzed";

/// The last code point before the surrogates.
const NUMBER_MAX: usize = 0xd7ff;

fn number_character(number: usize) -> char {
    u32::try_from(number.min(NUMBER_MAX)).ok().and_then(char::from_u32).unwrap_or('\0')
}

/// Appends the tokens of `text`.
pub fn write_tokens(analyzer: Analyzer, text: &str, output: &mut String) {
    // The first position is 0, one after this.
    let mut next_position = 0;
    analyzer.token_stream(text).process(&mut |token| {
        if token.text.len() > NUMBER_MAX {
            return;
        }
        output.push(number_character((token.position + 1).saturating_sub(next_position)));
        output.push(number_character(token.text.len()));
        output.push_str(&token.text);
        next_position = token.position + 1;
    });
}

/// Reads what `write_tokens` wrote.
#[derive(Clone)]
pub struct AnalyzedTokenizer;

impl Tokenizer for AnalyzedTokenizer {
    type TokenStream<'a> = AnalyzedStream<'a>;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> AnalyzedStream<'a> {
        AnalyzedStream { rest: text, next_position: 0, token: Token::default() }
    }
}

pub struct AnalyzedStream<'a> {
    rest: &'a str,
    next_position: usize,
    token: Token,
}

impl TokenStream for AnalyzedStream<'_> {
    fn advance(&mut self) -> bool {
        let mut characters = self.rest.chars();
        let (Some(distance), Some(length)) = (characters.next(), characters.next()) else { return false };
        let Some((text, rest)) = characters.as_str().split_at_checked(length as usize) else { return false };
        self.next_position += distance as usize;
        self.token.position = self.next_position.saturating_sub(1);
        self.token.text.clear();
        self.token.text.push_str(text);
        self.rest = rest;
        true
    }

    fn token(&self) -> &Token {
        &self.token
    }

    fn token_mut(&mut self) -> &mut Token {
        &mut self.token
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::full_text::slots::tokens_of;

    #[test]
    fn tokens_come_back_with_their_positions() {
        let texts = ["", "the soup of the day", "東京都 and a b c", "quick brown fox jumps", "x\u{1}\0y"];
        let analyzers = ["standard", "keyword", "search_as_you_type_2gram", "search_as_you_type_index_prefix"];
        for (text, name) in texts.iter().flat_map(|text| analyzers.map(|name| (text, name))) {
            let analyzer = Analyzer::named(name).expect("a known analyzer");
            let mut written = String::new();
            write_tokens(analyzer, text, &mut written);
            let mut read = Vec::new();
            AnalyzedTokenizer
                .token_stream(&written)
                .process(&mut |token| read.push((token.position, token.text.clone())));
            let expected: Vec<(usize, String)> =
                tokens_of(analyzer, text).into_iter().map(|token| (token.position, token.text)).collect();
            assert_eq!(read, expected, "{name} of {text:?}");
        }
    }
}
