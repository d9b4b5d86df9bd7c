//! How often each value of one path occurs in one segment.

use std::collections::HashMap;
use std::sync::Arc;

use sundew_base::bit_set::BitSet;
use tantivy::{DocId, SegmentReader};

use crate::error::EngineError;
use crate::full_text::aggregate::answers::exact_sum::ExactSum;
use crate::full_text::aggregate::answers::number_summary::NumberSummary;
use crate::full_text::aggregate::bucket_key::BucketKey;
use crate::full_text::aggregate::collect::group_keys::{DATE, FoundKeys, KeySource, LocalKey, NUMBER, number_of_bits};
use crate::full_text::aggregate::value_text::milliseconds_of;
use crate::full_text::plan::AggregationKind;
use crate::full_text::query::IndexFields;

/// Documents whose values are read at a time.
const BLOCK_DOCS: usize = 2048;

#[derive(Debug, Clone, Copy, Default)]
struct Occurrences {
    /// Documents that have the value.
    docs: u32,
    /// The value counted as often as documents repeat it.
    values: u32,
}

/// A path of a segment whose columns can be read.
pub struct SegmentPath<'a> {
    pub reader: &'a SegmentReader,
    pub index: &'a IndexFields,
    pub path: &'a str,
}

impl SegmentPath<'_> {
    fn source(&self) -> Result<KeySource, EngineError> {
        let fields = vec![self.path.to_owned()];
        let of = AggregationKind::Terms { fields, size: 0, min_doc_count: 0, background: None };
        let source = KeySource::open(self.reader, self.index, &of)?;
        source.ok_or_else(|| EngineError::internal("terms have no source of keys"))
    }

    /// Each value of `docs`, in order, with how often it occurs.
    fn occurrences(&self, docs: impl Iterator<Item = DocId>) -> Result<Vec<(LocalKey, Occurrences)>, EngineError> {
        let mut source = self.source()?;
        let (mut found, mut block) = (FoundKeys::default(), Vec::with_capacity(BLOCK_DOCS));
        // With the last document that has the key: documents come in their order.
        let mut counted: HashMap<LocalKey, (Occurrences, DocId)> = HashMap::new();
        let mut docs = docs.peekable();
        while docs.peek().is_some() {
            block.clear();
            block.extend(docs.by_ref().take(BLOCK_DOCS));
            source.find(&block, &mut found)?;
            for (key, at) in found.keys.iter().zip(&found.positions) {
                let doc = block[*at as usize];
                let (occurrences, last) = counted.entry(*key).or_insert((Occurrences::default(), DocId::MAX));
                occurrences.docs += u32::from(*last != doc);
                occurrences.values += 1;
                *last = doc;
            }
        }
        let mut sorted: Vec<_> = counted.into_iter().map(|(key, (occurrences, _))| (key, occurrences)).collect();
        sorted.sort_unstable_by_key(|(key, _)| *key);
        Ok(sorted)
    }
}

/// The values of the segment's documents that are not deleted.
#[derive(Clone, Default)]
pub struct SegmentCounters {
    /// In order.
    keys: Arc<Vec<LocalKey>>,
    occurrences: Vec<Occurrences>,
    /// Entries of `occurrences` that are 0.
    unused: usize,
    values: u64,
    numbers: u64,
    dates: u64,
    sum: ExactSum,
    squares: ExactSum,
}

impl SegmentCounters {
    /// Counts the documents of the segment that are not `deleted`.
    pub fn count(path: &SegmentPath<'_>, deleted: &BitSet) -> Result<Self, EngineError> {
        let docs = (0..path.reader.max_doc()).filter(|doc| !deleted.contains(*doc));
        let (keys, occurrences) = path.occurrences(docs)?.into_iter().unzip();
        let mut counters = Self { keys: Arc::new(keys), occurrences, ..Self::default() };
        for at in 0..counters.keys.len() {
            counters.note(counters.keys[at], i64::from(counters.occurrences[at].values));
        }
        Ok(counters)
    }

    /// Takes the values of documents away that are deleted by now.
    pub fn forget(&mut self, path: &SegmentPath<'_>, docs: &BitSet) -> Result<(), EngineError> {
        for (key, gone) in path.occurrences(docs.iter())? {
            let known = self.keys.binary_search(&key);
            let at = known.map_err(|_| EngineError::internal("a deleted document has a value that was not counted"))?;
            let left = &mut self.occurrences[at];
            left.docs -= gone.docs;
            left.values -= gone.values;
            self.unused += usize::from(left.values == 0);
            self.note(key, -i64::from(gone.values));
        }
        if 2 * self.unused > self.keys.len() {
            self.compact();
        }
        Ok(())
    }

    fn compact(&mut self) {
        let used = self.keys.iter().zip(&self.occurrences).filter(|(_, occurrences)| occurrences.values > 0);
        let (keys, occurrences) = used.map(|(key, occurrences)| (*key, *occurrences)).unzip();
        self.keys = Arc::new(keys);
        self.occurrences = occurrences;
        self.unused = 0;
    }

    /// Adds a value to the sums `times` times, or takes it away.
    fn note(&mut self, key: LocalKey, times: i64) {
        self.values = self.values.wrapping_add_signed(times);
        let Some(number) = number_of(key) else { return };
        self.numbers = self.numbers.wrapping_add_signed(times);
        if key.kind == DATE {
            self.dates = self.dates.wrapping_add_signed(times);
        }
        self.sum.add_times(number, times);
        self.squares.add_square_times(number, times);
    }

    /// All values, repeated ones as often as documents repeat them.
    pub fn values(&self) -> u64 {
        self.values
    }

    /// Of numbers and dates. A sum that has once left the range of doubles does not come back into it.
    pub fn summary(&self) -> NumberSummary {
        let mut least = f64::INFINITY;
        let mut greatest = f64::NEG_INFINITY;
        for kind in [NUMBER, DATE] {
            let first = self.keys.partition_point(|key| key.kind < kind);
            let end = self.keys.partition_point(|key| key.kind <= kind);
            let is_used = |at: &usize| self.occurrences[*at].values > 0;
            let number = |at: usize| number_of(self.keys[at]);
            least = least.min((first..end).find(is_used).and_then(number).unwrap_or(f64::INFINITY));
            greatest = greatest.max((first..end).rev().find(is_used).and_then(number).unwrap_or(f64::NEG_INFINITY));
        }
        NumberSummary::of_sums((self.numbers, self.dates), (least, greatest), &self.sum, &self.squares)
    }

    /// Each value with the number of its documents.
    pub fn terms(&self, path: &SegmentPath<'_>) -> Result<Vec<(BucketKey, u64)>, EngineError> {
        let used = self.keys.iter().zip(&self.occurrences).filter(|(_, occurrences)| occurrences.docs > 0);
        let (keys, docs): (Vec<LocalKey>, Vec<u64>) = used.map(|(key, each)| (*key, u64::from(each.docs))).unzip();
        Ok(path.source()?.resolve(&keys)?.into_iter().zip(docs).collect())
    }
}

/// The number that stands for a number or a date.
fn number_of(key: LocalKey) -> Option<f64> {
    match key.kind {
        NUMBER => Some(number_of_bits(key.bits)),
        DATE => Some(milliseconds_of(tantivy::u64_to_i64(key.bits))),
        _ => None,
    }
}
