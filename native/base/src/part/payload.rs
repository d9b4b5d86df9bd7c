//! Reading payloads piece by piece: every length is checked before it is used.

use crate::error::EngineError;

pub fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

pub fn f32_at(bytes: &[u8], at: usize) -> f32 {
    f32::from_bits(u32_at(bytes, at))
}

/// The unread rest of a payload. Errors: `internal`, naming what was read.
pub(super) struct Payload<'a> {
    rest: &'a [u8],
    what: &'static str,
}

impl<'a> Payload<'a> {
    pub fn new(bytes: &'a [u8], what: &'static str) -> Self {
        Self { rest: bytes, what }
    }

    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub fn bytes(&mut self, count: usize) -> Result<&'a [u8], EngineError> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or_else(|| self.broken("ends too early"))?;
        self.rest = rest;
        Ok(taken)
    }

    pub fn array<const COUNT: usize>(&mut self) -> Result<[u8; COUNT], EngineError> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or_else(|| self.broken("ends too early"))?;
        self.rest = rest;
        Ok(*taken)
    }

    pub fn u16(&mut self) -> Result<u16, EngineError> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    pub fn u32(&mut self) -> Result<u32, EngineError> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    pub fn i64(&mut self) -> Result<i64, EngineError> {
        Ok(i64::from_le_bytes(self.array()?))
    }

    pub fn text(&mut self, count: usize) -> Result<&'a str, EngineError> {
        let bytes = self.bytes(count)?;
        std::str::from_utf8(bytes).map_err(|_| self.broken("holds text that is not UTF-8"))
    }

    pub fn end(&self) -> Result<(), EngineError> {
        if self.is_empty() { Ok(()) } else { Err(self.broken("is longer than its lengths say")) }
    }

    pub fn broken(&self, how: &str) -> EngineError {
        EngineError::internal(format!("{} {how}", self.what))
    }
}
