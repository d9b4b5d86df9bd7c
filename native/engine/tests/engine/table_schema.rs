//! Which table schemas are usable, and what they make of documents.

use serde_json::{Value, json};
use sundew_engine::schema::TableSchema;

fn compile(schema: Value) -> Result<TableSchema, (&'static str, String)> {
    TableSchema::compile(schema.to_string().as_bytes()).map_err(|error| (error.code, error.message))
}

fn enforced(document_schema: Value) -> TableSchema {
    compile(json!({"enforce_types": true, "document_schemas": {"t": {"schema": document_schema}}})).unwrap()
}

fn judge(schema: &TableSchema, document: Value) -> Result<(), String> {
    schema.validate("key", document.to_string().as_bytes()).map_err(|error| {
        assert_eq!(error.code, "validation_failed");
        error.message
    })
}

#[test]
fn unusable_schemas_are_refused_with_the_place() {
    let property = |property: Value| json!({"document_schemas": {"t": {"schema": {"properties": {"f": property}}}}});
    let rows = [
        (json!([]), "must be a JSON object"),
        (json!({"version": -1}), "version must be"),
        (json!({"default_type": 1}), "default_type must be a string"),
        (json!({"default_type": "x"}), "default_type \"x\" is not an entry of document_schemas"),
        (json!({"enforce_types": "yes"}), "enforce_types must be a boolean"),
        (json!({"enforce_types": true}), "enforce_types needs at least one entry"),
        (json!({"document_schemas": []}), "document_schemas must be an object"),
        (json!({"document_schemas": {"t": 1}}), "document_schemas.t must be an object"),
        (json!({"document_schemas": {"t": {"schema": []}}}), "document_schemas.t.schema must be"),
        (json!({"document_schemas": {"t": {"schema": {"type": "string"}}}}), "must be \"object\""),
        (
            json!({"document_schemas": {"t": {"schema": {"properties": {"f": {"type": "strnig"}}}}}}),
            "document_schemas.t.schema",
        ),
        (property(json!({"x-service-types": ["txt"]})), "properties.f.x-service-types has \"txt\""),
        (property(json!({"x-service-types": "text"})), "must be an array of field types"),
        (property(json!({"x-antfly-types": ["nope"]})), "x-antfly-types has \"nope\""),
        (property(json!({"x-service-analyzer": "klingon"})), "x-service-analyzer must be one of"),
        (property(json!({"x-service-index": "no"})), "x-service-index must be a boolean"),
        (property(json!({"x-service-include-in-all": 1})), "x-service-include-in-all must be"),
        (property(json!({"x-service-doc-values": 0})), "x-service-doc-values must be a boolean"),
        (
            property(json!({"x-service-doc-values": false, "type": "integer"})),
            "x-service-doc-values can be false for strings",
        ),
        (
            property(json!({"x-service-doc-values": false, "x-service-types": ["text", "keyword"]})),
            "by their words only",
        ),
        (property(json!({"x-service-doc-values": false, "type": "string", "format": "date"})), "by their words only"),
        (property(json!({"x-service-typos": 1})), "x-service-typos is not known"),
        (property(json!({"items": {"x-service-types": [1]}})), "properties.f.items.x-service-types has 1"),
        (property(json!({"pattern": "(?=look)"})), "document_schemas.t.schema"),
        (property(json!({"$ref": "https://example.com/s.json"})), "must point inside the schema"),
        (property(json!({"$ref": "#/$defs/none"})), "there is no"),
        (json!({"dynamic_templates": 1}), "dynamic_templates must be"),
        (json!({"dynamic_templates": [{"match": "*"}]}), "dynamic_templates[0].mapping must be an object"),
        (json!({"dynamic_templates": {"a": {"mapping": {"type": "int"}}}}), "dynamic_templates.a.mapping.type must be"),
        (json!({"dynamic_templates": [{"match_mapping_type": "int", "mapping": {}}]}), "match_mapping_type must be"),
        (json!({"ttl": {"field": 1}}), "ttl.field must be a string"),
        (json!({"storage_mode": "columns"}), "storage_mode"),
    ];
    for (schema, expected) in rows {
        let shown = schema.to_string();
        let (code, message) = compile(schema).err().unwrap_or_else(|| panic!("accepted: {shown}"));
        assert_eq!(code, "invalid_schema", "{shown}: {message}");
        assert!(message.contains(expected), "{shown}: {message}");
        assert!(message.len() < 500, "{message}");
    }
}

