//! Counters of paths against a visit of all documents: after every commit of a random story both answer the same, to the
//! last bit, and the counters do answer.

use std::path::Path;
use std::sync::Arc;

use super::support::*;
use serde_json::{Value, json};
use sundew_engine::full_text::{CancelFlag, DerivedIndex, Hits, QueryPlan, TextIndex, query};
use sundew_engine::retrieval::query_inline;

const SEED: u64 = 19_1123;
const PATHS: [&str; 4] = ["n", "tag", "at", "sold"];

fn number(random: &mut Random) -> Value {
    match random.below(9) {
        0 => json!(-0.0),
        1 => json!(9_007_199_254_740_992u64),
        2 => json!(-9_007_199_254_740_991i64),
        3 => json!(1e120),
        4 => json!(0.1 * random.below(50) as f64),
        5 => json!(5e-324),
        _ => json!(random.below(12)),
    }
}

fn document(random: &mut Random) -> Value {
    let mut document = json!({ "title": "leek soup" });
    match random.below(6) {
        0 => {}
        1 => document["n"] = json!([number(random), number(random), number(random)]),
        _ => document["n"] = number(random),
    }
    match random.below(5) {
        0 => {}
        1 => document["tag"] = json!(["red", "red", format!("t{}", random.below(9))]),
        _ => document["tag"] = json!(format!("t{}", random.below(30))),
    }
    if random.below(3) > 0 {
        document["at"] = json!(format!("2024-02-{:02}T10:00:00.{:03}Z", 1 + random.below(28), random.below(1000)));
        document["sold"] = json!(random.below(2) == 0);
    }
    document
}

fn aggregations() -> Value {
    let mut list = vec![json!({"name": "all", "of": {"kind": "count"}})];
    for path in PATHS {
        for metric in ["sum", "avg", "min", "max", "sumsquares", "stats"] {
            let of = json!({"kind": "numbers", "field": path, "metric": metric});
            list.push(json!({"name": format!("{path} {metric}"), "of": of}));
        }
        list.push(json!({"name": format!("{path} count"), "of": {"kind": "count", "field": path}}));
        for mode in ["auto", "exact", "approximate"] {
            let of = json!({"kind": "cardinality", "field": path, "mode": mode});
            list.push(json!({"name": format!("{path} {mode}"), "of": of}));
        }
        for (size, least) in [(3, 1), (100, 1), (100, 4)] {
            let of = json!({"kind": "terms", "fields": [path], "size": size, "min_doc_count": least});
            list.push(json!({"name": format!("{path} {size} {least}"), "of": of}));
        }
    }
    json!({ "list": list })
}

fn plan_of(counted: Option<&[&str]>, more: Value) -> QueryPlan {
    let mut plan = json!({"limit": 0, "counted_paths": counted, "aggregations": aggregations()});
    plan.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    serde_json::from_value(plan).expect("a plan")
}

fn run(indexes: &[Arc<TextIndex>], counted: Option<&[&str]>, more: Value) -> Hits {
    query(indexes, &plan_of(counted, more), &CancelFlag::default()).expect("the query runs")
}

/// A thread that the machine does not let run for a millisecond gives up.
fn at_once(indexes: &[Arc<TextIndex>], counted: Option<&[&str]>, more: Value) -> Option<Hits> {
    let plan = plan_of(counted, more);
    (0..100).find_map(|_| query_inline(indexes, &[], &plan, &[], 10_000_000).expect("no fault"))
}

/// Both answers are the same; whether the counters gave one.
fn compare(indexes: &[Arc<TextIndex>], context: &str) -> bool {
    let (visited, counted) = (run(indexes, None, json!({})), run(indexes, Some(&PATHS), json!({})));
    assert_eq!(counted.total, visited.total, "{context}");
    let parsed = |hits: &Hits| serde_json::from_str::<Value>(&hits.aggregations).expect("JSON");
    for (name, answer) in parsed(&visited).as_object().expect("an object") {
        assert_eq!(parsed(&counted)[name].to_string(), answer.to_string(), "{name}, {context}");
    }
    assert!(visited.counted.is_empty());
    counted.counted.iter().all(|each| each.fallback.is_none())
}

#[test]
fn counters_answer_what_a_visit_of_all_documents_answers() {
    for ranges in [1usize, 3] {
        let mut random = Random::new(SEED + ranges as u64);
        let open = || TextIndex::open(Path::new("unused"), memory_options(Value::Null)).expect("an index in memory");
        let indexes: Vec<Arc<TextIndex>> = (0..ranges).map(|_| open()).collect();
        let mut sequence = 1;
        for round in 0..60 {
            let index = random.below(ranges);
            let mut rows = Vec::new();
            for _ in 0..1 + random.below(40) {
                let (id, is_deleted) = (random.below(120), random.below(4) == 0);
                let key = format!("k{id:03}");
                rows.push(match is_deleted {
                    true => delete(&key, id as u32),
                    false => put(&key, id as u32, document(&mut random)),
                });
            }
            indexes[index].apply(&frame(&rows, sequence)).expect("rows are applied");
            sequence += rows.len() as u64;
            indexes[index].commit(sequence - 1).expect("a commit");
            if random.below(8) == 0 {
                indexes[index].rest().expect("a rest");
                indexes[index].wait_for_merges();
            }
            assert!(compare(&indexes, &format!("seed {SEED}, {ranges} ranges, round {round}")));
        }
    }
}

