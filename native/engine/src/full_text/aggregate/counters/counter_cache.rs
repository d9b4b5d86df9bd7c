//! The counters of the segments of one index.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sundew_base::bit_set::BitSet;
use tantivy::index::SegmentId;
use tantivy::{Searcher, SegmentReader};

use super::path_totals::{PathTotals, ViewIdentity};
use super::segment_counters::{SegmentCounters, SegmentPath};
use crate::error::EngineError;
use crate::full_text::query::IndexFields;

/// Commits in a row without a question after which a path is forgotten.
const IDLE_COMMITS_MAX: u32 = 256;

#[derive(Default)]
pub struct CounterCache {
    segments: Mutex<HashMap<SegmentId, Arc<Mutex<CountedSegment>>>>,
    /// Paths that were asked for, with the commits since.
    asked: Mutex<HashMap<String, u32>>,
    totals: Mutex<HashMap<String, Arc<PathTotals>>>,
}

#[derive(Default)]
struct CountedSegment {
    /// The deleted documents, which the counters leave out.
    deleted: BitSet,
    by_path: HashMap<String, Arc<SegmentCounters>>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl CounterCache {
    /// Has commits bring the counters of `path` up to date from now on.
    pub fn ask(&self, path: &str) {
        let mut asked = locked(&self.asked);
        match asked.get_mut(path) {
            Some(idle) => *idle = 0,
            None => drop(asked.insert(path.to_owned(), 0)),
        }
    }

    /// The counters of `path` in each segment; `None` where a newer commit has moved them on.
    pub fn of(
        &self,
        searcher: &Searcher,
        index: &IndexFields,
        path: &str,
    ) -> Result<Option<Vec<Arc<SegmentCounters>>>, EngineError> {
        searcher.segment_readers().iter().map(|reader| self.of_segment(reader, index, path)).collect()
    }

    fn of_segment(
        &self,
        reader: &SegmentReader,
        index: &IndexFields,
        path: &str,
    ) -> Result<Option<Arc<SegmentCounters>>, EngineError> {
        let segment = Arc::clone(locked(&self.segments).entry(reader.segment_id()).or_default());
        let mut segment = locked(&segment);
        let deletions = reader.num_deleted_docs() as usize;
        if segment.deleted.len() > deletions {
            return Ok(None);
        }
        if segment.deleted.words().is_empty() {
            segment.deleted = BitSet::with_room(reader.max_doc() as usize);
        }
        if segment.deleted.len() < deletions {
            let deleted = deleted_docs(reader)?;
            let fresh = deleted.difference(&segment.deleted);
            // Of the documents that are deleted now, before the first counters are reduced by them: counters that
            // fail half-way, and those behind them, are counted again, and none is reduced twice.
            segment.deleted = deleted;
            for (path, mut counters) in std::mem::take(&mut segment.by_path) {
                let of = SegmentPath { reader, index, path: &path };
                Arc::make_mut(&mut counters).forget(&of, &fresh)?;
                segment.by_path.insert(path, counters);
            }
        }
        if let Some(counters) = segment.by_path.get(path) {
            return Ok(Some(Arc::clone(counters)));
        }
        let counters = SegmentCounters::count(&SegmentPath { reader, index, path }, &segment.deleted)?;
        let counters = Arc::new(counters);
        segment.by_path.insert(path.to_owned(), Arc::clone(&counters));
        Ok(Some(counters))
    }

    /// Whether a commit has anything to bring up to date.
    pub fn is_in_use(&self) -> bool {
        !locked(&self.asked).is_empty()
    }

    /// Brings the counters of paths that are asked for up to date with the newest commit.
    pub fn refresh(&self, searcher: &Searcher, index: &IndexFields) -> Result<(), EngineError> {
        let paths: Vec<String> = {
            let mut asked = locked(&self.asked);
            asked.retain(|_, idle| {
                *idle += 1;
                *idle <= IDLE_COMMITS_MAX
            });
            asked.keys().cloned().collect()
        };
        let readers = searcher.segment_readers();
        locked(&self.segments).retain(|id, segment| {
            locked(segment).by_path.retain(|path, _| paths.contains(path));
            readers.iter().any(|reader| reader.segment_id() == *id)
        });
        locked(&self.totals).retain(|path, _| paths.contains(path));
        for path in &paths {
            self.of(searcher, index, path)?;
        }
        Ok(())
    }

    /// The totals of `path` that are kept for these very segments.
    pub fn totals(&self, path: &str, identity: &ViewIdentity) -> Arc<PathTotals> {
        let mut totals = locked(&self.totals);
        if let Some(known) = totals.get(path).filter(|known| known.identity == *identity) {
            return Arc::clone(known);
        }
        let fresh = Arc::new(PathTotals::new(identity.clone()));
        totals.insert(path.to_owned(), Arc::clone(&fresh));
        fresh
    }
}

fn deleted_docs(reader: &SegmentReader) -> Result<BitSet, EngineError> {
    BitSet::collect(reader.max_doc(), |take| {
        (0..reader.max_doc()).filter(|doc| reader.is_deleted(*doc)).for_each(take);
        Ok(())
    })
}
