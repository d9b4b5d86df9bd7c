//! Pages by cursor, and answers when the time is over.

use std::path::Path;
use std::sync::Arc;

use super::support::{Random, delete, frame, index_of, memory_options, plan, put, run};
use serde_json::{Value, json};
use sundew_engine::full_text::{CancelFlag, DerivedIndex, Hit, PageCursor, QueryPlan, TextIndex, query};

const KEYS: usize = 300;

fn key_of(ordinal: u32) -> String {
    format!("{:05}", ordinal as usize * 7919 % 100_003)
}

/// Few distinct values, so that most documents tie; some are missing, some of another type.
fn random_document(random: &mut Random) -> Value {
    let words = ["soup", "leek", "bread", "oil"];
    let mut document = json!({"text": format!("{} {}", words[random.below(4)], words[random.below(4)])});
    if random.below(5) > 0 {
        document["n"] = json!(random.below(4) as f64 * 0.1 - 0.1);
    }
    if random.below(3) > 0 {
        document["tag"] = json!(words[random.below(4)]);
    }
    document["mixed"] = match random.below(5) {
        0 => json!(random.below(3)),
        1 => json!("2024-01-02"),
        2 => json!(words[random.below(4)]),
        3 => json!(random.below(2) == 0),
        _ => json!(null),
    };
    document
}

/// The same documents in one index and in three, in several segments.
fn indexes() -> [Vec<Arc<TextIndex>>; 2] {
    let mut random = Random::new(7);
    let documents: Vec<Value> = (0..KEYS).map(|_| random_document(&mut random)).collect();
    [1, 3].map(|ranges| {
        let open = |_| TextIndex::open(Path::new("unused"), memory_options(json!(null))).expect("opens");
        let opened: Vec<_> = (0..ranges).map(open).collect();
        for (range, index) in opened.iter().enumerate() {
            let of_range: Vec<u32> = (0..KEYS as u32).filter(|ordinal| *ordinal as usize % ranges == range).collect();
            for piece in of_range.chunks(60) {
                let row = |ordinal: &u32| put(&key_of(*ordinal), *ordinal, documents[*ordinal as usize].clone());
                let rows: Vec<_> = piece.iter().map(row).collect();
                index.apply(&frame(&rows, 1)).expect("applied");
                index.commit(1).expect("a commit");
            }
        }
        opened
    })
}

fn ask(indexes: &[Arc<TextIndex>], plan: &QueryPlan) -> Vec<Hit> {
    query(indexes, plan, &CancelFlag::default()).expect("the query runs").hits
}

fn beside(hit: &Hit, before: bool) -> Option<PageCursor> {
    Some(PageCursor { position: hit.position.clone(), key: key_of(hit.ordinal), before })
}

fn sorts() -> Vec<Value> {
    vec![
        json!([{"field": "n"}]),
        json!([{"field": "n", "desc": true}]),
        json!([{"field": "tag", "desc": true}, {"field": "n"}]),
        json!([{"field": "mixed"}]),
        json!([{"field": "mixed", "desc": true}, {"field": "_id", "desc": true}]),
        json!([{"field": "_score", "desc": true}]),
        json!([{"field": "_id"}]),
        json!([{"field": "nowhere"}]),
    ]
}

#[test]
fn pages_in_both_directions_are_the_whole() {
    for indexes in indexes() {
        for sort in sorts() {
            let mut plan = plan(json!({"kind": "match", "text": "soup leek"}));
            plan.sort = serde_json::from_value(sort.clone()).expect("sort fields");
            let whole: Vec<u32> = ask(&indexes, &plan).iter().map(|hit| hit.ordinal).collect();
            assert!(whole.len() > 100);
            plan.limit = 17;
            let (mut forwards, mut last) = (Vec::new(), Vec::new());
            loop {
                let page = ask(&indexes, &plan);
                let Some(end) = page.last() else { break };
                plan.cursor = beside(end, false);
                forwards.extend(page.iter().map(|hit| hit.ordinal));
                last = page;
            }
            assert_eq!(forwards, whole, "after, by {sort}");
            plan.cursor = beside(last.last().expect("a page"), true);
            let mut backwards = vec![last.last().expect("a page").ordinal];
            loop {
                let page = ask(&indexes, &plan);
                let Some(start) = page.first() else { break };
                plan.cursor = beside(start, true);
                backwards.splice(0..0, page.iter().map(|hit| hit.ordinal));
            }
            assert_eq!(backwards, whole, "before, by {sort}");
        }
    }
}

