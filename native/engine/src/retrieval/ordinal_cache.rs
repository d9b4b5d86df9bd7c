//! Facts of a text index that retrieval keeps between queries: the way back from ordinals to documents, and filters as sets of
//! ordinals.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use sundew_base::bit_set::BitSet;
use tantivy::columnar::{Cardinality, Column};
use tantivy::index::SegmentId;
use tantivy::{DocId, Searcher, SegmentReader};

use crate::bounded_cache::BoundedCache;
use crate::error::EngineError;
use crate::full_text::{SegmentColumns, damaged};

/// Bytes of ordinal sets that are kept: 256 filters over a million documents.
const SET_BYTES_MAX: usize = 32 << 20;

/// Filters that have room, whatever the number of documents.
const SETS_MIN: usize = 64;

/// A table by ordinal is made when at least one in this many of its entries is taken.
const TABLE_SPARSENESS_MAX: u64 = 4;

const NO_DOCUMENT: DocId = DocId::MAX;

/// Where the documents of a segment are, by their ordinals.
pub struct SegmentOrdinals {
    docs: DocsByOrdinal,
    expiring: OnceLock<Box<[DocId]>>,
}

enum DocsByOrdinal {
    /// By ordinal, from `first`.
    Table { first: u32, docs: Box<[DocId]> },
    /// Ascending.
    Pairs(Box<[(u32, DocId)]>),
}

impl SegmentOrdinals {
    fn read(reader: &SegmentReader, columns: &SegmentColumns) -> Result<Self, EngineError> {
        let ordinals = all_values(&columns.ordinal, reader.max_doc())?;
        Ok(Self { docs: DocsByOrdinal::new(&ordinals), expiring: OnceLock::new() })
    }

    /// The newest document of this ordinal, whether or not it is deleted.
    pub fn document(&self, ordinal: u32) -> Option<DocId> {
        match &self.docs {
            DocsByOrdinal::Table { first, docs } => {
                docs.get(ordinal.checked_sub(*first)? as usize).copied().filter(|doc| *doc != NO_DOCUMENT)
            }
            DocsByOrdinal::Pairs(pairs) => {
                let at = pairs.binary_search_by_key(&ordinal, |(ordinal, _)| *ordinal).ok()?;
                Some(pairs[at].1)
            }
        }
    }

    /// The documents whose TTL base is set and at or before `bound`, deleted ones too.
    pub fn expired(&self, ttl_base: &Column<i64>, max_doc: u32, bound: i64) -> &[DocId] {
        let base = |doc: &DocId| ttl_base.first(*doc).unwrap_or(0);
        let by_expiry = self.expiring.get_or_init(|| {
            let mut docs: Vec<DocId> = (0..max_doc).filter(|doc| base(doc) > 0).collect();
            docs.sort_by_cached_key(base);
            docs.into_boxed_slice()
        });
        &by_expiry[..by_expiry.partition_point(|doc| base(doc) <= bound)]
    }
}

impl DocsByOrdinal {
    /// Of two documents of an ordinal the later one is the newer.
    fn new(ordinals: &[u32]) -> Self {
        let (Some(&first), Some(&last)) = (ordinals.iter().min(), ordinals.iter().max()) else {
            return Self::Pairs(Box::default());
        };
        let spread = u64::from(last - first) + 1;
        if spread > TABLE_SPARSENESS_MAX * ordinals.len() as u64 {
            let mut pairs: Vec<(u32, DocId)> = ordinals.iter().copied().zip(0..).collect();
            pairs.sort_unstable_by_key(|(ordinal, doc)| (*ordinal, std::cmp::Reverse(*doc)));
            pairs.dedup_by_key(|(ordinal, _)| *ordinal);
            return Self::Pairs(pairs.into_boxed_slice());
        }
        let mut docs = vec![NO_DOCUMENT; spread as usize].into_boxed_slice();
        for (&ordinal, doc) in ordinals.iter().zip(0..) {
            docs[(ordinal - first) as usize] = doc;
        }
        Self::Table { first, docs }
    }
}

