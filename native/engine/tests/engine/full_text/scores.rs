//! Scores, order, totals, sorting, limits of a query.

use std::path::Path;
use std::sync::Arc;

use super::support::*;
use serde_json::{Value, json};
use sundew_engine::full_text::{CancelFlag, DerivedIndex, Hits, QueryPlan, TextIndex, query};

/// BM25 with k1 1.2 and b 0.75, idf = ln(1 + (N - n + 0.5) / (n + 0.5)).
fn bm25(documents: f32, containing: f32, frequency: f32, length: f32, average_length: f32) -> f32 {
    let idf = (1.0 + (documents - containing + 0.5) / (containing + 0.5)).ln();
    idf * frequency * 2.2 / (frequency + 1.2 * (1.0 - 0.75 + 0.75 * length / average_length))
}

#[test]
fn bm25_with_the_length_of_the_field_that_matched() {
    let long = "filler words that make this body much longer than any title could be today soup";
    let index = index_of(
        json!(null),
        &[
            json!({"title": "soup", "body": long}),
            json!({"title": "soup with leek", "body": "one"}),
            json!({"title": "bread", "body": "two three"}),
        ],
    );
    let hits = run(&index, &plan(json!({"kind": "match", "field": "title", "text": "soup"}))).hits;
    // Lengths without stop words: 1, 2, 1.
    let average = 4.0 / 3.0;
    let expected = [bm25(3.0, 2.0, 1.0, 1.0, average), bm25(3.0, 2.0, 1.0, 2.0, average)];
    assert_eq!(hits.iter().map(|hit| hit.ordinal).collect::<Vec<_>>(), [0, 1]);
    for (hit, expected) in hits.iter().zip(expected) {
        assert!((hit.score - expected).abs() < 1e-5, "{} is not {expected}", hit.score);
    }
    let boosted = run(&index, &plan(json!({"kind": "match", "field": "title", "text": "soup", "boost": 2}))).hits;
    assert!((boosted[0].score - 2.0 * expected[0]).abs() < 1e-5);
}

#[test]
fn a_text_scores_alike_in_a_slot_and_beyond_the_slots_of_another_range() {
    let others = || (0..64).map(|at| (format!("f{at}"), json!("filler")));
    let ranges: Vec<Arc<TextIndex>> = [false, true]
        .map(|is_beyond| {
            let documents = ["soup", "soup", "leek"].map(|text| {
                let others = others().filter(|_| is_beyond);
                Value::Object(others.chain([("text".to_owned(), json!(text))]).collect())
            });
            index_of(json!(null), &documents)
        })
        .into();
    let expected = bm25(6.0, 4.0, 1.0, 1.0, 1.0);
    let hits = ask(&ranges, &plan(json!({"kind": "match", "field": "text", "text": "soup"}))).hits;
    let scores: Vec<f32> = hits.iter().map(|hit| hit.score).collect();
    assert_eq!(scores.len(), 4);
    assert!(scores.iter().all(|score| (score - expected).abs() < 1e-5), "{scores:?} are not {expected}");
}

#[test]
fn values_score_by_their_rarity_alone() {
    let index = index_of(json!(null), &[json!({"n": 1, "tags": ["a", "b", "c"]}), json!({"n": 2}), json!({"n": 1})]);
    let hits = run(&index, &plan(json!({"kind": "term", "field": "n", "value": 2}))).hits;
    assert!((hits[0].score - bm25(3.0, 1.0, 1.0, 1.0, 1.0)).abs() < 1e-5);
}

