//! Words that are misspelt: which words they stand for.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::support::*;
use serde_json::{Map, Value, json};
use sundew_engine::full_text::{CancelFlag, DerivedIndex, QueryPlan, TextIndex, query};

const KEPT: usize = 64;

/// Words one letter away from `zzzzz`, the first letter the same, and in how many documents each is.
fn variants() -> Vec<(String, usize)> {
    // Without those that a stem may end before.
    let letters = || "abcfghijklmnopqrtuvwx".chars();
    let positions = (1..5).flat_map(|position| letters().map(move |letter| (position, letter)));
    let word = |(position, letter)| (0..5).map(|at| if at == position { letter } else { 'z' }).collect::<String>();
    positions.map(word).enumerate().map(|(at, word)| (word, 1 + at * 7 % 5)).collect()
}

/// The documents, each of one word.
fn documents() -> Vec<String> {
    let mut documents: Vec<String> =
        variants().into_iter().flat_map(|(word, count)| std::iter::repeat_n(word, count)).collect();
    documents.push("zzzzz".to_owned());
    let mut random = Random::new(7);
    for at in (1..documents.len()).rev() {
        documents.swap(at, random.below(at + 1));
    }
    documents
}

/// The documents of `ranges` indexes, each in two segments. Another path comes first in some, and as many as leave the text
/// no slot in others.
fn indexes(ranges: usize) -> Vec<Arc<TextIndex>> {
    let documents = documents();
    let index_of_range = |range: usize| {
        let index = TextIndex::open(std::path::Path::new("unused"), memory_options(json!(null))).expect("an index");
        let rows: Vec<Row> = (0..documents.len())
            .filter(|at| at % ranges == range)
            .map(|at| {
                let others = (0..[0, 1, 64][range]).map(|other| (format!("other{other}"), json!("x")));
                let document: Map<String, Value> = others.chain([("text".to_owned(), json!(documents[at]))]).collect();
                put(&format!("k{at:04}"), at as u32, document.into())
            })
            .collect();
        for (part, rows) in rows.chunks(rows.len().div_ceil(2)).enumerate() {
            index.apply(&frame(rows, part as u64 * 1_000 + 1)).expect("applied");
            index.commit(part as u64 * 1_000 + rows.len() as u64).expect("a commit");
        }
        index
    };
    (0..ranges).map(index_of_range).collect()
}

/// How many documents of each word are found.
fn found(indexes: &[Arc<TextIndex>], members: Value) -> BTreeMap<String, usize> {
    let documents = documents();
    let mut node = json!({"kind": "match", "field": "text", "text": "zzzzz", "prefix_length": 1});
    node.as_object_mut().expect("a node").extend(members.as_object().expect("members").clone());
    let plan: QueryPlan = serde_json::from_value(json!({"query": node, "limit": 1_000})).expect("a plan");
    let hits = query(indexes, &plan, &CancelFlag::default()).expect("hits").hits;
    assert_eq!(documents[hits[0].ordinal as usize], "zzzzz", "what is spelt so comes first");
    let mut words = BTreeMap::new();
    for hit in hits {
        *words.entry(documents[hit.ordinal as usize].clone()).or_insert(0) += 1;
    }
    words
}

#[test]
fn a_slip_stands_for_the_most_frequent_words_near_it_in_every_range() {
    let mut expected = variants();
    expected.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    expected.truncate(KEPT - 1);
    expected.push(("zzzzz".to_owned(), 1));
    let expected: BTreeMap<String, usize> = expected.into_iter().collect();
    assert_eq!(expected.len(), KEPT);
    for ranges in [1, 3] {
        let indexes = indexes(ranges);
        assert_eq!(found(&indexes, json!({"fuzziness": "typo"})), expected, "{ranges} ranges");
        let all = found(&indexes, json!({"fuzziness": 1}));
        assert_eq!(all.len(), variants().len() + 1, "edits that are asked for by number have no bound");
    }
}

