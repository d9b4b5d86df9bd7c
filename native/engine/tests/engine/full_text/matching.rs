//! Matching documents without an index means what an index means.

use std::path::Path;
use std::sync::Arc;

use super::support::*;
use serde_json::{Value, json};
use sundew_engine::full_text::{CancelFlag, DerivedIndex, QueryPlan, TextIndex, match_documents, query};

/// Four indexes of the rows, each in its own.
fn spread_over_ranges<'a>(schema: &Value, rows: impl Iterator<Item = (usize, &'a Row)>) -> Vec<Arc<TextIndex>> {
    let mut by_range: Vec<Vec<Row>> = (0..4).map(|_| Vec::new()).collect();
    for (range, Row { key, ordinal, body, ttl_base_ms }) in rows {
        by_range[range].push(Row {
            key: key.clone(),
            ordinal: *ordinal,
            body: body.clone(),
            ttl_base_ms: *ttl_base_ms,
        });
    }
    let open = |rows: Vec<Row>| {
        let index = TextIndex::open(Path::new("unused"), memory_options(schema.clone())).expect("an index in memory");
        index.apply(&frame(&rows, 1)).expect("rows are applied");
        index.commit(rows.len() as u64).expect("a commit");
        index
    };
    by_range.into_iter().map(open).collect()
}

/// Ordinals and scores, the best first. Scores are compared to five digits.
fn ranked(indexes: &[Arc<TextIndex>], node: &Value) -> Vec<(u32, String)> {
    let hits = query(indexes, &plan(node.clone()), &CancelFlag::default()).expect("the query runs").hits;
    let mut ranked: Vec<(u32, String)> = hits.iter().map(|hit| (hit.ordinal, format!("{:.4}", hit.score))).collect();
    ranked.sort();
    ranked
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
                "at": {"x-service-types": ["geopoint"]},
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
        let ranges = spread_over_ranges(&schema, rows.iter().enumerate().map(|(at, row)| (at % 4, row)));
        for _ in 0..120 {
            let node = random_node(&mut random, 0);
            let mut filter = QueryPlan { query: None, ..plan(node.clone()) };
            filter.filter = vec![serde_json::from_value(node.clone()).expect("a node")];
            let matched = match match_documents(&memory_options(schema.clone()), &filter, &frame) {
                Ok(matched) => matched,
                Err(error) => {
                    // A range leaves out nothing by a field of words alone.
                    let refused = query(std::slice::from_ref(&index), &filter, &CancelFlag::default());
                    assert_eq!(refused.map(drop).expect_err("refused as well").message, error.message, "{node}");
                    assert!(error.message.contains("by its words alone"), "seed {seed}: {node}: {}", error.message);
                    continue;
                }
            };
            let ordinals: Vec<u32> = (0..rows.len() as u32).filter(|at| matched[*at as usize] == 1).collect();
            let mut by_index: Vec<u32> = run(&index, &filter).hits.iter().map(|hit| hit.ordinal).collect();
            by_index.sort_unstable();
            assert_eq!(ordinals, by_index, "seed {seed}: {node}");
            assert_eq!(matching(&index, node.clone()), by_index, "seed {seed}: {node} as a query");
            assert_eq!(
                ranked(&ranges, &node),
                ranked(std::slice::from_ref(&index), &node),
                "seed {seed}: {node} in 4 ranges"
            );
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
