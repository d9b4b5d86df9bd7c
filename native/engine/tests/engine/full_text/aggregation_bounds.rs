//! What comes with aggregations and what bounds them: declared fields, expiry, time, and requests that are refused.

use std::path::Path;
use std::sync::Arc;

use super::support::*;
use serde_json::{Value, json};
use sundew_engine::full_text::{CancelFlag, DerivedIndex, Hits, QueryPlan, TextIndex, query};

fn plan(filter: Value, aggregations: Value) -> QueryPlan {
    serde_json::from_value(json!({ "filter": filter, "limit": 0, "aggregations": aggregations })).expect("a plan")
}

fn hits(indexes: &[Arc<TextIndex>], plan: &QueryPlan) -> Hits {
    query(indexes, plan, &CancelFlag::default()).expect("the query runs")
}

#[test]
fn declared_fields_answer_with_their_whole_values() {
    let types = |types: Value| json!({"type": "string", "x-service-types": types});
    let properties = json!({"both": types(json!(["text", "keyword"])), "word": types(json!(["keyword"]))});
    let schema = json!({"document_schemas": {"d": {"schema": {"properties": properties}}}});
    let document = json!({"both": "Red Apple", "word": "Red Apple", "free": "Red Apple"});
    let index = index_of(schema, &[document.clone(), document]);
    for field in ["both", "both.keyword", "word", "free", "free.keyword"] {
        let of = json!({"kind": "terms", "fields": [field], "size": 10, "min_doc_count": 1});
        let plan = plan(json!([]), json!({"list": [{"name": "v", "of": of}]}));
        let answer: Value =
            serde_json::from_str(&hits(std::slice::from_ref(&index), &plan).aggregations).expect("JSON");
        assert_eq!(answer["v"]["buckets"], json!([{"key": "Red Apple", "doc_count": 2}]), "{field}");
    }
}

#[test]
fn expired_documents_are_not_counted() {
    let index = TextIndex::open(Path::new("unused"), memory_options(Value::Null)).expect("an index in memory");
    let mut rows: Vec<Row> = (0..10).map(|at| put(&format!("k{at}"), at, json!({"n": at, "tag": "x"}))).collect();
    rows.iter_mut().enumerate().for_each(|(at, row)| row.ttl_base_ms = at as i64 * 100);
    index.apply(&frame(&rows, 1)).expect("rows are applied");
    index.commit(10).expect("a commit");
    let list = json!({"list": [
        {"name": "n", "of": {"kind": "numbers", "field": "n", "metric": "sum"}},
        {"name": "s", "of": {"kind": "significant_terms", "field": "tag", "size": 5, "min_doc_count": 1, "algorithm": "percentage", "background": 0}},
    ], "backgrounds": [{"field": "tag"}]});
    let mut plan = plan(json!([]), list);
    plan.expired_at_or_before_ms = Some(500);
    let hits = hits(&[index], &plan);
    assert_eq!(hits.total, 5);
    let answer: Value = serde_json::from_str(&hits.aggregations).expect("JSON");
    // A base of 0 means no lifetime.
    assert_eq!(answer["n"]["value"], 6 + 7 + 8 + 9);
    assert_eq!(answer["s"]["buckets"][0]["bg_count"], 5);
}

#[test]
fn a_query_whose_time_is_over_answers_with_what_it_has() {
    let documents: Vec<Value> = (0..6000).map(|at| json!({ "n": at })).collect();
    let index = [index_of(Value::Null, &documents)];
    let list = json!({"list": [
        {"name": "c", "of": {"kind": "count"}},
        {"name": "h", "of": {"kind": "histogram", "field": "n", "interval": 100.0, "min_doc_count": 0}},
    ]});
    let mut plan = plan(json!([]), list);
    plan.timeout_ms = Some(0);
    assert_eq!(query(&index, &plan, &CancelFlag::default()).expect_err("an error").code, "query_timeout");
    plan.allows_partial = true;
    let partial = hits(&index, &plan);
    assert!(partial.is_partial && !partial.total_is_exact && partial.total < 6000);
    let answer: Value = serde_json::from_str(&partial.aggregations).expect("JSON");
    assert_eq!(answer["c"]["value"], partial.total);
    assert!(answer["h"]["buckets"].is_array());
    let stopped = CancelFlag::default();
    stopped.cancel();
    assert_eq!(query(&index, &plan, &stopped).expect_err("an error").code, "query_timeout");
}

fn failure(index: &Arc<TextIndex>, of: Value, cancel: &CancelFlag) -> &'static str {
    let plan = plan(json!([]), json!({"list": [{"name": "a", "of": of}]}));
    query(std::slice::from_ref(index), &plan, cancel).expect_err("an error").code
}

#[test]
fn what_cannot_be_answered_is_refused() {
    let schema = json!({"document_schemas": {"d": {"schema": {"properties": {"title": {"type": "string", "x-antfly-types": ["text"]}}}}}});
    let index = index_of(
        schema,
        &[json!({"title": "a word", "n": 0, "at": "1700-01-01"}), json!({"n": 1e300, "at": "2200-01-01"})],
    );
    let free = CancelFlag::default();
    let terms = json!({"kind": "terms", "fields": ["title"], "size": 5, "min_doc_count": 1});
    assert_eq!(failure(&index, terms, &free), "invalid_query");
    assert_eq!(
        failure(&index, json!({"kind": "cardinality", "field": "title", "mode": "auto"}), &free),
        "invalid_query"
    );
    let histogram = json!({"kind": "histogram", "field": "n", "interval": 1.0, "min_doc_count": 1});
    assert_eq!(failure(&index, histogram, &free), "limit_exceeded");
    let minutes = json!({"kind": "date_histogram", "field": "at", "calendar_interval": "minute", "min_doc_count": 0});
    assert_eq!(failure(&index, minutes, &free), "limit_exceeded");
    let stopped = CancelFlag::default();
    stopped.cancel();
    assert_eq!(failure(&index, json!({"kind": "count"}), &stopped), "query_timeout");
}
