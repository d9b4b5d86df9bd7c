//! A phrase stands in one text: it does not reach from one element of an array into the next.

use super::support::*;
use serde_json::{Map, Value, json};

/// Takes all slots, so that other paths lie beyond them.
fn many_paths() -> Value {
    (0..70).map(|at| (format!("f{at}"), json!("filler"))).collect::<Map<_, _>>().into()
}

fn phrase(field: Option<&str>, text: &str, slop: u32) -> Value {
    let mut query = json!({"kind": "phrase", "text": text, "slop": slop});
    if let Some(field) = field {
        query["field"] = json!(field);
    }
    query
}

#[test]
fn a_phrase_stands_in_one_element_whatever_is_dropped_between_its_words_and_whatever_its_slop() {
    let long = format!("alder {}", "the ".repeat(600));
    let documents = [
        json!({"t": ["alder", "birch"]}),
        json!({"t": ["alder the", "the birch"]}),
        json!({"t": [["alder"], [["birch"]]]}),
        json!({"t": ["alder", "", "the", null, "birch"]}),
        json!({"t": [long, "birch"]}),
        json!({"t": ["alder the birch", "cedar"]}),
        json!({"t": [format!("{long} birch")]}),
    ];
    let beside = json!({"t": ["birch alder"]});
    for beyond_the_slots in [false, true] {
        let mut all = documents.to_vec();
        all.push(beside.clone());
        if beyond_the_slots {
            all.insert(0, many_paths());
        }
        let index = index_of(Value::Null, &all);
        let first = u32::from(beyond_the_slots);
        for field in [Some("t"), None] {
            for (text, slop, expected) in [
                ("alder birch", 0, vec![]),
                ("alder the birch", 0, vec![5]),
                ("alder birch", 1, vec![5]),
                ("alder birch", 100, vec![5, 7]),
                ("alder birch", 5_000, vec![5, 7]),
                ("alder birch cedar", 100, vec![]),
                ("birch cedar", 100, vec![]),
            ] {
                let expected: Vec<u32> = expected.iter().map(|at| at + first).collect();
                assert_eq!(matching(&index, phrase(field, text, slop)), expected, "{field:?} {text} ~{slop}");
            }
            let run = "the ".repeat(600);
            let over = matching(&index, phrase(field, &format!("alder {run} birch"), 0));
            assert_eq!(over, [6 + first], "{field:?}");
        }
    }
}

#[test]
fn a_phrase_stands_in_one_object_of_an_array() {
    let documents = [
        json!({"notes": [{"text": "alder the"}, {"text": "birch"}]}),
        json!({"notes": [{"text": "cedar"}, {"text": "alder of birch"}]}),
    ];
    let index = index_of(Value::Null, &documents);
    assert_eq!(matching(&index, phrase(Some("notes.text"), "alder the birch", 0)), [1]);
    assert_eq!(matching(&index, phrase(Some("notes.text"), "birch alder", 100)), [1]);
    let terms = json!({"kind": "terms_phrase", "field": "notes.text", "terms": [["alder"], ["birch"]], "slop": 9_000});
    assert_eq!(matching(&index, terms), [1]);
}