#[test]
fn a_page_of_many_matches_is_that_of_a_plain_sort() {
    const SEED: u64 = 23;
    const DOCUMENTS: u32 = 6_000;
    let mut random = Random::new(SEED);
    // Runs of one value, few values with many ties, some missing, some with several values.
    let documents: Vec<Numbered> = (0..DOCUMENTS)
        .map(|at| {
            let text = ["leek soup", "soup", "leek", "oil"][random.below(4)];
            let number = if at / 500 % 2 == 0 { f64::from(at / 500) } else { random.below(30) as f64 - 9.5 };
            match random.below(8) {
                0 => (json!({"text": text}), None),
                1 => (json!({"text": text, "n": [number, number - 3.0]}), Some([number - 3.0, number])),
                _ => (json!({"text": text, "n": number, "m": at % 7}), Some([number, number])),
            }
        })
        .collect();
    let index = TextIndex::open(Path::new("unused"), memory_options(json!(null))).expect("opens");
    let rows: Vec<_> = (0..DOCUMENTS).map(|at| put(&key_of(at), at, documents[at as usize].0.clone())).collect();
    index.apply(&frame(&rows, 1)).expect("applied");
    index.commit(u64::from(DOCUMENTS)).expect("a commit");
    let matches: Vec<u32> = (0..DOCUMENTS).filter(|at| documents[*at as usize].0["text"] != "oil").collect();
    assert!(matches.len() > 4_000);
    check_pages(&index, &documents, &matches);
    // The same where documents are hidden.
    let (gone, left): (Vec<u32>, Vec<u32>) = matches.into_iter().partition(|at| at % 5 == 0);
    let rows: Vec<_> = gone.iter().map(|at| delete(&key_of(*at), *at)).collect();
    index.apply(&frame(&rows, u64::from(DOCUMENTS) + 1)).expect("applied");
    index.commit(u64::from(2 * DOCUMENTS)).expect("a commit");
    check_pages(&index, &documents, &left);
}

/// Documents with the least and the greatest of their numbers.
type Numbered = (Value, Option<[f64; 2]>);

fn check_pages(index: &Arc<TextIndex>, documents: &[Numbered], matches: &[u32]) {
    let indexes = [Arc::clone(index)];
    for (desc, by_two) in [(false, false), (true, false), (false, true), (true, true)] {
        let order = |at: &u32| {
            let (body, values) = &documents[*at as usize];
            let value = values.map(|[least, greatest]| if desc { -greatest } else { least });
            let second = if by_two { body["m"].as_i64().unwrap_or(i64::MAX) } else { 0 };
            (value.is_none(), value.unwrap_or(0.0), second, key_of(*at))
        };
        let mut whole = matches.to_vec();
        whole.sort_by(|left, right| order(left).partial_cmp(&order(right)).expect("numbers"));
        let mut plan = plan(json!({"kind": "match", "field": "text", "text": "soup leek"}));
        let mut sort = vec![json!({"field": "n", "desc": desc})];
        sort.extend(by_two.then(|| json!({"field": "m"})));
        plan.sort = serde_json::from_value(json!(sort)).expect("sort fields");
        for (offset, limit) in [(0, 1), (0, 10), (3, 300), (0, 5_000)] {
            (plan.offset, plan.limit) = (offset, limit);
            let found = query(&indexes, &plan, &CancelFlag::default()).expect("the query runs");
            assert_eq!((found.total, found.total_is_exact), (matches.len() as u64, true));
            let found: Vec<u32> = found.hits.iter().map(|hit| hit.ordinal).collect();
            let end = (offset + limit).min(whole.len());
            assert_eq!(found, whole[offset..end], "descending {desc}, two fields {by_two}, {limit}");
        }
        (plan.offset, plan.limit) = (0, 700);
        plan.cursor = beside(ask(&indexes, &plan).last().expect("a page"), false);
        let next: Vec<u32> = ask(&indexes, &plan).iter().map(|hit| hit.ordinal).collect();
        assert_eq!(next, whole[700..1_400], "descending {desc}, two fields {by_two}");
    }
}

