//! Words that are needed, each in any of the fields: the same documents are found whether the fields are sought in or
//! read by windows.

use std::collections::HashMap;

use super::support::*;
use serde_json::{Value, json};

const SEEDS: [u64; 3] = [7, 20_261_128, 41];
/// Windows are read for words of some thousand documents, and rarer ones are sought.
const COUNT: usize = 9_000;
const WORDS: [&str; 8] = ["soup", "bread", "leek", "salt", "water", "fire", "onion", "garlic"];
const FIELDS: [&str; 3] = ["title", "body", "note"];

/// The word `at` is in about one document of `2^at`.
fn document(random: &mut Random) -> Value {
    let text = |random: &mut Random| {
        let words = WORDS.iter().enumerate().filter(|(at, _)| random.below(3 << at) == 0).map(|(_, word)| *word);
        words.collect::<Vec<_>>().join(" ")
    };
    FIELDS.iter().map(|field| ((*field).to_owned(), json!(text(random)))).collect::<serde_json::Map<_, _>>().into()
}

fn has(document: &Value, word: &str) -> bool {
    FIELDS.iter().any(|field| document[field].as_str().is_some_and(|text| text.split(' ').any(|each| each == word)))
}

#[test]
fn documents_that_have_every_word_in_some_field() {
    for seed in SEEDS {
        println!("seed {seed}");
        let mut random = Random::new(seed);
        let documents: Vec<Value> = (0..COUNT).map(|_| document(&mut random)).collect();
        let index = index_of(Value::Null, &documents);
        for _ in 0..40 {
            let [first, second, third, other] = [(); 4].map(|()| WORDS[random.below(WORDS.len())]);
            let anywhere = |text: &str, operator: &str| json!({"kind": "match", "text": text, "operator": operator});
            let one_of = |words: [&str; 2]| anywhere(&words.join(" "), "or");
            let every = format!("{first} {second} {third}");
            let unions = json!({"kind": "bool", "must": [one_of([first, second]), anywhere(third, "or")],
                "must_not": [anywhere(other, "or")]});
            let is_in_unions = |document: &Value| {
                (has(document, first) || has(document, second)) && has(document, third) && !has(document, other)
            };
            let in_every = |document: &Value| [first, second, third].iter().all(|word| has(document, word));
            for (query, is_expected) in
                [(anywhere(&every, "and"), &in_every as &dyn Fn(&Value) -> bool), (unions, &is_in_unions)]
            {
                let expected = documents.iter().enumerate().filter(|(_, document)| is_expected(document));
                let expected: Vec<u32> = expected.map(|(at, _)| at as u32).collect();
                let plan = |members: Value| {
                    let mut plan = json!({"query": query, "limit": COUNT});
                    plan.as_object_mut().expect("a plan").extend(members.as_object().cloned().expect("members"));
                    run(&index, &serde_json::from_value(plan).expect("a plan"))
                };
                let found = plan(json!({"exact_total": true}));
                let mut ordinals: Vec<u32> = found.hits.iter().map(|hit| hit.ordinal).collect();
                ordinals.sort_unstable();
                assert_eq!(ordinals, expected, "seed {seed}: {query}");
                let scores: HashMap<u32, u32> =
                    found.hits.iter().map(|hit| (hit.ordinal, hit.score.to_bits())).collect();
                let best = plan(json!({"limit": 10, "total_exact_up_to": 0})).hits;
                assert_eq!(best.len(), expected.len().min(10), "seed {seed}: {query}");
                assert!(best.iter().all(|hit| scores[&hit.ordinal] == hit.score.to_bits()), "seed {seed}: {query}");
            }
        }
    }
}
