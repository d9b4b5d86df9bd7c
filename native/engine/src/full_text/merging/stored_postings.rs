//! The postings of a field of a segment, read term by term. Short lists are decoded here, since Tantivy's readers are made
//! to be opened for a few terms: numbers of seven bits a byte, the last one with the eighth bit, documents as steps, then
//! frequencies, and positions in a list of their own, as Tantivy 0.27 writes them.

use std::io;
use std::sync::Arc;

use tantivy::directory::OwnedBytes;
use tantivy::positions::PositionReader;
use tantivy::postings::TermInfo;
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{DocId, InvertedIndexReader};

use super::source_segment::SourceSegment;

/// Documents of a full block, and positions that are packed together.
const PACKED: usize = 128;

/// Bytes before the postings of a field: the number of its tokens.
const TOKEN_COUNT_BYTES: usize = 8;

/// Some documents of a term.
#[derive(Default)]
pub struct Block {
    pub documents: Vec<DocId>,
    /// Empty for terms without frequencies.
    pub frequencies: Vec<u32>,
    /// For each document the first position, then how much further each of the others is.
    pub steps: Vec<u32>,
}

pub struct StoredPostings {
    pub inverted: Arc<InvertedIndexReader>,
    postings: OwnedBytes,
    /// None for a field without frequencies.
    positions: Option<OwnedBytes>,
    /// Of the segment.
    documents: DocId,
}

impl StoredPostings {
    /// None where the segment has no term of the field.
    pub fn open(source: &SourceSegment, field: Field, has_positions: bool) -> tantivy::Result<Option<Self>> {
        let inverted = source.reader.inverted_index(field)?;
        if inverted.terms().num_terms() == 0 {
            return Ok(None);
        }
        let Some(postings) = source.postings.open_read(field) else { return Ok(None) };
        let positions = if has_positions { source.positions.open_read(field) } else { None };
        Ok(Some(Self {
            inverted,
            postings: postings.slice_from(TOKEN_COUNT_BYTES).read_bytes()?,
            positions: positions.map(|file| file.read_bytes()).transpose()?,
            documents: source.reader.max_doc(),
        }))
    }

    /// Shows all postings of a term, a block at a time; `block` is room that is used again. Damage that would make a file of
    /// another meaning is an error.
    pub fn read(&self, info: &TermInfo, block: &mut Block, mut visit: impl FnMut(&Block)) -> io::Result<()> {
        if (info.doc_freq as usize) < PACKED {
            self.read_few(info, block)?;
            self.check(block)?;
            visit(block);
            return Ok(());
        }
        let option = match &self.positions {
            Some(_) => IndexRecordOption::WithFreqsAndPositions,
            None => IndexRecordOption::Basic,
        };
        let mut blocks = self.inverted.read_block_postings_from_terminfo(info, option)?;
        let mut positions = self.positions_of(info).map(PositionReader::open).transpose()?;
        let mut before = 0;
        while !blocks.docs().is_empty() {
            block.clear();
            block.documents.extend_from_slice(blocks.docs());
            if let Some(positions) = &mut positions {
                block.frequencies.extend_from_slice(blocks.freqs());
                let count = position_count(block, info)?;
                block.steps.resize(count, 0);
                positions.read(before, &mut block.steps);
                before += count as u64;
            }
            self.check(block)?;
            visit(block);
            blocks.advance();
        }
        Ok(())
    }

    fn positions_of(&self, info: &TermInfo) -> Option<OwnedBytes> {
        self.positions.as_ref().map(|positions| positions.slice(info.positions_range.clone()))
    }

    fn check(&self, block: &Block) -> io::Result<()> {
        let is_known = block.documents.last().is_none_or(|last| *last < self.documents);
        if is_known && block.documents.is_sorted() { Ok(()) } else { Err(damaged()) }
    }

    fn read_few(&self, info: &TermInfo, block: &mut Block) -> io::Result<()> {
        block.clear();
        let mut bytes = &self.postings[info.postings_range.clone()];
        let mut document = 0;
        for _ in 0..info.doc_freq {
            document = number(&mut bytes)?.checked_add(document).ok_or_else(damaged)?;
            block.documents.push(document);
        }
        let Some(positions) = &self.positions else { return Ok(()) };
        for _ in 0..info.doc_freq {
            block.frequencies.push(number(&mut bytes)?);
        }
        let count = position_count(block, info)?;
        if count >= PACKED {
            block.steps.resize(count, 0);
            PositionReader::open(positions.slice(info.positions_range.clone()))?.read(0, &mut block.steps);
            return Ok(());
        }
        let mut bytes = &positions[info.positions_range.clone()];
        if number(&mut bytes)? != 0 {
            // Fewer positions than a packed block holds are not packed.
            return Err(damaged());
        }
        for _ in 0..count {
            block.steps.push(number(&mut bytes)?);
        }
        Ok(())
    }
}

impl Block {
    fn clear(&mut self) {
        self.documents.clear();
        self.frequencies.clear();
        self.steps.clear();
    }
}

/// Takes a number from the beginning of `bytes`.
fn number(bytes: &mut &[u8]) -> io::Result<u32> {
    let mut number = 0;
    for (at, byte) in bytes.iter().enumerate().take(5) {
        number |= u32::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 != 0 {
            *bytes = &bytes[at + 1..];
            return Ok(number);
        }
    }
    Err(damaged())
}

/// A byte tells the width of a packed block, which may be nothing but that.
fn position_count(block: &Block, info: &TermInfo) -> io::Result<usize> {
    let count = block.frequencies.iter().map(|frequency| *frequency as usize).sum();
    if count > info.positions_range.len() * PACKED { Err(damaged()) } else { Ok(count) }
}

fn damaged() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the postings of a term cannot be read")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_that_end_early_or_claim_more_than_they_can_hold_are_damage() {
        let mut bytes = &[0x05, 0x81, 0x83, 0x7f][..];
        assert_eq!(
            (number(&mut bytes).ok(), number(&mut bytes).ok(), number(&mut bytes).ok()),
            (Some(133), Some(3), None)
        );
        let info = |bytes: usize| TermInfo { doc_freq: 2, postings_range: 0..9, positions_range: 7..7 + bytes };
        let block = Block { frequencies: vec![200, 56], ..Block::default() };
        assert_eq!(position_count(&block, &info(2)).ok(), Some(256));
        assert!(position_count(&block, &info(1)).is_err());
    }
}
