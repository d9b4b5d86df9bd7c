//! Which form of a value is searchable, by schema, templates and inference.

use super::support::*;
use serde_json::{Value, json};
use sundew_engine::full_text::{Analyzer, CancelFlag, query, tokens_of};

fn words(analyzer: &str, text: &str) -> Vec<String> {
    let analyzer = Analyzer::named(analyzer).expect("a known analyzer");
    tokens_of(analyzer, text).into_iter().map(|token| token.text).collect()
}

#[test]
fn analyzers() {
    for (analyzer, text, expected) in [
        ("standard", "The Quick-Brown foxes, jumping!", vec!["quick", "brown", "fox", "jump"]),
        ("default", "a to the", vec![]),
        ("standard", "don't John's café ÉCOLE", vec!["don't", "john", "café", "école"]),
        ("standard", "v3.14 costs 1,000 at example.com, a_b ___", vec!["v3.14", "cost", "1,000", "example.com", "a_b"]),
        ("standard", "end. Next, 5.", vec!["end", "next", "5"]),
        ("standard", "東京都 is 京 ab", vec!["東京", "京都", "京", "ab"]),
        ("standard", "한국어 text", vec!["한국", "국어", "text"]),
        ("standard", "हिन्दी привет", vec!["हिन्दी", "привет"]),
        ("standard", "", vec![]),
        ("simple", "R2D2 the Don't", vec!["r", "d", "the", "don", "t"]),
        ("keyword", "As It Is", vec!["As It Is"]),
        (
            "html",
            "<p class=\"a>b\">Soup &amp; <b>breads</b></p><script>var x = 1;</script> &#99;afe",
            vec!["soup", "bread", "cafe"],
        ),
        ("html", "1 < 2 & <!-- no --> yes", vec!["1", "2", "yes"]),
        ("html", "<style-guide>red</style-guide><SCRIPT>no</SCRIPT\n><style>no</style> tea", vec!["red", "tea"]),
        ("html", "<script>no</script> an open <script type> tag", vec!["open", "script", "type", "tag"]),
        ("german", "Die Häuser und Katzen", vec!["haus", "katz"]),
        ("french", "les maisons", vec!["maison"]),
        ("search_as_you_type", "The Quick", vec!["the", "quick"]),
        ("search_as_you_type_2gram", "the quick brown", vec!["the quick", "quick brown"]),
        ("search_as_you_type_3gram", "the quick brown fox", vec!["the quick brown", "quick brown fox"]),
        ("search_as_you_type_index_prefix", "ab cd", vec!["ab", "ab c", "ab cd", "cd"]),
    ] {
        assert_eq!(words(analyzer, text), expected, "{analyzer} of {text:?}");
    }
    let long = "x".repeat(256);
    assert_eq!(words("standard", &format!("{long} short")), [&long[..255], "short"]);
    assert_eq!(words("standard", &"É".repeat(200)), ["é".repeat(127)]);
    assert!(Analyzer::named("klingon").is_none());
    for name in
        ["spanish", "italian", "portuguese", "dutch", "swedish", "norwegian", "danish", "finnish", "html_analyzer"]
    {
        assert!(Analyzer::named(name).is_some(), "{name}");
    }
}

#[test]
fn positions_leave_gaps_for_stop_words() {
    let positions: Vec<usize> =
        tokens_of(Analyzer::Standard, "soup of the day").iter().map(|token| token.position).collect();
    assert_eq!(positions, [0, 3]);
}

