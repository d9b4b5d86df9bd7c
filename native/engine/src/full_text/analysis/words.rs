//! Words of a text: Unicode word boundaries (UAX 29, rules WB5 to WB13) for alphabetic scripts, pairs of neighbouring
//! characters for Chinese, Japanese and Korean, which write no spaces that mean words.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::OnceLock;

use tantivy::tokenizer::{Token, TokenStream};

use super::stems::{StemLanguage, Stems};

/// Longer words are cut to as many bytes, longer tokens of other kinds dropped.
pub const TOKEN_BYTES_MAX: usize = 255;

#[derive(Clone, Copy)]
pub struct WordRules {
    /// Digits, underscores and inner punctuation end a word.
    letters_only: bool,
    stems: Option<StemLanguage>,
}

impl WordRules {
    pub fn letters() -> Self {
        Self { letters_only: true, stems: None }
    }

    pub fn plain() -> Self {
        Self { letters_only: false, stems: None }
    }

    pub fn stemmed(language: StemLanguage) -> Self {
        Self { letters_only: false, stems: Some(language) }
    }
}

/// Where a word stands in the text.
struct Found {
    range: Range<usize>,
    is_ascii: bool,
}

pub struct WordStream<'a> {
    text: Cow<'a, str>,
    letters_only: bool,
    stems: Option<Stems>,
    cursor: usize,
    /// End of the run of ideographs that the cursor is in, and whether a pair of it has been given.
    pair_run: Option<(usize, bool)>,
    next_position: usize,
    token: Token,
}

impl<'a> WordStream<'a> {
    pub fn new(text: &'a str, rules: WordRules) -> Self {
        Self::over(Cow::Borrowed(text), rules)
    }

    pub fn owned(text: Cow<'a, str>, rules: WordRules) -> Self {
        Self::over(text, rules)
    }

    fn over(text: Cow<'a, str>, rules: WordRules) -> Self {
        Self {
            text,
            letters_only: rules.letters_only,
            stems: rules.stems.map(Stems::of),
            cursor: 0,
            pair_run: None,
            next_position: 0,
            token: Token::default(),
        }
    }

    /// As `advance` without stems and stop words, without a copy of words that are ASCII: the text in which the word
    /// stands, where it stands there, and its position. Only what is ASCII may be in uppercase.
    pub fn next_plain(&mut self) -> Option<(&str, Range<usize>, usize)> {
        loop {
            let Found { range, is_ascii } = self.next_word()?;
            let position = self.next_position;
            self.next_position += 1;
            if is_ascii {
                let range = range.start..range.end.min(range.start + TOKEN_BYTES_MAX);
                if !is_dropped(&self.text[range.clone()]) {
                    return Some((&self.text, range, position));
                }
                continue;
            }
            self.set_token(Found { range, is_ascii });
            if !is_dropped(&self.token.text) {
                return Some((&self.token.text, 0..self.token.text.len(), position));
            }
        }
    }

    /// Moves behind the next word.
    fn next_word(&mut self) -> Option<Found> {
        if let Some((end, given)) = self.pair_run {
            if let Some(pair) = self.next_pair(end, given) {
                return Some(pair);
            }
            self.pair_run = None;
        }
        let start = self.skip_to_word()?;
        if self.pair_run.is_some() {
            return self.next_word();
        }
        let (end, is_ascii) = self.word_end(start);
        self.cursor = end;
        Some(Found { range: start..end, is_ascii })
    }

    /// Gives the pair at the cursor; the last character of a run alone only if it is the whole run.
    fn next_pair(&mut self, end: usize, given: bool) -> Option<Found> {
        let start = self.cursor;
        let mut characters = self.text[start..end].chars();
        let first = characters.next()?;
        let second = characters.next();
        if second.is_none() && given {
            self.cursor = end;
            return None;
        }
        self.cursor = start + first.len_utf8();
        self.pair_run = Some((end, true));
        Some(Found { range: start..self.cursor + second.map_or(0, char::len_utf8), is_ascii: false })
    }

    /// Start of the next word; enters a run of ideographs by setting `pair_run`.
    fn skip_to_word(&mut self) -> Option<usize> {
        let bytes = self.text.as_bytes();
        let mut at = self.cursor;
        while at < bytes.len() {
            let byte = bytes[at];
            if byte.is_ascii() {
                if is_ascii_word(byte, self.letters_only) {
                    self.cursor = at;
                    return Some(at);
                }
                at += 1;
                continue;
            }
            let character = character_at(&self.text, at);
            if is_paired(character) {
                let length = self.text[at..].find(|other| !is_paired(other)).unwrap_or(bytes.len() - at);
                self.cursor = at;
                self.pair_run = Some((at + length, false));
                return Some(at);
            }
            if is_word_character(character, self.letters_only) {
                self.cursor = at;
                return Some(at);
            }
            at += character.len_utf8();
        }
        self.cursor = at;
        None
    }

