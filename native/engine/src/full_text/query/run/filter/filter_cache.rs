//! Filters of one index that are kept for the next query: a bit for each document of a segment.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use sundew_base::bit_set::BitSet;
use tantivy::index::SegmentId;

use crate::bounded_cache::BoundedCache;

/// Bytes of one index that are kept: 128 filters over a million documents.
const BYTES_MAX: usize = 16 << 20;

/// Filters over all documents that have room, whatever the number of documents.
const FILTERS_MIN: usize = 64;

/// Filters that were asked once, remembered to know the second time.
const ASKED_ONCE_MAX: usize = 1_024;

/// The bits of one index, by segment and filter.
pub struct FilterCache {
    bits: BoundedCache<(SegmentId, Arc<str>), BitSet>,
    asked_once: Mutex<HashSet<Arc<str>>>,
}

impl Default for FilterCache {
    fn default() -> Self {
        let bits = BoundedCache::new(BYTES_MAX, |(_, filter): &(SegmentId, Arc<str>), bits: &BitSet| {
            filter.len() + bits.bytes()
        });
        Self { bits, asked_once: Mutex::default() }
    }
}

impl FilterCache {
    pub fn find(&self, segment: SegmentId, filter: &Arc<str>) -> Option<Arc<BitSet>> {
        self.bits.get(&(segment, Arc::clone(filter)))
    }

    /// `docs` are those of all segments.
    pub fn keep(&self, segment: SegmentId, filter: &Arc<str>, bits: Arc<BitSet>, docs: u64) {
        self.bits.insert((segment, Arc::clone(filter)), bits, FILTERS_MIN * docs.div_ceil(8) as usize);
    }

    /// Whether this filter was asked before.
    pub fn is_known(&self, filter: &Arc<str>, first_segment: SegmentId) -> bool {
        if self.find(first_segment, filter).is_some() {
            return true;
        }
        let mut asked_once = self.asked_once.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if asked_once.contains(filter) {
            return true;
        }
        if asked_once.len() >= ASKED_ONCE_MAX {
            asked_once.clear();
        }
        asked_once.insert(Arc::clone(filter));
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_is_known_the_second_time() {
        let cache = FilterCache::default();
        let (segment, name) = (SegmentId::generate_random(), Arc::from("f"));
        assert_eq!([cache.is_known(&name, segment), cache.is_known(&name, segment)], [false, true]);
    }

    #[test]
    fn filters_over_more_documents_than_the_bytes_are_for_are_kept_all_the_same() {
        let segments: Vec<SegmentId> = (0..10).map(|_| SegmentId::generate_random()).collect();
        let filters: Vec<Arc<str>> = (0..40).map(|filter| Arc::from(format!("{filter}"))).collect();
        let bits = Arc::new(BitSet::with_room(1 << 20));
        let cache = FilterCache::default();
        let names = || filters.iter().flat_map(|filter| segments.iter().map(move |segment| (*segment, filter)));
        names().for_each(|(segment, filter)| cache.keep(segment, filter, Arc::clone(&bits), 10 << 20));
        assert_eq!(names().filter(|(segment, filter)| cache.find(*segment, filter).is_none()).count(), 0);
    }
}
