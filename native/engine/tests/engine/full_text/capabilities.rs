//! What queries can do with the fields that a schema declares.

use super::support::schema;
use serde_json::{Value, json};
use sundew_engine::full_text::TableMapping;

#[test]
fn the_capabilities_of_a_field_are_those_of_its_types_in_all_documents() {
    let of = |properties: Value| {
        let capabilities = TableMapping::from_schema(&schema(properties)).capabilities();
        serde_json::to_value(capabilities).expect("JSON")
    };
    let capabilities = of(json!({
        "title": {"type": "string", "x-service-types": ["text", "search_as_you_type"], "x-service-include-in-all": true},
        "tags": {"type": "array", "items": {"type": "string", "x-service-types": ["keyword"]}},
        "plain": {"type": "string"},
        "words": {"type": "string", "x-service-types": ["text"], "x-service-doc-values": false},
        "hidden": {"type": "string", "x-service-index": false},
        "place": {"x-service-types": ["geopoint"]},
        "inner": {"type": "object", "properties": {"year": {"type": "integer"}, "day": {"type": "string", "format": "date"}}}
    }));
    let field = |types: &[&str], can: &str| {
        let can = |what: &str| can.contains(what);
        json!({"types": types, "searchable": can("search"), "filterable": can("filter"), "sortable": can("sort"),
            "aggregatable": can("aggregate"), "in_all": can("all")})
    };
    assert_eq!(
        capabilities,
        json!({
            "title": field(&["search_as_you_type", "text"], "search sort all"),
            "tags": field(&["keyword"], "filter sort aggregate"),
            "plain": field(&["keyword", "text"], "search filter sort aggregate"),
            "words": field(&["text"], "search"),
            "hidden": field(&[], ""),
            "place": field(&["geopoint"], "filter aggregate"),
            "inner.year": field(&["numeric"], "filter sort aggregate"),
            "inner.day": field(&["datetime"], "filter sort aggregate")
        })
    );
    let of_itself = of(json!({"next": {"$ref": "#"}, "name": {"type": "string"}}));
    assert!(of_itself["next.next.name"].is_object());
}