#[test]
fn declared_types() {
    let of = |types: Value| schema(json!({"f": {"type": "string", "x-service-types": types}}));
    let document = || json!({"f": "Running Water"});
    for (types, query, expected) in [
        (json!(["text"]), word("f", "run"), true),
        (json!(["text"]), term("f", "Running Water"), false),
        (json!(["text"]), term("f", "run"), true),
        (json!(["keyword"]), word("f", "running"), false),
        (json!(["keyword"]), word("f", "Running Water"), true),
        (json!(["keyword"]), term("f", "Running Water"), true),
        (json!(["keyword"]), json!({"kind": "prefix", "field": "f", "value": "Running W"}), true),
        (json!(["link"]), term("f", "Running Water"), true),
        (json!(["text", "keyword"]), word("f", "run"), true),
        (json!(["text", "keyword"]), term("f", "Running Water"), true),
        (json!(["text", "keyword"]), term("f.keyword", "Running Water"), true),
        (json!(["text"]), term("f.keyword", "Running Water"), false),
        (json!(["search_as_you_type"]), word("f", "run"), true),
        (json!(["search_as_you_type"]), word("f._2gram", "running water"), true),
        (json!(["search_as_you_type"]), term("f._index_prefix", "running w"), true),
        (json!(["geoshape"]), json!({"kind": "exists", "field": "f"}), false),
    ] {
        assert_eq!(found(of(types.clone()), document(), query.clone()), expected, "{types} {query}");
    }
    let aliased = schema(json!({"f": {"type": "string", "x-antfly-types": ["keyword"]}}));
    assert!(!found(aliased, document(), word("f", "running")));
    let hidden = schema(json!({"f": {"type": "string", "x-service-index": false}}));
    for left_out in [of(json!(["embedding"])), of(json!(["blob"])), hidden] {
        for node in [word("f", "run"), term("f", "Running Water"), json!({"kind": "exists", "field": "f"})] {
            assert!(!found(left_out.clone(), document(), node.clone()));
            let others = json!({"kind": "bool", "must_not": [node]});
            let index = index_of(left_out.clone(), &[document()]);
            assert!(is_refused(&index, others.clone()));
            let shown = json!({"query": {"kind": "match_all"}, "row_filter": [others], "limit": 1});
            let plan = serde_json::from_value(shown).expect("a plan");
            let refused = query(std::slice::from_ref(&index), &plan, &CancelFlag::default()).expect_err("refused");
            assert!(refused.message.contains("an administrator has to change it"));
        }
    }
    let german = schema(json!({"f": {"type": "string", "x-service-types": ["text"], "x-service-analyzer": "german"}}));
    assert!(found(german, json!({"f": "Die Häuser"}), word("f", "haus")));
    let html = schema(json!({"f": {"type": "string", "x-service-types": ["html"]}}));
    assert!(found(html, json!({"f": "<b>Soup</b>s"}), word("f", "soup")));
}

#[test]
fn a_declared_name_with_dots_has_its_own_type_in_queries() {
    let german = json!({"type": "string", "x-service-types": ["text"], "x-service-analyzer": "german"});
    let keyword = json!({"type": "string", "x-service-types": ["keyword"]});
    let inner = json!({"type": "object", "properties": {"d.e": keyword, "f": german}});
    let typed = schema(json!({"a.b": german, "a": {"type": "object", "properties": {"c": keyword}}, "x.y": inner}));
    let document = json!({"a.b": "Die Häuser", "a": {"c": "As It Is"}, "x.y": {"d.e": "As It Is", "f": "Katzen"},
        "free.name": "Running Water"});
    for (query, expected) in [
        (word("a.b", "haus"), true),
        (word("a.b", "Häuser"), true),
        (term("a.b", "Die Häuser"), false),
        (word("a.c", "As It Is"), true),
        (word("a.c", "is"), false),
        (word("x.y.d.e", "As It Is"), true),
        (word("x.y.d.e", "it"), false),
        (word("x.y.f", "Katze"), true),
        (word("free.name", "run"), true),
        (word("a", "haus"), false),
        (word("a.b.", "haus"), false),
    ] {
        assert_eq!(found(typed.clone(), document.clone(), query.clone()), expected, "{query}");
    }
}

#[test]
fn numbers_booleans_and_dates() {
    let typed = schema(json!({
        "n": {"type": "number"}, "b": {"type": "boolean"}, "d": {"type": "string", "format": "date-time"},
        "k": {"type": "integer", "x-service-types": ["keyword"]}, "s": {"type": "string"}
    }));
    let document = json!({"n": 5, "b": true, "d": "2024-01-02T00:00:00Z", "k": 42, "s": "2024-01-02"});
    for (query, expected) in [
        (term("n", 5), true),
        (term("n", 5.0), true),
        (term("n", 5.5), false),
        (term("b", true), true),
        (json!({"kind": "range", "field": "d", "gte": "2024-01-01"}), true),
        (term("k", "42"), true),
        (term("s", "2024-01-02"), true),
    ] {
        assert_eq!(found(typed.clone(), document.clone(), query.clone()), expected, "{query}");
    }
    let inferred =
        json!({"d": "2024-01-02", "not": "2024-13-45", "far": "1500-01-01", "f": 2.5, "big": 9007199254740992i64});
    for (query, expected) in [
        (json!({"kind": "range", "field": "d", "gte": "2024-01-01", "lt": "2024-01-03"}), true),
        (word("not", "2024-13-45"), true),
        (term("far", "1500-01-01"), true),
        (term("f", 2.5), true),
        (term("big", 9007199254740992i64), true),
    ] {
        assert_eq!(found(Value::Null, inferred.clone(), query.clone()), expected, "{query}");
    }
}

