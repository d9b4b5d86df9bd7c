//! Which aggregations of a plan counters answer, and what they answer.

use std::sync::Arc;

use serde::Serialize;

use super::counter_cache::ViewIdentity;
use super::ranked_terms::RankedTerms;
use super::segment_counters::{SegmentCounters, SegmentPath};
use crate::error::EngineError;
use crate::full_text::aggregate::answers::number_summary::NumberSummary;
use crate::full_text::aggregate::answers::partial::Partial;
use crate::full_text::aggregate::budget::Budget;
use crate::full_text::aggregate::collect::columns::GeoPoints;
use crate::full_text::plan::{Aggregation, AggregationKind, Node, QueryPlan};
use crate::full_text::query::{RangeView, Visible};

/// How one aggregation of a plan was answered, for its profile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Counted {
    pub aggregation: String,
    /// Why the documents were visited all the same; absent where the counters answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fallback: Option<&'static str>,
}

const NARROWED: &str = "a condition narrows the documents";
const EXPIRING: &str = "documents may have expired";
const UNDECLARED: &str = "the schema declares no scalar at the path";
const UNCOUNTED: &str = "no counters are kept for this kind of aggregation";
const MOVED_ON: &str = "a newer commit is counted already";
const OVERFLOWED: &str = "a sum leaves the range of doubles";
const PLACES: &str = "the path holds geo points";

/// For each aggregation of `list` what the counters answer, the same as a visit of all documents would; `None` where that
/// is needed. Nothing at all where the table has no counters. Errors: `limit_exceeded`.
pub fn answer_counted(
    views: &[RangeView],
    plan: &QueryPlan,
    list: &[Aggregation],
    budget: &Budget,
) -> Result<(Vec<Option<Partial>>, Vec<Counted>), EngineError> {
    let Some(paths) = &plan.counted_paths else { return Ok((list.iter().map(|_| None).collect(), Vec::new())) };
    let hindrance = hindrance_of(views, plan);
    let (mut answers, mut counted) = (Vec::with_capacity(list.len()), Vec::with_capacity(list.len()));
    for aggregation in list {
        let answer = match hindrance {
            Some(reason) => Err(reason),
            None => answer_one(views, paths, aggregation, budget)?,
        };
        counted.push(Counted { aggregation: aggregation.name.clone(), fallback: answer.as_ref().err().copied() });
        answers.push(answer.ok());
    }
    Ok((answers, counted))
}

/// Why counters of whole segments cannot answer the plan.
fn hindrance_of(views: &[RangeView], plan: &QueryPlan) -> Option<&'static str> {
    let takes_all = matches!(plan.query, None | Some(Node::MatchAll { .. }));
    let narrows = !(plan.filter.is_empty() && plan.exclusion.is_empty() && plan.row_filter.is_empty());
    if !takes_all || narrows || plan.key_prefix.is_some() {
        return Some(NARROWED);
    }
    let mut segments = views.iter().flat_map(|view| view.segments().iter());
    let expires = segments.any(|(_, reader, columns)| Visible::new(reader, columns, plan).hides_expired());
    expires.then_some(EXPIRING)
}

type Answer = Result<Partial, &'static str>;

fn answer_one(
    views: &[RangeView],
    paths: &[String],
    aggregation: &Aggregation,
    budget: &Budget,
) -> Result<Answer, EngineError> {
    let path = match &aggregation.of {
        AggregationKind::Count { field: None } => return Ok(Ok(Partial::Count(document_count(views)))),
        AggregationKind::Numbers { field, .. }
        | AggregationKind::Count { field: Some(field) }
        | AggregationKind::Cardinality { field, .. } => field,
        AggregationKind::Terms { fields, background: None, .. } if aggregation.sub.is_empty() => match &fields[..] {
            [field] => field,
            _ => return Ok(Err(UNCOUNTED)),
        },
        _ => return Ok(Err(UNCOUNTED)),
    };
    if !paths.contains(path) {
        return Ok(Err(UNDECLARED));
    }
    let mut segments = Vec::with_capacity(views.len());
    for view in views {
        let Some(counters) = view.counters.of(&view.searcher, &view.index, path)? else { return Ok(Err(MOVED_ON)) };
        segments.push(counters);
    }
    match &aggregation.of {
        AggregationKind::Numbers { metric, .. } => {
            let mut merged = NumberSummary::default();
            segments.iter().flatten().for_each(|counters| merged.merge(&counters.summary()));
            Ok(if merged.is_finite(*metric) { Ok(Partial::Numbers(merged)) } else { Err(OVERFLOWED) })
        }
        AggregationKind::Count { .. } => {
            let values = segments.iter().flatten().map(|counters| counters.values()).sum();
            Ok(if has_places(views, path)? { Err(PLACES) } else { Ok(Partial::Count(values)) })
        }
        AggregationKind::Cardinality { mode, .. } => {
            let ranked = ranked_terms(views, &segments, path)?;
            Ok(Ok(Partial::Distinct(ranked.distinct(*mode, budget)?)))
        }
        AggregationKind::Terms { size, .. } => {
            let ranked = ranked_terms(views, &segments, path)?;
            Ok(Ok(Partial::Buckets(ranked.first(*size, document_count(views)))))
        }
        _ => Ok(Err(UNCOUNTED)),
    }
}

fn document_count(views: &[RangeView]) -> u64 {
    views.iter().map(|view| view.searcher.num_docs()).sum()
}

fn ranked_terms(
    views: &[RangeView],
    segments: &[Vec<Arc<SegmentCounters>>],
    path: &str,
) -> Result<Arc<RankedTerms>, EngineError> {
    let readers = || views.iter().flat_map(|view| view.searcher.segment_readers());
    let identity: ViewIdentity = readers().map(|reader| (reader.segment_id(), reader.num_deleted_docs())).collect();
    let rank = || {
        let mut terms = Vec::with_capacity(identity.len());
        for (view, counters) in views.iter().zip(segments) {
            for (reader, counters) in view.searcher.segment_readers().iter().zip(counters) {
                terms.push(counters.terms(&SegmentPath { reader, index: &view.index, path })?);
            }
        }
        Ok(RankedTerms::new(terms))
    };
    match views.first() {
        Some(view) => view.counters.ranked(path, &identity, rank),
        None => rank().map(Arc::new),
    }
}

/// Whether a count of the path's values would count geo points too.
fn has_places(views: &[RangeView], path: &str) -> Result<bool, EngineError> {
    for view in views {
        for reader in view.searcher.segment_readers() {
            if GeoPoints::open(reader, &view.index, path)?.has_any() {
                return Ok(true);
            }
        }
    }
    Ok(false)
}
