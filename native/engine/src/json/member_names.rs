//! The names of the objects that are open, of which no object may have one twice.

use std::mem;

use super::errors::{invalid, shorten};
use super::strings::{RawString, decode_string};
use crate::error::EngineError;

/// Up to this many members an object's names are compared pairwise; beyond, they are sorted.
const PAIRWISE_MEMBERS_MAX: usize = 16;

/// The names of all objects around the cursor, those of the innermost last.
pub(super) struct MemberNames<'a> {
    text: &'a [u8],
    names: Vec<Name>,
    /// Names whose literals have escapes, decoded.
    decoded: Vec<u8>,
}

/// How many names there were when an object was opened.
#[derive(Clone, Copy)]
pub(super) struct NamesBefore {
    names: usize,
    decoded: usize,
}

#[derive(Clone, Copy)]
struct Name {
    digest: u64,
    start: u32,
    bytes: u32,
    is_decoded: bool,
}

impl<'a> MemberNames<'a> {
    pub fn of(text: &'a [u8]) -> Self {
        Self { text, names: Vec::new(), decoded: Vec::new() }
    }

    #[inline]
    pub fn open(&self) -> NamesBefore {
        NamesBefore { names: self.names.len(), decoded: self.decoded.len() }
    }

    /// Error: `invalid_json` for a name with NUL.
    #[inline]
    pub fn note(&mut self, name: RawString) -> Result<(), EngineError> {
        let raw = &self.text[name.start..name.end];
        if name.escaped {
            let decoded = decode_string(raw, true);
            if decoded.contains('\0') {
                return Err(invalid(name.start, "a member name contains \\u0000"));
            }
            let start = self.decoded.len() as u32;
            self.decoded.extend_from_slice(decoded.as_bytes());
            let digest = digest(decoded.as_bytes());
            self.names.push(Name { digest, start, bytes: decoded.len() as u32, is_decoded: true });
        } else {
            let (digest, start, bytes) = (digest(raw), name.start as u32, raw.len() as u32);
            self.names.push(Name { digest, start, bytes, is_decoded: false });
        }
        Ok(())
    }

    /// Forgets the names of the innermost object, which ends at `at`. Error: `invalid_json` when two are the same.
    #[inline]
    pub fn close(&mut self, before: NamesBefore, at: usize) -> Result<(), EngineError> {
        if let Some(name) = self.find_duplicate(before.names) {
            let shown = shorten(&String::from_utf8_lossy(self.bytes_of(&name))).into_owned();
            return Err(invalid(at, &format!("an object has two members named {shown:?}")));
        }
        self.names.truncate(before.names);
        self.decoded.truncate(before.decoded);
        Ok(())
    }

    fn find_duplicate(&mut self, base: usize) -> Option<Name> {
        let mut names = mem::take(&mut self.names);
        let members = &mut names[base..];
        let duplicate = if members.len() <= PAIRWISE_MEMBERS_MAX {
            members
                .iter()
                .enumerate()
                .find(|(index, name)| members[..*index].iter().any(|earlier| self.is_same(earlier, name)))
                .map(|(_, name)| *name)
        } else {
            members.sort_unstable_by(|left, right| {
                left.digest.cmp(&right.digest).then_with(|| self.bytes_of(left).cmp(self.bytes_of(right)))
            });
            members.windows(2).find(|pair| self.is_same(&pair[0], &pair[1])).map(|pair| pair[0])
        };
        self.names = names;
        duplicate
    }

    #[inline]
    fn is_same(&self, left: &Name, right: &Name) -> bool {
        left.digest == right.digest && self.bytes_of(left) == self.bytes_of(right)
    }

    fn bytes_of(&self, name: &Name) -> &[u8] {
        let range = name.start as usize..(name.start + name.bytes) as usize;
        if name.is_decoded { &self.decoded[range] } else { &self.text[range] }
    }
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