#[test]
fn a_page_whose_matches_come_last_in_a_large_segment_is_that_of_a_plain_sort() {
    const DOCUMENTS: u32 = 70_000;
    const LAST: u32 = 2_000;
    let index = TextIndex::open(Path::new("unused"), memory_options(json!(null))).expect("opens");
    let text = |at: u32| if at < DOCUMENTS - LAST { "oil" } else { "soup" };
    let rows: Vec<_> = (0..DOCUMENTS).map(|at| put(&key_of(at), at, json!({"text": text(at), "n": at / 3}))).collect();
    index.apply(&frame(&rows, 1)).expect("applied");
    index.rest().expect("one segment");
    index.commit(u64::from(DOCUMENTS)).expect("a commit");
    let mut plan = plan(json!({"kind": "match", "field": "text", "text": "soup leek"}));
    for (desc, first) in [(false, DOCUMENTS - LAST), (true, DOCUMENTS - 1)] {
        plan.sort = serde_json::from_value(json!([{"field": "n", "desc": desc}])).expect("sort fields");
        plan.limit = 1;
        let found = query(std::slice::from_ref(&index), &plan, &CancelFlag::default()).expect("the query runs");
        assert_eq!(found.total, u64::from(LAST));
        assert_eq!(found.hits[0].ordinal, first - if desc { (DOCUMENTS - 1) % 3 } else { 0 });
    }
}

#[test]
fn writes_between_pages_skip_and_repeat_nothing_else() {
    let [one, _] = indexes();
    let index = &one[0];
    let mut plan = plan(json!({"kind": "match_all"}));
    plan.sort = serde_json::from_value(json!([{"field": "tag"}])).expect("sort fields");
    let whole: Vec<u32> = ask(&one, &plan).iter().map(|hit| hit.ordinal).collect();
    plan.limit = 20;
    let (mut seen, mut touched) = (Vec::new(), Vec::new());
    loop {
        let page = ask(&one, &plan);
        let Some(end) = page.last() else { break };
        seen.extend(page.iter().map(|hit| hit.ordinal));
        plan.cursor = beside(end, false);
        // The document of the cursor goes, and another one takes a value that no segment has met.
        let other = page[0].ordinal;
        let rows = [delete(&key_of(end.ordinal), end.ordinal), put(&key_of(other), other, json!({"tag": "aaa"}))];
        touched.extend([end.ordinal, other]);
        index.apply(&frame(&rows, 1000)).expect("applied");
        index.commit(1000).expect("a commit");
    }
    let untouched = |ordinals: &[u32]| -> Vec<u32> {
        ordinals.iter().copied().filter(|ordinal| !touched.contains(ordinal)).collect()
    };
    assert_eq!(untouched(&seen), untouched(&whole));
}

#[test]
fn a_cursor_counts_all_matches() {
    let index = index_of(json!(null), &[json!({"n": 1}), json!({"n": 2}), json!({"n": 3})]);
    let mut plan = plan(json!({"kind": "match_all"}));
    plan.sort = serde_json::from_value(json!([{"field": "n"}])).expect("sort fields");
    let first = run(&index, &plan).hits.remove(0);
    plan.cursor = Some(PageCursor { position: first.position, key: "k0".to_owned(), before: false });
    let hits = run(&index, &plan);
    assert_eq!((hits.total, hits.hits.len()), (3, 2));
}

#[test]
fn a_cursor_of_other_fields_is_refused() {
    let index = index_of(json!(null), &[json!({"n": 1})]);
    let mut plan = plan(json!({"kind": "match_all"}));
    plan.sort = serde_json::from_value(json!([{"field": "n"}])).expect("sort fields");
    plan.cursor = Some(PageCursor { position: "[\"m\",\"m\"]".to_owned(), key: "k0".to_owned(), before: false });
    let refused = query(&[index], &plan, &CancelFlag::default()).expect_err("refused");
    assert_eq!(refused.code, "invalid_query");
}

#[test]
fn when_the_time_is_over_the_answer_is_partial_or_an_error() {
    let documents: Vec<Value> = (0..3000).map(|at| json!({"n": at, "text": "soup"})).collect();
    let index = index_of(json!(null), &documents);
    for sort in [json!([]), json!([{"field": "n"}])] {
        for count_only in [false, true] {
            let mut plan = plan(json!({"kind": "match", "text": "soup"}));
            plan.sort = serde_json::from_value(sort.clone()).expect("sort fields");
            plan.count_only = count_only;
            plan.timeout_ms = Some(0);
            let failed = query(std::slice::from_ref(&index), &plan, &CancelFlag::default()).expect_err("no time");
            assert_eq!(failed.code, "query_timeout");
            plan.allows_partial = true;
            let hits = run(&index, &plan);
            assert!(hits.is_partial && !hits.total_is_exact && hits.total < 3000);
            let cancelled = CancelFlag::default();
            cancelled.cancel();
            let failed = query(std::slice::from_ref(&index), &plan, &cancelled).expect_err("cancelled");
            assert_eq!(failed.code, "query_timeout");
        }
    }
}

