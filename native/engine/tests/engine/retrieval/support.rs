//! What the retrieval tests share: a table of documents with vectors, spread over ranges, and queries over it.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use sundew_base::part::{PartForm, part_head};
use sundew_engine::error::EngineError;
use sundew_engine::frame::{FrameWriter, RowKind};
use sundew_engine::full_text::{CancelFlag, DerivedIndex, Hits, IndexOptions, QueryPlan, TextIndex};
use sundew_engine::retrieval::{LegIndex, VectorIndex, query, query_inline};
use sundew_vector::dense::{DenseIndex, DenseOptions, Metric};
use sundew_vector::sparse::{SparseIndex, SparseOptions};

pub const DENSE_ID: u32 = 1;
pub const SPARSE_ID: u32 = 2;
pub const DIMENSION: usize = 4;

#[derive(Debug, Clone)]
pub struct Document {
    pub key: String,
    pub body: Value,
    pub ttl_base_ms: i64,
    pub dense: Option<[f32; DIMENSION]>,
    pub sparse: Vec<(u32, f32)>,
}

pub fn document(key: &str, body: Value) -> Document {
    Document { key: key.to_owned(), body, ttl_base_ms: 0, dense: None, sparse: Vec::new() }
}

/// The three indexes of one range.
pub struct Range {
    pub text: Arc<TextIndex>,
    pub dense: Arc<DenseIndex>,
    pub sparse: Arc<SparseIndex>,
    next_sequence: u64,
}

#[derive(Clone, Copy, PartialEq)]
pub enum Target {
    All,
    /// The text index lags behind.
    Vectors,
    /// The vector indexes lag behind.
    Text,
}

impl Range {
    pub fn open(metric: Metric) -> Self {
        let path = Path::new("unused");
        let text = IndexOptions { mem_only: true, ..IndexOptions::named("test") };
        let dense = DenseOptions { mem_only: true, ..DenseOptions::new("taste", DENSE_ID, DIMENSION as u32, metric) };
        let sparse = json!({ "name": "tags", "mem_only": true, "index_id": SPARSE_ID });
        let sparse: SparseOptions = serde_json::from_value(sparse).expect("options");
        Self {
            text: TextIndex::open(path, text).expect("a text index"),
            dense: DenseIndex::open(path, dense).expect("a dense index"),
            sparse: SparseIndex::open(path, sparse).expect("a sparse index"),
            next_sequence: 1,
        }
    }

    /// Puts documents under ordinals; `None` deletes. All in one commit.
    pub fn apply(&mut self, rows: &[(u32, &str, Option<&Document>)], target: Target) {
        let mut packed = Vec::new();
        for (ordinal, key, document) in rows {
            let kind = if document.is_some() { RowKind::Put } else { RowKind::Delete };
            let body = document.map_or(String::new(), |document| document.body.to_string()).into_bytes();
            packed.push((kind, *ordinal, *key, document.map_or(0, |document| document.ttl_base_ms), body));
            let Some(document) = document else { continue };
            if let Some(dense) = &document.dense {
                let values = dense.iter().flat_map(|value| value.to_le_bytes());
                let body = part_head(DENSE_ID, PartForm::Dense).into_iter().chain(values).collect();
                packed.push((RowKind::PartPut, *ordinal, *key, 0, body));
            }
            if !document.sparse.is_empty() {
                let head = part_head(SPARSE_ID, PartForm::Sparse);
                let body = head.into_iter().chain(sparse_bytes(&document.sparse)).collect();
                packed.push((RowKind::PartPut, *ordinal, *key, 0, body));
            }
        }
        let heap = packed.iter().map(|(_, _, key, _, body)| key.len() + body.len()).sum();
        let mut writer = FrameWriter::new(packed.len(), heap).expect("a small frame");
        for (at, (kind, ordinal, key, ttl_base_ms, body)) in packed.iter().enumerate() {
            writer.push(*kind, *ttl_base_ms, key.as_bytes(), &[body]);
            writer.set_position(at, *ordinal, self.next_sequence, 0);
            self.next_sequence += 1;
        }
        let frame = writer.finish();
        let all: [(&dyn DerivedIndex, bool); 3] = [
            (&*self.text, target != Target::Vectors),
            (&*self.dense, target != Target::Text),
            (&*self.sparse, target != Target::Text),
        ];
        for (index, _) in all.iter().filter(|(_, is_target)| *is_target) {
            let report = index.apply(&frame).expect("rows are applied");
            assert_eq!(report.skipped, vec![]);
            index.commit(self.next_sequence - 1).expect("a commit");
        }
    }
}

