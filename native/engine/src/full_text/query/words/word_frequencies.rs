//! Which documents of a segment have a word, and how often, in five bits each, for words that filters of few documents
//! ask of again and again.
//!
//! To look for a document in the postings of a frequent word decodes a block for it, and searches that. Here it is a load.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use tantivy::DocId;
use tantivy::postings::BlockSegmentPostings;

use crate::bounded_cache::BoundedCache;
use crate::error::EngineError;
use crate::full_text::query::words::word_cursor::{WordCursor, WordPlace};
use crate::full_text::query::words::word_walks::Watch;
use sundew_base::bit_set::BitSet;

/// Frequencies from here on are read in the postings.
const MANY: u32 = 15;

/// Bytes of one segment that are kept.
const BYTES_MAX: usize = 4 << 20;

/// Words that have room, whatever the number of documents.
const WORDS_MIN: usize = 16;

/// Only words that one document in this many has at least: others have few postings.
const SPACING_MAX: u64 = 1_024;

/// Looking for one document in a word's postings costs about as much as reading this many of them.
pub const SEEK_COST: u64 = 6;

/// To clear the room of this many documents costs about as much as reading one posting.
const CLEARED: u64 = 32;

/// Words that were looked for and are not kept, remembered with what that has cost.
const SOUGHT_MAX: usize = 1_024;

pub struct WordFrequencies {
    documents: BitSet,
    /// Of two documents each.
    pairs: Vec<u8>,
}

impl WordFrequencies {
    /// Of all `docs` of a segment. `postings` are at their beginning.
    fn read(mut postings: BlockSegmentPostings, docs: DocId, watch: &mut Watch<'_>) -> Result<Self, EngineError> {
        let mut documents = BitSet::words_for(docs);
        let mut pairs = vec![0; docs.div_ceil(2) as usize];
        while !postings.docs().is_empty() {
            watch.block()?;
            BitSet::add_to_words(&mut documents, postings.docs());
            for (doc, frequency) in postings.docs().iter().zip(postings.freqs()) {
                pairs[(doc / 2) as usize] |= ((*frequency).min(MANY) as u8) << (doc % 2 * 4);
            }
            postings.advance();
        }
        Ok(Self { documents: BitSet::from_words(documents), pairs })
    }

    fn bytes(&self) -> usize {
        self.documents.bytes() + self.pairs.len()
    }

    /// Those that have the word.
    pub fn documents(&self) -> &BitSet {
        &self.documents
    }

    /// 0 where the document does not have the word. `cursor` is the word's; documents ascend.
    pub fn of(&self, doc: DocId, cursor: &mut WordCursor<'_>) -> u32 {
        let frequency = u32::from(self.pairs[(doc / 2) as usize] >> (doc % 2 * 4)) & MANY;
        if frequency == MANY { cursor.frequency(doc) } else { frequency }
    }
}

/// The frequencies of a segment's words that are kept, by their places.
pub struct FrequencyCache {
    kept: BoundedCache<WordPlace, WordFrequencies>,
    /// In postings that could have been read instead.
    spent: Mutex<HashMap<WordPlace, u64>>,
}

impl Default for FrequencyCache {
    fn default() -> Self {
        Self { kept: BoundedCache::new(BYTES_MAX, |_, frequencies| frequencies.bytes()), spent: Mutex::default() }
    }
}

impl FrequencyCache {
    /// The frequencies of the word of `cursor`, which has not moved, for a query that looks for `wanted` of all `docs`. They are
    /// read once the documents that were looked for in the postings have cost as much. `None` before.
    pub fn find(
        &self,
        cursor: &WordCursor<'_>,
        (wanted, docs): (u64, DocId),
        watch: &mut Watch<'_>,
    ) -> Result<Option<Arc<WordFrequencies>>, EngineError> {
        let with_word = u64::from(cursor.blocks.doc_freq());
        if with_word * SPACING_MAX < u64::from(docs) {
            return Ok(None);
        }
        if let Some(known) = self.kept.get(&cursor.place) {
            return Ok(Some(known));
        }
        let reading = with_word + u64::from(docs) / CLEARED;
        if !self.has_cost(cursor.place, wanted * SEEK_COST, reading) {
            return Ok(None);
        }
        let read = Arc::new(WordFrequencies::read(cursor.blocks.clone(), docs, watch)?);
        self.kept.insert(cursor.place, Arc::clone(&read), WORDS_MIN * read.bytes());
        Ok(Some(read))
    }

    /// Whether what has been spent on a word, with `cost` of this query, is as much as `enough`; it begins again then.
    fn has_cost(&self, place: WordPlace, cost: u64, enough: u64) -> bool {
        let mut spent = self.spent.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let sum = spent.get(&place).copied().unwrap_or(0) + cost;
        if sum >= enough {
            spent.remove(&place);
            return true;
        }
        if spent.len() >= SOUGHT_MAX {
            spent.clear();
        }
        spent.insert(place, sum);
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::full_text::query::deadline::{CancelFlag, Deadline};
    use crate::full_text::query::words::word_fixture::{FoundWord, segment_of};

    const DOCUMENTS: u32 = 3_001;

    /// From never to 40 times.
    fn times(document: u32) -> u32 {
        if document.is_multiple_of(3) { document % 41 } else { 0 }
    }

    fn find(cache: &FrequencyCache, word: &FoundWord, wanted: u64) -> Option<Arc<WordFrequencies>> {
        let deadline = Deadline::new(&CancelFlag::default(), None);
        cache.find(&word.cursor(), (wanted, DOCUMENTS), &mut Watch::new(&deadline)).expect("no deadline")
    }

    #[test]
    fn frequencies_that_are_kept_are_those_of_the_postings() {
        let (reader, fields) = segment_of(DOCUMENTS, |document| vec!["tea"; times(document) as usize].join(" "));
        let word = FoundWord::find(&reader, &fields, "tea", 12.0, u64::from(DOCUMENTS));
        let kept = find(&FrequencyCache::default(), &word, u64::from(DOCUMENTS)).expect("worth it at once");
        let mut cursor = word.cursor();
        let found: Vec<u32> = (0..DOCUMENTS).map(|document| kept.of(document, &mut cursor)).collect();
        assert_eq!(found, (0..DOCUMENTS).map(times).collect::<Vec<_>>());
    }

    #[test]
    fn frequencies_are_read_once_seeks_have_cost_as_much() {
        let (reader, fields) = segment_of(DOCUMENTS, |document| vec!["tea"; times(document) as usize].join(" "));
        let word = FoundWord::find(&reader, &fields, "tea", 12.0, u64::from(DOCUMENTS));
        let cache = FrequencyCache::default();
        let queries = (1..).find(|_| find(&cache, &word, 10).is_some());
        let reading = u64::from(word.info.doc_freq) + u64::from(DOCUMENTS) / CLEARED;
        assert_eq!(queries, Some(reading.div_ceil(10 * SEEK_COST)));
        assert!(find(&cache, &word, 1).is_some(), "kept from then on");
    }

    #[test]
    fn frequencies_of_rare_words_are_not_kept() {
        let (reader, fields) =
            segment_of(DOCUMENTS, |document| if document % 1_501 == 0 { "tea" } else { "" }.to_owned());
        let word = FoundWord::find(&reader, &fields, "tea", 12.0, u64::from(DOCUMENTS));
        assert!(find(&FrequencyCache::default(), &word, u64::from(DOCUMENTS)).is_none());
    }
}