#[test]
fn undeclared_fields() {
    let with = |additional: Value, enforce: bool| {
        let mut of_type = json!({"type": "object", "properties": {"f": {"type": "string"}}});
        if !additional.is_null() {
            of_type["additionalProperties"] = additional;
        }
        json!({"enforce_types": enforce, "document_schemas": {"doc": {"schema": of_type}}})
    };
    let document = || json!({"f": "soup", "g": "bread"});
    for (schema, expected) in [
        (with(Value::Null, false), true),
        (with(Value::Null, true), false),
        (with(json!(false), false), false),
        (with(json!(true), true), true),
        (with(json!({"type": "string", "x-service-types": ["keyword"]}), false), true),
    ] {
        assert_eq!(found(schema.clone(), document(), word("g", "bread")), expected, "{schema}");
        assert!(found(schema, document(), word("f", "soup")));
    }
    let pattern = json!({"document_schemas": {"doc": {"schema": {
        "type": "object", "patternProperties": {"_code$": {"type": "string", "x-service-types": ["keyword"]}}}}}});
    assert!(!found(pattern.clone(), json!({"a_code": "X Y"}), word("a_code", "x")));
    assert!(found(pattern, json!({"a_code": "X Y"}), term("a_code", "X Y")));
}

#[test]
fn dynamic_templates() {
    let templates = json!({"dynamic_templates": [
        {"name": "ids", "match": "*_id", "mapping": {"type": "keyword"}},
        {"path_match": "meta.**", "match_mapping_type": "string", "mapping": {"type": "text", "analyzer": "german"}},
        {"match": "hidden", "mapping": {"index": false}},
        {"match": "count", "match_mapping_type": "number", "mapping": {"type": "keyword"}}
    ]});
    let document =
        json!({"user_id": "Ann Lee", "meta": {"a": "Die Häuser"}, "hidden": "soup", "count": 7, "other": "Soups"});
    for (query, expected) in [
        (word("user_id", "ann"), false),
        (term("user_id", "Ann Lee"), true),
        (word("meta.a", "haus"), true),
        (word("hidden", "soup"), false),
        (term("count", "7"), true),
        (word("other", "soup"), true),
    ] {
        assert_eq!(found(templates.clone(), document.clone(), query.clone()), expected, "{query}");
    }
    let as_map = json!({"dynamic_templates": {"ids": {"match": "*_id", "mapping": {"type": "keyword"}}}});
    assert!(!found(as_map, document, word("user_id", "ann")));
}

#[test]
fn nested_objects_arrays_and_references() {
    let nested = json!({"document_schemas": {"doc": {"schema": {
    "type": "object",
    "$defs": {"person": {"type": "object", "properties": {"name": {"type": "string", "x-service-types": ["keyword"]}}}},
    "properties": {
        "author": {"$ref": "#/$defs/person"},
        "reviewers": {"type": "array", "items": {"$ref": "#/$defs/person"}},
        "tags": {"type": "array", "x-service-types": ["keyword"], "items": {"type": "string"}}
    }}}}});
    let document = json!({"author": {"name": "Ann Lee"}, "reviewers": [{"name": "Bo Ek"}, {"name": "Cy Fo"}], "tags": ["A B", "C"]});
    for (query, expected) in [
        (term("author.name", "Ann Lee"), true),
        (word("author.name", "ann"), false),
        (term("reviewers.name", "Cy Fo"), true),
        (word("reviewers.name", "cy"), false),
        (term("tags", "A B"), true),
        (word("tags", "a"), false),
    ] {
        assert_eq!(found(nested.clone(), document.clone(), query.clone()), expected, "{query}");
    }
    // Matrices and mixed arrays.
    assert!(found(Value::Null, json!({"m": [[1, 2], [3, ["deep", {"x": true}]]]}), term("m.x", true)));
    assert!(found(Value::Null, json!({"m": [[1, 2], [3, ["deep"]]]}), term("m", 3)));
    assert!(found(Value::Null, json!({"a.b": 1}), term("a.b", 1)));
}

