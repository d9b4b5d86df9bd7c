//! The documents that the part of a plan which does not score lets through, a bit for each, kept for the next query.
//!
//! A segment never changes but for its deletes, so its bits stay true for as long as it lives: they say nothing of
//! deletes, nor of expiry.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard};

use tantivy::index::SegmentId;
use tantivy::query::{EnableScoring, Explanation, Query, Scorer, Weight};
use tantivy::{DocId, Score, SegmentReader, TantivyError};

use super::collect::visit_all;
use super::compile::compile_filter;
use super::doc_bits::{ConstantDocs, DocBits};
use super::plan::QueryPlan;
use super::search::RangeView;
use super::stop::Stop;
use crate::error::EngineError;
use crate::full_text::errors::tantivy_failed;

/// Bits of one index that are kept: 128 filters over a million documents.
const BYTES_MAX: usize = 16 << 20;

/// What an entry costs besides its bits.
const ENTRY_BYTES: usize = 128;

/// Filters that were asked once, remembered to know the second time.
const ASKED_ONCE_MAX: usize = 1_024;

struct Kept {
    bits: Arc<DocBits>,
    bytes: usize,
    used_at: u64,
}

#[derive(Default)]
struct Held {
    kept: HashMap<(SegmentId, Arc<str>), Kept>,
    bytes: usize,
    /// Counts uses.
    now: u64,
    asked_once: HashSet<Arc<str>>,
}

impl Held {
    fn find(&mut self, segment: SegmentId, filter: &Arc<str>) -> Option<Arc<DocBits>> {
        self.now += 1;
        let kept = self.kept.get_mut(&(segment, Arc::clone(filter)))?;
        kept.used_at = self.now;
        Some(Arc::clone(&kept.bits))
    }

    fn keep(&mut self, segment: SegmentId, filter: &Arc<str>, bits: Arc<DocBits>, bytes_max: usize) {
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
    fn is_known(&mut self, filter: &Arc<str>, first_segment: SegmentId) -> bool {
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
    fn held(&self) -> MutexGuard<'_, Held> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// What tells the filters of plans apart. A condition without a field means the fields that there are.
pub fn filter_name(view: &RangeView, plan: &QueryPlan) -> Result<Arc<str>, EngineError> {
    let parts = (view.index.slots.len(), &plan.filter, &plan.exclusion, &plan.key_prefix);
    let name = serde_json::to_string(&parts).map_err(|error| EngineError::internal(format!("a filter: {error}")))?;
    Ok(Arc::from(name))
}

pub fn is_filtered(plan: &QueryPlan) -> bool {
    !plan.filter.is_empty() || !plan.exclusion.is_empty() || plan.key_prefix.as_ref().is_some_and(|key| !key.is_empty())
}

/// For each segment of `view`, in order, the documents that filters, exclusions and key prefix of `plan` let through;
/// deleted and expired ones too. `None` when they let everything through.
///
/// Errors: `invalid_query`; `query_timeout`.
pub fn filter_bits(view: &RangeView, plan: &QueryPlan, stop: &Stop) -> Result<Option<Vec<Arc<DocBits>>>, EngineError> {
    if !is_filtered(plan) {
        return Ok(None);
    }
    bits_of(view, plan, &filter_name(view, plan)?, stop)
}

/// The same for a filter that was asked before; to keep the bits of one that is never asked again would only cost.
pub fn known_filter_bits(
    view: &RangeView,
    plan: &QueryPlan,
    stop: &Stop,
) -> Result<Option<Vec<Arc<DocBits>>>, EngineError> {
    let Some(first) = view.searcher.segment_readers().first().filter(|_| is_filtered(plan)) else { return Ok(None) };
    let name = filter_name(view, plan)?;
    if !view.filters.held().is_known(&name, first.segment_id()) {
        return Ok(None);
    }
    bits_of(view, plan, &name, stop)
}

fn bits_of(
    view: &RangeView,
    plan: &QueryPlan,
    name: &Arc<str>,
    stop: &Stop,
) -> Result<Option<Vec<Arc<DocBits>>>, EngineError> {
    let readers = view.searcher.segment_readers();
    let mut weight: Option<Box<dyn Weight>> = None;
    let mut all = Vec::with_capacity(readers.len());
    for reader in readers {
        let known = view.filters.held().find(reader.segment_id(), name);
        if let Some(bits) = known {
            all.push(bits);
            continue;
        }
        let weight = match &mut weight {
            Some(weight) => weight,
            none => {
                let Some(filter) = compile_filter(&view.index, plan)? else { return Ok(None) };
                none.insert(filter.weight(EnableScoring::disabled_from_schema(&view.schema)).map_err(tantivy_failed)?)
            }
        };
        let visit = |take: &mut dyn FnMut(DocId)| visit_all(reader, &**weight, stop, |doc, _| take(doc));
        let bits = Arc::new(DocBits::collect(reader.max_doc(), visit)?);
        view.filters.held().keep(reader.segment_id(), name, Arc::clone(&bits), BYTES_MAX);
        all.push(bits);
    }
    Ok(Some(all))
}

/// A condition whose documents are known.
#[derive(Debug, Clone)]
pub struct BitsQuery(Arc<HashMap<SegmentId, Arc<DocBits>>>);

impl BitsQuery {
    /// `bits` are of the segments of `view`, in order.
    pub fn new(view: &RangeView, bits: Vec<Arc<DocBits>>) -> Self {
        let segments = view.searcher.segment_readers().iter().map(SegmentReader::segment_id);
        Self(Arc::new(segments.zip(bits).collect()))
    }
}

impl Query for BitsQuery {
    fn weight(&self, _: EnableScoring<'_>) -> tantivy::Result<Box<dyn Weight>> {
        Ok(Box::new(self.clone()))
    }
}

impl Weight for BitsQuery {
    fn scorer(&self, reader: &SegmentReader, boost: Score) -> tantivy::Result<Box<dyn Scorer>> {
        let bits = self.0.get(&reader.segment_id());
        let bits = bits.ok_or_else(|| TantivyError::InternalError("a segment of another commit".to_owned()))?;
        Ok(ConstantDocs::scorer(Arc::clone(bits), boost))
    }

    fn explain(&self, _: &SegmentReader, _: DocId) -> tantivy::Result<Explanation> {
        Ok(Explanation::new("Const", 1.0))
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
            held.keep(segment, name, Arc::new(DocBits::of_words(vec![0; 16].into())), 4 * entry);
        }
        assert!(held.find(segment, &names[0]).is_some());
        held.keep(segment, &names[4], Arc::new(DocBits::of_words(vec![0; 16].into())), 4 * entry);
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
