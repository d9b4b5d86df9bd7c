//! Reads the numbers of a vector in each form that a request may send.

use std::borrow::Cow;

use base64::Engine;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use sundew_base::part::{f32_at, u32_at};

use crate::json::{Scanner, float_at, shorten};
use crate::write::index_member::{Fault, refuse};

/// Entries of one sparse vector.
pub const SPARSE_ENTRIES_MAX: usize = 65_536;

const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Appends the float32s of an array of numbers or of a base64 string. An array of another length than `dimension` is refused;
/// the caller checks what a string holds.
pub(super) fn read_dense(scanner: &mut Scanner<'_>, dimension: usize, payloads: &mut Vec<u8>) -> Result<(), Fault> {
    match scanner.peek() {
        Some(b'[') => {
            let mut count = 0;
            each_element(scanner, |text, at| {
                let (number, end) = float_item(text, at)?;
                if count < dimension {
                    payloads.extend_from_slice(&number.to_le_bytes());
                }
                count += 1;
                Ok(end)
            })?;
            if count == dimension { Ok(()) } else { Err(wrong_dimension(count, dimension)) }
        }
        Some(b'"') => decode_words(scanner, payloads),
        Some(b'{') => refuse("has the form of a sparse vector; the index is dense and takes an array of numbers"),
        _ => refuse("must be an array of numbers, a base64 string of little-endian float32s, or null"),
    }
}

/// Reads `{"5": 0.3}`, `{indices, values}` or `{packed_indices, packed_values}`.
pub(super) fn read_sparse(scanner: &mut Scanner<'_>, entries: &mut Vec<(u32, f32)>) -> Result<(), Fault> {
    match scanner.peek() {
        Some(b'{') => {}
        Some(b'[' | b'"') => {
            return refuse("has the form of a dense vector; the index is sparse and takes {\"token\": weight}");
        }
        _ => return refuse("must be an object of tokens and weights, {indices, values}, or null"),
    }
    let mut indices: Option<Vec<u32>> = None;
    let mut values: Option<Vec<f32>> = None;
    let mut object = scanner.open_object(1)?;
    while let Some(name) = scanner.next_member(&mut object)? {
        match &*scanner.decode(name) {
            "indices" => indices = Some(read_array(scanner, "indices", index_item)?),
            "values" => values = Some(read_array(scanner, "values", float_item)?),
            "packed_indices" => indices = Some(read_packed(scanner, "packed_indices", u32_at)?),
            "packed_values" => values = Some(read_packed(scanner, "packed_values", f32_at)?),
            token => {
                let index = token.parse::<u32>().ok().filter(|_| token.as_bytes()[0].is_ascii_digit());
                let Some(index) = index else {
                    let shown = shorten(token);
                    return refuse(format!("has the token {shown:?}; tokens are integers from 0 to 4294967295"));
                };
                entries.push((index, read_float(scanner)?));
            }
        }
        if entries.len() > SPARSE_ENTRIES_MAX {
            return Err(too_many());
        }
    }
    match (indices, values) {
        (None, None) => Ok(()),
        (Some(indices), Some(values)) if entries.is_empty() => {
            if indices.len() != values.len() {
                return refuse(format!("has {} indices and {} values; give as many", indices.len(), values.len()));
            }
            if let Some(pair) = indices.windows(2).find(|pair| pair[0] > pair[1]) {
                return refuse(format!(
                    "has the index {} behind {}; list indices in ascending order",
                    pair[1], pair[0]
                ));
            }
            entries.extend(indices.into_iter().zip(values));
            Ok(())
        }
        (Some(_), Some(_)) => refuse("mixes tokens with indices and values; use one form"),
        (Some(_), None) => refuse("has indices without values; give as many of both"),
        (None, Some(_)) => refuse("has values without indices; give as many of both"),
    }
}

