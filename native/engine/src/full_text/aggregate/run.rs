//! Runs the aggregations of a plan over the indexes of all ranges.

use std::collections::BTreeMap;
use std::sync::Arc;
use sundew_base::bit_set::BitSet;

use rayon::prelude::*;
use tantivy::query::{BooleanQuery, EnableScoring, Occur, Query, Weight};
use tantivy::{COLLECT_BLOCK_BUFFER_LEN, DocId, DocSet, TERMINATED};

use super::answers::partial::{Partial, merge_all};
use super::budget::Budget;
use super::collect::columns::Pairs;
use super::collect::groups::Nested;
use super::collect::segment_tree::Collector;
use super::context::Context;
use super::counters::{Counted, answer_counted};
use super::render::render;
use crate::error::EngineError;
use crate::full_text::errors::tantivy_failed;
use crate::full_text::fields::KEY;
use crate::full_text::plan::{Aggregation, AggregationKind, AggregationPlan, Background, Taken};
use crate::full_text::plan::{Node, QueryPlan};
use crate::full_text::query::{
    BitsQuery, Deadline, IndexFields, RangeView, Visible, check_field, filtered_query, query_pool,
};

/// Documents that the collectors take at a time.
const BLOCK_DOCS: usize = 2048;

pub struct Aggregated {
    /// An object with a member for each aggregation.
    pub json: String,
    /// Matches of the plan, all of them unless the answer is partial.
    pub total: u64,
    /// The time was over before all matches were visited.
    pub is_partial: bool,
    /// Of a table with counters, how each aggregation was answered.
    pub counted: Vec<Counted>,
}

/// The aggregations of `plan` over everything that it matches in `views`.
///
/// Errors: `invalid_query` for a path that has only analysed text; `limit_exceeded`; `query_timeout`.
pub fn aggregate(
    views: &[RangeView],
    plan: &QueryPlan,
    aggregations: &AggregationPlan,
    deadline: &Deadline,
) -> Result<Aggregated, EngineError> {
    aggregate_matches(views, plan, aggregations, None, deadline)
}

/// The same over `documents` alone, each a range, segment and document of `views`, once. Answers an object as JSON.
pub fn aggregate_documents(
    views: &[RangeView],
    plan: &QueryPlan,
    aggregations: &AggregationPlan,
    documents: Vec<(usize, usize, DocId)>,
    deadline: &Deadline,
) -> Result<String, EngineError> {
    let mut by_segment: BTreeMap<(usize, usize), Vec<DocId>> = BTreeMap::new();
    for (range, segment, doc) in documents {
        by_segment.entry((range, segment)).or_default().push(doc);
    }
    let mut matches = Vec::with_capacity(views.len());
    for (range, view) in views.iter().enumerate() {
        let mut bits = Vec::new();
        for (segment, reader) in view.searcher.segment_readers().iter().enumerate() {
            let docs = by_segment.remove(&(range, segment)).unwrap_or_default();
            bits.push(Arc::new(BitSet::collect(reader.max_doc(), |take| {
                docs.into_iter().for_each(take);
                Ok(())
            })?));
        }
        matches.push(BitsQuery::new(view, bits));
    }
    Ok(aggregate_matches(views, plan, aggregations, Some(&matches), deadline)?.json)
}

/// Over what the plan matches, or over given matches of each range.
fn aggregate_matches(
    views: &[RangeView],
    plan: &QueryPlan,
    aggregations: &AggregationPlan,
    matches: Option<&[BitsQuery]>,
    deadline: &Deadline,
) -> Result<Aggregated, EngineError> {
    if let Some(view) = views.first() {
        check_all(&view.index, &aggregations.list)?;
    }
    let budget = Budget::new();
    let context = Context { budget: &budget, deadline, allows_partial: plan.allows_partial };
    let (answers, counted) = match matches {
        None => answer_counted(views, plan, &aggregations.list, &context)?,
        Some(_) => (aggregations.list.iter().map(|_| None).collect(), Vec::new()),
    };
    let others = aggregations.list.iter().zip(&answers).filter(|(_, answer)| answer.is_none());
    let others: Vec<Aggregation> = others.map(|(aggregation, _)| aggregation.clone()).collect();
    let is_known = others.is_empty() && aggregations.backgrounds.is_empty();
    if !is_known && deadline.is_inline() {
        return Err(deadline.error());
    }
    let Collected { partials, total, mut is_partial } = if others.is_empty() {
        let total = views.iter().map(|view| view.searcher.num_docs()).sum();
        Collected { partials: Vec::new(), total, is_partial: false }
    } else {
        collect(views, plan, Documents { matches, without: None }, &others, &context)?
    };
    let mut collected = partials.into_iter();
    let partials = answers.into_iter().filter_map(|answer| answer.or_else(|| collected.next())).collect();
    let mut backgrounds = Vec::with_capacity(aggregations.backgrounds.len());
    for background in &aggregations.backgrounds {
        let collected = collect_background(views, plan, matches, background, &context)?;
        is_partial |= collected.is_partial;
        backgrounds.extend(collected.partials);
    }
    let answer = render(&aggregations.list, partials, &backgrounds, &context)?;
    Ok(Aggregated { json: answer.to_string(), total, is_partial, counted })
}

