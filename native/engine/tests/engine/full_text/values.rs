//! Numbers at the ends of their types, words that analysis drops, the time of the write, and tables without words.

use std::path::Path;
use std::sync::Arc;

use super::support::{
    Random, Row, Scratch, disk_options, frame, index_of, matching, memory_options, plan, put, run, schema,
};
use serde_json::{Value, json};
use sundew_engine::frame::{FrameWriter, RowKind};
use sundew_engine::full_text::{
    CancelFlag, DerivedIndex, IndexOptions, PageHit, QueryPlan, TextIndex, order_page, query,
};

fn range(bounds: Value) -> Value {
    let mut node = json!({"kind": "range", "field": "n"});
    node.as_object_mut().expect("an object").extend(bounds.as_object().expect("bounds").clone());
    node
}

#[test]
fn bounds_below_the_least_integer() {
    let integers = index_of(json!(null), &[json!({"n": 1}), json!({"n": -9007199254740992_i64})]);
    let doubles = index_of(json!(null), &[json!({"n": -1e20}), json!({"n": 0.5}), json!({"n": i64::MIN as f64})]);
    let rows: [(Value, &[u32], &[u32]); 7] = [
        (json!({"lt": -1e19}), &[], &[0]),
        (json!({"lte": -1e19}), &[], &[0]),
        (json!({"lt": i64::MIN as f64}), &[], &[0]),
        (json!({"lte": i64::MIN as f64}), &[], &[0, 2]),
        (json!({"gt": -1e21, "lt": -1e19}), &[], &[0]),
        (json!({"gte": -1e19}), &[0, 1], &[1, 2]),
        (json!({"gt": 1e19}), &[], &[]),
    ];
    for (bounds, of_integers, of_doubles) in rows {
        assert_eq!(matching(&integers, range(bounds.clone())), of_integers, "{bounds} of integers");
        assert_eq!(matching(&doubles, range(bounds.clone())), of_doubles, "{bounds} of doubles");
    }
}

fn sorted(index: &Arc<TextIndex>, desc: bool) -> Vec<(u32, Value)> {
    let sort = json!({"limit": 10, "sort": [{"field": "n", "desc": desc}]});
    let plan: QueryPlan = serde_json::from_value(sort).expect("a plan");
    run(index, &plan).hits.into_iter().map(|hit| (hit.ordinal, hit.sort[0].clone())).collect()
}

#[test]
fn a_zero_with_a_sign_is_zero() {
    for other in [json!(0.5), json!(3)] {
        let documents = [json!({"n": 0}), json!({"n": -0.0}), json!({"n": 0.0}), json!({"n": other})];
        let index = index_of(json!(null), &documents);
        for zero in [json!(0), json!(-0.0)] {
            assert_eq!(matching(&index, range(json!({"lt": zero}))), [0_u32; 0]);
            assert_eq!(matching(&index, range(json!({"lte": zero}))), [0, 1, 2]);
            assert_eq!(matching(&index, range(json!({"gte": zero}))), [0, 1, 2, 3]);
            assert_eq!(matching(&index, range(json!({"gt": zero}))), [3]);
            assert_eq!(matching(&index, json!({"kind": "term", "field": "n", "value": zero})), [0, 1, 2]);
        }
        // Ties are in the order of their keys.
        let zero = |ordinal: u32| (ordinal, json!(0));
        assert_eq!(sorted(&index, false)[..3], [zero(0), zero(1), zero(2)]);
        assert_eq!(sorted(&index, true)[1..], [zero(0), zero(1), zero(2)]);
    }
    let keyword = schema(json!({"n": {"type": "string", "x-service-types": ["keyword"]}}));
    let texts = index_of(keyword, &[json!({"n": 0}), json!({"n": -0.0})]);
    assert_eq!(matching(&texts, json!({"kind": "term", "field": "n", "value": 0})), [0, 1]);
}

#[test]
fn sort_values_are_what_a_client_can_send_back() {
    let documents = [json!({"n": 9007199254740992_i64}), json!({"n": 1e19}), json!({"n": -1e300}), json!({"n": 2.5})];
    let shown = sorted(&index_of(json!(null), &documents), false);
    assert_eq!(shown, [(2, json!("-1e+300")), (3, json!(2.5)), (0, json!(9007199254740992_i64)), (1, json!("1e+19"))]);
}

