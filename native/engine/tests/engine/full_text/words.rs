//! Conditions on the shape of words: misspelt words, wildcards, regular expressions, phrases with alternatives,
//! addresses.

use super::support::*;
use serde_json::{Value, json};
use sundew_engine::full_text::{CancelFlag, query};

fn recipes() -> Vec<Value> {
    vec![
        json!({"title": "Leek and potato soup", "code": "AB-12", "ip": "10.1.2.3"}),
        json!({"title": "Miso soup with tofu", "code": "AB-77", "ip": "10.200.0.1"}),
        json!({"title": "Soap making", "code": "ab-12", "ip": ["192.168.0.1", "2001:db8::5"]}),
        json!({"title": "Butternut squash stew", "code": "X", "ip": "not an address"}),
        json!({"title": "Potatoes, roasted with butter", "year": 2020}),
    ]
}

#[test]
fn words_by_their_shape() {
    let index = index_of(Value::Null, &recipes());
    for (query, expected) in [
        (json!({"kind": "fuzzy", "field": "title", "value": "Soop", "fuzziness": 1}), vec![0, 1, 2]),
        (json!({"kind": "fuzzy", "field": "title", "value": "suop", "fuzziness": 1}), vec![0, 1]),
        (json!({"kind": "fuzzy", "value": "soup", "fuzziness": 1}), vec![0, 1, 2]),
        (json!({"kind": "fuzzy", "value": "soup", "fuzziness": 0}), vec![0, 1]),
        (json!({"kind": "fuzzy", "value": "xoup", "fuzziness": 1, "prefix_length": 1}), vec![]),
        (json!({"kind": "fuzzy", "value": "soxp", "fuzziness": 1, "prefix_length": 2}), vec![0, 1, 2]),
        (json!({"kind": "fuzzy", "value": "potatos", "fuzziness": "auto"}), vec![0, 4]),
        (json!({"kind": "fuzzy", "field": "code", "value": "AB-13", "fuzziness": 1}), vec![0]),
        (json!({"kind": "fuzzy", "field": "_id", "value": "kk3", "fuzziness": 1}), vec![3]),
        (json!({"kind": "match", "text": "butternot squish", "fuzziness": "auto", "operator": "and"}), vec![3]),
        (json!({"kind": "match", "field": "title", "text": "buter", "fuzziness": 1, "prefix_length": 3}), vec![4]),
        (json!({"kind": "match", "text": "butternot"}), vec![]),
        (json!({"kind": "wildcard", "field": "title", "pattern": "S?up"}), vec![0, 1]),
        (json!({"kind": "wildcard", "pattern": "*utt*"}), vec![3, 4]),
        (json!({"kind": "wildcard", "field": "code", "pattern": "AB-?2"}), vec![0]),
        (json!({"kind": "wildcard", "field": "title", "pattern": "* soup with *"}), vec![1]),
        (json!({"kind": "wildcard", "field": "_id", "pattern": "k?"}), vec![0, 1, 2, 3, 4]),
        (json!({"kind": "wildcard", "field": "nowhere", "pattern": "*"}), vec![]),
        (json!({"kind": "regexp", "field": "title", "pattern": "so[ua]p"}), vec![0, 1, 2]),
        (json!({"kind": "regexp", "field": "title", "pattern": "so"}), vec![]),
        (json!({"kind": "regexp", "field": "code", "pattern": "(?i)ab-1\\d"}), vec![0, 2]),
        (json!({"kind": "phrase", "text": "leak and potatoe", "fuzziness": 1}), vec![0]),
        (json!({"kind": "phrase", "text": "leak potatoe", "fuzziness": 1}), vec![]),
        (json!({"kind": "terms_phrase", "field": "title", "terms": [["miso"], ["soup"]]}), vec![1]),
        (
            json!({"kind": "terms_phrase", "field": "title", "terms": [["miso", "potato"], ["soup", "stew"]]}),
            vec![0, 1],
        ),
        (json!({"kind": "terms_phrase", "terms": [["soup"], ["miso"]]}), vec![]),
        (json!({"kind": "terms_phrase", "terms": [["soup"], ["miso"]], "slop": 2}), vec![1]),
        (json!({"kind": "terms_phrase", "terms": [["soup"], ["soup"]], "slop": 5}), vec![]),
        (json!({"kind": "terms_phrase", "terms": [["mizo"], ["soup"]], "fuzziness": 1}), vec![1]),
        (json!({"kind": "terms_phrase", "terms": [["stew"]]}), vec![3]),
        (json!({"kind": "ip_range", "field": "ip", "cidr": "10.0.0.0/9"}), vec![0]),
        (json!({"kind": "ip_range", "field": "ip", "cidr": "0.0.0.0/0"}), vec![0, 1, 2]),
        (json!({"kind": "ip_range", "field": "ip", "cidr": "2001:db8::/32"}), vec![2]),
        (json!({"kind": "ip_range", "field": "title", "cidr": "::/0"}), vec![]),
    ] {
        assert_eq!(matching(&index, query.clone()), expected, "{query}");
    }
}