/// Document `i` lies in range `i % ranges` under ordinal `i / ranges`, in commits of a few rows.
pub fn table(documents: &[Document], ranges: usize, metric: Metric) -> Vec<Range> {
    let mut table: Vec<Range> = (0..ranges).map(|_| Range::open(metric)).collect();
    for (at, range) in table.iter_mut().enumerate() {
        let own: Vec<(u32, &str, Option<&Document>)> = (0..)
            .zip(documents.iter().skip(at).step_by(ranges))
            .map(|(ordinal, document)| (ordinal, document.key.as_str(), Some(document)))
            .collect();
        for rows in own.chunks(own.len().div_ceil(3).max(1)) {
            range.apply(rows, Target::All);
        }
    }
    table
}

pub fn sparse_bytes(vector: &[(u32, f32)]) -> Vec<u8> {
    let indices = vector.iter().flat_map(|(index, _)| index.to_le_bytes());
    indices.chain(vector.iter().flat_map(|(_, value)| value.to_le_bytes())).collect()
}

/// A query: the plan's members beside the legs, and the vectors of the legs that take part.
#[derive(Default, Clone)]
pub struct Query {
    pub plan: Value,
    pub dense: Option<[f32; DIMENSION]>,
    pub sparse: Option<Vec<(u32, f32)>>,
    pub weights: [f64; 2],
}

pub fn run(table: &[Range], asked: &Query) -> Hits {
    try_run(table, asked).expect("the query runs")
}

pub fn try_run(table: &[Range], asked: &Query) -> Result<Hits, EngineError> {
    let texts: Vec<Arc<TextIndex>> = table.iter().map(|range| Arc::clone(&range.text)).collect();
    // Hits say where their documents lie, which changes when a merge ends between two runs of a query.
    texts.iter().for_each(|text| text.wait_for_merges());
    let (mut legs, mut indexes, mut vectors) = (Vec::new(), Vec::new(), Vec::new());
    if let Some(dense) = &asked.dense {
        vectors.extend(dense.iter().flat_map(|value| value.to_le_bytes()));
        legs.push(json!({ "name": "taste", "kind": "dense", "bytes": DIMENSION * 4, "weight": asked.weights[0] }));
        indexes.extend(table.iter().map(|range| LegIndex::Vectors(VectorIndex::Dense(Arc::clone(&range.dense)))));
    }
    if let Some(sparse) = &asked.sparse {
        vectors.extend(sparse_bytes(sparse));
        legs.push(json!({ "name": "tags", "kind": "sparse", "bytes": sparse.len() * 8, "weight": asked.weights[1] }));
        indexes.extend(table.iter().map(|range| LegIndex::Vectors(VectorIndex::Sparse(Arc::clone(&range.sparse)))));
    }
    let mut plan = asked.plan.clone();
    plan["legs"] = json!(legs);
    let plan: QueryPlan = serde_json::from_value(plan).expect("a plan");
    let answer = query(&texts, &indexes, &plan, &vectors, &CancelFlag::default());
    // Whatever can be answered inline is answered alike, unless the time is over.
    if let (Ok(answer), Ok(Some(inline))) = (&answer, query_inline(&texts, &indexes, &plan, &vectors, u64::MAX))
        && !answer.is_partial
    {
        let timeless = |hits: &Hits| Hits { took_micros: 0, profile: String::new(), ..hits.clone() };
        assert_eq!(format!("{:?}", timeless(&inline)), format!("{:?}", timeless(answer)));
    }
    answer
}

/// The keys of the hits, in order, by the layout of `table`.
pub fn keys<'a>(documents: &'a [Document], ranges: usize, hits: &Hits) -> Vec<&'a str> {
    let at = |hit: &sundew_engine::full_text::Hit| hit.ordinal as usize * ranges + hit.range as usize;
    hits.hits.iter().map(|hit| documents[at(hit)].key.as_str()).collect()
}

pub fn scores(hits: &Hits) -> Vec<f32> {
    hits.hits.iter().map(|hit| hit.score).collect()
}

/// For each hit what each leg that found it scored it.
pub fn leg_scores(hits: &Hits) -> Vec<HashMap<String, f32>> {
    let named = |scores: &[f32]| hits.legs.iter().cloned().zip(scores.iter().copied()).collect::<Vec<_>>();
    let rows = hits.leg_scores.chunks(hits.legs.len().max(1));
    rows.map(|scores| named(scores).into_iter().filter(|(_, score)| !score.is_nan()).collect()).collect()
}
