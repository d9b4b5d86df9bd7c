//! What the full-text tests share: rows as JSON, indexes in a temporary directory.

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

/// Whether the query is refused, in place of finding nothing.
pub fn is_refused(index: &Arc<TextIndex>, node: Value) -> bool {
    let answer = query(std::slice::from_ref(index), &plan(node), &CancelFlag::default());
    answer.is_err_and(|error| error.code == "invalid_query")
}

/// The ordinals of the matches, ascending.
pub fn matching(index: &Arc<TextIndex>, query: Value) -> Vec<u32> {
    let mut ordinals: Vec<u32> = run(index, &plan(query)).hits.iter().map(|hit| hit.ordinal).collect();
    ordinals.sort_unstable();
    ordinals
}

/// A schema of one type whose properties are given.
pub fn schema(properties: Value) -> Value {
    json!({"document_schemas": {"doc": {"schema": {"type": "object", "properties": properties}}}})
}

/// Whether the query finds the document, alone in an index.
pub fn found(schema: Value, document: Value, query: Value) -> bool {
    !matching(&index_of(schema, &[document]), query).is_empty()
}

pub fn term(field: &str, value: impl Into<Value>) -> Value {
    json!({"kind": "term", "field": field, "value": value.into()})
}

pub fn word(field: &str, text: &str) -> Value {
    json!({"kind": "match", "field": field, "text": text})
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

/// What documents and queries of random make share.
pub const WORDS: [&str; 8] = ["soup", "bread", "leek", "running", "the", "Ann Lee", "2024-01-01", "10.1.2.3"];

/// A document of random members: words, numbers, booleans, dates, addresses and points.
pub fn random_document(random: &mut Random) -> Value {
    let mut document = json!({});
    for path in ["title", "tag", "n", "author", "at"] {
        let value = match random.below(if path == "at" { 12 } else { 6 }) {
            6..=8 => json!({"lat": random.below(10), "lon": random.below(10) as f64 / 2.0}),
            9..=11 => json!([random.below(10), random.below(10)]),
            0 => continue,
            1 => json!(random.below(5)),
            2 => json!(random.below(10) as f64 / 2.0),
            3 => json!(random.below(2) == 0),
            4 => json!([WORDS[random.below(8)], random.below(3)]),
            _ => json!(format!("{} {}", WORDS[random.below(8)], WORDS[random.below(8)])),
        };
        match path {
            "author" => document["author"] = json!({"name": value}),
            _ => document[path] = value,
        }
    }
    document
}

/// A condition of any kind on such documents.
pub fn random_node(random: &mut Random, depth: usize) -> Value {
    let field = ["title", "tag", "n", "author.name", "nowhere"][random.below(5)];
    let text = WORDS[random.below(8)];
    let place = [random.below(10) as f64, random.below(10) as f64];
    match random.below(if depth > 2 { 20 } else { 24 }) {
        8 => json!({"kind": "fuzzy", "field": field, "value": "soop", "fuzziness": 1 + random.below(2)}),
        9 => json!({"kind": "fuzzy", "value": "braed", "fuzziness": "auto", "prefix_length": random.below(3)}),
        10 => {
            json!({"kind": "match", "field": field, "text": format!("lek {text}"), "fuzziness": 1, "operator": "and"})
        }
        11 => json!({"kind": "wildcard", "field": field, "pattern": (["*e*", "s?up", "?n*", "*"][random.below(4)])}),
        12 => {
            json!({"kind": "regexp", "field": field, "pattern": (["[a-l].*", "so(u|a)p", ".*\\d.*"][random.below(3)])})
        }
        13 => json!({"kind": "terms_phrase", "field": field, "terms": [["soup", "leek"], ["bread", "run", "soup"]]}),
        14 => json!({"kind": "phrase", "field": field, "text": "sooup bred", "fuzziness": 2}),
        15 => json!({"kind": "ip_range", "field": field, "cidr": "10.0.0.0/8"}),
        16 => json!({"kind": "geo_box", "field": "at", "top_left": [0, place[0]], "bottom_right": [place[1], 0]}),
        17 => json!({"kind": "geo_distance", "field": "at", "center": place, "meters": 400_000}),
        18 => json!({"kind": "geo_polygon", "field": "at", "points": [[0, 0], place, [0, 9]]}),
        19 => json!({"kind": "geo_shape", "field": "at", "relation": "within",
            "geometry": {"type": "envelope", "coordinates": [[0, place[0]], [place[1], 0]]}}),
        0 => {
            json!({"kind": "match", "field": field, "text": format!("{text} {}", WORDS[random.below(8)]), "operator": "and"})
        }
        1 => json!({"kind": "match", "text": text}),
        2 => json!({"kind": "term", "field": field, "value": text}),
        3 => json!({"kind": "term", "field": field, "value": random.below(5)}),
        4 => json!({"kind": "range", "field": field, "gte": random.below(4) as f64 / 2.0, "lt": 3}),
        5 => json!({"kind": "prefix", "field": field, "value": &text[..2]}),
        6 => json!({"kind": "exists", "field": field}),
        7 => json!({"kind": "phrase", "field": field, "text": format!("{text} leek")}),
        _ => {
            let mut nodes = || -> Vec<Value> { (0..random.below(3)).map(|_| random_node(random, depth + 1)).collect() };
            json!({"kind": "bool", "must": nodes(), "should": nodes(), "must_not": nodes(), "filter": nodes()})
        }
    }
}
