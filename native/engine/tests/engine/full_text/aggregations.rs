//! Aggregations against a model that walks the documents, however these are spread over segments and ranges.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use super::support::*;
use serde_json::{Value, json};
use sundew_engine::full_text::{CancelFlag, DerivedIndex, Hits, QueryPlan, TextIndex, query};

const SEED: u64 = 20_240_229;

fn document(random: &mut Random) -> Value {
    let words = ["apple", "pear", "fig", "kiwi", "plum", "lime"];
    let number = |random: &mut Random| match random.below(3) {
        0 => json!(random.below(40)),
        1 => json!(random.below(400) as f64 / 8.0 - 10.0),
        _ => json!(random.below(1000) as f64 * 0.1),
    };
    let colour = ["red", "green", "blue"][random.below(3)];
    let mut document = json!({ "colour": colour });
    if random.below(5) > 0 {
        document["n"] = if random.below(4) == 0 { json!([number(random), number(random)]) } else { number(random) };
    }
    if random.below(4) > 0 {
        let tags: Vec<&str> = (0..random.below(4)).map(|_| words[random.below(words.len())]).collect();
        document["tags"] = json!(tags);
    }
    if random.below(3) > 0 {
        document["sold"] = json!(random.below(2) == 0);
    }
    if random.below(3) > 0 {
        let day = 1 + random.below(28);
        document["at"] = json!(format!(
            "20{:02}-{:02}-{day:02}T{:02}:30:00Z",
            19 + random.below(4),
            1 + random.below(12),
            random.below(24)
        ));
    }
    if random.below(3) > 0 {
        let place =
            json!({"lat": random.below(1800) as f64 / 10.0 - 90.0, "lon": random.below(3600) as f64 / 10.0 - 180.0});
        document["place"] = place;
    }
    document
}

/// The same documents in one index and in four; both with several segments, updates and deletes.
struct Corpus {
    live: BTreeMap<String, Value>,
    one: Vec<Arc<TextIndex>>,
    four: Vec<Arc<TextIndex>>,
}

fn corpus(count: usize) -> Corpus {
    let open = || TextIndex::open(Path::new("unused"), memory_options(Value::Null)).expect("an index in memory");
    let (one, four) = (vec![open()], (0..4).map(|_| open()).collect::<Vec<_>>());
    let mut live = BTreeMap::new();
    for round in 0..3 {
        for (at, index) in
            one.iter().map(|index| (None, index)).chain(four.iter().enumerate().map(|(at, index)| (Some(at), index)))
        {
            // Every index replays the same pseudo-random story.
            let mut story = Random::new(SEED + round);
            let mut rows = Vec::new();
            for number in 0..count {
                let (skips, deletes, body) =
                    (round > 0 && story.below(3) > 0, round > 0 && story.below(4) == 0, document(&mut story));
                if skips || at.is_some_and(|at| number % 4 != at) {
                    continue;
                }
                let key = format!("k{number:04}");
                rows.push(if deletes { delete(&key, number as u32) } else { put(&key, number as u32, body.clone()) });
                if at.is_none() {
                    if deletes {
                        live.remove(&key)
                    } else {
                        live.insert(key, body)
                    };
                }
            }
            index.apply(&frame(&rows, 1 + round * 10_000)).expect("rows are applied");
            index.commit(1 + round * 10_000 + count as u64).expect("a commit");
        }
    }
    assert!(live.len() > count / 2);
    Corpus { live, one, four }
}

fn plan(filter: Value, aggregations: Value) -> QueryPlan {
    serde_json::from_value(json!({ "filter": filter, "limit": 0, "aggregations": aggregations })).expect("a plan")
}

fn hits(indexes: &[Arc<TextIndex>], plan: &QueryPlan) -> Hits {
    query(indexes, plan, &CancelFlag::default()).expect("the query runs")
}

