//! The forms in which vectors may be written, what is refused, and the rows that they become.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sundew_engine::base::part::{PartBody, PartForm, dense, sparse};
use sundew_engine::frame::{Frame, RowKind};
use sundew_engine::json::ScanLimits;
use sundew_engine::write::{
    FrameOptions, SPARSE_ENTRIES_MAX, VectorTarget, VectorsTaken, WriteKind, build_frame, render_vector, scan_write,
};

fn options() -> FrameOptions {
    let index = |name: &str, id, takes| VectorTarget { name: name.into(), id, takes };
    FrameOptions {
        timestamp_ms: 5,
        ttl_field: None,
        key_bytes_max: 1024,
        puts_deleted: false,
        vector_indexes: vec![
            index("taste", 7, VectorsTaken::Dense { dimension: 3, needs_direction: false }),
            index("angle", 8, VectorsTaken::Dense { dimension: 2, needs_direction: true }),
            index("tags", 9, VectorsTaken::Sparse),
            index("made", 10, VectorsTaken::Managed),
            index("full_text_index_v0", 1, VectorsTaken::None),
        ],
        graph_indexes: Vec::new(),
    }
}

#[derive(Debug, PartialEq)]
enum Wrote {
    Put(String),
    Dense(u32, Vec<f32>),
    Sparse(u32, Vec<(u32, f32)>),
    Deleted(u32),
}

/// The rows of a batch that inserts `documents` (the JSON of an object), or the refusal.
fn insert(documents: &str) -> Result<Vec<Wrote>, (&'static str, String)> {
    let text = format!("{{\"inserts\":{documents}}}");
    let bytes = scan_write(text.as_bytes(), WriteKind::Batch, &ScanLimits::default())
        .and_then(|scanned| build_frame(text.as_bytes(), &scanned.entries, &options(), None))
        .map_err(|error| (error.code, error.message))?;
    let rows = Frame::parse(&bytes).unwrap().rows().map(|row| {
        let row = row.unwrap();
        assert_eq!(row.crc, crc32fast::hash(row.body));
        if row.kind == RowKind::Put {
            return Wrote::Put(String::from_utf8(row.body.to_vec()).unwrap());
        }
        let body = PartBody::parse(row.body).unwrap();
        match (row.kind, body.form) {
            (RowKind::PartDelete, PartForm::Deleted) => Wrote::Deleted(body.id),
            (RowKind::PartPut, PartForm::Dense) => {
                Wrote::Dense(body.id, dense::values(body.payload).unwrap().collect())
            }
            (RowKind::PartPut, PartForm::Sparse) => {
                Wrote::Sparse(body.id, sparse::entries(body.payload).unwrap().collect())
            }
            other => panic!("{other:?}"),
        }
    });
    Ok(rows.collect())
}

/// The single vector row of a document whose `_embeddings` is this.
fn vector(embeddings: &str) -> Wrote {
    let mut rows = insert(&format!("{{\"k\":{{\"_embeddings\":{embeddings}}}}}")).expect(embeddings);
    assert_eq!(rows.len(), 2, "{embeddings}");
    rows.remove(1)
}

fn packed<const N: usize>(words: &[[u8; N]]) -> String {
    STANDARD.encode(words.concat())
}

