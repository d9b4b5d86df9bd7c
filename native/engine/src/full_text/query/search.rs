//! Runs a plan over the indexes of all ranges and merges what they find.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};
use tantivy::columnar::Column;
use tantivy::query::{EmptyQuery, EnableScoring, Query, Weight};
use tantivy::schema::Schema;
use tantivy::{DocId, Searcher, SegmentReader};

use super::best::collect_best;
use super::best_query::BestQuery;
use super::collect::{Collected, Scored, Segments, count};
use super::compile::compile_parts;
use super::explain::explain_hits;
use super::fields_of_path::IndexFields;
use super::filter_bits::{BitsQuery, FilterCache, known_filter_bits};
use super::hits::{Hit, Hits};
use super::plan::QueryPlan;
use super::position::encoded;
use super::sort_values::SortValue;
use super::sorted::{SCORE_FIELD, Sorted, collect_sorted};
use super::statistics::GlobalStatistics;
use super::stop::{CancelFlag, Stop};
use super::typo_terms::Vocabulary;
use crate::error::EngineError;
use crate::full_text::TextIndex;
use crate::full_text::aggregate::{AggregationPlan, aggregate};
use crate::full_text::errors::{damaged, io_failed, tantivy_failed};
use crate::full_text::segment_columns::SegmentColumns;

/// Below this many documents, several ranges are searched one after another.
const PARALLEL_DOCS_MIN: u64 = 20_000;

/// What a query sees of one index: one commit.
pub struct RangeView {
    pub searcher: Searcher,
    pub columns: Vec<Arc<SegmentColumns>>,
    pub index: IndexFields,
    pub schema: Schema,
    pub filters: Arc<FilterCache>,
}

impl RangeView {
    /// The view of one index, for conditions that are the same without the words of the others.
    pub fn of(index: &TextIndex) -> Result<Self, EngineError> {
        // The slots are read after the commit: they are only ever added to.
        let searcher = index.searcher();
        let columns = index.columns.of(&searcher)?;
        let filters = Arc::clone(&index.filters);
        Ok(Self { searcher, columns, index: IndexFields::of(index), schema: index.schema().clone(), filters })
    }

    /// The views of all ranges of a query.
    pub fn of_all(indexes: &[Arc<TextIndex>], plan: &QueryPlan) -> Result<Vec<Self>, EngineError> {
        let mut views: Vec<Self> = indexes.iter().map(|index| Self::of(index)).collect::<Result<_, _>>()?;
        Vocabulary::share(&mut views, plan);
        Ok(views)
    }

    /// Documents that are deleted or may have expired, at most.
    fn hidden_at_most(&self, plan: &QueryPlan) -> u64 {
        let hidden = |(_, reader, columns): (u32, &SegmentReader, &SegmentColumns)| {
            let may_expire = columns.expires && plan.expired_at_or_before_ms.is_some();
            u64::from(if may_expire { reader.max_doc() } else { reader.num_deleted_docs() })
        };
        self.segments().iter().map(hidden).sum()
    }

    pub fn segments(&self) -> Segments<'_> {
        Segments { readers: self.searcher.segment_readers(), columns: &self.columns }
    }
}

/// The matches of `plan` over `indexes`, best or first in order, and their number. Scores do not depend on how the
/// documents are spread over the indexes.
///
/// Errors: `query_timeout` after `plan.timeout_ms` or when `cancel` is set; `invalid_query`.
pub fn query(indexes: &[Arc<TextIndex>], plan: &QueryPlan, cancel: &CancelFlag) -> Result<Hits, EngineError> {
    query_until(indexes, plan, &Stop::new(cancel, plan.timeout_ms))
}

/// The same until `stop` says so.
pub fn query_until(indexes: &[Arc<TextIndex>], plan: &QueryPlan, stop: &Stop) -> Result<Hits, EngineError> {
    let started = Instant::now();
    let views = RangeView::of_all(indexes, plan)?;
    let mut hits = match &plan.aggregations {
        Some(aggregations) => query_and_aggregate(&views, plan, aggregations, stop)?,
        None => query_views(&views, plan, stop)?,
    };
    if plan.explain {
        let explained = explain_hits(&views, plan, &hits.hits)?;
        let json = serde_json::to_string(&explained);
        hits.explanations = json.map_err(|error| EngineError::internal(format!("explanation: {error}")))?;
    }
    hits.took_micros = started.elapsed().as_micros() as u64;
    Ok(hits)
}

