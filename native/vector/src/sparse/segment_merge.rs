//! Makes one segment of several, without the vectors of dead documents.

use sundew_base::error::EngineError;

use super::segment::{Sections, Segment, WINDOW_VECTORS};
use super::segment_build::{SegmentBuild, SegmentRows};
use super::snapshot::LiveSegment;

/// The new position of a dead vector.
const GONE: u32 = u32::MAX;

struct Source<'a> {
    sections: Sections<'a>,
    /// The new position of each vector, or `GONE`.
    new_locals: Vec<u32>,
    next_term: usize,
}

/// The segment of all live vectors of `segments`.
pub fn merge_segments(id: u64, segments: &[LiveSegment]) -> Result<Segment, EngineError> {
    // Ordinals, segments and positions there: the vectors of a document, which lie in one segment, keep their order.
    let mut vectors: Vec<(u32, u32, u32)> = Vec::new();
    for (at, live) in segments.iter().enumerate() {
        let ordinals = live.segment.sections().ordinals.iter().enumerate();
        let alive = ordinals.filter(|(local, _)| !live.dead.contains(*local as u32));
        vectors.extend(alive.map(|(local, &ordinal)| (ordinal, at as u32, local as u32)));
    }
    // Mostly ascending runs, which this sort takes as they are.
    vectors.sort();
    let mut sources: Vec<Source> = segments
        .iter()
        .map(|live| Source {
            sections: live.segment.sections(),
            new_locals: vec![GONE; live.segment.vector_count()],
            next_term: 0,
        })
        .collect();
    let mut rows = SegmentRows::default();
    for (new_local, &(ordinal, at, local)) in vectors.iter().enumerate() {
        let source = &mut sources[at as usize];
        source.new_locals[local as usize] = new_local as u32;
        rows.ordinals.push(ordinal);
        rows.numbers.push(source.sections.numbers[local as usize]);
        rows.sequences.push(source.sections.sequences[local as usize]);
    }
    let count = segments.iter().map(|live| live.segment.posting_count()).sum();
    merge_terms(&mut sources, count).finish(id, &rows)
}

fn merge_terms(sources: &mut [Source], posting_count: usize) -> SegmentBuild {
    let mut build = SegmentBuild::with_postings(posting_count);
    let mut postings: Vec<(u32, f32)> = Vec::new();
    let next_of = |source: &Source| source.sections.terms.get(source.next_term).copied();
    while let Some(term) = sources.iter().filter_map(next_of).min() {
        postings.clear();
        for source in sources.iter_mut() {
            if next_of(source) == Some(term) {
                source.take_postings(&mut postings);
            }
        }
        if !postings.is_sorted_by_key(|posting| posting.0) {
            postings.sort_unstable_by_key(|posting| posting.0);
        }
        if !postings.is_empty() {
            build.push_term(term, &postings);
        }
    }
    build
}

impl Source<'_> {
    /// Appends the postings of the next term.
    fn take_postings(&mut self, postings: &mut Vec<(u32, f32)>) {
        for block in self.sections.blocks_of_term_at(self.next_term) {
            let base = self.sections.block_windows[block] as usize * WINDOW_VECTORS;
            let (offsets, weights) = self.sections.block(block);
            for (&offset, &weight) in offsets.iter().zip(weights) {
                // A damaged offset finds no vector.
                let new_local = self.new_locals.get(base + offset as usize).copied().unwrap_or(GONE);
                if new_local != GONE {
                    postings.push((new_local, weight));
                }
            }
        }
        self.next_term += 1;
    }
}
