//! Where a word stands in the documents of a segment, read along with the blocks of its postings.
//!
//! The positions of a word are numbered through all its documents. How many there are before a block is in its skip data,
//! which Tantivy's public readers do not show: they are read here as Tantivy 0.27 writes them.

use tantivy::DocId;
use tantivy::directory::OwnedBytes;
use tantivy::positions::PositionReader;
use tantivy::postings::{BlockSegmentPostings, TermInfo};

use crate::error::EngineError;
use crate::full_text::errors::{damaged, io_failed};
use crate::full_text::field_files::FieldFiles;
use crate::full_text::query::words::word_walks::BLOCK_DOCS;

/// Positions that are packed together: what is decoded at once.
const PACKED: u64 = 128;

/// Of a full block, in the skip data of a field with positions: its last document, the widths of its documents and
/// frequencies, the sum of its frequencies, and the norm and frequency of its best score.
const SKIP_BYTES: usize = 4 + 1 + 1 + 4 + 1 + 1;

/// Where in these the sum of the frequencies begins.
const SUM_AT: usize = 6;

/// The positions of one word. Blocks and documents are asked for in ascending order.
pub struct PositionLists {
    reader: PositionReader,
    skips: OwnedBytes,
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
        let postings = files.postings.read_bytes_slice(info.postings_range.clone()).map_err(&failed)?;
        let blocks = info.doc_freq as usize / BLOCK_DOCS;
        let skips = if blocks == 0 { OwnedBytes::empty() } else { skip_data(postings, blocks)? };
        Ok(Self {
            reader: PositionReader::open(positions).map_err(&failed)?,
            skips,
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
            let at = skipped * SKIP_BYTES + SUM_AT;
            let sum = self.skips[at..].first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes));
            self.before += u64::from(sum);
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

/// The skip data of that many blocks, which lie before the postings, after their length.
fn skip_data(postings: OwnedBytes, blocks: usize) -> Result<OwnedBytes, EngineError> {
    let too_short = || damaged("the postings of a word are shorter than their blocks".to_owned());
    let (length, bytes) = length_of(&postings).ok_or_else(too_short)?;
    let end = bytes.checked_add(length).filter(|end| *end <= postings.len()).ok_or_else(too_short)?;
    if length < blocks * SKIP_BYTES {
        return Err(too_short());
    }
    Ok(postings.slice(bytes..end))
}

/// A number of seven bits a byte, the least first, and its bytes: the last one has the eighth bit.
fn length_of(bytes: &[u8]) -> Option<(usize, usize)> {
    let mut length = 0;
    for (at, byte) in bytes.iter().enumerate().take(9) {
        length |= usize::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 != 0 {
            return Some((length, at + 1));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skip_data_shorter_than_the_blocks_are_damage() {
        let bytes = |length: usize| {
            let mut bytes = vec![(length & 0x7f) as u8, (length >> 7) as u8 | 0x80];
            bytes.resize(2 + length, 7);
            OwnedBytes::new(bytes)
        };
        assert_eq!(skip_data(bytes(20 * SKIP_BYTES), 20).expect("skip data").len(), 20 * SKIP_BYTES);
        assert!(skip_data(bytes(20 * SKIP_BYTES - 1), 20).is_err());
        assert!(skip_data(bytes(240).slice(0..100), 20).is_err());
        assert!(skip_data(OwnedBytes::new(vec![1, 2]), 1).is_err());
    }
}
