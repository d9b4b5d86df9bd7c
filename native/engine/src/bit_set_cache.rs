//! Bit sets that queries keep for the next ones, bounded by their bytes.

use std::hash::Hash;
use std::sync::{Arc, OnceLock};

use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{DefaultHashBuilder, OptionsBuilder, Weighter};
use sundew_base::bit_set::BitSet;

/// The cost of an entry besides its bits and its name, bytes.
const ENTRY_BYTES: usize = 128;

/// Entries that a cache is laid out for. Each may be small or take all of it.
const EXPECTED_ENTRIES: usize = 64;

/// Sets of all documents that have room, whatever the number of documents.
const WHOLE_SETS_MIN: usize = 64;

type Sets<Name> = Cache<Name, Arc<BitSet>, BySize<Name>, DefaultHashBuilder>;

/// Bytes of a name beyond its own size.
type NameBytes<Name> = fn(&Name) -> usize;

/// Sets by name. What is used least makes room (S3-FIFO, https://dl.acm.org/doi/10.1145/3600006.3613147).
pub struct BitSetCache<Name> {
    /// Of a cache over documents that are not too many for it.
    bytes_max: usize,
    name_bytes: NameBytes<Name>,
    /// Made with the first set: most indexes are never asked for any.
    sets: OnceLock<Sets<Name>>,
}

impl<Name: Hash + Eq> BitSetCache<Name> {
    pub const fn new(bytes_max: usize, name_bytes: NameBytes<Name>) -> Self {
        Self { bytes_max, name_bytes, sets: OnceLock::new() }
    }

    pub fn get(&self, name: &Name) -> Option<Arc<BitSet>> {
        self.sets.get()?.get(name)
    }

    /// `whole_bytes` are those of a set of all documents, of which this one may be a part.
    pub fn insert(&self, name: Name, set: Arc<BitSet>, whole_bytes: usize) {
        let sets = self.sets.get_or_init(|| self.open());
        let wanted = (WHOLE_SETS_MIN * whole_bytes) as u64;
        if sets.capacity() < wanted {
            sets.set_capacity(wanted);
        }
        sets.insert(name, set);
    }

    /// One shard: a shard takes no set that is larger than its share of the bytes.
    fn open(&self) -> Sets<Name> {
        let options = OptionsBuilder::new()
            .estimated_items_capacity(EXPECTED_ENTRIES)
            .weight_capacity(self.bytes_max as u64)
            .shards(1)
            .build()
            .expect("both capacities are given");
        let weighter = BySize(self.name_bytes);
        Cache::with_options(options, weighter, DefaultHashBuilder::default(), DefaultLifecycle::default())
    }
}

struct BySize<Name>(NameBytes<Name>);

impl<Name> Clone for BySize<Name> {
    fn clone(&self) -> Self {
        Self(self.0)
    }
}

impl<Name> Weighter<Name, Arc<BitSet>> for BySize<Name> {
    fn weight(&self, name: &Name, set: &Arc<BitSet>) -> u64 {
        (set.bytes() + (self.0)(name) + size_of::<Name>() + ENTRY_BYTES) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_within_its_bytes_what_is_used() {
        let set = Arc::new(BitSet::from_words(vec![0; 1_024]));
        let cache = BitSetCache::new(16 * 10_000, |_: &u32| 0);
        assert!(cache.get(&0).is_none());
        for name in 0..1_000 {
            cache.insert(name, Arc::clone(&set), 0);
            for used in 0..4.min(name) {
                cache.get(&used);
            }
        }
        let kept: Vec<u32> = (0..1_000).filter(|name| cache.get(name).is_some()).collect();
        assert!((4..=20).contains(&kept.len()), "{kept:?}");
        assert_eq!(kept[..4], [0, 1, 2, 3]);
    }

    #[test]
    fn a_set_of_most_of_the_bytes_is_kept_and_a_larger_one_is_not() {
        let cache = BitSetCache::new(1 << 20, |_: &u32| 0);
        cache.insert(1, Arc::new(BitSet::from_words(vec![0; (9 << 17) / 10])), 0);
        assert!(cache.get(&1).is_some());
        cache.insert(2, Arc::new(BitSet::from_words(vec![0; 1 << 18])), 0);
        assert_eq!([cache.get(&1).is_some(), cache.get(&2).is_some()], [true, false]);
    }

    #[test]
    fn filters_over_more_documents_than_the_bytes_are_for_are_kept_all_the_same() {
        let segment = Arc::new(BitSet::from_words(vec![0; 1_024]));
        let (segments, filters) = (10, 40);
        let cache = BitSetCache::new(16 * segment.bytes(), |_: &(u32, u32)| 0);
        let names = || (0..filters).flat_map(|filter| (0..segments).map(move |segment| (segment, filter)));
        for name in names() {
            cache.insert(name, Arc::clone(&segment), segments as usize * segment.bytes());
        }
        assert_eq!(names().filter(|name| cache.get(name).is_none()).count(), 0);
    }
}
