//! Under a row filter every answer is that of a table which holds only what the filter permits: hits, totals, aggregations
//! with their backgrounds, searches by vectors, the check of stored documents, scans and highlights.

use std::collections::BTreeSet;
use std::path::Path;

use crate::full_text::support::{Random, Row, WORDS, memory_options, put, random_document, random_node};
use crate::retrieval::support::{Document, Query, Range, document, keys, run, table};
use crate::{full_text, retrieval};
use serde_json::{Value, json};
use sundew_engine::full_text::{
    CancelFlag, DerivedIndex, HighlightPlan, Hits, QueryPlan, TextIndex, highlight_documents, match_documents,
    matching_ordinals,
};
use sundew_vector::dense::Metric;

const DOCUMENTS: usize = 90;
const QUERIES: usize = 60;

/// A table, and one of the documents alone that a filter permits; the same number of ranges, other ordinals.
struct Tables {
    documents: Vec<Document>,
    permitted: Vec<Document>,
    all: Vec<Range>,
    only: Vec<Range>,
    ranges: usize,
}

fn random_documents(random: &mut Random) -> Vec<Document> {
    let one = |at: usize| {
        let mut body = random_document(random);
        body["secret"] = json!(WORDS[random.below(3)]);
        body["order"] = json!(at);
        let dense = std::array::from_fn(|_| random.below(9) as f32 + 0.25);
        let sparse = vec![(1, 1.0 + random.below(5) as f32), (2 + random.below(3) as u32, 0.5)];
        Document { dense: Some(dense), sparse, ..document(&format!("k{at:03}"), body) }
    };
    (0..DOCUMENTS).map(one).collect()
}

/// What the engine itself says of each document alone.
fn is_permitted(document: &Document, filter: &Value) -> bool {
    let rows: [Row; 1] = [put(&document.key, 0, document.body.clone())];
    let plan: QueryPlan = serde_json::from_value(json!({"limit": 1, "filter": [filter]})).expect("a plan");
    let frame = full_text::support::frame(&rows, 1);
    match_documents(&memory_options(Value::Null), &plan, &frame).expect("matched") == [1]
}

fn tables(random: &mut Random, filter: &Value, ranges: usize) -> Tables {
    let documents = random_documents(random);
    let permitted: Vec<Document> =
        documents.iter().filter(|document| is_permitted(document, filter)).cloned().collect();
    let all = table(&documents, ranges, Metric::L2Squared);
    let only = table(&permitted, ranges, Metric::L2Squared);
    Tables { documents, permitted, all, only, ranges }
}

impl Tables {
    /// The answers to one request: under the filter, and of the table without the others.
    fn ask(&self, asked: &Query, filter: &Value) -> [(Vec<String>, Hits); 2] {
        let mut filtered = asked.clone();
        filtered.plan["row_filter"] = json!([filter]);
        [(&self.all, &self.documents, &filtered), (&self.only, &self.permitted, asked)].map(
            |(ranges, documents, asked)| {
                let hits = run(ranges, asked);
                let keys = keys(documents, self.ranges, &hits).into_iter().map(str::to_owned).collect();
                (keys, hits)
            },
        )
    }
}

fn aggregations(field: &Value) -> Value {
    let of = |name: &str, of: Value| json!({"name": name, "of": of, "sub": []});
    let terms = |background: usize| json!({"kind": "terms", "fields": ["secret"], "size": 50, "min_doc_count": 0, "background": background});
    let significant = json!({"kind": "significant_terms", "field": "secret", "size": 50, "min_doc_count": 1,
        "algorithm": "jlh", "background": 1});
    json!({
        "list": [
            of("values", terms(0)),
            of("some", terms(1)),
            of("significant", significant),
            {"name": "nested", "of": {"kind": "terms", "fields": [field], "size": 50, "min_doc_count": 1},
                "sub": [of("n", json!({"kind": "numbers", "field": "n", "metric": "stats"})), of("in", terms(0))]},
            of("distinct", json!({"kind": "cardinality", "field": "tag", "mode": "exact"})),
            of("count", json!({"kind": "count", "field": "n"})),
            of("steps", json!({"kind": "histogram", "field": "n", "interval": 1.0, "min_doc_count": 0})),
        ],
        "backgrounds": [{"field": "secret"}, {"field": "secret", "filter": {"kind": "exists", "field": "n"}}]
    })
}

#[test]
fn answers_are_those_of_a_table_without_the_hidden_rows() {
    for seed in 0..8 {
        println!("seed {seed}");
        let mut random = Random::new(1_000 + seed);
        // Nothing, everything, and what chance says; a filter that asks for nothing permits nothing.
        let filter = match seed {
            0 => json!({"kind": "match_none"}),
            1 => json!({"kind": "match_all"}),
            2 => json!({"kind": "match", "text": "the"}),
            3 => json!({"kind": "term", "field": "secret", "value": WORDS[1]}),
            _ => random_node(&mut random, 0),
        };
        let tables = tables(&mut random, &filter, 1 + seed as usize % 3);
        for _ in 0..QUERIES {
            let node = random_node(&mut random, 0);
            let mut plan = json!({"limit": 200, "exact_total": true, "total_exact_up_to": 1000});
            let member = ["query", "filter", "exclusion"][random.below(3)];
            plan[member] = if member == "query" { node.clone() } else { json!([node]) };
            if random.below(2) == 0 {
                plan["aggregations"] = aggregations(&json!(["tag", "secret"][random.below(2)]));
            }
            let asked = |plan: Value| Query { plan, ..Query::default() };
            let at = format!("{member} {node} under {filter}");

            let mut sorted = plan.clone();
            sorted["sort"] = json!([{"field": "order", "desc": random.below(2) == 0}]);
            sorted["limit"] = json!(1 + random.below(30));
            sorted["offset"] = json!(random.below(10));
            let [(under, of_all), (alone, of_permitted)] = tables.ask(&asked(sorted), &filter);
            assert_eq!(under, alone, "{at}");
            assert_eq!(
                (of_all.total, of_all.total_is_exact),
                (of_permitted.total, of_permitted.total_is_exact),
                "{at}"
            );
            assert_eq!(of_all.aggregations, of_permitted.aggregations, "{at}");

            // Scores differ: they know how frequent words are in the whole table. The documents are the same.
            let [(under, of_all), (alone, of_permitted)] = tables.ask(&asked(plan.clone()), &filter);
            let set = |keys: Vec<String>| keys.into_iter().collect::<BTreeSet<_>>();
            assert_eq!(set(under), set(alone), "{at}");
            assert_eq!(of_all.total, of_permitted.total, "{at}");

            let mut counted = plan;
            counted["count_only"] = json!(true);
            let [(_, of_all), (_, of_permitted)] = tables.ask(&asked(counted), &filter);
            assert_eq!(of_all.total, of_permitted.total, "{at}");
        }
    }
}