/// The answer of one aggregation, the same over one index and over four.
fn answer(corpus: &Corpus, filter: &Value, aggregation: Value) -> Value {
    let backgrounds = aggregation.get("backgrounds").cloned().unwrap_or(json!([]));
    let of = json!({"name": "a", "of": aggregation["of"], "sub": aggregation.get("sub").cloned().unwrap_or(json!([]))});
    let plan = plan(filter.clone(), json!({"list": [of], "backgrounds": backgrounds}));
    let (one, four) = (hits(&corpus.one, &plan), hits(&corpus.four, &plan));
    assert!(one.aggregations == four.aggregations, "{aggregation}");
    assert_eq!(one.total, four.total);
    serde_json::from_str::<Value>(&one.aggregations).expect("JSON")["a"].take()
}

fn values<'a>(document: &'a Value, path: &str) -> Vec<&'a Value> {
    match document.get(path) {
        None => Vec::new(),
        Some(Value::Array(values)) => values.iter().collect(),
        Some(value) => vec![value],
    }
}

fn numbers(documents: &[&Value], path: &str) -> Vec<f64> {
    documents.iter().flat_map(|document| values(document, path)).filter_map(Value::as_f64).collect()
}

fn near(answer: &Value, expected: f64) -> bool {
    answer.as_f64().is_some_and(|answer| (answer - expected).abs() <= 1e-9 * expected.abs().max(1.0))
}

/// Documents by each key that `keys` finds in them.
fn grouped<'a>(documents: &[&'a Value], keys: impl Fn(&Value) -> Vec<String>) -> BTreeMap<String, Vec<&'a Value>> {
    let mut groups: BTreeMap<String, Vec<&Value>> = BTreeMap::new();
    for document in documents {
        let distinct: HashSet<String> = keys(document).into_iter().collect();
        for key in distinct {
            groups.entry(key).or_default().push(document);
        }
    }
    groups
}

fn by_count(groups: BTreeMap<String, Vec<&Value>>) -> Vec<(String, Vec<&Value>)> {
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by(|a, b| b.1.len().cmp(&a.1.len()).then_with(|| a.0.cmp(&b.0)));
    groups
}

