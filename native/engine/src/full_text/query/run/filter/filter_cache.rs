//! Filters of one index that are kept for the next query: a bit for each document of a segment.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard};

use tantivy::index::SegmentId;

use sundew_base::bit_set::BitSet;

/// Bits of one index that are kept: 128 filters over a million documents.
const BYTES_MAX: usize = 16 << 20;

/// What an entry costs besides its bits.
const ENTRY_BYTES: usize = 128;

/// Filters that were asked once, remembered to know the second time.
const ASKED_ONCE_MAX: usize = 1_024;

struct Kept {
    bits: Arc<BitSet>,
    bytes: usize,
    used_at: u64,
}

#[derive(Default)]
pub struct Held {
    kept: HashMap<(SegmentId, Arc<str>), Kept>,
    bytes: usize,
    /// Counts uses.
    now: u64,
    asked_once: HashSet<Arc<str>>,
}

impl Held {
    pub fn find(&mut self, segment: SegmentId, filter: &Arc<str>) -> Option<Arc<BitSet>> {
        self.now += 1;
        let kept = self.kept.get_mut(&(segment, Arc::clone(filter)))?;
        kept.used_at = self.now;
        Some(Arc::clone(&kept.bits))
    }

    pub fn keep(&mut self, segment: SegmentId, filter: &Arc<str>, bits: Arc<BitSet>) {
        self.keep_within(segment, filter, bits, BYTES_MAX);
    }

    fn keep_within(&mut self, segment: SegmentId, filter: &Arc<str>, bits: Arc<BitSet>, bytes_max: usize) {
        let bytes = bits.bytes() + filter.len() + ENTRY_BYTES;
        self.now += 1;
        let kept = Kept { bits, bytes, used_at: self.now };
        self.bytes += bytes;
        if let Some(before) = self.kept.insert((segment, Arc::clone(filter)), kept) {
            self.bytes -= before.bytes;
        }
        if self.bytes > bytes_max {
            self.drop_oldest(bytes_max / 4 * 3);
        }
    }

    /// In one go down to `bytes_max`, so that not every query that comes has to look for the oldest.
    fn drop_oldest(&mut self, bytes_max: usize) {
        let mut by_age: Vec<_> = self.kept.iter().map(|(key, kept)| (kept.used_at, key.clone())).collect();
        by_age.sort_unstable_by_key(|(used_at, _)| *used_at);
        for (_, key) in by_age {
            if self.bytes <= bytes_max {
                break;
            }
            if let Some(dropped) = self.kept.remove(&key) {
                self.bytes -= dropped.bytes;
            }
        }
    }

    /// Whether this filter was asked before.
    pub fn is_known(&mut self, filter: &Arc<str>, first_segment: SegmentId) -> bool {
        if self.kept.contains_key(&(first_segment, Arc::clone(filter))) || self.asked_once.contains(filter) {
            return true;
        }
        if self.asked_once.len() >= ASKED_ONCE_MAX {
            self.asked_once.clear();
        }
        self.asked_once.insert(Arc::clone(filter));
        false
    }
}

/// The bits of one index, by segment and filter; what was used longest ago goes first.
#[derive(Default)]
pub struct FilterCache(Mutex<Held>);

impl FilterCache {
    pub fn held(&self) -> MutexGuard<'_, Held> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_used_longest_ago_goes_first() {
        let mut held = Held::default();
        let segment = SegmentId::generate_random();
        let names: Vec<Arc<str>> = (0..8).map(|at| Arc::from(at.to_string())).collect();
        let entry = 1024 / 8 + 1 + ENTRY_BYTES;
        for name in &names[..4] {
            held.keep_within(segment, name, Arc::new(BitSet::from_words(vec![0; 16])), 4 * entry);
        }
        assert!(held.find(segment, &names[0]).is_some());
        held.keep_within(segment, &names[4], Arc::new(BitSet::from_words(vec![0; 16])), 4 * entry);
        let left: Vec<bool> = names.iter().map(|name| held.find(segment, name).is_some()).collect();
        assert_eq!(left, [true, false, false, true, true, false, false, false]);
        assert_eq!(held.bytes, 3 * entry);
    }

    #[test]
    fn a_filter_is_known_the_second_time() {
        let mut held = Held::default();
        let (segment, name) = (SegmentId::generate_random(), Arc::from("f"));
        assert_eq!([held.is_known(&name, segment), held.is_known(&name, segment)], [false, true]);
    }
}
