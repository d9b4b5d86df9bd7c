//! Measures a dense index: vectors a second while building, then recall@10 and queries a second by effort and by the share
//! of rows that a filter keeps.
//!
//! `dense_bench clustered ROWS DIMENSION [METRIC] [filters]` draws clustered vectors (seed 42);
//! `dense_bench FILE DIMENSION [METRIC] [filters]` reads raw little-endian float32 rows. The last 500 rows are the queries.
//! With INDEX_DIRECTORY in the environment the index is kept there, and opened by the next run.
//! With PACED the rows come so slowly that the graphs keep up; TAIL_BYTES, LINKS, BUILD_CANDIDATES and BUILD_THREADS are
//! options of the index. Efforts below FIRST_EFFORT are left out.
//! METRIC is cosine, l2_squared or inner_product. With `off` the queries lie anywhere on the sphere, off all clusters.

use std::collections::BTreeSet;
use std::time::Instant;

use sundew_base::bit_set::BitSet;
use sundew_base::derived_index::DerivedIndex;
use sundew_base::frame::{FrameWriter, RowKind};
use sundew_base::part::{PartForm, part_head};
use sundew_vector::dense::{DenseIndex, DenseOptions, DistanceBounds, Metric};
use sundew_vector::search::{SearchBounds, SearchReport};

const QUERIES: usize = 500;
const BATCH: usize = 1000;

struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn unit(&mut self) -> f64 {
        ((self.next() >> 11) + 1) as f64 / (1u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        (-2.0 * self.unit().ln()).sqrt() * (std::f64::consts::TAU * self.unit()).cos()
    }
}

struct Data {
    dimension: usize,
    values: Vec<f32>,
    /// What a correlated filter keeps or leaves out together.
    groups: Vec<u32>,
}

impl Data {
    fn rows(&self) -> usize {
        self.values.len() / self.dimension
    }

    fn row(&self, at: usize) -> &[f32] {
        &self.values[at * self.dimension..][..self.dimension]
    }

    /// sqrt(n) centres on the unit sphere, cluster sizes by Zipf, most of the spread in few directions; every twentieth
    /// query (and row) lies off the clusters.
    fn clustered(rows: usize, dimension: usize) -> Self {
        let mut dice = Dice(42);
        let clusters = (rows as f64).sqrt() as usize;
        let unit = |vector: Vec<f64>| -> Vec<f64> {
            let norm = vector.iter().map(|value| value * value).sum::<f64>().sqrt();
            vector.into_iter().map(|value| value / norm).collect()
        };
        let centres: Vec<Vec<f64>> =
            (0..clusters).map(|_| unit((0..dimension).map(|_| dice.normal()).collect())).collect();
        let spread: Vec<f64> = (1..=dimension).map(|at| (at as f64).powf(-0.7).sqrt()).collect();
        let length = spread.iter().map(|value| value * value).sum::<f64>().sqrt();
        let spread: Vec<f64> = spread.iter().map(|value| 0.25 * value / length * 2.0).collect();
        let mut shares: Vec<f64> = (1..=clusters).map(|rank| 1.0 / rank as f64).collect();
        let total: f64 = shares.iter().sum();
        let mut sum = 0.0;
        for share in &mut shares {
            sum += *share / total;
            *share = sum;
        }
        let (mut values, mut groups) = (Vec::with_capacity((rows + QUERIES) * dimension), Vec::new());
        for at in 0..rows + QUERIES {
            let draw = dice.unit();
            let cluster = shares.partition_point(|&share| share < draw).min(clusters - 1);
            let off = if at % 20 == 19 { 2.0 } else { 1.0 };
            let row =
                centres[cluster].iter().zip(&spread).map(|(centre, s)| centre + off * s * dice.normal()).collect();
            values.extend(unit(row).into_iter().map(|value| value as f32));
            groups.push(cluster as u32);
        }
        Self { dimension, values, groups }
    }

    /// Has the queries lie anywhere on the unit sphere.
    fn move_queries_off(&mut self) {
        let mut dice = Dice(43);
        let first = (self.rows() - QUERIES) * self.dimension;
        for query in self.values[first..].chunks_exact_mut(self.dimension) {
            query.fill_with(|| dice.normal() as f32);
            let norm = query.iter().map(|value| value * value).sum::<f32>().sqrt();
            query.iter_mut().for_each(|value| *value /= norm);
        }
    }

