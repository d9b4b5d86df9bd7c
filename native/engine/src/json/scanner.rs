//! A one-pass JSON validator that enforces the documented policy for request bodies: UTF-8, no duplicate members, a
//! bounded depth, no lone surrogates, no NUL in member names, no number that a reader would have to round.
//! It builds no values: documents are stored as the bytes that were sent.

use std::borrow::Cow;

use super::errors::{invalid, shorten};
use super::member_names::{MemberNames, NamesBefore};
use super::numbers::skip_number;
use super::scan_limits::ScanLimits;
use super::strings::{RawString, decode_string, next_special, skip_escape};
use crate::error::EngineError;

/// The scanner recurses, so the caller's depth limit has a ceiling of its own.
const DEPTH_CEILING: u32 = 512;

/// Levels of objects whose members are named in errors.
const NAMED_LEVELS: u32 = 2;

/// Checks one JSON text of any type. Errors: `invalid_json`, `json_too_deep`, `number_out_of_range`,
/// `limit_exceeded`.
pub fn scan_json(bytes: &[u8], limits: &ScanLimits) -> Result<(), EngineError> {
    let mut scanner = Scanner::new(bytes, limits)?;
    scanner.skip_whitespace();
    scanner.named_value(0)?;
    scanner.end()
}

/// An object whose members are being read.
pub(crate) struct OpenObject {
    names: NamesBefore,
    is_first: bool,
}

pub(crate) struct Scanner<'a> {
    text: &'a [u8],
    at: usize,
    limits: &'a ScanLimits,
    depth_max: u32,
    members_left: u32,
    names: MemberNames<'a>,
}

impl<'a> Scanner<'a> {
    pub fn new(text: &'a [u8], limits: &'a ScanLimits) -> Result<Self, EngineError> {
        if text.len() as u64 >= u64::from(u32::MAX) {
            return Err(EngineError::new("limit_exceeded", "the body exceeds 4 GiB"));
        }
        if let Err(error) = std::str::from_utf8(text) {
            return Err(invalid(error.valid_up_to(), "the text is not UTF-8"));
        }
        Ok(Self {
            text,
            at: 0,
            limits,
            depth_max: limits.depth_max.min(DEPTH_CEILING),
            members_left: u32::MAX,
            names: MemberNames::of(text),
        })
    }

