//! Highlights, explanations, and words that are misspelt.

use super::support::{frame, index_of, matching, memory_options, plan, put, run, schema, term};
use serde_json::{Value, json};
use sundew_engine::full_text::{HighlightPlan, QueryPlan, highlight_documents};

fn wanted() -> HighlightPlan {
    serde_json::from_value(json!({"fragment_chars": 150, "fragments": 3, "pre_tag": "<em>", "post_tag": "</em>"}))
        .expect("a highlight plan")
}

fn highlights_with(wanted: &HighlightPlan, schema: Value, plan: &QueryPlan, document: Value) -> Value {
    let frame = frame(&[put("a", 0, document)], 1);
    let json = highlight_documents(&memory_options(schema), plan, wanted, &frame).expect("highlights");
    let mut rows: Vec<Value> = serde_json::from_str(&json).expect("JSON");
    assert_eq!(rows.len(), 1);
    rows.remove(0)
}

fn highlights(query: Value, document: Value) -> Value {
    highlights_with(&wanted(), json!(null), &plan(query), document)
}

#[test]
fn words_are_marked_as_the_analyzer_sees_them() {
    let document = json!({"title": "Cooked soups, and a cook", "n": 5, "body": {"text": "No soup"}});
    assert_eq!(
        highlights(json!({"kind": "match", "text": "cooking soup"}), document.clone()),
        json!({"title": ["<em>Cooked</em> <em>soups</em>, and a <em>cook</em>"], "body.text": ["No <em>soup</em>"]})
    );
    assert_eq!(
        highlights(json!({"kind": "match", "field": "body.text", "text": "soup"}), document.clone()),
        json!({"body.text": ["No <em>soup</em>"]})
    );
    assert_eq!(highlights(json!({"kind": "match", "text": "bread"}), document.clone()), json!({}));
    assert_eq!(highlights(json!({"kind": "match_all"}), document), json!({}));
}

#[test]
fn a_character_of_a_script_without_spaces_is_marked_by_itself() {
    let document = json!({"t": "喝茶的人喜欢绿茶 and 茶"});
    for kind in ["match", "phrase"] {
        assert_eq!(
            highlights(json!({"kind": kind, "field": "t", "text": "茶"}), document.clone()),
            json!({"t": ["喝<em>茶</em>的人喜欢绿<em>茶</em> and <em>茶</em>"]}),
            "{kind}"
        );
    }
    assert_eq!(
        highlights(json!({"kind": "match", "field": "t", "text": "绿茶"}), document.clone()),
        json!({"t": ["喝茶的人喜欢<em>绿茶</em> and 茶"]})
    );
    assert_eq!(highlights(json!({"kind": "match", "field": "t", "text": "水"}), document), json!({}));
}

#[test]
fn every_kind_of_word_condition_marks() {
    let document = json!({"t": "the quick brown fox; brown quick"});
    let cases = [
        (json!({"kind": "phrase", "text": "quick brown"}), "the <em>quick</em> <em>brown</em> fox; brown quick"),
        (json!({"kind": "prefix", "field": "t", "value": "Qu"}), "the <em>quick</em> brown fox; brown <em>quick</em>"),
        (json!({"kind": "wildcard", "field": "t", "pattern": "f?x"}), "the quick brown <em>fox</em>; brown quick"),
        (
            json!({"kind": "regexp", "field": "t", "pattern": "bro.*"}),
            "the quick <em>brown</em> fox; <em>brown</em> quick",
        ),
        (
            json!({"kind": "fuzzy", "field": "t", "value": "brwn", "fuzziness": 1}),
            "the quick <em>brown</em> fox; <em>brown</em> quick",
        ),
        (
            json!({"kind": "match", "text": "quikc", "fuzziness": "typo", "prefix_length": 1}),
            "the <em>quick</em> brown fox; brown <em>quick</em>",
        ),
        (
            json!({"kind": "bool", "must": [{"kind": "match", "text": "fox"}], "must_not": [{"kind": "match", "text": "quick"}]}),
            "the quick brown <em>fox</em>; brown quick",
        ),
    ];
    for (query, expected) in cases {
        assert_eq!(highlights(query.clone(), document.clone()), json!({"t": [expected]}), "{query}");
    }
}