#[test]
fn searches_by_vectors_find_what_is_permitted() {
    for seed in 0..6 {
        println!("seed {seed}");
        let mut random = Random::new(2_000 + seed);
        let filter = match seed {
            0 => json!({"kind": "match_none"}),
            1 => json!({"kind": "term", "field": "secret", "value": WORDS[1]}),
            _ => random_node(&mut random, 0),
        };
        let tables = tables(&mut random, &filter, 1 + seed as usize % 3);
        for at in 0..QUERIES {
            let mut plan = json!({"limit": 1 + random.below(20), "fusion": {"strategy": "rsf"}});
            if random.below(3) == 0 {
                plan["filter"] = json!([random_node(&mut random, 0)]);
            }
            if random.below(3) == 0 {
                plan["aggregations"] = aggregations(&json!("tag"));
            }
            if at % 3 == 2 {
                plan["query"] = json!({"kind": "range", "field": "order", "gte": random.below(DOCUMENTS)});
            }
            let dense = (at % 3 != 1).then(|| std::array::from_fn(|_| random.below(9) as f32));
            let sparse = (at % 3 != 0).then(|| vec![(1, 1.0), (3, 0.5)]);
            let [(under, of_all), (alone, of_permitted)] =
                tables.ask(&Query { plan: plan.clone(), dense, sparse, weights: [1.0, 1.0] }, &filter);
            let at = format!("{plan} under {filter}");
            assert_eq!(under, alone, "{at}");
            assert_eq!(retrieval::support::scores(&of_all), retrieval::support::scores(&of_permitted), "{at}");
            assert_eq!(of_all.total, of_permitted.total, "{at}");
            assert_eq!(of_all.aggregations, of_permitted.aggregations, "{at}");
        }
    }
}

#[test]
fn stored_documents_scans_and_highlights_keep_to_it() {
    for seed in 0..4 {
        println!("seed {seed}");
        let mut random = Random::new(3_000 + seed);
        let filter = random_node(&mut random, 0);
        let documents = random_documents(&mut random);
        let rows: Vec<Row> =
            documents.iter().zip(0..).map(|(document, at)| put(&document.key, at, document.body.clone())).collect();
        let frame = full_text::support::frame(&rows, 1);
        let options = memory_options(Value::Null);
        let index = TextIndex::open(Path::new("unused"), options.clone()).expect("an index in memory");
        index.apply(&frame).expect("rows are applied");
        index.commit(rows.len() as u64).expect("a commit");
        let wanted: HighlightPlan = serde_json::from_value(
            json!({"fields": [], "fragment_chars": 100, "fragments": 3, "pre_tag": "<", "post_tag": ">"}),
        )
        .expect("a plan");
        let permitted: Vec<bool> = documents.iter().map(|document| is_permitted(document, &filter)).collect();
        for _ in 0..QUERIES {
            let node = random_node(&mut random, 0);
            let plan = |members: Value| -> QueryPlan {
                let mut plan = json!({"limit": 10, "filter": [node]});
                plan.as_object_mut().expect("an object").extend(members.as_object().expect("members").clone());
                serde_json::from_value(plan).expect("a plan")
            };
            let (free, kept) = (plan(json!({})), plan(json!({"row_filter": [filter]})));
            let matched = |plan: &QueryPlan| match_documents(&options, plan, &frame).expect("matched");
            let expected: Vec<u8> =
                matched(&free).iter().zip(&permitted).map(|(found, permitted)| found & u8::from(*permitted)).collect();
            assert_eq!(matched(&kept), expected, "{node} under {filter}");
            let scanned = matching_ordinals(&index, &kept, &CancelFlag::default()).expect("ordinals");
            let is_let_through = |at: usize| scanned.get(at / 8).is_some_and(|byte| byte >> (at % 8) & 1 == 1);
            let through: Vec<u8> = (0..rows.len()).map(|at| u8::from(is_let_through(at))).collect();
            assert_eq!(through, expected, "{node} under {filter}");
            let marked = |plan: &QueryPlan| -> Vec<Value> {
                let text = highlight_documents(&options, plan, &wanted, &frame).expect("highlights");
                serde_json::from_str(&text).expect("an array")
            };
            let expected: Vec<Value> = marked(&free)
                .into_iter()
                .zip(&permitted)
                .map(|(found, permitted)| if *permitted { found } else { json!({}) })
                .collect();
            assert_eq!(marked(&kept), expected, "{node} under {filter}");
        }
    }
}
