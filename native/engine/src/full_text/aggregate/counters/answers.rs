//! Which aggregations of a plan counters answer, and what they answer.

use std::sync::Arc;

use serde::Serialize;

use super::path_totals::{PathTotals, ViewIdentity, known_or_made};
use super::ranked_terms::RankedTerms;
use super::segment_counters::{SegmentCounters, SegmentPath};
use crate::error::EngineError;
use crate::full_text::aggregate::answers::number_summary::NumberSummary;
use crate::full_text::aggregate::answers::partial::Partial;
use crate::full_text::aggregate::collect::columns::GeoPoints;
use crate::full_text::aggregate::context::Context;
use crate::full_text::plan::{Aggregation, AggregationKind, QueryPlan};
use crate::full_text::query::RangeView;

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
/// is needed. Nothing at all where the table has no counters. Errors: `limit_exceeded`; what is to end at once fails unless
/// everything is known.
pub fn answer_counted(
    views: &[RangeView],
    plan: &QueryPlan,
    list: &[Aggregation],
    context: &Context<'_>,
) -> Result<(Vec<Option<Partial>>, Vec<Counted>), EngineError> {
    let Some(paths) = &plan.counted_paths else { return Ok((list.iter().map(|_| None).collect(), Vec::new())) };
    let hindrance = hindrance_of(views, plan);
    let readers = views.iter().flat_map(|view| view.searcher.segment_readers());
    let identity = readers.map(|reader| (reader.segment_id(), reader.num_deleted_docs())).collect();
    let table = CountedTable { views, identity, paths, context };
    let (mut answers, mut counted) = (Vec::with_capacity(list.len()), Vec::with_capacity(list.len()));
    for aggregation in list {
        let answer = match hindrance {
            Some(reason) => Err(reason),
            None => table.answer(aggregation)?,
        };
        counted.push(Counted { aggregation: aggregation.name.clone(), fallback: answer.as_ref().err().copied() });
        answers.push(answer.ok());
    }
    Ok((answers, counted))
}

/// Why counters of whole segments cannot answer the plan.
fn hindrance_of(views: &[RangeView], plan: &QueryPlan) -> Option<&'static str> {
    if !plan.takes_all() {
        return Some(NARROWED);
    }
    views.iter().any(|view| view.hides_expired(plan)).then_some(EXPIRING)
}

type Answer = Result<Partial, &'static str>;

struct CountedTable<'a> {
    views: &'a [RangeView],
    identity: ViewIdentity,
    /// Those of which counters are kept.
    paths: &'a [String],
    context: &'a Context<'a>,
}

impl CountedTable<'_> {
    fn answer(&self, aggregation: &Aggregation) -> Result<Answer, EngineError> {
        let path = match &aggregation.of {
            AggregationKind::Count { field: None } => return Ok(Ok(Partial::Count(self.document_count()))),
            AggregationKind::Numbers { field, .. }
            | AggregationKind::Count { field: Some(field) }
            | AggregationKind::Cardinality { field, .. } => field,
            AggregationKind::Terms { fields, background: None, .. } if aggregation.sub.is_empty() => {
                match &fields[..] {
                    [field] => field,
                    _ => return Ok(Err(UNCOUNTED)),
                }
            }
            _ => return Ok(Err(UNCOUNTED)),
        };
        if !self.paths.contains(path) {
            return Ok(Err(UNDECLARED));
        }
        self.views.iter().for_each(|view| view.counters.ask(path));
        let totals = match self.views.first() {
            Some(view) => view.counters.totals(path, &self.identity),
            None => Arc::new(PathTotals::new(self.identity.clone())),
        };
        self.answer_from(&totals, aggregation, path)
    }

    fn answer_from(&self, totals: &PathTotals, aggregation: &Aggregation, path: &str) -> Result<Answer, EngineError> {
        let deadline = self.context.deadline;
        let terms = || known_or_made(&totals.terms, deadline, || self.terms_of(path));
        Ok(match &aggregation.of {
            AggregationKind::Numbers { metric, .. } => {
                match known_or_made(&totals.numbers, deadline, || self.numbers_of(path))? {
                    None => Err(MOVED_ON),
                    Some(numbers) if !numbers.is_finite(*metric) => Err(OVERFLOWED),
                    Some(numbers) => Ok(Partial::Numbers(numbers.clone())),
                }
            }
            AggregationKind::Count { .. } => match known_or_made(&totals.values, deadline, || self.values_of(path))? {
                None => Err(MOVED_ON),
                Some(None) => Err(PLACES),
                Some(Some(values)) => Ok(Partial::Count(*values)),
            },
            AggregationKind::Cardinality { mode, .. } => match terms()? {
                None => Err(MOVED_ON),
                Some(terms) => Ok(Partial::Rendered(terms.distinct(*mode, self.context)?)),
            },
            AggregationKind::Terms { size, .. } => match terms()? {
                None => Err(MOVED_ON),
                Some(terms) => Ok(Partial::Buckets(terms.first(*size, self.document_count()))),
            },
            _ => Err(UNCOUNTED),
        })
    }

    fn document_count(&self) -> u64 {
        self.views.iter().map(|view| view.searcher.num_docs()).sum()
    }

    /// The counters of each segment of each range; `None` where a newer commit has moved them on.
    fn segments_of(&self, path: &str) -> Result<Option<Vec<Vec<Arc<SegmentCounters>>>>, EngineError> {
        self.views.iter().map(|view| view.counters.of(&view.searcher, &view.index, path)).collect()
    }

    fn numbers_of(&self, path: &str) -> Result<Option<NumberSummary>, EngineError> {
        let Some(segments) = self.segments_of(path)? else { return Ok(None) };
        let mut merged = NumberSummary::default();
        segments.iter().flatten().for_each(|counters| merged.merge(&counters.summary()));
        Ok(Some(merged))
    }

    fn values_of(&self, path: &str) -> Result<Option<Option<u64>>, EngineError> {
        let Some(segments) = self.segments_of(path)? else { return Ok(None) };
        let values = segments.iter().flatten().map(|counters| counters.values()).sum();
        Ok(Some(if has_places(self.views, path)? { None } else { Some(values) }))
    }

    fn terms_of(&self, path: &str) -> Result<Option<RankedTerms>, EngineError> {
        let Some(segments) = self.segments_of(path)? else { return Ok(None) };
        let mut terms = Vec::with_capacity(self.identity.len());
        for (view, counters) in self.views.iter().zip(&segments) {
            for (reader, counters) in view.searcher.segment_readers().iter().zip(counters) {
                terms.push(counters.terms(&SegmentPath { reader, index: &view.index, path })?);
            }
        }
        Ok(Some(RankedTerms::new(terms)))
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
