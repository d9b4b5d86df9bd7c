//! What searches see: segments, and which of their documents have left.

use std::sync::{Arc, OnceLock};

use super::segment::Segment;

/// Documents of one segment that were deleted or written again.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeadRows {
    words: Vec<u64>,
    count: usize,
}

impl DeadRows {
    pub fn from_words(words: Vec<u64>) -> Self {
        let count = words.iter().map(|word| word.count_ones() as usize).sum();
        Self { words, count }
    }

    pub fn words(&self) -> &[u64] {
        &self.words
    }

    pub fn count(&self) -> usize {
        self.count
    }

    pub fn contains(&self, local: usize) -> bool {
        self.words.get(local / 64).is_some_and(|word| word >> (local % 64) & 1 == 1)
    }

    pub fn insert(&mut self, local: usize) {
        if self.words.len() <= local / 64 {
            self.words.resize(local / 64 + 1, 0);
        }
        self.count += usize::from(!self.contains(local));
        self.words[local / 64] |= 1 << (local % 64);
    }
}

#[derive(Clone)]
pub struct LiveSegment {
    pub segment: Arc<Segment>,
    pub dead: Arc<DeadRows>,
}

impl LiveSegment {
    pub fn new(segment: Segment) -> Self {
        Self { segment: Arc::new(segment), dead: Arc::default() }
    }

    pub fn live_count(&self) -> usize {
        self.segment.document_count().saturating_sub(self.dead.count())
    }

    /// Whether the document was here and alive.
    pub fn kill(&mut self, ordinal: u32) -> bool {
        match self.segment.local_of(ordinal) {
            Some(local) if !self.dead.contains(local) => {
                Arc::make_mut(&mut self.dead).insert(local);
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
