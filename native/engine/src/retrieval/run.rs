//! Runs a plan: each leg merged over the ranges, then all of them fused, pruned and cut to the page.

use std::cmp::Ordering;
use std::sync::Arc;
use std::time::Instant;

use tantivy::DocId;

use super::allowed::allowed_ordinals;
use super::cost_model::legs_nanos;
use super::describe::{Counts, Taking, explanations, leg_numbers, leg_scores, profile, text_profile};
use super::fuse::{Fused, Ranked, fuse};
use super::legs::{LegContext, LegHit, LegIndex, QueryVector};
use super::prune::prune;
use super::ranges::{DocLocation, Ranges, by_key};
use crate::error::EngineError;
use crate::full_text::{
    self, CancelFlag, Deadline, Hit, Hits, Keys, Pruner, QueryPlan, Strategy, TextIndex, aggregate_documents,
    is_filtered, nothing_in_time,
};

/// The answer of `plan` over the ranges of a table. `texts`: the text index of each range. `vectors`: for each leg its
/// index of each range, leg after leg. `query_vectors`: those of the legs, one after another.
///
/// Errors: those of `full_text::query`; `invalid_query` for a query vector that its index cannot compare; `internal` when
/// the parts do not fit together.
pub fn query(
    texts: &[Arc<TextIndex>],
    vectors: &[LegIndex],
    plan: &QueryPlan,
    query_vectors: &[u8],
    cancel: &CancelFlag,
) -> Result<Hits, EngineError> {
    query_until(texts, vectors, plan, query_vectors, &Deadline::new(cancel, plan.timeout_ms))
}

pub fn query_until(
    texts: &[Arc<TextIndex>],
    vectors: &[LegIndex],
    plan: &QueryPlan,
    query_vectors: &[u8],
    deadline: &Deadline,
) -> Result<Hits, EngineError> {
    if vectors.len() != plan.legs.len() * texts.len() {
        return Err(EngineError::internal("the legs of the plan and the vector indexes do not fit together"));
    }
    let query_vectors = QueryVector::of_legs(&plan.legs, query_vectors)?;
    // Pruning by scores works on a window of them, also where words alone are searched.
    if plan.legs.is_empty() && plan.pruner == Pruner::default() {
        let mut hits = full_text::query_until(texts, plan, deadline)?;
        if plan.profile {
            hits.profile = text_profile(&hits)?;
        }
        return Ok(hits);
    }
    if !plan.sort.is_empty() {
        return Err(EngineError::new("invalid_query", "a query with vector legs is ordered by its scores alone"));
    }
    let started = Instant::now();
    let ranges = Ranges::of(texts, plan, deadline);
    let found = ranges.and_then(|ranges| retrieve(Arc::new(ranges), plan, vectors, query_vectors, deadline));
    let mut hits = match found {
        Err(error) if plan.allows_partial && deadline.is_end_of_time(&error) => nothing_in_time(plan, deadline),
        outcome => outcome,
    }?;
    hits.took_micros = started.elapsed().as_micros() as u64;
    Ok(hits)
}

fn retrieve(
    ranges: Arc<Ranges>,
    plan: &QueryPlan,
    indexes: &[LegIndex],
    vectors: Vec<QueryVector>,
    deadline: &Deadline,
) -> Result<Hits, EngineError> {
    let started = Instant::now();
    let allowed = (0..ranges.views.len()).map(|range| allowed_ordinals(&ranges, range, plan, deadline));
    let allowed = allowed.collect::<Result<Vec<_>, _>>()?;
    let filter_micros = started.elapsed().as_micros() as u64;
    if is_filtered(plan) {
        deadline.expect(legs_nanos(plan, indexes, &allowed))?;
    }
    let page_end = plan.offset + plan.limit;
    let is_alone = plan.legs.len() + usize::from(plan.query.is_some()) == 1;
    let window = plan.fusion.window.map_or(page_end, |window| if is_alone { window.max(page_end) } else { window });
    let context = Arc::new(LegContext {
        ranges,
        plan: plan.clone(),
        indexes: indexes.to_vec(),
        vectors,
        allowed,
        window,
        deadline: deadline.clone(),
    });
    let mut keys = Keys::new(&context.ranges.views);
    let taking = run_legs(&context, &mut keys)?;
    let is_partial = taking.iter().any(|leg| leg.answer.is_partial);
    if is_partial && !(plan.allows_partial && deadline.is_end_of_time(&deadline.error())) {
        return Err(deadline.error());
    }
    fused_answer(&context, &taking, keys, filter_micros)
}

