//! Which queries are answered on the calling thread. That they answer as they do elsewhere is checked by every query of
//! `retrieval_support`.

use std::sync::Arc;

use super::support::{Document, Range, Target, document, table};
use serde_json::{Value, json};
use sundew_engine::full_text::{Hits, QueryPlan, TextIndex};
use sundew_engine::retrieval::{LegIndex, VectorIndex, query_inline};
use sundew_vector::dense::Metric;

const PATIENT: u64 = 250_000;

fn dishes(count: usize) -> Vec<Range> {
    let title = |at: usize| format!("soup {} dish{at}", if at.is_multiple_of(100) { "leek" } else { "miso" });
    let documents: Vec<Document> =
        (0..count).map(|at| document(&format!("k{at}"), json!({ "title": title(at), "n": at }))).collect();
    table(&documents, 2, Metric::L2Squared)
}

fn is_answered(table: &[Range], members: &Value, nanos_max: u64) -> bool {
    let texts: Vec<Arc<TextIndex>> = table.iter().map(|range| Arc::clone(&range.text)).collect();
    let mut plan = json!({ "limit": 10, "query": { "kind": "match", "field": "title", "text": "soup" } });
    for (name, value) in members.as_object().expect("members of a plan") {
        plan[name] = value.clone();
    }
    let plan: QueryPlan = serde_json::from_value(plan).expect("a plan");
    // A thread that the machine does not let run for a millisecond gives up.
    (0..100).any(|_| query_inline(&texts, &[], &plan, &[], nanos_max).expect("no fault").is_some())
}

fn matching(kind: &str, text: &str, operator: Option<&str>) -> Value {
    let mut node = json!({ "kind": kind, "field": "title", "text": text });
    if let Some(operator) = operator {
        node["operator"] = json!(operator);
    }
    json!({ "query": node })
}

#[test]
fn what_walks_dictionaries_or_visits_everything_is_for_another_thread() {
    let table = dishes(100);
    for cheap in [
        json!({}),
        matching("phrase", "leek dish0", None),
        json!({ "filter": [{ "kind": "range", "field": "n", "lt": 5 }] }),
        json!({ "query": { "kind": "bool", "must": [{ "kind": "term", "field": "title", "value": "leek" }] } }),
    ] {
        assert!(is_answered(&table, &cheap, PATIENT), "{cheap}");
        assert!(!is_answered(&table, &cheap, 1_000), "{cheap} in a microsecond");
    }
    let shape = json!({ "kind": "geo_box", "field": "g", "top_left": [0.0, 1.0], "bottom_right": [1.0, 0.0] });
    for dear in [
        json!({ "query": { "kind": "wildcard", "pattern": "*o*" } }),
        json!({ "query": { "kind": "regexp", "pattern": ".*o" } }),
        json!({ "query": { "kind": "match", "text": "soop", "fuzziness": 1 } }),
        json!({ "query": { "kind": "bool", "should": [{ "kind": "fuzzy", "value": "soop", "fuzziness": "auto" }] } }),
        json!({ "filter": [shape] }),
        json!({ "sort": [{ "field": "n" }] }),
        json!({ "explain": true }),
        json!({ "aggregations": { "list": [] } }),
    ] {
        assert!(!is_answered(&table, &dear, u64::MAX), "{dear}");
    }
}

#[test]
fn the_frequencies_of_words_decide() {
    let table = dishes(12_000);
    let answered = |members: Value| is_answered(&table, &members, PATIENT);
    assert!(answered(matching("match", "leek dish7", Some("or"))));
    assert!(answered(matching("match", "soup miso", Some("and"))));
    assert!(answered(matching("phrase", "soup leek", None)));
    assert!(!answered(matching("match", "soup miso", Some("or"))));
    assert!(!answered(matching("phrase", "soup miso", None)));
    assert!(!answered(
        json!({ "filter": [{ "kind": "term", "field": "title", "value": "leek" }], "count_only": true })
    ));
}

#[test]
fn a_filter_that_is_remembered_costs_nothing() {
    let documents: Vec<Document> = (0..3000)
        .map(|at| Document {
            dense: Some([1.0, at as f32, 2.0, 3.0]),
            ..document(&format!("k{at}"), json!({ "n": at }))
        })
        .collect();
    let mut table = table(&documents, 1, Metric::L2Squared);
    let vector: Vec<u8> = [1.0f32, 7.0, 2.0, 3.0].iter().flat_map(|value| value.to_le_bytes()).collect();
    let plan = json!({
        "limit": 10,
        "filter": [{ "kind": "range", "field": "n", "lt": 1500 }],
        "legs": [{ "name": "taste", "kind": "dense", "bytes": vector.len() }],
    });
    let plan: QueryPlan = serde_json::from_value(plan).expect("a plan");
    let asked = |table: &[Range], nanos_max: u64| {
        let dense = [LegIndex::Vectors(VectorIndex::Dense(Arc::clone(&table[0].dense)))];
        let texts = [Arc::clone(&table[0].text)];
        (0..100).find_map(|_| query_inline(&texts, &dense, &plan, &vector, nanos_max).expect("no fault"))
    };
    // Scanning the rows is expected to take 18 microseconds, going through the documents 60 more.
    const SHORT: u64 = 40_000;
    assert!(asked(&table, SHORT).is_none());
    let ordinals = |hits: Hits| hits.hits.iter().map(|hit| hit.ordinal).collect::<Vec<_>>();
    let found = asked(&table, PATIENT).map(ordinals).expect("an answer");
    assert_eq!(asked(&table, SHORT).map(ordinals), Some(found.clone()));
    assert!(found.contains(&7));
    // A filter is remembered for what the documents were when it was asked.
    table[0].apply(&[(7, "k7", None)], Target::All);
    assert!(asked(&table, SHORT).is_none());
    let left = asked(&table, PATIENT).map(ordinals).expect("an answer");
    assert!(left.len() == 10 && !left.contains(&7));
    assert_eq!(asked(&table, SHORT).map(ordinals), Some(left));
}