#[test]
fn a_phrase_is_marked_where_it_stands() {
    let phrase = |text: &str, slop: u32| json!({"kind": "phrase", "field": "t", "text": text, "slop": slop});
    let near = json!({"kind": "phrase", "field": "t", "text": "quikc fox", "fuzziness": 1});
    let terms =
        |slop: u32| json!({"kind": "terms_phrase", "field": "t", "terms": [["quick", "slow"], ["fox"]], "slop": slop});
    let cases = [
        (
            phrase("quick fox", 0),
            json!("a quick the fox, fox and quick fox"),
            Some("a quick the fox, fox and <em>quick</em> <em>fox</em>"),
        ),
        (
            phrase("quick the fox", 0),
            json!("quick the fox, quick fox"),
            Some("<em>quick</em> the <em>fox</em>, quick fox"),
        ),
        (phrase("quick and fox", 0), json!("quick, the fox"), Some("<em>quick</em>, the <em>fox</em>")),
        (phrase("fox", 0), json!("fox and quick fox"), Some("<em>fox</em> and quick <em>fox</em>")),
        (phrase("quick fox", 1), json!("fox, quick the fox"), Some("fox, <em>quick</em> the <em>fox</em>")),
        (phrase("quick fox", 1), json!("quick red big fox"), None),
        (
            phrase("quick quick", 1),
            json!("quick fox red quick, quick red quick"),
            Some("quick fox red <em>quick</em>, <em>quick</em> red <em>quick</em>"),
        ),
        (phrase("quick fox", 90), json!(["quick", "fox"]), None),
        (near, json!("quick red fox, quick fox"), Some("quick red fox, <em>quick</em> <em>fox</em>")),
        (
            terms(0),
            json!("fox quick fox slow fox slow"),
            Some("fox <em>quick</em> <em>fox</em> <em>slow</em> <em>fox</em> slow"),
        ),
        (terms(1), json!("quick"), None),
    ];
    for (query, text, expected) in cases {
        let document = json!({"t": text});
        let is_found = !matching(&index_of(json!(null), std::slice::from_ref(&document)), query.clone()).is_empty();
        assert_eq!(is_found, expected.is_some(), "{query} on {text}");
        let expected = expected.map_or(json!({}), |expected| json!({"t": [expected]}));
        assert_eq!(highlights(query.clone(), document), expected, "{query} on {text}");
    }
}

