//! What the postings of a word tell of each full block before it is decoded. Tantivy's public readers do not show it: it is read
//! here as Tantivy 0.27 writes it.

use tantivy::DocId;
use tantivy::directory::OwnedBytes;
use tantivy::postings::TermInfo;

use crate::error::EngineError;
use crate::full_text::errors::{damaged, io_failed};
use crate::full_text::field_files::FieldFiles;

/// Documents of a full block of postings.
pub const BLOCK_DOCS: usize = 128;

/// Of a full block, in a field with positions: its last document, the widths of its documents and frequencies, the sum of its
/// frequencies, and the norm and frequency of its best score.
const BLOCK_BYTES: usize = 4 + 1 + 1 + 4 + 1 + 1;

/// Where in these the sum of the frequencies begins.
const SUM_AT: usize = 6;

/// Where the norm and the frequency of the best score are.
const BEST_AT: usize = 10;

pub struct SkipData {
    bytes: OwnedBytes,
    blocks: usize,
}

impl SkipData {
    /// `info` is of a word of the field.
    ///
    /// Errors: `index_damaged` where there are less than the blocks ask for.
    pub fn open(files: &FieldFiles, info: &TermInfo) -> Result<Self, EngineError> {
        if (info.doc_freq as usize) < BLOCK_DOCS {
            return Ok(Self { bytes: OwnedBytes::empty(), blocks: 0 });
        }
        let failed = io_failed("read the postings of a word");
        let postings = files.postings.read_bytes_slice(info.postings_range.clone()).map_err(failed)?;
        Self::of(postings, info.doc_freq as usize / BLOCK_DOCS)
    }

    /// The skip data lie before the postings, after their length.
    fn of(postings: OwnedBytes, blocks: usize) -> Result<Self, EngineError> {
        let too_short = || damaged("the postings of a word are shorter than their blocks".to_owned());
        let (length, bytes) = length_of(&postings).ok_or_else(too_short)?;
        let end = bytes.checked_add(length).filter(|end| *end <= postings.len()).ok_or_else(too_short)?;
        if length < blocks * BLOCK_BYTES {
            return Err(too_short());
        }
        Ok(Self { bytes: postings.slice(bytes..end), blocks })
    }

    /// Full ones.
    pub fn blocks(&self) -> usize {
        self.blocks
    }

    fn number_at(&self, at: usize) -> u32 {
        self.bytes[at..].first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes))
    }

    pub fn last_doc(&self, block: usize) -> DocId {
        self.number_at(block * BLOCK_BYTES)
    }

    /// The first full block from `from` on whose last document is not before `doc`; the number of blocks where there is none.
    pub fn block_from(&self, doc: DocId, from: usize) -> usize {
        let (mut low, mut high, mut step) = (from, from, 1);
        while high < self.blocks && self.last_doc(high) < doc {
            (low, high, step) = (high + 1, high + step, step * 2);
        }
        high = high.min(self.blocks);
        while low < high {
            let middle = low.midpoint(high);
            if self.last_doc(middle) < doc { low = middle + 1 } else { high = middle }
        }
        low
    }

    pub fn sum_of_frequencies(&self, block: usize) -> u32 {
        self.number_at(block * BLOCK_BYTES + SUM_AT)
    }

    /// The norm and frequency of the document that scored most when the segment was written; frequencies that a byte
    /// does not hold are the greatest there are. Of a field without norms both are 0, and tell nothing.
    pub fn best(&self, block: usize) -> (u8, u32) {
        let (norm, frequency) = self.best_at_least(block);
        (norm, if frequency == u32::from(u8::MAX) { u32::MAX } else { frequency })
    }

    /// The same, where the document has the word at least so often.
    pub fn best_at_least(&self, block: usize) -> (u8, u32) {
        let at = block * BLOCK_BYTES + BEST_AT;
        (self.bytes[at], u32::from(self.bytes[at + 1]))
    }
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
    fn a_frequency_that_a_byte_does_not_hold_is_bounded_on_both_sides() {
        let mut bytes = vec![0x80 | BLOCK_BYTES as u8];
        bytes.resize(1 + BLOCK_BYTES, 9);
        for (stored, most) in [(254, 254), (u8::MAX, u32::MAX)] {
            bytes[BEST_AT + 2] = stored;
            let skips = SkipData::of(OwnedBytes::new(bytes.clone()), 1).expect("skip data");
            assert_eq!((skips.best(0), skips.best_at_least(0)), ((9, most), (9, u32::from(stored))));
        }
    }

    #[test]
    fn the_block_of_a_document_is_found_from_any_block_before_it() {
        let lasts = [4, 9, 10, 80, 90, 300, 301, 302, 1_000];
        let mut bytes = vec![0x80 | (lasts.len() * BLOCK_BYTES) as u8];
        for last in lasts {
            bytes.extend(u32::to_le_bytes(last));
            bytes.extend([0; BLOCK_BYTES - 4]);
        }
        let skips = SkipData::of(OwnedBytes::new(bytes), lasts.len()).expect("skip data");
        for doc in 0..=1_001 {
            let block = lasts.iter().position(|last| *last >= doc).unwrap_or(lasts.len());
            assert!((0..=block).all(|from| skips.block_from(doc, from) == block), "{doc}");
        }
    }

    #[test]
    fn skip_data_shorter_than_the_blocks_are_damage() {
        let bytes = |length: usize| {
            let mut bytes = vec![(length & 0x7f) as u8, (length >> 7) as u8 | 0x80];
            bytes.resize(2 + length, 7);
            OwnedBytes::new(bytes)
        };
        let length = |bytes, blocks| SkipData::of(bytes, blocks).map(|skips| skips.bytes.len());
        assert_eq!(length(bytes(20 * BLOCK_BYTES), 20).expect("skip data"), 20 * BLOCK_BYTES);
        assert!(length(bytes(20 * BLOCK_BYTES - 1), 20).is_err());
        assert!(length(bytes(240).slice(0..100), 20).is_err());
        assert!(length(OwnedBytes::new(vec![1, 2]), 1).is_err());
    }
}
