//! A document's score is the same by every plan: with a filter and without, on every page, in every order, whether matches
//! are counted, and however the documents are spread over segments.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use super::support::*;
use serde_json::{Value, json};
use sundew_engine::full_text::{DerivedIndex, TextIndex};

const SEEDS: [u64; 6] = [11, 11 ^ 173_961_102_073_399, 20_261_128, 3, 4, 5];

const COUNT: usize = 1_500;

const WORDS: [&str; 10] = ["soup", "bread", "leek", "salt", "water", "fire", "thyme", "pan", "onion", "garlic"];

/// Some words are much rarer than others.
fn words(random: &mut Random, most: usize) -> Vec<&'static str> {
    let count = 1 + random.below(most);
    (0..count).map(|_| WORDS[random.below(WORDS.len()) * random.below(WORDS.len()) / WORDS.len()]).collect()
}

fn document(random: &mut Random, at: usize) -> Value {
    let (title, body) = (words(random, 4).join(" "), words(random, 30).join(" "));
    json!({"title": title, "body": body, "n": at, "group": at % 7, "tag": format!("t{}", at % 10)})
}

/// In as many segments as there are `parts`; one document in nine is deleted.
fn index_of_parts(documents: &[Value], parts: usize) -> Arc<TextIndex> {
    let index = TextIndex::open(Path::new("unused"), memory_options(json!(null))).expect("an index in memory");
    let key = |at: usize| format!("k{at:05}");
    for part in 0..parts {
        let part = documents.len() * part / parts..documents.len() * (part + 1) / parts;
        let (first, last) = (part.start as u64 + 1, part.end as u64);
        let rows: Vec<Row> = part.map(|at| put(&key(at), at as u32, documents[at].clone())).collect();
        index.apply(&frame(&rows, first)).expect("rows are applied");
        index.commit(last).expect("a commit");
    }
    let deleted: Vec<Row> = (0..documents.len()).step_by(9).map(|at| delete(&key(at), at as u32)).collect();
    index.apply(&frame(&deleted, documents.len() as u64 + 1)).expect("rows are applied");
    index.commit((documents.len() + deleted.len()) as u64).expect("a commit");
    assert_eq!(index.stats().segment_count, parts);
    index
}

/// Three words or more.
fn text(random: &mut Random) -> String {
    let count = 3 + random.below(4);
    let mut chosen: Vec<&str> = Vec::new();
    while chosen.len() < count {
        let word = WORDS[random.below(WORDS.len())];
        if !chosen.contains(&word) {
            chosen.push(word);
        }
    }
    chosen.join(" ")
}

fn queries(random: &mut Random) -> Vec<Value> {
    let field = |random: &mut Random| ["title", "body"][random.below(2)];
    let text_match = |random: &mut Random| json!({"kind": "match", "field": field(random), "text": text(random)});
    let boosts = [1.0, 0.3, 1.7, 2.0];
    let clause = |random: &mut Random| {
        let words = words(random, 3).join(" ");
        let boost = boosts[random.below(4)];
        match random.below(4) {
            0 => json!({"kind": "term", "field": "group", "value": random.below(7), "boost": boost}),
            1 => json!({"kind": "phrase", "field": "body", "text": words, "boost": boost}),
            2 => json!({"kind": "prefix", "field": "body", "value": "s", "boost": boost}),
            _ => json!({"kind": "match", "field": field(random), "text": words, "boost": boost}),
        }
    };
    let clauses = |random: &mut Random, count: usize| (0..count).map(|_| clause(random)).collect::<Vec<Value>>();
    let mut queries = vec![
        json!({"kind": "match", "field": "body", "text": WORDS.join(" ")}),
        json!({"kind": "match", "text": text(random)}),
        json!({"kind": "match", "text": text(random), "operator": "and"}),
        json!({"kind": "match", "text": text(random), "boost": 0.7}),
        json!({"kind": "match", "field": "body", "text": text(random), "fuzziness": 1}),
    ];
    for every in [false, true] {
        let mut query = text_match(random);
        query["operator"] = json!(if every { "and" } else { "or" });
        queries.push(query);
    }
    for _ in 0..3 {
        let (must, should, must_not) = (random.below(4), random.below(5), random.below(2));
        let min_should = if should > 0 { random.below(should + 1) } else { 0 };
        let min_should = if must == 0 { min_should.max(1) } else { min_should };
        let [must, should, must_not, filter] = [must, should, must_not, 1].map(|count| clauses(random, count));
        let query = json!({"kind": "bool", "must": must, "should": should, "must_not": must_not, "filter": filter,
            "min_should": min_should});
        queries.push(json!({"kind": "bool", "should": [query.clone(), text_match(random), clauses(random, 1)[0]]}));
        queries.push(query);
    }
    queries
}

