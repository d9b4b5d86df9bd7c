//! Writes a segment, one dimension after another.

use sundew_base::error::EngineError;

use super::segment::{POSTINGS_MAX, Segment, VECTORS_MAX, WINDOW_BITS, WINDOW_VECTORS, header};
use sundew_base::plain_bytes::{PlainBytes, bytes_of};

/// A vector that is in no segment yet.
#[derive(Debug, Clone)]
pub struct PendingVector {
    pub sequence: u64,
    /// Which of its document's vectors it is, from 0.
    pub number: u16,
    /// Ascending dimensions; no weight is zero.
    pub entries: Box<[(u32, f32)]>,
}

/// The facts of a segment about each of its vectors beside the postings.
#[derive(Default)]
pub struct SegmentRows {
    pub ordinals: Vec<u32>,
    pub numbers: Vec<u16>,
    pub sequences: Vec<u64>,
}

#[derive(Default)]
pub struct SegmentBuild {
    terms: Vec<u32>,
    term_blocks: Vec<u32>,
    term_max: Vec<f32>,
    term_min: Vec<f32>,
    block_windows: Vec<u16>,
    block_starts: Vec<u32>,
    block_max: Vec<f32>,
    block_min: Vec<f32>,
    offsets: Vec<u16>,
    weights: Vec<f32>,
}

impl SegmentBuild {
    pub fn with_postings(count: usize) -> Self {
        Self { offsets: Vec::with_capacity(count), weights: Vec::with_capacity(count), ..Self::default() }
    }

    /// Terms come in ascending order; `postings` (position of the vector, weight) too, and are not empty.
    pub fn push_term(&mut self, term: u32, postings: &[(u32, f32)]) {
        self.terms.push(term);
        self.term_blocks.push(self.block_windows.len() as u32);
        let (mut term_max, mut term_min) = (f32::NEG_INFINITY, f32::INFINITY);
        for block in postings.chunk_by(|one, next| one.0 >> WINDOW_BITS == next.0 >> WINDOW_BITS) {
            self.block_windows.push((block[0].0 >> WINDOW_BITS) as u16);
            self.block_starts.push(self.offsets.len() as u32);
            let (mut max, mut min) = (f32::NEG_INFINITY, f32::INFINITY);
            for &(local, weight) in block {
                max = max.max(weight);
                min = min.min(weight);
                self.offsets.push((local as usize % WINDOW_VECTORS) as u16);
                self.weights.push(weight);
            }
            self.block_max.push(max);
            self.block_min.push(min);
            term_max = term_max.max(max);
            term_min = term_min.min(min);
        }
        self.term_max.push(term_max);
        self.term_min.push(term_min);
    }

    /// Error: `limit_exceeded` when the segment would be too large.
    pub fn finish(mut self, id: u64, rows: &SegmentRows) -> Result<Segment, EngineError> {
        let SegmentRows { ordinals, numbers, sequences } = rows;
        if ordinals.len() >= VECTORS_MAX || self.weights.len() >= POSTINGS_MAX {
            return Err(EngineError::new("limit_exceeded", "one commit of a sparse index holds too many vectors"));
        }
        self.term_blocks.push(self.block_windows.len() as u32);
        self.block_starts.push(self.offsets.len() as u32);
        let documents = ordinals.chunk_by(|one, next| one == next).count();
        let (blocks, postings) = (self.block_windows.len(), self.weights.len());
        let header = header([ordinals.len(), documents, self.terms.len(), blocks, postings]);
        let bytes = PlainBytes::copied(&[
            bytes_of(&header),
            bytes_of(ordinals),
            bytes_of(numbers),
            bytes_of(sequences),
            bytes_of(&self.terms),
            bytes_of(&self.term_blocks),
            bytes_of(&self.term_max),
            bytes_of(&self.term_min),
            bytes_of(&self.block_windows),
            bytes_of(&self.block_starts),
            bytes_of(&self.block_max),
            bytes_of(&self.block_min),
            bytes_of(&self.offsets),
            bytes_of(&self.weights),
        ]);
        Segment::open(id, bytes)
    }
}

/// A segment of new vectors, given in ascending order of their ordinals and numbers.
pub fn build_segment(id: u64, vectors: &[(u32, PendingVector)]) -> Result<Segment, EngineError> {
    let count = vectors.iter().map(|(_, vector)| vector.entries.len()).sum();
    // Keys are the dimension, then the document.
    let mut postings: Vec<(u64, f32)> = Vec::with_capacity(count);
    for (local, (_, vector)) in vectors.iter().enumerate() {
        postings.extend(vector.entries.iter().map(|&(term, weight)| (u64::from(term) << 32 | local as u64, weight)));
    }
    postings.sort_unstable_by_key(|&(key, _)| key);
    let mut build = SegmentBuild::with_postings(count);
    let mut of_term = Vec::new();
    for postings in postings.chunk_by(|one, next| one.0 >> 32 == next.0 >> 32) {
        of_term.clear();
        of_term.extend(postings.iter().map(|&(key, weight)| (key as u32, weight)));
        build.push_term((postings[0].0 >> 32) as u32, &of_term);
    }
    let rows = SegmentRows {
        ordinals: vectors.iter().map(|(ordinal, _)| *ordinal).collect(),
        numbers: vectors.iter().map(|(_, vector)| vector.number).collect(),
        sequences: vectors.iter().map(|(_, vector)| vector.sequence).collect(),
    };
    build.finish(id, &rows)
}