#[test]
fn what_every_document_matches_scores_wherever_it_stands() {
    let index = index_of(json!(null), &[json!({"t": "soup", "n": 1}), json!({"t": "soup leek", "n": 2})]);
    let score = |node: Value| {
        let hits = run(&index, &plan(node)).hits;
        hits.iter().find(|hit| hit.ordinal == 0).map_or(f32::NAN, |hit| hit.score)
    };
    let soup = json!({"kind": "match", "field": "t", "text": "soup"});
    let nothing = json!({"kind": "term", "field": "t", "value": "nothing"});
    let alone = score(soup.clone());
    for (constant, value) in [
        (json!({"kind": "match_all"}), 1.0),
        (json!({"kind": "match_all", "boost": 3}), 3.0),
        (json!({"kind": "range", "field": "n", "gte": 1}), 1.0),
        (json!({"kind": "range", "field": "n", "gte": 1, "boost": 3}), 3.0),
        (json!({"kind": "bool", "must_not": [nothing]}), 1.0),
        (json!({"kind": "exists", "field": "n"}), score(json!({"kind": "exists", "field": "n"}))),
    ] {
        let both = score(json!({"kind": "bool", "must": [constant, soup]}));
        assert!((both - alone - value).abs() < 1e-4, "{constant}: {both} is not {alone} + {value}");
        let nested = json!({"kind": "bool", "must": [constant], "must_not": [nothing]});
        let deeper = score(json!({"kind": "bool", "must": [nested, soup], "should": [constant], "min_should": 0}));
        assert!((deeper - alone - 2.0 * value).abs() < 1e-4, "{constant}: {deeper} is not {alone} + 2 * {value}");
    }
}

#[test]
fn filters_and_exclusions_do_not_score() {
    let index = index_of(
        json!(null),
        &[json!({"t": "soup", "n": 1}), json!({"t": "soup leek", "n": 2}), json!({"t": "x", "n": 3})],
    );
    let soup = json!({"kind": "match", "field": "t", "text": "soup"});
    let alone = run(&index, &plan(soup.clone()));
    let mut filtered = plan(soup);
    filtered.filter = serde_json::from_value(json!([{"kind": "range", "field": "n", "lt": 3}])).expect("nodes");
    let with_filter = run(&index, &filtered);
    assert_eq!(with_filter.hits, alone.hits);
    filtered.exclusion = serde_json::from_value(json!([{"kind": "term", "field": "n", "value": 1}])).expect("nodes");
    let excluded = run(&index, &filtered);
    assert_eq!(
        excluded.hits.iter().map(|hit| (hit.ordinal, hit.score)).collect::<Vec<_>>(),
        [(1, alone.hits[1].score)]
    );
    let mut only_filters = filtered;
    only_filters.query = None;
    let hits = run(&index, &only_filters).hits;
    assert_eq!(hits.iter().map(|hit| (hit.ordinal, hit.score)).collect::<Vec<_>>(), [(1, 1.0)]);
}

const WORDS: [&str; 12] =
    ["soup", "bread", "leek", "salt", "water", "fire", "pan", "oil", "onion", "garlic", "pepper", "thyme"];

fn random_document(random: &mut Random, at: usize) -> Value {
    let mut words = |most: usize| {
        let count = 1 + random.below(most);
        (0..count).map(|_| WORDS[random.below(WORDS.len())]).collect::<Vec<_>>().join(" ")
    };
    // Which path takes which slot differs between ranges.
    let (title, body) = (words(5), words(20));
    let mut document = if at.is_multiple_of(3) {
        json!({"body": body, "title": title})
    } else {
        json!({"title": title, "body": body})
    };
    document["n"] = json!(random.below(50));
    if random.below(3) > 0 {
        document["tag"] = json!(WORDS[random.below(4)]);
    }
    if random.below(4) == 0 {
        document["mixed"] = [json!(3), json!("three"), json!(true), json!("2024-01-01")][random.below(4)].clone();
    }
    document
}

/// The same documents in one index and in four, in several commits.
fn one_and_four(documents: &[Value]) -> (Vec<Arc<TextIndex>>, Vec<Arc<TextIndex>>) {
    let spread = |ranges: usize| {
        let per_range = documents.len().div_ceil(ranges);
        let indexes = documents.chunks(per_range).enumerate().map(|(range, chunk)| {
            let index = TextIndex::open(Path::new("unused"), memory_options(json!(null))).expect("opens");
            for (piece, rows) in chunk.chunks(60).enumerate() {
                let first = range * per_range + piece * 60;
                let rows: Vec<Row> = rows
                    .iter()
                    .enumerate()
                    .map(|(at, document)| {
                        put(&format!("{:05}", (first + at) * 7919 % 100_003), (first + at) as u32, document.clone())
                    })
                    .collect();
                index.apply(&frame(&rows, first as u64 + 1)).expect("applied");
                index.commit((first + rows.len()) as u64).expect("a commit");
            }
            index
        });
        indexes.collect()
    };
    (spread(1), spread(4))
}