#[test]
fn document_types() {
    let schema = json!({"default_type": "a", "document_schemas": {
        "a": {"schema": {"type": "object", "properties": {"f": {"type": "string", "x-service-types": ["keyword"]}}}},
        "b": {"schema": {"type": "object", "properties": {"f": {"type": "string", "x-service-types": ["text"]}}}}}});
    let documents =
        [json!({"f": "Red Soup"}), json!({"f": "Red Soup", "_type": "b"}), json!({"_type": "other", "f": "Red Soup"})];
    let index = index_of(schema, &documents);
    assert_eq!(matching(&index, word("f", "soup")), [1, 2]);
    assert_eq!(matching(&index, word("f", "Red Soup")), [0, 1, 2]);
    assert_eq!(matching(&index, term("f", "Red Soup")), [0, 2]);
    assert_eq!(matching(&index, term("_type", "b")), [1]);
}

#[test]
fn members_of_the_service() {
    let document = json!({"_timestamp": "2024-01-01T00:00:00Z", "_summaries": {"a": "soup"}, "x": {"_inner": "soup"}});
    for (query, expected) in
        [(json!({"kind": "range", "field": "_timestamp", "gte": "2024-01-01"}), true), (word("x._inner", "soup"), true)]
    {
        assert_eq!(found(Value::Null, document.clone(), query.clone()), expected, "{query}");
    }
    assert!(is_refused(&index_of(Value::Null, &[document]), word("_summaries.a", "soup")));
}

#[test]
fn queries_without_a_field() {
    let all = |title: Value, other: Value| {
        json!({"document_schemas": {"doc": {"schema": {"type": "object", "properties": {
            "title": title, "code": other, "body": {"type": "string"}}}}}})
    };
    let document = json!({"title": "Red Soup", "code": "Blue Bread", "body": "green leek"});
    let anywhere = |text: &str| json!({"kind": "match", "text": text});
    let none = all(json!({"type": "string"}), json!({"type": "string"}));
    assert!(found(none, document.clone(), anywhere("leek")));
    let title_only = all(json!({"type": "string", "x-service-include-in-all": true}), json!({"type": "string"}));
    assert!(found(title_only.clone(), document.clone(), anywhere("soup")));
    assert!(!found(title_only, document.clone(), anywhere("leek")));
    let mut listed = all(json!({"type": "string"}), json!({"type": "string", "x-service-types": ["keyword"]}));
    listed["document_schemas"]["doc"]["schema"]["x-service-include-in-all"] = json!(["title", "code"]);
    assert!(found(listed.clone(), document.clone(), anywhere("soup")));
    assert!(found(listed.clone(), document.clone(), anywhere("bread")));
    assert!(!found(listed, document, anywhere("leek")));
}

#[test]
fn search_as_you_type() {
    let schema = schema(json!({"title": {"type": "string", "x-service-types": ["search_as_you_type"]}}));
    let documents = [
        json!({"title": "Quick brown fox"}),
        json!({"title": "brown quick fox"}),
        json!({"title": "quickly running"}),
        json!({"title": "slow bread"}),
    ];
    let index = index_of(schema, &documents);
    let typed = |text: &str| json!({"kind": "bool_prefix", "fields": [{"field": "title"}], "text": text});
    assert_eq!(matching(&index, typed("qui")), [0, 1, 2]);
    assert_eq!(matching(&index, typed("quick bro")), [0, 1, 2]);
    assert_eq!(run(&index, &plan(typed("quick bro"))).hits[0].ordinal, 0, "the words in order score best");
    assert_eq!(matching(&index, typed("runn")), [2]);
    assert_eq!(matching(&index, typed("zzz")), Vec::<u32>::new());
}

