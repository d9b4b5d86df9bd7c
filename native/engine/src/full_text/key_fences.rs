//! Some of a segment's keys, in memory: enough to order most keys of different segments without reading them.
//!
//! To read one key out of a column's dictionary takes microseconds, and documents of the same score are common.

use std::cmp::Ordering;
use std::sync::OnceLock;

use tantivy::columnar::StrColumn;

use super::errors::io_failed;
use crate::error::EngineError;

/// Keys from one fence to the next.
const SPACING: u64 = 256;

pub struct KeyFences {
    keys: StrColumn,
    /// The first key, each that many keys further, and the last; each is read when it is first asked for.
    fences: Box<[OnceLock<Box<[u8]>>]>,
}

/// The least and the greatest that a key can be.
type Between<'a> = (&'a [u8], &'a [u8]);

impl KeyFences {
    pub fn of(keys: &StrColumn) -> Self {
        let count = (keys.num_terms() as u64).div_ceil(SPACING) + 1;
        Self { keys: keys.clone(), fences: (0..count).map(|_| OnceLock::new()).collect() }
    }

    fn fence(&self, at: u64) -> Result<Option<&[u8]>, EngineError> {
        let Some(fence) = self.fences.get(at as usize) else { return Ok(None) };
        if let Some(key) = fence.get() {
            return Ok(Some(key));
        }
        let last = (self.keys.num_terms() as u64).saturating_sub(1);
        let mut key = Vec::new();
        self.keys.ord_to_bytes((at * SPACING).min(last), &mut key).map_err(io_failed("read a key"))?;
        Ok(Some(fence.get_or_init(|| key.into_boxed_slice())))
    }

    /// Keys that `rank`'s lies between, both included.
    fn around(&self, rank: u64) -> Result<Option<Between<'_>>, EngineError> {
        let at = rank / SPACING;
        Ok(self.fence(at)?.zip(self.fence(at + 1)?))
    }

    /// The order of two keys of different segments, which are not equal; `None` when they have to be read.
    pub fn compare(&self, rank: u64, other: &Self, other_rank: u64) -> Result<Option<Ordering>, EngineError> {
        let (Some((low, high)), Some((other_low, other_high))) = (self.around(rank)?, other.around(other_rank)?) else {
            return Ok(None);
        };
        Ok(if high <= other_low {
            Some(Ordering::Less)
        } else if other_high <= low {
            Some(Ordering::Greater)
        } else {
            None
        })
    }
}

#[cfg(test)]
mod tests {
    use tantivy::columnar::{ColumnarReader, ColumnarWriter, DynamicColumn};

    use super::*;

    /// The column of a segment whose documents have these keys.
    fn column(keys: impl Iterator<Item = String>) -> StrColumn {
        let mut writer = ColumnarWriter::default();
        let mut count = 0;
        for key in keys {
            writer.record_str(count, "key", &key);
            count += 1;
        }
        let mut bytes = Vec::new();
        writer.serialize(count, None, &mut bytes).expect("a column in memory");
        let reader = ColumnarReader::open(bytes).expect("a column just written");
        let handles = reader.read_columns("key").expect("the column's handles");
        match handles[0].open().expect("the column") {
            DynamicColumn::Str(column) => column,
            _ => unreachable!("strings were written"),
        }
    }

    #[test]
    fn keys_are_ordered_by_what_lies_around_them() {
        let numbered = |from: u64, to: u64| KeyFences::of(&column((from..to).map(|number| format!("{number:08}"))));
        let compare = |a: &KeyFences, rank, b: &KeyFences, other| a.compare(rank, b, other).expect("readable keys");
        let (early, late) = (numbered(0, 3 * SPACING), numbered(3 * SPACING, 6 * SPACING));
        assert_eq!(compare(&early, 3 * SPACING - 1, &late, 0), Some(Ordering::Less));
        assert_eq!(compare(&late, 0, &early, 5), Some(Ordering::Greater));
        let beside = numbered(SPACING / 2, 2 * SPACING);
        assert_eq!(compare(&early, SPACING / 2 - 1, &beside, 0), None);
        assert_eq!(compare(&early, 0, &beside, SPACING), Some(Ordering::Less));
        assert_eq!(compare(&early, u64::MAX / 2, &beside, 0), None);
    }

    #[test]
    fn only_the_keys_around_what_is_compared_are_read() {
        let (one, other) = (KeyFences::of(&column((0..40 * SPACING).map(|number| format!("a{number:08}")))), {
            KeyFences::of(&column((0..40 * SPACING).map(|number| format!("b{number:08}"))))
        });
        assert_eq!(one.compare(9 * SPACING, &other, 20 * SPACING).expect("readable keys"), Some(Ordering::Less));
        let read = |fences: &KeyFences| fences.fences.iter().filter(|fence| fence.get().is_some()).count();
        assert_eq!((read(&one), read(&other)), (2, 2));
    }
}
