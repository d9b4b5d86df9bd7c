//! Frames, vectors and a brute-force oracle for the tests of dense indexes.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use sundew_base::bit_set::BitSet;
use sundew_base::derived_index::DerivedIndex;
use sundew_base::frame::{FrameWriter, RowKind};
use sundew_base::part::{PartForm, part_head};
use sundew_vector::dense::{DenseIndex, DenseOptions, DistanceBounds, Metric};
use sundew_vector::search::{SearchBounds, VectorHits};

pub const INDEX_ID: u32 = 7;

/// Random numbers that are the same in every run.
pub struct Dice(pub u64);

impl Dice {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() >> 11) as usize % bound
    }

    pub fn unit(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1u64 << 24) as f32
    }

    /// Close to a standard normal deviate.
    pub fn normal(&mut self) -> f32 {
        (0..12).map(|_| self.unit()).sum::<f32>() - 6.0
    }
}

/// Vectors around centres on the unit sphere, most of their spread in few directions, of lengths between 0.5 and 1.5.
pub struct Clusters {
    pub centres: Vec<Vec<f32>>,
    spread: Vec<f32>,
}

impl Clusters {
    pub fn new(dice: &mut Dice, count: usize, dimension: usize) -> Self {
        let centre = |dice: &mut Dice| {
            let vector: Vec<f32> = (0..dimension).map(|_| dice.normal()).collect();
            let norm = vector.iter().map(|value| value * value).sum::<f32>().sqrt();
            vector.iter().map(|value| value / norm).collect()
        };
        let centres = (0..count).map(|_| centre(dice)).collect();
        let mut spread: Vec<f32> = (0..dimension).map(|at| ((at + 1) as f32).powf(-0.35)).collect();
        let norm = spread.iter().map(|value| value * value).sum::<f32>().sqrt();
        spread.iter_mut().for_each(|value| *value *= 0.5 / norm);
        Self { centres, spread }
    }

    pub fn draw(&self, dice: &mut Dice, cluster: usize) -> Vec<f32> {
        let length = 0.5 + dice.unit();
        let centre = &self.centres[cluster];
        centre.iter().zip(&self.spread).map(|(centre, spread)| (centre + spread * dice.normal()) * length).collect()
    }
}

pub enum Change<'a> {
    Put(u32, &'a [f32]),
    Delete(u32),
    DeleteDocument(u32),
}

