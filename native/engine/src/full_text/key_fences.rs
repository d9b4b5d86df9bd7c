//! Some of a segment's keys, in memory: enough to order most keys of different segments without reading them.
//!
//! To read one key out of a column's dictionary takes microseconds, and documents of the same score are common.

use std::cmp::Ordering;

use tantivy::columnar::StrColumn;

use super::errors::io_failed;
use crate::error::EngineError;

/// Keys from one fence to the next.
const SPACING: u64 = 256;

#[derive(Debug)]
pub struct KeyFences {
    /// The first key, each that many keys further, and the last.
    fences: Vec<Box<[u8]>>,
}

impl KeyFences {
    pub fn read(keys: &StrColumn) -> Result<Self, EngineError> {
        let count = keys.num_terms() as u64;
        let mut fences = Vec::with_capacity((count / SPACING) as usize + 2);
        let mut key = Vec::new();
        for rank in (0..count).step_by(SPACING as usize).chain(count.checked_sub(1)) {
            key.clear();
            keys.ord_to_bytes(rank, &mut key).map_err(io_failed("read a key"))?;
            fences.push(key.as_slice().into());
        }
        Ok(Self { fences })
    }

    /// Keys that `rank`'s lies between, both included.
    fn around(&self, rank: u64) -> Option<(&[u8], &[u8])> {
        let at = (rank / SPACING) as usize;
        Some((self.fences.get(at)?, self.fences.get(at + 1)?))
    }

    /// The order of two keys of different segments, which are not equal; `None` when they have to be read.
    pub fn compare(&self, rank: u64, other: &Self, other_rank: u64) -> Option<Ordering> {
        let (low, high) = self.around(rank)?;
        let (other_low, other_high) = other.around(other_rank)?;
        if high <= other_low {
            Some(Ordering::Less)
        } else if other_high <= low {
            Some(Ordering::Greater)
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fences(keys: &[&str]) -> KeyFences {
        KeyFences { fences: keys.iter().map(|key| key.as_bytes().into()).collect() }
    }

    #[test]
    fn keys_are_ordered_by_what_lies_around_them() {
        let (one, other) = (fences(&["a", "f", "k"]), fences(&["f", "h", "z"]));
        assert_eq!(one.compare(0, &other, 0), Some(Ordering::Less));
        assert_eq!(other.compare(SPACING, &one, SPACING - 1), Some(Ordering::Greater));
        assert_eq!(one.compare(SPACING, &other, SPACING - 1), None);
        assert_eq!(one.compare(u64::MAX, &other, 0), None);
    }
}