#[test]
fn paths_beyond_the_slots_are_searchable() {
    let documents: Vec<Value> = (0..3)
        .map(|at| {
            let member = |path: usize| (format!("f{path}"), json!(format!("word{at} number{path} soup")));
            Value::Object((0..200).map(member).collect())
        })
        .collect();
    let index = index_of(Value::Null, &documents);
    assert_eq!(index.slots_used(), (64, 64));
    for path in [0, 63, 64, 199] {
        let field = format!("f{path}");
        assert_eq!(matching(&index, word(&field, "word1")), [1], "{field}");
        assert_eq!(
            matching(&index, json!({"kind": "phrase", "field": field, "text": format!("number{path} soup")})),
            [0, 1, 2]
        );
        assert_eq!(
            matching(&index, json!({"kind": "phrase", "field": field, "text": "soup word1"})),
            Vec::<u32>::new()
        );
        assert_eq!(matching(&index, json!({"kind": "prefix", "field": field, "value": "wor"})), [0, 1, 2]);
        assert_eq!(matching(&index, word(&field, "number5")), if path == 5 { vec![0, 1, 2] } else { vec![] });
    }
    assert_eq!(matching(&index, json!({"kind": "match", "text": "number150"})), [0, 1, 2]);
    assert_eq!(matching(&index, json!({"kind": "match", "text": "number3 number150 word2", "operator": "and"})), [2]);
    assert_eq!(matching(&index, word("f250", "soup")), Vec::<u32>::new());
}

#[test]
fn strange_documents() {
    let long = "x".repeat(300);
    let deep = (0..60).fold(json!("soup"), |inner, _| json!({"d": inner}));
    let path = vec!["d"; 60].join(".");
    let document = json!({"": "empty", "a\\b": "slash", "a\u{1}b": "odd", "é ü": "spaces", "long": long, "deep": deep,
        "null": null, "list": [], "nested": {"": {"x": 1}}});
    let index = index_of(Value::Null, &[document]);
    for (query, expected) in [
        (term("a\\b", "slash"), true),
        (word("a\\b", "slash"), true),
        (word("é ü", "spaces"), true),
        (json!({"kind": "exists", "field": "long"}), true),
        (word(&format!("deep.{path}"), "soup"), true),
        (json!({"kind": "exists", "field": "null"}), false),
        (json!({"kind": "exists", "field": "list"}), false),
    ] {
        assert_eq!(!matching(&index, query.clone()).is_empty(), expected, "{query}");
    }
    assert!(is_refused(&index, term("long", "x".repeat(300))));
    assert!(is_refused(&index, word("a\u{1}b", "odd")));
}

/// Takes all slots; the paths of other documents lie beyond them.
fn many_paths() -> Value {
    (0..70).map(|at| (format!("f{at}"), json!("filler"))).collect::<serde_json::Map<_, _>>().into()
}

#[test]
fn a_text_beyond_the_slots_is_found_without_its_field_whatever_its_analyzer() {
    let german = schema(json!({"de": {"type": "string", "x-service-types": ["text"], "x-service-analyzer": "german"}}));
    let index = index_of(german, &[many_paths(), json!({"de": "Häuser"}), json!({"other": "soups"})]);
    for (text, expected) in [("Häuser", 1), ("soup", 2)] {
        assert_eq!(matching(&index, json!({"kind": "match", "text": text})), [expected], "{text}");
    }
}

#[test]
fn every_word_is_asked_for_beside_slots_of_a_search_as_you_type_field() {
    let declared = schema(json!({"s": {"type": "string", "x-service-types": ["search_as_you_type"]}}));
    let documents =
        [json!({"s": "one two three"}), many_paths(), json!({"s": "one two four"}), json!({"x": "one two"})];
    let index = index_of(declared, &documents);
    let every = json!({"kind": "match", "text": "one two four", "operator": "and"});
    assert_eq!(matching(&index, every), [2]);
}

#[test]
fn a_whole_string_is_found_by_its_keyword_name_with_all_slots_taken() {
    let documents = [many_paths(), json!({"title": "Leek Soup"}), json!({"title": {"keyword": "Leek Soup now"}})];
    let index = index_of(Value::Null, &documents);
    assert_eq!(matching(&index, word("title.keyword", "Leek Soup")), [1, 2]);
    assert_eq!(matching(&index, term("title.keyword", "Leek Soup")), [1]);
    let beginning =
        json!({"kind": "bool_prefix", "fields": [{"field": "title.keyword", "boost": 1.0}], "text": "Leek S"});
    assert_eq!(matching(&index, beginning), [1, 2]);
}

