//! An immutable segment: vectors in ascending order of their documents' ordinals, those of one document side by side, and
//! for each dimension its postings.
//!
//! The vectors are cut into windows of `WINDOW_VECTORS`. The postings of one dimension in one window are a block.
//! All sections follow the header in this order, each padded to a multiple of eight bytes:
//!
//! ```text
//! header        u64 x 6  magic, vectors, documents, terms, blocks, postings
//! ordinals      u32      of each vector's document, ascending
//! numbers       u16      which of its document's vectors each is, ascending within a document
//! sequences     u64      of each vector
//! terms         u32      dimensions in use, ascending
//! term blocks   u32      first block of each term, and the end
//! term max      f32      largest weight of each term
//! term min      f32      smallest weight of each term
//! block windows u16      ascending within a term
//! block starts  u32      first posting of each block, and the end
//! block max     f32      largest weight of each block
//! block min     f32      smallest weight of each block
//! offsets       u16      of each posting's vector in its window, ascending within a block
//! weights       f32      of each posting
//! ```

use std::ops::Range;

use sundew_base::error::EngineError;

use sundew_base::error::damaged;
use sundew_base::plain_bytes::{PlainBytes, PlainNumber};

/// A window's accumulators are 16 KiB: they stay in the first-level cache.
pub const WINDOW_BITS: u32 = 12;
pub const WINDOW_VECTORS: usize = 1 << WINDOW_BITS;
/// A segment holds fewer vectors and postings than these, so that windows fit 16 bits and postings 32.
pub const VECTORS_MAX: usize = 1 << (WINDOW_BITS + 16);
pub const POSTINGS_MAX: usize = u32::MAX as usize;

/// How far from its expected position a posting is sought before the whole block is.
const NEAR_POSTINGS: usize = 32;

const MAGIC: u64 = u64::from_le_bytes(*b"SDSPARS2");
const HEADER_NUMBERS: usize = 6;

pub struct Segment {
    /// Names its files; never used again within an index.
    pub id: u64,
    bytes: PlainBytes,
    spans: SectionSpans,
    documents: usize,
}

/// Where each section begins, and its count of numbers.
#[derive(Clone, Copy)]
struct SectionSpans {
    ordinals: (usize, usize),
    numbers: (usize, usize),
    sequences: (usize, usize),
    terms: (usize, usize),
    term_blocks: (usize, usize),
    term_max: (usize, usize),
    term_min: (usize, usize),
    block_windows: (usize, usize),
    block_starts: (usize, usize),
    block_max: (usize, usize),
    block_min: (usize, usize),
    offsets: (usize, usize),
    weights: (usize, usize),
}

/// The numbers of a segment.
#[derive(Clone, Copy)]
pub struct Sections<'a> {
    pub ordinals: &'a [u32],
    pub numbers: &'a [u16],
    pub sequences: &'a [u64],
    pub terms: &'a [u32],
    pub term_blocks: &'a [u32],
    pub term_max: &'a [f32],
    pub term_min: &'a [f32],
    pub block_windows: &'a [u16],
    pub block_starts: &'a [u32],
    pub block_max: &'a [f32],
    pub block_min: &'a [f32],
    pub offsets: &'a [u16],
    pub weights: &'a [f32],
}

impl Segment {
    /// Checks what a reader relies on, but for offsets and weights. Error: `index_damaged`.
    pub fn open(id: u64, bytes: PlainBytes) -> Result<Self, EngineError> {
        let broken = |what: &str| damaged(format!("segment {id}: {what}"));
        let header = bytes.numbers::<u64>(0, HEADER_NUMBERS).ok_or_else(|| broken("it has no header"))?;
        let [magic, vectors, documents, terms, blocks, postings] = [0, 1, 2, 3, 4, 5].map(|at| header[at]);
        let fits = documents <= vectors && vectors < VECTORS_MAX as u64 && postings < POSTINGS_MAX as u64;
        if magic != MAGIC || !fits || terms > postings || blocks > postings {
            return Err(broken("its header makes no sense"));
        }
        let spans = SectionSpans::new([vectors, terms, blocks, postings].map(|count| count as usize));
        let segment = Self { id, bytes, spans, documents: documents as usize };
        let sections = segment.read_sections().ok_or_else(|| broken("it is too short"))?;
        let covers = |starts: &[u32], end: usize| {
            starts.is_sorted() && starts.first() == Some(&0) && starts.last().is_some_and(|&last| last as usize == end)
        };
        if !covers(sections.term_blocks, blocks as usize) || !covers(sections.block_starts, postings as usize) {
            return Err(broken("its lists do not add up"));
        }
        let windows = sections.ordinals.len().div_ceil(WINDOW_VECTORS);
        if sections.block_windows.iter().any(|&window| window as usize >= windows) {
            return Err(broken("a block lies outside"));
        }
        Ok(segment)
    }

    pub fn bytes(&self) -> &[u8] {
        self.bytes.bytes()
    }

