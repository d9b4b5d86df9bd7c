//! What each node of a plan matches.

use super::support::*;
use serde_json::{Value, json};
use sundew_engine::full_text::{CancelFlag, QueryPlan, match_documents, matching_ordinals};

fn books() -> Vec<serde_json::Value> {
    vec![
        json!({"title": "The quick brown fox", "year": 1999, "price": 9.5, "tags": ["animal", "fast"], "sold": true}),
        json!({"title": "Quick soup recipes", "year": 2020, "price": 20, "tags": ["food"], "sold": false}),
        json!({"title": "Brown bread and foxes", "year": 2021, "author": {"name": "Ann Lee"}, "tags": ["food", "fast"]}),
        json!({"title": "A history of bread", "year": 2022.5, "published": "2024-03-01", "body": "soup is old"}),
        json!({"published": "2024-05-01T10:00:00Z", "code": "AB-12", "year": -5}),
    ]
}

#[test]
fn nodes() {
    let index = index_of(json!(null), &books());
    for (query, expected) in [
        (json!({"kind": "match_all"}), vec![0, 1, 2, 3, 4]),
        (json!({"kind": "match_none"}), vec![]),
        (json!({"kind": "match", "field": "title", "text": "quick bread"}), vec![0, 1, 2, 3]),
        (json!({"kind": "match", "field": "title", "text": "brown fox", "operator": "and"}), vec![0, 2]),
        (json!({"kind": "match", "text": "soup"}), vec![1, 3]),
        (json!({"kind": "match", "text": "soup old", "operator": "and"}), vec![3]),
        (json!({"kind": "match", "text": "history old", "operator": "and"}), vec![3]),
        (json!({"kind": "match", "field": "title", "text": "the"}), vec![]),
        (json!({"kind": "match", "field": "nowhere", "text": "soup"}), vec![]),
        (json!({"kind": "match", "field": "year", "text": "2020"}), vec![1]),
        (json!({"kind": "match", "field": "sold", "text": "true"}), vec![0]),
        (json!({"kind": "match", "field": "title.keyword", "text": "Quick soup recipes"}), vec![1]),
        (json!({"kind": "match", "field": "author.name", "text": "lee"}), vec![2]),
        (json!({"kind": "phrase", "field": "title", "text": "quick brown"}), vec![0]),
        (json!({"kind": "phrase", "field": "title", "text": "quick fox"}), vec![]),
        (json!({"kind": "phrase", "field": "title", "text": "quick fox", "slop": 1}), vec![0]),
        (json!({"kind": "phrase", "text": "brown bread"}), vec![2]),
        (json!({"kind": "term", "field": "tags", "value": "food"}), vec![1, 2]),
        (json!({"kind": "term", "field": "code", "value": "AB-12"}), vec![4]),
        (json!({"kind": "term", "field": "code", "value": "ab"}), vec![]),
        (json!({"kind": "term", "field": "year", "value": 1999}), vec![0]),
        (json!({"kind": "term", "field": "year", "value": 2022.5}), vec![3]),
        (json!({"kind": "term", "field": "price", "value": 20.0}), vec![1]),
        (json!({"kind": "term", "field": "sold", "value": false}), vec![1]),
        (json!({"kind": "term", "field": "published", "value": "2024-03-01"}), vec![3]),
        (json!({"kind": "term", "field": "_id", "value": "k3"}), vec![3]),
        (json!({"kind": "bool_field", "field": "sold", "value": true}), vec![0]),
        (json!({"kind": "prefix", "field": "title", "value": "Bro"}), vec![0, 2]),
        (json!({"kind": "prefix", "field": "code", "value": "AB-"}), vec![4]),
        (json!({"kind": "prefix", "value": "sou"}), vec![1, 3]),
        (json!({"kind": "prefix", "field": "_id", "value": "k"}), vec![0, 1, 2, 3, 4]),
        (json!({"kind": "range", "field": "year", "gte": 2020}), vec![1, 2, 3]),
        (json!({"kind": "range", "field": "year", "gt": 2020, "lt": 2022.5}), vec![2]),
        (json!({"kind": "range", "field": "year", "lte": 2022.5, "gt": 2021}), vec![3]),
        (json!({"kind": "range", "field": "year", "lt": 0}), vec![4]),
        (json!({"kind": "range", "field": "price", "gte": 9.5, "lt": 20}), vec![0]),
        (json!({"kind": "range", "field": "published", "gte": "2024-03-01", "lt": "2024-05-01"}), vec![3]),
        (json!({"kind": "range", "field": "published", "gt": "2024-05-01T09:59:59.999Z"}), vec![4]),
        (json!({"kind": "range", "field": "tags", "gte": "fb", "of": "term"}), vec![1, 2]),
        (json!({"kind": "range", "field": "tags", "gt": "fast", "lte": "food"}), vec![1, 2]),
        (json!({"kind": "range", "field": "_id", "gt": "k1", "lte": "k3"}), vec![2, 3]),
        (json!({"kind": "ids", "ids": ["k1", "k4", "k9"]}), vec![1, 4]),
        (json!({"kind": "exists", "field": "price"}), vec![0, 1]),
        (json!({"kind": "exists", "field": "author"}), vec![2]),
        (json!({"kind": "exists", "field": "nowhere"}), vec![]),
        (json!({"kind": "bool_prefix", "fields": [{"field": "title"}], "text": "quick bro"}), vec![0, 1, 2]),
        (
            json!({"kind": "bool_prefix", "fields": [{"field": "title", "boost": 2}, {"field": "body"}], "text": "sou"}),
            vec![1, 3],
        ),
    ] {
        assert_eq!(matching(&index, query.clone()), expected, "{query}");
    }
}