#[test]
fn a_match_compares_whole_strings_of_a_keyword_that_queries_without_a_field_search_too() {
    let keyword = json!({"type": "string", "x-service-types": ["keyword"], "x-service-include-in-all": true});
    let declared = schema(json!({"k": keyword}));
    let documents = [json!({"k": "Leek Soup"}), json!({"_type": "other", "k": "Leek Soup now"}), many_paths()];
    let index = index_of(declared, &documents);
    assert_eq!(matching(&index, word("k", "Leek Soup")), [0, 1]);
    assert_eq!(matching(&index, json!({"kind": "match", "text": "leek"})), [0]);
}

fn every(field: Option<&str>, text: &str) -> Value {
    let mut query = json!({"kind": "match", "text": text, "operator": "and"});
    if let Some(field) = field {
        query["field"] = json!(field);
    }
    query
}

#[test]
fn every_word_that_a_texts_own_analyzer_keeps_is_asked_for() {
    let text = |analyzer: &str| json!({"type": "string", "x-service-types": ["text"], "x-service-analyzer": analyzer});
    let of_type = |analyzer: &str| json!({"schema": {"type": "object", "properties": {"t": text(analyzer), analyzer: text(analyzer)}}});
    let declared = json!({"default_type": "en", "document_schemas": {
        "en": of_type("standard"), "de": of_type("german"), "whole": of_type("keyword")}});
    let documents = [
        json!({"t": "die hard"}),
        json!({"t": "hard"}),
        json!({"_type": "de", "t": "die hard"}),
        json!({"_type": "de", "t": "hard"}),
        json!({"_type": "de", "t": "the hard"}),
        json!({"t": "the hard"}),
        json!({"_type": "whole", "t": "die hard"}),
        json!({"_type": "whole", "t": "hard"}),
    ];
    for beyond_the_slots in [false, true] {
        let mut all = documents.to_vec();
        if beyond_the_slots {
            all.insert(0, many_paths());
        }
        let index = index_of(declared.clone(), &all);
        for field in [Some("t"), None] {
            for (text, expected) in [
                ("die hard", vec![0, 2, 3, 4, 6]),
                ("the hard", vec![0, 1, 4, 5]),
                ("hard", vec![0, 1, 2, 3, 4, 5, 7]),
                ("the die", vec![0, 4]),
                ("hard work", vec![]),
            ] {
                let expected: Vec<u32> = expected.iter().map(|at| at + u32::from(beyond_the_slots)).collect();
                assert_eq!(matching(&index, every(field, text)), expected, "{field:?} {text} {beyond_the_slots}");
            }
        }
    }
    // The words may be spread over fields of several languages.
    let spread = [json!({"standard": "die", "other": "hard"}), json!({"_type": "de", "german": "hard", "other": "x"})];
    let index = index_of(declared, &spread);
    assert_eq!(matching(&index, every(None, "die hard")), [0, 1]);
    assert_eq!(matching(&index, every(None, "die hard x")), [1]);
}

#[test]
fn a_text_of_scripts_that_are_not_closed_is_read_once() {
    // A search for the end of each would take minutes.
    assert_eq!(words("html", &"<script <style ".repeat(100_000)).len(), 200_000);
}

#[test]
fn what_stands_beside_a_reference_holds_too() {
    let declared = json!({"document_schemas": {"doc": {"schema": {
        "$ref": "#/$defs/recipe",
        "properties": {"source": {"$ref": "#/$defs/name", "x-service-index": false}},
        "$defs": {
            "name": {"type": "string", "x-service-types": ["keyword"]},
            "recipe": {"type": "object", "properties": {
                "title": {"$ref": "#/$defs/name"},
                "note": {"$ref": "#/$defs/name", "x-service-types": ["text"]},
                "parts": {"type": "array", "items": {"$ref": "#/$defs/recipe"}}
            }}
        }
    }}}});
    let document =
        json!({"title": "Leek Soup", "note": "Serve Hot", "source": "A Book", "parts": [{"title": "Old Bread"}]});
    for (query, expected) in [
        (term("title", "Leek Soup"), true),
        (word("title", "leek"), false),
        (word("note", "hot"), true),
        (term("note", "Serve Hot"), false),
        (term("parts.title", "Old Bread"), true),
        (word("parts.title", "bread"), false),
        (term("source", "A Book"), false),
    ] {
        assert_eq!(found(declared.clone(), document.clone(), query.clone()), expected, "{query}");
    }
}