#[test]
fn words_whole_strings_and_dates_are_marked_by_the_rules_of_the_index() {
    let cases = [
        // In words case does not matter, in whole strings it does.
        (
            json!({"kind": "regexp", "field": "t", "pattern": "RED.*"}),
            json!({"t": "redder soup"}),
            Some("<em>redder</em> soup"),
        ),
        (
            json!({"kind": "prefix", "field": "t", "value": "Red S"}),
            json!({"t": "Red Soup"}),
            Some("<em>Red Soup</em>"),
        ),
        (json!({"kind": "prefix", "field": "t", "value": "red s"}), json!({"t": "Red Soup"}), None),
        (json!({"kind": "prefix", "field": "t", "value": "Red"}), json!({"t": "Red Soup"}), Some("<em>Red</em> Soup")),
        (
            json!({"kind": "fuzzy", "field": "t", "value": "Red Soups", "fuzziness": 1}),
            json!({"t": "Red Soup"}),
            Some("<em>Red Soup</em>"),
        ),
        (
            json!({"kind": "fuzzy", "field": "t", "value": "red soup", "fuzziness": 0}),
            json!({"t": "red and soup"}),
            None,
        ),
        (
            json!({"kind": "fuzzy", "field": "t", "value": "soups", "fuzziness": 1}),
            json!({"t": "hot soup"}),
            Some("hot <em>soup</em>"),
        ),
        // A term without a field is a token, one with a field a whole string.
        (json!({"kind": "term", "value": "soup"}), json!({"t": "hot soup"}), Some("hot <em>soup</em>")),
        (json!({"kind": "term", "field": "t", "value": "soup"}), json!({"t": "hot soup"}), None),
        // A text without words is a whole string.
        (json!({"kind": "match", "field": "t", "text": "A"}), json!({"t": "A"}), Some("<em>A</em>")),
        (
            json!({"kind": "match", "field": "t.keyword", "text": "hot soup"}),
            json!({"t": "hot soup"}),
            Some("<em>hot soup</em>"),
        ),
        (json!({"kind": "match", "field": "t.keyword", "text": "soup"}), json!({"t": "hot soup"}), None),
        // A date has no words.
        (json!({"kind": "match", "text": "2024"}), json!({"t": "2024-05-01"}), None),
        (
            json!({"kind": "match", "field": "t", "text": "2024-05-01T00:00:00Z"}),
            json!({"t": "2024-05-01"}),
            Some("<em>2024-05-01</em>"),
        ),
    ];
    for (query, document, expected) in cases {
        let is_found = !matching(&index_of(json!(null), std::slice::from_ref(&document)), query.clone()).is_empty();
        assert_eq!(is_found, expected.is_some(), "{query} on {document}");
        let expected = expected.map_or(json!({}), |expected| json!({"t": [expected]}));
        assert_eq!(highlights(query.clone(), document.clone()), expected, "{query} on {document}");
    }
}

#[test]
fn each_type_marks_by_its_own_rules() {
    let typed = |types: Value, in_all: bool| {
        json!({"schema": {"type": "object", "properties": {
            "f": {"type": "string", "x-service-types": types, "x-service-include-in-all": in_all}
        }}})
    };
    let schema = json!({"document_schemas": {
        "whole": typed(json!(["keyword"]), true),
        "words": typed(json!(["text"]), false),
        "typed": typed(json!(["search_as_you_type"]), true)
    }});
    let documents = ["whole", "words", "typed"].map(|name| put(name, 0, json!({"_type": name, "f": "red soup"})));
    let frame = frame(&documents, 1);
    let ask = |query: Value| -> Vec<Value> {
        let json = highlight_documents(&memory_options(schema.clone()), &plan(query), &wanted(), &frame);
        let rows: Vec<Value> = serde_json::from_str(&json.expect("highlights")).expect("JSON");
        rows.iter().map(|row| row["f"][0].clone()).collect()
    };
    let (none, word, whole) = (Value::Null, json!("red <em>soup</em>"), json!("<em>red soup</em>"));
    let all = json!({"kind": "match", "text": "soup"});
    // Types whose texts lie together are searched alike.
    assert_eq!(ask(all), [word.clone(), word.clone(), word.clone()]);
    let term = json!({"kind": "term", "field": "f", "value": "red soup"});
    assert_eq!(ask(term), [whole, none.clone(), none.clone()]);
    let shingle = json!({"kind": "match", "field": "f._2gram", "text": "red soup"});
    assert_eq!(ask(shingle), [none.clone(), none.clone(), json!("<em>red soup</em>")]);
    let shingle = json!({"kind": "match", "field": "f._2gram", "text": "soup"});
    assert_eq!(ask(shingle), [none.clone(), none.clone(), none]);
}

