//! Number literals: their grammar, and those that a reader would have to round.

use super::errors::{invalid, out_of_range};
use crate::error::EngineError;

/// The largest integer that every reader of JSON keeps exactly: 2^53.
pub const INTEGER_MAX: u64 = 1 << 53;

/// The position behind the number at `start`, where a minus sign or a digit stands. Errors: `invalid_json`,
/// `number_out_of_range`.
#[inline]
pub(super) fn skip_number(text: &[u8], start: usize) -> Result<usize, EngineError> {
    let mut at = start + usize::from(text[start] == b'-');
    let digits = at;
    at = skip_digits(text, at);
    let digit_count = at - digits;
    if digit_count == 0 || (digit_count > 1 && text[digits] == b'0') {
        return Err(invalid(start, "a number is malformed"));
    }
    let mut is_integer = true;
    let mut may_overflow = digit_count > 300;
    if text.get(at) == Some(&b'.') {
        is_integer = false;
        let fraction = at + 1;
        at = skip_digits(text, fraction);
        if at == fraction {
            return Err(invalid(start, "a number is malformed"));
        }
    }
    if let Some(b'e' | b'E') = text.get(at) {
        is_integer = false;
        may_overflow = true;
        at += 1;
        at += usize::from(matches!(text.get(at), Some(b'+' | b'-')));
        let exponent = at;
        at = skip_digits(text, exponent);
        if at == exponent {
            return Err(invalid(start, "a number is malformed"));
        }
    }
    if is_integer && digit_count > 15 && integer_is_out_of_range(&text[digits..at]) {
        return Err(out_of_range(start, "an integer beyond 2^53 cannot be kept without rounding"));
    }
    if !is_integer && may_overflow {
        let value = std::str::from_utf8(&text[start..at]).ok().and_then(|text| text.parse::<f64>().ok());
        if !value.is_some_and(f64::is_finite) {
            return Err(out_of_range(start, "a number is too large for a double"));
        }
    }
    Ok(at)
}

fn integer_is_out_of_range(digits: &[u8]) -> bool {
    let value = std::str::from_utf8(digits).ok().and_then(|text| text.parse::<u64>().ok());
    value.is_none_or(|value| value > INTEGER_MAX)
}

/// The first position from `at` that holds no digit; eight bytes a step, as in `next_special`.
#[inline]
pub(super) fn skip_digits(text: &[u8], mut at: usize) -> usize {
    const HIGH: u64 = u64::from_le_bytes([0x80; 8]);
    while let Some(chunk) = text.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
        // Digits become 0 to 9; adding 0x76 to the low seven bits of anything else sets its highest bit.
        let word = u64::from_le_bytes(*chunk) ^ u64::from_le_bytes([b'0'; 8]);
        let others = ((word & !HIGH).wrapping_add(u64::from_le_bytes([0x76; 8])) | word) & HIGH;
        if others != 0 {
            return at + (others.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    while let Some(b'0'..=b'9') = text.get(at) {
        at += 1;
    }
    at
}