#[test]
fn usable_schemas_are_kept_as_given() {
    let schema = json!({
        "version": 3, "default_type": "a", "ttl": {"field": "at", "duration": "7d"}, "unknown": [1],
        "document_schemas": {"a": {"description": "x", "schema": {"type": "object",
            "x-service-include-in-all": ["title"], "x-service-dynamic-indexing": {"mode": "infer_types"},
            "properties": {"title": {"type": "string", "x-service-types": ["text", "search_as_you_type"],
                "x-service-analyzer": "german", "x-service-include-in-all": true, "x-antfly-novelty": 1}}}},
            "b": {}},
        "dynamic_templates": {"ids": {"match": "*_id", "mapping": {"type": "keyword", "doc_values": true}}},
    });
    assert_eq!(compile(schema.clone()).unwrap().json(), &schema);
    assert!(compile(json!({})).is_ok());
    assert!(compile(json!({"document_schemas": null, "default_type": null})).is_ok());
}

#[test]
fn references_that_would_exhaust_the_stack_are_refused() {
    let loops = [
        json!({"$ref": "#"}),
        json!({"allOf": [{"$ref": "#"}]}),
        json!({"$ref": "#/$defs/a", "$defs": {"a": {"anyOf": [{"$ref": "#/$defs/b"}]}, "b": {"not": {"$ref": "#/$defs/a"}}}}),
    ];
    for schema in loops {
        let (code, message) = compile(json!({"document_schemas": {"t": {"schema": schema.clone()}}})).err().unwrap();
        assert!(code == "invalid_schema" && message.contains("loop"), "{schema}: {message}");
    }
    let chain = |link: &dyn Fn(String) -> Value| {
        let links = (0..5_000).map(|i| (format!("d{i}"), link(format!("#/$defs/d{}", (i + 1) % 5_000))));
        json!({"$ref": "#/$defs/d0", "$defs": Value::Object(links.collect())})
    };
    for schema in [chain(&|next| json!({"$ref": next})), chain(&|next| json!({"properties": {"x": {"$ref": next}}}))] {
        assert!(compile(json!({"document_schemas": {"t": {"schema": schema}}})).is_err());
    }
    let doubling = (0..14).map(|i| {
        let next = json!({"$ref": format!("#/$defs/d{}", i + 1)});
        (format!("d{i}"), json!({"allOf": [next, next]}))
    });
    let mut definitions: serde_json::Map<String, Value> = doubling.collect();
    definitions.insert("d14".into(), json!({}));
    let schema = json!({"$ref": "#/$defs/d0", "$defs": definitions});
    let (_, message) = compile(json!({"document_schemas": {"t": {"schema": schema}}})).err().unwrap();
    assert!(message.contains("apply to one value"), "{message}");
    let longest = (0..250)
        .map(|i| (format!("d{i}"), json!({"properties": {"x": {"$ref": format!("#/$defs/d{}", (i + 1) % 250)}}})));
    let schema = json!({"$ref": "#/$defs/d0", "$defs": Value::Object(longest.collect())});
    assert!(compile(json!({"document_schemas": {"t": {"schema": schema}}})).is_ok(), "the bound itself is harmless");
    // A tree is recursion through the document's own levels, which are bounded.
    let tree = enforced(json!({"properties": {"name": {"type": "string"}, "child": {"$ref": "#"}}}));
    assert!(judge(&tree, json!({"name": "a", "child": {"name": "b", "child": {}}})).is_ok());
    assert!(judge(&tree, json!({"child": {"child": {"name": 1}}})).unwrap_err().contains("/child/child/name"));
}

#[test]
fn without_enforcement_everything_is_stored() {
    let schema = compile(json!({"document_schemas": {"t": {"schema": {"required": ["x"]}}}})).unwrap();
    assert_eq!(judge(&schema, json!({"_type": "other"})), Ok(()));
    assert_eq!(judge(&schema, json!({"y": 1})), Ok(()));
}