#[test]
fn bool_nodes() {
    let index = index_of(json!(null), &books());
    let title = |text: &str| json!({"kind": "match", "field": "title", "text": text});
    let recent = json!({"kind": "range", "field": "year", "gte": 2020});
    for (query, expected) in [
        (json!({"kind": "bool", "must": [title("brown")], "must_not": [title("fox")]}), vec![]),
        (json!({"kind": "bool", "must": [title("bread")], "filter": [recent]}), vec![2, 3]),
        (json!({"kind": "bool", "should": [title("soup"), title("history")]}), vec![1, 3]),
        (json!({"kind": "bool", "should": [title("soup"), title("history")], "must": [recent]}), vec![1, 2, 3]),
        (json!({"kind": "bool", "should": [title("soup"), title("quick"), title("bread")], "min_should": 2}), vec![1]),
        (json!({"kind": "bool", "should": [title("soup")], "min_should": 2}), vec![]),
        (json!({"kind": "bool", "must_not": [title("bread")]}), vec![0, 1, 4]),
        (json!({"kind": "bool"}), vec![0, 1, 2, 3, 4]),
        (json!({"kind": "bool", "filter": [recent]}), vec![1, 2, 3]),
    ] {
        assert_eq!(matching(&index, query.clone()), expected, "{query}");
    }
}

#[test]
fn a_text_without_tokens_is_left_out_of_the_bool_around_it() {
    let index = index_of(json!(null), &books());
    let title = |text: &str| json!({"kind": "match", "field": "title", "text": text});
    let the = title("the");
    let anywhere = json!({"kind": "phrase", "text": "and the"});
    for (query, expected) in [
        (the.clone(), vec![]),
        (anywhere.clone(), vec![]),
        (json!({"kind": "match", "text": "!?"}), vec![]),
        (json!({"kind": "bool", "must": [the, title("soup")]}), vec![1]),
        (json!({"kind": "bool", "must": [anywhere, title("soup")]}), vec![1]),
        (json!({"kind": "bool", "must": [title("soup")], "filter": [the]}), vec![1]),
        (json!({"kind": "bool", "should": [the, title("soup"), title("quick")], "min_should": 3}), vec![1]),
        (json!({"kind": "bool", "must": [the], "filter": [the]}), vec![]),
        (json!({"kind": "bool", "must": [{"kind": "bool", "should": [the]}, title("soup")]}), vec![1]),
        (json!({"kind": "bool", "must": [the], "must_not": [title("bread")]}), vec![]),
        (json!({"kind": "bool", "must": [title("soup")], "must_not": [the]}), vec![1]),
        (json!({"kind": "bool", "must_not": [the]}), vec![0, 1, 2, 3, 4]),
        (
            json!({"kind": "bool", "must": [title("soup"), {"kind": "match", "field": "tags.keyword", "text": "the"}]}),
            vec![],
        ),
    ] {
        assert_eq!(matching(&index, query.clone()), expected, "{query}");
    }
    let mut filtered = plan(title("the"));
    filtered.filter = vec![serde_json::from_value(title("soup")).expect("a node")];
    assert_eq!(run(&index, &filtered).total, 1);
    filtered.filter = vec![serde_json::from_value(title("a")).expect("a node")];
    assert_eq!(run(&index, &filtered).total, 0);

    // A scan finds as little as a query does. Beside a search by vectors, which asks for something, the filter is left out.
    let nothing = json!({"kind": "match", "text": "the"});
    let mut scan: QueryPlan = serde_json::from_value(json!({"limit": 0, "filter": [nothing]})).expect("a plan");
    assert_eq!(matching_ordinals(&index, &scan, &CancelFlag::default()).expect("ordinals"), [0u8; 0]);
    let frame = frame(&[put("k", 0, json!({"title": "soup"}))], 1);
    let stored = |plan: &QueryPlan| match_documents(&memory_options(Value::Null), plan, &frame).expect("matched");
    assert_eq!(stored(&scan), [0]);
    scan.legs = serde_json::from_value(json!([{"name": "taste", "kind": "dense", "bytes": 4}])).expect("legs");
    assert_eq!(stored(&scan), [1]);
}