    fn read(path: &str, dimension: usize) -> Self {
        let bytes = std::fs::read(path).expect("the file of vectors can be read");
        let values: Vec<f32> = bytes.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
        let mut data = Self { dimension, values, groups: Vec::new() };
        // Groups: the nearest of 600 rows.
        let rows = data.rows();
        let centres: Vec<usize> = (0..600).map(|at| at * (rows / 600)).collect();
        let group = |at: usize| -> u32 {
            let row = data.row(at);
            let near = |&centre: &usize| dot(row, data.row(centre)) / dot(data.row(centre), data.row(centre)).sqrt();
            let best = (0..600).max_by(|&a, &b| near(&centres[a]).total_cmp(&near(&centres[b])));
            best.unwrap_or(0) as u32
        };
        data.groups = (0..rows).map(group).collect();
        data
    }
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    let mut lanes = [0.0f32; 16];
    for (a, b) in a.chunks(16).zip(b.chunks(16)) {
        a.iter().zip(b).zip(&mut lanes).for_each(|((a, b), lane)| *lane += a * b);
    }
    lanes.iter().sum()
}

fn cost(metric: Metric, a: &[f32], b: &[f32]) -> f32 {
    match metric {
        Metric::L2Squared => dot(a, a) + dot(b, b) - 2.0 * dot(a, b),
        Metric::Cosine => -dot(a, b) / (dot(a, a) * dot(b, b)).sqrt(),
        Metric::InnerProduct => -dot(a, b),
    }
}

fn frame(data: &Data, rows: std::ops::Range<usize>) -> Vec<u8> {
    let mut writer = FrameWriter::new(rows.len(), rows.len() * (data.dimension * 4 + 8)).expect("a frame");
    let head = part_head(1, PartForm::Dense);
    for (at, row) in rows.enumerate() {
        let bytes: Vec<u8> = data.row(row).iter().flat_map(|value| value.to_le_bytes()).collect();
        writer.push(RowKind::PartPut, 0, b"", &[&head, &bytes]);
        writer.set_position(at, row as u32, row as u64 + 1, 0);
    }
    writer.finish()
}

fn truth(data: &Data, metric: Metric, queries: &[usize], rows: usize, allowed: Option<&BitSet>) -> Vec<Vec<u32>> {
    let nearest = |&query: &usize| -> Vec<u32> {
        let mut found: Vec<(f32, u32)> = (0..rows)
            .filter(|&row| allowed.is_none_or(|allowed| allowed.contains(row as u32)))
            .map(|row| (cost(metric, data.row(query), data.row(row)), row as u32))
            .collect();
        if found.len() > 10 {
            found.select_nth_unstable_by(9, |a, b| a.0.total_cmp(&b.0));
            found.truncate(10);
        }
        found.into_iter().map(|(_, row)| row).collect()
    };
    let half = queries.len() / 2;
    std::thread::scope(|scope| {
        let other = scope.spawn(|| queries[half..].iter().map(nearest).collect::<Vec<_>>());
        let mut all: Vec<Vec<u32>> = queries[..half].iter().map(nearest).collect();
        all.extend(other.join().expect("the oracle"));
        all
    })
}

struct Measured {
    recall: f64,
    queries_per_second: f64,
    /// Processor time of a query on average, microseconds.
    worked_micros: f64,
    p10_micros: u128,
    p50_micros: u128,
    p99_micros: u128,
    fewest: usize,
    report: SearchReport,
}

fn measure(
    index: &DenseIndex,
    data: &Data,
    queries: &[usize],
    truth: &[Vec<u32>],
    effort: f32,
    allowed: Option<&BitSet>,
) -> Measured {
    let bounds = SearchBounds { limit: 10, allowed, is_due: &|| false };
    let worked_before = processor_seconds();
    let (mut hits, mut wanted, mut times, mut fewest) = (0, 0, Vec::new(), usize::MAX);
    let mut report = SearchReport::default();
    for (&query, truth) in queries.iter().zip(truth) {
        let started = Instant::now();
        let found = index.search(data.row(query), effort, DistanceBounds::default(), &bounds).expect("a search");
        times.push(started.elapsed());
        let found_rows: BTreeSet<u32> = found.hits.iter().map(|hit| hit.ordinal).collect();
        hits += truth.iter().filter(|row| found_rows.contains(row)).count();
        wanted += truth.len();
        fewest = fewest.min(found.hits.len());
        report.visited += found.report.visited;
        report.candidates += found.report.candidates;
        for arm in found.report.arms {
            if !report.arms.contains(&arm) {
                report.arms.push(arm);
            }
        }
    }
    let total: f64 = times.iter().map(|time| time.as_secs_f64()).sum();
    times.sort();
    report.visited /= queries.len() as u64;
    report.candidates /= queries.len() as u64;
    Measured {
        recall: hits as f64 / wanted.max(1) as f64,
        queries_per_second: queries.len() as f64 / total,
        worked_micros: (processor_seconds() - worked_before) / queries.len() as f64 * 1e6,
        p10_micros: times[times.len() / 10].as_micros(),
        p50_micros: times[times.len() / 2].as_micros(),
        p99_micros: times[times.len() * 99 / 100].as_micros(),
        fewest,
        report,
    }
}

