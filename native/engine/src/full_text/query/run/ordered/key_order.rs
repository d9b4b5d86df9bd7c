//! The order of documents of different segments by their keys.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::Arc;

use tantivy::DocId;

use crate::error::EngineError;
use crate::full_text::errors::io_failed;
use crate::full_text::query::run::range_view::RangeView;
use crate::full_text::segment_columns::SegmentColumns;

/// Orders matches of different segments that tie. Keys are looked up only where those that are known do not tell.
pub struct Keys<'a> {
    views: &'a [RangeView],
    known: HashMap<(usize, u32, u64), Arc<str>>,
    failed: Option<EngineError>,
}

impl<'a> Keys<'a> {
    pub fn new(views: &'a [RangeView]) -> Self {
        Self { views, known: HashMap::new(), failed: None }
    }

    /// Keys that could not be read compared as equal.
    pub fn into_failure(self) -> Result<(), EngineError> {
        self.failed.map_or(Ok(()), Err)
    }

    fn columns(&self, range: usize, segment: u32) -> &SegmentColumns {
        &self.views[range].columns[segment as usize]
    }

    fn of(&mut self, range: usize, segment: u32, key_rank: u64) -> Result<Arc<str>, EngineError> {
        if let Some(key) = self.known.get(&(range, segment, key_rank)) {
            return Ok(Arc::clone(key));
        }
        let mut key = String::new();
        self.columns(range, segment).keys.ord_to_str(key_rank, &mut key).map_err(io_failed("read a key"))?;
        let key: Arc<str> = Arc::from(key);
        self.known.insert((range, segment, key_rank), Arc::clone(&key));
        Ok(key)
    }

    fn read_order(
        &mut self,
        (range_a, a): (usize, (u32, DocId, u64)),
        (range_b, b): (usize, (u32, DocId, u64)),
    ) -> Result<Ordering, EngineError> {
        if (range_a, a.0) == (range_b, b.0) {
            return Ok(a.2.cmp(&b.2));
        }
        let fences = self.columns(range_a, a.0).fences();
        if let Some(order) = fences.compare(a.2, self.columns(range_b, b.0).fences(), b.2)? {
            return Ok(order);
        }
        Ok(self.of(range_a, a.0, a.2)?.cmp(&self.of(range_b, b.0, b.2)?))
    }

    /// Range, then segment, document and rank of the key within the segment.
    pub fn compare(&mut self, a: (usize, (u32, DocId, u64)), b: (usize, (u32, DocId, u64))) -> Ordering {
        self.read_order(a, b).unwrap_or_else(|error| {
            self.failed.get_or_insert(error);
            Ordering::Equal
        })
    }
}