/// Refuses paths that are not indexed, and those that the schema declares without values of the kind that is aggregated.
fn check_all(index: &IndexFields, list: &[Aggregation]) -> Result<(), EngineError> {
    for aggregation in list {
        for field in aggregation.of.fields() {
            check_field(index, field)?;
            let holds = index.mapping.facts_of(field).holds;
            let has_values = holds.has_values();
            let (is_held, kind, types) = match aggregation.of.takes() {
                _ if field == KEY => continue,
                Taken::Values => (has_values, "whole values", "\"keyword\""),
                Taken::ValuesAndPoints => (has_values || holds.points, "whole values", "\"keyword\""),
                Taken::Numbers => (holds.numbers, "numbers", "\"numeric\""),
                Taken::NumbersAndDates => {
                    (holds.numbers || holds.dates, "numbers or dates", "\"numeric\" or \"datetime\"")
                }
                Taken::Dates => (holds.dates, "dates", "\"datetime\""),
                Taken::Points => (holds.points, "places", "\"geopoint\""),
            };
            if !is_held {
                return Err(EngineError::new(
                    "invalid_query",
                    format!(
                        "aggregation \"{}\": \"{field}\" is declared without {kind}; add {types} to its types",
                        aggregation.name
                    ),
                ));
            }
        }
        check_all(index, &aggregation.sub)?;
    }
    Ok(())
}

/// All terms of the background's field in what the asker may see; `significant_terms` compare with them. Matches of the
/// query that the background's filter leaves out are counted in, each once.
fn collect_background(
    views: &[RangeView],
    plan: &QueryPlan,
    matches: Option<&[BitsQuery]>,
    background: &Background,
    context: &Context<'_>,
) -> Result<Collected, EngineError> {
    let fields = vec![background.field.clone()];
    let of = AggregationKind::Terms { fields, size: usize::MAX, min_doc_count: 1, background: None };
    let terms = [Aggregation { name: String::new(), of, sub: Vec::new() }];
    let of_background = QueryPlan {
        query: None,
        filter: background.filter.iter().cloned().collect(),
        row_filter: plan.row_filter.clone(),
        has_text_index: plan.has_text_index,
        text_index_comes: plan.text_index_comes,
        expired_at_or_before_ms: plan.expired_at_or_before_ms,
        ..QueryPlan::of(Node::MatchAll { boost: 1.0 }, 0)
    };
    let mut collected = collect(views, &of_background, Documents { matches: None, without: None }, &terms, context)?;
    if background.filter.is_some() {
        let left_out = Documents { matches, without: Some(&of_background) };
        collected.add(collect(views, plan, left_out, &terms, context)?);
    }
    Ok(collected)
}

/// The partial answers of a list of aggregations, one for each.
struct Collected {
    partials: Vec<Partial>,
    total: u64,
    is_partial: bool,
}

impl Collected {
    fn nothing(list: &[Aggregation], is_partial: bool) -> Self {
        Self { partials: list.iter().map(Partial::empty).collect(), total: 0, is_partial }
    }

    fn add(&mut self, other: Self) {
        self.is_partial |= other.is_partial;
        self.total += other.total;
        merge_all(&mut self.partials, other.partials);
    }
}

/// What is collected of what a plan matches.
#[derive(Clone, Copy)]
struct Documents<'a> {
    /// In place of the plan's own matches, those of each range.
    matches: Option<&'a [BitsQuery]>,
    /// What this plan matches is left out.
    without: Option<&'a QueryPlan>,
}

