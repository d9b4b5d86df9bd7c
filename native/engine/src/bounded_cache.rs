//! What queries keep for the next ones, bounded by its bytes.

use std::hash::Hash;
use std::sync::{Arc, OnceLock};

use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{DefaultHashBuilder, OptionsBuilder, Weighter};

/// The cost of an entry besides its value and its name, bytes.
const ENTRY_BYTES: usize = 128;

/// Entries that a cache is laid out for. Each may be small or take all of it.
const EXPECTED_ENTRIES: usize = 64;

type Values<Name, Value> = Cache<Name, Arc<Value>, BySize<Name, Value>, DefaultHashBuilder>;

/// Bytes of a name, beyond its own size, and of its value.
type BytesOf<Name, Value> = fn(&Name, &Value) -> usize;

/// Values by name. What is used least makes room (S3-FIFO, https://dl.acm.org/doi/10.1145/3600006.3613147).
pub struct BoundedCache<Name, Value> {
    bytes_max: usize,
    bytes_of: BytesOf<Name, Value>,
    /// Made with the first value: most indexes are never asked for any.
    values: OnceLock<Values<Name, Value>>,
}

impl<Name: Hash + Eq, Value> BoundedCache<Name, Value> {
    pub const fn new(bytes_max: usize, bytes_of: BytesOf<Name, Value>) -> Self {
        Self { bytes_max, bytes_of, values: OnceLock::new() }
    }

    pub fn get(&self, name: &Name) -> Option<Arc<Value>> {
        self.values.get()?.get(name)
    }

    /// From now on there is room for `wanted_bytes`, where that is more than the bytes that the cache was made with.
    pub fn insert(&self, name: Name, value: Arc<Value>, wanted_bytes: usize) {
        let values = self.values.get_or_init(|| self.open());
        if values.capacity() < wanted_bytes as u64 {
            values.set_capacity(wanted_bytes as u64);
        }
        values.insert(name, value);
    }

    /// One shard: a shard takes no value that is larger than its share of the bytes.
    fn open(&self) -> Values<Name, Value> {
        let options = OptionsBuilder::new()
            .estimated_items_capacity(EXPECTED_ENTRIES)
            .weight_capacity(self.bytes_max as u64)
            .shards(1)
            .build()
            .expect("both capacities are given");
        let weighter = BySize(self.bytes_of);
        Cache::with_options(options, weighter, DefaultHashBuilder::default(), DefaultLifecycle::default())
    }
}

struct BySize<Name, Value>(BytesOf<Name, Value>);

impl<Name, Value> Clone for BySize<Name, Value> {
    fn clone(&self) -> Self {
        Self(self.0)
    }
}

impl<Name, Value> Weighter<Name, Arc<Value>> for BySize<Name, Value> {
    fn weight(&self, name: &Name, value: &Arc<Value>) -> u64 {
        ((self.0)(name, value) + size_of::<Name>() + ENTRY_BYTES) as u64
    }
}

#[cfg(test)]
mod tests {
    use sundew_base::bit_set::BitSet;

    use super::*;

    fn cache<Name: Hash + Eq>(bytes_max: usize) -> BoundedCache<Name, BitSet> {
        BoundedCache::new(bytes_max, |_, set| set.bytes())
    }

    #[test]
    fn keeps_within_its_bytes_what_is_used() {
        let set = Arc::new(BitSet::from_words(vec![0; 1_024]));
        let cache = cache(16 * 10_000);
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
    fn a_value_of_most_of_the_bytes_is_kept_and_a_larger_one_is_not() {
        let cache = cache(1 << 20);
        cache.insert(1, Arc::new(BitSet::from_words(vec![0; (9 << 17) / 10])), 0);
        assert!(cache.get(&1).is_some());
        cache.insert(2, Arc::new(BitSet::from_words(vec![0; 1 << 18])), 0);
        assert_eq!([cache.get(&1).is_some(), cache.get(&2).is_some()], [true, false]);
    }

    #[test]
    fn there_is_room_for_what_is_wanted_beyond_the_bytes() {
        let set = Arc::new(BitSet::from_words(vec![0; 1_024]));
        let cache = cache(16 * set.bytes());
        let wanted = 400 * (set.bytes() + size_of::<u32>() + ENTRY_BYTES);
        (0..400).for_each(|name| cache.insert(name, Arc::clone(&set), wanted));
        assert_eq!((0..400).filter(|name| cache.get(name).is_none()).count(), 0);
    }
}