/// The ordinals of the documents 0..`max_doc`.
pub fn all_values(column: &Column<u64>, max_doc: u32) -> Result<Vec<u32>, EngineError> {
    if column.get_cardinality() != Cardinality::Full {
        return Err(damaged("a document has no ordinal".to_owned()));
    }
    let mut values = vec![0u64; max_doc as usize];
    column.values.get_range(0, &mut values);
    Ok(values.into_iter().map(|ordinal| ordinal as u32).collect())
}

/// Segments, each with the number of its deleted documents, and a filter: what a set of ordinals is of.
pub type SetName = (Vec<(SegmentId, u32)>, Arc<str>);

pub struct OrdinalCache {
    segments: Mutex<HashMap<SegmentId, Arc<SegmentOrdinals>>>,
    sets: BoundedCache<SetName, BitSet>,
}

impl Default for OrdinalCache {
    fn default() -> Self {
        let bytes_of =
            |(segments, filter): &SetName, set: &BitSet| size_of_val(segments.as_slice()) + filter.len() + set.bytes();
        Self { segments: Mutex::default(), sets: BoundedCache::new(SET_BYTES_MAX, bytes_of) }
    }
}

impl OrdinalCache {
    /// In the order of the searcher's segments, whose columns are given. Nobody waits for what another query reads.
    pub fn of(
        &self,
        searcher: &Searcher,
        columns: &[Arc<SegmentColumns>],
    ) -> Result<Vec<Arc<SegmentOrdinals>>, EngineError> {
        let readers = searcher.segment_readers();
        let known: Vec<Option<Arc<SegmentOrdinals>>> = {
            let known = unpoisoned(&self.segments);
            readers.iter().map(|reader| known.get(&reader.segment_id()).cloned()).collect()
        };
        let mut all = Vec::with_capacity(readers.len());
        for ((reader, columns), known) in readers.iter().zip(columns).zip(known) {
            all.push(match known {
                Some(ordinals) => ordinals,
                None => self.keep_segment(readers, reader, SegmentOrdinals::read(reader, columns)?),
            });
        }
        Ok(all)
    }

    fn keep_segment(
        &self,
        readers: &[SegmentReader],
        reader: &SegmentReader,
        read: SegmentOrdinals,
    ) -> Arc<SegmentOrdinals> {
        let mut known = unpoisoned(&self.segments);
        if known.len() > 2 * readers.len() {
            known.retain(|id, _| readers.iter().any(|reader| reader.segment_id() == *id));
        }
        Arc::clone(known.entry(reader.segment_id()).or_insert_with(|| Arc::new(read)))
    }

    /// Documents of the searcher's segments that were not read yet.
    pub fn unread(&self, searcher: &Searcher) -> u64 {
        let known = unpoisoned(&self.segments);
        let unread = searcher.segment_readers().iter().filter(|reader| !known.contains_key(&reader.segment_id()));
        unread.map(|reader| u64::from(reader.max_doc())).sum()
    }

    pub fn find(&self, name: &SetName) -> Option<Arc<BitSet>> {
        self.sets.get(name)
    }

    pub fn keep(&self, name: SetName, set: BitSet) -> Arc<BitSet> {
        let set = Arc::new(set);
        self.sets.insert(name, Arc::clone(&set), SETS_MIN * set.bytes());
        set
    }
}

fn unpoisoned<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbered(ordinals: &[u32]) -> SegmentOrdinals {
        SegmentOrdinals { docs: DocsByOrdinal::new(ordinals), expiring: OnceLock::new() }
    }

    #[test]
    fn ordinals_lead_to_the_newest_document() {
        for ordinals in [[7, 5, 6, 5, 9].as_slice(), &[700_000, 5, 6, 5, 9]] {
            let found = numbered(ordinals);
            let wanted = [(ordinals[0], Some(0)), (5, Some(3)), (6, Some(2)), (9, Some(4)), (4, None), (8, None)];
            for (ordinal, document) in wanted {
                assert_eq!(found.document(ordinal), document, "{ordinal} of {ordinals:?}");
            }
            assert_eq!(found.document(u32::MAX), None);
        }
        assert_eq!(numbered(&[]).document(0), None);
    }
}