fn all_of(nodes: &[Value]) -> Value {
    json!({"kind": "bool", "must": nodes})
}

fn words(field: &str, text: &str) -> Value {
    json!({"kind": "match", "field": field, "text": text})
}

#[test]
fn words_that_analysis_drops_mean_the_whole_value() {
    let documents = [
        json!({"src": "a", "title": "the fox"}),
        json!({"src": "the a", "title": "fox"}),
        json!({"src": "b", "title": "the"}),
    ];
    let index = index_of(json!(null), &documents);
    assert_eq!(matching(&index, words("src", "a")), [0]);
    assert_eq!(matching(&index, words("src", "the a")), [1]);
    assert_eq!(matching(&index, json!({"kind": "phrase", "field": "src", "text": "the a"})), [1]);
    assert_eq!(matching(&index, all_of(&[words("src", "a"), words("title", "fox")])), [0]);
    // Beside other words of its field a stop word asks for nothing, and so it does without a field.
    assert_eq!(matching(&index, all_of(&[words("title", "the"), words("title", "fox")])), [0, 1]);
    let everywhere = json!({"kind": "match", "text": "the"});
    assert_eq!(matching(&index, all_of(&[everywhere, words("title", "fox")])), [0, 1]);
    let text_only = json!({"document_schemas": {"d": {"schema": {"properties":
        {"src": {"type": "string", "x-service-types": ["text"]}}}}}});
    assert_eq!(matching(&index_of(text_only, &documents), words("src", "a")), [0_u32; 0]);
}

#[test]
fn words_that_analysis_drops_are_left_out_beside_required_words_alone() {
    let index = index_of(
        json!(null),
        &[json!({"s": "A"}), json!({"s": "B"}), json!({"s": ["A", "B"]}), json!({"s": "C"}), json!({"s": "the B"})],
    );
    let (a, b, c) = (words("s", "A"), words("s", "B"), words("s", "C"));
    for (node, expected) in [
        (json!({"kind": "bool", "should": [a, b]}), vec![0, 1, 2, 4]),
        (json!({"kind": "bool", "should": [a, b], "must": [{"kind": "match_all"}], "min_should": 1}), vec![0, 1, 2, 4]),
        (json!({"kind": "bool", "must": [b], "must_not": [a]}), vec![1, 4]),
        (json!({"kind": "bool", "must": [a], "must_not": [b]}), vec![0]),
        (json!({"kind": "bool", "must": [a], "should": [b], "min_should": 0}), vec![0, 2]),
        (json!({"kind": "bool", "must": [a, b]}), vec![1, 2, 4]),
        (json!({"kind": "bool", "must": [a, {"kind": "bool", "should": [b, c]}]}), vec![1, 2, 3, 4]),
        (json!({"kind": "bool", "should": [all_of(&[a.clone(), b.clone()]), c]}), vec![1, 2, 3, 4]),
        (json!({"kind": "bool", "should": [a, b, words("s", "the B")], "min_should": 3}), vec![1, 2, 4]),
    ] {
        assert_eq!(matching(&index, node.clone()), expected, "{node}");
    }
    let excluding = |query: &Value, exclusion: &Value| {
        let plan = json!({"query": query, "exclusion": [exclusion], "limit": 10});
        let plan: QueryPlan = serde_json::from_value(plan).expect("a plan");
        let mut found: Vec<u32> = run(&index, &plan).hits.iter().map(|hit| hit.ordinal).collect();
        found.sort_unstable();
        found
    };
    assert_eq!(excluding(&a, &b), [0]);
    assert_eq!(excluding(&b, &a), [1, 4]);
}

