//! Text of an HTML fragment.

use std::borrow::Cow;

/// Without tags, comments, scripts and styles, and with the common entities decoded. A tag separates words.
pub fn strip_html(html: &str) -> Cow<'_, str> {
    if !html.contains(['<', '&']) {
        return Cow::Borrowed(html);
    }
    let mut text = String::with_capacity(html.len());
    let mut rest = html;
    let mut unclosed = [false; HIDDEN.len()];
    while let Some(at) = rest.find(['<', '&']) {
        text.push_str(&rest[..at]);
        rest = &rest[at..];
        if rest.starts_with('<') {
            match markup_length(rest, &mut unclosed) {
                Some(length) => {
                    text.push(' ');
                    rest = &rest[length..];
                }
                None => {
                    text.push('<');
                    rest = &rest[1..];
                }
            }
        } else {
            match entity(rest) {
                Some((character, length)) => {
                    text.push(character);
                    rest = &rest[length..];
                }
                None => {
                    text.push('&');
                    rest = &rest[1..];
                }
            }
        }
    }
    text.push_str(rest);
    Cow::Owned(text)
}

/// Elements whose content is no text.
const HIDDEN: [(&str, &str); 2] = [("<script", "</script"), ("<style", "</style")];

/// Bytes of the comment, element or tag that `rest` starts with; `None` when the `<` is an ordinary character. `unclosed` notes
/// which of the hidden elements are not closed any more, so that a text with many of them is not searched for each.
fn markup_length(rest: &str, unclosed: &mut [bool; HIDDEN.len()]) -> Option<usize> {
    if rest.starts_with("<!--") {
        return Some(rest.find("-->").map_or(rest.len(), |end| end + 3));
    }
    let first = rest[1..].chars().next()?;
    if !(first.is_ascii_alphabetic() || matches!(first, '/' | '!' | '?')) {
        return None;
    }
    let Some(hidden) = HIDDEN.iter().position(|(open, _)| starts_with_element(rest, open)) else {
        return Some(tag_length(rest));
    };
    let end = if unclosed[hidden] { None } else { find_ignoring_case(rest, HIDDEN[hidden].1) };
    unclosed[hidden] = end.is_none();
    end.map(|end| end + tag_length(&rest[end..]))
}

/// Up to the `>` outside of quotes, or everything.
fn tag_length(rest: &str) -> usize {
    let mut quote = None;
    for (at, byte) in rest.bytes().enumerate() {
        match (quote, byte) {
            (None, b'>') => return at + 1,
            (None, b'"' | b'\'') => quote = Some(byte),
            (Some(open), other) if open == other => quote = None,
            _ => {}
        }
    }
    rest.len()
}

/// Whether `text` starts with a tag of this name, and not with that of a longer one.
fn starts_with_element(text: &str, open: &str) -> bool {
    let Some((head, behind)) = text.as_bytes().split_at_checked(open.len()) else { return false };
    let goes_on = behind.first().is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'-');
    head.eq_ignore_ascii_case(open.as_bytes()) && !goes_on
}

fn find_ignoring_case(text: &str, needle: &str) -> Option<usize> {
    text.as_bytes().windows(needle.len()).position(|window| window.eq_ignore_ascii_case(needle.as_bytes()))
}

const ENTITY_BYTES_MAX: usize = 12;

const ENTITIES: [(&str, char); 20] = [
    ("amp", '&'),
    ("lt", '<'),
    ("gt", '>'),
    ("quot", '"'),
    ("apos", '\''),
    ("nbsp", '\u{a0}'),
    ("ndash", '\u{2013}'),
    ("mdash", '\u{2014}'),
    ("lsquo", '\u{2018}'),
    ("rsquo", '\u{2019}'),
    ("ldquo", '\u{201c}'),
    ("rdquo", '\u{201d}'),
    ("hellip", '\u{2026}'),
    ("copy", '\u{a9}'),
    ("reg", '\u{ae}'),
    ("trade", '\u{2122}'),
    ("eacute", '\u{e9}'),
    ("auml", '\u{e4}'),
    ("ouml", '\u{f6}'),
    ("uuml", '\u{fc}'),
];

/// The character of the entity that `rest` starts with, and the entity's bytes.
fn entity(rest: &str) -> Option<(char, usize)> {
    let head = &rest.as_bytes()[1..rest.len().min(1 + ENTITY_BYTES_MAX)];
    let end = head.iter().position(|&byte| byte == b';')?;
    let name = std::str::from_utf8(&head[..end]).ok()?;
    let character = match name.strip_prefix('#') {
        Some(number) => {
            let code = match number.strip_prefix(['x', 'X']) {
                Some(hexadecimal) => u32::from_str_radix(hexadecimal, 16).ok()?,
                None => number.parse().ok()?,
            };
            char::from_u32(code)?
        }
        None => ENTITIES.iter().find(|(known, _)| *known == name)?.1,
    };
    Some((character, end + 2))
}
