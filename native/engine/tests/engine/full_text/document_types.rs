//! Document types that declare one path differently.

use std::path::Path;
use std::sync::Arc;

use super::support::*;
use serde_json::{Value, json};
use sundew_engine::full_text::{CancelFlag, DerivedIndex, TextIndex, query};

fn prefix(field: &str, value: &str) -> Value {
    json!({"kind": "prefix", "field": field, "value": value})
}

/// Each type has the property `f`, by its own rules.
fn types(default: &str, types: Value) -> Value {
    let declared =
        types.as_object().expect("types by name").iter().map(|(name, property)| {
            (name.clone(), json!({"schema": {"type": "object", "properties": {"f": property}}}))
        });
    json!({"default_type": default, "document_schemas": declared.collect::<serde_json::Map<_, _>>()})
}

fn of_service(name: &str) -> Value {
    json!({"type": "string", "x-service-types": [name]})
}

/// Each text without a type and with each of the types.
fn documents_of(texts: &[&str], types: &[&str]) -> Vec<Value> {
    let of_text = |text: &&str| {
        let typed = types.iter().map(|name| json!({"f": text, "_type": name})).collect::<Vec<_>>();
        [vec![json!({"f": text})], typed].concat()
    };
    texts.iter().flat_map(of_text).collect()
}

#[test]
fn only_documents_whose_type_keeps_whole_strings_are_found_by_them() {
    // The type c is not declared: what it holds is kept whole too.
    let documents = documents_of(&["Red Soup", "10.1.2.3"], &["b", "c", "a"]);
    for (default, with_whole) in [("a", &[0, 2, 3][..]), ("b", &[2, 3])] {
        let declared = types(default, json!({"a": of_service("keyword"), "b": of_service("text")}));
        let index = index_of(declared, &documents);
        let expected = |first: u32| with_whole.iter().map(|at| at + first).collect::<Vec<u32>>();
        for field in ["f", "f.keyword"] {
            let queries = [
                (0, json!({"kind": "term", "field": field, "value": "Red Soup"})),
                (0, prefix(field, "Red S")),
                (0, json!({"kind": "range", "field": field, "gte": "Red", "lt": "Ree"})),
                (0, json!({"kind": "regexp", "field": field, "pattern": "Red .*"})),
                (0, json!({"kind": "wildcard", "field": field, "pattern": "Red S*"})),
                (0, json!({"kind": "fuzzy", "field": field, "value": "Red Soups", "fuzziness": 1})),
                (4, json!({"kind": "ip_range", "field": field, "cidr": "10.0.0.0/8"})),
            ];
            for (first, query) in queries {
                assert_eq!(matching(&index, query.clone()), expected(first), "{default} {query}");
            }
            let as_you_type = json!({"kind": "bool_prefix", "fields": [{"field": field}], "text": "Red S"});
            if field == "f.keyword" {
                assert_eq!(matching(&index, as_you_type), expected(0), "{default}");
            } else {
                // The words of the others are found too.
                assert_eq!(matching(&index, as_you_type), [0, 1, 2, 3], "{default}");
            }
        }
        // All are ordered, and only whole strings are counted.
        let mut plan = plan(json!({"kind": "match_all"}));
        plan.sort = serde_json::from_value(json!([{"field": "f"}])).expect("an order");
        let hits = run(&index, &plan);
        assert_eq!(hits.hits.iter().map(|hit| hit.ordinal / 4).collect::<Vec<_>>(), [1, 1, 1, 1, 0, 0, 0, 0]);
        plan.aggregations = serde_json::from_value(json!({"list": [
            {"name": "by_text", "of": {"kind": "terms", "fields": ["f"], "size": 10, "min_doc_count": 1}},
            {"name": "count", "of": {"kind": "count", "field": "f"}},
            {"name": "distinct", "of": {"kind": "cardinality", "field": "f", "mode": "exact"}}
        ]}))
        .expect("aggregations");
        let found: Value = serde_json::from_str(&run(&index, &plan).aggregations).expect("JSON");
        for bucket in found["by_text"]["buckets"].as_array().expect("buckets") {
            assert_eq!(bucket["doc_count"], json!(with_whole.len()), "{found}");
        }
        assert_eq!(found["count"]["value"], json!(2 * with_whole.len()), "{found}");
        assert_eq!(found["distinct"]["value"], json!(2), "{found}");
    }
}

#[test]
fn shapes_of_one_type_are_no_strings_of_another() {
    let declared = types("a", json!({"a": of_service("keyword"), "b": {"x-service-types": ["geoshape"]}}));
    let shape = json!({"type": "point", "coordinates": [1.0, 2.0]});
    let documents = [json!({"f": "{soup}"}), json!({"_type": "b", "f": shape})];
    assert_eq!(matching(&index_of(declared, &documents), prefix("f", "{")), [0]);
}

