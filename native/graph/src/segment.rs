//! An immutable piece of a graph index: the edges of some documents, by source and by target.
//!
//! ```text
//! header, twelve u32: format, rows, nodes, edges, types, slots, key bytes, type bytes, flags, and three zeros
//! sections, each padded to a multiple of eight bytes:
//!   ordinals u32[rows] ascending; row nodes u32[rows]; row starts u32[rows + 1] (edges)
//!   row created ms i64[rows]; row since u64[rows]
//!   edge targets u32[edges]; edge types u32[edges], u16 where flag 1 is set
//!   edge weights f32[edges] where flag 2 is set, otherwise 1; edge created ms i64[edges] and edge since u64[edges] where
//!   flag 4 is set, otherwise those of the row
//!   node rows u32[nodes] (row + 1, or 0); in starts u32[nodes + 1]; in rows u32[edges]; in edges u32[edges]
//!   key starts u32[nodes + 1]; keys; slots u32[slots] (node + 1, or 0); type starts u32[types + 1]; types
//! ```
//!
//! Nodes are numbered in the order of their keys, sources and targets alike. Slots are a hash table of keys with linear
//! probing. The edges of a row lie in the order of types and targets.

use std::sync::OnceLock;

use sundew_base::error::{EngineError, damaged};
use sundew_vector::plain_bytes::{PlainBytes, PlainNumber};

use crate::key_hash::hash_key;

pub const SEGMENT_FORMAT: u32 = 1;
pub const HEADER_WORDS: usize = 12;
pub const NARROW_TYPES: u32 = 1;
pub const HAS_WEIGHTS: u32 = 2;
pub const HAS_EDGE_TIMES: u32 = 4;

/// Edges, nodes and bytes of keys of a segment are counted in 32 bits.
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
    pub flags: u32,
}

/// Where each section begins.
#[derive(Default)]
struct Offsets {
    ordinals: usize,
    row_nodes: usize,
    row_starts: usize,
    row_created: usize,
    row_since: usize,
    targets: usize,
    edge_types: usize,
    weights: usize,
    edge_created: usize,
    edge_since: usize,
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
        let Counts { rows, nodes, edges, types, slots, key_bytes, type_bytes, flags } = *counts;
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
            row_since: section(rows * 8),
            targets: section(edges * 4),
            edge_types: section(edges * if flags & NARROW_TYPES != 0 { 2 } else { 4 }),
            weights: section(if flags & HAS_WEIGHTS != 0 { edges * 4 } else { 0 }),
            edge_created: section(times),
            edge_since: section(times),
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

/// What is known of an edge without its ends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EdgeFacts {
    pub edge_type: u32,
    pub weight: f32,
    pub created_ms: i64,
    /// Sequence of its range from which on it is there.
    pub since: u64,
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
            flags: header[8],
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

    pub fn ordinals(&self) -> &[u32] {
        self.section(self.at.ordinals, self.counts.rows)
    }

    /// The row of a document.
    pub fn row_of_ordinal(&self, ordinal: u32) -> Option<usize> {
        self.ordinals().binary_search(&ordinal).ok()
    }

    /// Node of the document of each row.
    pub fn row_nodes(&self) -> &[u32] {
        self.section(self.at.row_nodes, self.counts.rows)
    }

    /// The edges of a row.
    pub fn row_edges(&self, row: usize) -> std::ops::Range<usize> {
        let starts: &[u32] = self.section(self.at.row_starts, self.counts.rows + 1);
        starts[row] as usize..starts[row + 1] as usize
    }

    pub fn targets(&self) -> &[u32] {
        self.section(self.at.targets, self.counts.edges)
    }

    /// Of an edge of this row.
    pub fn facts(&self, row: usize, edge: usize) -> EdgeFacts {
        let Counts { rows, edges, flags, .. } = self.counts;
        let edge_type = if flags & NARROW_TYPES != 0 {
            u32::from(self.section::<u16>(self.at.edge_types, edges)[edge])
        } else {
            self.section::<u32>(self.at.edge_types, edges)[edge]
        };
        let weight = if flags & HAS_WEIGHTS != 0 { self.section::<f32>(self.at.weights, edges)[edge] } else { 1.0 };
        let (created, since) = if flags & HAS_EDGE_TIMES != 0 {
            (
                self.section::<u64>(self.at.edge_created, edges)[edge],
                self.section::<u64>(self.at.edge_since, edges)[edge],
            )
        } else {
            (self.section::<u64>(self.at.row_created, rows)[row], self.section::<u64>(self.at.row_since, rows)[row])
        };
        EdgeFacts { edge_type, weight, created_ms: created as i64, since }
    }

    /// When the first of its edges was created, milliseconds since 1970.
    pub fn oldest_ms(&self) -> i64 {
        *self.oldest_ms.get_or_init(|| {
            let Counts { rows, edges, flags, .. } = self.counts;
            let times: &[u64] = match flags & HAS_EDGE_TIMES {
                0 => self.section(self.at.row_created, rows),
                _ => self.section(self.at.edge_created, edges),
            };
            times.iter().map(|time| *time as i64).min().unwrap_or(i64::MAX)
        })
    }

    /// The row of the document that a node is, when it has edges here.
    pub fn row_of_node(&self, node: u32) -> Option<usize> {
        let rows: &[u32] = self.section(self.at.node_rows, self.counts.nodes);
        (rows[node as usize] as usize).checked_sub(1)
    }

    /// The edges that lead to a node: row and edge.
    pub fn edges_into(&self, node: u32) -> impl Iterator<Item = (usize, usize)> + '_ {
        let starts: &[u32] = self.section(self.at.in_starts, self.counts.nodes + 1);
        let range = starts[node as usize] as usize..starts[node as usize + 1] as usize;
        let rows: &[u32] = self.section(self.at.in_rows, self.counts.edges);
        let edges: &[u32] = self.section(self.at.in_edges, self.counts.edges);
        rows[range.clone()].iter().zip(&edges[range]).map(|(row, edge)| (*row as usize, *edge as usize))
    }

    pub fn key(&self, node: u32) -> &str {
        let starts: &[u32] = self.section(self.at.key_starts, self.counts.nodes + 1);
        let keys: &[u8] = self.section(self.at.keys, self.counts.key_bytes);
        text_of(keys, starts, node as usize)
    }

    /// The node of a key.
    pub fn node_of(&self, key: &str) -> Option<u32> {
        let slots: &[u32] = self.section(self.at.slots, self.counts.slots);
        let mask = slots.len() - 1;
        let mut at = hash_key(key.as_bytes()) as usize & mask;
        loop {
            let node = slots[at].checked_sub(1)?;
            if self.key(node) == key {
                return Some(node);
            }
            at = (at + 1) & mask;
        }
    }

    pub fn type_name(&self, edge_type: u32) -> &str {
        let starts: &[u32] = self.section(self.at.type_starts, self.counts.types + 1);
        text_of(self.section(self.at.types, self.counts.type_bytes), starts, edge_type as usize)
    }

    pub fn type_names(&self) -> impl Iterator<Item = &str> {
        (0..self.counts.types as u32).map(|edge_type| self.type_name(edge_type))
    }
}

fn text_of<'a>(bytes: &'a [u8], starts: &[u32], at: usize) -> &'a str {
    let text = &bytes[starts[at] as usize..starts[at + 1] as usize];
    // Written from strings; what a disk has changed since is told by the checksum, and here reads as no text.
    std::str::from_utf8(text).unwrap_or_default()
}
