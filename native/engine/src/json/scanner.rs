//! A one-pass JSON validator that enforces the documented policy for request bodies: UTF-8, no duplicate members, a
//! bounded depth, no lone surrogates, no NUL in member names, no number that a reader would have to round.
//! It builds no values: documents are stored as the bytes that were sent.

use std::borrow::Cow;

use crate::error::EngineError;

/// The largest integer that every reader of JSON keeps exactly: 2^53.
pub const INTEGER_MAX: u64 = 1 << 53;
/// Up to this many members an object's names are compared pairwise; beyond, they are sorted.
const PAIRWISE_MEMBERS_MAX: usize = 16;
/// The scanner recurses, so the caller's depth limit has a ceiling of its own.
const DEPTH_CEILING: u32 = 512;

/// Levels of objects whose members are named in errors.
const NAMED_LEVELS: u32 = 2;

/// Bounds on what is scanned. The defaults are the documented ones.
#[derive(Debug, Clone)]
pub struct ScanLimits {
    /// Levels of objects and arrays; a document's own object is level 1.
    pub depth_max: u32,
    /// Members of one document, all levels together.
    pub members_max: u32,
    /// Bytes of one member name, without quotes, as sent.
    pub member_name_bytes_max: u32,
    pub document_bytes_max: u32,
    /// Inserts, deletes, transforms and records of one request.
    pub keys_max: u32,
    pub path_segments_max: u32,
}

impl Default for ScanLimits {
    fn default() -> Self {
        Self {
            depth_max: 64,
            members_max: 10_000,
            member_name_bytes_max: 65_535,
            document_bytes_max: 16 << 20,
            keys_max: 100_000,
            path_segments_max: 32,
        }
    }
}

/// Checks one JSON text of any type. Errors: `invalid_json`, `json_too_deep`, `number_out_of_range`,
/// `limit_exceeded`.
pub fn scan_json(bytes: &[u8], limits: &ScanLimits) -> Result<(), EngineError> {
    let mut scanner = Scanner::new(bytes, limits)?;
    scanner.skip_whitespace();
    scanner.named_value(0)?;
    scanner.end()
}

/// The content of a string literal: offsets between its quotes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RawString {
    pub start: usize,
    pub end: usize,
    pub escaped: bool,
}

/// An object whose members are being read.
pub(crate) struct OpenObject {
    names_base: usize,
    decoded_base: usize,
    is_first: bool,
}

#[derive(Clone, Copy)]
struct Name {
    digest: u64,
    start: u32,
    bytes: u32,
    is_decoded: bool,
}

