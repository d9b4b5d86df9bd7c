//! Numbers about an index that stay as they are until its next commit.

use std::sync::{Mutex, PoisonError};

use tantivy::Searcher;
use tantivy::schema::Field;

/// A number that is counted once for each commit.
#[derive(Default)]
pub struct CommitCount {
    /// The generation of the searcher that was counted, and its number.
    counted: Mutex<Option<(u64, u64)>>,
}

impl CommitCount {
    pub fn of(&self, searcher: &Searcher, count: impl FnOnce() -> u64) -> u64 {
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        let generation = searcher.generation().generation_id();
        match *counted {
            Some((known, count)) if known == generation => count,
            _ => counted.insert((generation, count())).1,
        }
    }
}

/// Terms of analysed text and of values, once for each segment.
pub fn count_terms<'f>(searcher: &Searcher, fields: impl Iterator<Item = &'f Field>) -> u64 {
    let of_field = |field: &Field| {
        let segments = searcher.segment_readers().iter().filter_map(|segment| segment.inverted_index(*field).ok());
        segments.map(|terms| terms.terms().num_terms() as u64).sum::<u64>()
    };
    fields.map(of_field).sum()
}
