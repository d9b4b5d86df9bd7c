//! Filters: the same answer the first time, when they are remembered, and after the index has changed.

use std::path::Path;
use std::sync::Arc;

use super::support::*;
use serde_json::{Value, json};
use sundew_engine::full_text::{CancelFlag, DerivedIndex, QueryPlan, TextIndex, matching_ordinals};

const WORDS: [&str; 8] = ["soup", "bread", "leek", "salt", "water", "fire", "thyme", "pan"];

fn key(at: u32) -> String {
    format!("k{at:05}")
}

fn rows(random: &mut Random, ordinals: std::ops::Range<u32>) -> Vec<Row> {
    let row = |at: u32| {
        let count = 1 + random.below(12);
        // The square of an even draw: some words are much rarer than others.
        let words: Vec<&str> =
            (0..count).map(|_| WORDS[random.below(WORDS.len()) * random.below(WORDS.len()) / WORDS.len()]).collect();
        put(&key(at), at, json!({"body": words.join(" "), "n": at, "tag": format!("t{}", at % 10)}))
    };
    ordinals.map(row).collect()
}

type LetsThrough = fn(u32) -> bool;

/// Conditions as members of a plan, and what they let through.
fn conditions() -> Vec<(Value, LetsThrough)> {
    let under = |bound: u32| json!({"kind": "range", "field": "n", "lt": bound});
    let tag = |tag: &str| json!({"kind": "term", "field": "tag", "value": tag});
    vec![
        (json!({"filter": [under(20)]}), |at| at < 20),
        (json!({"filter": [under(2500)]}), |at| at < 2500),
        (json!({"filter": [tag("t3")]}), |at| at % 10 == 3),
        (json!({"filter": [tag("t3"), under(100)], "exclusion": [under(50)]}), |at| {
            at % 10 == 3 && (50..100).contains(&at)
        }),
        (json!({"exclusion": [tag("t3")]}), |at| at % 10 != 3),
        (json!({"key_prefix": "k001"}), |at| (100..200).contains(&at)),
        (json!({"filter": [tag("nowhere")]}), |_| false),
    ]
}

/// What `members` of a plan let through, by the index itself.
fn ordinals_of(index: &Arc<TextIndex>, members: &Value) -> Vec<u32> {
    let mut request = json!({"limit": 0});
    request.as_object_mut().expect("a plan").extend(members.as_object().cloned().expect("members"));
    let plan: QueryPlan = serde_json::from_value(request).expect("a plan");
    let bits = matching_ordinals(index, &plan, &CancelFlag::default()).expect("ordinals");
    (0..bits.len() as u32 * 8).filter(|at| bits[*at as usize / 8] >> (at % 8) & 1 == 1).collect()
}

fn check_all(index: &Arc<TextIndex>, when: &str) {
    let all = run(index, &QueryPlan { limit: 10_000, ..plan(json!({"kind": "match_all"})) }).hits;
    let mut all: Vec<u32> = all.iter().map(|hit| hit.ordinal).collect();
    all.sort_unstable();
    for (members, lets_through) in conditions().into_iter().chain([(json!({}), (|_| true) as LetsThrough)]) {
        let expected: Vec<u32> = all.iter().copied().filter(|at| lets_through(*at)).collect();
        assert_eq!(ordinals_of(index, &members), expected, "{when}: {members}");
    }
    let matching = |text: &str| json!({"kind": "match", "field": "body", "text": text});
    let queries = [
        matching("soup"),
        matching("soup thyme pan"),
        json!({"kind": "match", "field": "body", "text": "soup bread", "operator": "and"}),
        json!({"kind": "bool", "must": [matching("bread salt")], "should": [matching("leek")], "must_not": [matching("pan")]}),
        json!({"kind": "bool", "should": [matching("soup"), matching("bread"), matching("leek")], "min_should": 2}),
        json!({"kind": "phrase", "field": "body", "text": "soup bread"}),
        json!({"kind": "prefix", "field": "body", "value": "s", "boost": 2.0}),
        json!({"kind": "match_all"}),
    ];
    for query in queries {
        let unfiltered = QueryPlan { limit: 10_000, exact_total: true, ..plan(query.clone()) };
        let unfiltered = run(index, &unfiltered).hits;
        for (members, lets_through) in conditions() {
            let mut request = json!({"query": query, "limit": 10_000});
            request.as_object_mut().expect("a plan").extend(members.as_object().cloned().expect("members"));
            let mut plan: QueryPlan = serde_json::from_value(request).expect("a plan");
            let expected: Vec<(u32, f32)> =
                unfiltered.iter().filter(|hit| lets_through(hit.ordinal)).map(|hit| (hit.ordinal, hit.score)).collect();
            for (turn, limit) in [10, 10, 10_000, 3, 0].into_iter().enumerate() {
                plan.limit = limit;
                let hits = run(index, &plan);
                let found: Vec<(u32, f32)> = hits.hits.iter().map(|hit| (hit.ordinal, hit.score)).collect();
                let what = format!("{when}: {query} {members}, turn {turn}");
                assert_eq!(found, expected[..limit.min(expected.len())], "{what}");
                let all = expected.len() as u64;
                let is_bound = all > 1000 && (1000..=all).contains(&hits.total);
                assert!(if hits.total_is_exact { hits.total == all } else { is_bound }, "{what}: {}", hits.total);
            }
            plan.count_only = true;
            assert_eq!(run(index, &plan).total, expected.len() as u64, "{when}: the number of {query} {members}");
        }
    }
}

#[test]
fn filters_mean_the_same_every_time() {
    for seed in [11, 11 ^ 173_961_102_073_399] {
        println!("seed {seed}");
        check_before_and_after_changes(&mut Random::new(seed));
    }
}

fn check_before_and_after_changes(random: &mut Random) {
    let index = TextIndex::open(Path::new("unused"), memory_options(json!(null))).expect("an index in memory");
    for part in [0..2000, 2000..2900, 2900..3000] {
        let last = part.end;
        index.apply(&frame(&rows(random, part.clone()), u64::from(part.start) + 1)).expect("rows are applied");
        index.commit(u64::from(last)).expect("a commit");
    }
    check_all(&index, "at first");
    let mut changes: Vec<Row> = (0..3000).step_by(7).map(|at| delete(&key(at), at)).collect();
    changes.extend(rows(random, 3000..3100));
    // Written again: the older version leaves its segment, the new one is in another.
    changes.extend(rows(random, 150..160));
    index.apply(&frame(&changes, 3001)).expect("rows are applied");
    index.commit(9000).expect("a commit");
    check_all(&index, "after changes");
}
