//! How a graph comes to have its rows: the bytes of a new one, which takes over those of the one that it grows from.

use std::fs::File;

use sundew_base::error::EngineError;

use super::super::metric::Metric;
use super::codes::{encode, node_norm, squared_norm};
use super::layout::{COPY_BYTES, Counts, GRAPH_MAGIC, HEADER_BYTES, Layout, NODE_HEAD_BYTES};
use super::storage::{Copied, Graph, IS_COPY, NO_UPPER, NodeHead};

/// A row that a graph takes in.
#[derive(Debug, Clone, Copy)]
pub struct AddedRow<'a> {
    pub ordinal: u32,
    /// Of the vector among those of its document.
    pub number: u16,
    pub sequence: u64,
    pub vector: &'a [f32],
    /// Layers above the lowest.
    pub level: u32,
    /// By which the vector is found; `None` where an equal one is found instead.
    pub key: Option<u32>,
}

impl Graph {
    /// The rows of `grown`, with their links, and unlinked nodes for `added` rows. There is room for every added row to
    /// become a copy. The bytes lie in `file`, where one is given.
    pub fn new<'a>(
        metric: Metric,
        links: usize,
        dimension: usize,
        grown: Option<&Self>,
        added: &[AddedRow<'a>],
        file: Option<&File>,
    ) -> Result<Self, EngineError> {
        let empty = Counts { rows: 0, upper_words: 0, keys: 0, copies: 0 };
        let old = grown.map_or(empty, |old| old.layout.counts());
        let upper_words = old.upper_words + added.iter().map(|row| row.level as usize * links).sum::<usize>();
        let keys = old.keys + added.iter().filter(|row| row.key.is_some()).count();
        let counts = Counts { rows: old.rows + added.len(), upper_words, keys, copies: old.copies + added.len() };
        let mut graph = Self::allocate(metric, Layout::new(dimension, links, counts), file)?;
        let length = |row: &AddedRow| row.vector.iter().map(|value| value * value).sum::<f32>().sqrt();
        graph.longest = added.iter().map(length).fold(grown.map_or(0.0, |old| old.longest), f32::max);
        if let Some(old) = grown {
            graph.copy(old);
        }
        graph.write_added(old.rows, old.upper_words, added);
        graph.write_keys(grown, old.rows as u32, added);
        graph.write_copies(grown.map_or(&[], |old| old.copies()));
        Ok(graph)
    }

    fn copy(&mut self, old: &Self) {
        let (from, to) = (old.layout, self.layout);
        assert_eq!((from.stride, from.links), (to.stride, to.links), "a graph grows in its own shape");
        let regions = [
            (HEADER_BYTES, HEADER_BYTES, from.rows * from.stride),
            (from.links_at, to.links_at, from.rows * from.links * 8),
            (from.ordinals_at, to.ordinals_at, from.rows * 4),
            (from.sequences_at, to.sequences_at, from.rows * 8),
            (from.numbers_at, to.numbers_at, from.rows * 2),
            (from.upper_at, to.upper_at, from.upper_words * 4),
        ];
        let bytes = old.bytes();
        let memory = self.memory();
        for (from, to, length) in regions {
            memory[to..to + length].copy_from_slice(&bytes[from..from + length]);
        }
        (self.entry, self.top_level, self.is_begun) = (old.entry, old.top_level, true);
        // Longer vectors change the coordinate that all others are lengthened by.
        if self.metric == Metric::InnerProduct && self.longest > old.longest {
            let longest = self.longest;
            for row in 0..from.rows as u32 {
                if self.leader_of(row) != row {
                    continue;
                }
                let norm = node_norm(self.metric, squared_norm(self.codes(row), self.head(row).scale), longest);
                let at = HEADER_BYTES + row as usize * to.stride;
                self.memory()[at + 4..at + 8].copy_from_slice(&norm.to_le_bytes());
            }
        }
    }