/// Fuses what the legs have found, prunes it and cuts the page.
fn fused_answer(
    context: &LegContext,
    taking: &[Taking<'_>],
    mut keys: Keys<'_>,
    filter_micros: u64,
) -> Result<Hits, EngineError> {
    let LegContext { ranges, plan, allowed, deadline, .. } = context;
    let page_end = plan.offset + plan.limit;
    let fusing = Instant::now();
    let (documents, lists) = numbered(taking);
    let (mut fused, parts) = fuse(&lists, documents.len(), &plan.fusion);
    fused.sort_unstable_by(|a, b| b.score.total_cmp(&a.score));
    let fused_count = fused.len();
    prune(&mut fused, &plan.pruner);
    let found = |fused: &Fused| &documents[fused.document].found;
    order_ties(&mut fused, page_end, |a, b| by_key(ranges, &mut keys, found(a), found(b)));
    keys.into_failure()?;
    let mut hits = Hits {
        total: fused.len() as u64,
        total_is_exact: taking.iter().all(|leg| leg.answer.is_exhausted),
        is_partial: taking.iter().any(|leg| leg.answer.is_partial),
        max_score: fused.first().map_or(0.0, |best| best.score),
        ..Hits::default()
    };
    if let Some(aggregations) = &plan.aggregations {
        let locations = locations_of(&fused, &documents);
        hits.aggregations = aggregate_documents(&ranges.views, plan, aggregations, locations, deadline)?;
    }
    let fusion_micros = fusing.elapsed().as_micros() as u64;
    let counts = Counts { fused: fused_count, left: fused.len(), fusion_micros, filter_micros };
    let wanted = if plan.count_only { 0 } else { plan.limit };
    let page: Vec<Fused> = fused.into_iter().skip(plan.offset).take(wanted).collect();
    for found in &page {
        hits.hits.push(hit(ranges, found, &documents[found.document])?);
        hits.distances.push(documents[found.document].distance);
    }
    hits.legs = taking.iter().map(|leg| leg.name.to_owned()).collect();
    hits.leg_scores = leg_scores(&page, &parts);
    hits.leg_numbers = leg_numbers(&page, &parts, taking);
    if plan.explain {
        hits.explanations = explanations(ranges, plan, (&page, &parts), &documents, taking)?;
    }
    if plan.profile {
        hits.profile = profile(plan, taking, allowed, &counts)?;
    }
    Ok(hits)
}

/// The legs that make the answer: the text leg first.
fn run_legs<'p>(context: &'p Arc<LegContext>, keys: &mut Keys<'_>) -> Result<Vec<Taking<'p>>, EngineError> {
    let plan = &context.plan;
    let has_text = plan.query.is_some();
    let is_failover = plan.fusion.strategy == Strategy::Failover;
    let (vectors, text) = context.run(has_text && !is_failover, keys)?;
    if has_text && is_failover && vectors.iter().all(|answer| answer.hits.is_empty() && !answer.is_partial) {
        return Ok(vec![Taking::text(plan, context.text_leg()?)]);
    }
    let mut taking: Vec<Taking<'p>> = text.map(|answer| Taking::text(plan, answer)).into_iter().collect();
    taking.extend(Taking::vectors(plan, vectors));
    Ok(taking)
}

/// Each document that a leg has found, once, under a number, with the distance of the first leg that has one.
fn numbered(taking: &[Taking<'_>]) -> (Vec<LegHit>, Vec<Ranked>) {
    let unnumbered = |hits: &[LegHit]| hits.iter().map(|hit| (0, hit.score)).collect();
    let mut lists: Vec<Ranked> =
        taking.iter().map(|leg| Ranked { weight: leg.weight, hits: unnumbered(&leg.answer.hits) }).collect();
    let hits = taking.iter().enumerate().flat_map(|(leg, Taking { answer, .. })| {
        answer.hits.iter().enumerate().map(move |(rank, hit)| (hit.found.range, hit.found.ordinal, leg, rank))
    });
    let mut hits: Vec<_> = hits.collect();
    // A few hundred at most are sorted faster than they are hashed.
    hits.sort_unstable();
    let mut documents: Vec<LegHit> = Vec::with_capacity(hits.len());
    for (range, ordinal, leg, rank) in hits {
        let hit = taking[leg].answer.hits[rank];
        match documents.last_mut().filter(|known| (known.found.range, known.found.ordinal) == (range, ordinal)) {
            Some(known) if known.distance.is_nan() => known.distance = hit.distance,
            Some(_) => {}
            None => documents.push(hit),
        }
        lists[leg].hits[rank].0 = documents.len() - 1;
    }
    (documents, lists)
}

/// Brings hits of equal score in order, as far as one of the first `count` hits is among them: two legs that found other
/// documents tie at every rank, and few of them are shown.
fn order_ties(fused: &mut [Fused], count: usize, mut order: impl FnMut(&Fused, &Fused) -> Ordering) {
    let mut from = 0;
    for ties in fused.chunk_by_mut(|a, b| a.score == b.score) {
        if from >= count {
            return;
        }
        from += ties.len();
        ties.sort_unstable_by(&mut order);
    }
}

/// Range, segment and document of each hit that a text index shows.
fn locations_of(fused: &[Fused], documents: &[LegHit]) -> Vec<(usize, usize, DocId)> {
    let found = fused.iter().map(|found| documents[found.document].found);
    let locations = found.filter_map(|found| Some((found.range as usize, found.location?)));
    locations.map(|(range, DocLocation { segment, doc })| (range, segment as usize, doc)).collect()
}

fn hit(ranges: &Ranges, found: &Fused, document: &LegHit) -> Result<Hit, EngineError> {
    let location = document.found.location;
    Ok(Hit {
        range: document.found.range,
        ordinal: document.found.ordinal,
        sequence: ranges.sequence(&document.found)?,
        score: found.score,
        sort: Vec::new(),
        position: String::new(),
        location: location.map_or((u32::MAX, 0), |found| (found.segment, found.doc)),
    })
}
