//! The parameters of a search of a vector index and its answer; the same for dense and sparse.

use sundew_base::bit_set::BitSet;

/// The bounds of every search.
#[derive(Clone, Copy)]
pub struct SearchBounds<'a> {
    /// Documents wanted.
    pub limit: usize,
    /// Documents that may be found; `None` for all.
    pub allowed: Option<&'a BitSet>,
    /// Asked every few thousand steps; true ends the search with what was found, marked as partial.
    pub is_due: &'a (dyn Fn() -> bool + Sync),
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct VectorHit {
    pub ordinal: u32,
    /// Which of the document's vectors it is, from 0.
    pub number: u16,
    /// Sequence of the vector, not of its document.
    pub sequence: u64,
    /// Dense: the raw distance (squared Euclidean; 1 - cosine; the negative dot product), smaller is
    /// nearer. Sparse: the dot product.
    pub distance: f32,
    /// Higher is better: 1 / (1 + d) for `l2_squared`, 1 - d for `cosine`, the dot product otherwise.
    pub score: f32,
}

/// How a search went, for `profile`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SearchReport {
    /// Ways that were taken, each once, such as `scan`, `graph`, `filtered_graph`, `exact_fallback`, `block_max`.
    pub arms: Vec<&'static str>,
    /// Vectors whose exact score was computed.
    pub candidates: u64,
    /// Vectors or postings that were looked at.
    pub visited: u64,
    pub segments: usize,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct VectorHits {
    /// Best first, each document once, by the nearest of its vectors; equal scores by ordinal. Sparse and exact
    /// searches also answer what ties with the last hit, so that the caller can break ties by key.
    pub hits: Vec<VectorHit>,
    /// The time was over before everything was looked at.
    pub is_partial: bool,
    pub report: SearchReport,
}
