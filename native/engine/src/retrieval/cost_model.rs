//! An estimate of what a plan costs, in nanoseconds: rough, and rather too high.

use std::sync::Arc;

use sundew_base::bit_set::BitSet;

use super::legs::{LegIndex, VectorIndex};
use crate::full_text::{Aggregation, AggregationKind, Fuzziness, Node, QueryPlan, TextIndex, is_filtered};

/// Nanoseconds for a byte of text that is cut into words and looked up.
const TEXT_BYTE: u64 = 300;

/// Nanoseconds for a document that is looked at by itself.
const DOCUMENT: u64 = 20;

/// Nanoseconds for a row of a sparse index.
const SPARSE_ROW: u64 = 5;

/// Nanoseconds for a byte of the documents that a leg has with it.
const LISTED_BYTE: u64 = 2;

/// Nanoseconds for an aggregation that counters answer, and for each bucket that it shows.
const COUNTED: u64 = 4_000;
const COUNTED_BUCKET: u64 = 500;

/// The cost of a plan as far as it is known before its terms are looked up: all but the search of what scores by them.
/// `None` when it may be anything.
pub fn known_nanos(texts: &[Arc<TextIndex>], vectors: &[LegIndex], plan: &QueryPlan) -> Option<u64> {
    if plan.explain || !plan.sort.is_empty() {
        return None;
    }
    let documents = texts.iter().map(|text| text.document_count()).sum();
    let mut nanos = 0;
    if let Some(aggregations) = &plan.aggregations {
        // Counts that counters do not answer at once are found out there.
        if plan.counted_paths.is_none() || !plan.takes_all() {
            return None;
        }
        nanos += aggregations.list.iter().map(counted_nanos).sum::<u64>();
    }
    if plan.takes_all() && plan.wants_only_total() && plan.expired_at_or_before_ms.is_none() {
        return Some(nanos);
    }
    // Without terms that score, and where all matches are counted, every document may be visited.
    if plan.exact_total || plan.count_only || plan.offset > 0 || (plan.query.is_none() && plan.legs.is_empty()) {
        nanos += DOCUMENT * documents;
    }
    if plan.legs.is_empty() || plan.query.is_some() {
        nanos += filter_nanos(plan, documents)?;
    }
    if plan.expired_at_or_before_ms.is_some() && !plan.legs.is_empty() {
        nanos += DOCUMENT * documents;
    }
    if let Some(query) = &plan.query {
        nanos += scored_nanos(query, documents)?;
    }
    if !plan.legs.is_empty() {
        nanos += texts.iter().map(|text| text.unread_ordinals()).sum::<u64>();
    }
    // Under a filter legs announce their cost once it is known how much is allowed.
    if !is_filtered(plan) {
        nanos += legs_nanos(plan, vectors, &vec![None; texts.len()]);
    }
    Some(nanos)
}

fn counted_nanos(aggregation: &Aggregation) -> u64 {
    match &aggregation.of {
        AggregationKind::Terms { size, .. } => COUNTED + COUNTED_BUCKET * *size as u64,
        _ => COUNTED,
    }
}

/// To find out what filters, exclusions and key prefix let through, where that is not remembered.
pub fn filter_nanos(plan: &QueryPlan, documents: u64) -> Option<u64> {
    let conditions = plan.filter.iter().chain(&plan.exclusion).chain(&plan.row_filter);
    let conditions = conditions.map(|node| condition_nanos(node, documents));
    let by_key = plan.key_prefix.as_ref().map_or(0, |_| DOCUMENT * documents);
    conditions.sum::<Option<u64>>().map(|nanos| nanos + by_key)
}

/// All legs over all ranges, of which each may find what is in its set.
pub fn legs_nanos(plan: &QueryPlan, indexes: &[LegIndex], allowed: &[Option<Arc<BitSet>>]) -> u64 {
    let limit = plan.fusion.window.unwrap_or(0).max(plan.offset + plan.limit);
    let searches = plan.legs.iter().zip(indexes.chunks(allowed.len().max(1))).flat_map(|(leg, indexes)| {
        indexes.iter().zip(allowed).map(move |(index, allowed)| match index {
            LegIndex::Vectors(VectorIndex::Dense(index)) => index.expected_nanos(leg.effort, limit, allowed.as_deref()),
            LegIndex::Vectors(VectorIndex::Sparse(index)) => SPARSE_ROW * index.row_count(),
            LegIndex::Listed => leg.bytes as u64 * LISTED_BYTE,
        })
    });
    searches.sum()
}

/// A node that scores. Terms and phrases of terms announce their own cost once they are looked up.
fn scored_nanos(node: &Node, documents: u64) -> Option<u64> {
    match node {
        Node::Match { text, .. } | Node::Phrase { text, .. } if !is_fuzzy(node) => Some(TEXT_BYTE * text.len() as u64),
        Node::Term { .. } | Node::MatchNone {} => Some(TEXT_BYTE),
        Node::Bool { must, should, must_not, filter, .. } => {
            let scored = must.iter().chain(should).map(|node| scored_nanos(node, documents));
            let conditions = must_not.iter().chain(filter).map(|node| condition_nanos(node, documents));
            scored.chain(conditions).sum()
        }
        other => condition_nanos(other, documents),
    }
}

/// A node whose documents are all looked at.
fn condition_nanos(node: &Node, documents: u64) -> Option<u64> {
    let visits = Some(DOCUMENT * documents);
    match node {
        Node::MatchNone {} => Some(0),
        Node::MatchAll { .. }
        | Node::Term { .. }
        | Node::Range { .. }
        | Node::BoolField { .. }
        | Node::Exists { .. } => visits,
        Node::Ids { ids, .. } => Some(TEXT_BYTE * ids.iter().map(|id| id.len() as u64 + 8).sum::<u64>()),
        Node::Match { text, .. } if !is_fuzzy(node) => Some(TEXT_BYTE * text.len() as u64 + DOCUMENT * documents),
        Node::Phrase { text, .. } if !is_fuzzy(node) => Some(TEXT_BYTE * text.len() as u64 + 5 * DOCUMENT * documents),
        Node::Bool { must, should, must_not, filter, .. } => {
            let clauses = must.iter().chain(should).chain(must_not).chain(filter);
            clauses.map(|node| condition_nanos(node, documents)).sum()
        }
        // Walks of dictionaries and shapes, whose length their text does not tell.
        _ => None,
    }
}

fn is_fuzzy(node: &Node) -> bool {
    match node {
        Node::Match { fuzziness, .. } | Node::Phrase { fuzziness, .. } => *fuzziness != Fuzziness::Edits(0),
        _ => false,
    }
}