/// A plan of `query` and what `members` say besides.
fn plan_of(query: &Value, members: &Value) -> Value {
    let mut plan = json!({"query": query, "limit": 1_000_000});
    plan.as_object_mut().expect("a plan").extend(members.as_object().cloned().expect("members"));
    plan
}

/// By ordinal.
type Scores = HashMap<u32, u32>;

fn scores(index: &Arc<TextIndex>, plan: &Value) -> Scores {
    let found = run(index, &serde_json::from_value(plan.clone()).expect("a plan")).hits;
    found.iter().map(|hit| (hit.ordinal, hit.score.to_bits())).collect()
}

#[test]
fn the_score_of_a_document_does_not_depend_on_the_plan() {
    let mut compared = 0;
    for seed in SEEDS {
        println!("seed {seed}");
        let mut random = Random::new(seed);
        let documents: Vec<Value> = (0..COUNT).map(|at| document(&mut random, at)).collect();
        let indexes = [1, 3, 8].map(|parts| index_of_parts(&documents, parts));
        for query in queries(&mut random) {
            let plan = |members: Value| plan_of(&query, &members);
            let all = scores(&indexes[0], &plan(json!({"exact_total": true})));
            let few = 5 + random.below(30);
            // Asked for the second time, a filter is known.
            let under = |bound: usize| json!([{"kind": "range", "field": "n", "lt": bound}]);
            let by_score = json!([{"field": "_score", "desc": true}]);
            for plan in [
                plan(json!({})),
                plan(json!({"limit": 3})),
                plan(json!({"limit": 10, "total_exact_up_to": 0})),
                plan(json!({"limit": 40, "total_exact_up_to": 20})),
                plan(json!({"filter": under(few)})),
                plan(json!({"filter": under(few)})),
                plan(json!({"filter": under(COUNT - few), "limit": 20})),
                plan(json!({"filter": under(COUNT - few), "total_exact_up_to": 0, "limit": 20})),
                plan(json!({"filter": [{"kind": "term", "field": "tag", "value": "t3"}]})),
                plan(json!({"exclusion": under(few), "key_prefix": "k0"})),
                plan(json!({"sort": by_score})),
                plan(json!({"sort": by_score, "filter": under(few)})),
                plan(json!({"sort": by_score, "filter": under(COUNT - few), "limit": 10})),
            ] {
                for index in &indexes {
                    let found = scores(index, &plan);
                    compared += found.len();
                    for (ordinal, score) in found {
                        let expected = all.get(&ordinal).copied().map(f32::from_bits);
                        assert_eq!(Some(f32::from_bits(score)), expected, "seed {seed}: {ordinal} by {plan}");
                    }
                }
            }
        }
    }
    assert!(compared > 100_000, "{compared} scores were compared");
}

#[test]
fn a_word_of_all_documents_and_a_very_long_text_add_up_as_others_do() {
    // The word scores next to nothing, least of all in the long text, so that sums in double precision are rounded, too.
    let mut random = Random::new(SEEDS[0]);
    println!("seed {}", SEEDS[0]);
    let mut documents: Vec<Value> =
        (0..20_000).map(|at| json!({"body": format!("every {}", words(&mut random, 4).join(" ")), "n": at})).collect();
    documents[77] = json!({"body": format!("soup {} every leek", "filler ".repeat(150_000)), "n": 77});
    let index = index_of(json!(null), &documents);
    for operator in ["or", "and"] {
        let query = json!({"kind": "match", "field": "body", "text": "leek every soup bread", "operator": operator});
        let all = scores(&index, &plan_of(&query, &json!({"exact_total": true})));
        let under = |bound: usize| json!([{"kind": "range", "field": "n", "lt": bound}]);
        for members in [
            json!({"sort": [{"field": "_score", "desc": true}]}),
            json!({"limit": 30, "total_exact_up_to": 0}),
            json!({"filter": under(100)}),
            json!({"filter": under(100)}),
            json!({"filter": under(19_000)}),
        ] {
            let found = scores(&index, &plan_of(&query, &members));
            assert!(!found.is_empty() && found.iter().all(|(ordinal, score)| all[ordinal] == *score), "{members}");
        }
        let best = |members: Value| -> Vec<u32> {
            let plan = serde_json::from_value(plan_of(&query, &members)).expect("a plan");
            run(&index, &plan).hits.iter().map(|hit| hit.ordinal).collect()
        };
        let whole = best(json!({"exact_total": true}));
        assert_eq!(best(json!({"limit": 50, "total_exact_up_to": 0})), whole[..50]);
        assert_eq!(whole.len(), if operator == "or" { 20_000 } else { all.len() });
    }
}