fn ask(indexes: &[Arc<TextIndex>], plan: &QueryPlan) -> Hits {
    query(indexes, plan, &CancelFlag::default()).expect("the query runs")
}

#[test]
fn one_range_and_four_answer_alike() {
    let mut random = Random::new(42);
    let documents: Vec<Value> = (0..400).map(|at| random_document(&mut random, at)).collect();
    let (one, four) = one_and_four(&documents);
    let queries = [
        json!({"kind": "match_all"}),
        json!({"kind": "match", "text": "soup leek"}),
        json!({"kind": "match", "field": "title", "text": "soup"}),
        json!({"kind": "match", "field": "body", "text": "bread pan fire", "operator": "and"}),
        json!({"kind": "phrase", "field": "body", "text": "soup bread"}),
        json!({"kind": "prefix", "field": "title", "value": "p"}),
        json!({"kind": "term", "field": "tag", "value": "leek"}),
        json!({"kind": "bool", "should": [{"kind": "match", "field": "title", "text": "oil"}, {"kind": "term", "field": "n", "value": 7}]}),
        json!({"kind": "bool", "must": [{"kind": "match", "text": "oil"}], "must_not": [{"kind": "match", "field": "title", "text": "soup"}]}),
    ];
    let sorts = [
        json!([]),
        json!([{"field": "n", "desc": true}]),
        json!([{"field": "tag"}, {"field": "n"}]),
        json!([{"field": "mixed"}]),
        json!([{"field": "mixed", "desc": true}, {"field": "_id", "desc": true}]),
        json!([{"field": "_score", "desc": true}, {"field": "n"}]),
        json!([{"field": "_id", "desc": true}]),
        json!([{"field": "nowhere"}]),
    ];
    for query in &queries {
        for sort in &sorts {
            let mut plan = plan(query.clone());
            plan.sort = serde_json::from_value(sort.clone()).expect("sort fields");
            let (whole, parts) = (ask(&one, &plan), ask(&four, &plan));
            let shape = |hits: &Hits| -> Vec<(u32, u32, Vec<Value>)> {
                hits.hits.iter().map(|hit| (hit.ordinal, hit.score.to_bits(), hit.sort.clone())).collect()
            };
            assert_eq!(shape(&whole), shape(&parts), "{query} by {sort}");
            assert_eq!((whole.total, whole.max_score), (parts.total, parts.max_score));
            assert!(whole.hits.len() as u64 == whole.total && whole.total > 0, "{query}");
            // Pages put together are the whole.
            let mut paged = Vec::new();
            for page in 0..whole.hits.len().div_ceil(37) {
                plan.offset = page * 37;
                plan.limit = 37;
                paged.extend(shape(&ask(&four, &plan)));
            }
            assert_eq!(paged, shape(&whole), "pages of {query} by {sort}");
        }
    }
}

#[test]
fn ties_go_by_key() {
    let (one, four) = one_and_four(&vec![json!({"t": "same"}); 300]);
    let mut keys: Vec<(String, u32)> = (0..300).map(|at| (format!("{:05}", at * 7919 % 100_003), at as u32)).collect();
    keys.sort();
    for indexes in [&one, &four] {
        for node in [json!({"kind": "match_all"}), json!({"kind": "match", "field": "t", "text": "same"})] {
            let mut plan = plan(node);
            plan.limit = 10;
            plan.total_exact_up_to = 0;
            let first: Vec<u32> = ask(indexes, &plan).hits.iter().map(|hit| hit.ordinal).collect();
            assert_eq!(first, keys[..10].iter().map(|(_, ordinal)| *ordinal).collect::<Vec<_>>());
        }
    }
}

