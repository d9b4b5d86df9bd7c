//! What retrieval costs around its legs: one dense leg, text and dense fused, and a dense leg under filters.
//!
//! `retrieval_bench [DOCUMENTS] [DIMENSION]` prints medians in microseconds, all taken in alternation.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use serde_json::{Value, json};
use sundew_base::part::{PartForm, part_head};
use sundew_engine::frame::{FrameWriter, RowKind};
use sundew_engine::full_text::{self, CancelFlag, DerivedIndex, IndexOptions, QueryPlan, TextIndex};
use sundew_engine::retrieval::{self, LegIndex, VectorIndex};
use sundew_vector::dense::{DenseIndex, DenseOptions, DistanceBounds, Metric};
use sundew_vector::search::SearchBounds;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const FRAME_ROWS: usize = 1_000;
const ROUNDS: usize = 300;
const WORDS: usize = 5_000;

/// SplitMix64.
struct Random(u64);

impl Random {
    fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Rare words are rarer.
    fn word(&mut self) -> String {
        format!("w{}", (self.unit().powf(2.5) * WORDS as f64) as usize)
    }
}

fn frame(first: usize, count: usize, dimension: usize, centres: &[Vec<f32>], random: &mut Random) -> Vec<u8> {
    let mut writer = FrameWriter::new(2 * count, count * (400 + 4 * dimension)).expect("a frame");
    for at in 0..count {
        let ordinal = first + at;
        let words: Vec<String> = (0..30).map(|_| random.word()).collect();
        let part = (random.unit() * 1_000.0) as u32;
        let body = json!({ "text": words.join(" "), "part": part }).to_string();
        let key = format!("doc{ordinal:08}");
        writer.push(RowKind::Put, 0, key.as_bytes(), &[body.as_bytes()]);
        writer.set_position(2 * at, ordinal as u32, 2 * ordinal as u64 + 1, 1);
        let centre = &centres[(random.unit() * centres.len() as f64) as usize];
        let values = centre.iter().map(|middle| middle + random.unit() as f32 * 0.6);
        let values: Vec<u8> = values.flat_map(|value| value.to_le_bytes()).collect();
        writer.push(RowKind::PartPut, 0, key.as_bytes(), &[&part_head(1, PartForm::Dense), &values]);
        writer.set_position(2 * at + 1, ordinal as u32, 2 * ordinal as u64 + 2, 0);
    }
    writer.finish()
}

struct Bench {
    text: Arc<TextIndex>,
    dense: Arc<DenseIndex>,
    vector: Vec<f32>,
}

impl Bench {
    fn plan(&self, members: Value) -> QueryPlan {
        let mut plan = json!({ "limit": 10 });
        for (name, value) in members.as_object().into_iter().flatten() {
            plan[name] = value.clone();
        }
        serde_json::from_value(plan).expect("a plan")
    }

    fn with_leg(&self, mut members: Value) -> QueryPlan {
        members["legs"] = json!([{ "name": "v", "kind": "dense", "bytes": self.vector.len() * 4 }]);
        self.plan(members)
    }

    fn retrieve(&self, plan: &QueryPlan) {
        let bytes: Vec<u8> = self.vector.iter().flat_map(|value| value.to_le_bytes()).collect();
        let indexes = [LegIndex::Vectors(VectorIndex::Dense(Arc::clone(&self.dense)))];
        let texts = [Arc::clone(&self.text)];
        retrieval::query(&texts, &indexes, plan, &bytes, &CancelFlag::default()).expect("hits");
    }

    fn text(&self, plan: &QueryPlan) {
        full_text::query(&[Arc::clone(&self.text)], plan, &CancelFlag::default()).expect("hits");
    }

    fn dense(&self) {
        let bounds = SearchBounds { limit: 10, allowed: None, is_due: &|| false };
        self.dense.search(&self.vector, 0.5, DistanceBounds::default(), &bounds).expect("hits");
    }
}

fn micros(work: impl FnOnce()) -> f64 {
    let started = Instant::now();
    work();
    started.elapsed().as_nanos() as f64 / 1_000.0
}

fn at(samples: &mut [f64], share: f64) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples[(samples.len() as f64 * share) as usize]
}

fn main() {
    let numbers: Vec<usize> = std::env::args().skip(1).filter_map(|argument| argument.parse().ok()).collect();
    let (documents, dimension) = (*numbers.first().unwrap_or(&100_000), *numbers.get(1).unwrap_or(&100));
    let mut random = Random(7);
    let centre = |random: &mut Random| (0..dimension).map(|_| random.unit() as f32).collect::<Vec<f32>>();
    let centres: Vec<Vec<f32>> = (0..200).map(|_| centre(&mut random)).collect();
    let path = Path::new("unused");
    let options = DenseOptions { mem_only: true, ..DenseOptions::new("v", 1, dimension as u32, Metric::L2Squared) };
    let dense = DenseIndex::open(path, options).expect("an index");
    let text = TextIndex::open(path, IndexOptions { mem_only: true, ..IndexOptions::named("t") }).expect("an index");
    for first in (0..documents).step_by(FRAME_ROWS) {
        let bytes = frame(first, FRAME_ROWS.min(documents - first), dimension, &centres, &mut random);
        dense.apply(&bytes).expect("applied");
        text.apply(&bytes).expect("applied");
    }
    let last = 2 * documents as u64;
    dense.commit(last).expect("a commit");
    text.commit(last).expect("a commit");
    text.rest().expect("merges end");
    text.wait_for_merges();
    println!("{documents} documents in {} text segments, {:?}", text.stats().segment_count, dense.stats());

    let mut bench = Bench { text, dense, vector: Vec::new() };
    let words = json!({ "kind": "match", "field": "text", "text": "w9 w70 w400" });
    let part = |below: u32| json!([{ "kind": "range", "field": "part", "lt": below }]);
    let cases = ["dense search", "one leg", "text", "text and dense", "50 % known", "1 % known", "50 % new", "1 % new"];
    let mut samples = vec![Vec::with_capacity(ROUNDS); cases.len()];
    for round in 0..ROUNDS + 20 {
        bench.vector = centre(&mut random);
        let new = format!("doc{round:08}");
        let unseen = |below: u32| json!({ "filter": part(below), "exclusion": [{ "kind": "ids", "ids": [new] }] });
        let plans = [
            bench.with_leg(json!({})),
            bench.plan(json!({ "query": words })),
            bench.with_leg(json!({ "query": words })),
            bench.with_leg(json!({ "filter": part(500) })),
            bench.with_leg(json!({ "filter": part(10) })),
            bench.with_leg(unseen(500)),
            bench.with_leg(unseen(10)),
        ];
        let took = [
            micros(|| bench.dense()),
            micros(|| bench.retrieve(&plans[0])),
            micros(|| bench.text(&plans[1])),
            micros(|| bench.retrieve(&plans[2])),
            micros(|| bench.retrieve(&plans[3])),
            micros(|| bench.retrieve(&plans[4])),
            micros(|| bench.retrieve(&plans[5])),
            micros(|| bench.retrieve(&plans[6])),
        ];
        if round >= 20 {
            samples.iter_mut().zip(took).for_each(|(samples, took)| samples.push(took));
        }
    }
    for (case, samples) in cases.iter().zip(&mut samples) {
        println!("{case:>16} {:>10.1} µs, quickest tenth {:>10.1} µs", at(samples, 0.5), at(samples, 0.1));
    }
}
