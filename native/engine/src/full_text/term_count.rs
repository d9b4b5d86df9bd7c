//! How many terms an index has.

use std::sync::{Mutex, PoisonError};

use tantivy::Searcher;
use tantivy::schema::Field;

/// Terms of analysed text and of values, counted once for each segment, and once for each commit.
#[derive(Default)]
pub struct TermCount {
    /// The generation of the searcher that was counted, and its terms.
    counted: Mutex<Option<(u64, u64)>>,
}

impl TermCount {
    pub fn of<'f>(&self, searcher: &Searcher, fields: impl Iterator<Item = &'f Field>) -> u64 {
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        let generation = searcher.generation().generation_id();
        match *counted {
            Some((known, count)) if known == generation => count,
            _ => counted.insert((generation, fields.map(|field| count_terms(searcher, *field)).sum())).1,
        }
    }
}

fn count_terms(searcher: &Searcher, field: Field) -> u64 {
    let segments = searcher.segment_readers().iter().filter_map(|segment| segment.inverted_index(field).ok());
    segments.map(|terms| terms.terms().num_terms() as u64).sum()
}