#[test]
fn arrays_html_and_whole_strings() {
    let schema = json!({"document_schemas": {"d": {"schema": {"properties": {
        "page": {"type": "string", "x-service-types": ["html"]},
        "code": {"type": "string", "x-service-types": ["keyword"]}
    }}}}});
    let document =
        json!({"page": "<p>Leek <b>soup</b> &amp; bread</p>", "code": "A-1", "tags": ["soup", "hot soup", "x"]});
    let ask = |query: Value| highlights_with(&wanted(), schema.clone(), &plan(query), document.clone());
    let found = ask(json!({"kind": "match", "field": "page", "text": "soup bread"}));
    let page = found["page"][0].as_str().expect("a fragment");
    assert!(page.contains("<em>soup</em>") && page.contains("<em>bread</em>") && !page.contains("<p>"), "{page}");
    assert_eq!(ask(json!({"kind": "term", "field": "code", "value": "A-1"})), json!({"code": ["<em>A-1</em>"]}));
    assert_eq!(ask(json!({"kind": "term", "field": "code", "value": "a-1"})), json!({}));
    let tags = ask(json!({"kind": "match", "field": "tags", "text": "soup"}));
    assert_eq!(tags, json!({"tags": ["<em>soup</em>", "hot <em>soup</em>"]}));
}

#[test]
fn fields_and_fragments_are_bounded() {
    let mut wanted = wanted();
    wanted.fields = vec!["b".to_owned()];
    wanted.fragments = 2;
    wanted.fragment_chars = 40;
    let document = json!({"a": "soup", "b": format!("soup {}", "and some words before the next soup ".repeat(20))});
    let found = highlights_with(&wanted, json!(null), &plan(json!({"kind": "match", "text": "soup"})), document);
    assert_eq!(found.as_object().expect("an object").keys().collect::<Vec<_>>(), ["b"]);
    let fragments = found["b"].as_array().expect("fragments");
    assert_eq!(fragments.len(), 2);
    for fragment in fragments {
        let text = fragment.as_str().expect("text").replace("<em>", "").replace("</em>", "");
        assert!(text.chars().count() <= 40 && text.contains("soup"), "{text}");
    }
}

#[test]
fn an_explanation_adds_up_and_names_fields() {
    let documents = [json!({"title": "leek soup", "n": 1}), json!({"title": "soup", "body": "soup soup"})];
    let index = index_of(json!(null), &documents);
    let mut plan = plan(json!({"kind": "bool", "should": [
        {"kind": "match", "field": "title", "text": "leek soup", "boost": 2.0},
        {"kind": "match", "field": "body", "text": "soup"},
        {"kind": "term", "field": "n", "value": 1}
    ]}));
    assert_eq!(run(&index, &plan).explanations, "");
    plan.explain = true;
    let hits = run(&index, &plan);
    let explained: Vec<Value> = serde_json::from_str(&hits.explanations).expect("JSON");
    assert_eq!(explained.len(), 2);
    for (hit, tree) in hits.hits.iter().zip(&explained) {
        let value = tree["value"].as_f64().expect("a score") as f32;
        assert!((value - hit.score).abs() <= hit.score * 1e-4, "{tree}");
        let parts: f64 =
            tree["details"].as_array().expect("parts").iter().map(|part| part["value"].as_f64().unwrap_or(0.0)).sum();
        assert!((parts as f32 - value).abs() < 1e-4, "{tree}");
    }
    let text = hits.explanations;
    for expected in
        ["title:\\\"leek\\\": product of", "title:\\\"soup\\\"", "body:\\\"soup\\\"", "n:1", "2 times", "idf"]
    {
        assert!(text.contains(expected), "{expected} in {text}");
    }
    assert!(!text.contains("field="), "{text}");
}