#[test]
fn sort_values_are_typed_and_missing_comes_last() {
    let index = index_of(
        json!(null),
        &[
            json!({"n": 2}),
            json!({"n": 1.5}),
            json!({"s": "x"}),
            json!({"n": [7, 0]}),
            json!({"d": "2024-01-02T03:04:05.678Z"}),
            json!({"d": "2024-01-01", "b": true}),
        ],
    );
    let sorted = |field: &str, desc: bool| -> Vec<(u32, Value)> {
        let mut plan = plan(json!({"kind": "match_all"}));
        plan.sort = serde_json::from_value(json!([{"field": field, "desc": desc}])).expect("a sort field");
        run(&index, &plan).hits.iter().map(|hit| (hit.ordinal, hit.sort[0].clone())).collect()
    };
    let null = Value::Null;
    let expected =
        [(3, json!(0)), (1, json!(1.5)), (0, json!(2)), (2, null.clone()), (4, null.clone()), (5, null.clone())];
    assert_eq!(sorted("n", false), expected);
    let expected =
        [(3, json!(7)), (0, json!(2)), (1, json!(1.5)), (2, null.clone()), (4, null.clone()), (5, null.clone())];
    assert_eq!(sorted("n", true), expected);
    assert_eq!(sorted("d", false)[..2], [(5, json!("2024-01-01T00:00:00Z")), (4, json!("2024-01-02T03:04:05.678Z"))]);
    assert_eq!(sorted("b", true)[0], (5, json!(true)));
    assert_eq!(sorted("s", true)[0], (2, json!("x")));
    assert_eq!(sorted("_id", true)[0], (5, json!("k5")));
}

#[test]
fn totals_are_exact_up_to_a_bound_and_never_too_large() {
    let mut random = Random::new(9);
    let documents: Vec<Value> = (0..3000).map(|at| random_document(&mut random, at)).collect();
    let index = index_of(json!(null), &documents);
    let exact = run(
        &index,
        &QueryPlan { exact_total: true, ..plan(json!({"kind": "match", "field": "body", "text": "soup bread leek"})) },
    );
    assert!(exact.total_is_exact && exact.total > 1000);
    let mut bounded = plan(json!({"kind": "match", "field": "body", "text": "soup bread leek"}));
    bounded.limit = 5;
    bounded.total_exact_up_to = 10_000;
    let within = run(&index, &bounded);
    assert_eq!((within.total, within.total_is_exact), (exact.total, true));
    bounded.total_exact_up_to = 100;
    let beyond = run(&index, &bounded);
    assert!(!beyond.total_is_exact && beyond.total > 100 && beyond.total <= exact.total, "{}", beyond.total);
    assert_eq!(beyond.hits, exact.hits[..5]);
    assert_eq!(beyond.max_score, exact.max_score);
    bounded.count_only = true;
    let counted = run(&index, &bounded);
    assert_eq!((counted.total, counted.total_is_exact, counted.hits.len()), (exact.total, true, 0));
    bounded.count_only = false;
    bounded.limit = 0;
    assert_eq!(run(&index, &bounded).hits.len(), 0);
}

#[test]
fn expired_documents_are_hidden() {
    let index = TextIndex::open(Path::new("unused"), memory_options(json!(null))).expect("opens");
    let row = |at: u32, ttl_base_ms: i64| Row { ttl_base_ms, ..put(&format!("k{at}"), at, json!({"t": "soup"})) };
    index.apply(&frame(&[row(0, 0), row(1, 1000), row(2, 2000)], 1)).expect("applied");
    index.commit(3).expect("a commit");
    for (bound, expected) in
        [(None, vec![0, 1, 2]), (Some(999), vec![0, 1, 2]), (Some(1000), vec![0, 2]), (Some(5000), vec![0])]
    {
        for sort in [json!([]), json!([{"field": "_id"}])] {
            let mut plan = plan(json!({"kind": "match", "field": "t", "text": "soup"}));
            plan.expired_at_or_before_ms = bound;
            plan.sort = serde_json::from_value(sort).expect("sort fields");
            let hits = run(&index, &plan);
            assert_eq!(hits.hits.iter().map(|hit| hit.ordinal).collect::<Vec<_>>(), expected, "{bound:?}");
            plan.count_only = true;
            assert_eq!(run(&index, &plan).total, expected.len() as u64);
        }
    }
}

