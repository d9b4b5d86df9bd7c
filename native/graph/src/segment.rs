//! An immutable piece of a graph index: the edges of some documents, by source and by target.
//!
//! ```text
//! header, twelve u32: format, rows, nodes, edges, types, slots, key bytes, type bytes, metadata bytes, flags, two zeros
//! sections, each padded to a multiple of eight bytes:
//!   ordinals u32[rows] ascending; row nodes u32[rows]; row starts u32[rows + 1] (edges)
//!   row created ms i64[rows]; row updated ms i64[rows]; row since u64[rows]
//!   edge targets u32[edges]; edge types u8[edges], u16 for more than 256 types, u32 for more than 65,536, none for one
//!   edge weights f32[edges] where flag 1 is set, otherwise 1
//!   edge created ms, updated ms and since, u64[edges] each, where flag 2 is set, otherwise those of the row
//!   metadata starts u32[edges + 1] where there is metadata; metadata
//!   node rows u32[nodes] (row + 1, or 0); in starts u32[nodes + 1]; in rows u32[edges]; in edges u32[edges]
//!   key starts u32[nodes + 1]; keys; slots u32[slots] (node + 1, or 0); type starts u32[types + 1]; types
//! ```
//!
//! Nodes are numbered in the order of their keys, sources and targets alike. Slots are a hash table of keys with linear
//! probing. The edges of a row lie in the order of types and targets, those into a node in the order of types and sources.
//! Flag 4: some row has two edges of one type to one target, which differ by their origin.

use std::ops::Range;
use std::sync::OnceLock;

use sundew_base::error::{EngineError, damaged};
use sundew_base::plain_bytes::{PlainBytes, PlainNumber};

use crate::key_hash::hash_key;

pub const SEGMENT_FORMAT: u32 = 3;
pub const HEADER_WORDS: usize = 12;
pub const HAS_WEIGHTS: u32 = 1;
pub const HAS_EDGE_TIMES: u32 = 2;
pub const HAS_TWINS: u32 = 4;

/// Edges, nodes and bytes of keys and metadata of a segment are counted in 32 bits.
pub const COUNT_MAX: usize = u32::MAX as usize - 1;

pub struct Segment {
    pub id: u64,
    bytes: PlainBytes,
    counts: Counts,
    at: Offsets,
    oldest_ms: OnceLock<i64>,
}

#[derive(Debug, Clone, Copy)]
pub struct Counts {
    pub rows: usize,
    pub nodes: usize,
    pub edges: usize,
    pub types: usize,
    pub slots: usize,
    pub key_bytes: usize,
    pub type_bytes: usize,
    pub metadata_bytes: usize,
    pub flags: u32,
}

impl Counts {
    /// Bytes of the type of an edge.
    pub fn type_width(&self) -> usize {
        match self.types {
            0 | 1 => 0,
            2..=0x100 => 1,
            0x101..=0x1_0000 => 2,
            _ => 4,
        }
    }
}

/// Where each section begins.
#[derive(Default)]
struct Offsets {
    ordinals: usize,
    row_nodes: usize,
    row_starts: usize,
    row_created: usize,
    row_updated: usize,
    row_since: usize,
    targets: usize,
    edge_types: usize,
    weights: usize,
    edge_created: usize,
    edge_updated: usize,
    edge_since: usize,
    metadata_starts: usize,
    metadata: usize,
    node_rows: usize,
    in_starts: usize,
    in_rows: usize,
    in_edges: usize,
    key_starts: usize,
    keys: usize,
    slots: usize,
    type_starts: usize,
    types: usize,
    end: usize,
}

