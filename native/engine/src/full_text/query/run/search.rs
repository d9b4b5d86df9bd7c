//! Runs a plan over the indexes of all ranges and merges what they find.

use std::cmp::Ordering;
use std::sync::Arc;
use std::time::Instant;

use rayon::prelude::*;
use tantivy::DocId;
use tantivy::columnar::Column;
use tantivy::query::{EnableScoring, Weight};

use crate::error::EngineError;
use crate::full_text::TextIndex;
use crate::full_text::aggregate::aggregate;
use crate::full_text::errors::{damaged, tantivy_failed};
use crate::full_text::plan::{AggregationPlan, Node, QueryPlan};
use crate::full_text::query::compile::text_checks::check_order;
use crate::full_text::query::deadline::{CancelFlag, Deadline};
use crate::full_text::query::run::collect::{Collected, Scored, count};
use crate::full_text::query::run::explain::explain_hits;
use crate::full_text::query::run::filter::filtered_query::filtered_query;
use crate::full_text::query::run::hits::{Hit, Hits};
use crate::full_text::query::run::open_views::open_views;
use crate::full_text::query::run::ordered::key_order::Keys;
use crate::full_text::query::run::ordered::sort_column::SCORE_FIELD;
use crate::full_text::query::run::ordered::sort_position::encoded;
use crate::full_text::query::run::ordered::sort_values::SortValue;
use crate::full_text::query::run::ordered::sorted::{Sorted, collect_sorted};
use crate::full_text::query::run::pool::query_pool;
use crate::full_text::query::run::range_view::RangeView;
use crate::full_text::query::run::ranked::top_k::TopKQuery;
use crate::full_text::query::run::ranked::top_k_collector::collect_top_k;
use crate::full_text::query::run::statistics::GlobalStatistics;
use crate::full_text::query::words::word_bits::WordBits;

/// The matches of `plan` over `indexes`, best or first in order, and their number. Scores do not depend on how the
/// documents are spread over the indexes.
///
/// Errors: `query_timeout` after `plan.timeout_ms` or when `cancel` is set; `invalid_query`.
pub fn query(indexes: &[Arc<TextIndex>], plan: &QueryPlan, cancel: &CancelFlag) -> Result<Hits, EngineError> {
    query_until(indexes, plan, &Deadline::new(cancel, plan.timeout_ms))
}

/// The same until `deadline` says so.
pub fn query_until(indexes: &[Arc<TextIndex>], plan: &QueryPlan, deadline: &Deadline) -> Result<Hits, EngineError> {
    let started = Instant::now();
    let views = match open_views(indexes, plan, deadline) {
        Err(error) if plan.allows_partial && deadline.is_end_of_time(&error) => return nothing_in_time(plan, deadline),
        views => views?,
    };
    views.iter().try_for_each(|view| check_order(&view.index, plan))?;
    let mut hits = match &plan.aggregations {
        Some(aggregations) => query_and_aggregate(&views, plan, aggregations, deadline)?,
        None => query_views(&views, plan, deadline)?,
    };
    if plan.explain {
        let explained = explain_hits(&views, plan, &hits.hits)?;
        let json = serde_json::to_string(&explained);
        hits.explanations = json.map_err(|error| EngineError::internal(format!("explanation: {error}")))?;
    }
    hits.took_micros = started.elapsed().as_micros() as u64;
    Ok(hits)
}

/// The answer of a query whose time was over before it looked at anything, with the aggregations of no documents.
pub fn nothing_in_time(plan: &QueryPlan, deadline: &Deadline) -> Result<Hits, EngineError> {
    let mut hits = Hits { is_partial: true, ..Hits::default() };
    if let Some(aggregations) = &plan.aggregations {
        hits.aggregations = aggregate(&[], plan, aggregations, deadline)?.json;
    }
    Ok(hits)
}

