//! Accounts of how an answer came about: scores of each leg, explanations, a profile.

use std::sync::Arc;

use serde::Serialize;
use serde_json::{Value, json};
use sundew_base::bit_set::BitSet;

use super::fuse::{Fused, LegScore, LegScores};
use super::legs::{LegAnswer, LegHit};
use super::ranges::Ranges;
use crate::error::EngineError;
use crate::full_text::{Explained, Hit, Hits, QueryPlan, explain_hits};
use crate::full_text::{LegKind, Strategy};

/// The name of the text leg.
pub const TEXT_LEG: &str = "full_text";

/// The kind of a leg whose documents a graph search has found.
const GRAPH_LEG: &str = "graph";

/// A leg that takes part in the answer.
pub struct Taking<'a> {
    pub name: &'a str,
    pub kind: &'static str,
    pub weight: f64,
    pub answer: LegAnswer,
}

impl<'a> Taking<'a> {
    pub fn vectors(plan: &'a QueryPlan, answers: Vec<LegAnswer>) -> Vec<Self> {
        let taking = plan.legs.iter().zip(answers).map(|(leg, answer)| Taking {
            name: leg.name.as_str(),
            kind: match leg.kind {
                LegKind::Dense => "dense",
                LegKind::Sparse => "sparse",
                LegKind::Graph => GRAPH_LEG,
            },
            weight: leg.weight,
            answer,
        });
        taking.collect()
    }

    pub fn text(plan: &QueryPlan, answer: LegAnswer) -> Self {
        Self { name: TEXT_LEG, kind: TEXT_LEG, weight: plan.text_weight, answer }
    }

    fn is_text(&self) -> bool {
        self.kind == TEXT_LEG
    }
}

fn to_json(value: &impl Serialize) -> Result<String, EngineError> {
    serde_json::to_string(value).map_err(|error| EngineError::internal(format!("answer: {error}")))
}

/// For each hit, one after another, what each leg scored it; NaN where it did not find it.
pub fn leg_scores(page: &[Fused], scores: &LegScores) -> Vec<f32> {
    let scores = page.iter().flat_map(|found| scores.of(found.document));
    scores.map(|leg_score| leg_score.map_or(f32::NAN, |leg_score| leg_score.score)).collect()
}

/// For each hit, one after another, which of its vectors each leg has found; NaN where it did not find it or finds texts.
pub fn leg_numbers(page: &[Fused], scores: &LegScores, taking: &[Taking<'_>]) -> Vec<f32> {
    let number = |leg_score: &Option<LegScore>, leg: &Taking<'_>| {
        let hit = leg_score.and_then(|LegScore { rank, .. }| leg.answer.hits.get(rank - 1))?;
        hit.number.map(f32::from)
    };
    let of_hit = |found: &Fused| scores.of(found.document).iter().zip(taking);
    page.iter().flat_map(of_hit).map(|(score, leg)| number(score, leg).unwrap_or(f32::NAN)).collect()
}

