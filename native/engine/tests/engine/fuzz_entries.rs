//! What the fuzz targets of `native/fuzz` do with their bytes. `fuzz_corpus.rs` does the same with the kept corpus, so
//! that what a fuzzer once found stays found.
#![allow(dead_code)] // a fuzz target has one of them

use serde::de::IgnoredAny;
use sundew_base::frame::{Frame, FrameWriter, RowKind};
use sundew_base::part::asset::read_asset;
use sundew_base::part::chunk_set::read_chunks;
use sundew_base::part::dense_set::DenseSet;
use sundew_base::part::edges::read_edges;
use sundew_base::part::{PartBody, dense, sparse};
use sundew_engine::full_text::{IndexOptions, QueryPlan, match_documents};
use sundew_engine::json::{ScanLimits, scan_json};
use sundew_engine::write::{
    ENTRY_WORDS, EdgeRules, FrameOptions, GraphTarget, VectorTarget, VectorsTaken, WriteKind, build_frame, scan_write,
};

/// A write request: the first byte says of which kind. What the scan takes is JSON, and makes a frame whose rows are
/// whole; what it refuses is refused with a code.
pub fn write_request(data: &[u8]) {
    let Some((&kind, text)) = data.split_first() else { return };
    let kind = [WriteKind::Batch, WriteKind::Tables, WriteKind::Merge][usize::from(kind) % 3];
    let scanned = match scan_write(text, kind, &ScanLimits::default()) {
        Ok(scanned) => scanned,
        Err(error) => {
            assert_ne!(error.code, "internal", "{error}");
            return;
        }
    };
    serde_json::from_slice::<IgnoredAny>(text).expect("what the scan takes is JSON");
    serde_json::from_str::<IgnoredAny>(&scanned.envelope_json).expect("the envelope is JSON");
    for section in 0..scanned.sections.len() as u32 {
        let entries = scanned.entries.chunks_exact(ENTRY_WORDS).filter(|entry| entry[0] == section);
        let entries: Vec<u32> = entries.flatten().copied().collect();
        match build_frame(text, &entries, &frame_options(), None) {
            Ok(frame) => check_rows(&frame),
            Err(error) => assert_ne!(error.code, "internal", "{error}"),
        }
    }
}

fn frame_options() -> FrameOptions {
    FrameOptions {
        timestamp_ms: 1_767_225_600_000,
        ttl_field: Some("a.expires".to_owned()),
        key_bytes_max: 64,
        puts_deleted: false,
        vector_indexes: vec![
            vector_index("v", 1, VectorsTaken::Dense { dimension: 2, needs_direction: true }),
            vector_index("s", 2, VectorsTaken::Sparse),
        ],
        graph_indexes: vec![GraphTarget { name: "g".to_owned(), id: 3, rules: EdgeRules::default() }],
    }
}

fn vector_index(name: &str, id: u32, takes: VectorsTaken) -> VectorTarget {
    VectorTarget { name: name.to_owned(), id, takes }
}

fn check_rows(frame: &[u8]) {
    for row in Frame::parse(frame).expect("a frame of our own").rows() {
        let row = row.expect("a row of our own");
        match row.kind {
            RowKind::Put | RowKind::Transform => {
                serde_json::from_slice::<IgnoredAny>(row.body).expect("a body is JSON");
            }
            RowKind::Delete => assert!(row.body.is_empty()),
            RowKind::PartPut | RowKind::PartDelete => {
                PartBody::parse(row.body).expect("a part of our own");
            }
            RowKind::State => unreachable!("no write of a user has such rows"),
        }
    }
}

/// Whatever the bytes are: they are read, or refused.
fn read_part(body: &[u8]) {
    let Ok(part) = PartBody::parse(body) else { return };
    let _ = dense::values(part.payload).map(Iterator::count);
    let _ = sparse::entries(part.payload).map(Iterator::count);
    let _ = DenseSet::parse(part.payload).map(|set| (0..set.count()).map(|at| set.vector(at).count()).sum::<usize>());
    let _ = read_edges(part.payload);
    let _ = read_chunks(part.payload);
    let _ = read_asset(part.payload);
}

/// Bytes as a frame; and, when they are a JSON object, as the document in one that is indexed and matched.
pub fn document_frame(data: &[u8]) {
    if let Ok(frame) = Frame::parse(data) {
        for row in frame.rows().flatten() {
            read_part(row.body);
        }
        let _ = match_documents(&IndexOptions::named("fuzz"), &plan(r#"{"limit": 1}"#), data);
    }
    if scan_json(data, &ScanLimits::default()).is_err() {
        return;
    }
    let mut writer = FrameWriter::new(1, data.len() + 1).expect("a small frame");
    writer.push(RowKind::Put, 0, b"k", &[data]);
    let everything = r#"{"limit": 1, "filter": [{"kind": "exists", "field": "a", "boost": 1}]}"#;
    match_documents(&IndexOptions::named("fuzz"), &plan(everything), &writer.finish())
        .expect("any JSON can be matched");
}

/// A plan, as the planner may send it, over a few documents.
pub fn query_plan(data: &[u8]) {
    let Ok(mut plan) = serde_json::from_slice::<QueryPlan>(data) else { return };
    plan.timeout_ms = Some(plan.timeout_ms.unwrap_or(100).min(100));
    let documents = [
        r#"{"a": "the quick brown fox", "n": 7, "d": "2026-01-01", "ip": "10.0.0.1", "at": {"lat": 1, "lon": 2}}"#,
        r#"{"a": ["lazy", "dog"], "n": -0.5, "b": true, "deep": {"er": {"x": "jumps over"}}}"#,
        r#"{"a": "日本語 テキスト", "n": null}"#,
    ];
    let mut writer = FrameWriter::new(documents.len(), 1_024).expect("a small frame");
    for (at, body) in documents.iter().enumerate() {
        writer.push(RowKind::Put, 0, format!("k{at}").as_bytes(), &[body.as_bytes()]);
    }
    if let Err(error) = match_documents(&IndexOptions::named("fuzz"), &plan, &writer.finish()) {
        assert_ne!(error.code, "internal", "{error}");
    }
}

fn plan(json: &str) -> QueryPlan {
    serde_json::from_str(json).expect("a plan of our own")
}
