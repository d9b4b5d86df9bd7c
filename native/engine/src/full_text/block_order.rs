//! Blocks of a segment's documents in the order of a field, so that a page of many matches looks at few of them.

use std::ops::Range;

use tantivy::DocId;

/// A value within one segment: its type's rank, and bits that order as the values of that type do.
pub type SegmentValue = (u8, u64);

pub struct BlockOrder {
    /// In ascending order: those whose first value comes first, and of several that have it in common those of the least key.
    blocks: Vec<OrderedBlock>,
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub struct OrderedBlock {
    /// No document of the block has a value before it.
    pub first: SegmentValue,
    /// No document of the block has a key of a lesser rank.
    pub least_key_rank: u64,
    start: DocId,
    end: DocId,
}

impl OrderedBlock {
    pub fn docs(&self) -> Range<DocId> {
        self.start..self.end
    }
}

impl BlockOrder {
    /// `blocks` are documents and the least rank of their keys; `values` replaces what is in the list by the values of
    /// documents, which compare upwards in the order.
    pub fn of(
        blocks: impl Iterator<Item = (Range<DocId>, u64)>,
        mut values: impl FnMut(&[DocId], &mut Vec<SegmentValue>),
    ) -> Self {
        let (mut docs, mut found) = (Vec::new(), Vec::new());
        let block = |(Range { start, end }, least_key_rank): (Range<DocId>, u64)| {
            docs.clear();
            docs.extend(start..end);
            values(&docs, &mut found);
            let first = found.iter().min().copied().expect("a block has a document");
            OrderedBlock { first, least_key_rank, start, end }
        };
        let mut blocks: Vec<_> = blocks.map(block).collect();
        blocks.sort_unstable();
        Self { blocks }
    }

    pub fn blocks(&self) -> &[OrderedBlock] {
        &self.blocks
    }
}