impl Documents<'_> {
    fn query(
        &self,
        range: usize,
        view: &RangeView,
        plan: &QueryPlan,
        deadline: &Deadline,
    ) -> Result<Box<dyn Query>, EngineError> {
        let query: Box<dyn Query> = match self.matches {
            Some(matches) => Box::new(matches[range].clone()),
            None => filtered_query(view, plan, deadline)?,
        };
        let Some(without) = self.without else { return Ok(query) };
        let left_out = filtered_query(view, without, deadline)?;
        Ok(Box::new(BooleanQuery::new(vec![(Occur::Must, query), (Occur::MustNot, left_out)])))
    }
}

/// One segment and the query over its index.
struct Task<'a> {
    view: &'a RangeView,
    segment: usize,
    weight: &'a dyn Weight,
}

fn collect(
    views: &[RangeView],
    plan: &QueryPlan,
    documents: Documents<'_>,
    list: &[Aggregation],
    context: &Context<'_>,
) -> Result<Collected, EngineError> {
    let mut weights = Vec::with_capacity(views.len());
    for (range, view) in views.iter().enumerate() {
        let query = documents.query(range, view, plan, context.deadline)?;
        weights.push(query.weight(EnableScoring::disabled_from_schema(&view.schema)).map_err(tantivy_failed)?);
    }
    let mut tasks = Vec::new();
    for (view, weight) in views.iter().zip(&weights) {
        let segments = 0..view.searcher.segment_readers().len();
        tasks.extend(segments.map(|segment| Task { view, segment, weight: &**weight }));
    }
    let docs = views.iter().map(|view| view.searcher.num_docs()).sum();
    let run = |task: &Task<'_>| match collect_segment(task, plan, list, context) {
        // The time was over while terms were looked up.
        Err(error) if context.allows_partial && context.deadline.is_end_of_time(&error) => {
            Ok(Collected::nothing(list, true))
        }
        outcome => outcome,
    };
    let answers: Vec<Collected> = match query_pool(tasks.len(), docs) {
        Some(pool) => pool.install(|| tasks.par_iter().map(run).collect::<Result<_, _>>())?,
        None => tasks.iter().map(run).collect::<Result<_, _>>()?,
    };
    let mut merged = Collected::nothing(list, false);
    for answer in answers {
        context.is_over()?;
        merged.add(answer);
    }
    Ok(merged)
}

fn collect_segment(
    task: &Task<'_>,
    plan: &QueryPlan,
    list: &[Aggregation],
    context: &Context<'_>,
) -> Result<Collected, EngineError> {
    let Task { view, segment, weight } = task;
    let reader = &view.searcher.segment_readers()[*segment];
    let visible = Visible::new(reader, &view.columns[*segment], plan);
    let shows_all = visible.shows_all();
    let open = |aggregation: &Aggregation| Collector::open(reader, &view.index, aggregation, true);
    let mut collectors: Vec<Collector> = list.iter().map(open).collect::<Result<_, _>>()?;
    let mut scorer = weight.scorer(reader, 1.0).map_err(tantivy_failed)?;
    let mut buffer = [0; COLLECT_BLOCK_BUFFER_LEN];
    let mut block = Pairs::default();
    let mut total = 0;
    let mut is_partial = false;
    while !is_partial {
        let is_last = scorer.doc() == TERMINATED;
        if !is_last {
            let filled = scorer.fill_buffer(&mut buffer);
            if shows_all {
                block.docs.extend_from_slice(&buffer[..filled]);
            } else {
                block.docs.extend(buffer[..filled].iter().filter(|doc| visible.shows(**doc)));
            }
        }
        if is_last || block.docs.len() >= BLOCK_DOCS {
            is_partial = !is_last && context.is_over()?;
            total += block.docs.len() as u64;
            block.owners.resize(block.docs.len(), 0);
            for collector in &mut collectors {
                collector.collect(&block, context)?;
            }
            block.clear();
        }
        if is_last {
            break;
        }
    }
    let mut partials = Vec::with_capacity(collectors.len());
    for collector in collectors {
        partials.extend(collector.finish(1, context)?.pop());
    }
    Ok(Collected { partials, total, is_partial })
}
