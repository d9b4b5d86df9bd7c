//! What a write request's scan finds, what it refuses, and the frames that are built from it.

use sundew_engine::frame::{Frame, RowKind};
use sundew_engine::json::ScanLimits;
use sundew_engine::schema::TableSchema;
use sundew_engine::write::{ENTRY_WORDS, FrameOptions, ScannedWrite, WriteKind, build_frame, scan_write};

const TIMESTAMP_MS: i64 = 1_777_863_721_500;

fn options() -> FrameOptions {
    FrameOptions {
        timestamp_ms: TIMESTAMP_MS,
        ttl_field: None,
        key_bytes_max: 1024,
        puts_deleted: false,
        vector_indexes: Vec::new(),
        graph_indexes: Vec::new(),
    }
}

fn scan(text: &str, kind: WriteKind) -> ScannedWrite {
    scan_write(text.as_bytes(), kind, &ScanLimits::default()).unwrap()
}

fn refusal(text: &str, kind: WriteKind) -> (&'static str, String) {
    let error = scan_write(text.as_bytes(), kind, &ScanLimits::default()).expect_err(text);
    (error.code, error.message)
}

/// Kind, key, body and TTL base of each row, or the error's code and message.
type Framed = Result<Vec<(RowKind, String, String, i64)>, (&'static str, String)>;

fn frame_of(text: &str, options: &FrameOptions, schema: Option<&TableSchema>) -> Framed {
    let scanned = scan(text, WriteKind::Batch);
    let bytes =
        build_frame(text.as_bytes(), &scanned.entries, options, schema).map_err(|error| (error.code, error.message))?;
    let rows = Frame::parse(&bytes).unwrap().rows().map(|row| {
        let row = row.unwrap();
        assert_eq!(row.crc, crc32fast::hash(row.body));
        assert_eq!((row.ordinal, row.sequence, row.flags), (0, 0, 0));
        (row.kind, row.key.to_owned(), String::from_utf8(row.body.to_vec()).unwrap(), row.ttl_base_ms)
    });
    Ok(rows.collect())
}

#[test]
fn a_batch_is_taken_apart() {
    let text = r#" { "sync_level" : "write", "deletes":["old"], "other": {"kept": [1]},
        "transforms":[{"upsert":true,"operations":[{"op":"$inc","path":"$.n","value":1}],"key":"t"}],
        "inserts":{ "k1" : {"a": 1} , "k\u00e9":{} } } "#;
    let scanned = scan(text, WriteKind::Batch);
    assert_eq!(scanned.envelope_json, r#"{"sync_level":"write","other":{"kept": [1]}}"#);
    assert_eq!(scanned.sections, [""]);
    assert_eq!(scanned.entries.len(), 4 * ENTRY_WORDS);
    let rows = frame_of(text, &options(), None).unwrap();
    let expected = [
        (RowKind::Put, "k1", "{\"a\": 1}".to_owned()),
        (RowKind::Put, "ké", "{}".to_owned()),
        (RowKind::Delete, "old", String::new()),
        (RowKind::Transform, "t", r#"{"operations":[{"op":"$inc","path":"$.n","value":1}],"upsert":true}"#.to_owned()),
    ];
    for (row, (kind, key, body)) in rows.iter().zip(&expected) {
        assert_eq!((&row.0, row.1.as_str(), &row.2, row.3), (kind, *key, body, 0));
    }
    assert_eq!(rows.len(), expected.len());
}

#[test]
fn tables_become_sections() {
    let text = r#"{"read_set":[{"table":"a"}],"tables":{"a":{"inserts":{"k":{}},"note":1},"b":{},"c":{"deletes":["x"]}},"sync_level":"write"}"#;
    let scanned = scan(text, WriteKind::Tables);
    assert_eq!(scanned.sections, ["a", "b", "c"]);
    let sections: Vec<u32> = scanned.entries.chunks(ENTRY_WORDS).map(|entry| entry[0]).collect();
    assert_eq!(sections, [0, 2]);
    let expected = r#"{"read_set":[{"table":"a"}],"tables":{"a":{"note":1},"b":{},"c":{}},"sync_level":"write"}"#;
    assert_eq!(scanned.envelope_json, expected);
}

#[test]
fn a_merge_has_records() {
    let text = r#"{"records":{"b":{},"c":{}},"last_merged_id":"a","inserts":{"x":1}}"#;
    let scanned = scan(text, WriteKind::Merge);
    assert_eq!(scanned.entries.len(), 2 * ENTRY_WORDS);
    assert_eq!(scanned.envelope_json, r#"{"records":{},"last_merged_id":"a","inserts":{"x":1}}"#);
    assert_eq!(scan(r#"{"records":{}}"#, WriteKind::Merge).envelope_json, r#"{"records":{}}"#);
    assert_eq!(scan(r#"{"records":null}"#, WriteKind::Merge).envelope_json, "{}");
}

#[test]
fn shapes_are_refused_by_name() {
    let op = |operation: &str| format!(r#"{{"transforms":[{{"key":"k","operations":[{operation}]}}]}}"#);
    let long_path = vec!["a"; 33].join(".");
    let rows: Vec<(String, &str)> = vec![
        ("[]".into(), "the body must be a JSON object"),
        (r#"{"inserts":[]}"#.into(), "\"inserts\" must be an object"),
        (r#"{"inserts":{"k":3}}"#.into(), "\"inserts\": the document \"k\" must be an object"),
        (r#"{"inserts":{"k":null}}"#.into(), "the document \"k\" must be an object"),
        (r#"{"deletes":{}}"#.into(), "\"deletes\" must be an array"),
        (r#"{"deletes":["a",1]}"#.into(), "\"deletes\" must hold strings only"),
        (r#"{"transforms":{}}"#.into(), "\"transforms\" must be an array"),
        (r#"{"transforms":[1]}"#.into(), "\"transforms[0]\" must be an object"),
        (r#"{"transforms":[{"operations":[]}]}"#.into(), "\"transforms[0]\" has no \"key\""),
        (r#"{"transforms":[{"key":"k"}]}"#.into(), "\"transforms[0]\" has no \"operations\""),
        (r#"{"transforms":[{"key":1,"operations":[]}]}"#.into(), "\"key\" must be a string"),
        (r#"{"transforms":[{"key":"k","operations":[],"upsert":1}]}"#.into(), "\"upsert\" must be a boolean"),
        (op("1"), "\"transforms[0].operations[0]\" must be an object"),
        (op(r#"{"path":"a"}"#), "has no \"op\""),
        (op(r#"{"op":"$unset"}"#), "has no \"path\""),
        (op(r#"{"op":"$frob","path":"a"}"#), "\"$frob\" is not one of $set, $unset"),
        (op(r#"{"op":"$set","path":"a"}"#), "$set needs a \"value\""),
        (op(r#"{"op":"$inc","path":"a","value":"1"}"#), "$inc needs a number"),
        (op(r#"{"op":"$mul","path":"a","value":true}"#), "$mul needs a number"),
        (op(r#"{"op":"$min","path":"a"}"#), "$min needs a number"),
        (op(r#"{"op":"$pop","path":"a","value":2}"#), "$pop needs 1"),
        (op(r#"{"op":"$rename","path":"a","value":1}"#), "$rename needs a string"),
        (op(r#"{"op":"$rename","path":"a","value":"x..y"}"#), "must be a path"),
        (op(r#"{"op":"$unset","path":""}"#), "must be a path"),
        (op(r#"{"op":"$unset","path":"$"}"#), "must be a path"),
        (op(r#"{"op":"$unset","path":"a..b"}"#), "must be a path"),
        (op(r#"{"op":"$set","path":"_edges.x","value":1}"#), "transforms leave edges alone"),
        (op(&format!(r#"{{"op":"$unset","path":"{long_path}"}}"#)), "has 33 segments; the limit is 32"),
    ];
    for (text, expected) in rows {
        let (code, message) = refusal(&text, WriteKind::Batch);
        assert_eq!(code, "invalid_request", "{text}: {message}");
        assert!(message.contains(expected), "{text}: {message}");
    }
    let (code, message) = refusal(r#"{"tables":{"a":[]}}"#, WriteKind::Tables);
    assert_eq!((code, message.as_str()), ("invalid_request", "tables.a must be a JSON object"));
}

#[test]
fn every_transform_is_accepted_in_its_right_form() {
    for (op, value) in [
        ("$set", "{}"),
        ("$unset", "0"),
        ("$inc", "-1.5"),
        ("$mul", "2"),
        ("$min", "0"),
        ("$max", "1e3"),
        ("$push", "[1]"),
        ("$addToSet", "null"),
        ("$pull", "\"x\""),
        ("$pop", "-1"),
        ("$currentDate", "true"),
        ("$rename", "\"$.c.d\""),
    ] {
        let text = format!(
            r#"{{"transforms":[{{"key":"k","operations":[{{"op":"{op}","path":"$.a.b","value":{value}}}]}}]}}"#
        );
        assert_eq!(scan(&text, WriteKind::Batch).entries.len(), ENTRY_WORDS, "{op}");
    }
}

#[test]
fn invalid_json_wins_over_shape() {
    assert_eq!(refusal(r#"{"inserts":[}"#, WriteKind::Batch).0, "invalid_json");
    assert_eq!(refusal(r#"{"inserts":{"k":{"a":1,"a":2}}}"#, WriteKind::Batch).0, "invalid_json");
    assert_eq!(refusal(r#"{"inserts":{"k":{},"k":{}}}"#, WriteKind::Batch).0, "invalid_json");
    assert_eq!(refusal(r#"{"inserts":{"k":{"a":9007199254740993}}}"#, WriteKind::Batch).0, "number_out_of_range");
}

#[test]
fn limits_have_names() {
    let limits = ScanLimits { keys_max: 2, members_max: 3, document_bytes_max: 40, ..ScanLimits::default() };
    let refusal = |text: &str| {
        let error = scan_write(text.as_bytes(), WriteKind::Batch, &limits).expect_err(text);
        assert_eq!(error.code, "limit_exceeded", "{text}");
        error.message
    };
    assert!(refusal(r#"{"inserts":{"a":{},"b":{}},"deletes":["c"]}"#).contains("at most 2 keys"));
    assert!(refusal(r#"{"inserts":{"a":{"x":{"y":{"z":{"w":1}}}}}}"#).contains("more than 3 members"));
    assert!(refusal(&format!(r#"{{"inserts":{{"a":{{"x":"{}"}}}}}}"#, "y".repeat(40))).contains("the limit is 40"));
    let fine = r#"{"inserts":{"a":{"x":{"y":{"z":1}}},"b":{"x":1,"y":2,"z":3}}}"#;
    assert!(scan_write(fine.as_bytes(), WriteKind::Batch, &limits).is_ok(), "members are counted per document");
}

#[test]
fn a_document_may_nest_64_levels_wherever_it_stands() {
    let document = |depth: usize| format!("{}1{}", r#"{"a":"#.repeat(depth), "}".repeat(depth));
    let batch = |depth| format!(r#"{{"tables":{{"t":{{"inserts":{{"k":{}}}}}}}}}"#, document(depth));
    assert_eq!(scan(&batch(64), WriteKind::Tables).entries.len(), ENTRY_WORDS);
    assert_eq!(refusal(&batch(65), WriteKind::Tables).0, "json_too_deep");
}

#[test]
fn null_members_count_as_absent() {
    let scanned = scan(r#"{"inserts":null,"deletes":null,"transforms":null}"#, WriteKind::Batch);
    assert!(scanned.entries.is_empty());
}

#[test]
fn keys_are_checked() {
    let put = |key: &str| format!(r#"{{"inserts":{{"{key}":{{}}}}}}"#);
    for key in ["", "a\\u0000b", "a\\nb", "\\u007f", "a\u{7f}"] {
        let code = scan_write(put(key).as_bytes(), WriteKind::Batch, &ScanLimits::default())
            .map_err(|error| error.code)
            .and_then(|scanned| {
                build_frame(put(key).as_bytes(), &scanned.entries, &options(), None).map_err(|error| error.code)
            })
            .expect_err(key);
        // A NUL in a member name is refused by the JSON policy already.
        assert_eq!(code, if key.contains("0000") { "invalid_json" } else { "invalid_key" }, "{key:?}");
    }
    assert_eq!(frame_of(&put(&"k".repeat(1025)), &options(), None).unwrap_err().0, "invalid_key");
    assert_eq!(frame_of(&put(&"k".repeat(1024)), &options(), None).unwrap().len(), 1);
    assert_eq!(frame_of(r#"{"deletes":["a\u0000"]}"#, &options(), None).unwrap_err().0, "invalid_key");
    assert_eq!(frame_of(&put("a/b:c#d%20 \u{1F600}"), &options(), None).unwrap()[0].1, "a/b:c#d%20 \u{1F600}");
}

#[test]
fn conflicts_are_refused() {
    let conflict = |text: &str| frame_of(text, &options(), None).unwrap_err();
    assert_eq!(conflict(r#"{"inserts":{"\u0061":{}},"deletes":["a"]}"#).0, "conflicting_operations");
    let ordered = FrameOptions { puts_deleted: true, ..options() };
    let again = frame_of(r#"{"inserts":{"\u0061":{},"c":{}},"deletes":["b","a"]}"#, &ordered, None).unwrap();
    let keys: Vec<_> = again.iter().map(|row| (row.0, row.1.as_str())).collect();
    assert_eq!(keys, [(RowKind::Delete, "a"), (RowKind::Put, "a"), (RowKind::Put, "c"), (RowKind::Delete, "b")]);
    let twice = frame_of(r#"{"deletes":["a","b","a"]}"#, &options(), None).unwrap();
    assert_eq!(twice.len(), 3, "what is deleted twice is deleted");
    let both = r#"{"inserts":{"a":{}},"transforms":[{"key":"a","operations":[]},{"key":"a","operations":[]}]}"#;
    assert_eq!(frame_of(both, &options(), None).unwrap().len(), 3, "transforms follow each other");
}

#[test]
fn reserved_members_are_checked() {
    let put = |body: &str| frame_of(&format!(r#"{{"inserts":{{"k":{body}}}}}"#), &options(), None);
    let given = r#"{"_timestamp":"2020-01-01T00:00:00+02:00","a":1}"#;
    assert_eq!(put(given).unwrap()[0].2, given, "a given timestamp is kept");
    assert_eq!(put(r#"{"_timestamp":"yesterday"}"#).unwrap_err().0, "validation_failed");
    assert_eq!(put(r#"{"_timestamp":12}"#).unwrap_err().0, "validation_failed");
    assert_eq!(put(r#"{"_type":3}"#).unwrap_err().0, "validation_failed");
    assert_eq!(put(r#"{"_\u0074ype":3}"#).unwrap_err().0, "validation_failed");
    assert!(put(r#"{"_type":"x"}"#).is_ok());
    assert_eq!(put(r#"{"_edges":null,"a":1}"#).unwrap()[0].2, r#"{"a":1}"#, "edges are no part of the document");
    assert_eq!(put(r#"{"_edges":{"g":{}}}"#).unwrap_err().0, "invalid_edge", "the table has no graph");
    assert!(put(r#"{"nested":{"_edges":1,"_type":2}}"#).is_ok(), "reserved at the top level only");
}

#[test]
fn ttl_bases() {
    let base = |field: &str, body: &str| {
        let options = FrameOptions { ttl_field: Some(field.to_owned()), ..options() };
        frame_of(&format!(r#"{{"inserts":{{"k":{body}}}}}"#), &options, None).map(|rows| rows[0].3)
    };
    assert_eq!(base("_timestamp", "{}"), Ok(TIMESTAMP_MS));
    assert_eq!(base("_timestamp", r#"{"_timestamp":"1970-01-01T00:00:01.25Z"}"#), Ok(1_250));
    assert_eq!(base("meta.at", r#"{"meta":{"at":"1970-01-01T01:00:02+01:00"}}"#), Ok(2_000));
    assert_eq!(base("meta.at", r#"{"meta":{"at":5000000000}}"#), Ok(5_000));
    assert_eq!(base("meta.at", r#"{"meta":3}"#), Ok(TIMESTAMP_MS), "a missing field takes the write time");
    assert_eq!(base("at", r#"{"at":"1969-01-01T00:00:00Z"}"#), Ok(1), "0 would mean never");
    assert_eq!(base("at", r#"{"at":1.7000000001e18}"#), Ok(1_700_000_000_100), "beyond 2^53 with an exponent");
    assert_eq!(base("at", r#"{"at":1e30}"#), Ok(8_640_000_000_000_000), "not beyond the last instant there is");
    for bad in [r#"{"at":"soon"}"#, r#"{"at":true}"#, r#"{"at":null}"#, r#"{"at":[]}"#] {
        let (code, message) = base("at", bad).unwrap_err();
        assert!(code == "validation_failed" && message.contains("TTL field at"), "{bad}: {message}");
    }
}

#[test]
fn documents_are_validated_where_they_are_framed() {
    let schema =
        br#"{"enforce_types":true,"document_schemas":{"t":{"schema":{"properties":{"n":{"type":"integer"}}}}}}"#;
    let schema = TableSchema::compile(schema).unwrap();
    let put = |body: &str| frame_of(&format!(r#"{{"inserts":{{"k":{body}}}}}"#), &options(), Some(&schema));
    assert!(put(r#"{"n":1}"#).is_ok());
    let (code, message) = put(r#"{"n":"x"}"#).unwrap_err();
    assert_eq!(code, "validation_failed");
    assert!(message.contains("\"k\"") && message.contains("/n"), "{message}");
}
