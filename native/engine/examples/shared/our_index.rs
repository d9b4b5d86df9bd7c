//! Our index of a document file, and the conditions of query lines.

use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use sundew_engine::frame::{FrameWriter, RowKind};
use sundew_engine::full_text::{DerivedIndex, IndexOptions, TextIndex};

pub const FRAME_ROWS: usize = 1000;

/// The rows of `lines`; the first has the ordinal `first`.
pub fn frame(lines: &[&str], first: usize) -> Vec<u8> {
    let heap = lines.iter().map(|line| line.len() + 16).sum();
    let mut writer = FrameWriter::new(lines.len(), heap).expect("a frame");
    for (at, line) in lines.iter().enumerate() {
        writer.push(RowKind::Put, 0, format!("doc{:08}", first + at).as_bytes(), &[line.as_bytes()]);
        writer.set_position(at, (first + at) as u32, (first + at) as u64 + 1, 1);
    }
    writer.finish()
}

/// All of `lines` in one commit; `schema` is a table's, or null.
#[allow(dead_code, reason = "one of the programs measures each step by itself")]
pub fn build(directory: &Path, mut lines: impl Iterator<Item = String>, schema: Value) -> Arc<TextIndex> {
    let options = IndexOptions { schema, ..IndexOptions::named("bench") };
    let index = TextIndex::open(directory, options).expect("an index");
    let mut count = 0;
    loop {
        let chunk: Vec<String> = lines.by_ref().take(FRAME_ROWS).collect();
        if chunk.is_empty() {
            break;
        }
        let rows: Vec<&str> = chunk.iter().map(String::as_str).collect();
        index.apply(&frame(&rows, count)).expect("applied");
        count += rows.len();
    }
    index.commit(count as u64).expect("a commit");
    index
}

/// The condition of a query line.
pub fn node_of(query: &Value) -> Value {
    let (field, text) = (&query["field"], &query["text"]);
    match query["kind"].as_str() {
        Some("and") => json!({"kind": "match", "field": field, "text": text, "operator": "and"}),
        Some("phrase") => json!({"kind": "phrase", "field": field, "text": text}),
        Some("prefix") => json!({"kind": "prefix", "field": field, "value": text}),
        _ => json!({"kind": "match", "field": field, "text": text}),
    }
}
