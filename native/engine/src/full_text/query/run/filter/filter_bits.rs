//! The documents that the part of a plan which does not score lets through, a bit for each, kept for the next query.
//!
//! A segment never changes but for its deletes, so its bits stay true for as long as it lives: they say nothing of
//! deletes, nor of expiry.

use std::collections::HashMap;
use std::sync::Arc;

use tantivy::index::SegmentId;
use tantivy::query::{EnableScoring, Explanation, Query, Scorer, Weight};
use tantivy::{DocId, Score, SegmentReader, TantivyError};

use crate::error::EngineError;
use crate::full_text::errors::tantivy_failed;
use crate::full_text::plan::{Node, QueryPlan};
use crate::full_text::query::compile::compile_plan::compile_filter;
use crate::full_text::query::compile::field_checks::check_fields;
use crate::full_text::query::compile::text_checks::check_text;
use crate::full_text::query::constant_docs::ConstantDocs;
use crate::full_text::query::deadline::Deadline;
use crate::full_text::query::run::collect::{Visible, visit_all};
use crate::full_text::query::run::range_view::RangeView;
use crate::full_text::slots::TakenSlots;
use sundew_base::bit_set::BitSet;

/// The name that tells the filters of plans apart. A condition without a field means the fields that there are.
pub fn filter_name(view: &RangeView, plan: &QueryPlan) -> Result<Arc<str>, EngineError> {
    let TakenSlots { slots, overflow } = &*view.index.slots;
    let fields = (slots.len(), overflow.len());
    let parts = (fields, &plan.filter, &plan.exclusion, &plan.row_filter, &plan.key_prefix);
    let name = serde_json::to_string(&parts).map_err(|error| EngineError::internal(format!("a filter: {error}")))?;
    Ok(Arc::from(name))
}

pub fn is_filtered(plan: &QueryPlan) -> bool {
    !plan.filter.is_empty()
        || !plan.exclusion.is_empty()
        || !plan.row_filter.is_empty()
        || plan.key_prefix.as_ref().is_some_and(|key| !key.is_empty())
}

/// Refuses filters that cannot be asked, also where there are no documents, or is known which ones they let through: what a table
/// can be asked changes with its text index.
///
/// Errors: `invalid_query`; `unavailable`.
pub fn check_filters(view: &RangeView, plan: &QueryPlan) -> Result<(), EngineError> {
    check_text(&view.index, plan)?;
    check_fields(&view.index, plan)?;
    if view.searcher.segment_readers().is_empty() {
        compile_filter(&view.compiling(plan), plan)?;
    }
    Ok(())
}

/// For each segment of `view`, in order, the documents that filters, exclusions and key prefix of `plan` let through;
/// deleted and expired ones too. `None` when they let everything through.
///
/// Errors: `invalid_query`; `query_timeout`.
pub fn filter_bits(
    view: &RangeView,
    plan: &QueryPlan,
    deadline: &Deadline,
) -> Result<Option<Vec<Arc<BitSet>>>, EngineError> {
    if !is_filtered(plan) {
        return Ok(None);
    }
    bits_of(view, plan, &filter_name(view, plan)?, deadline)
}

/// For each segment of `view`, in order, the documents that the row filters of `plan` permit and that are there. `None`
/// without a row filter.
///
/// Errors: `invalid_query`; `query_timeout`.
pub fn permitted_bits(
    view: &RangeView,
    plan: &QueryPlan,
    deadline: &Deadline,
) -> Result<Option<Vec<BitSet>>, EngineError> {
    let of_rows = QueryPlan {
        row_filter: plan.row_filter.clone(),
        has_text_index: plan.has_text_index,
        text_index_comes: plan.text_index_comes,
        ..QueryPlan::of(Node::MatchAll { boost: 1.0 }, 0)
    };
    let Some(permitted) = filter_bits(view, &of_rows, deadline)? else { return Ok(None) };
    let there = view.segments().iter().zip(permitted).map(|((_, reader, columns), permitted)| {
        let visible = Visible::new(reader, columns, plan);
        BitSet::collect(reader.max_doc(), |take| {
            permitted.iter().filter(|document| visible.shows(*document)).for_each(take);
            Ok(())
        })
    });
    there.collect::<Result<_, _>>().map(Some)
}

/// The same as `filter_bits` for a filter that was asked before; to keep the bits of one that is never asked again
/// would only cost.
pub fn known_filter_bits(
    view: &RangeView,
    plan: &QueryPlan,
    deadline: &Deadline,
) -> Result<Option<Vec<Arc<BitSet>>>, EngineError> {
    let Some(first) = view.searcher.segment_readers().first().filter(|_| is_filtered(plan)) else { return Ok(None) };
    let name = filter_name(view, plan)?;
    if !view.filters.is_known(&name, first.segment_id()) {
        return Ok(None);
    }
    bits_of(view, plan, &name, deadline)
}

fn bits_of(
    view: &RangeView,
    plan: &QueryPlan,
    name: &Arc<str>,
    deadline: &Deadline,
) -> Result<Option<Vec<Arc<BitSet>>>, EngineError> {
    let readers = view.searcher.segment_readers();
    let docs = readers.iter().map(|reader| u64::from(reader.max_doc())).sum();
    let mut weight: Option<Box<dyn Weight>> = None;
    let mut all = Vec::with_capacity(readers.len());
    for reader in readers {
        let known = view.filters.find(reader.segment_id(), name);
        if let Some(bits) = known {
            all.push(bits);
            continue;
        }
        let weight = match &mut weight {
            Some(weight) => weight,
            none => {
                let Some(filter) = compile_filter(&view.compiling(plan), plan)? else { return Ok(None) };
                none.insert(filter.weight(EnableScoring::disabled_from_schema(&view.schema)).map_err(tantivy_failed)?)
            }
        };
        let visit = |take: &mut dyn FnMut(DocId)| visit_all(reader, &**weight, deadline, |doc, _| take(doc));
        let bits = Arc::new(BitSet::collect(reader.max_doc(), visit)?);
        view.filters.keep(reader.segment_id(), name, Arc::clone(&bits), docs);
        all.push(bits);
    }
    Ok(Some(all))
}

/// A condition whose documents are known.
#[derive(Debug, Clone)]
pub struct BitsQuery(Arc<HashMap<SegmentId, Arc<BitSet>>>);

impl BitsQuery {
    /// `bits` are of the segments of `view`, in order.
    pub fn new(view: &RangeView, bits: Vec<Arc<BitSet>>) -> Self {
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