#[test]
fn case_does_not_matter_in_words_and_does_in_whole_values() {
    let schema = json!({"document_schemas": {"d": {"schema": {"properties": {
        "words": {"type": "string", "x-service-types": ["text"]},
        "whole": {"type": "string", "x-service-types": ["keyword"]},
        "raw": {"type": "string", "x-service-types": ["text"], "x-service-analyzer": "keyword"}}}}}});
    let document = json!({"words": "Leek Soup", "whole": "Leek Soup", "raw": "Leek Soup"});
    let index = index_of(schema, &[document]);
    let found = |kind: &str, field: &str, text: &str| {
        let member = if kind == "prefix" { "value" } else { "pattern" };
        !matching(&index, json!({"kind": kind, "field": field, member: text})).is_empty()
    };
    for (kind, one_word, as_written, otherwise) in [
        ("prefix", "SOU", "Leek S", "leek s"),
        ("wildcard", "SO?P", "Leek S*", "leek s*"),
        ("regexp", "S[OU]+P", "Leek S.*", "leek s.*"),
    ] {
        assert!(found(kind, "words", one_word) && found(kind, "words", &one_word.to_lowercase()), "{kind}");
        for field in ["whole", "raw"] {
            assert!(found(kind, field, as_written) && !found(kind, field, otherwise), "{kind} in {field}");
        }
    }
    assert!(found("regexp", "words", "\\w+") && !found("regexp", "words", "\\W+"));
}

#[test]
fn an_undeclared_string_that_reads_as_a_date_is_a_date_and_nothing_else() {
    let strings =
        ["2024-05-01", "2024-05-01T00:00:00Z", "2024-05-01T02:00:00+02:00", "2024-05", "2024-13-01", "May 2024"];
    let documents: Vec<Value> = strings.iter().map(|text| json!({"n": text})).collect();
    let index = index_of(json!(null), &documents);
    let of = |node: Value| matching(&index, node);
    for same in ["2024-05-01", "2024-05-01T00:00:00.000Z"] {
        assert_eq!(of(json!({"kind": "term", "field": "n", "value": same})), [0, 1, 2]);
        assert_eq!(of(all_of(&[words("n", same), range(json!({"gte": "2024-01-01"}))])), [0, 1, 2]);
    }
    assert_eq!(of(range(json!({"gte": "2024-01-01", "lt": "2025-01-01"}))), [0, 1, 2]);
    assert_eq!(of(json!({"kind": "prefix", "field": "n", "value": "2024-"})), [3, 4]);
    assert_eq!(of(json!({"kind": "wildcard", "field": "n", "pattern": "2024-*"})), [3, 4]);
    assert_eq!(of(json!({"kind": "regexp", "field": "n", "pattern": "2024-.*"})), [3, 4]);
    assert_eq!(of(words("n", "2024")), [3, 4, 5]);
    assert_eq!(of(json!({"kind": "exists", "field": "n"})), [0, 1, 2, 3, 4, 5]);
    let declared = json!({"document_schemas": {"d": {"schema": {"properties":
        {"n": {"type": "string", "x-service-types": ["keyword"]}}}}}});
    let index = index_of(declared, &documents);
    assert_eq!(matching(&index, json!({"kind": "prefix", "field": "n", "value": "2024-05"})), [0, 1, 2, 3]);
    assert_eq!(matching(&index, json!({"kind": "term", "field": "n", "value": "2024-05-01"})), [0]);
}

#[test]
fn every_document_has_a_key() {
    let index = index_of(json!(null), &[json!({}), json!({"n": 1})]);
    let node = json!({"kind": "exists", "field": "_id"});
    assert_eq!(matching(&index, node.clone()), [0, 1]);
    assert_eq!(matching(&index, json!({"kind": "bool", "must_not": [node]})), Vec::<u32>::new());
}

