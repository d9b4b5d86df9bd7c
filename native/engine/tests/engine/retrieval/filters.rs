//! What may be found: filters, expiry, distances, and documents that the indexes do not have alike.

use std::collections::BTreeMap;

use super::support::{Document, Query, Range, Target, document, run, table};
use crate::full_text::support::Random;
use serde_json::{Value, json};
use sundew_engine::full_text::Hits;
use sundew_vector::dense::Metric;

const QUERY: [f32; 4] = [1.0, 0.0, 0.0, 0.0];

fn asked(plan: Value) -> Query {
    Query { plan, dense: Some(QUERY), sparse: Some(vec![(1, 1.0)]), weights: [1.0, 1.0] }
}

fn ordinals(hits: &Hits) -> Vec<u32> {
    let mut found: Vec<u32> = hits.hits.iter().map(|hit| hit.ordinal).collect();
    found.sort_unstable();
    found
}

fn with_vectors(key: &str, body: Value, random: &mut Random) -> Document {
    let dense = Some(std::array::from_fn(|_| random.below(9) as f32));
    Document { dense, sparse: vec![(1, 1.0 + random.below(5) as f32)], ..document(key, body) }
}

#[test]
fn filters_exclusions_and_key_prefixes_hold_for_every_leg_while_documents_change() {
    let seed = 81;
    println!("seed {seed}");
    let mut random = Random::new(seed);
    let mut range = Range::open(Metric::L2Squared);
    let mut live: BTreeMap<u32, Document> = BTreeMap::new();
    for round in 0..12 {
        let mut rows: BTreeMap<u32, Option<Document>> = BTreeMap::new();
        for _ in 0..60 {
            let ordinal = random.below(200) as u32;
            let key = format!("{}{ordinal}", if ordinal.is_multiple_of(2) { "even:" } else { "odd:" });
            let kind = ["soup", "stew"][random.below(2)];
            let body = json!({ "minutes": random.below(10), "kind": kind });
            let is_put = random.below(5) > 0;
            rows.insert(ordinal, is_put.then(|| with_vectors(&key, body, &mut random)));
        }
        let named: Vec<(u32, String, Option<&Document>)> =
            rows.iter().map(|(ordinal, row)| (*ordinal, format!("{ordinal}"), row.as_ref())).collect();
        let frame: Vec<(u32, &str, Option<&Document>)> = named
            .iter()
            .map(|(ordinal, key, row)| (*ordinal, row.map_or(key.as_str(), |row| row.key.as_str()), *row))
            .collect();
        range.apply(&frame, Target::All);
        for (ordinal, row) in rows {
            match row {
                Some(document) => live.insert(ordinal, document),
                None => live.remove(&ordinal),
            };
        }
        let minutes = random.below(10);
        let short = json!({ "kind": "range", "field": "minutes", "lte": minutes });
        let stew = json!({ "kind": "term", "field": "kind", "value": "stew" });
        let plan = json!({
            "limit": 500, "filter": [short], "exclusion": [stew], "key_prefix": "even:", "profile": true,
        });
        let is_wanted = |document: &&Document| {
            let (body, key) = (&document.body, &document.key);
            body["minutes"].as_u64() <= Some(minutes as u64) && body["kind"] == "soup" && key.starts_with("even:")
        };
        let wanted: Vec<u32> =
            live.iter().filter(|(_, document)| is_wanted(document)).map(|(ordinal, _)| *ordinal).collect();
        // The second time from what was kept.
        for _ in 0..2 {
            let hits = run(std::slice::from_ref(&range), &asked(plan.clone()));
            assert_eq!(ordinals(&hits), wanted, "round {round}");
            let profile: Value = serde_json::from_str(&hits.profile).expect("a profile");
            assert_eq!(profile["filter"]["documents"], json!(wanted.len()));
            assert_eq!(profile["legs"][0]["hits"], json!(wanted.len()));
        }
        let all = run(std::slice::from_ref(&range), &asked(json!({ "limit": 500 })));
        assert_eq!(ordinals(&all), live.keys().copied().collect::<Vec<_>>(), "round {round}");
    }
}

