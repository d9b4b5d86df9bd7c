//! The documents of a range that the legs may find, as a set of ordinals.

use std::sync::Arc;

use sundew_base::bit_set::BitSet;
use tantivy::SegmentReader;

use super::cost_model::filter_nanos;
use super::ordinal_cache::{SetName, all_values};
use super::ranges::Ranges;
use crate::error::EngineError;
use crate::full_text::{Deadline, QueryPlan, check_filters, damaged, filter_bits, filter_name, is_filtered};

/// Segments of fewer documents are gone through again whenever another segment has changed.
const KEPT_DOCS_MIN: u32 = 20_000;

/// Below one in this many, ordinals are looked up one by one instead of all together.
const FEW_DOCS_SHARE: u32 = 8;

/// For a range what filters, exclusions, key prefix and expiry of `plan` let through; `None` when that is everything.
/// Documents that the text index does not show are in no set.
pub fn allowed_ordinals(
    ranges: &Ranges,
    range: usize,
    plan: &QueryPlan,
    deadline: &Deadline,
) -> Result<Option<Arc<BitSet>>, EngineError> {
    let view = &ranges.views[range];
    let has_expired = has_expired(ranges, range, plan);
    if is_filtered(plan) {
        check_filters(view, plan)?;
    } else if !has_expired {
        return Ok(None);
    }
    let name = filter_name(view, plan)?;
    let set = match ranges.caches[range].find(&name_of(view.searcher.segment_readers(), &name)) {
        Some(set) => set,
        None => {
            // Beside a text leg it was announced with that one's cost.
            if plan.query.is_none() {
                deadline.expect(filter_nanos(plan, view.searcher.num_docs()).unwrap_or(u64::MAX))?;
            }
            match filter_bits(view, plan, deadline)? {
                // The query asks for nothing.
                None if !has_expired => return Ok(None),
                bits => live_set(ranges, range, bits.as_deref(), &name)?,
            }
        }
    };
    Ok(Some(if has_expired { without_expired(ranges, range, plan, &set)? } else { set }))
}

/// Ordinals that `bits` let through and that are not deleted.
fn live_set(
    ranges: &Ranges,
    range: usize,
    bits: Option<&[Arc<BitSet>]>,
    filter: &Arc<str>,
) -> Result<Arc<BitSet>, EngineError> {
    let cache = &ranges.caches[range];
    let readers = ranges.views[range].searcher.segment_readers();
    let mut all = BitSet::default();
    for (segment, reader) in readers.iter().enumerate() {
        if readers.len() == 1 || reader.max_doc() < KEPT_DOCS_MIN {
            insert_segment(ranges, range, segment, bits, &mut all)?;
            continue;
        }
        let name = name_of(std::slice::from_ref(reader), filter);
        let own = match cache.find(&name) {
            Some(own) => own,
            None => {
                let mut own = BitSet::default();
                insert_segment(ranges, range, segment, bits, &mut own)?;
                cache.keep(name, own)
            }
        };
        all.extend_from(&own);
    }
    Ok(cache.keep(name_of(readers, filter), all))
}

fn name_of(readers: &[SegmentReader], filter: &Arc<str>) -> SetName {
    let segments = readers.iter().map(|reader| (reader.segment_id(), reader.num_deleted_docs()));
    (segments.collect(), Arc::clone(filter))
}

fn insert_segment(
    ranges: &Ranges,
    range: usize,
    segment: usize,
    bits: Option<&[Arc<BitSet>]>,
    set: &mut BitSet,
) -> Result<(), EngineError> {
    let view = &ranges.views[range];
    let reader = &view.searcher.segment_readers()[segment];
    let column = &view.columns[segment].ordinal;
    if let Some(bits) =
        bits.map(|bits| &bits[segment]).filter(|bits| (bits.len() as u32) < reader.max_doc() / FEW_DOCS_SHARE)
    {
        for doc in bits.iter().filter(|doc| !reader.is_deleted(*doc)) {
            let ordinal = column.first(doc).ok_or_else(|| damaged("a document has no ordinal".to_owned()))?;
            set.insert(ordinal as u32);
        }
        return Ok(());
    }
    let ordinals = all_values(column, reader.max_doc())?;
    let mut insert = |doc: u32| {
        if !reader.is_deleted(doc) {
            set.insert(ordinals[doc as usize]);
        }
    };
    match bits {
        Some(bits) => bits[segment].iter().for_each(&mut insert),
        None => (0..reader.max_doc()).for_each(&mut insert),
    }
    Ok(())
}

/// The expired documents of each segment, deleted ones too.
fn expired<'a>(ranges: &'a Ranges, range: usize, plan: &QueryPlan) -> impl Iterator<Item = (usize, &'a [u32])> {
    let view = &ranges.views[range];
    let segments = view.columns.iter().zip(view.searcher.segment_readers()).zip(ranges.segment_ordinals(range));
    let bound = plan.expired_at_or_before_ms;
    segments.enumerate().filter_map(move |(segment, ((columns, reader), ordinals))| {
        Some((segment, ordinals.expired(&columns.ttl_base, reader.max_doc(), bound?)))
    })
}

fn has_expired(ranges: &Ranges, range: usize, plan: &QueryPlan) -> bool {
    expired(ranges, range, plan).any(|(_, docs)| !docs.is_empty())
}

fn without_expired(ranges: &Ranges, range: usize, plan: &QueryPlan, set: &BitSet) -> Result<Arc<BitSet>, EngineError> {
    let view = &ranges.views[range];
    let mut left = set.clone();
    for (segment, docs) in expired(ranges, range, plan) {
        let reader = &view.searcher.segment_readers()[segment];
        for doc in docs.iter().filter(|doc| !reader.is_deleted(**doc)) {
            left.remove(view.columns[segment].ordinal.first(*doc).unwrap_or(u64::MAX) as u32);
        }
    }
    Ok(Arc::new(left))
}
