//! Text, dense and sparse legs made one list: against brute force, in one range and in several.

use std::collections::HashMap;
use std::sync::Arc;

use super::support::{DIMENSION, Document, Query, Range, document, keys, leg_scores, run, scores, table};
use crate::full_text::support::Random;
use serde_json::{Value, json};
use sundew_engine::full_text::{self, CancelFlag};
use sundew_vector::dense::Metric;

const WORDS: &[&str] = &["leek", "soup", "stew", "oven", "dill", "rice"];

/// Small whole numbers, so that many scores tie.
fn documents(seed: u64, count: usize) -> Vec<Document> {
    println!("seed {seed}");
    let mut random = Random::new(seed);
    let mut made = Vec::new();
    for at in 0..count {
        let words: Vec<&str> = (0..1 + random.below(6)).map(|_| WORDS[random.below(WORDS.len())]).collect();
        // Keys in no order.
        let body = json!({ "title": words.join(" "), "minutes": random.below(5) });
        let mut made_one = document(&format!("{:03}-{at}", random.below(900)), body);
        if random.below(8) > 0 {
            made_one.dense = Some(std::array::from_fn(|_| random.below(3) as f32));
        }
        if random.below(4) > 0 {
            made_one.sparse = (0..6).filter(|_| random.below(2) == 0).map(|index| (index, 1.0)).collect();
        }
        made.push(made_one);
    }
    made
}

/// Documents and scores, best first; equal scores by key.
type List = Vec<(usize, f32)>;

fn ordered(documents: &[Document], mut list: List, window: usize) -> List {
    list.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| documents[a.0].key.cmp(&documents[b.0].key)));
    list.truncate(window);
    list
}

fn dense_list(documents: &[Document], query: [f32; DIMENSION]) -> List {
    let squared = |vector: [f32; DIMENSION]| vector.iter().zip(query).map(|(a, b)| (a - b) * (a - b)).sum::<f32>();
    let with_vector = documents.iter().enumerate().filter_map(|(at, document)| Some((at, document.dense?)));
    with_vector.map(|(at, vector)| (at, 1.0 / (1.0 + squared(vector)))).collect()
}

fn sparse_list(documents: &[Document], query: &[(u32, f32)]) -> List {
    let weights: HashMap<u32, f32> = query.iter().copied().collect();
    let scored = documents.iter().enumerate().map(|(at, document)| {
        let shared = document.sparse.iter().filter_map(|(index, value)| Some(value * weights.get(index)?));
        (at, shared.fold(None, |sum, product| Some(sum.unwrap_or(0.0) + product)))
    });
    scored.filter_map(|(at, score)| Some((at, score?))).collect()
}

/// By a query without vector legs over one range.
fn text_list(documents: &[Document], node: &Value) -> List {
    let one = table(documents, 1, Metric::L2Squared);
    let plan = serde_json::from_value(json!({ "query": node, "limit": documents.len() })).expect("a plan");
    let texts = [Arc::clone(&one[0].text)];
    let hits = full_text::query(&texts, &plan, &CancelFlag::default()).expect("the query runs");
    hits.hits.iter().map(|hit| (hit.ordinal as usize, hit.score)).collect()
}

fn fused(documents: &[Document], strategy: &str, window: usize, lists: &[(f64, List)]) -> List {
    let mut sums: HashMap<usize, f64> = HashMap::new();
    for (weight, list) in lists {
        let list = ordered(documents, list.clone(), window);
        let (Some(best), Some(worst)) = (list.first(), list.last()) else { continue };
        let (best, worst) = (f64::from(best.1), f64::from(worst.1));
        for (rank, (at, score)) in list.iter().enumerate() {
            let relative = if best > worst { (f64::from(*score) - worst) / (best - worst) } else { 1.0 };
            let by_rank = 1.0 / (60.0 + rank as f64 + 1.0);
            *sums.entry(*at).or_default() += weight * if strategy == "rsf" { relative } else { by_rank };
        }
    }
    let list = sums.into_iter().map(|(at, sum)| (at, sum as f32)).collect();
    ordered(documents, list, usize::MAX)
}

