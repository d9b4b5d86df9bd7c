//! Matching documents without an index means what an index means.

mod full_text_support;

use full_text_support::*;
use serde_json::{Value, json};
use sundew_engine::full_text::{QueryPlan, match_documents};

const WORDS: [&str; 8] = ["soup", "bread", "leek", "running", "the", "Ann Lee", "2024-01-01", "x-1"];

fn random_document(random: &mut Random) -> Value {
    let mut document = json!({});
    for path in ["title", "tag", "n", "author"] {
        let value = match random.below(6) {
            0 => continue,
            1 => json!(random.below(5)),
            2 => json!(random.below(10) as f64 / 2.0),
            3 => json!(random.below(2) == 0),
            4 => json!([WORDS[random.below(8)], random.below(3)]),
            _ => json!(format!("{} {}", WORDS[random.below(8)], WORDS[random.below(8)])),
        };
        match path {
            "author" => document["author"] = json!({"name": value}),
            _ => document[path] = value,
        }
    }
    document
}

fn random_node(random: &mut Random, depth: usize) -> Value {
    let field = ["title", "tag", "n", "author.name", "nowhere"][random.below(5)];
    let text = WORDS[random.below(8)];
    match random.below(if depth > 2 { 8 } else { 10 }) {
        0 => {
            json!({"kind": "match", "field": field, "text": format!("{text} {}", WORDS[random.below(8)]), "operator": "and"})
        }
        1 => json!({"kind": "match", "text": text}),
        2 => json!({"kind": "term", "field": field, "value": text}),
        3 => json!({"kind": "term", "field": field, "value": random.below(5)}),
        4 => json!({"kind": "range", "field": field, "gte": random.below(4) as f64 / 2.0, "lt": 3}),
        5 => json!({"kind": "prefix", "field": field, "value": &text[..2]}),
        6 => json!({"kind": "exists", "field": field}),
        7 => json!({"kind": "phrase", "field": field, "text": format!("{text} leek")}),
        _ => {
            let mut nodes = || -> Vec<Value> { (0..random.below(3)).map(|_| random_node(random, depth + 1)).collect() };
            json!({"kind": "bool", "must": nodes(), "should": nodes(), "must_not": nodes(), "filter": nodes()})
        }
    }
}

#[test]
fn random_filters_on_random_documents() {
    for seed in 0..6 {
        let mut random = Random::new(seed);
        let documents: Vec<Value> = (0..40).map(|_| random_document(&mut random)).collect();
        let schema = match seed % 3 {
            0 => Value::Null,
            1 => json!({"document_schemas": {"doc": {"schema": {"type": "object", "properties": {
                "title": {"type": "string", "x-service-types": ["text"]},
                "tag": {"type": "string", "x-service-types": ["keyword"], "x-service-include-in-all": true}}}}}}),
            _ => json!({"dynamic_templates": [{"match": "t*", "mapping": {"type": "text", "analyzer": "simple"}}]}),
        };
        let index = index_of(schema.clone(), &documents);
        let rows: Vec<Row> = documents
            .iter()
            .enumerate()
            .map(|(at, document)| put(&format!("k{at}"), at as u32, document.clone()))
            .collect();
        let frame = frame(&rows, 1);
        for _ in 0..60 {
            let node = random_node(&mut random, 0);
            let mut filter = QueryPlan { query: None, ..plan(node.clone()) };
            filter.filter = vec![serde_json::from_value(node.clone()).expect("a node")];
            let matched = match_documents(&memory_options(schema.clone()), &filter, &frame).expect("matched");
            let ordinals: Vec<u32> = (0..rows.len() as u32).filter(|at| matched[*at as usize] == 1).collect();
            let mut by_index: Vec<u32> = run(&index, &filter).hits.iter().map(|hit| hit.ordinal).collect();
            by_index.sort_unstable();
            assert_eq!(ordinals, by_index, "seed {seed}: {node}");
            assert_eq!(matching(&index, node.clone()), by_index, "seed {seed}: {node} as a query");
        }
    }
}

#[test]
fn rows_that_cannot_match() {
    let rows = [
        put("a:1", 0, json!({"t": "soup"})),
        delete("a:2", 1),
        Row { ttl_base_ms: 1000, ..put("a:3", 2, json!({"t": "soup"})) },
        Row { body: Some("{broken".to_owned()), ..put("a:4", 3, json!({})) },
        put("b:1", 4, json!({"t": "soup"})),
    ];
    let mut plan = plan(json!({"kind": "match", "field": "t", "text": "soup"}));
    plan.expired_at_or_before_ms = Some(5000);
    plan.key_prefix = Some("a:".to_owned());
    let matched = match_documents(&memory_options(Value::Null), &plan, &frame(&rows, 1)).expect("matched");
    assert_eq!(matched, [1, 0, 0, 0, 0]);
    plan.key_prefix = None;
    plan.expired_at_or_before_ms = None;
    let matched = match_documents(&memory_options(Value::Null), &plan, &frame(&rows, 1)).expect("matched");
    assert_eq!(matched, [1, 0, 1, 0, 1]);
    assert_eq!(
        match_documents(&memory_options(Value::Null), &plan, &frame(&[], 1)).expect("matched"),
        Vec::<u8>::new()
    );
}
