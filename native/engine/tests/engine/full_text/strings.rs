//! Whole strings of every length, beside a plain comparison of each document's strings.

use std::path::Path;
use std::sync::Arc;

use super::support::*;
use serde_json::{Value, json};
use sundew_engine::full_text::{DerivedIndex, TextIndex};

const SEED: u64 = 20_261_121;
const DOCUMENTS: usize = 400;

/// Strings that share long beginnings, some equal, around the length from which terms are no longer texts.
fn string(random: &mut Random) -> String {
    let stem = ["a", "https://example.org/en/articles/", "é日", "0b9cf1d2-77aa-4c55-9b1e-"][random.below(4)];
    let tail: String = (0..random.below(28)).map(|_| ["a", "b", "~", "日"][random.below(4)]).collect();
    if random.below(3) == 0 { stem.to_owned() } else { format!("{stem}{tail}") }
}

/// Some documents hold two strings, some none; the index has several segments and some deleted documents.
fn documents(random: &mut Random) -> (Arc<TextIndex>, Vec<Vec<String>>) {
    let schema = json!({"default_type": "t", "document_schemas": {"t": {"schema": {
        "properties": {"s": {"x-service-types": ["keyword"]}}}}}});
    let index = TextIndex::open(Path::new("unused"), memory_options(schema)).expect("an index in memory");
    let mut held: Vec<Vec<String>> = Vec::new();
    for part in 0..4 {
        let mut rows = Vec::new();
        for at in 0..DOCUMENTS / 4 {
            let ordinal = (part * DOCUMENTS / 4 + at) as u32;
            let strings: Vec<String> = (0..random.below(3)).map(|_| string(random)).collect();
            rows.push(put(&key(ordinal), ordinal, json!({ "s": strings })));
            held.push(strings);
        }
        let gone = random.below(held.len());
        rows.push(delete(&key(gone as u32), gone as u32));
        held[gone].clear();
        index.apply(&frame(&rows, held.len() as u64 * 2)).expect("rows are applied");
        index.commit(held.len() as u64 * 2 + 200).expect("a commit");
    }
    (index, held)
}

fn key(ordinal: u32) -> String {
    format!("{}{ordinal:04}", if ordinal.is_multiple_of(2) { "k" } else { "a-key-that-is-longer-than-a-term/" })
}

#[test]
fn strings_of_every_length_are_compared_whole() {
    let random = &mut Random::new(SEED);
    let (index, held) = documents(random);
    let expect = |query: Value, wanted: &dyn Fn(&str) -> bool| {
        let expected: Vec<u32> =
            (0..held.len()).filter(|&at| held[at].iter().any(|text| wanted(text))).map(|at| at as u32).collect();
        assert_eq!(matching(&index, query.clone()), expected, "seed {SEED}: {query}");
        expected.len()
    };
    let mut found = 0;
    for _ in 0..100 {
        let (one, other) = (string(random), string(random));
        found += expect(json!({"kind": "term", "field": "s", "value": one}), &|text| text == one);
        expect(json!({"kind": "prefix", "field": "s", "value": one}), &|text| text.starts_with(&one));
        let (low, high) = if one < other { (one, other) } else { (other, one) };
        expect(json!({"kind": "range", "field": "s", "gte": low, "lt": high, "of": "term"}), &|text| {
            *text >= *low && *text < *high
        });
        expect(json!({"kind": "range", "field": "s", "gt": low, "of": "term"}), &|text| *text > *low);
        expect(json!({"kind": "range", "field": "s", "lte": high, "of": "term"}), &|text| *text <= *high);
        expect(json!({"kind": "wildcard", "field": "s", "pattern": format!("{low}*a")}), &|text| {
            text.strip_prefix(&*low).is_some_and(|rest| rest.ends_with('a'))
        });
        expect(json!({"kind": "fuzzy", "field": "s", "value": high, "fuzziness": 0}), &|text| text == high);
    }
    assert!(found > 100, "{found} found by equality");
}

#[test]
fn keys_of_every_length_are_found() {
    let random = &mut Random::new(SEED);
    let (index, held) = documents(random);
    let there: Vec<u32> = matching(&index, json!({"kind": "match_all"}));
    for ordinal in 0..held.len() as u32 {
        let expected: Vec<u32> = there.iter().copied().filter(|known| *known == ordinal).collect();
        assert_eq!(matching(&index, json!({"kind": "ids", "ids": [key(ordinal)]})), expected);
    }
    let odd: Vec<u32> = there.iter().copied().filter(|ordinal| ordinal % 2 == 1).collect();
    assert_eq!(matching(&index, json!({"kind": "prefix", "field": "_id", "value": "a-key-that-is-longer"})), odd);
    assert_eq!(matching(&index, json!({"kind": "wildcard", "field": "_id", "pattern": "*term/*"})), odd);
}
