//! Indexes that are searched for the texts of a document's artifacts.

use super::support::*;
use serde_json::json;
use sundew_engine::full_text::{DerivedIndex, IndexOptions, TextIndex, text_stats};

#[test]
fn an_index_over_artifacts_is_searched_for_their_texts_and_finds_the_document_by_its_own_fields() {
    let schemas = [
        json!(null),
        schema(json!({"title": {"type": "string", "x-service-types": ["text"]}})),
        schema(json!({
            "title": {"type": "string", "x-service-types": ["text"], "x-service-include-in-all": true},
            "tag": {"type": "string", "x-service-types": ["keyword"], "x-service-include-in-all": true}})),
    ];
    for plain in schemas {
        let mut over = if plain.is_null() { json!({}) } else { plain };
        over["searches_artifacts"] = json!(true);
        let document = json!({"title": "leek soup", "tag": "easy", "n": 3,
            "_artifacts": {"steps": ["chop it", "boil it"], "label": {"kind": "starter"}}});
        for (query, expected) in [
            (json!({"kind": "match", "text": "boil"}), true),
            (json!({"kind": "match", "text": "starter"}), true),
            (json!({"kind": "match", "text": "leek"}), false),
            (json!({"kind": "match", "text": "easy"}), false),
            (json!({"kind": "prefix", "value": "lee"}), false),
            (word("title", "leek"), true),
            (word("_artifacts.steps", "chop"), true),
            (word("_artifacts.label.kind", "starter"), true),
            (term("tag", "easy"), true),
            (term("n", 3), true),
        ] {
            assert_eq!(found(over.clone(), document.clone(), query.clone()), expected, "{over} {query}");
        }
    }
}

#[test]
fn an_index_over_artifacts_counts_the_documents_that_have_any() {
    let over = IndexOptions { schema: json!({"searches_artifacts": true}), ..IndexOptions::named("over") };
    let all = IndexOptions::named("all");
    let long = "word ".repeat(200);
    for (options, expected) in [(over, [3, 2]), (all, [4, 3])] {
        let scratch = Scratch::new();
        let index = TextIndex::open(scratch.path(), options).expect("a new index");
        let rows = [
            put("a", 1, json!({"n": 1, "_artifacts": {"steps": ["chop it"]}})),
            put("b", 2, json!({"n": 1})),
            put("c", 3, json!({"_artifacts": {"label": {"kind": "starter"}}})),
            put("d", 4, json!({"_artifacts": {"steps": [long]}})),
        ];
        index.apply(&frame(&rows, 1)).expect("rows are applied");
        index.commit(4).expect("a commit");
        assert_eq!(text_stats(&index).doc_count, expected[0]);
        index.apply(&frame(&[delete("a", 1)], 5)).expect("rows are applied");
        index.commit(5).expect("a commit");
        assert_eq!(text_stats(&index).doc_count, expected[1]);
    }
}
