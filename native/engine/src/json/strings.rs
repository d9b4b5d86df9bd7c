//! String literals: where they end, and the characters that they stand for.

use std::borrow::Cow;

use super::errors::invalid;
use crate::error::EngineError;

/// The content of a string literal: offsets between its quotes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RawString {
    pub start: usize,
    pub end: usize,
    pub escaped: bool,
}

/// The characters of a string literal's content that `Scanner::string` has accepted.
pub(crate) fn decode_string(raw: &[u8], escaped: bool) -> Cow<'_, str> {
    let text = String::from_utf8_lossy(raw);
    if !escaped {
        return text;
    }
    let mut decoded = String::with_capacity(raw.len());
    let mut rest = text.as_ref();
    while let Some(slash) = rest.find('\\') {
        decoded.push_str(&rest[..slash]);
        let (character, length) = decode_escape(&rest.as_bytes()[slash..]);
        decoded.push(character);
        rest = &rest[slash + length..];
    }
    decoded.push_str(rest);
    Cow::Owned(decoded)
}

/// The first byte from `at` that ends or interrupts a string: a quote, a backslash or a control character. Eight
/// bytes a step: the usual "which byte is zero" and "which byte is less than n" tricks on a word, whose lowest hit is
/// exact.
#[inline]
pub(super) fn next_special(text: &[u8], mut at: usize) -> usize {
    const LOW: u64 = u64::from_le_bytes([0x01; 8]);
    const HIGH: u64 = u64::from_le_bytes([0x80; 8]);
    while let Some(chunk) = text.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
        let word = u64::from_le_bytes(*chunk);
        let quote = word ^ (LOW * b'"' as u64);
        let slash = word ^ (LOW * b'\\' as u64);
        let quote_hit = quote.wrapping_sub(LOW) & !quote;
        let slash_hit = slash.wrapping_sub(LOW) & !slash;
        let control_hit = word.wrapping_sub(LOW * 0x20) & !word;
        let hits = (quote_hit | slash_hit | control_hit) & HIGH;
        if hits != 0 {
            return at + (hits.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    while let Some(&byte) = text.get(at) {
        if byte == b'"' || byte == b'\\' || byte < 0x20 {
            break;
        }
        at += 1;
    }
    at
}

/// The position behind the escape sequence at `at`.
pub(super) fn skip_escape(text: &[u8], at: usize) -> Result<usize, EngineError> {
    match text.get(at + 1) {
        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => Ok(at + 2),
        Some(b'u') => {
            let unit = hex_unit(text, at + 2).ok_or_else(|| invalid(at, "\\u takes four hexadecimal digits"))?;
            match unit {
                0xD800..=0xDBFF => {
                    let low = if text.get(at + 6..at + 8) == Some(b"\\u") { hex_unit(text, at + 8) } else { None };
                    match low {
                        Some(0xDC00..=0xDFFF) => Ok(at + 12),
                        _ => Err(invalid(at, "a lone surrogate")),
                    }
                }
                0xDC00..=0xDFFF => Err(invalid(at, "a lone surrogate")),
                _ => Ok(at + 6),
            }
        }
        _ => Err(invalid(at, "an unknown escape sequence")),
    }
}

/// The character of an accepted escape sequence and the bytes that it took.
fn decode_escape(sequence: &[u8]) -> (char, usize) {
    match sequence.get(1) {
        Some(b'b') => ('\u{8}', 2),
        Some(b'f') => ('\u{c}', 2),
        Some(b'n') => ('\n', 2),
        Some(b'r') => ('\r', 2),
        Some(b't') => ('\t', 2),
        Some(b'u') => {
            let high = hex_unit(sequence, 2).unwrap_or(0xFFFD);
            if let Some(character) = char::from_u32(high) {
                return (character, 6);
            }
            let low = hex_unit(sequence, 8).unwrap_or(0xDC00);
            let code = 0x10000 + ((high & 0x3FF) << 10) + (low & 0x3FF);
            (char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER), 12)
        }
        Some(&byte) => (byte as char, 2),
        None => (char::REPLACEMENT_CHARACTER, 1),
    }
}

fn hex_unit(text: &[u8], at: usize) -> Option<u32> {
    text.get(at..at + 4)?.iter().try_fold(0, |unit, &byte| Some(unit << 4 | (byte as char).to_digit(16)?))
}