/// A frame of vector rows of the index under test; sequences rise from `first_sequence`.
pub fn frame(changes: &[Change<'_>], first_sequence: u64) -> Vec<u8> {
    let mut writer = FrameWriter::new(changes.len(), 0).unwrap();
    for (at, change) in changes.iter().enumerate() {
        let ordinal = match change {
            Change::Put(ordinal, vector) => {
                let values: Vec<u8> = vector.iter().flat_map(|value| value.to_le_bytes()).collect();
                let head = part_head(INDEX_ID, PartForm::Dense);
                writer.push(RowKind::PartPut, 0, ordinal.to_string().as_bytes(), &[&head, &values]);
                *ordinal
            }
            Change::Delete(ordinal) => {
                let head = part_head(INDEX_ID, PartForm::Deleted);
                writer.push(RowKind::PartDelete, 0, ordinal.to_string().as_bytes(), &[&head]);
                *ordinal
            }
            Change::DeleteDocument(ordinal) => {
                writer.push(RowKind::Delete, 0, ordinal.to_string().as_bytes(), &[]);
                *ordinal
            }
        };
        writer.set_position(at, ordinal, first_sequence + at as u64, 0);
    }
    writer.finish()
}

/// A directory that is removed with the value.
pub struct TemporaryDirectory(pub PathBuf);

impl TemporaryDirectory {
    pub fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("sundew-dense-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        Self(std::env::temp_dir().join(name))
    }
}

impl Drop for TemporaryDirectory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// An index beside the plain map that it must answer like.
pub struct Tested {
    pub directory: TemporaryDirectory,
    pub options: DenseOptions,
    pub index: Arc<DenseIndex>,
    pub rows: BTreeMap<u32, Vec<f32>>,
    pub sequence: u64,
}

impl Tested {
    pub fn new(options: DenseOptions) -> Self {
        let directory = TemporaryDirectory::new();
        let index = DenseIndex::open(&directory.0, options.clone()).unwrap();
        Self { directory, options, index, rows: BTreeMap::new(), sequence: 0 }
    }

    pub fn apply(&mut self, changes: &[Change<'_>]) {
        let report = self.index.apply(&frame(changes, self.sequence + 1)).unwrap();
        assert_eq!((report.rows, report.skipped_count), (changes.len(), 0));
        self.sequence += changes.len() as u64;
        for change in changes {
            match change {
                Change::Put(ordinal, vector) => {
                    self.rows.insert(*ordinal, vector.to_vec());
                }
                Change::Delete(ordinal) | Change::DeleteDocument(ordinal) => {
                    self.rows.remove(ordinal);
                }
            }
        }
    }

    pub fn commit(&mut self) {
        let report = self.index.commit(self.sequence).unwrap();
        assert_eq!(report.doc_count, self.rows.len() as u64);
    }

    /// Applies and commits in frames of 500 rows.
    pub fn put_all(&mut self, rows: &[(u32, Vec<f32>)]) {
        for frame in rows.chunks(500) {
            let changes: Vec<Change> = frame.iter().map(|(ordinal, vector)| Change::Put(*ordinal, vector)).collect();
            self.apply(&changes);
            self.commit();
        }
    }

    /// The same, and waits until all graphs are built.
    pub fn load(&mut self, rows: &[(u32, Vec<f32>)]) {
        self.put_all(rows);
        self.index.settle();
    }

    pub fn reopen(&mut self) {
        self.index.close().unwrap();
        self.index = DenseIndex::open(&self.directory.0, self.options.clone()).unwrap();
    }

    pub fn nearest(&self, query: &[f32], limit: usize, allowed: Option<&BitSet>) -> Vec<(u32, f64)> {
        nearest(self.options.metric, self.rows.iter(), query, limit, allowed)
    }

    /// Share of the true nearest that the index finds, over all queries; at least as many hits as there are.
    pub fn recall(&self, queries: &[Vec<f32>], limit: usize, effort: f32, allowed: Option<&BitSet>) -> f64 {
        let (mut found, mut wanted) = (0, 0);
        for query in queries {
            let truth = self.nearest(query, limit, allowed);
            let hits = search_with(&self.index, query, limit, effort, allowed).hits;
            assert!(hits.len() >= truth.len(), "{} hits of {}", hits.len(), truth.len());
            assert!(hits.iter().all(|hit| self.rows.contains_key(&hit.ordinal)), "a dead row was found");
            assert!(hits.iter().all(|hit| allowed.is_none_or(|allowed| allowed.contains(hit.ordinal))));
            assert!(hits.windows(2).all(|pair| pair[0].score >= pair[1].score), "hits are out of order");
            let worst = truth.last().map_or(f64::MAX, |&(_, cost)| cost + 1e-5);
            found += hits.iter().take(limit).filter(|hit| self.cost_of(query, hit.ordinal) <= worst).count();
            wanted += truth.len();
        }
        found as f64 / wanted.max(1) as f64
    }

    fn cost_of(&self, query: &[f32], ordinal: u32) -> f64 {
        cost(self.options.metric, query, &self.rows[&ordinal])
    }
}

/// Smaller is nearer.
pub fn cost(metric: Metric, a: &[f32], b: &[f32]) -> f64 {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>();
    match metric {
        Metric::L2Squared => a.iter().zip(b).map(|(a, b)| (f64::from(*a) - f64::from(*b)).powi(2)).sum(),
        Metric::Cosine => 1.0 - dot(a, b) / (dot(a, a) * dot(b, b)).sqrt(),
        Metric::InnerProduct => -dot(a, b),
    }
}

pub fn nearest<'a>(
    metric: Metric,
    rows: impl Iterator<Item = (&'a u32, &'a Vec<f32>)>,
    query: &[f32],
    limit: usize,
    allowed: Option<&BitSet>,
) -> Vec<(u32, f64)> {
    let mut found: Vec<(u32, f64)> = rows
        .filter(|(ordinal, _)| allowed.is_none_or(|allowed| allowed.contains(**ordinal)))
        .map(|(ordinal, vector)| (*ordinal, cost(metric, query, vector)))
        .collect();
    found.sort_unstable_by(|a, b| a.1.total_cmp(&b.1).then(a.0.cmp(&b.0)));
    found.truncate(limit);
    found
}

pub fn search(index: &DenseIndex, query: &[f32], limit: usize, allowed: Option<&BitSet>) -> VectorHits {
    search_with(index, query, limit, 0.5, allowed)
}

pub fn search_with(
    index: &DenseIndex,
    query: &[f32],
    limit: usize,
    effort: f32,
    allowed: Option<&BitSet>,
) -> VectorHits {
    let bounds = SearchBounds { limit, allowed, is_due: &|| false };
    index.search(query, effort, DistanceBounds::default(), &bounds).unwrap()
}
