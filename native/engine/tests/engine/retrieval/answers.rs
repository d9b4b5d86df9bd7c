//! What an answer holds beside its hits, what drops hits, and what ends a query.

use std::sync::Arc;

use super::support::{Document, Query, document, keys, leg_scores, run, scores, table, try_run};
use serde_json::{Value, json};
use sundew_engine::full_text::{CancelFlag, QueryPlan};
use sundew_engine::retrieval::{LegIndex, VectorIndex, query};
use sundew_vector::dense::Metric;

/// Dot products with `QUERY` of 10, 9, 5, 4 and 2; the words of the first and third match.
fn documents() -> Vec<Document> {
    let made = [("a", 10.0, "leek"), ("b", 9.0, "rice"), ("c", 5.0, "leek"), ("d", 4.0, "rice"), ("e", 2.0, "oven")];
    let made = made.map(|(key, weight, title)| Document {
        dense: Some([weight, 0.0, 0.0, 0.0]),
        ..document(key, json!({ "title": title, "minutes": weight }))
    });
    made.into()
}

const QUERY: [f32; 4] = [1.0, 0.0, 0.0, 0.0];

fn dense(plan: Value) -> Query {
    Query { plan, dense: Some(QUERY), sparse: None, weights: [1.0, 1.0] }
}

#[test]
fn pruned_hits_are_neither_on_the_page_nor_counted() {
    let documents = documents();
    for ranges in [1, 2] {
        let table = table(&documents, ranges, Metric::InnerProduct);
        let rules = [
            (json!({ "min_absolute_score": 4.5 }), vec!["a", "b", "c"]),
            (json!({ "min_score_ratio": 0.9 }), vec!["a", "b"]),
            (json!({ "std_dev_threshold": 0.5 }), vec!["a", "b", "c"]),
            (json!({ "max_score_gap_percent": 20 }), vec!["a", "b"]),
            (json!({ "require_multi_index": true }), vec![]),
        ];
        for (rule, wanted) in rules {
            let hits = run(&table, &dense(json!({ "limit": 10, "pruner": rule })));
            assert_eq!(keys(&documents, ranges, &hits), wanted, "{rule}");
            assert_eq!((hits.total, hits.total_is_exact), (wanted.len() as u64, true));
        }
        let node = json!({ "kind": "match", "field": "title", "text": "leek" });
        let both = json!({ "query": node, "limit": 10, "pruner": { "require_multi_index": true } });
        assert_eq!(keys(&documents, ranges, &run(&table, &dense(both))), ["a", "c"]);
    }
}

#[test]
fn totals_pages_and_counts_are_of_the_window() {
    let documents = documents();
    let table = table(&documents, 1, Metric::InnerProduct);
    let page = run(&table, &dense(json!({ "limit": 2 })));
    assert_eq!((scores(&page), page.total, page.total_is_exact), (vec![10.0, 9.0], 2, false));
    let window = run(&table, &dense(json!({ "limit": 2, "fusion": { "window": 4 } })));
    assert_eq!((window.hits.len(), window.total, window.total_is_exact), (2, 4, false));
    let counted = run(&table, &dense(json!({ "limit": 0, "count_only": true, "fusion": { "window": 9 } })));
    assert_eq!((counted.hits.len(), counted.total, counted.total_is_exact), (0, 5, true));
    assert_eq!(counted.max_score, 10.0);
}

#[test]
fn aggregations_are_over_the_window() {
    let documents = documents();
    for ranges in [1, 2] {
        let table = table(&documents, ranges, Metric::InnerProduct);
        let list = json!([{ "name": "minutes", "of": { "kind": "numbers", "field": "minutes", "metric": "sum" } }]);
        let plan = json!({ "limit": 1, "fusion": { "window": 3 }, "aggregations": { "list": list } });
        let hits = run(&table, &dense(plan));
        let answer: Value = serde_json::from_str(&hits.aggregations).expect("aggregations");
        assert_eq!((answer["minutes"]["value"].as_f64(), hits.hits.len()), (Some(24.0), 1), "{answer}");
    }
}