/// For each hit the tree of its score: what each leg adds, and for text how its own score comes about.
pub fn explanations(
    ranges: &Ranges,
    plan: &QueryPlan,
    (page, scores): (&[Fused], &LegScores),
    documents: &[LegHit],
    taking: &[Taking<'_>],
) -> Result<String, EngineError> {
    let mut trees = text_trees(ranges, plan, (page, scores), documents, taking)?.into_iter();
    let mut explained = Vec::with_capacity(page.len());
    for found in page {
        let mut details = Vec::new();
        for (leg, leg_score) in taking.iter().zip(scores.of(found.document)) {
            let Some(LegScore { rank, score, contribution }) = leg_score else { continue };
            let described = format!("{}: rank {rank}, score {score}, weight {}", leg.name, leg.weight);
            let tree = if leg.is_text() { trees.next().into_iter().collect() } else { Vec::new() };
            details.push(Explained { value: *contribution, description: described, details: tree });
        }
        let description = match (taking.len(), plan.fusion.strategy) {
            (1, _) => "the score of the only leg".to_owned(),
            (_, Strategy::Rsf) => "sum of weight times relative score".to_owned(),
            _ => format!("sum of weight / ({} + rank)", plan.fusion.rank_constant),
        };
        explained.push(Explained { value: f64::from(found.score), description, details });
    }
    to_json(&explained)
}

/// The trees of those hits of the page that the text leg has found.
fn text_trees(
    ranges: &Ranges,
    plan: &QueryPlan,
    (page, scores): (&[Fused], &LegScores),
    documents: &[LegHit],
    taking: &[Taking<'_>],
) -> Result<Vec<Explained>, EngineError> {
    let Some(text) = taking.iter().position(|leg| leg.is_text()) else { return Ok(Vec::new()) };
    let mut hits = Vec::new();
    for found in page {
        let (Some(leg_score), LegHit { found: document, .. }) =
            (scores.of(found.document)[text], documents[found.document])
        else {
            continue;
        };
        let Some(shown) = document.location else { continue };
        hits.push(Hit {
            range: document.range,
            ordinal: document.ordinal,
            sequence: ranges.sequence(&document)?,
            score: leg_score.score,
            sort: Vec::new(),
            position: String::new(),
            location: (shown.segment, shown.doc),
        });
    }
    explain_hits(&ranges.views, plan, &hits)
}

pub struct Counts {
    pub fused: usize,
    pub left: usize,
    pub fusion_micros: u64,
    pub filter_micros: u64,
}

/// How each leg went, and what became of their hits.
pub fn profile(
    plan: &QueryPlan,
    taking: &[Taking<'_>],
    allowed: &[Option<Arc<BitSet>>],
    counts: &Counts,
) -> Result<String, EngineError> {
    let legs: Vec<Value> = taking
        .iter()
        .map(|Taking { name, kind, weight, answer }| {
            json!({
                "name": name,
                "kind": kind,
                "weight": weight,
                "arms": answer.report.arms,
                "candidates": answer.report.candidates,
                "visited": answer.report.visited,
                "segments": answer.report.segments,
                "hits": answer.hits.len(),
                "took_ms": milliseconds(answer.took_micros),
            })
        })
        .collect();
    let hits_of = |kinds: &[&str]| -> usize {
        taking.iter().filter(|leg| kinds.contains(&leg.kind)).map(|leg| leg.answer.hits.len()).sum()
    };
    let mut profile = json!({
        "legs": legs,
        "merge": {
            "strategy": plan.fusion.strategy,
            "full_text_hits": hits_of(&[TEXT_LEG]),
            "semantic_hits": hits_of(&["dense", "sparse"]),
            "graph_hits": hits_of(&[GRAPH_LEG]),
            "fused_hits": counts.fused,
            "pruned_hits": counts.fused - counts.left,
            "duration_ms": (counts.fusion_micros + 500) / 1_000,
        },
    });
    if allowed.iter().any(Option::is_some) {
        let documents: usize = allowed.iter().flatten().map(|set| set.len()).sum();
        profile["filter"] = json!({ "documents": documents, "took_ms": milliseconds(counts.filter_micros) });
    }
    to_json(&profile)
}

/// The profile of a query without vector legs.
pub fn text_profile(hits: &Hits) -> Result<String, EngineError> {
    let took_ms = milliseconds(hits.took_micros);
    let leg =
        json!({ "name": TEXT_LEG, "kind": TEXT_LEG, "arms": ["text"], "hits": hits.hits.len(), "took_ms": took_ms });
    let mut profile = json!({ "legs": [leg] });
    if !hits.counted.is_empty() {
        profile["algebraic"] = json!(hits.counted);
    }
    to_json(&profile)
}

fn milliseconds(micros: u64) -> f64 {
    micros as f64 / 1_000.0
}
