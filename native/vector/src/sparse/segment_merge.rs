//! Makes one segment of several, without their dead documents.

use sundew_base::error::EngineError;

use super::segment::{Sections, Segment, WINDOW_DOCUMENTS};
use super::segment_build::SegmentBuild;
use super::snapshot::LiveSegment;

/// The new number of a dead document.
const GONE: u32 = u32::MAX;

struct Source<'a> {
    sections: Sections<'a>,
    /// The new number of each document, or `GONE`.
    new_locals: Vec<u32>,
    next_term: usize,
}

/// The segment of all live documents of `segments`.
pub fn merge_segments(id: u64, segments: &[LiveSegment]) -> Result<Segment, EngineError> {
    let mut documents: Vec<(u32, u32, u32)> = Vec::new();
    for (at, live) in segments.iter().enumerate() {
        let ordinals = live.segment.sections().ordinals.iter().enumerate();
        let alive = ordinals.filter(|(local, _)| !live.dead.contains(*local as u32));
        documents.extend(alive.map(|(local, &ordinal)| (ordinal, at as u32, local as u32)));
    }
    // Mostly ascending runs, which this sort takes as they are.
    documents.sort();
    let mut sources: Vec<Source> = segments
        .iter()
        .map(|live| Source {
            sections: live.segment.sections(),
            new_locals: vec![GONE; live.segment.document_count()],
            next_term: 0,
        })
        .collect();
    let mut sequences = Vec::with_capacity(documents.len());
    for (new_local, &(_, at, local)) in documents.iter().enumerate() {
        let source = &mut sources[at as usize];
        source.new_locals[local as usize] = new_local as u32;
        sequences.push(source.sections.sequences[local as usize]);
    }
    let ordinals: Vec<u32> = documents.iter().map(|(ordinal, _, _)| *ordinal).collect();
    let count = segments.iter().map(|live| live.segment.posting_count()).sum();
    merge_terms(&mut sources, count).finish(id, &ordinals, &sequences)
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
            let base = self.sections.block_windows[block] as usize * WINDOW_DOCUMENTS;
            let (offsets, weights) = self.sections.block(block);
            for (&offset, &weight) in offsets.iter().zip(weights) {
                // A damaged offset finds no document.
                let new_local = self.new_locals.get(base + offset as usize).copied().unwrap_or(GONE);
                if new_local != GONE {
                    postings.push((new_local, weight));
                }
            }
        }
        self.next_term += 1;
    }
}