    /// End of the word that starts at `start`, and whether it is ASCII.
    fn word_end(&self, start: usize) -> (usize, bool) {
        let bytes = self.text.as_bytes();
        let mut at = start;
        let mut is_ascii = true;
        while at < bytes.len() {
            let byte = bytes[at];
            if byte.is_ascii() {
                if is_ascii_word(byte, self.letters_only) || self.joins(start, at, byte as char) {
                    at += 1;
                    continue;
                }
                break;
            }
            let character = character_at(&self.text, at);
            let belongs = !is_paired(character)
                && (is_word_character(character, self.letters_only)
                    || (at > start && is_mark(character))
                    || self.joins(start, at, character));
            if !belongs {
                break;
            }
            is_ascii = false;
            at += character.len_utf8();
        }
        (at, is_ascii)
    }

    /// Whether punctuation between two letters or two digits holds a word together ("don't", "3.14").
    fn joins(&self, start: usize, at: usize, character: char) -> bool {
        if self.letters_only || at == start || !matches!(character, '\'' | '.' | ',' | ';' | '\u{2019}' | '\u{b7}') {
            return false;
        }
        let before = self.text[..at].chars().next_back();
        let after = self.text[at + character.len_utf8()..].chars().next();
        let (Some(before), Some(after)) = (before, after) else { return false };
        let letters = || before.is_alphabetic() && after.is_alphabetic() && !is_paired(after);
        let digits = || before.is_numeric() && after.is_numeric();
        match character {
            '\'' | '.' | '\u{2019}' => letters() || digits(),
            '\u{b7}' => letters(),
            _ => digits(),
        }
    }

    /// Writes a word, in lowercase and cut to the length of a token, into the token.
    fn set_token(&mut self, Found { range, is_ascii }: Found) {
        let token = &mut self.token;
        token.offset_from = range.start;
        token.offset_to = range.end;
        token.text.clear();
        let word = &self.text[range];
        if is_ascii {
            token.text.push_str(&word[..word.len().min(TOKEN_BYTES_MAX)]);
            token.text.make_ascii_lowercase();
            return;
        }
        for character in word.chars() {
            match character {
                '\u{2019}' => token.text.push('\''),
                other => token.text.extend(other.to_lowercase()),
            }
        }
        token.text.truncate(token.text.floor_char_boundary(TOKEN_BYTES_MAX));
    }
}

impl TokenStream for WordStream<'_> {
    fn advance(&mut self) -> bool {
        while let Some(found) = self.next_word() {
            self.set_token(found);
            self.token.position = self.next_position;
            self.next_position += 1;
            let text = &mut self.token.text;
            if is_dropped(text) {
                continue;
            }
            if let Some(stems) = &mut self.stems
                && !stems.stem(text)
            {
                continue;
            }
            return true;
        }
        false
    }

    fn token(&self) -> &Token {
        &self.token
    }

    fn token_mut(&mut self) -> &mut Token {
        &mut self.token
    }
}

/// Words that are no token.
fn is_dropped(word: &str) -> bool {
    word.bytes().all(|byte| byte == b'_')
}

fn is_ascii_word(byte: u8, letters_only: bool) -> bool {
    byte.is_ascii_alphabetic() || (!letters_only && (byte.is_ascii_digit() || byte == b'_'))
}

fn is_word_character(character: char, letters_only: bool) -> bool {
    if letters_only { character.is_alphabetic() } else { character.is_alphanumeric() }
}

fn character_at(text: &str, at: usize) -> char {
    text[at..].chars().next().expect("the cursor is inside the text")
}

/// Han, Hiragana, Katakana and Hangul.
pub fn is_paired(character: char) -> bool {
    matches!(u32::from(character),
        0x1100..=0x11ff | 0x3005..=0x3007 | 0x3041..=0x309f | 0x30a1..=0x30fa | 0x30fc..=0x30ff | 0x3130..=0x318f
        | 0x31f0..=0x31ff | 0x3400..=0x4dbf | 0x4e00..=0x9fff | 0xac00..=0xd7af | 0xf900..=0xfaff | 0xff66..=0xff9f
        | 0x20000..=0x3ffff)
}

/// Combining marks and joiners: part of the word before them.
fn is_mark(character: char) -> bool {
    static MARKS: OnceLock<Option<regex::Regex>> = OnceLock::new();
    let marks = MARKS.get_or_init(|| regex::Regex::new(r"^[\p{M}\u{200c}\u{200d}]$").ok());
    marks.as_ref().is_some_and(|marks| marks.is_match(character.encode_utf8(&mut [0; 4])))
}