impl Offsets {
    fn of(counts: &Counts) -> Self {
        let Counts { rows, nodes, edges, types, slots, key_bytes, type_bytes, metadata_bytes, flags } = *counts;
        let mut end = (HEADER_WORDS * 4).next_multiple_of(8);
        let mut section = |bytes: usize| {
            let start = end;
            end += bytes.next_multiple_of(8);
            start
        };
        let times = if flags & HAS_EDGE_TIMES != 0 { edges * 8 } else { 0 };
        let mut at = Self {
            ordinals: section(rows * 4),
            row_nodes: section(rows * 4),
            row_starts: section((rows + 1) * 4),
            row_created: section(rows * 8),
            row_updated: section(rows * 8),
            row_since: section(rows * 8),
            targets: section(edges * 4),
            edge_types: section(edges * counts.type_width()),
            weights: section(if flags & HAS_WEIGHTS != 0 { edges * 4 } else { 0 }),
            edge_created: section(times),
            edge_updated: section(times),
            edge_since: section(times),
            metadata_starts: section(if metadata_bytes == 0 { 0 } else { (edges + 1) * 4 }),
            metadata: section(metadata_bytes),
            node_rows: section(nodes * 4),
            in_starts: section((nodes + 1) * 4),
            in_rows: section(edges * 4),
            in_edges: section(edges * 4),
            key_starts: section((nodes + 1) * 4),
            keys: section(key_bytes),
            slots: section(slots * 4),
            type_starts: section((types + 1) * 4),
            types: section(type_bytes),
            end: 0,
        };
        at.end = end;
        at
    }
}

impl Segment {
    /// Reads the header; sections are read where they are needed. Error: `index_damaged`.
    pub fn open(id: u64, bytes: PlainBytes) -> Result<Self, EngineError> {
        let broken = || damaged(format!("{id}.segment is not a segment of edges"));
        let header = bytes.numbers::<u32>(0, HEADER_WORDS).ok_or_else(broken)?;
        if header[0] != SEGMENT_FORMAT {
            return Err(broken());
        }
        let count = |at: usize| header[at] as usize;
        let counts = Counts {
            rows: count(1),
            nodes: count(2),
            edges: count(3),
            types: count(4),
            slots: count(5),
            key_bytes: count(6),
            type_bytes: count(7),
            metadata_bytes: count(8),
            flags: header[9],
        };
        let at = Offsets::of(&counts);
        if at.end != bytes.bytes().len() || !counts.slots.is_power_of_two() || counts.slots <= counts.nodes {
            return Err(broken());
        }
        Ok(Self { id, bytes, counts, at, oldest_ms: OnceLock::new() })
    }

    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    pub fn has_twins(&self) -> bool {
        self.counts.flags & HAS_TWINS != 0
    }

    pub fn bytes(&self) -> &[u8] {
        self.bytes.bytes()
    }

    pub fn is_in_memory(&self) -> bool {
        self.bytes.is_in_memory()
    }

    fn section<T: PlainNumber>(&self, at: usize, count: usize) -> &[T] {
        // `open` has compared the length of all sections with that of the bytes.
        self.bytes.numbers(at, count).unwrap_or_default()
    }