/// The page may come from a search that skips; all matches are visited once more for the aggregations, and counted.
fn query_and_aggregate(
    views: &[RangeView],
    plan: &QueryPlan,
    aggregations: &AggregationPlan,
    stop: &Stop,
) -> Result<Hits, EngineError> {
    let aggregated = aggregate(views, plan, aggregations, stop)?;
    let is_page_wanted = plan.limit > 0 && !plan.count_only;
    let mut hits = if is_page_wanted { query_views(views, plan, stop)? } else { Hits::default() };
    hits.total = aggregated.total;
    hits.is_partial |= aggregated.is_partial;
    hits.total_is_exact = !aggregated.is_partial;
    hits.aggregations = aggregated.json;
    Ok(hits)
}

/// What ends before any document was visited (terms are still being looked up) has found nothing.
pub fn query_views(views: &[RangeView], plan: &QueryPlan, stop: &Stop) -> Result<Hits, EngineError> {
    match query_whole(views, plan, stop) {
        Err(error) if plan.allows_partial && stop.is_end_of_time(&error) => {
            Ok(Hits { is_partial: true, ..Hits::default() })
        }
        outcome => outcome,
    }
}

fn query_whole(views: &[RangeView], plan: &QueryPlan, stop: &Stop) -> Result<Hits, EngineError> {
    if stop.is_due() {
        return Err(stop.error());
    }
    let statistics = GlobalStatistics::new(views.iter().map(|view| (&view.searcher, &view.index)).collect());
    if plan.count_only {
        let totals = over_ranges(views, stop, |range| {
            let weight = weight_for(views, range, plan, &statistics, false, stop)?;
            count(views[range].segments(), &*weight, plan, stop)
        })?;
        let total = totals.iter().map(|counted| counted.total).sum();
        let is_partial = totals.iter().any(|counted| counted.is_partial);
        return Ok(Hits { total, total_is_exact: !is_partial, is_partial, ..Hits::default() });
    }
    if plan.sort.is_empty() {
        let hidden = views.iter().map(|view| view.hidden_at_most(plan)).sum();
        let found = over_ranges(views, stop, |range| {
            let query = BestQuery::new(&views[range], plan, &statistics.for_range(range), stop)?;
            collect_best(views[range].segments(), &query, plan, hidden, stop)
        })?;
        return merge(views, plan, found, |a: &Scored, b: &Scored| b.score.total_cmp(&a.score));
    }
    let scores = plan.sort.iter().any(|field| field.field == SCORE_FIELD);
    let found = over_ranges(views, stop, |range| {
        let weight = weight_for(views, range, plan, &statistics, scores, stop)?;
        collect_sorted(views[range].segments(), &views[range].index, &*weight, scores, plan, stop)
    })?;
    merge(views, plan, found, |a: &Sorted, b: &Sorted| {
        let fields = plan.sort.iter().zip(a.values.iter().zip(&b.values));
        fields.map(|(field, (a, b))| a.compare(b, field.desc)).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    })
}

/// The plan's query over one range; conditions that were asked before are looked up in their bits.
pub fn compile_for(view: &RangeView, plan: &QueryPlan, stop: &Stop) -> Result<Box<dyn Query>, EngineError> {
    let Some(compiled) = compile_parts(&view.index, plan)? else { return Ok(Box::new(EmptyQuery)) };
    Ok(match known_filter_bits(view, plan, stop)? {
        Some(bits) => compiled.with_condition(Box::new(BitsQuery::new(view, bits))).whole(),
        None => compiled.whole(),
    })
}

fn weight_for(
    views: &[RangeView],
    range: usize,
    plan: &QueryPlan,
    statistics: &GlobalStatistics<'_>,
    scores: bool,
    stop: &Stop,
) -> Result<Box<dyn Weight>, EngineError> {
    let view = &views[range];
    let query = compile_for(view, plan, stop)?;
    let for_range = statistics.for_range(range);
    let scoring = if scores {
        EnableScoring::enabled_from_statistics_provider(&for_range, &view.searcher)
    } else {
        EnableScoring::disabled_from_schema(&view.schema)
    };
    query.weight(scoring).map_err(tantivy_failed)
}

/// Threads for `tasks` tasks over `docs` documents together, when they are worth it.
pub fn query_pool(tasks: usize, docs: u64) -> Option<&'static ThreadPool> {
    if tasks > 1 && docs >= PARALLEL_DOCS_MIN { pool() } else { None }
}