#[test]
fn conditions_and_undeclared_paths_are_visited_and_say_so() {
    let index = TextIndex::open(Path::new("unused"), memory_options(Value::Null)).expect("an index in memory");
    let rows = [put("a", 0, json!({"n": 1, "tag": "x"})), put("b", 1, json!({"n": 2, "tag": "y"}))];
    index.apply(&frame(&rows, 1)).expect("rows are applied");
    index.commit(2).expect("a commit");
    let indexes = [index];
    let fallbacks = |hits: Hits| hits.counted.into_iter().filter_map(|each| each.fallback).collect::<Vec<_>>();
    let term = json!([{"kind": "term", "field": "tag", "value": "x"}]);
    for condition in ["filter", "exclusion", "row_filter"] {
        let narrowed = run(&indexes, Some(&PATHS), json!({ condition: term }));
        assert_eq!(narrowed.total, 1, "{condition}");
        assert!(fallbacks(narrowed).iter().all(|reason| *reason == "a condition narrows the documents"));
    }
    let narrowed = run(&indexes, Some(&PATHS), json!({"key_prefix": "b"}));
    assert_eq!((narrowed.total, narrowed.counted.len()), (1, fallbacks(narrowed).len()));
    let undeclared = fallbacks(run(&indexes, Some(&["n"]), json!({})));
    assert!(!undeclared.is_empty());
    assert!(undeclared.iter().all(|reason| *reason == "the schema declares no scalar at the path"));
}

#[test]
fn a_sum_that_leaves_the_range_of_doubles_is_visited() {
    let index = TextIndex::open(Path::new("unused"), memory_options(Value::Null)).expect("an index in memory");
    let rows: Vec<_> = (0..4).map(|at| put(&format!("k{at}"), at, json!({"n": 1.7e308}))).collect();
    index.apply(&frame(&rows, 1)).expect("rows are applied");
    index.commit(4).expect("a commit");
    let indexes = [index];
    assert!(!compare(&indexes, "overflow"));
    let rows: Vec<_> = (0..3).map(|at| delete(&format!("k{at}"), at)).collect();
    indexes[0].apply(&frame(&rows, 5)).expect("rows are applied");
    indexes[0].commit(7).expect("a commit");
    compare(&indexes, "one of them is left");
}

#[test]
fn what_was_counted_before_is_answered_at_once() {
    let index = TextIndex::open(Path::new("unused"), memory_options(Value::Null)).expect("an index in memory");
    let mut random = Random::new(SEED);
    let rows: Vec<_> = (0..200).map(|id| put(&format!("k{id}"), id, document(&mut random))).collect();
    index.apply(&frame(&rows, 1)).expect("rows are applied");
    index.commit(200).expect("a commit");
    let indexes = [index];
    let text = |hits: Hits| (hits.total, hits.total_is_exact, hits.aggregations, hits.counted);
    assert!(at_once(&indexes, Some(&PATHS), json!({})).is_none(), "nothing is counted yet");
    let counted = text(run(&indexes, Some(&PATHS), json!({})));
    assert_eq!(at_once(&indexes, Some(&PATHS), json!({})).map(text), Some(counted));
    // Every one of these visits documents.
    let term = json!([{"kind": "term", "field": "tag", "value": "t1"}]);
    assert!(at_once(&indexes, None, json!({})).is_none());
    assert!(at_once(&indexes, Some(&["n"]), json!({})).is_none());
    assert!(at_once(&indexes, Some(&PATHS), json!({"filter": term})).is_none());
    // What the next commit has changed is counted elsewhere first.
    indexes[0].apply(&frame(&[delete("k7", 7)], 201)).expect("rows are applied");
    indexes[0].commit(201).expect("a commit");
    assert!(at_once(&indexes, Some(&PATHS), json!({})).is_none(), "counted before the commit");
    assert_eq!(run(&indexes, Some(&PATHS), json!({})).total, 199);
    assert_eq!(at_once(&indexes, Some(&PATHS), json!({})).map(|hits| hits.total), Some(199));
}

#[test]
fn the_number_of_all_documents_is_known_without_a_visit() {
    let index = TextIndex::open(Path::new("unused"), memory_options(Value::Null)).expect("an index in memory");
    let rows: Vec<_> = (0..50).map(|id| put(&format!("k{id}"), id, json!({"n": id}))).collect();
    index.apply(&frame(&rows, 1)).expect("rows are applied");
    index.apply(&frame(&[delete("k7", 7)], 51)).expect("rows are applied");
    index.commit(51).expect("a commit");
    let indexes = [index];
    let none = || json!({"aggregations": null});
    let of = |more: Value| {
        let mut members = none();
        members.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        let hits = at_once(&indexes, None, members.clone()).expect("an answer at once");
        assert_eq!(hits, Hits { took_micros: hits.took_micros, ..run(&indexes, None, members) });
        (hits.total, hits.total_is_exact, hits.max_score)
    };
    assert_eq!(of(json!({})), (49, true, 1.0));
    assert_eq!(of(json!({"count_only": true})), (49, true, 0.0));
    assert_eq!(of(json!({"query": {"kind": "match_all", "boost": 3.0}})), (49, true, 3.0));
}