#[test]
fn strings_that_are_declared_to_be_words_only_are_sorted_by_the_whole_of_them() {
    let schema = json!({"document_schemas": {"doc": {"schema": {"type": "object", "properties": {
        "title": {"type": "string", "x-service-types": ["text"]}}}}}});
    let documents = [
        json!({"title": "The quick fox"}),
        json!({"title": ["Zebras", "A quick fox"]}),
        json!({"title": "x".repeat(257)}),
        json!({"title": ""}),
        json!({"other": 1}),
        json!({"title": "The Quick fox"}),
    ];
    let index = index_of(schema, &documents);
    let ordinals = |desc: bool| -> Vec<u32> {
        let sort = json!([{"field": "title", "desc": desc}]);
        let plan = serde_json::from_value(json!({"query": {"kind": "match_all"}, "sort": sort, "limit": 10}));
        run(&index, &plan.expect("a plan")).hits.iter().map(|hit| hit.ordinal).collect()
    };
    assert_eq!(ordinals(false), [3, 1, 5, 0, 2, 4]);
    assert_eq!(ordinals(true), [1, 0, 5, 3, 2, 4]);
    let found = |query: Value| run(&index, &plan(query)).hits.iter().map(|hit| hit.ordinal).collect::<Vec<_>>();
    assert_eq!(found(json!({"kind": "exists", "field": "title"})).len(), 5, "short and long strings are there");
    assert!(found(json!({"kind": "term", "field": "title", "value": "The quick fox"})).is_empty(), "words only");
    assert!(found(json!({"kind": "range", "field": "title", "of": "term", "gte": "The"})).is_empty());
}

/// Every document has the field, so that its column is read in blocks; some documents are deleted.
#[test]
fn the_first_of_many_are_those_of_a_plain_sort() {
    let mut random = Random::new(11);
    for number in [
        |random: &mut Random| json!(random.below(9) as i64 - 4),
        |random: &mut Random| json!(random.below(1 << 20) as f64 * 0.25 - 100.0),
        |random: &mut Random| json!((1u64 << 52) + random.below(7) as u64),
    ] {
        let documents: Vec<Value> =
            (0..1_000).map(|_| json!({"text": "soup", "n": number(&mut random), "m": random.below(3)})).collect();
        let index = index_of(json!(null), &documents);
        let gone: Vec<u32> = (0..1_000).filter(|_| random.below(6) == 0).collect();
        let rows: Vec<_> = gone.iter().map(|ordinal| delete(&format!("k{ordinal}"), *ordinal)).collect();
        index.apply(&frame(&rows, 2_000)).expect("applied");
        index.commit(3_000).expect("a commit");
        for (desc, second) in [(false, None), (true, None), (false, Some(true)), (true, Some(false))] {
            let mut left: Vec<u32> = (0..1_000).filter(|ordinal| !gone.contains(ordinal)).collect();
            let value = |ordinal: u32, name: &str| documents[ordinal as usize][name].as_f64().expect("a number");
            left.sort_by(|a, b| {
                let by = |name: &str, desc: bool| {
                    let order = value(*a, name).total_cmp(&value(*b, name));
                    if desc { order.reverse() } else { order }
                };
                let second = second.map_or(std::cmp::Ordering::Equal, |desc| by("m", desc));
                by("n", desc).then(second).then_with(|| format!("k{a}").cmp(&format!("k{b}")))
            });
            let mut sort = vec![json!({"field": "n", "desc": desc})];
            sort.extend(second.map(|desc| json!({"field": "m", "desc": desc})));
            let mut plan = plan(json!({"kind": "match", "text": "soup"}));
            plan.sort = serde_json::from_value(Value::from(sort)).expect("sort fields");
            (plan.offset, plan.limit) = (3, 20);
            let hits = query(&[Arc::clone(&index)], &plan, &CancelFlag::default()).expect("the query runs");
            assert_eq!(hits.total, left.len() as u64);
            assert_eq!(hits.hits.iter().map(|hit| hit.ordinal).collect::<Vec<_>>(), left[3..23]);
        }
    }
}