#[test]
fn fused_lists_are_those_of_brute_force_in_one_range_and_in_four() {
    let documents = documents(71, 300);
    let tables: Vec<(usize, Vec<Range>)> =
        [1, 4].map(|ranges| (ranges, table(&documents, ranges, Metric::L2Squared))).into();
    let node = json!({ "kind": "match", "field": "title", "text": "leek dill" });
    let (dense, sparse) = ([1.0, 0.0, 2.0, 1.0], vec![(1, 1.0), (3, 2.0), (9, 1.0)]);
    let text = text_list(&documents, &node);
    let lists = [(0.5, text.clone()), (1.0, dense_list(&documents, dense)), (2.0, sparse_list(&documents, &sparse))];
    let dense_scores: HashMap<usize, f32> = lists[1].1.iter().copied().collect();
    for strategy in ["rrf", "rsf"] {
        for (window, limit) in [(10, 10), (25, 7), (300, 300)] {
            let plan = json!({
                "query": node, "text_weight": 0.5, "limit": limit,
                "fusion": { "strategy": strategy, "rank_constant": 60, "window": window },
            });
            let asked = Query { plan, dense: Some(dense), sparse: Some(sparse.clone()), weights: [1.0, 2.0] };
            let all = fused(&documents, strategy, window, &lists);
            let wanted: List = all.iter().copied().take(limit).collect();
            for (ranges, table) in &tables {
                let hits = run(table, &asked);
                let found: Vec<(&str, f32)> = keys(&documents, *ranges, &hits).into_iter().zip(scores(&hits)).collect();
                let wanted: Vec<(&str, f32)> =
                    wanted.iter().map(|(at, score)| (documents[*at].key.as_str(), *score)).collect();
                assert_eq!(found, wanted, "{strategy}, window {window}, {ranges} ranges");
                assert_eq!((hits.total, hits.max_score), (all.len() as u64, all[0].1));
                assert_eq!(hits.total_is_exact, window == 300);
            }
        }
    }
    let plan = json!({ "query": node, "limit": 300, "fusion": { "window": 20 } });
    let asked = Query { plan, dense: Some(dense), sparse: None, weights: [1.0, 1.0] };
    let hits = run(&tables[0].1, &asked);
    let of_legs = leg_scores(&hits);
    let text = ordered(&documents, text, 20);
    let nearest = ordered(&documents, lists[1].1.clone(), 20);
    assert_eq!(of_legs.len(), hits.hits.len());
    for (at, hit) in hits.hits.iter().enumerate() {
        let document = hit.ordinal as usize;
        let by_text = text.iter().find(|(found, _)| *found == document).map(|(_, score)| *score);
        let by_dense = nearest.iter().any(|(found, _)| *found == document).then(|| dense_scores[&document]);
        assert_eq!(of_legs[at].get("full_text").copied(), by_text);
        assert_eq!(of_legs[at].get("taste").copied(), by_dense);
        assert_eq!(hits.distances[at].is_nan(), by_dense.is_none());
        assert!(by_dense.is_none_or(|score| score == 1.0 / (1.0 + hits.distances[at])));
    }
}

#[test]
fn a_leg_alone_answers_with_its_own_scores() {
    let documents = documents(72, 200);
    let (dense, sparse) = ([2.0, 1.0, 0.0, 1.0], vec![(0, 1.0), (5, 1.0)]);
    for ranges in [1, 4] {
        let table = table(&documents, ranges, Metric::L2Squared);
        let plan = json!({ "limit": 30, "fusion": { "window": 10 } });
        let weights = [3.0, 3.0];
        let by_dense = Query { plan: plan.clone(), dense: Some(dense), sparse: None, weights };
        let by_sparse = Query { plan, dense: None, sparse: Some(sparse.clone()), weights };
        for (asked, list) in [(by_dense, dense_list(&documents, dense)), (by_sparse, sparse_list(&documents, &sparse))]
        {
            let hits = run(&table, &asked);
            let wanted = ordered(&documents, list, 30);
            let wanted_keys: Vec<&str> = wanted.iter().map(|(at, _)| documents[*at].key.as_str()).collect();
            assert_eq!(keys(&documents, ranges, &hits), wanted_keys, "{ranges} ranges");
            assert_eq!(scores(&hits), wanted.iter().map(|(_, score)| *score).collect::<Vec<_>>());
        }
    }
}

#[test]
fn what_ties_comes_in_the_order_of_keys() {
    let mut documents: Vec<Document> =
        ["m", "c", "x", "a", "q", "f", "z", "b"].map(|key| document(key, json!({ "title": "leek" }))).into();
    for document in &mut documents {
        document.dense = Some([1.0, 1.0, 0.0, 0.0]);
        document.sparse = vec![(3, 1.0)];
    }
    for ranges in [1, 3] {
        let table = table(&documents, ranges, Metric::Cosine);
        let plan = json!({ "query": { "kind": "match", "text": "leek" }, "limit": 3 });
        let (dense, sparse) = (Some([1.0, 0.0, 0.0, 0.0]), Some(vec![(3, 1.0)]));
        let all = Query { plan: plan.clone(), dense, sparse: sparse.clone(), weights: [1.0, 1.0] };
        let alone = Query { plan: json!({ "limit": 3 }), sparse: None, ..all.clone() };
        let both = Query { plan: json!({ "limit": 3 }), ..all.clone() };
        for asked in [all, alone, both] {
            assert_eq!(keys(&documents, ranges, &run(&table, &asked)), ["a", "b", "c"]);
        }
    }
}

#[test]
fn failover_answers_by_text_only_when_no_vector_is_found() {
    let mut documents = vec![
        document("a", json!({ "title": "leek soup" })),
        document("b", json!({ "title": "leek" })),
        document("c", json!({ "title": "rice" })),
    ];
    documents[2].sparse = vec![(3, 2.0)];
    let table = table(&documents, 1, Metric::L2Squared);
    let node = json!({ "kind": "match", "field": "title", "text": "leek" });
    let plan = json!({ "query": node, "limit": 10, "fusion": { "strategy": "failover" } });
    let asked =
        |index| Query { plan: plan.clone(), dense: None, sparse: Some(vec![(index, 1.0)]), weights: [1.0, 1.0] };

    let by_vector = run(&table, &asked(3));
    assert_eq!((keys(&documents, 1, &by_vector), scores(&by_vector)), (vec!["c"], vec![2.0]));

    let by_text = run(&table, &asked(4));
    assert_eq!(keys(&documents, 1, &by_text), ["b", "a"]);
    let alone: Vec<f32> = text_list(&documents, &node).iter().map(|(_, score)| *score).collect();
    assert_eq!(scores(&by_text), alone);
    assert!(by_text.total_is_exact && by_text.distances.iter().all(|distance| distance.is_nan()));
}