fn texts(document: &Value, path: &str) -> Vec<String> {
    values(document, path).into_iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn keys_and_counts(answer: &Value) -> Vec<(String, u64)> {
    let buckets = answer["buckets"].as_array().expect("buckets");
    let key = |bucket: &Value| bucket["key"].as_str().map_or_else(|| bucket["key"].to_string(), str::to_owned);
    buckets.iter().map(|bucket| (key(bucket), bucket["doc_count"].as_u64().expect("a count"))).collect()
}

/// Each filter, with the documents that it keeps.
fn selections(corpus: &Corpus) -> Vec<(Value, Vec<&Value>)> {
    let red = |document: &&Value| document["colour"] == "red";
    vec![
        (json!([]), corpus.live.values().collect()),
        (json!([{"kind": "term", "field": "colour", "value": "red"}]), corpus.live.values().filter(red).collect()),
        (json!([{"kind": "match_none"}]), Vec::new()),
    ]
}

#[test]
fn metrics() {
    let corpus = corpus(400);
    for (filter, documents) in selections(&corpus) {
        let metric =
            |name: &str| answer(&corpus, &filter, json!({"of": {"kind": "numbers", "field": "n", "metric": name}}));
        let found = numbers(&documents, "n");
        let (sum, squares) = (found.iter().sum::<f64>(), found.iter().map(|number| number * number).sum::<f64>());
        assert!(near(&metric("sum")["value"], sum) && near(&metric("sumsquares")["value"], squares));
        let stats = metric("stats");
        assert_eq!(stats["count"], found.len());
        assert!(near(&stats["sum"], sum) && near(&stats["sum_of_squares"], squares));
        if found.is_empty() {
            assert!(
                metric("min")["value"].is_null() && metric("avg")["value"].is_null() && stats["variance"].is_null()
            );
        } else {
            let count = found.len() as f64;
            let (mean, variance) = (sum / count, squares / count - (sum / count).powi(2));
            assert!(near(&metric("avg")["value"], mean) && near(&metric("avg")["avg"], mean));
            assert_eq!(metric("avg")["count"], found.len());
            assert!(near(&metric("min")["value"], found.iter().copied().fold(f64::INFINITY, f64::min)));
            assert!(near(&metric("max")["value"], found.iter().copied().fold(f64::NEG_INFINITY, f64::max)));
            assert!((stats["variance"].as_f64().expect("a variance") - variance).abs() < 1e-6 * variance);
            assert!((stats["std_deviation"].as_f64().expect("a deviation") - variance.sqrt()).abs() < 1e-6 * variance);
        }
        for path in ["n", "tags", "sold", "at", "_id", "nowhere"] {
            let of_path: Vec<String> =
                documents.iter().flat_map(|document| values(document, path)).map(Value::to_string).collect();
            let (count, distinct) = match path {
                "_id" => (documents.len(), documents.len()),
                // 5 and 5.0 are the same number.
                "n" => (found.len(), found.iter().map(|number| number.to_bits()).collect::<HashSet<_>>().len()),
                _ => (of_path.len(), of_path.iter().collect::<HashSet<_>>().len()),
            };
            let counted = answer(&corpus, &filter, json!({"of": {"kind": "count", "field": path}}));
            assert_eq!(counted, json!({ "value": count }), "{path}");
            let cardinality =
                answer(&corpus, &filter, json!({"of": {"kind": "cardinality", "field": path, "mode": "auto"}}));
            assert_eq!(cardinality, json!({ "value": distinct, "approximate": false }), "{path}");
        }
        assert_eq!(answer(&corpus, &filter, json!({"of": {"kind": "count"}})), json!({ "value": documents.len() }));
    }
}

#[test]
fn terms_of_strings_and_of_combinations() {
    let corpus = corpus(400);
    for (filter, documents) in selections(&corpus) {
        let terms = |fields: Value, size: usize, min: u64| {
            let of = json!({"kind": "terms", "fields": fields, "size": size, "min_doc_count": min});
            answer(
                &corpus,
                &filter,
                json!({ "of": of, "sub": [{"name": "s", "of": {"kind": "numbers", "field": "n", "metric": "sum"}}] }),
            )
        };
        for (size, min) in [(3, 1), (100, 1), (100, 45)] {
            let mut expected = by_count(grouped(&documents, |document| texts(document, "tags")));
            expected.retain(|(_, documents)| documents.len() as u64 >= min);
            expected.truncate(size);
            let answered = terms(json!(["tags"]), size, min);
            let counts: Vec<(String, u64)> =
                expected.iter().map(|(key, found)| (key.clone(), found.len() as u64)).collect();
            assert_eq!(keys_and_counts(&answered), counts);
            for ((_, found), bucket) in expected.iter().zip(answered["buckets"].as_array().expect("buckets")) {
                assert!(near(&bucket["sub_aggregations"]["s"]["value"], numbers(found, "n").iter().sum()));
            }
        }
        let pairs = |document: &Value| {
            let colours = texts(document, "colour");
            let tags = texts(document, "tags");
            tags.iter().flat_map(|tag| colours.iter().map(move |colour| json!([tag, colour]).to_string())).collect()
        };
        let expected: Vec<(String, u64)> =
            by_count(grouped(&documents, pairs)).into_iter().map(|(key, found)| (key, found.len() as u64)).collect();
        assert_eq!(keys_and_counts(&terms(json!(["tags", "colour"]), 100, 1)), expected);
    }
}

#[test]
fn keys_keep_their_type() {
    let index = index_of(
        Value::Null,
        &[
            json!({"v": 1}),
            json!({"v": [1.0, "1", true]}),
            json!({"v": "2024-02-29"}),
            json!({"v": [-0.0, 0]}),
            json!({"v": 2.5}),
        ],
    );
    let of = json!({"kind": "terms", "fields": ["v"], "size": 10, "min_doc_count": 1});
    let plan = plan(json!([]), json!({"list": [{"name": "v", "of": of}]}));
    let answer: Value = serde_json::from_str(&hits(&[index], &plan).aggregations).expect("JSON");
    assert_eq!(
        answer["v"]["buckets"],
        json!([
            {"key": 1, "key_as_string": "1", "doc_count": 2},
            {"key": 0, "key_as_string": "0", "doc_count": 1},
            {"key": 2.5, "key_as_string": "2.5", "doc_count": 1},
            {"key": 1_709_164_800_000i64, "key_as_string": "2024-02-29T00:00:00Z", "doc_count": 1},
            {"key": "1", "doc_count": 1},
            {"key": true, "key_as_string": "true", "doc_count": 1},
        ])
    );
}

#[test]
fn ranges_and_histograms() {
    let corpus = corpus(400);
    for (filter, documents) in selections(&corpus) {
        let bounds = [("low", None, Some(10.0)), ("middle", Some(5.0), Some(30.0)), ("high", Some(30.0), None)];
        let ranges: Vec<Value> =
            bounds.iter().map(|(name, from, to)| json!({"name": name, "from": from, "to": to})).collect();
        let answered = answer(&corpus, &filter, json!({"of": {"kind": "range", "field": "n", "ranges": ranges}}));
        let expected: Vec<(String, u64)> = bounds
            .iter()
            .map(|(name, from, to)| {
                let inside = |number: &f64| from.is_none_or(|from| *number >= from) && to.is_none_or(|to| *number < to);
                let found = documents.iter().filter(|document| numbers(&[document], "n").iter().any(inside)).count();
                ((*name).to_owned(), found as u64)
            })
            .collect();
        assert_eq!(keys_and_counts(&answered), expected);
        assert_eq!((&answered["buckets"][1]["from"], &answered["buckets"][1]["to"]), (&json!(5), &json!(30)));

        let of = json!({"kind": "histogram", "field": "n", "interval": 7.5, "min_doc_count": 0});
        let histogram = answer(&corpus, &filter, json!({ "of": of }));
        let found = grouped(&documents, |document| {
            numbers(&[document], "n").iter().map(|number| format!("{:+08.1}", (number / 7.5).floor() * 7.5)).collect()
        });
        let counts: BTreeMap<String, u64> = found.into_iter().map(|(key, found)| (key, found.len() as u64)).collect();
        let answered = histogram["buckets"].as_array().expect("buckets");
        for bucket in answered {
            let key = format!("{:+08.1}", bucket["key"].as_f64().expect("a number"));
            assert_eq!(bucket["doc_count"], counts.get(&key).copied().unwrap_or(0), "{key}");
        }
        assert_eq!(
            answered.iter().filter_map(|bucket| bucket["doc_count"].as_u64()).sum::<u64>(),
            counts.values().sum::<u64>()
        );
        for neighbours in answered.windows(2) {
            assert_eq!(
                neighbours[1]["key"].as_f64().unwrap_or(0.0) - neighbours[0]["key"].as_f64().unwrap_or(0.0),
                7.5
            );
        }

        let of = json!({"kind": "date_histogram", "field": "at", "calendar_interval": "month", "min_doc_count": 1});
        let months = answer(&corpus, &filter, json!({ "of": of }));
        let found = grouped(&documents, |document| texts(document, "at").iter().map(|at| at[..7].to_owned()).collect());
        let expected: Vec<(String, u64)> =
            found.into_iter().map(|(month, found)| (format!("{month}-01T00:00:00Z"), found.len() as u64)).collect();
        let shown = months["buckets"].as_array().expect("buckets").iter();
        let shown: Vec<(String, u64)> = shown
            .map(|bucket| {
                (bucket["key_as_string"].as_str().unwrap_or("").to_owned(), bucket["doc_count"].as_u64().unwrap_or(0))
            })
            .collect();
        assert_eq!(shown, expected);

        let ranges = json!([{"name": "old", "to": "2020-07-01"}, {"name": "new", "from": "2020-07-01"}]);
        let answered = answer(&corpus, &filter, json!({"of": {"kind": "date_range", "field": "at", "ranges": ranges}}));
        let old = documents
            .iter()
            .filter(|document| texts(document, "at").iter().any(|at| at.as_str() < "2020-07-01"))
            .count();
        let new = documents
            .iter()
            .filter(|document| texts(document, "at").iter().any(|at| at.as_str() >= "2020-07-01"))
            .count();
        assert_eq!(keys_and_counts(&answered), [("old".to_owned(), old as u64), ("new".to_owned(), new as u64)]);
        assert_eq!(answered["buckets"][0]["to"], 1_593_561_600_000i64);
        assert_eq!(answered["buckets"][0]["to_as_string"], "2020-07-01T00:00:00Z");
    }
}

#[test]
fn places() {
    let corpus = corpus(300);
    for (filter, documents) in selections(&corpus) {
        let place = |document: &Value| Some((document["place"]["lat"].as_f64()?, document["place"]["lon"].as_f64()?));
        let with_place = documents.iter().filter(|document| place(document).is_some()).count() as u64;
        let grid = answer(
            &corpus,
            &filter,
            json!({"of": {"kind": "geohash_grid", "field": "place", "precision": 1, "size": 40}}),
        );
        assert_eq!(keys_and_counts(&grid).iter().map(|(_, count)| count).sum::<u64>(), with_place);
        let counted = answer(&corpus, &filter, json!({"of": {"kind": "count", "field": "place"}}));
        assert_eq!(counted, json!({ "value": with_place }));
        // The cell "s" is the north-east of (0, 0), 45 degrees each way.
        let in_s = |document: &&&Value| {
            place(document).is_some_and(|(lat, lon)| (0.0..45.0).contains(&lat) && (0.0..45.0).contains(&lon))
        };
        let s = keys_and_counts(&grid).into_iter().find(|(key, _)| key == "s").map_or(0, |(_, count)| count);
        assert_eq!(s, documents.iter().filter(in_s).count() as u64);
        let of = json!({"kind": "geo_distance", "field": "place", "lat": 0.0, "lon": 0.0, "unit_meters": 1000.0, "ranges": [
            {"name": "near", "to": 10_007.56}, {"name": "far", "from": 10_007.56}]});
        let answered = keys_and_counts(&answer(&corpus, &filter, json!({ "of": of })));
        // A quarter of the way around, 10,007.557 km: the side of the plane through the poles that faces (0, 0), and the plane
        // itself, where the product is not quite 0.
        let faces = |document: &&&Value| {
            place(document).is_some_and(|(lat, lon)| lat.to_radians().cos() * lon.to_radians().cos() > -1e-9)
        };
        assert_eq!(answered[0], ("near".to_owned(), documents.iter().filter(faces).count() as u64));
        assert_eq!(answered[0].1 + answered[1].1, with_place);
    }
}

#[test]
fn significant_terms_compare_with_their_background() {
    let corpus = corpus(400);
    let of = |algorithm: &str| json!({"kind": "significant_terms", "field": "tags", "size": 10, "min_doc_count": 1, "algorithm": algorithm, "background": 0});
    let filter = json!([{"kind": "term", "field": "tags", "value": "fig"}]);
    let all: Vec<&Value> = corpus.live.values().collect();
    let fig: Vec<&Value> =
        all.iter().copied().filter(|document| texts(document, "tags").iter().any(|tag| tag == "fig")).collect();
    for algorithm in ["jlh", "mutual_information", "chi_squared", "percentage"] {
        let answered = answer(&corpus, &filter, json!({"of": of(algorithm), "backgrounds": [{"field": "tags"}]}));
        let best = &answered["buckets"][0];
        assert_eq!(
            (&best["key"], &best["doc_count"], &best["bg_count"]),
            (&json!("fig"), &json!(fig.len()), &json!(fig.len())),
            "{algorithm}"
        );
        assert!(best["score"].as_f64().is_some_and(|score| score > 0.0));
    }
    let jlh = answer(&corpus, &filter, json!({"of": of("jlh"), "backgrounds": [{"field": "tags"}]}));
    let share = fig.len() as f64 / all.len() as f64;
    assert!(near(&jlh["buckets"][0]["score"], (1.0 - share) / share));
    // Under a background of the same documents nothing stands out.
    let same = json!([{"field": "tags", "filter": {"kind": "term", "field": "tags", "value": "fig"}}]);
    assert_eq!(answer(&corpus, &filter, json!({"of": of("jlh"), "backgrounds": same}))["buckets"], json!([]));
}

#[test]
fn nested_buckets_answer_what_a_filter_would() {
    let corpus = corpus(400);
    let sold = json!({"name": "sold", "of": {"kind": "terms", "fields": ["sold"], "size": 5, "min_doc_count": 1}, "sub": [
        {"name": "numbers", "of": {"kind": "numbers", "field": "n", "metric": "stats"}},
        {"name": "kinds", "of": {"kind": "cardinality", "field": "tags", "mode": "auto"}}]});
    let colours = json!({"of": {"kind": "terms", "fields": ["colour"], "size": 5, "min_doc_count": 1}, "sub": [
        {"name": "by_n", "of": {"kind": "histogram", "field": "n", "interval": 25.0, "min_doc_count": 0}, "sub": [sold.clone()]}]});
    let nested = answer(&corpus, &json!([]), colours);
    for colour in nested["buckets"].as_array().expect("buckets") {
        for interval in colour["sub_aggregations"]["by_n"]["buckets"].as_array().expect("buckets") {
            let from = interval["key"].as_f64().expect("a number");
            let filter = json!([
                {"kind": "term", "field": "colour", "value": colour["key"]},
                {"kind": "range", "field": "n", "gte": from, "lt": from + 25.0},
            ]);
            let alone = answer(&corpus, &filter, json!({"of": sold["of"], "sub": sold["sub"]}));
            assert_eq!(interval["sub_aggregations"]["sold"], alone, "{colour} {interval}");
        }
    }
}

#[test]
fn estimates_do_not_depend_on_the_spread_of_documents() {
    let corpus = corpus(2400);
    let cardinality =
        |mode: &str| answer(&corpus, &json!([]), json!({"of": {"kind": "cardinality", "field": "_id", "mode": mode}}));
    assert!(corpus.live.len() > 1100, "more than what is counted exactly");
    assert_eq!(cardinality("exact"), json!({"value": corpus.live.len(), "approximate": false}));
    let estimate = cardinality("approximate");
    assert_eq!(estimate["approximate"], true);
    let value = estimate["value"].as_f64().expect("a number");
    assert!((value / corpus.live.len() as f64 - 1.0).abs() < 0.04, "{value} for {}", corpus.live.len());
}

#[test]
fn the_page_and_the_exact_total_come_with_them() {
    let corpus = corpus(200);
    let mut plan = plan(json!([]), json!({"list": [{"name": "c", "of": {"kind": "count"}}]}));
    plan.limit = 3;
    plan.total_exact_up_to = 1;
    let hits = hits(&corpus.four, &plan);
    assert_eq!((hits.hits.len(), hits.total, hits.total_is_exact), (3, corpus.live.len() as u64, true));
    assert_eq!(hits.aggregations, format!("{{\"c\":{{\"value\":{}}}}}", corpus.live.len()));
}