fn show(label: &str, m: &Measured) {
    println!(
        "{label:>24}  recall {:.4}  {:>8.0}/s  worked {:>6.0} us  p10 {:>6} us  p50 {:>6} us  p99 {:>6} us  fewest {:>2}  visited {:>7}  rescored {:>5}  {}",
        m.recall,
        m.queries_per_second,
        m.worked_micros,
        m.p10_micros,
        m.p50_micros,
        m.p99_micros,
        m.fewest,
        m.report.visited,
        m.report.candidates,
        m.report.arms.join("+"),
    );
}

/// Processor time of this process, where the system tells: a figure that other processes disturb less.
fn processor_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = text.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|field| field.parse::<f64>().ok()).unwrap_or(f64::NAN);
    (ticks(11) + ticks(12)) / 100.0
}

fn build(data: &Data, rows: usize, metric: Metric) -> std::sync::Arc<DenseIndex> {
    let mut options = DenseOptions::new("bench", 1, data.dimension as u32, metric);
    let directory = std::env::var("INDEX_DIRECTORY").ok();
    options.mem_only = directory.is_none();
    let setting = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<usize>().ok());
    options.build_candidates = setting("BUILD_CANDIDATES").unwrap_or(options.build_candidates);
    options.build_threads = setting("BUILD_THREADS").unwrap_or(options.build_threads);
    options.tail_bytes = setting("TAIL_BYTES").unwrap_or(options.tail_bytes);
    options.links = setting("LINKS").unwrap_or(options.links);
    let started = Instant::now();
    let path = std::path::PathBuf::from(directory.unwrap_or_default());
    let index = DenseIndex::open(&path, options).expect("an index");
    if index.stats().applied_sequence == rows as u64 {
        println!("opened in {:.1} ms", started.elapsed().as_secs_f64() * 1e3);
        return index;
    }
    let worked_before = processor_seconds();
    for start in (0..rows).step_by(BATCH) {
        let end = (start + BATCH).min(rows);
        index.apply(&frame(data, start..end)).expect("applied");
        index.commit(end as u64).expect("committed");
        if setting("PACED").is_some() {
            index.settle();
        }
    }
    let applied = started.elapsed().as_secs_f64();
    index.settle();
    let (settled, worked) = (started.elapsed().as_secs_f64(), processor_seconds());
    let stats = index.stats();
    println!(
        "{rows} x {}: applied in {applied:.2} s, built in {settled:.2} s: {:.0} vectors/s, {:.0} a second of processor \
         time; {} parts, {:.1} MB",
        data.dimension,
        rows as f64 / settled,
        rows as f64 / (worked - worked_before),
        stats.segment_count,
        stats.memory_bytes as f64 / 1e6
    );
    index.checkpoint().expect("a checkpoint");
    index
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize| words.get(at).and_then(|word| word.parse::<usize>().ok()).expect("a number");
    let mut data = match words.first().map(String::as_str) {
        Some("clustered") => Data::clustered(number(1), number(2)),
        Some(path) => Data::read(path, number(1)),
        None => panic!("give `clustered ROWS DIMENSION` or `FILE DIMENSION`"),
    };
    let has = |word: &str| words.iter().any(|other| other == word);
    if has("off") {
        data.move_queries_off();
    }
    let metric = match () {
        () if has("l2_squared") => Metric::L2Squared,
        () if has("inner_product") => Metric::InnerProduct,
        () => Metric::Cosine,
    };
    let rows = data.rows() - QUERIES;
    let queries: Vec<usize> = (rows..rows + QUERIES).collect();
    let index = build(&data, rows, metric);
    let nearest = truth(&data, metric, &queries, rows, None);
    let first = std::env::var("FIRST_EFFORT").ok().and_then(|text| text.parse().ok()).unwrap_or(0.0);
    for effort in [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0].into_iter().filter(|&effort| effort >= first)
    {
        show(&format!("effort {effort}"), &measure(&index, &data, &queries, &nearest, effort, None));
    }
    if !has("filters") {
        return;
    }
    let queries = &queries[..200];
    for kind in ["independent", "correlated"] {
        for kept in [50_000, 20_000, 10_000, 5_000, 1_000, 100, 10] {
            let keeps = |row: usize| {
                let what = if kind == "independent" { row as u64 } else { u64::from(data.groups[row]) };
                Dice(what * 7919 + 12345).next() % 100_000 < kept
            };
            let allowed: BitSet = (0..rows).filter(|&row| keeps(row)).map(|row| row as u32).collect();
            let nearest = truth(&data, metric, queries, rows, Some(&allowed));
            let label = format!("{kind} {} % ", kept as f64 / 1000.0);
            show(&label, &measure(&index, &data, queries, &nearest, 0.5, Some(&allowed)));
        }
    }
}