/// The page may come from a search that skips; all matches are visited once more for the aggregations, and counted.
fn query_and_aggregate(
    views: &[RangeView],
    plan: &QueryPlan,
    aggregations: &AggregationPlan,
    deadline: &Deadline,
) -> Result<Hits, EngineError> {
    let aggregated = aggregate(views, plan, aggregations, deadline)?;
    let is_page_wanted = plan.limit > 0 && !plan.count_only;
    let mut hits = if is_page_wanted { query_views(views, plan, deadline)? } else { Hits::default() };
    hits.total = aggregated.total;
    hits.is_partial |= aggregated.is_partial;
    hits.total_is_exact = !aggregated.is_partial;
    hits.aggregations = aggregated.json;
    hits.counted = aggregated.counted;
    Ok(hits)
}

/// A search that ends before any document was visited (terms are still being looked up) has found nothing.
pub fn query_views(views: &[RangeView], plan: &QueryPlan, deadline: &Deadline) -> Result<Hits, EngineError> {
    match query_whole(views, plan, deadline) {
        Err(error) if plan.allows_partial && deadline.is_end_of_time(&error) => {
            Ok(Hits { is_partial: true, ..Hits::default() })
        }
        outcome => outcome,
    }
}

fn query_whole(views: &[RangeView], plan: &QueryPlan, deadline: &Deadline) -> Result<Hits, EngineError> {
    if deadline.is_due() {
        return Err(deadline.error());
    }
    if let Some(hits) = only_total_of_all(views, plan) {
        return Ok(hits);
    }
    let statistics = GlobalStatistics::new(views.iter().map(|view| (&view.searcher, &view.index)).collect());
    if plan.count_only {
        let totals = over_ranges(views, deadline, |range| {
            let weight = weight_for(views, range, plan, &statistics, false, deadline)?;
            count(views[range].segments(), &*weight, plan, deadline)
        })?;
        let total = totals.iter().map(|counted| counted.total).sum();
        let is_partial = totals.iter().any(|counted| counted.is_partial);
        return Ok(Hits { total, total_is_exact: !is_partial, is_partial, ..Hits::default() });
    }
    if plan.sort.is_empty() {
        let hidden = views.iter().map(|view| view.hidden_at_most(plan)).sum();
        let found = over_ranges(views, deadline, |range| {
            let query = TopKQuery::new(&views[range], plan, &statistics.for_range(range), deadline)?;
            collect_top_k(views[range].segments(), &query, plan, hidden, deadline)
        })?;
        return merge(views, plan, found, |a: &Scored, b: &Scored| b.score.total_cmp(&a.score));
    }
    let scores = plan.sort.iter().any(|field| field.field == SCORE_FIELD);
    let found = over_ranges(views, deadline, |range| {
        let weight = weight_for(views, range, plan, &statistics, scores, deadline)?;
        collect_sorted(views[range].segments(), &views[range].index, &*weight, scores, plan, deadline)
    })?;
    merge(views, plan, found, |a: &Sorted, b: &Sorted| {
        let fields = plan.sort.iter().zip(a.values.iter().zip(&b.values));
        fields.map(|(field, (a, b))| a.compare(b, field.desc)).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    })
}

/// The number of all documents, which is known, where a plan takes all of them and wants no page.
fn only_total_of_all(views: &[RangeView], plan: &QueryPlan) -> Option<Hits> {
    if !plan.wants_only_total() || !plan.takes_all() || views.iter().any(|view| view.hides_expired(plan)) {
        return None;
    }
    let total = views.iter().map(|view| view.searcher.num_docs()).sum();
    let max_score = match &plan.query {
        _ if plan.count_only || total == 0 => 0.0,
        Some(Node::MatchAll { boost }) => *boost,
        _ => 1.0,
    };
    Some(Hits { total, total_is_exact: true, max_score, ..Hits::default() })
}