fn read_array<T>(
    scanner: &mut Scanner<'_>,
    member: &str,
    read: impl Fn(&[u8], usize) -> Result<(T, usize), Fault>,
) -> Result<Vec<T>, Fault> {
    if scanner.peek() != Some(b'[') {
        return refuse(format!("needs an array as \"{member}\""));
    }
    let mut items = Vec::new();
    each_element(scanner, |text, at| {
        let (item, end) = read(text, at)?;
        items.push(item);
        if items.len() > SPARSE_ENTRIES_MAX { Err(too_many()) } else { Ok(end) }
    })?;
    Ok(items)
}

/// Steps over the array of numbers at the cursor; `item` reads the number at a position and answers where it ends.
fn each_element(
    scanner: &mut Scanner<'_>,
    mut item: impl FnMut(&[u8], usize) -> Result<usize, Fault>,
) -> Result<(), Fault> {
    let text = scanner.text();
    let mut at = skip_whitespace(text, scanner.position() + 1);
    if text.get(at) != Some(&b']') {
        loop {
            at = skip_whitespace(text, item(text, at)?);
            match text.get(at) {
                Some(b',') => at = skip_whitespace(text, at + 1),
                Some(b']') => break,
                _ => return Err(not_a_number()),
            }
        }
    }
    scanner.jump(at + 1);
    Ok(())
}

#[inline]
fn skip_whitespace(text: &[u8], mut at: usize) -> usize {
    while let Some(b' ' | b'\n' | b'\r' | b'\t') = text.get(at) {
        at += 1;
    }
    at
}

fn read_packed<T>(scanner: &mut Scanner<'_>, member: &str, word: impl Fn(&[u8], usize) -> T) -> Result<Vec<T>, Fault> {
    if scanner.peek() != Some(b'"') {
        return refuse(format!("needs a base64 string as \"{member}\""));
    }
    let mut bytes = Vec::new();
    decode_words(scanner, &mut bytes)?;
    Ok(bytes.chunks_exact(4).map(|chunk| word(chunk, 0)).collect())
}

/// Appends what a base64 string of four-byte words holds.
fn decode_words(scanner: &mut Scanner<'_>, bytes: &mut Vec<u8>) -> Result<(), Fault> {
    let start = bytes.len();
    let literal = scanner.string()?;
    let content: Cow<'_, [u8]> = if literal.escaped {
        Cow::Owned(scanner.decode(literal).into_owned().into_bytes())
    } else {
        Cow::Borrowed(&scanner.text()[literal.start..literal.end])
    };
    if BASE64.decode_vec(content, bytes).is_err() {
        return refuse("is a string that is not base64 of the standard alphabet");
    }
    if (bytes.len() - start).is_multiple_of(4) {
        return Ok(());
    }
    refuse("is base64 of bytes whose length is not a multiple of four")
}

/// The number at the cursor; an overflow becomes an infinity.
fn read_float(scanner: &mut Scanner<'_>) -> Result<f32, Fault> {
    let (number, end) = float_at(scanner.text(), scanner.position()).ok_or_else(not_a_number)?;
    scanner.jump(end);
    Ok(number)
}

#[inline]
fn float_item(text: &[u8], at: usize) -> Result<(f32, usize), Fault> {
    float_at(text, at).ok_or_else(not_a_number)
}

fn index_item(text: &[u8], at: usize) -> Result<(u32, usize), Fault> {
    let (_, end) = float_item(text, at)?;
    let digits = std::str::from_utf8(&text[at..end]).map_err(|_| not_a_number())?;
    let index = digits.parse().map_err(|_| {
        Fault::Refused(format!("has the index {}; indices are integers from 0 to 4294967295", shorten(digits)).into())
    })?;
    Ok((index, end))
}

fn not_a_number() -> Fault {
    Fault::Refused("must hold numbers only".into())
}

pub(super) fn too_many() -> Fault {
    Fault::Refused(format!("has more than {SPARSE_ENTRIES_MAX} entries; keep the greatest weights").into())
}

pub(super) fn wrong_dimension(count: usize, dimension: usize) -> Fault {
    Fault::Refused(format!("has dimension {count}; the index takes dimension {dimension}").into())
}