#[test]
fn explanations_and_profiles_tell_of_every_leg() {
    let documents = documents();
    let table = table(&documents, 2, Metric::InnerProduct);
    let node = json!({ "kind": "match", "field": "title", "text": "leek" });
    let plan = json!({ "query": node, "text_weight": 2, "limit": 3, "explain": true, "profile": true,
        "filter": [{ "kind": "range", "field": "minutes", "gte": 4 }] });
    let hits = run(&table, &dense(plan));
    assert_eq!(keys(&documents, 2, &hits), ["a", "c", "b"]);

    let trees: Vec<Value> = serde_json::from_str(&hits.explanations).expect("explanations");
    for (hit, tree) in hits.hits.iter().zip(&trees) {
        let details = tree["details"].as_array().expect("details");
        let sum: f64 = details.iter().filter_map(|detail| detail["value"].as_f64()).sum();
        assert_eq!(sum as f32, hit.score);
        assert_eq!(tree["value"], json!(f64::from(hit.score)));
    }
    assert_eq!(trees[1]["details"][1]["description"], "taste: rank 3, score 5, weight 1");
    let text = &trees[1]["details"][0];
    assert_eq!(text["value"], json!(2.0 / 62.0));
    let own_score = text["details"][0]["value"].as_f64().expect("how the text scores");
    assert!(text["description"].as_str().is_some_and(|told| told.starts_with("full_text: rank 2, score ")));
    assert!((own_score - f64::from(leg_scores(&hits)[1]["full_text"])).abs() < 1e-4);
    assert_eq!(trees[2]["details"].as_array().map(Vec::len), Some(1));

    let profile: Value = serde_json::from_str(&hits.profile).expect("a profile");
    assert_eq!(profile["merge"]["strategy"], "rrf");
    assert_eq!((&profile["merge"]["full_text_hits"], &profile["merge"]["semantic_hits"]), (&json!(2), &json!(3)));
    assert_eq!((&profile["legs"][0]["name"], &profile["legs"][1]["kind"]), (&json!("full_text"), &json!("dense")));
    assert!(profile["legs"][1]["arms"].as_array().is_some_and(|arms| !arms.is_empty()), "{profile}");
    assert_eq!(profile["filter"]["documents"], json!(4));

    let text = run(&table, &Query { plan: json!({ "query": node, "limit": 3, "profile": true }), ..Query::default() });
    let profile: Value = serde_json::from_str(&text.profile).expect("a profile");
    assert_eq!((&profile["legs"][0]["name"], &profile["legs"][0]["hits"]), (&json!("full_text"), &json!(2)));
    assert!(text.distances.is_empty() && text.leg_scores.is_empty());
}

#[test]
fn a_query_ends_when_its_time_is_over_or_its_caller_is_gone() {
    let documents = documents();
    let table = table(&documents, 2, Metric::InnerProduct);
    let late = try_run(&table, &dense(json!({ "limit": 3, "timeout_ms": 0 }))).expect_err("too late");
    assert_eq!(late.code, "query_timeout");
    let partial = run(&table, &dense(json!({ "limit": 3, "timeout_ms": 0, "allows_partial": true })));
    assert!(partial.is_partial && !partial.total_is_exact);

    let plan = json!({ "limit": 3, "allows_partial": true,
        "legs": [{ "name": "taste", "kind": "dense", "bytes": 16 }] });
    let plan: QueryPlan = serde_json::from_value(plan).expect("a plan");
    let vector: Vec<u8> = QUERY.iter().flat_map(|value| value.to_le_bytes()).collect();
    let cancel = CancelFlag::default();
    cancel.cancel();
    let indexes = [LegIndex::Vectors(VectorIndex::Dense(Arc::clone(&table[0].dense)))];
    let gone = query(&[Arc::clone(&table[0].text)], &indexes, &plan, &vector, &cancel).expect_err("cancelled");
    assert_eq!(gone.code, "query_timeout");
}

#[test]
fn what_does_not_fit_together_is_refused() {
    let documents = documents();
    let table = table(&documents, 1, Metric::InnerProduct);
    let texts = [Arc::clone(&table[0].text)];
    let dense_index = || LegIndex::Vectors(VectorIndex::Dense(Arc::clone(&table[0].dense)));
    let refusal = |legs: Value, indexes: &[LegIndex], bytes: usize| {
        let plan: QueryPlan = serde_json::from_value(json!({ "limit": 3, "legs": legs })).expect("a plan");
        query(&texts, indexes, &plan, &vec![0; bytes], &CancelFlag::default()).expect_err("refused").code
    };
    let leg = |kind: &str, bytes: usize| json!([{ "name": "taste", "kind": kind, "bytes": bytes }]);
    assert_eq!(refusal(leg("dense", 16), &[], 16), "internal");
    assert_eq!(refusal(leg("dense", 16), &[dense_index(), dense_index()], 16), "internal");
    assert_eq!(refusal(leg("dense", 16), &[dense_index()], 12), "internal");
    assert_eq!(refusal(leg("dense", 16), &[dense_index()], 20), "internal");
    assert_eq!(refusal(leg("sparse", 12), &[dense_index()], 12), "internal");
    assert_eq!(refusal(leg("sparse", 16), &[dense_index()], 16), "internal");
    assert_eq!(refusal(leg("dense", 12), &[dense_index()], 12), "invalid_query");
    let sorted = dense(json!({ "limit": 3, "sort": [{ "field": "minutes" }] }));
    assert_eq!(try_run(&table, &sorted).expect_err("refused").code, "invalid_query");
}