#[test]
fn under_a_row_filter_words_are_counted_among_the_documents_that_it_permits() {
    let index = TextIndex::open(std::path::Path::new("unused"), memory_options(json!(null))).expect("an index");
    let hidden = variants().into_iter().filter(|(word, _)| word != "zzzza");
    let hidden = hidden.flat_map(|(word, count)| std::iter::repeat_n(word, count + 1)).map(|word| (word, "hidden"));
    let all: Vec<_> = hidden.chain([("zzzza".to_owned(), "own"), ("zzzzb".to_owned(), "own")]).collect();
    let document = |(at, (word, team)): (usize, &(String, &str))| {
        put(&format!("k{at:04}"), at as u32, json!({"text": word, "team": team}))
    };
    index.apply(&frame(&all.iter().enumerate().map(document).collect::<Vec<_>>(), 1)).expect("applied");
    index.commit(all.len() as u64).expect("a commit");
    let words = |row_filter: Value| -> BTreeMap<String, usize> {
        let node = json!({"kind": "match", "field": "text", "text": "zzzzz", "prefix_length": 1, "fuzziness": "typo"});
        let plan = json!({"query": node, "limit": 1_000, "row_filter": row_filter});
        let plan: QueryPlan = serde_json::from_value(plan).expect("a plan");
        let hits = query(&[Arc::clone(&index)], &plan, &CancelFlag::default()).expect("hits").hits;
        let mut words = BTreeMap::new();
        for hit in hits {
            *words.entry(all[hit.ordinal as usize].0.clone()).or_insert(0) += 1;
        }
        words
    };
    assert!(!words(json!([])).contains_key("zzzza"), "rare among all documents");
    let own = words(json!([{"kind": "term", "field": "team", "value": "own"}]));
    assert_eq!(own, BTreeMap::from([("zzzza".to_owned(), 1), ("zzzzb".to_owned(), 1)]));

    let node = json!({"kind": "match", "field": "text", "text": "zzzzz", "fuzziness": "typo"});
    let hurried = json!({"query": node, "limit": 10, "timeout_ms": 0, "allows_partial": true,
        "row_filter": [{"kind": "term", "field": "team", "value": "hidden"}]});
    let hurried: QueryPlan = serde_json::from_value(hurried).expect("a plan");
    let in_time =
        |plan: &QueryPlan| query(&[Arc::clone(&index)], plan, &CancelFlag::default()).expect("what was found");
    assert!(in_time(&hurried).is_partial);
    let list = json!([{"name": "teams", "of": {"kind": "count"}, "sub": []}]);
    let aggregations = serde_json::from_value(json!({"list": list, "backgrounds": []})).expect("aggregations");
    let aggregated = in_time(&QueryPlan { aggregations: Some(aggregations), ..hurried });
    assert!(aggregated.is_partial);
    assert_eq!(aggregated.aggregations, json!({"teams": {"value": 0}}).to_string());
}

#[test]
fn a_word_near_both_spellings_of_a_slip_counts_its_documents_once() {
    // The stem of "happy" is "happi": words such as "happx" are near both, words such as "hxppi" near the stem alone.
    let near_both = "abcdfg".chars().map(|letter| (format!("happ{letter}"), 2));
    let letters = || "abcdfghjklmnopqrtuvwxz".chars().filter(|letter| !"ap".contains(*letter));
    let near_stem =
        letters().flat_map(|letter| [format!("h{letter}ppi"), format!("ha{letter}pi"), format!("hap{letter}i")]);
    let near_stem = near_stem.chain(letters().map(|letter| format!("happi{letter}"))).map(|word| (word, 3));
    let words: Vec<String> =
        near_both.chain(near_stem).flat_map(|(word, count)| std::iter::repeat_n(word, count)).collect();
    let documents: Vec<Value> = words.iter().map(|word| json!({"text": word})).collect();
    let index = index_of(json!({"dynamic_templates": [{"mapping": {"type": "text"}}]}), &documents);
    let node = json!({"kind": "match", "field": "text", "text": "happy", "prefix_length": 1, "fuzziness": "typo"});
    let plan: QueryPlan = serde_json::from_value(json!({"query": node, "limit": 1_000})).expect("a plan");
    let hits = run(&index, &plan).hits;
    assert_eq!(hits.len(), 3 * KEPT, "the words of three documents each");
    let rare: Vec<&String> = hits
        .iter()
        .map(|hit| &words[hit.ordinal as usize])
        .filter(|word| word.len() == 5 && word.starts_with("happ"))
        .collect();
    assert!(rare.is_empty(), "{rare:?}");
}
