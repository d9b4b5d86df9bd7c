//! A scratch directory, frames of sparse vectors, seeded numbers, and brute force.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use sundew_base::bit_set::BitSet;
use sundew_base::frame::{FrameWriter, RowKind};
use sundew_base::part::{PartForm, part_head};
use sundew_vector::search::{SearchBounds, VectorHits};
use sundew_vector::sparse::{SparseIndex, SparseOptions};

pub const INDEX_ID: u32 = 7;

pub type Entries = Vec<(u32, f32)>;

pub struct Scratch(PathBuf);

impl Scratch {
    pub fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("sundew-sparse-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        let _ = fs::remove_dir_all(&path);
        Self(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

pub fn options() -> SparseOptions {
    SparseOptions { incarnation: "1".to_owned(), ..SparseOptions::named("tags", INDEX_ID) }
}

pub fn open(path: &Path) -> Arc<SparseIndex> {
    SparseIndex::open(path, options()).expect("the index opens")
}

/// One row for the index.
pub enum Change {
    Put(u32, Entries),
    DeleteVector(u32),
    DeleteDocument(u32),
}

pub fn sparse_body(index_id: u32, entries: &[(u32, f32)]) -> Vec<u8> {
    let mut body = part_head(index_id, PartForm::Sparse).to_vec();
    body.extend(entries.iter().flat_map(|(index, _)| index.to_le_bytes()));
    body.extend(entries.iter().flat_map(|(_, weight)| weight.to_le_bytes()));
    body
}

/// The sequences of the rows follow one another from `first_sequence` on.
pub fn frame(changes: &[Change], first_sequence: u64) -> Vec<u8> {
    let rows: Vec<(RowKind, u32, Vec<u8>)> = changes
        .iter()
        .map(|change| match change {
            Change::Put(ordinal, entries) => (RowKind::PartPut, *ordinal, sparse_body(INDEX_ID, entries)),
            Change::DeleteVector(ordinal) => {
                (RowKind::PartDelete, *ordinal, part_head(INDEX_ID, PartForm::Deleted).to_vec())
            }
            Change::DeleteDocument(ordinal) => (RowKind::Delete, *ordinal, Vec::new()),
        })
        .collect();
    raw_frame(&rows, first_sequence)
}

pub fn raw_frame(rows: &[(RowKind, u32, Vec<u8>)], first_sequence: u64) -> Vec<u8> {
    let mut writer = FrameWriter::new(rows.len(), rows.iter().map(|row| row.2.len() + 16).sum()).expect("a frame");
    for (kind, ordinal, body) in rows {
        writer.push(*kind, 0, format!("k{ordinal}").as_bytes(), &[body]);
    }
    for (at, (_, ordinal, _)) in rows.iter().enumerate() {
        writer.set_position(at, *ordinal, first_sequence + at as u64, 0);
    }
    writer.finish()
}

/// xorshift64*, seeded.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// From 0 up to, not including, `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        (self.next() >> 11) % end
    }

    /// From 0 up to, not including, 1.
    pub fn share(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A given number of distinct dimensions, small ones oftener; weights from `lowest` to `lowest + 2`.
    pub fn entries(&mut self, count: usize, dimensions: u32, lowest: f64) -> Entries {
        let mut entries = BTreeMap::new();
        while entries.len() < count {
            let dimension = (self.share().powf(2.2) * f64::from(dimensions)) as u32;
            entries.insert(dimension, (lowest + self.share() * 2.0) as f32);
        }
        entries.into_iter().collect()
    }
}

pub fn search(index: &SparseIndex, query: &[(u32, f32)], limit: usize, allowed: Option<&BitSet>) -> VectorHits {
    let bounds = SearchBounds { limit, allowed, is_due: &|| false };
    index.search(query, &bounds).expect("a search")
}

/// Ordinal, sequence, score.
pub type HitList = Vec<(u32, u64, f32)>;

pub fn found(hits: &VectorHits) -> HitList {
    assert!(!hits.is_partial);
    assert!(hits.hits.iter().all(|hit| hit.distance == hit.score));
    hits.hits.iter().map(|hit| (hit.ordinal, hit.sequence, hit.score)).collect()
}

/// Vectors by ordinal, with their sequences.
pub type Model = BTreeMap<u32, (u64, Entries)>;

pub fn brute_force(model: &Model, query: &[(u32, f32)], limit: usize, allowed: Option<&BitSet>) -> HitList {
    let mut all: HitList = Vec::new();
    for (&ordinal, (sequence, entries)) in model {
        if allowed.is_some_and(|allowed| !allowed.contains(ordinal)) {
            continue;
        }
        let (mut score, mut shares_any) = (0f32, false);
        for &(dimension, weight) in query.iter().filter(|(_, weight)| *weight != 0.0) {
            if let Ok(at) = entries.binary_search_by_key(&dimension, |entry| entry.0)
                && entries[at].1 != 0.0
            {
                score += weight * entries[at].1;
                shares_any = true;
            }
        }
        if shares_any {
            all.push((ordinal, *sequence, score));
        }
    }
    all.sort_by(|one, other| other.2.partial_cmp(&one.2).expect("finite").then(one.0.cmp(&other.0)));
    if let Some(last) = all.get(limit.saturating_sub(1)).map(|hit| hit.2) {
        all.retain(|hit| hit.2 >= last);
    }
    all
}
