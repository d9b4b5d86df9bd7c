//! The state that searches see: segments, and which of their documents have left.

use std::sync::{Arc, OnceLock};

use super::segment::Segment;
use sundew_base::bit_set::BitSet;

#[derive(Clone)]
pub struct LiveSegment {
    pub segment: Arc<Segment>,
    /// Its vectors whose documents were deleted or written again.
    pub dead: Arc<BitSet>,
    dead_documents: usize,
}

impl LiveSegment {
    pub fn new(segment: Segment) -> Self {
        Self { segment: Arc::new(segment), dead: Arc::default(), dead_documents: 0 }
    }

    /// A segment that these vectors have left, which are all those of their documents.
    pub fn without(segment: Segment, dead: BitSet) -> Self {
        let ordinals = segment.sections().ordinals;
        let mut documents: Vec<u32> = dead.iter().filter_map(|local| ordinals.get(local as usize).copied()).collect();
        documents.dedup();
        Self { dead_documents: documents.len(), segment: Arc::new(segment), dead: dead.into() }
    }

    pub fn live_vectors(&self) -> usize {
        self.segment.vector_count().saturating_sub(self.dead.len())
    }

    pub fn live_documents(&self) -> usize {
        self.segment.document_count().saturating_sub(self.dead_documents)
    }

    /// Whether the document was here and alive.
    pub fn kill(&mut self, ordinal: u32) -> bool {
        let locals = self.segment.locals_of(ordinal);
        if locals.is_empty() || self.dead.contains(locals.start as u32) {
            return false;
        }
        let dead = Arc::make_mut(&mut self.dead);
        for local in locals {
            dead.insert(local as u32);
        }
        self.dead_documents += 1;
        true
    }
}

/// One commit. An ordinal is alive in at most one segment.
#[derive(Default)]
pub struct Snapshot {
    pub sequence: u64,
    pub segments: Vec<LiveSegment>,
    pub skipped_count: u64,
    term_count: OnceLock<u64>,
}

impl Snapshot {
    pub fn new(sequence: u64, segments: Vec<LiveSegment>, skipped_count: u64) -> Self {
        Self { sequence, segments, skipped_count, term_count: OnceLock::new() }
    }

    pub fn live_vectors(&self) -> u64 {
        self.segments.iter().map(|segment| segment.live_vectors() as u64).sum()
    }

    pub fn live_documents(&self) -> u64 {
        self.segments.iter().map(|segment| segment.live_documents() as u64).sum()
    }

    /// Dimensions that some vector has, dead ones of segments that are not merged yet included.
    pub fn term_count(&self) -> u64 {
        *self.term_count.get_or_init(|| {
            let of_segments = self.segments.iter().flat_map(|live| live.segment.sections().terms);
            let mut terms: Vec<u32> = of_segments.copied().collect();
            terms.sort_unstable();
            terms.dedup();
            terms.len() as u64
        })
    }
}
