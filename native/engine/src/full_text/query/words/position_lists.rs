//! Where a word stands in the documents of a segment, read along with the blocks of its postings.
//!
//! The positions of a word are numbered through all its documents. How many there are before a block is in its skip data.

use tantivy::DocId;
use tantivy::positions::PositionReader;
use tantivy::postings::{BlockSegmentPostings, TermInfo};

use crate::error::EngineError;
use crate::full_text::errors::io_failed;
use crate::full_text::field_files::FieldFiles;
use crate::full_text::query::words::skip_data::{BLOCK_DOCS, SkipData};

/// Positions that are packed together: what is decoded at once.
const PACKED: u64 = 128;

/// The positions of one word. Blocks and documents are asked for in ascending order.
pub struct PositionLists {
    reader: PositionReader,
    skips: SkipData,
    /// Of the blocks before this one all positions are counted.
    block: usize,
    before: u64,
    /// The first document of the block that `starts` is of.
    first_doc: Option<DocId>,
    /// Positions of the block before each of its documents, and at the end all of them.
    starts: [u32; BLOCK_DOCS + 1],
    /// Decoded ones, of which the first has the number `decoded_from`.
    decoded: Vec<u32>,
    decoded_from: u64,
}

impl PositionLists {
    /// `info` is of a word of the field.
    ///
    /// Errors: `index_damaged` where the skip data are shorter than the blocks ask for.
    pub fn open(files: &FieldFiles, info: &TermInfo) -> Result<Self, EngineError> {
        let failed = io_failed("read the positions of a word");
        let positions = files.positions.read_bytes_slice(info.positions_range.clone()).map_err(&failed)?;
        Ok(Self {
            reader: PositionReader::open(positions).map_err(&failed)?,
            skips: SkipData::open(files, info)?,
            block: 0,
            before: 0,
            first_doc: None,
            starts: [0; BLOCK_DOCS + 1],
            decoded: Vec::new(),
            decoded_from: 0,
        })
    }

    /// The positions in the document at `at` of the current block of `blocks`, which are of the same word: the first one,
    /// then how much further each of the others is.
    pub fn gaps(&mut self, blocks: &mut BlockSegmentPostings, at: usize) -> &[u32] {
        let first_doc = blocks.doc(0);
        if self.first_doc != Some(first_doc) {
            self.enter(blocks, first_doc);
        }
        let from = self.before + u64::from(self.starts[at]);
        let to = self.before + u64::from(self.starts[at + 1]);
        if from < self.decoded_from || to > self.decoded_from + self.decoded.len() as u64 {
            // What is decoded with them anyway is kept for the next document.
            let of_block = self.before + u64::from(self.starts[blocks.block_len()]);
            let end = to.next_multiple_of(PACKED).min(of_block);
            self.decoded.resize((end - from) as usize, 0);
            self.decoded_from = from;
            self.reader.read(from, &mut self.decoded);
        }
        let within = |number: u64| (number - self.decoded_from) as usize;
        &self.decoded[within(from)..within(to)]
    }

    fn enter(&mut self, blocks: &mut BlockSegmentPostings, first_doc: DocId) {
        let block = blocks.rank(first_doc) as usize / BLOCK_DOCS;
        for skipped in self.block..block {
            self.before += u64::from(self.skips.sum_of_frequencies(skipped));
        }
        self.block = block;
        self.first_doc = Some(first_doc);
        let mut sum = 0;
        for (start, frequency) in self.starts[1..].iter_mut().zip(blocks.freqs()) {
            sum += frequency;
            *start = sum;
        }
    }
}