fn pool() -> Option<&'static ThreadPool> {
    static POOL: OnceLock<Option<ThreadPool>> = OnceLock::new();
    let build = || {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        ThreadPoolBuilder::new().num_threads(threads).thread_name(|at| format!("query-{at}")).build().ok()
    };
    POOL.get_or_init(build).as_ref()
}

fn over_ranges<T: Send>(
    views: &[RangeView],
    stop: &Stop,
    run: impl Fn(usize) -> Result<T, EngineError> + Sync,
) -> Result<Vec<T>, EngineError> {
    let docs: u64 = views.iter().map(|view| view.searcher.num_docs()).sum();
    match query_pool(views.len(), docs).filter(|_| !stop.is_at_once()) {
        Some(pool) => pool.install(|| (0..views.len()).into_par_iter().map(&run).collect()),
        None => (0..views.len()).map(run).collect(),
    }
}

/// What merging needs of a match.
pub trait Match {
    /// Segment, document, rank of the key within the segment.
    fn place(&self) -> (u32, DocId, u64);
    fn score(&self) -> f32;
    fn sort(&self) -> &[SortValue];
}

impl Match for Scored {
    fn place(&self) -> (u32, DocId, u64) {
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
    fn place(&self) -> (u32, DocId, u64) {
        (self.segment, self.doc, self.key_rank)
    }

    fn score(&self) -> f32 {
        self.score
    }

    fn sort(&self) -> &[SortValue] {
        &self.values
    }
}

/// Orders matches of different segments that tie. Keys are looked up only where those that are known do not tell.
pub struct Keys<'a> {
    views: &'a [RangeView],
    known: HashMap<(usize, u32, u64), Arc<str>>,
    failed: Option<EngineError>,
}

impl<'a> Keys<'a> {
    pub fn new(views: &'a [RangeView]) -> Self {
        Self { views, known: HashMap::new(), failed: None }
    }

    /// Keys that could not be read compared as equal.
    pub fn into_failure(self) -> Result<(), EngineError> {
        self.failed.map_or(Ok(()), Err)
    }

    fn columns(&self, range: usize, segment: u32) -> &SegmentColumns {
        &self.views[range].columns[segment as usize]
    }

    fn of(&mut self, range: usize, segment: u32, key_rank: u64) -> Result<Arc<str>, EngineError> {
        if let Some(key) = self.known.get(&(range, segment, key_rank)) {
            return Ok(Arc::clone(key));
        }
        let mut key = String::new();
        self.columns(range, segment).keys.ord_to_str(key_rank, &mut key).map_err(io_failed("read a key"))?;
        let key: Arc<str> = Arc::from(key);
        self.known.insert((range, segment, key_rank), Arc::clone(&key));
        Ok(key)
    }

    fn read_order(
        &mut self,
        (range_a, a): (usize, (u32, DocId, u64)),
        (range_b, b): (usize, (u32, DocId, u64)),
    ) -> Result<Ordering, EngineError> {
        if (range_a, a.0) == (range_b, b.0) {
            return Ok(a.2.cmp(&b.2));
        }
        let fences = self.columns(range_a, a.0).fences();
        if let Some(order) = fences.compare(a.2, self.columns(range_b, b.0).fences(), b.2)? {
            return Ok(order);
        }
        Ok(self.of(range_a, a.0, a.2)?.cmp(&self.of(range_b, b.0, b.2)?))
    }

    /// Range, then segment, document and rank of the key within the segment.
    pub fn compare(&mut self, a: (usize, (u32, DocId, u64)), b: (usize, (u32, DocId, u64))) -> Ordering {
        self.read_order(a, b).unwrap_or_else(|error| {
            self.failed.get_or_insert(error);
            Ordering::Equal
        })
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
        let forwards = order(a, b).then_with(|| keys.compare((*range_a, a.place()), (*range_b, b.place())));
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
    let (segment, doc, _) = found.place();
    let place = (segment, doc);
    let columns = &views[range].columns[segment as usize];
    let number = |column: &Column<u64>| {
        column.first(doc).ok_or_else(|| damaged("a document has no ordinal or no sequence".to_owned()))
    };
    Ok(Hit {
        range: range as u32,
        ordinal: number(&columns.ordinal)? as u32,
        sequence: number(&columns.sequence)?,
        score: found.score(),
        place,
        sort: found.sort().iter().map(SortValue::to_json).collect(),
        position: if found.sort().is_empty() { String::new() } else { encoded(found.sort()) },
    })
}
