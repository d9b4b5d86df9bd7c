//! The state that searches see: segments, and which of their documents have left.

use std::sync::Arc;

use sundew_base::bit_set::BitSet;

use crate::segment::Segment;

#[derive(Clone)]
pub struct LiveSegment {
    pub segment: Arc<Segment>,
    /// Rows whose document was deleted, or whose edges were written again.
    pub dead: Arc<BitSet>,
    /// Edges of the other rows.
    pub live_edges: usize,
}

impl LiveSegment {
    pub fn new(segment: Segment, dead: BitSet) -> Self {
        let columns = segment.columns();
        let edges = |row: u32| columns.row_edges(row as usize).len();
        let live_edges = segment.counts().edges - dead.iter().map(edges).sum::<usize>();
        Self { segment: Arc::new(segment), dead: Arc::new(dead), live_edges }
    }

    pub fn live_rows(&self) -> usize {
        self.segment.counts().rows.saturating_sub(self.dead.len())
    }

    pub fn is_live(&self, row: usize) -> bool {
        !self.dead.contains(row as u32)
    }

    /// The rows of these documents die, as far as they are here and alive. The ordinals ascend.
    pub fn kill(&mut self, ordinals: impl Iterator<Item = u32>) {
        let columns = self.segment.columns();
        let (Some(first), Some(last)) = (columns.ordinals.first(), columns.ordinals.last()) else { return };
        for ordinal in ordinals.skip_while(|ordinal| ordinal < first).take_while(|ordinal| ordinal <= last) {
            let Some(row) = columns.row_of_ordinal(ordinal) else { continue };
            if !self.dead.contains(row as u32) {
                Arc::make_mut(&mut self.dead).insert(row as u32);
                self.live_edges -= columns.row_edges(row).len();
            }
        }
    }
}

/// One commit. The edges of a document are alive in at most one segment.
#[derive(Default, Clone)]
pub struct Snapshot {
    pub sequence: u64,
    pub segments: Vec<LiveSegment>,
    pub skipped_count: u64,
}

impl Snapshot {
    pub fn live_rows(&self) -> u64 {
        self.segments.iter().map(|live| live.live_rows() as u64).sum()
    }

    pub fn live_edges(&self) -> u64 {
        self.segments.iter().map(|live| live.live_edges as u64).sum()
    }
}