    pub fn text(&self) -> &'a [u8] {
        self.text
    }

    pub fn position(&self) -> usize {
        self.at
    }

    /// Moves the cursor: the caller has read the text up to there itself.
    pub fn jump(&mut self, position: usize) {
        self.at = position;
    }

    /// From here on, at most `members_max` members until the next call; answers what was left of the last bound.
    pub fn restart_member_count(&mut self, members_max: u32) -> u32 {
        std::mem::replace(&mut self.members_left, members_max)
    }

    #[inline]
    pub fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    #[inline]
    pub fn skip_whitespace(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.peek() {
            self.at += 1;
        }
    }

    /// Nothing but whitespace may follow.
    pub fn end(&mut self) -> Result<(), EngineError> {
        self.skip_whitespace();
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(invalid(self.at, "text after the end of the value")),
        }
    }

    /// Steps over one value. `depth` counts the containers around it.
    pub fn value(&mut self, depth: u32) -> Result<(), EngineError> {
        match self.peek() {
            Some(b'"') => self.string().map(drop),
            Some(b'{') => {
                let mut object = self.open_object(depth)?;
                while self.next_member(&mut object)?.is_some() {
                    self.value(depth + 1)?;
                }
                Ok(())
            }
            Some(b'[') => {
                let mut is_first = self.open_array(depth)?;
                while self.next_element(&mut is_first)? {
                    self.value(depth + 1)?;
                }
                Ok(())
            }
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.literal(b"true"),
            Some(b'f') => self.literal(b"false"),
            Some(b'n') => self.literal(b"null"),
            Some(_) => Err(invalid(self.at, "a value is expected")),
            None => Err(invalid(self.at, "the text ends where a value is expected")),
        }
    }

    /// As `value`; what is wrong inside one of the first `NAMED_LEVELS` levels of objects is told with the member's path.
    fn named_value(&mut self, depth: u32) -> Result<(), EngineError> {
        if depth >= NAMED_LEVELS || self.peek() != Some(b'{') {
            return self.value(depth);
        }
        let mut object = self.open_object(depth)?;
        while let Some(name) = self.next_member(&mut object)? {
            self.named_value(depth + 1).map_err(|error| {
                let inner = error.message.strip_prefix("in \"");
                let rest = inner.map_or_else(|| format!("\": {}", error.message), |inner| format!(".{inner}"));
                EngineError::new(error.code, format!("in \"{}{rest}", shorten(&self.decode(name))))
            })?;
        }
        Ok(())
    }

    /// Enters the object at the cursor, which must stand on `{`.
    pub fn open_object(&mut self, depth: u32) -> Result<OpenObject, EngineError> {
        self.enter(depth)?;
        Ok(OpenObject { names: self.names.open(), is_first: true })
    }

    /// The name of the next member, the cursor then standing on its value, or `None` past the object's end.
    pub fn next_member(&mut self, object: &mut OpenObject) -> Result<Option<RawString>, EngineError> {
        self.skip_whitespace();
        match self.peek() {
            Some(b'}') => {
                self.at += 1;
                self.names.close(object.names, self.at)?;
                return Ok(None);
            }
            Some(b',') if !object.is_first => {
                self.at += 1;
                self.skip_whitespace();
            }
            Some(b'"') if object.is_first => {}
            None => return Err(invalid(self.at, "the text ends inside an object")),
            _ if object.is_first => return Err(invalid(self.at, "a member name or \"}\" is expected")),
            _ => return Err(invalid(self.at, "\",\" or \"}\" is expected")),
        }
        object.is_first = false;
        if self.peek() != Some(b'"') {
            return Err(invalid(self.at, "a member name is expected"));
        }
        let name = self.string()?;
        self.note_name(name)?;
        self.skip_whitespace();
        if self.peek() != Some(b':') {
            return Err(invalid(self.at, "\":\" is expected"));
        }
        self.at += 1;
        self.skip_whitespace();
        Ok(Some(name))
    }

    /// Enters the array at the cursor, which must stand on `[`; the result is the state for `next_element`.
    pub fn open_array(&mut self, depth: u32) -> Result<bool, EngineError> {
        self.enter(depth)?;
        Ok(true)
    }

    /// Whether the cursor now stands on an element; if not, it is past the array's end.
    pub fn next_element(&mut self, is_first: &mut bool) -> Result<bool, EngineError> {
        self.skip_whitespace();
        match self.peek() {
            Some(b']') => {
                self.at += 1;
                return Ok(false);
            }
            Some(b',') if !*is_first => {
                self.at += 1;
                self.skip_whitespace();
            }
            Some(_) if *is_first => {}
            Some(_) => return Err(invalid(self.at, "\",\" or \"]\" is expected")),
            None => return Err(invalid(self.at, "the text ends inside an array")),
        }
        *is_first = false;
        Ok(true)
    }

    /// Steps over the string at the cursor, which must stand on its opening quote.
    pub fn string(&mut self) -> Result<RawString, EngineError> {
        let start = self.at + 1;
        let mut at = start;
        let mut escaped = false;
        loop {
            at = next_special(self.text, at);
            match self.text.get(at) {
                Some(b'"') => break,
                Some(b'\\') => {
                    escaped = true;
                    at = skip_escape(self.text, at)?;
                }
                Some(_) => return Err(invalid(at, "a control character inside a string must be escaped")),
                None => return Err(invalid(at, "the text ends inside a string")),
            }
        }
        self.at = at + 1;
        Ok(RawString { start, end: at, escaped })
    }

    /// The characters that a string literal stands for.
    pub fn decode(&self, string: RawString) -> Cow<'a, str> {
        let raw = &self.text[string.start..string.end];
        decode_string(raw, string.escaped)
    }

    fn enter(&mut self, depth: u32) -> Result<(), EngineError> {
        if depth >= self.depth_max {
            let message = format!("the JSON nests deeper than {} levels at byte {}", self.depth_max, self.at);
            return Err(EngineError::new("json_too_deep", message));
        }
        self.at += 1;
        Ok(())
    }

    fn literal(&mut self, word: &[u8]) -> Result<(), EngineError> {
        if !self.text[self.at..].starts_with(word) {
            return Err(invalid(self.at, "a value is expected"));
        }
        self.at += word.len();
        Ok(())
    }

    fn number(&mut self) -> Result<(), EngineError> {
        self.at = skip_number(self.text, self.at)?;
        Ok(())
    }

    fn note_name(&mut self, name: RawString) -> Result<(), EngineError> {
        let raw_bytes = name.end - name.start;
        if raw_bytes > self.limits.member_name_bytes_max as usize {
            let message = format!(
                "the member name at byte {} has {raw_bytes} bytes; the limit is {}",
                name.start, self.limits.member_name_bytes_max
            );
            return Err(EngineError::new("limit_exceeded", message));
        }
        if self.members_left == 0 {
            let message = format!("a document has more than {} members", self.limits.members_max);
            return Err(EngineError::new("limit_exceeded", message));
        }
        self.members_left -= 1;
        self.names.note(name)
    }
}

/// The value of the member that `path` leads to in a JSON object, as its bytes; `None` when a step is missing or not
/// an object.
pub(crate) fn find_member<'a>(object: &'a [u8], path: &[&str]) -> Result<Option<&'a [u8]>, EngineError> {
    let limits = ScanLimits { depth_max: DEPTH_CEILING, ..ScanLimits::default() };
    let mut scanner = Scanner::new(object, &limits)?;
    for (level, step) in path.iter().enumerate() {
        scanner.skip_whitespace();
        if scanner.peek() != Some(b'{') {
            return Ok(None);
        }
        let mut open = scanner.open_object(level as u32)?;
        loop {
            match scanner.next_member(&mut open)? {
                None => return Ok(None),
                Some(name) if scanner.decode(name) == *step => break,
                Some(_) => scanner.value(level as u32 + 1)?,
            }
        }
    }
    let start = scanner.position();
    scanner.value(path.len() as u32)?;
    Ok(Some(&object[start..scanner.position()]))
}