pub(crate) struct Scanner<'a> {
    text: &'a [u8],
    at: usize,
    limits: &'a ScanLimits,
    depth_max: u32,
    members_left: u32,
    names: Vec<Name>,
    decoded: Vec<u8>,
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
            names: Vec::new(),
            decoded: Vec::new(),
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
                let inner = error.message.strip_prefix("in `");
                let rest = inner.map_or_else(|| format!("`: {}", error.message), |inner| format!(".{inner}"));
                EngineError::new(error.code, format!("in `{}{rest}", shorten(&self.decode(name))))
            })?;
        }
        Ok(())
    }

    /// Enters the object at the cursor, which must stand on `{`.
    pub fn open_object(&mut self, depth: u32) -> Result<OpenObject, EngineError> {
        self.enter(depth)?;
        Ok(OpenObject { names_base: self.names.len(), decoded_base: self.decoded.len(), is_first: true })
    }

    /// The name of the next member, the cursor then standing on its value, or `None` past the object's end.
    pub fn next_member(&mut self, object: &mut OpenObject) -> Result<Option<RawString>, EngineError> {
        self.skip_whitespace();
        match self.peek() {
            Some(b'}') => {
                self.at += 1;
                self.close_object(object)?;
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
        let start = self.at;
        let mut at = start + usize::from(self.text[start] == b'-');
        let digits = at;
        at = skip_digits(self.text, at);
        let digit_count = at - digits;
        if digit_count == 0 || (digit_count > 1 && self.text[digits] == b'0') {
            return Err(invalid(start, "a number is malformed"));
        }
        let mut is_integer = true;
        let mut may_overflow = digit_count > 300;
        if self.text.get(at) == Some(&b'.') {
            is_integer = false;
            let fraction = at + 1;
            at = skip_digits(self.text, fraction);
            if at == fraction {
                return Err(invalid(start, "a number is malformed"));
            }
        }
        if let Some(b'e' | b'E') = self.text.get(at) {
            is_integer = false;
            may_overflow = true;
            at += 1;
            at += usize::from(matches!(self.text.get(at), Some(b'+' | b'-')));
            let exponent = at;
            at = skip_digits(self.text, exponent);
            if at == exponent {
                return Err(invalid(start, "a number is malformed"));
            }
        }
        if is_integer && digit_count > 15 && integer_is_out_of_range(&self.text[digits..at]) {
            return Err(out_of_range(start, "an integer beyond 2^53 cannot be kept without rounding"));
        }
        if !is_integer && may_overflow {
            let value = std::str::from_utf8(&self.text[start..at]).ok().and_then(|text| text.parse::<f64>().ok());
            if !value.is_some_and(f64::is_finite) {
                return Err(out_of_range(start, "a number is too large for a double"));
            }
        }
        self.at = at;
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
        if name.escaped {
            let decoded = self.decode(name);
            if decoded.contains('\0') {
                return Err(invalid(name.start, "a member name contains \\u0000"));
            }
            let start = self.decoded.len() as u32;
            self.decoded.extend_from_slice(decoded.as_bytes());
            let digest = digest(decoded.as_bytes());
            self.names.push(Name { digest, start, bytes: decoded.len() as u32, is_decoded: true });
        } else {
            let digest = digest(&self.text[name.start..name.end]);
            self.names.push(Name { digest, start: name.start as u32, bytes: raw_bytes as u32, is_decoded: false });
        }
        Ok(())
    }

    fn close_object(&mut self, object: &OpenObject) -> Result<(), EngineError> {
        let duplicate = self.find_duplicate(object.names_base);
        if let Some(name) = duplicate {
            let shown = shorten(&String::from_utf8_lossy(self.name_bytes(&name))).into_owned();
            return Err(invalid(self.at, &format!("an object has two members named {shown:?}")));
        }
        self.names.truncate(object.names_base);
        self.decoded.truncate(object.decoded_base);
        Ok(())
    }

    fn find_duplicate(&mut self, base: usize) -> Option<Name> {
        let mut names = std::mem::take(&mut self.names);
        let members = &mut names[base..];
        let duplicate = if members.len() <= PAIRWISE_MEMBERS_MAX {
            members
                .iter()
                .enumerate()
                .find(|(index, name)| members[..*index].iter().any(|earlier| self.same_name(earlier, name)))
                .map(|(_, name)| *name)
        } else {
            members.sort_unstable_by(|left, right| {
                left.digest.cmp(&right.digest).then_with(|| self.name_bytes(left).cmp(self.name_bytes(right)))
            });
            members.windows(2).find(|pair| self.same_name(&pair[0], &pair[1])).map(|pair| pair[0])
        };
        self.names = names;
        duplicate
    }

    #[inline]
    fn same_name(&self, left: &Name, right: &Name) -> bool {
        left.digest == right.digest && self.name_bytes(left) == self.name_bytes(right)
    }

    fn name_bytes(&self, name: &Name) -> &[u8] {
        let range = name.start as usize..(name.start + name.bytes) as usize;
        if name.is_decoded { &self.decoded[range] } else { &self.text[range] }
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

/// A name or value for an error message: at most 64 characters.
pub(crate) fn shorten(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(64) {
        None => Cow::Borrowed(text),
        Some((end, _)) => Cow::Owned(format!("{}...", &text[..end])),
    }
}

pub(crate) fn invalid(at: usize, what: &str) -> EngineError {
    EngineError::new("invalid_json", format!("invalid JSON at byte {at}: {what}"))
}

fn out_of_range(at: usize, what: &str) -> EngineError {
    EngineError::new("number_out_of_range", format!("number at byte {at}: {what}"))
}

fn integer_is_out_of_range(digits: &[u8]) -> bool {
    let value = std::str::from_utf8(digits).ok().and_then(|text| text.parse::<u64>().ok());
    value.is_none_or(|value| value > INTEGER_MAX)
}

/// The first position from `at` that holds no digit; eight bytes a step, as in `next_special`.
#[inline]
pub(crate) fn skip_digits(text: &[u8], mut at: usize) -> usize {
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

/// The first byte from `at` that ends or interrupts a string: a quote, a backslash or a control character. Eight
/// bytes a step: the usual "which byte is zero" and "which byte is less than n" tricks on a word, whose lowest hit is
/// exact.
#[inline]
fn next_special(text: &[u8], mut at: usize) -> usize {
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
fn skip_escape(text: &[u8], at: usize) -> Result<usize, EngineError> {
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

/// A cheap digest of a name: its ends and its length. Equal digests are compared byte by byte.
#[inline]
fn digest(name: &[u8]) -> u64 {
    let (head, tail) = match (name.first_chunk::<8>(), name.last_chunk::<8>()) {
        (Some(head), Some(tail)) => (u64::from_le_bytes(*head), u64::from_le_bytes(*tail)),
        _ => (name.iter().fold(0, |word, &byte| word << 8 | u64::from(byte)), 0),
    };
    (head ^ tail.rotate_left(29) ^ (name.len() as u64) << 56).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}