#[test]
fn every_form_becomes_a_row() {
    let floats = packed(&[0.5f32.to_le_bytes(), (-2.0f32).to_le_bytes(), 1e-7f32.to_le_bytes()]);
    let indices = packed(&[3u32.to_le_bytes(), 9u32.to_le_bytes()]);
    let values = packed(&[1.5f32.to_le_bytes(), 0.25f32.to_le_bytes()]);
    let dense = || Wrote::Dense(7, vec![0.5, -2.0, 1e-7]);
    let sparse = || Wrote::Sparse(9, vec![(3, 1.5), (9, 0.25)]);
    assert_eq!(vector(r#"{"taste":[0.5, -2 ,1E-7]}"#), dense());
    assert_eq!(vector(r#"{"taste":[0.500000000000000000001,-2.0,0.0000001]}"#), dense());
    assert_eq!(vector(&format!(r#"{{"taste":"{floats}"}}"#)), dense());
    assert_eq!(vector(&format!(r#"{{"taste":"{}"}}"#, floats.trim_end_matches('='))), dense());
    assert_eq!(vector(&format!(r#"{{"taste":"{}"}}"#, floats.replace('/', "\\/"))), dense());
    assert_eq!(vector(r#"{"tags":{"9":0.25,"3":1.5}}"#), sparse());
    assert_eq!(vector(r#"{"tags":{"values":[1.5,0.25],"indices":[3,9]}}"#), sparse());
    let both = format!(r#"{{"tags":{{"packed_indices":"{indices}","packed_values":"{values}"}}}}"#);
    assert_eq!(vector(&both), sparse());
    assert_eq!(vector(r#"{"tags":{"4294967295":1}}"#), Wrote::Sparse(9, vec![(u32::MAX, 1.0)]));
    assert_eq!(vector(r#"{"tags":{}}"#), Wrote::Sparse(9, vec![]));
    assert_eq!(vector(r#"{"t\u0061ste":null}"#), Wrote::Deleted(7));
}

#[test]
fn the_member_is_cut_out_and_rows_lie_behind_their_document() {
    let rows = insert(
        r#"{"a":{"_embeddings":{"taste":[1,2,3],"tags":null}},
            "b":{ "x":1 , "_embed\u0064ings" : {"angle":[0,1]} , "y":{"_embeddings":2} },
            "c":{"z":[], "_embeddings":{} }, "d":{"_embeddings":null,"w":1}}"#,
    );
    let put = |body: &str| Wrote::Put(body.to_owned());
    let expected = vec![
        put("{}"),
        Wrote::Dense(7, vec![1.0, 2.0, 3.0]),
        Wrote::Deleted(9),
        put(r#"{ "x":1 ,  "y":{"_embeddings":2} }"#),
        Wrote::Dense(8, vec![0.0, 1.0]),
        put(r#"{"z":[] }"#),
        put(r#"{"w":1}"#),
    ];
    assert_eq!(rows.unwrap(), expected);
}

#[test]
fn what_cannot_be_a_vector_is_refused_with_its_place() {
    let nan = packed(&[f32::NAN.to_le_bytes(), [0; 4], [0; 4]]);
    let infinite = packed(&[f32::INFINITY.to_le_bytes(), [0; 4], [0; 4]]);
    let zeros = packed(&[[0u8; 4], [0; 4]]);
    let many: String = (0..=SPARSE_ENTRIES_MAX).map(|index| format!(",\"{index}\":1")).collect();
    let rows: Vec<(String, &str, &str)> = vec![
        (r#"{"tags":{"3":1,"4":0}}"#.into(), "tags", "has the weight 0 at 4; weights are above 0"),
        (r#"{"tags":{"indices":[3],"values":[-0.5]}}"#.into(), "tags", "has the weight -0.5 at 3"),
        (r#"{"taste":[1,2]}"#.into(), "taste", "has dimension 2; the index takes dimension 3"),
        (format!(r#"{{"taste":[{}1]}}"#, "1,".repeat(99_999)), "taste", "has dimension 100000"),
        (r#"{"taste":[]}"#.into(), "taste", "has dimension 0"),
        (format!(r#"{{"taste":"{zeros}"}}"#), "taste", "has dimension 2"),
        (r#"{"taste":"AAAAAAA="}"#.into(), "taste", "not a multiple of four"),
        (r#"{"taste":"not base64"}"#.into(), "taste", "not base64"),
        (format!(r#"{{"taste":"{nan}"}}"#), "taste", "NaN"),
        (format!(r#"{{"taste":"{infinite}"}}"#), "taste", "infinite"),
        (r#"{"taste":[1e39,0,0]}"#.into(), "taste", "too large for a float32"),
        (r#"{"taste":[1,"2",3]}"#.into(), "taste", "must hold numbers only"),
        (r#"{"taste":[[1,2,3]]}"#.into(), "taste", "must hold numbers only"),
        (r#"{"taste":{"1":1}}"#.into(), "taste", "the index is dense"),
        (r#"{"taste":3}"#.into(), "taste", "must be an array"),
        (r#"{"angle":[0,-0.0]}"#.into(), "angle", "zero vector"),
        (format!(r#"{{"angle":"{zeros}"}}"#), "angle", "zero vector"),
        (r#"{"tags":[1,2]}"#.into(), "tags", "the index is sparse"),
        (r#"{"tags":true}"#.into(), "tags", "must be an object"),
        (r#"{"tags":{"5":1,"05":2}}"#.into(), "tags", "has the index 5 twice"),
        (r#"{"tags":{"indices":[4,4],"values":[1,0]}}"#.into(), "tags", "has the index 4 twice"),
        (r#"{"tags":{"indices":[4,9,2],"values":[1,1,0]}}"#.into(), "tags", "has the index 2 behind 9"),
        (r#"{"tags":{"indices":[4],"values":[1,2]}}"#.into(), "tags", "1 indices and 2 values"),
        (r#"{"tags":{"indices":[4]}}"#.into(), "tags", "without values"),
        (r#"{"tags":{"packed_values":"AACAPw=="}}"#.into(), "tags", "without indices"),
        (r#"{"tags":{"indices":[1],"values":[1],"2":1}}"#.into(), "tags", "mixes"),
        (r#"{"tags":{"indices":[1.5],"values":[1]}}"#.into(), "tags", "index 1.5"),
        (r#"{"tags":{"soup":1}}"#.into(), "tags", "token \"soup\""),
        (r#"{"tags":{"-1":1}}"#.into(), "tags", "token \"-1\""),
        (r#"{"tags":{"":1}}"#.into(), "tags", "token \"\""),
        (r#"{"tags":{"4294967296":1}}"#.into(), "tags", "token \"4294967296\""),
        (r#"{"tags":{"1":1e300}}"#.into(), "tags", "too large for a float32"),
        (r#"{"tags":{"1":null}}"#.into(), "tags", "must hold numbers only"),
        (format!(r#"{{"tags":{{{}}}}}"#, &many[1..]), "tags", "more than 65536 entries"),
        (r#"{"made":[1]}"#.into(), "made", "made by its embedder"),
        (r#"{"made":null}"#.into(), "made", "made by its embedder"),
        (r#"{"full_text_index_v0":[1]}"#.into(), "full_text_index_v0", "not an embeddings index"),
        (r#"{"elsewhere":null}"#.into(), "elsewhere", "names no index"),
    ];
    for (embeddings, index, expected) in rows {
        let (code, message) =
            insert(&format!("{{\"fine\":{{}},\"k1\":{{\"_embeddings\":{embeddings}}}}}")).unwrap_err();
        assert_eq!(code, "invalid_embedding", "{message}");
        assert!(message.starts_with(&format!("document \"k1\": \"_embeddings.{index}\" ")), "{message}");
        assert!(message.contains(expected), "{message}");
    }
    let (code, message) = insert(r#"{"k1":{"_embeddings":[1]}}"#).unwrap_err();
    assert!(code == "invalid_embedding" && message.contains("must be an object"), "{message}");
    for (number, code) in [("NaN", "invalid_json"), ("-Infinity", "invalid_json"), ("1e400", "number_out_of_range")] {
        let refused =
            insert(&format!(r#"{{"k":{{"_embeddings":{{"angle":[1,0],"taste":[0,{number},0]}}}}}}"#)).unwrap_err();
        assert!(refused.0 == code && refused.1.starts_with("document \"k\": \"_embeddings.taste\": "), "{refused:?}");
    }
}

#[test]
fn a_large_sparse_vector_is_no_document_of_many_members() {
    let tokens: Vec<String> = (0..SPARSE_ENTRIES_MAX).rev().map(|index| format!("\"{index}\":1")).collect();
    let Wrote::Sparse(9, entries) = vector(&format!(r#"{{"tags":{{{}}}}}"#, tokens.join(","))) else { panic!() };
    assert_eq!(entries.len(), SPARSE_ENTRIES_MAX);
    assert!(entries.is_sorted_by_key(|entry| entry.0));
}

#[test]
fn transforms_leave_vectors_alone() {
    for operation in [
        r#"{"op":"$set","path":"$._embeddings.taste","value":[1]}"#,
        r#"{"op":"$unset","path":"_embeddings"}"#,
        r#"{"op":"$rename","path":"a","value":"_embeddings"}"#,
    ] {
        let text = format!(r#"{{"transforms":[{{"key":"k","operations":[{operation}]}}]}}"#);
        let error = scan_write(text.as_bytes(), WriteKind::Batch, &ScanLimits::default()).unwrap_err();
        assert!(error.code == "invalid_request" && error.message.contains("\"inserts\""), "{}", error.message);
    }
}

#[test]
fn stored_vectors_are_shown_with_the_shortest_numbers() {
    let show = |row: Wrote| {
        let mut body = Vec::new();
        match row {
            Wrote::Dense(id, values) => {
                body.extend(sundew_engine::base::part::part_head(id, PartForm::Dense));
                body.extend(values.iter().flat_map(|value| value.to_le_bytes()));
            }
            Wrote::Sparse(id, entries) => {
                body.extend(sundew_engine::base::part::part_head(id, PartForm::Sparse));
                body.extend(entries.iter().flat_map(|entry| entry.0.to_le_bytes()));
                body.extend(entries.iter().flat_map(|entry| entry.1.to_le_bytes()));
            }
            other => panic!("{other:?}"),
        }
        render_vector(&body).unwrap()
    };
    assert_eq!(show(vector(r#"{"taste":[0.1,-2,3e-20]}"#)), "[0.1,-2.0,3e-20]");
    assert_eq!(show(vector(r#"{"tags":{"9":0.3,"2":1}}"#)), r#"{"indices":[2,9],"values":[1.0,0.3]}"#);
    assert!(render_vector(&[1, 2]).is_err());
}