    fn write_keys(&mut self, grown: Option<&Self>, first: u32, added: &[AddedRow<'_>]) {
        let (keys, rows) = grown.map_or((&[][..], &[][..]), Self::keys);
        let mut old = keys.iter().copied().zip(rows.iter().copied()).peekable();
        let mut new: Vec<(u32, u32)> =
            added.iter().zip(first..).filter_map(|(added, row)| added.key.map(|key| (key, row))).collect();
        new.sort_unstable();
        let mut new = new.into_iter().peekable();
        let merged = std::iter::from_fn(|| match (old.peek(), new.peek()) {
            (Some(older), Some(newer)) if newer < older => new.next(),
            (None, _) => new.next(),
            _ => old.next(),
        });
        let (at, count) = (self.layout.keys_at, self.layout.keys);
        let (keys, rows) = self.memory()[at..at + 8 * count].as_chunks_mut::<4>().0.split_at_mut(count);
        for ((key, row), entry) in keys.iter_mut().zip(rows).zip(merged) {
            (*key, *row) = (entry.0.to_le_bytes(), entry.1.to_le_bytes());
        }
    }

    /// Sets the list of copies, in whatever order.
    fn write_copies(&mut self, copies: &[Copied]) {
        let mut copies = copies.to_vec();
        copies.sort_unstable_by(|a, b| {
            a.leader.cmp(&b.leader).then(a.distance.total_cmp(&b.distance)).then(a.row.cmp(&b.row))
        });
        let counts = Counts { copies: copies.len(), ..self.layout.counts() };
        self.layout = Layout::new(self.layout.dimension, self.layout.links, counts);
        let at = self.layout.copies_at;
        let bytes = &mut self.memory()[at..at + COPY_BYTES * copies.len()];
        for (bytes, copy) in bytes.as_chunks_mut::<COPY_BYTES>().0.iter_mut().zip(&copies) {
            bytes[0..4].copy_from_slice(&copy.leader.to_le_bytes());
            bytes[4..8].copy_from_slice(&copy.row.to_le_bytes());
            bytes[8..12].copy_from_slice(&copy.distance.to_le_bytes());
        }
    }

    /// Makes rows without links copies of their leaders. `difference` fills in what tells a copy at some distance from its
    /// leader.
    pub fn add_copies(&mut self, added: &[Copied], mut difference: impl FnMut(&Copied, &mut Vec<f32>)) {
        let layout = self.layout;
        let (mut vector, mut codes) = (Vec::new(), vec![0i8; layout.dimension]);
        for copy in added {
            let upper = IS_COPY | copy.leader;
            let (mut scale, mut code_sum, mut norm) = (0.0, 0, 0.0);
            codes.fill(0);
            if copy.distance > 0.0 {
                difference(copy, &mut vector);
                (scale, code_sum) = encode(&vector, &mut codes);
                if self.metric == Metric::L2Squared {
                    norm = squared_norm(&codes, scale);
                }
            }
            let node = &mut self.memory()[HEADER_BYTES + copy.row as usize * layout.stride..][..layout.stride];
            write_node(node, NodeHead { scale, norm, code_sum, upper }, &codes);
        }
        let all: Vec<Copied> = self.copies().iter().chain(added).copied().collect();
        self.write_copies(&all);
    }

    fn write_added(&mut self, old_rows: usize, old_words: usize, added: &[AddedRow<'_>]) {
        let (layout, metric, longest) = (self.layout, self.metric, self.longest);
        let mut word = old_words;
        let memory = self.memory();
        let mut codes = vec![0i8; layout.dimension];
        for (added, row) in added.iter().zip(old_rows..) {
            let (scale, code_sum) = encode(added.vector, &mut codes);
            let norm = node_norm(metric, squared_norm(&codes, scale), longest);
            let upper = if added.level == 0 { NO_UPPER } else { word as u32 };
            word += added.level as usize * layout.links;
            let node = &mut memory[HEADER_BYTES + row * layout.stride..][..layout.stride];
            write_node(node, NodeHead { scale, norm, code_sum, upper }, &codes);
            memory[layout.ordinals_at + 4 * row..][..4].copy_from_slice(&added.ordinal.to_le_bytes());
            memory[layout.sequences_at + 8 * row..][..8].copy_from_slice(&added.sequence.to_le_bytes());
            memory[layout.numbers_at + 2 * row..][..2].copy_from_slice(&added.number.to_le_bytes());
        }
    }

    /// Writes the header, when nothing changes any more.
    pub fn seal(&mut self) {
        let layout = self.layout;
        let mut header = [0u8; HEADER_BYTES];
        header[0..4].copy_from_slice(&GRAPH_MAGIC.to_le_bytes());
        header[4..8].copy_from_slice(&(layout.dimension as u32).to_le_bytes());
        header[8..16].copy_from_slice(&(layout.rows as u64).to_le_bytes());
        header[16..20].copy_from_slice(&(layout.links as u32).to_le_bytes());
        header[20..24].copy_from_slice(&self.entry.to_le_bytes());
        header[24..28].copy_from_slice(&self.top_level.to_le_bytes());
        header[28..32].copy_from_slice(&self.longest.to_le_bytes());
        header[32..40].copy_from_slice(&(layout.upper_words as u64).to_le_bytes());
        header[40..48].copy_from_slice(&(layout.keys as u64).to_le_bytes());
        header[48..56].copy_from_slice(&(layout.copies as u64).to_le_bytes());
        self.memory()[..HEADER_BYTES].copy_from_slice(&header);
    }
}

fn write_node(node: &mut [u8], head: NodeHead, codes: &[i8]) {
    node[0..4].copy_from_slice(&head.scale.to_le_bytes());
    node[4..8].copy_from_slice(&head.norm.to_le_bytes());
    node[8..12].copy_from_slice(&head.code_sum.to_le_bytes());
    node[12..16].copy_from_slice(&head.upper.to_le_bytes());
    let bytes = node[NODE_HEAD_BYTES..].iter_mut();
    bytes.zip(codes).for_each(|(byte, code)| *byte = *code as u8);
}
