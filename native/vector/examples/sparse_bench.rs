//! Builds sparse indexes of the given sizes and measures searches against one that adds up every posting.
//!
//! `cargo run --release -p sundew-vector --example sparse_bench [DOCUMENTS...]` (20000 200000)
//!
//! Vectors have 60 to 120 non-zeros, queries 10 to 40; dimension = floor(u^2.2 * 30,000), weights 0.1 to 2.1; seed 42.

use std::collections::BTreeMap;
use std::time::Instant;

use sundew_base::bit_set::BitSet;
use sundew_base::derived_index::DerivedIndex;
use sundew_base::frame::{FrameWriter, RowKind};
use sundew_base::part::{PartForm, part_head};
use sundew_vector::search::{SearchBounds, VectorHits};
use sundew_vector::sparse::{SparseIndex, SparseOptions};

const LIMIT: usize = 10;
const QUERIES: usize = 1000;
const BATCH: usize = 1000;
const ROUNDS: usize = 5;

/// xorshift32 of seed 42, as in the other benches.
struct Random(u32);

impl Random {
    fn share(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 17;
        self.0 ^= self.0 << 5;
        f64::from(self.0) / 4_294_967_296.0
    }

    fn vector(&mut self, least: usize, most: usize) -> Vec<(u32, f32)> {
        let count = least + (self.share() * (most - least + 1) as f64) as usize;
        let mut entries = BTreeMap::new();
        while entries.len() < count {
            entries.insert((self.share().powf(2.2) * 30_000.0) as u32, (0.1 + 2.0 * self.share()) as f32);
        }
        entries.into_iter().collect()
    }
}

fn build(vectors: &[Vec<(u32, f32)>]) -> std::sync::Arc<SparseIndex> {
    let options: SparseOptions =
        serde_json::from_value(serde_json::json!({"name": "bench", "index_id": 1, "mem_only": true})).expect("options");
    let index = SparseIndex::open(std::path::Path::new(""), options).expect("an index");
    for (batch, vectors) in vectors.chunks(BATCH).enumerate() {
        let mut frame = FrameWriter::new(vectors.len(), vectors.len() * 1100).expect("a frame");
        for vector in vectors {
            let mut body = part_head(1, PartForm::Sparse).to_vec();
            body.extend(vector.iter().flat_map(|entry| entry.0.to_le_bytes()));
            body.extend(vector.iter().flat_map(|entry| entry.1.to_le_bytes()));
            frame.push(RowKind::PartPut, 0, b"k", &[&body]);
        }
        for at in 0..vectors.len() {
            let position = batch * BATCH + at;
            frame.set_position(at, position as u32, position as u64 + 1, 0);
        }
        index.apply(&frame.finish()).expect("applied");
        index.commit((batch * BATCH + vectors.len()) as u64).expect("a commit");
    }
    index
}

fn brute_force(vectors: &[Vec<(u32, f32)>], query: &[(u32, f32)]) -> Vec<(u32, f32)> {
    let mut weights = vec![0f32; 30_000];
    query.iter().for_each(|&(dimension, weight)| weights[dimension as usize] = weight);
    let sum = |vector: &[(u32, f32)]| {
        vector.iter().fold(0f32, |sum, &(dimension, weight)| sum + weights[dimension as usize] * weight)
    };
    let mut all: Vec<(u32, f32)> = vectors.iter().enumerate().map(|(at, vector)| (at as u32, sum(vector))).collect();
    all.sort_by(|one, other| other.1.total_cmp(&one.1).then(one.0.cmp(&other.0)));
    all.truncate(LIMIT);
    all
}

fn search(index: &SparseIndex, query: &[(u32, f32)], allowed: Option<&BitSet>) -> VectorHits {
    index.search(query, &SearchBounds { limit: LIMIT, allowed, is_due: &|| false }).expect("a search")
}

/// Microseconds that this thread has had a core, so that what else runs counts little.
fn thread_micros() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos: f64 =
        text.split(' ').next().and_then(|nanos| nanos.parse().ok()).expect("scheduler statistics of Linux");
    nanos / 1000.0
}

/// Median microseconds of a query over `ROUNDS`, with postings visited and documents scored for each.
fn measure(index: &SparseIndex, queries: &[Vec<(u32, f32)>], allowed: Option<&BitSet>) -> (f64, u64, u64) {
    let mut micros = Vec::new();
    let (mut visited, mut candidates) = (0, 0);
    for _ in 0..ROUNDS {
        (visited, candidates) = (0, 0);
        let started = thread_micros();
        for query in queries {
            let hits = search(index, query, allowed);
            visited += hits.report.visited;
            candidates += hits.report.candidates;
        }
        micros.push((thread_micros() - started) / queries.len() as f64);
    }
    micros.sort_by(f64::total_cmp);
    (micros[ROUNDS / 2], visited / queries.len() as u64, candidates / queries.len() as u64)
}

fn main() {
    let mut sizes: Vec<usize> = std::env::args().skip(1).filter_map(|text| text.parse().ok()).collect();
    if sizes.is_empty() {
        sizes = vec![20_000, 200_000];
    }
    let mut before: Option<(usize, f64)> = None;
    for size in sizes {
        let mut random = Random(42);
        let vectors: Vec<_> = (0..size).map(|_| random.vector(60, 120)).collect();
        let queries: Vec<_> = (0..QUERIES).map(|_| random.vector(10, 40)).collect();
        let started = Instant::now();
        let index = build(&vectors);
        let took = started.elapsed().as_secs_f64();
        index.rest().expect("merged");
        let stats = index.stats();
        let postings: usize = vectors.iter().map(Vec::len).sum();
        println!(
            "{size} documents: {:.0} vectors/s, {} segments, {:.2} bytes a posting",
            size as f64 / took,
            stats.segment_count,
            stats.memory_bytes as f64 / postings as f64
        );
        for query in &queries[..20] {
            let hits: Vec<_> = search(&index, query, None).hits.iter().map(|hit| (hit.ordinal, hit.score)).collect();
            assert_eq!(hits, brute_force(&vectors, query), "exact");
        }
        let (micros, visited, candidates) = measure(&index, &queries, None);
        println!("  all: {micros:.1} us, {:.0} QPS, {visited} visited, {candidates} scored", 1e6 / micros);
        if let Some((smaller, micros_before)) = before {
            let exponent = (micros / micros_before).ln() / (size as f64 / smaller as f64).ln();
            println!("  grows with the exponent {exponent:.2} from {smaller}");
        }
        before = Some((size, micros));
        for share in [0.5, 0.1, 0.01, 0.001] {
            let allowed: BitSet = (0..size as u32).filter(|_| random.share() < share).collect();
            let (micros, visited, candidates) = measure(&index, &queries[..200], Some(&allowed));
            println!("  {:>5}% kept: {micros:.1} us, {visited} visited, {candidates} scored", share * 100.0);
        }
    }
}