#[test]
fn the_time_of_the_write_is_a_member_of_documents_that_do_not_say_it() {
    let index = TextIndex::open(Path::new("unused"), memory_options(json!(null))).expect("opens");
    let mut writer = FrameWriter::new(2, 128).expect("a frame");
    writer.push(RowKind::Put, 0, b"a", &[b"{}"]);
    writer.set_written_ms(1_700_000_000_123);
    writer.push(RowKind::Put, 0, b"b", &[b"{\"_timestamp\":\"2020-01-01T00:00:00Z\"}"]);
    writer.set_position(0, 0, 1, 0);
    writer.set_position(1, 1, 2, 0);
    index.apply(&writer.finish()).expect("applied");
    index.commit(2).expect("a commit");
    let since = |bound: &str| json!({"kind": "range", "field": "_timestamp", "gte": bound, "of": "date"});
    assert_eq!(matching(&index, since("2019-01-01")), [0, 1]);
    assert_eq!(matching(&index, since("2023-11-14T22:13:20.123Z")), [0]);
    assert_eq!(matching(&index, since("2023-11-14T22:13:20.124Z")), [0_u32; 0]);
    let order = json!({"limit": 2, "sort": [{"field": "_timestamp", "desc": true}]});
    let hits = run(&index, &serde_json::from_value(order).expect("a plan")).hits;
    let shown: Vec<&Value> = hits.iter().flat_map(|hit| &hit.sort).collect();
    assert_eq!(shown, [&json!("2023-11-14T22:13:20.123Z"), &json!("2020-01-01T00:00:00Z")]);
}

#[test]
fn a_page_takes_the_order_of_what_is_stored() {
    let documents: Vec<Value> = (0..4).map(|n| json!({"n": n * 10})).collect();
    let index = index_of(json!(null), &documents);
    for desc in [false, true] {
        let plan: QueryPlan =
            serde_json::from_value(json!({"limit": 4, "sort": [{"field": "n", "desc": desc}]})).expect("a plan");
        let hits = run(&index, &plan).hits;
        let row_of = |ordinal: u32| [None, Some(1), None, Some(0)][ordinal as usize];
        let given: Vec<PageHit> = hits
            .iter()
            .map(|hit| PageHit {
                key: format!("k{}", hit.ordinal),
                position: hit.position.clone(),
                row: row_of(hit.ordinal),
            })
            .collect();
        // The fourth is the first by now, and the second has lost its number.
        let stored: Vec<Row> = vec![put("k3", 0, json!({"n": -5})), put("k1", 1, json!({}))];
        let ordered = order_page(&memory_options(json!(null)), &plan, &given, &frame(&stored, 1)).expect("an order");
        let shown: Vec<(u32, Value)> =
            ordered.into_iter().map(|ordered| (hits[ordered.hit].ordinal, ordered.sort[0].clone())).collect();
        let mut expected = vec![(3, json!(-5)), (0, json!(0)), (2, json!(20))];
        if desc {
            expected.reverse();
        }
        expected.push((1, Value::Null));
        assert_eq!(shown, expected);
    }
}