#[test]
fn what_is_nearer_scores_more() {
    let index = index_of(
        Value::Null,
        &[json!({"t": "soup"}), json!({"t": "soap"}), json!({"t": "soaps"}), json!({"t": "sap"})],
    );
    for node in [
        json!({"kind": "match", "field": "t", "text": "soup", "fuzziness": 2}),
        json!({"kind": "fuzzy", "field": "t", "value": "soup", "fuzziness": 2}),
    ] {
        let hits = run(&index, &plan(node.clone())).hits;
        let ordinals: Vec<u32> = hits.iter().map(|hit| hit.ordinal).collect();
        assert_eq!(ordinals[0], 0, "{node}");
        assert!(hits[0].score > hits[1].score, "{node}");
        assert_eq!(ordinals.len(), 4, "{node}");
        assert_eq!(*ordinals.last().expect("a last one"), 3, "{node}");
    }
}

#[test]
fn overflowing_paths_answer_as_slots_do() {
    let many: serde_json::Map<String, Value> = (0..80).map(|at| (format!("p{at}"), json!("miso soup"))).collect();
    let index = index_of(Value::Null, &[Value::Object(many), json!({"p79": "tofu stew"})]);
    for (query, expected) in [
        (json!({"kind": "wildcard", "field": "p79", "pattern": "s*"}), vec![0, 1]),
        (json!({"kind": "regexp", "field": "p79", "pattern": "so.p"}), vec![0]),
        (json!({"kind": "fuzzy", "field": "p79", "value": "stow", "fuzziness": 1}), vec![1]),
        (json!({"kind": "terms_phrase", "field": "p79", "terms": [["miso", "tofu"], ["stew"]]}), vec![1]),
        (json!({"kind": "phrase", "field": "p79", "text": "tofo stew", "fuzziness": 1}), vec![1]),
        (json!({"kind": "wildcard", "pattern": "t?fu"}), vec![1]),
    ] {
        assert_eq!(matching(&index, query.clone()), expected, "{query}");
    }
}

#[test]
fn what_is_refused() {
    let index = index_of(Value::Null, &recipes());
    for (node, code) in [
        (json!({"kind": "regexp", "field": "title", "pattern": "(a"}), "invalid_query"),
        (json!({"kind": "regexp", "field": "title", "pattern": "((a{1000}){1000}){1000}"}), "limit_exceeded"),
        (json!({"kind": "wildcard", "field": "title", "pattern": "a".repeat(2_000)}), "limit_exceeded"),
        (json!({"kind": "match", "text": "soup ".repeat(65), "fuzziness": 1}), "limit_exceeded"),
        (json!({"kind": "ip_range", "field": "ip", "cidr": "10.0.0.0/40"}), "invalid_query"),
    ] {
        let error =
            query(std::slice::from_ref(&index), &plan(node.clone()), &CancelFlag::default()).expect_err("refused");
        assert_eq!(error.code, code, "{node}");
    }
}

#[test]
fn a_walk_ends_at_the_deadline() {
    let words: Vec<Value> = (0..3_000).map(|at| json!({"t": format!("{at:x}z{}", at * 7919)})).collect();
    let index = index_of(Value::Null, &words);
    let mut plan = plan(json!({"kind": "regexp", "field": "t", "pattern": "(.*a.*b.*c.*d|.*nothing)"}));
    assert_eq!(run(&index, &plan).total, 0);
    plan.timeout_ms = Some(0);
    let error = query(&[index], &plan, &CancelFlag::default()).expect_err("out of time");
    assert_eq!(error.code, "query_timeout");
}