fn weight_for(
    views: &[RangeView],
    range: usize,
    plan: &QueryPlan,
    statistics: &GlobalStatistics<'_>,
    scores: bool,
    deadline: &Deadline,
) -> Result<Box<dyn Weight>, EngineError> {
    let view = &views[range];
    let query = filtered_query(view, plan, deadline)?;
    if !scores && let Some(words) = WordBits::of(&*query, &view.index, deadline) {
        return Ok(Box::new(words));
    }
    let for_range = statistics.for_range(range);
    let scoring = if scores {
        EnableScoring::enabled_from_statistics_provider(&for_range, &view.searcher)
    } else {
        EnableScoring::disabled_from_schema(&view.schema)
    };
    query.weight(scoring).map_err(tantivy_failed)
}

fn over_ranges<T: Send>(
    views: &[RangeView],
    deadline: &Deadline,
    run: impl Fn(usize) -> Result<T, EngineError> + Sync,
) -> Result<Vec<T>, EngineError> {
    let docs: u64 = views.iter().map(|view| view.searcher.num_docs()).sum();
    match query_pool(views.len(), docs).filter(|_| !deadline.is_inline()) {
        Some(pool) => pool.install(|| (0..views.len()).into_par_iter().map(&run).collect()),
        None => (0..views.len()).map(run).collect(),
    }
}

/// The parts of a match that merging needs.
pub trait Match {
    /// Segment, document, rank of the key within the segment.
    fn location(&self) -> (u32, DocId, u64);
    fn score(&self) -> f32;
    fn sort(&self) -> &[SortValue];
}

impl Match for Scored {
    fn location(&self) -> (u32, DocId, u64) {
        (self.segment, self.doc, self.key_rank)
    }

    fn score(&self) -> f32 {
        self.score
    }

    fn sort(&self) -> &[SortValue] {
        &[]
    }
}

impl Match for Sorted {
    fn location(&self) -> (u32, DocId, u64) {
        (self.segment, self.doc, self.key_rank)
    }

    fn score(&self) -> f32 {
        self.score
    }

    fn sort(&self) -> &[SortValue] {
        &self.values
    }
}

fn merge<T: Match>(
    views: &[RangeView],
    plan: &QueryPlan,
    found: Vec<Collected<T>>,
    order: impl Fn(&T, &T) -> Ordering,
) -> Result<Hits, EngineError> {
    let mut hits = Hits { total_is_exact: true, ..Hits::default() };
    let mut matches: Vec<(usize, T)> = Vec::new();
    let matches_at_least = found.iter().map(|collected| collected.matches_at_least).max().unwrap_or(0);
    for (range, collected) in found.into_iter().enumerate() {
        hits.total += collected.total;
        hits.total_is_exact &= collected.total_is_exact;
        hits.is_partial |= collected.is_partial;
        hits.max_score = hits.max_score.max(collected.max_score);
        matches.extend(collected.matches.into_iter().map(|found| (range, found)));
    }
    hits.total = hits.total.max(matches_at_least);
    let mut keys = Keys::new(views);
    let backwards = plan.reads_backwards();
    matches.sort_unstable_by(|(range_a, a), (range_b, b)| {
        let forwards = order(a, b).then_with(|| keys.compare((*range_a, a.location()), (*range_b, b.location())));
        if backwards { forwards.reverse() } else { forwards }
    });
    keys.into_failure()?;
    for (range, found) in matches.into_iter().skip(plan.offset).take(plan.limit) {
        hits.hits.push(hit(views, range, &found)?);
    }
    if backwards {
        hits.hits.reverse();
    }
    Ok(hits)
}

fn hit<T: Match>(views: &[RangeView], range: usize, found: &T) -> Result<Hit, EngineError> {
    let (segment, doc, _) = found.location();
    let location = (segment, doc);
    let columns = &views[range].columns[segment as usize];
    let number = |column: &Column<u64>| {
        column.first(doc).ok_or_else(|| damaged("a document has no ordinal or no sequence".to_owned()))
    };
    Ok(Hit {
        range: range as u32,
        ordinal: number(&columns.ordinal)? as u32,
        sequence: number(&columns.sequence)?,
        score: found.score(),
        location,
        sort: found.sort().iter().map(SortValue::to_json).collect(),
        position: if found.sort().is_empty() { String::new() } else { encoded(found.sort()) },
    })
}