    pub fn columns(&self) -> Columns<'_> {
        let Counts { rows, nodes, edges, types, slots, key_bytes, type_bytes, metadata_bytes, flags } = self.counts;
        let at = &self.at;
        let edge_types = match self.counts.type_width() {
            0 => EdgeTypes::One,
            1 => EdgeTypes::Bytes(self.section(at.edge_types, edges)),
            2 => EdgeTypes::Narrow(self.section(at.edge_types, edges)),
            _ => EdgeTypes::Wide(self.section(at.edge_types, edges)),
        };
        let times = if flags & HAS_EDGE_TIMES != 0 { edges } else { 0 };
        Columns {
            ordinals: self.section(at.ordinals, rows),
            row_nodes: self.section(at.row_nodes, rows),
            row_starts: self.section(at.row_starts, rows + 1),
            row_created: self.section(at.row_created, rows),
            row_updated: self.section(at.row_updated, rows),
            row_since: self.section(at.row_since, rows),
            targets: self.section(at.targets, edges),
            edge_types,
            weights: self.section(at.weights, if flags & HAS_WEIGHTS != 0 { edges } else { 0 }),
            edge_created: self.section(at.edge_created, times),
            edge_updated: self.section(at.edge_updated, times),
            edge_since: self.section(at.edge_since, times),
            metadata_starts: self.section(at.metadata_starts, if metadata_bytes == 0 { 0 } else { edges + 1 }),
            metadata: self.section(at.metadata, metadata_bytes),
            node_rows: self.section(at.node_rows, nodes),
            in_starts: self.section(at.in_starts, nodes + 1),
            in_rows: self.section(at.in_rows, edges),
            in_edges: self.section(at.in_edges, edges),
            key_starts: self.section(at.key_starts, nodes + 1),
            keys: self.section(at.keys, key_bytes),
            slots: self.section(at.slots, slots),
            type_starts: self.section(at.type_starts, types + 1),
            types: self.section(at.types, type_bytes),
        }
    }

    /// When the first of its edges was created, milliseconds since 1970.
    pub fn oldest_ms(&self) -> i64 {
        *self.oldest_ms.get_or_init(|| {
            let columns = self.columns();
            let times = if columns.edge_created.is_empty() { columns.row_created } else { columns.edge_created };
            times.iter().map(|time| *time as i64).min().unwrap_or(i64::MAX)
        })
    }
}