#[test]
fn a_table_without_a_text_index_keeps_its_filters() {
    let schema = json!({"values_only": true, "document_schemas": {"d": {"schema": {"properties": {
        "body": {"type": "string", "x-service-types": ["text"]},
        "tag": {"type": "string", "x-service-types": ["keyword"]}}}}}});
    let documents = [
        json!({"tag": "x", "body": "leek soup", "n": 3, "free": "miso soup"}),
        json!({"tag": "y", "body": "bread", "n": 4, "free": "rye"}),
    ];
    let index = index_of(schema, &documents);
    let ask_while = |comes: bool, member: &str, node: Value| {
        let mut plan = json!({"limit": 10, "has_text_index": false, "sort": [{"field": "body"}]});
        plan["text_index_comes"] = json!(comes);
        plan[member] = if member == "query" { node } else { json!([node]) };
        let plan: QueryPlan = serde_json::from_value(plan).expect("a plan");
        let found = query(std::slice::from_ref(&index), &plan, &CancelFlag::default());
        found.map(|hits| hits.hits.iter().map(|hit| hit.ordinal).collect::<Vec<_>>()).map_err(|error| error.code)
    };
    let ask = |member: &str, node: Value| ask_while(false, member, node);
    assert_eq!(ask("filter", words("tag", "x")), Ok(vec![0]));
    assert_eq!(ask("filter", words("free", "miso soup")), Ok(vec![0]), "a whole value");
    assert_eq!(ask("filter", words("n", "4")), Ok(vec![1]));
    assert_eq!(ask("filter", json!({"kind": "term", "field": "free", "value": "miso soup"})), Ok(vec![0]));
    assert_eq!(ask("filter", json!({"kind": "prefix", "field": "free", "value": "mi"})), Ok(vec![0]));
    assert_eq!(ask("filter", range(json!({"gte": 3}))), Ok(vec![1, 0]));
    assert_eq!(ask("query", words("tag", "x")), Ok(vec![0]));
    let refused: [(&str, Value); 6] = [
        ("query", words("free", "soup")),
        ("query", json!({"kind": "match", "text": "soup"})),
        ("filter", json!({"kind": "match", "text": "soup"})),
        ("filter", words("body", "soup")),
        ("filter", all_of(&[range(json!({"gte": 3})), json!({"kind": "prefix", "value": "so"})])),
        ("exclusion", json!({"kind": "terms_phrase", "field": "free", "terms": [["soup"]]})),
    ];
    for (member, node) in refused {
        assert_eq!(ask(member, node.clone()), Err("invalid_query"), "{node}");
    }
    assert_eq!(run(&index, &plan(words("free", "soup"))).total, 0);
    // While a text index is being built, nothing that it will compare by words is answered otherwise.
    assert_eq!(ask_while(true, "filter", words("tag", "x")), Ok(vec![0]));
    assert_eq!(ask_while(true, "filter", range(json!({"gte": 3}))), Ok(vec![1, 0]));
    for member in ["query", "filter", "exclusion"] {
        assert_eq!(ask_while(true, member, words("free", "miso soup")), Err("unavailable"), "{member}");
    }
    for within in [words("free", "miso soup"), json!({"kind": "prefix", "field": "free", "value": "mi"})] {
        assert_eq!(ask_while(true, "filter", within.clone()), Err("unavailable"), "{within}");
        assert_eq!(ask_while(true, "filter", json!({"kind": "bool", "must_not": [within]})), Err("unavailable"));
    }
}

#[test]
fn a_path_may_be_kept_without_values_and_is_then_found_by_its_words_and_ordered_by_nothing() {
    let of = |extra: Value| {
        let mut title = json!({"type": "string", "x-service-types": ["text"]});
        title.as_object_mut().expect("an object").extend(extra.as_object().expect("an object").clone());
        json!({"document_schemas": {"d": {"schema": {"properties": {"title": title}}}}})
    };
    let documents: Vec<Value> =
        [json!("Leek soup"), json!("Rye bread"), json!(12), json!("2024-05-01"), json!(["Miso", "soup"]), Value::Null]
            .into_iter()
            .map(|title| json!({"title": title, "n": 1}))
            .collect();
    let (kept, bare) =
        (index_of(of(json!({})), &documents), index_of(of(json!({"x-service-doc-values": false})), &documents));
    for node in [
        words("title", "soup"),
        words("title", "12"),
        words("title", "2024"),
        json!({"kind": "phrase", "field": "title", "text": "rye bread"}),
        json!({"kind": "prefix", "field": "title", "value": "so"}),
        json!({"kind": "wildcard", "field": "title", "pattern": "*read"}),
        json!({"kind": "term", "field": "title", "value": "rye"}),
        json!({"kind": "exists", "field": "title"}),
    ] {
        let found = matching(&bare, node.clone());
        assert!(!found.is_empty(), "{node}");
        assert_eq!(found, matching(&kept, node.clone()), "{node}");
    }
    let ordered = |field: &str| {
        let mut plan = plan(json!({"kind": "match_all"}));
        plan.sort = serde_json::from_value(json!([{"field": field, "desc": false}])).expect("an order");
        query(std::slice::from_ref(&bare), &plan, &CancelFlag::default())
    };
    assert!(ordered("n").is_ok() && ordered("_id").is_ok());
    let Err(refused) = ordered("title") else { panic!("an order without values was answered") };
    assert_eq!(refused.code, "invalid_query");
    assert!(refused.message.contains("\"title\" has no values to order by"), "{}", refused.message);
}