#[test]
fn the_type_is_chosen_by_name_then_default_then_sole() {
    let of = |value: Value| json!({"schema": {"properties": {"kind": {"const": value}}}});
    let two = json!({"a": of(json!("a")), "b": of(json!("b"))});
    let with_default = compile(json!({"enforce_types": true, "default_type": "b", "document_schemas": two})).unwrap();
    assert!(judge(&with_default, json!({"kind": "b"})).is_ok());
    assert!(judge(&with_default, json!({"kind": "a"})).is_err());
    assert!(judge(&with_default, json!({"_type": "a", "kind": "a"})).is_ok());
    let message = judge(&with_default, json!({"_type": "c"})).unwrap_err();
    assert_eq!(message, "document \"key\" at /_type: \"c\" is not a type of this table");
    let without = compile(json!({"enforce_types": true, "document_schemas": two})).unwrap();
    assert!(judge(&without, json!({"kind": "a"})).unwrap_err().contains("names no _type"));
    assert!(judge(&enforced(json!({"properties": {}})), json!({})).is_ok(), "the sole type");
}

#[test]
fn enforcement_closes_objects_that_declare_properties() {
    let schema = enforced(json!({"properties": {
        "a": {"type": "integer"},
        "open": {"type": "object"},
        "closed": {"properties": {"x": {}}},
        "more": {"properties": {"x": {}}, "additionalProperties": true},
        "list": {"items": {"properties": {"x": {}}}},
        "inferred": {"properties": {"x": {}}, "x-service-dynamic-indexing": {"mode": "infer_types"}},
    }}));
    for fine in [
        json!({"a": 1, "_type": "t", "_timestamp": "x", "_anything": 1}),
        json!({"open": {"y": 1}}),
        json!({"more": {"y": 1}}),
        json!({"inferred": {"y": 1}}),
        json!({"list": [{"x": 1}]}),
    ] {
        assert_eq!(judge(&schema, fine.clone()), Ok(()), "{fine}");
    }
    for bad in [json!({"b": 1}), json!({"closed": {"y": 1}}), json!({"list": [{"y": 1}]}), json!({"closed": {"_y": 1}})]
    {
        assert!(judge(&schema, bad.clone()).is_err(), "{bad}");
    }
    let composed = enforced(json!({
        "properties": {"a": {}}, "allOf": [{"properties": {"b": {}}}, {"$ref": "#/$defs/c"}],
        "$defs": {"c": {"properties": {"c": {}}}},
    }));
    assert!(judge(&composed, json!({"a": 1, "b": 2, "c": 3})).is_ok());
    assert!(judge(&composed, json!({"a": 1, "d": 2})).is_err());
}

#[test]
fn formats_nullable_and_required_are_honoured() {
    let schema = enforced(json!({
        "required": ["at", "_timestamp"],
        "properties": {
            "at": {"type": "string", "format": "date-time"},
            "maybe": {"type": "string", "nullable": true, "enum": ["x"]},
        },
    }));
    assert_eq!(judge(&schema, json!({"at": "2026-01-01T00:00:00Z", "maybe": null})), Ok(()));
    assert!(judge(&schema, json!({"at": "yesterday"})).unwrap_err().contains("/at"));
    assert!(judge(&schema, json!({"maybe": "x"})).unwrap_err().contains("\"at\""));
    assert!(judge(&schema, json!({"at": "2026-01-01T00:00:00Z", "maybe": "y"})).is_err());
}

#[test]
fn messages_are_short_and_do_not_repeat_values() {
    let schema = enforced(json!({"properties": {"a": {"type": "integer"}}}));
    let message = judge(&schema, json!({"a": "secret".repeat(10_000)})).unwrap_err();
    assert!(message.len() < 400 && !message.contains("secret"), "{message}");
    let message = judge(&schema, json!({ "n".repeat(60_000): 1 })).unwrap_err();
    assert!(message.len() < 600, "{}", message.len());
}

#[test]
fn a_pattern_cannot_run_away() {
    let schema = enforced(json!({"properties": {"a": {"type": "string", "pattern": "^(a+)+$"}}}));
    let started = std::time::Instant::now();
    assert!(judge(&schema, json!({"a": format!("{}!", "a".repeat(50_000))})).is_err());
    assert!(started.elapsed().as_secs() < 2);
}