#[derive(Clone, Copy)]
enum EdgeTypes<'a> {
    One,
    Bytes(&'a [u8]),
    Narrow(&'a [u16]),
    Wide(&'a [u32]),
}

/// The sections of a segment. Columns that say nothing are empty.
#[derive(Clone, Copy)]
pub struct Columns<'a> {
    pub ordinals: &'a [u32],
    /// Node of the document of each row.
    pub row_nodes: &'a [u32],
    row_starts: &'a [u32],
    row_created: &'a [u64],
    row_updated: &'a [u64],
    row_since: &'a [u64],
    pub targets: &'a [u32],
    edge_types: EdgeTypes<'a>,
    weights: &'a [f32],
    edge_created: &'a [u64],
    edge_updated: &'a [u64],
    edge_since: &'a [u64],
    metadata_starts: &'a [u32],
    metadata: &'a [u8],
    node_rows: &'a [u32],
    in_starts: &'a [u32],
    in_rows: &'a [u32],
    in_edges: &'a [u32],
    key_starts: &'a [u32],
    keys: &'a [u8],
    slots: &'a [u32],
    type_starts: &'a [u32],
    types: &'a [u8],
}

impl<'a> Columns<'a> {
    pub fn node_count(&self) -> u32 {
        self.node_rows.len() as u32
    }

    pub fn type_count(&self) -> u32 {
        self.type_starts.len() as u32 - 1
    }

    /// The row of a document.
    pub fn row_of_ordinal(&self, ordinal: u32) -> Option<usize> {
        self.ordinals.binary_search(&ordinal).ok()
    }

    /// The edges of a row.
    #[inline]
    pub fn row_edges(&self, row: usize) -> Range<usize> {
        self.row_starts[row] as usize..self.row_starts[row + 1] as usize
    }

    #[inline]
    pub fn edge_type(&self, edge: usize) -> u32 {
        match self.edge_types {
            EdgeTypes::One => 0,
            EdgeTypes::Bytes(types) => u32::from(types[edge]),
            EdgeTypes::Narrow(types) => u32::from(types[edge]),
            EdgeTypes::Wide(types) => types[edge],
        }
    }

    #[inline]
    pub fn weight(&self, edge: usize) -> f32 {
        self.weights.get(edge).copied().unwrap_or(1.0)
    }

    /// Milliseconds since 1970, of an edge of this row.
    #[inline]
    pub fn created_ms(&self, row: usize, edge: usize) -> i64 {
        self.edge_created.get(edge).copied().unwrap_or_else(|| self.row_created[row]) as i64
    }

    pub fn updated_ms(&self, row: usize, edge: usize) -> i64 {
        self.edge_updated.get(edge).copied().unwrap_or_else(|| self.row_updated[row]) as i64
    }

    /// Sequence of its range from which on the edge is there.
    pub fn since(&self, row: usize, edge: usize) -> u64 {
        self.edge_since.get(edge).copied().unwrap_or_else(|| self.row_since[row])
    }

    /// A JSON object, or nothing.
    pub fn metadata(&self, edge: usize) -> &'a str {
        if self.metadata_starts.is_empty() { "" } else { text_of(self.metadata, self.metadata_starts, edge) }
    }

    /// The row of the document that a node is, when it has edges here.
    #[inline]
    pub fn row_of_node(&self, node: u32) -> Option<usize> {
        (self.node_rows[node as usize] as usize).checked_sub(1)
    }

    /// Positions of the edges that lead to a node among those of all nodes.
    #[inline]
    pub fn positions_into(&self, node: u32) -> Range<usize> {
        self.in_starts[node as usize] as usize..self.in_starts[node as usize + 1] as usize
    }

    /// Row and edge at such a position.
    #[inline]
    pub fn edge_at(&self, position: usize) -> (usize, usize) {
        (self.in_rows[position] as usize, self.in_edges[position] as usize)
    }

    /// The edges that lead to a node: row and edge.
    pub fn edges_into(&self, node: u32) -> impl Iterator<Item = (usize, usize)> + use<'a> {
        let range = self.positions_into(node);
        self.in_rows[range.clone()].iter().zip(&self.in_edges[range]).map(|(row, edge)| (*row as usize, *edge as usize))
    }

    /// The edges of a row that have this type and target.
    pub fn edges_between(&self, row: usize, edge_type: u32, target: u32) -> Range<usize> {
        let edges = self.row_edges(row);
        let at = |edge: usize| (self.edge_type(edge), self.targets[edge]);
        let start = partition(edges.clone(), |edge| at(edge) < (edge_type, target));
        start..partition(start..edges.end, |edge| at(edge) <= (edge_type, target))
    }

    pub fn key(&self, node: u32) -> &'a str {
        text_of(self.keys, self.key_starts, node as usize)
    }

    /// The node of a key, whose `hash_key` is at hand.
    pub fn node_of(&self, key: &str, hash: u64) -> Option<u32> {
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            let node = self.slots[at].checked_sub(1)?;
            let range = self.key_starts[node as usize] as usize..self.key_starts[node as usize + 1] as usize;
            if self.keys[range] == *key.as_bytes() {
                return Some(node);
            }
            at = (at + 1) & mask;
        }
    }

    pub fn node_of_key(&self, key: &str) -> Option<u32> {
        self.node_of(key, hash_key(key.as_bytes()))
    }

    /// The first node whose key is greater.
    pub fn node_behind(&self, key: &str) -> u32 {
        partition(0..self.node_count() as usize, |node| self.key(node as u32) <= key) as u32
    }

    pub fn type_name(&self, edge_type: u32) -> &'a str {
        text_of(self.types, self.type_starts, edge_type as usize)
    }

    pub fn type_names(&self) -> impl Iterator<Item = &'a str> + '_ {
        (0..self.type_count()).map(|edge_type| self.type_name(edge_type))
    }
}

/// The first number in the range that `is_before` does not hold for; it holds for none behind it.
pub fn partition(range: Range<usize>, is_before: impl Fn(usize) -> bool) -> usize {
    let Range { start: mut from, mut end } = range;
    while from < end {
        let middle = from + (end - from) / 2;
        if is_before(middle) { from = middle + 1 } else { end = middle }
    }
    from
}

fn text_of<'a>(bytes: &'a [u8], starts: &[u32], at: usize) -> &'a str {
    let text = &bytes[starts[at] as usize..starts[at + 1] as usize];
    // Written from strings; what a disk has changed since is told by the checksum, and here reads as no text.
    std::str::from_utf8(text).unwrap_or_default()
}
