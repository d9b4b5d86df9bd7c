//! The plan of a query is written down twice, in `src/query/plan/native-plan.ts` and in `full_text/query/plan.rs`. One fixture
//! holds a sample of every node, aggregation and plan with all of its members; `test/unit/query/native-plan.test.ts` keeps it to
//! the types of that side, this test to those of this one.

use std::collections::BTreeSet;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use sundew_engine::full_text::{AggregationKind, Node, QueryPlan};

fn fixture() -> Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../test/fixtures/native-plan.json");
    serde_json::from_str(&std::fs::read_to_string(path).expect("the fixture")).expect("JSON")
}

/// Unknown members are refused and every known one is written, so that what comes back equal has all of them.
fn assert_whole<T: Serialize + DeserializeOwned>(sample: &Value) {
    let read: T = serde_json::from_value(sample.clone()).unwrap_or_else(|error| panic!("{sample}: {error}"));
    assert_eq!(&serde_json::to_value(&read).expect("JSON"), sample);
}

/// What may stand at a position, as the refusal of anything else lists it.
fn words_of<T: DeserializeOwned>(refused: Value) -> BTreeSet<String> {
    let Err(error) = serde_json::from_value::<T>(refused.clone()) else { panic!("taken: {refused}") };
    let message = error.to_string();
    let (_, listed) = message.split_once("expected ").unwrap_or_else(|| panic!("{message}"));
    listed.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

fn keys(object: &Value) -> BTreeSet<String> {
    object.as_object().expect("an object").keys().cloned().collect()
}

#[test]
fn every_member_and_every_kind_is_known_on_both_sides() {
    let fixture = fixture();
    assert_whole::<QueryPlan>(&fixture["plan"]);
    for sample in fixture["nodes"].as_object().expect("nodes").values() {
        assert_whole::<Node>(sample);
    }
    for sample in fixture["aggregations"].as_object().expect("aggregations").values() {
        assert_whole::<AggregationKind>(sample);
    }
    let unknown = json!({"kind": "?"});
    assert_eq!(words_of::<Node>(unknown.clone()), keys(&fixture["nodes"]));
    assert_eq!(words_of::<AggregationKind>(unknown), keys(&fixture["aggregations"]));
}

#[test]
fn every_word_is_known_on_both_sides() {
    let fixture = fixture();
    let words = |name: &str| -> BTreeSet<String> {
        serde_json::from_value(fixture["words"][name].clone()).expect("a list of words")
    };
    let with = |sample: &str, member: &str| {
        let mut node = fixture["nodes"][sample].clone();
        node[member] = json!("?");
        words_of::<Node>(node)
    };
    assert_eq!(with("match", "operator"), words("operator"));
    assert_eq!(with("range", "of"), words("range_kind"));
    assert_eq!(with("geo_shape", "relation"), words("relation"));
    for word in words("fuzziness") {
        let mut node = fixture["nodes"]["fuzzy"].clone();
        node["fuzziness"] = json!(word);
        assert_whole::<Node>(&node);
    }
    let of_aggregation = |sample: &str, member: &str| {
        let mut aggregation = fixture["aggregations"][sample].clone();
        aggregation[member] = json!("?");
        words_of::<AggregationKind>(aggregation)
    };
    assert_eq!(of_aggregation("numbers", "metric"), words("metric"));
    assert_eq!(of_aggregation("cardinality", "mode"), words("mode"));
    assert_eq!(of_aggregation("date_histogram", "calendar_interval"), words("calendar_interval"));
    assert_eq!(of_aggregation("significant_terms", "algorithm"), words("algorithm"));
    let mut plan = fixture["plan"].clone();
    plan["fusion"]["strategy"] = json!("?");
    assert_eq!(words_of::<QueryPlan>(plan), words("strategy"));
    let mut plan = fixture["plan"].clone();
    plan["legs"][0]["kind"] = json!("?");
    assert_eq!(words_of::<QueryPlan>(plan), words("leg_kind"));
}