#[test]
fn a_path_without_values_has_no_column_on_disk() {
    let column_bytes = |extra: Value| {
        let mut title = json!({"type": "string", "x-service-types": ["text"]});
        title.as_object_mut().expect("an object").extend(extra.as_object().expect("an object").clone());
        let schema = json!({"document_schemas": {"d": {"schema": {"properties": {"title": title}}}}});
        let scratch = Scratch::new();
        let index = TextIndex::open(scratch.path(), IndexOptions { schema, ..disk_options() }).expect("an index");
        let row = |at: u32| put(&format!("k{at:04}"), at, json!({"title": format!("{at:04} leek soup of the house")}));
        let rows: Vec<Row> = (0..1_000).map(row).collect();
        index.apply(&frame(&rows, 1)).expect("applied");
        index.commit(1_000).expect("a commit");
        index.checkpoint().expect("a checkpoint");
        let files = std::fs::read_dir(scratch.path()).expect("a directory").map(|entry| entry.expect("an entry"));
        let columns = files.filter(|entry| entry.path().extension().is_some_and(|extension| extension == "fast"));
        columns.map(|entry| entry.metadata().expect("metadata").len()).sum::<u64>()
    };
    let (kept, bare) = (column_bytes(json!({})), column_bytes(json!({"x-service-doc-values": false})));
    assert!(bare > 0 && kept > bare + 1_000 * 20, "{kept} and {bare} bytes");
}

#[test]
fn numbers_and_dates_are_found_below_any_name() {
    for name in ["back\\slash", "ends\\", "a \\\"b", "\\.x", "tab\there", "ü", ""] {
        let document = json!({"o": {name: [2.5, 3, "2024-05-01"]}});
        let index = index_of(Value::Null, &[document]);
        let path = format!("o.{name}");
        for bounds in [
            json!({"gt": 2, "lt": 3}),
            json!({"gte": 3.0, "lte": 3.0}),
            json!({"gt": "2024-04-30", "lt": "2024-05-02"}),
        ] {
            let mut query = json!({"kind": "range", "field": path});
            query.as_object_mut().expect("a node").extend(bounds.as_object().expect("bounds").clone());
            assert_eq!(matching(&index, query.clone()), [0], "{query}");
        }
        for value in [json!(2.5), json!(3), json!("2024-05-01")] {
            let query = json!({"kind": "term", "field": path, "value": value});
            assert_eq!(matching(&index, query.clone()), [0], "{query}");
        }
    }
}

#[test]
fn a_whole_string_that_is_too_long_to_be_compared_is_there_all_the_same() {
    let keyword = json!({"type": "string", "x-service-types": ["keyword"]});
    let schema = json!({"document_schemas": {"d": {"schema": {"type": "object", "properties": {"k": keyword}}}}});
    let index =
        index_of(schema, &[json!({"k": "x".repeat(8_192)}), json!({"k": "x".repeat(8_193)}), json!({"l": "x"})]);
    assert_eq!(matching(&index, json!({"kind": "exists", "field": "k"})), [0, 1]);
    assert_eq!(matching(&index, json!({"kind": "term", "field": "k", "value": "x".repeat(8_192)})), [0]);
    assert_eq!(matching(&index, json!({"kind": "exists", "field": "l"})), [2]);
}

#[test]
fn a_number_is_the_double_next_to_its_digits() {
    let mut random = Random::new(11);
    let mut numbers: Vec<f64> = (0..500).map(|_| random.below(1 << 31) as f64 / random.below(1 << 31) as f64).collect();
    numbers.extend([0.1, 1e22, 1e23, 1.7976931348623157e308, 5e-324, 123456789.12345679, 9007199254740991.5]);
    let documents: Vec<Value> = numbers.iter().map(|number| json!({"n": number})).collect();
    let index = index_of(json!(null), &documents);
    for (ordinal, number) in (0..).zip(&numbers) {
        let text = json!({"kind": "match", "field": "n", "text": number.to_string()});
        assert!(matching(&index, text).contains(&ordinal), "{number} is found by its digits");
    }
    let sort = json!({"limit": 1_000, "sort": [{"field": "n"}]});
    let sort: QueryPlan = serde_json::from_value(sort).expect("a plan");
    for hit in run(&index, &sort).hits {
        let value = &hit.sort[0];
        let shown = value.as_f64().or_else(|| value.as_str()?.parse().ok());
        assert_eq!(shown, Some(numbers[hit.ordinal as usize]), "{value}");
    }
}