#[test]
fn of_many_that_score_alike_the_least_keys_come_first() {
    let mut random = Random::new(7);
    let index = TextIndex::open(Path::new("unused"), memory_options(json!(null))).expect("an index in memory");
    // A title scores once for its token and once for the whole string that begins so.
    let titles = [("pan lid", 2), ("lid pan", 1), ("lid", 0)];
    let mut expected = Vec::new();
    for segment in 0..3u32 {
        let rows: Vec<Row> = (segment * 1500..(segment + 1) * 1500)
            .map(|ordinal| {
                let (title, score) = titles[random.below(3)];
                let key = format!("{:05}-{ordinal}", random.below(20_000));
                let ttl_base_ms = if random.below(9) == 0 { 5 } else { 0 };
                if score > 0 {
                    expected.push((std::cmp::Reverse(score), key.clone(), ordinal, ttl_base_ms));
                }
                Row { ttl_base_ms, ..put(&key, ordinal, json!({ "title": title })) }
            })
            .collect();
        index.apply(&frame(&rows, 1)).expect("rows are applied");
        index.commit(u64::from(segment) + 1).expect("a commit");
    }
    expected.sort();
    let check = |expected: &[(std::cmp::Reverse<i32>, String, u32, i64)], expired: Option<i64>| {
        for (offset, limit) in [(0, 0), (0, 1), (0, 10), (7, 20), (0, 5000)] {
            let mut plan = plan(json!({"kind": "prefix", "field": "title", "value": "pa"}));
            (plan.offset, plan.limit, plan.expired_at_or_before_ms) = (offset, limit, expired);
            let found = run(&index, &plan);
            let page: Vec<u32> = found.hits.iter().map(|hit| hit.ordinal).collect();
            let wanted: Vec<u32> =
                expected.iter().skip(offset).take(limit).map(|(_, _, ordinal, _)| *ordinal).collect();
            assert_eq!(page, wanted, "{limit} from {offset}, {expired:?}");
            assert_eq!((found.total, found.max_score), (expected.len() as u64, 2.0));
        }
    };
    check(&expected, None);
    let alive: Vec<_> = expected.iter().filter(|(_, _, _, ttl_base)| *ttl_base == 0).cloned().collect();
    check(&alive, Some(10));
    let (gone, left): (Vec<_>, Vec<_>) = expected.into_iter().partition(|(_, _, ordinal, _)| ordinal % 3 == 0);
    let rows: Vec<Row> = gone.iter().map(|(_, key, ordinal, _)| delete(key, *ordinal)).collect();
    index.apply(&frame(&rows, 1)).expect("rows are applied");
    index.commit(4).expect("a commit");
    check(&left, None);
}

#[test]
fn key_prefixes_filter() {
    let documents: Vec<Value> = (0..30).map(|at| json!({"n": at})).collect();
    let index = index_of(json!(null), &documents);
    let mut plan = plan(json!({"kind": "range", "field": "n", "gte": 12}));
    plan.key_prefix = Some("k1".to_owned());
    let ordinals: Vec<u32> = run(&index, &plan).hits.iter().map(|hit| hit.ordinal).collect();
    assert_eq!(ordinals, [12, 13, 14, 15, 16, 17, 18, 19]);
}

#[test]
fn deadlines_and_cancellation_end_a_query() {
    let documents: Vec<Value> = (0..3000).map(|at| json!({"t": "soup", "n": at})).collect();
    let index = index_of(json!(null), &documents);
    for sort in [json!([]), json!([{"field": "n"}])] {
        let mut plan = plan(json!({"kind": "match_all"}));
        plan.sort = serde_json::from_value(sort).expect("sort fields");
        let cancelled = CancelFlag::default();
        cancelled.cancel();
        let indexes = std::slice::from_ref(&index);
        assert_eq!(query(indexes, &plan, &cancelled).expect_err("cancelled").code, "query_timeout");
        plan.timeout_ms = Some(0);
        assert_eq!(query(indexes, &plan, &CancelFlag::default()).expect_err("late").code, "query_timeout");
    }
}

#[test]
fn plans_are_strict() {
    for plan in [
        json!({"query": {"kind": "match", "field": "a", "text": "b", "wrong": 1}, "limit": 1}),
        json!({"query": {"kind": "unheard"}, "limit": 1}),
        json!({"limit": 1, "wrong": true}),
        json!({"query": {"kind": "match_none", "wrong": 1}, "limit": 1}),
    ] {
        assert!(serde_json::from_value::<QueryPlan>(plan.clone()).is_err(), "{plan}");
    }
    let index = index_of(json!(null), &[json!({"a": "b"})]);
    let unknown = plan(json!({"kind": "match", "field": "a", "text": "b", "analyzer": "klingon"}));
    let error = query(std::slice::from_ref(&index), &unknown, &CancelFlag::default()).expect_err("unknown analyzer");
    assert_eq!(error.code, "invalid_query");
}
