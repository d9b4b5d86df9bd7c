//! Conditions on places and shapes.

use super::support::*;
use serde_json::{Value, json};
use sundew_engine::full_text::{CancelFlag, query};

fn schema() -> Value {
    let typed = |name: &str| json!({"x-service-types": [name]});
    json!({"document_schemas": {"doc": {"schema": {"type": "object", "properties": {
        "at": typed("geopoint"), "area": typed("geoshape")}}}}})
}

fn places() -> Vec<Value> {
    vec![
        json!({"at": {"lat": 46.948, "lon": 7.447}, "free": {"lat": 46.948, "lon": 7.447}, "name": "Bern"}),
        json!({"at": [8.541, 47.376], "free": [8.541, 47.376], "name": "Zürich"}),
        json!({"at": "46.204, 6.143", "name": "Genève"}),
        json!({"at": [[179.9, -17.0], {"lat": -17, "lon": -179.9}], "name": "Fiji"}),
        json!({"at": "nowhere", "free": {"lat": 95, "lon": 7}, "name": "nothing"}),
        json!({"free": [{"lat": 0, "lon": 0}, {"lat": 47, "lon": 8}], "name": "two"}),
    ]
}

#[test]
fn places_in_boxes_circles_and_polygons() {
    let index = index_of(schema(), &places());
    let near = |field: &str, meters: f64| json!({"kind": "geo_distance", "field": field, "center": [7.447, 46.948], "meters": meters});
    for (query, expected) in [
        (json!({"kind": "geo_box", "field": "at", "top_left": [7, 48], "bottom_right": [9, 46]}), vec![0, 1]),
        (
            json!({"kind": "geo_box", "field": "at", "top_left": [7.447, 46.948], "bottom_right": [7.447, 46.948]}),
            vec![0],
        ),
        (json!({"kind": "geo_box", "field": "at", "top_left": [179, 0], "bottom_right": [-179, -20]}), vec![3]),
        (json!({"kind": "geo_box", "field": "at", "top_left": [-179, 0], "bottom_right": [179, -20]}), vec![]),
        (json!({"kind": "geo_box", "field": "free", "top_left": [7, 48], "bottom_right": [9, 46]}), vec![0, 5]),
        (json!({"kind": "geo_box", "field": "free", "top_left": [7, 1], "bottom_right": [9, -1]}), vec![]),
        (json!({"kind": "geo_box", "field": "name", "top_left": [-180, 90], "bottom_right": [180, -90]}), vec![]),
        (near("at", 0.0), vec![0]),
        (near("at", 90_000.0), vec![0]),
        (near("at", 97_000.0), vec![0, 1]),
        (near("at", 140_000.0), vec![0, 1, 2]),
        (near("free", 60_000.0), vec![0, 5]),
        (json!({"kind": "geo_polygon", "field": "at", "points": [[6, 46], [9, 46], [6, 49]]}), vec![0, 2]),
        (json!({"kind": "geo_polygon", "field": "at", "points": [[7.447, 46.948], [9, 46], [9, 47]]}), vec![0]),
        (
            json!({"kind": "geo_shape", "field": "at", "relation": "within",
            "geometry": {"type": "envelope", "coordinates": [[6, 48], [8, 46]]}}),
            vec![0, 2],
        ),
        (json!({"kind": "exists", "field": "at"}), vec![0, 1, 2, 3]),
        (json!({"kind": "exists", "field": "free"}), vec![0, 1, 4, 5]),
        (json!({"kind": "bool", "must": [{"kind": "match", "text": "bern"}, near("at", 97_000.0)]}), vec![0]),
        (
            json!({"kind": "bool", "must": [{"kind": "match", "text": "genève zürich"}], "must_not": [near("at", 97_000.0)]}),
            vec![2],
        ),
        (json!({"kind": "bool", "must_not": [near("at", 140_000.0)]}), vec![3, 4, 5]),
    ] {
        assert_eq!(matching(&index, query.clone()), expected, "{query}");
    }
}

#[test]
fn shapes_and_their_relations() {
    let square = |west: f64, south: f64, size: f64| {
        json!({"type": "Polygon", "coordinates": [[[west, south], [west + size, south], [west + size, south + size],
            [west, south + size], [west, south]]]})
    };
    let documents = [
        json!({"area": square(0.0, 0.0, 10.0)}),
        json!({"area": square(2.0, 2.0, 2.0)}),
        json!({"area": [square(40.0, 40.0, 2.0), {"type": "LineString", "coordinates": [[9, 9], [20, 20]]}]}),
        json!({"area": {"type": "Point", "coordinates": [3, 3]}}),
        json!({"area": {"type": "Polygon", "coordinates": "none"}, "other": 1}),
    ];
    let index = index_of(schema(), &documents);
    let shape = |relation: &str, geometry: Value| json!({"kind": "geo_shape", "field": "area", "relation": relation, "geometry": geometry});
    for (query, expected) in [
        (shape("intersects", square(2.0, 2.0, 2.0)), vec![0, 1, 3]),
        (shape("contains", square(2.0, 2.0, 2.0)), vec![0, 1]),
        (shape("within", square(2.0, 2.0, 2.0)), vec![1, 3]),
        (shape("within", square(0.0, 0.0, 10.0)), vec![0, 1, 3]),
        (shape("intersects", square(10.0, 0.0, 1.0)), vec![0]),
        (shape("intersects", json!({"type": "Point", "coordinates": [15, 15]})), vec![2]),
        (shape("intersects", json!({"type": "MultiPoint", "coordinates": [[41, 41], [3, 3]]})), vec![0, 1, 2, 3]),
        (shape("contains", json!({"type": "Point", "coordinates": [0, 5]})), vec![0]),
        (json!({"kind": "exists", "field": "area"}), vec![0, 1, 2, 3]),
        (json!({"kind": "term", "field": "area", "value": documents[3]["area"].to_string()}), vec![]),
    ] {
        assert_eq!(matching(&index, query.clone()), expected, "{query}");
    }
    let bad = plan(shape("within", json!({"type": "Polygon", "coordinates": [[[0, 0]]]})));
    assert_eq!(query(&[index], &bad, &CancelFlag::default()).expect_err("refused").code, "invalid_query");
}