    pub fn is_in_memory(&self) -> bool {
        self.bytes.is_in_memory()
    }

    pub fn vector_count(&self) -> usize {
        self.spans.ordinals.1
    }

    pub fn document_count(&self) -> usize {
        self.documents
    }

    pub fn posting_count(&self) -> usize {
        self.spans.weights.1
    }

    /// The positions of the document's vectors in this segment; empty when it has none.
    pub fn locals_of(&self, ordinal: u32) -> Range<usize> {
        let sections = self.sections();
        match (sections.ordinals.first(), sections.ordinals.last()) {
            (Some(&first), Some(&last)) if ordinal >= first && ordinal <= last => sections.locals_of(ordinal),
            _ => 0..0,
        }
    }

    pub fn sections(&self) -> Sections<'_> {
        self.read_sections().expect("the lengths were checked when the segment was opened")
    }

    fn read_sections(&self) -> Option<Sections<'_>> {
        fn numbers<T: PlainNumber>(bytes: &PlainBytes, (offset, count): (usize, usize)) -> Option<&[T]> {
            bytes.numbers(offset, count)
        }
        let (bytes, spans) = (&self.bytes, &self.spans);
        Some(Sections {
            ordinals: numbers(bytes, spans.ordinals)?,
            numbers: numbers(bytes, spans.numbers)?,
            sequences: numbers(bytes, spans.sequences)?,
            terms: numbers(bytes, spans.terms)?,
            term_blocks: numbers(bytes, spans.term_blocks)?,
            term_max: numbers(bytes, spans.term_max)?,
            term_min: numbers(bytes, spans.term_min)?,
            block_windows: numbers(bytes, spans.block_windows)?,
            block_starts: numbers(bytes, spans.block_starts)?,
            block_max: numbers(bytes, spans.block_max)?,
            block_min: numbers(bytes, spans.block_min)?,
            offsets: numbers(bytes, spans.offsets)?,
            weights: numbers(bytes, spans.weights)?,
        })
    }
}

impl SectionSpans {
    fn new([vectors, terms, blocks, postings]: [usize; 4]) -> Self {
        let mut end = HEADER_NUMBERS * 8;
        let mut section = |count: usize, size: usize| {
            let start = end;
            end += (count * size).next_multiple_of(8);
            (start, count)
        };
        Self {
            ordinals: section(vectors, 4),
            numbers: section(vectors, 2),
            sequences: section(vectors, 8),
            terms: section(terms, 4),
            term_blocks: section(terms + 1, 4),
            term_max: section(terms, 4),
            term_min: section(terms, 4),
            block_windows: section(blocks, 2),
            block_starts: section(blocks + 1, 4),
            block_max: section(blocks, 4),
            block_min: section(blocks, 4),
            offsets: section(postings, 2),
            weights: section(postings, 4),
        }
    }
}

/// The first section of a segment's bytes.
pub fn header(counts: [usize; HEADER_NUMBERS - 1]) -> [u64; HEADER_NUMBERS] {
    let [vectors, documents, terms, blocks, postings] = counts.map(|count| count as u64);
    [MAGIC, vectors, documents, terms, blocks, postings]
}

impl<'a> Sections<'a> {
    /// The positions of the document's vectors.
    pub fn locals_of(&self, ordinal: u32) -> Range<usize> {
        let Ok(found) = self.ordinals.binary_search(&ordinal) else { return 0..0 };
        let before = self.ordinals[..found].iter().rev().take_while(|&&one| one == ordinal).count();
        let behind = self.ordinals[found..].iter().take_while(|&&one| one == ordinal).count();
        found - before..found + behind
    }

    /// The blocks of the dimension at a position of `terms`.
    pub fn blocks_of_term_at(&self, at: usize) -> Range<usize> {
        self.term_blocks[at] as usize..self.term_blocks[at + 1] as usize
    }

    /// Offsets and weights of a block.
    pub fn block(&self, block: usize) -> (&'a [u16], &'a [f32]) {
        let postings = self.block_starts[block] as usize..self.block_starts[block + 1] as usize;
        (&self.offsets[postings.clone()], &self.weights[postings])
    }

    /// The weight of the vector at `offset` of the block's window.
    pub fn weight_in(&self, block: usize, offset: u16) -> Option<f32> {
        let (offsets, weights) = self.block(block);
        // Vectors of a frequent dimension lie evenly: try near where the offset should be.
        let expected = (offset as usize * offsets.len()) >> WINDOW_BITS;
        let near = expected.saturating_sub(NEAR_POSTINGS)..(expected + NEAR_POSTINGS).min(offsets.len());
        let is_near = |near: &[u16]| near.first() <= Some(&offset) && near.last() >= Some(&offset);
        let near = if is_near(&offsets[near.clone()]) { near } else { 0..offsets.len() };
        let found = offsets[near.clone()].binary_search(&offset).ok()?;
        Some(weights[near.start + found])
    }
}
