//! Text of an HTML fragment.

use std::borrow::Cow;

/// Without tags, comments, scripts and styles, and with the common entities decoded. A tag separates words.
pub fn strip_html(html: &str) -> Cow<'_, str> {
    if !html.contains(['<', '&']) {
        return Cow::Borrowed(html);
    }
    let mut text = String::with_capacity(html.len());
    let mut rest = html;
    while let Some(at) = rest.find(['<', '&']) {
        text.push_str(&rest[..at]);
        rest = &rest[at..];
        if rest.starts_with('<') {
            match markup_length(rest) {
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

/// Bytes of the comment, element or tag that `rest` starts with; `None` when the `<` is an ordinary character.
fn markup_length(rest: &str) -> Option<usize> {
    if rest.starts_with("<!--") {
        return Some(rest.find("-->").map_or(rest.len(), |end| end + 3));
    }
    let first = rest[1..].chars().next()?;
    if !(first.is_ascii_alphabetic() || matches!(first, '/' | '!' | '?')) {
        return None;
    }
    for (open, close) in [("<script", "</script"), ("<style", "</style")] {
        if starts_with_ignoring_case(rest, open) {
            let end = find_ignoring_case(rest, close)?;
            return Some(end + tag_length(&rest[end..]));
        }
    }
    Some(tag_length(rest))
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

fn starts_with_ignoring_case(text: &str, prefix: &str) -> bool {
    text.as_bytes().get(..prefix.len()).is_some_and(|head| head.eq_ignore_ascii_case(prefix.as_bytes()))
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
