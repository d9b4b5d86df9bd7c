//! What the full-text tests share: rows as JSON, indexes in a temporary directory.
#![allow(dead_code)]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};
use sundew_engine::frame::{FrameWriter, RowKind};
use sundew_engine::full_text::{CancelFlag, DerivedIndex, Hits, IndexOptions, QueryPlan, TextIndex, query};

/// A directory that goes with the test.
pub struct Scratch(PathBuf);

impl Scratch {
    pub fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let name = format!("sundew-full-text-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).expect("a temporary directory");
        Self(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// One row: a document, or `None` for a delete.
pub struct Row {
    pub key: String,
    pub ordinal: u32,
    pub body: Option<String>,
    pub ttl_base_ms: i64,
}

pub fn put(key: &str, ordinal: u32, body: Value) -> Row {
    Row { key: key.to_owned(), ordinal, body: Some(body.to_string()), ttl_base_ms: 0 }
}

pub fn delete(key: &str, ordinal: u32) -> Row {
    Row { key: key.to_owned(), ordinal, body: None, ttl_base_ms: 0 }
}

/// Sequences count from `first_sequence`.
pub fn frame(rows: &[Row], first_sequence: u64) -> Vec<u8> {
    let heap = rows.iter().map(|row| row.key.len() + row.body.as_ref().map_or(0, String::len)).sum();
    let mut writer = FrameWriter::new(rows.len(), heap).expect("a small frame");
    for (at, row) in rows.iter().enumerate() {
        let kind = if row.body.is_some() { RowKind::Put } else { RowKind::Delete };
        let body = row.body.as_deref().unwrap_or("").as_bytes();
        writer.push(kind, row.ttl_base_ms, row.key.as_bytes(), &[body]);
        writer.set_position(at, row.ordinal, first_sequence + at as u64, 0);
    }
    writer.finish()
}

pub fn memory_options(schema: Value) -> IndexOptions {
    IndexOptions { mem_only: true, schema, ..IndexOptions::named("test") }
}

pub fn disk_options() -> IndexOptions {
    IndexOptions::named("test")
}

/// An index in memory that holds the documents under the keys `k0`, `k1`, ... and the ordinals 0, 1, ...
pub fn index_of(schema: Value, documents: &[Value]) -> Arc<TextIndex> {
    let index = TextIndex::open(Path::new("unused"), memory_options(schema)).expect("an index in memory");
    let rows: Vec<Row> = documents
        .iter()
        .enumerate()
        .map(|(at, document)| put(&format!("k{at}"), at as u32, document.clone()))
        .collect();
    let report = index.apply(&frame(&rows, 1)).expect("rows are applied");
    assert_eq!(report.skipped, vec![]);
    index.commit(rows.len() as u64).expect("a commit");
    index
}

pub fn plan(query: Value) -> QueryPlan {
    serde_json::from_value(json!({ "query": query, "limit": 1000 })).expect("a plan")
}

pub fn run(index: &Arc<TextIndex>, plan: &QueryPlan) -> Hits {
    query(std::slice::from_ref(index), plan, &CancelFlag::default()).expect("the query runs")
}

/// The ordinals of the matches, ascending.
pub fn matching(index: &Arc<TextIndex>, query: Value) -> Vec<u32> {
    let mut ordinals: Vec<u32> = run(index, &plan(query)).hits.iter().map(|hit| hit.ordinal).collect();
    ordinals.sort_unstable();
    ordinals
}

/// A small generator of pseudo-random numbers; the seed is in the test.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let mixed = (self.0 ^ (self.0 >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
        ((mixed >> 32) as usize) % bound
    }
}
