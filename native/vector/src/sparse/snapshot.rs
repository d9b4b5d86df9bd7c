//! What searches see: segments, and which of their documents have left.

use std::sync::{Arc, OnceLock};

use super::segment::Segment;
use sundew_base::bit_set::BitSet;

#[derive(Clone)]
pub struct LiveSegment {
    pub segment: Arc<Segment>,
    /// Its documents that were deleted or written again.
    pub dead: Arc<BitSet>,
}

impl LiveSegment {
    pub fn new(segment: Segment) -> Self {
        Self { segment: Arc::new(segment), dead: Arc::default() }
    }

    pub fn live_count(&self) -> usize {
        self.segment.document_count().saturating_sub(self.dead.len())
    }

    /// Whether the document was here and alive.
    pub fn kill(&mut self, ordinal: u32) -> bool {
        match self.segment.local_of(ordinal) {
            Some(local) if !self.dead.contains(local as u32) => {
                Arc::make_mut(&mut self.dead).insert(local as u32);
                true
            }
            _ => false,
        }
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

    pub fn live_count(&self) -> u64 {
        self.segments.iter().map(|segment| segment.live_count() as u64).sum()
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