#[test]
fn a_slip_finds_less_than_the_word_itself_and_a_field_may_refuse_slips() {
    let schema = json!({"document_schemas": {"d": {"schema": {"properties": {
        "name": {"type": "string", "x-service-typo": false}
    }}}}});
    let mut documents = vec![json!({"t": "leek and bread with very many other words in it that make it a long text"})];
    documents.extend((0..20).map(|_| json!({"t": "broad"})));
    documents.push(json!({"name": "bread"}));
    documents.push(json!({"t": "tread"}));
    let index = index_of(schema, &documents);
    let near = |field: &str, text: &str| {
        let node = json!({"kind": "match", "field": field, "text": text, "fuzziness": "typo", "prefix_length": 1});
        run(&index, &plan(node)).hits.iter().map(|hit| hit.ordinal).collect::<Vec<u32>>()
    };
    let found = near("t", "bread");
    assert_eq!((found.len(), found[0]), (21, 0));
    assert_eq!(near("t", "braed"), [0]);
    assert!(near("t", "leak").is_empty());
    assert!(near("name", "braed").is_empty());
    assert_eq!(near("name", "bread"), [21]);
}

#[test]
fn literals_declared_as_text_addresses_and_ranges_are_marked_as_they_are_found() {
    let schema = json!({"document_schemas": {"d": {"schema": {"properties": {
        "code": {"type": ["number", "boolean", "string"], "x-service-types": ["text"]},
        "size": {"type": "number"}}}}}});
    let document = json!({"code": [12, 7, true, "12 b"], "size": 12, "host": ["10.1.2.3", "11.0.0.1", "near 10.1.2.3"],
        "name": ["amber", "birch", "cedar"], "day": ["2024-05-01", "2025-01-01"]});
    let range = |field: &str, bounds: Value| {
        let mut node = json!({"kind": "range", "field": field});
        node.as_object_mut().expect("an object").extend(bounds.as_object().expect("bounds").clone());
        node
    };
    for (query, expected) in [
        (json!({"kind": "match", "field": "code", "text": "12"}), json!({"code": ["<em>12</em>", "<em>12</em> b"]})),
        (json!({"kind": "match", "field": "code", "text": "TRUE"}), json!({"code": ["<em>true</em>"]})),
        (json!({"kind": "match", "field": "size", "text": "12"}), json!({})),
        (json!({"kind": "ip_range", "field": "host", "cidr": "10.0.0.0/8"}), json!({"host": ["<em>10.1.2.3</em>"]})),
        (range("name", json!({"gte": "amber", "lt": "cedar"})), json!({"name": ["<em>amber</em>", "<em>birch</em>"]})),
        (range("name", json!({"gt": "amber"})), json!({"name": ["<em>birch</em>", "<em>cedar</em>"]})),
        (range("name", json!({"lt": "b", "of": "term"})), json!({"name": ["<em>amber</em>"]})),
        (range("day", json!({"gte": "2024-12-31"})), json!({"day": ["<em>2025-01-01</em>"]})),
        (range("size", json!({"gte": 1})), json!({})),
    ] {
        let marked = highlights_with(&wanted(), schema.clone(), &plan(query.clone()), document.clone());
        assert_eq!(marked, expected, "{query}");
        if expected != json!({}) {
            assert_eq!(
                matching(&index_of(schema.clone(), std::slice::from_ref(&document)), query.clone()),
                [0],
                "{query}"
            );
        }
    }
}

#[test]
fn a_number_or_a_boolean_that_is_a_string_is_marked() {
    let keyword = json!({"type": "string", "x-service-types": ["keyword"]});
    let schema = schema(json!({"year": keyword, "fresh": keyword, "n": {"type": "number"}}));
    let document = json!({"year": 2024, "fresh": true, "n": 2024});
    let marked = |node: Value| highlights_with(&wanted(), schema.clone(), &plan(node), document.clone());
    assert_eq!(marked(term("year", 2024)), json!({"year": ["<em>2024</em>"]}));
    assert_eq!(marked(term("fresh", true)), json!({"fresh": ["<em>true</em>"]}));
    assert_eq!(
        marked(json!({"kind": "bool_field", "field": "fresh", "value": true})),
        json!({"fresh": ["<em>true</em>"]})
    );
    assert_eq!(marked(term("n", 2024)), json!({}));
}