#[test]
fn a_template_may_keep_no_whole_strings_of_what_is_of_no_type() {
    let mut declared = types("a", json!({"a": of_service("keyword"), "b": {"type": "object"}}));
    declared["dynamic_templates"] = json!([{"match": "f", "mapping": {"type": "text"}}]);
    let documents = documents_of(&["Red Soup"], &["none", "a"]);
    assert_eq!(matching(&index_of(declared, &documents), prefix("f", "Red S")), [0, 2]);
}

const TEXTS: [&str; 9] =
    ["soup", "Red Soup", "soup of the day", "die hard", "the hard", "the", "2024-05-01", "10.1.2.3", "<b>red</b> soup"];

fn random_property(random: &mut Random) -> Value {
    let kinds = [
        json!(["text"]),
        json!(["keyword"]),
        json!(["text", "keyword"]),
        json!(["search_as_you_type"]),
        json!(["html"]),
        json!(["keyword", "numeric"]),
    ];
    let analyzer = ["standard", "german", "simple", "keyword"][random.below(4)];
    let mut property = json!({"x-service-analyzer": analyzer});
    if random.below(5) > 0 {
        property["x-service-types"] = kinds[random.below(kinds.len())].clone();
    }
    if random.below(4) == 0 {
        property["x-service-include-in-all"] = json!(true);
    }
    property
}

fn random_condition(random: &mut Random) -> Value {
    let text = TEXTS[random.below(TEXTS.len())];
    let field = ["f", "f", "f.keyword", "f._2gram"][random.below(4)];
    let operator = ["and", "or"][random.below(2)];
    match random.below(11) {
        0 => json!({"kind": "match", "field": field, "text": text, "operator": operator}),
        1 => json!({"kind": "match", "text": "soup", "operator": "and"}),
        2 => json!({"kind": "phrase", "field": field, "text": text}),
        3 => json!({"kind": "term", "field": field, "value": text}),
        4 => prefix(field, &text[..1 + random.below(3).min(text.len() - 1)]),
        5 => json!({"kind": "wildcard", "field": field, "pattern": "*o*"}),
        6 => json!({"kind": "fuzzy", "field": field, "value": "suop", "fuzziness": 1}),
        7 => json!({"kind": "range", "field": field, "gte": "R", "lt": "t"}),
        8 => json!({"kind": "exists", "field": field}),
        9 => json!({"kind": "bool_prefix", "fields": [{"field": field}, {"field": "g"}], "text": text}),
        _ => json!({"kind": "match", "field": field, "text": "suop", "fuzziness": 1}),
    }
}

#[test]
fn what_is_found_does_not_depend_on_which_types_share_an_index() {
    for seed in 0..24 {
        let mut random = Random::new(seed);
        let (a, b) = (random_property(&mut random), random_property(&mut random));
        let default = ["a", "b"][random.below(2)];
        let mut declared = types(default, json!({"a": a, "b": b}));
        if random.below(3) == 0 {
            let kind = ["text", "keyword"][random.below(2)];
            declared["dynamic_templates"] = json!([{"match": "f", "mapping": {"type": kind}}]);
        }
        let mut rows = Vec::new();
        for ordinal in 0..16 {
            let mut document = json!({"f": TEXTS[random.below(TEXTS.len())], "g": TEXTS[random.below(TEXTS.len())]});
            if random.below(4) > 0 {
                let name = ["a", "b", "c"][random.below(3)];
                document["_type"] = json!(name);
            }
            rows.push(put(&format!("k{ordinal}"), ordinal, document));
        }
        let index_with = |rows: &[Row]| {
            let index = TextIndex::open(Path::new("unused"), memory_options(declared.clone())).expect("an index");
            assert_eq!(index.apply(&frame(rows, 1)).expect("rows are applied").skipped, vec![]);
            index.commit(rows.len() as u64).expect("a commit");
            index
        };
        let (one, four) = ([index_with(&rows)], rows.chunks(4).map(index_with).collect::<Vec<_>>());
        for _ in 0..60 {
            let plan = plan(random_condition(&mut random));
            let found = |indexes: &[Arc<TextIndex>]| {
                let hits = query(indexes, &plan, &CancelFlag::default()).expect("the query runs").hits;
                let mut found: Vec<u32> = hits.iter().map(|hit| hit.ordinal).collect();
                found.sort_unstable();
                found
            };
            assert_eq!(found(&one), found(&four), "seed {seed}: {:?} by {declared}", plan.query);
        }
    }
}