#[test]
fn expired_documents_are_not_found() {
    let mut random = Random::new(82);
    let mut documents: Vec<Document> =
        (0..40).map(|at| with_vectors(&format!("k{at}"), json!({ "n": at }), &mut random)).collect();
    for (at, document) in documents.iter_mut().enumerate() {
        document.ttl_base_ms = if at % 4 == 0 { 0 } else { 1_000 * at as i64 };
    }
    let table = table(&documents, 1, Metric::L2Squared);
    let upper_half = json!({ "kind": "range", "field": "n", "gte": 20 });
    for (filter, first) in [(json!([]), 0), (json!([upper_half]), 20)] {
        for bound in [0, 1_000, 17_500, 22_000, 99_000] {
            let plan = json!({ "limit": 100, "filter": filter, "expired_at_or_before_ms": bound });
            let is_wanted = |at: &u32| {
                let base = documents[*at as usize].ttl_base_ms;
                *at >= first && (base == 0 || base > bound)
            };
            let wanted: Vec<u32> = (0..40).filter(is_wanted).collect();
            assert_eq!(ordinals(&run(&table, &asked(plan))), wanted, "bound {bound}");
        }
    }
}

#[test]
fn documents_that_only_the_vector_indexes_have_are_left_to_the_check_of_the_page() {
    let mut random = Random::new(83);
    let [first, second, third] = ["a", "b", "c"].map(|key| with_vectors(key, json!({ "title": "leek" }), &mut random));
    let mut range = Range::open(Metric::L2Squared);
    range.apply(&[(0, "a", Some(&first)), (1, "b", Some(&second))], Target::All);
    // The text index has not seen this document, and not the end of the other one.
    range.apply(&[(2, "c", Some(&third))], Target::Vectors);
    range.apply(&[(1, "b", None)], Target::Text);
    let table = [range];

    let hits = run(&table, &asked(json!({ "limit": 10 })));
    let mut found: Vec<(u32, u64)> = hits.hits.iter().map(|hit| (hit.ordinal, hit.sequence)).collect();
    found.sort_unstable();
    assert_eq!(found, [(0, 1), (1, 0), (2, 0)]);

    let any_title = json!([{ "kind": "exists", "field": "title" }]);
    assert_eq!(ordinals(&run(&table, &asked(json!({ "limit": 10, "filter": any_title })))), [0]);
}

#[test]
fn a_document_counts_with_the_version_that_the_text_index_has() {
    let mut random = Random::new(84);
    let mut range = Range::open(Metric::L2Squared);
    let old = with_vectors("a", json!({ "title": "leek" }), &mut random);
    range.apply(&[(0, "a", Some(&old))], Target::All);
    // Written again without vectors: it keeps them.
    let new = document("a", json!({ "title": "rice" }));
    range.apply(&[(0, "a", Some(&new))], Target::All);
    let by_title = |word: &str| json!({ "limit": 10, "filter": [{ "kind": "match", "field": "title", "text": word }] });
    let table = [range];
    assert_eq!(ordinals(&run(&table, &asked(by_title("leek")))), Vec::<u32>::new());
    let hits = run(&table, &asked(by_title("rice")));
    assert_eq!(hits.hits.iter().map(|hit| (hit.ordinal, hit.sequence)).collect::<Vec<_>>(), [(0, 4)]);
}

#[test]
fn distances_are_bounded_for_dense_legs() {
    let mut documents: Vec<Document> = (0..20).map(|at| document(&format!("k{at:02}"), json!({ "n": at }))).collect();
    for (at, document) in documents.iter_mut().enumerate() {
        document.dense = Some([1.0 + at as f32, 0.0, 0.0, 0.0]);
    }
    for ranges in [1, 3] {
        let table = table(&documents, ranges, Metric::L2Squared);
        let plan = json!({ "limit": 100, "distance_under": 16.5, "distance_over": 3.5 });
        let hits = run(&table, &Query { plan, dense: Some(QUERY), ..Query::default() });
        assert_eq!(hits.distances, [4.0, 9.0, 16.0]);
        assert!(hits.total_is_exact && hits.total == 3);
    }
}
