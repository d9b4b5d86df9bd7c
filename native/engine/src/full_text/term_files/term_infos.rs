//! Where the postings of each term lie, by the number of the term. Blocks of 256 terms: the first as it is, the others as
//! packed differences from it (`term_info_store.rs` of Tantivy 0.27).

use std::io;

use tantivy::postings::TermInfo;
use tantivy_bitpacker::{BitPacker, compute_num_bits};

const BLOCK_TERMS: usize = 256;

#[derive(Default)]
pub struct TermInfos {
    terms: u64,
    /// Of the block that is not full.
    block: Vec<TermInfo>,
    heads: Vec<u8>,
    packed: Vec<u8>,
}

impl TermInfos {
    pub fn push(&mut self, info: &TermInfo) -> io::Result<()> {
        self.terms += 1;
        self.block.push(info.clone());
        if self.block.len() == BLOCK_TERMS { self.end_block() } else { Ok(()) }
    }

    pub fn finish(mut self) -> io::Result<Vec<u8>> {
        self.end_block()?;
        let mut bytes = (self.heads.len() as u64).to_le_bytes().to_vec();
        bytes.extend(self.terms.to_le_bytes());
        bytes.extend(self.heads);
        bytes.extend(self.packed);
        Ok(bytes)
    }

    fn end_block(&mut self) -> io::Result<()> {
        let Self { block, heads, packed, .. } = self;
        let ([first, others @ ..], Some(last)) = (&block[..], block.last()) else { return Ok(()) };
        let (postings, positions) = (&first.postings_range, &first.positions_range);
        let postings_end = (last.postings_range.end - postings.start) as u64;
        let positions_end = (last.positions_range.end - positions.start) as u64;
        let frequency = others.iter().map(|info| info.doc_freq).max().unwrap_or(0);
        let widths = [u64::from(frequency), postings_end, positions_end].map(compute_num_bits);

        heads.extend((packed.len() as u64).to_le_bytes());
        heads.extend(first.doc_freq.to_le_bytes());
        for range in [postings, positions] {
            heads.extend((range.start as u64).to_le_bytes());
            heads.extend((range.len() as u32).to_le_bytes());
        }
        heads.extend(widths);

        let [frequency_width, postings_width, positions_width] = widths;
        let mut packer = BitPacker::new();
        for info in others {
            let starts = [info.postings_range.start - postings.start, info.positions_range.start - positions.start];
            packer.write(starts[0] as u64, postings_width, packed)?;
            packer.write(starts[1] as u64, positions_width, packed)?;
            packer.write(u64::from(info.doc_freq), frequency_width, packed)?;
        }
        // Each term ends where the next one begins.
        packer.write(postings_end, postings_width, packed)?;
        packer.write(positions_end, positions_width, packed)?;
        packer.flush(packed)?;
        block.clear();
        Ok(())
    }
}
