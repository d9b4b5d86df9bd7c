//! Makes segments of rows, new ones and those of older segments.

use std::collections::HashMap;

use sundew_base::error::EngineError;
use sundew_vector::plain_bytes::{PlainBytes, bytes_of};

use crate::key_hash::{BuildKeyHasher, hash_key};
use crate::segment::{COUNT_MAX, HAS_EDGE_TIMES, HAS_WEIGHTS, HEADER_WORDS, NARROW_TYPES, SEGMENT_FORMAT, Segment};
use crate::snapshot::LiveSegment;

/// An edge of a row, its strings named by their numbers in `Rows`.
#[derive(Debug, Clone, Copy)]
struct RowEdge {
    edge_type: u32,
    target: u32,
    weight: f32,
    created_ms: i64,
    since: u64,
}

/// Rows on their way into a segment. Strings are kept once.
#[derive(Default)]
pub struct Rows<'a> {
    keys: Names<'a>,
    types: Names<'a>,
    rows: Vec<(u32, u32, std::ops::Range<usize>)>,
    edges: Vec<RowEdge>,
}

#[derive(Default)]
struct Names<'a> {
    numbers: HashMap<&'a str, u32, BuildKeyHasher>,
    names: Vec<&'a str>,
}

impl<'a> Names<'a> {
    fn number(&mut self, name: &'a str) -> u32 {
        let names = &mut self.names;
        *self.numbers.entry(name).or_insert_with(|| {
            names.push(name);
            names.len() as u32 - 1
        })
    }

    /// The names in their order, and the place of each number in it.
    fn sorted(&self) -> (Vec<&'a str>, Vec<u32>) {
        let mut order: Vec<u32> = (0..self.names.len() as u32).collect();
        order.sort_unstable_by_key(|number| self.names[*number as usize]);
        let mut places = vec![0; order.len()];
        for (place, number) in order.iter().enumerate() {
            places[*number as usize] = place as u32;
        }
        (order.iter().map(|number| self.names[*number as usize]).collect(), places)
    }
}

/// An edge with its strings, as a part or a segment has it.
#[derive(Debug, Clone, Copy)]
pub struct NewEdge<'a> {
    pub edge_type: &'a str,
    pub target: &'a str,
    pub weight: f32,
    pub created_ms: i64,
    pub since: u64,
}

impl<'a> Rows<'a> {
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Adds a document with its edges, which come in the order of types and targets.
    pub fn push(&mut self, ordinal: u32, key: &'a str, edges: impl Iterator<Item = NewEdge<'a>>) {
        let start = self.edges.len();
        for NewEdge { edge_type, target, weight, created_ms, since } in edges {
            let (edge_type, target) = (self.types.number(edge_type), self.keys.number(target));
            self.edges.push(RowEdge { edge_type, target, weight, created_ms, since });
        }
        let key = self.keys.number(key);
        self.rows.push((ordinal, key, start..self.edges.len()));
    }

    /// Adds the rows of a segment that are alive.
    pub fn push_live(&mut self, live: &'a LiveSegment) {
        let segment = &*live.segment;
        let keys: Vec<&str> = (0..segment.counts().nodes as u32).map(|node| segment.key(node)).collect();
        for (row, ordinal) in segment.ordinals().iter().enumerate().filter(|(row, _)| live.is_live(*row)) {
            let edges = segment.row_edges(row).map(|edge| {
                let facts = segment.facts(row, edge);
                NewEdge {
                    edge_type: segment.type_name(facts.edge_type),
                    target: keys[segment.targets()[edge] as usize],
                    weight: facts.weight,
                    created_ms: facts.created_ms,
                    since: facts.since,
                }
            });
            self.push(*ordinal, keys[segment.row_nodes()[row] as usize], edges);
        }
    }

    /// Error: `limit_exceeded` where the segment would outgrow its 32-bit counts.
    pub fn build(mut self, id: u64) -> Result<Segment, EngineError> {
        self.rows.sort_unstable_by_key(|(ordinal, ..)| *ordinal);
        let (keys, key_places) = self.keys.sorted();
        let (types, type_places) = self.types.sorted();
        let edge_count = self.edges.len();
        let key_bytes: usize = keys.iter().map(|key| key.len()).sum();
        if [edge_count, keys.len(), key_bytes].into_iter().any(|count| count > COUNT_MAX) {
            return Err(EngineError::new(
                "limit_exceeded",
                "a graph index of one range has more than 2^32 edges or bytes of keys",
            ));
        }
        let mut columns = Columns::with_room(self.rows.len(), edge_count, keys.len());
        for (ordinal, key, edges) in &self.rows {
            let node = key_places[*key as usize];
            columns.row(*ordinal, node, &self.edges[edges.clone()], &key_places, &type_places);
        }
        columns.finish(id, &keys, &types)
    }
}

#[derive(Default)]
struct Columns {
    ordinals: Vec<u32>,
    row_nodes: Vec<u32>,
    row_starts: Vec<u32>,
    row_created: Vec<u64>,
    row_since: Vec<u64>,
    targets: Vec<u32>,
    edge_types: Vec<u32>,
    weights: Vec<f32>,
    created: Vec<u64>,
    since: Vec<u64>,
    edge_rows: Vec<u32>,
    node_rows: Vec<u32>,
    in_counts: Vec<u32>,
}

impl Columns {
    fn with_room(rows: usize, edges: usize, nodes: usize) -> Self {
        Self {
            row_starts: Vec::with_capacity(rows + 1),
            targets: Vec::with_capacity(edges),
            edge_types: Vec::with_capacity(edges),
            node_rows: vec![0; nodes],
            in_counts: vec![0; nodes + 1],
            ..Self::default()
        }
    }

    fn row(&mut self, ordinal: u32, node: u32, edges: &[RowEdge], key_places: &[u32], type_places: &[u32]) {
        let row = self.ordinals.len() as u32;
        self.ordinals.push(ordinal);
        self.row_nodes.push(node);
        self.row_starts.push(self.targets.len() as u32);
        self.row_created.push(edges.first().map_or(0, |edge| edge.created_ms as u64));
        self.row_since.push(edges.first().map_or(0, |edge| edge.since));
        self.node_rows[node as usize] = row + 1;
        for edge in edges {
            let target = key_places[edge.target as usize];
            self.targets.push(target);
            self.edge_types.push(type_places[edge.edge_type as usize]);
            self.weights.push(edge.weight);
            self.created.push(edge.created_ms as u64);
            self.since.push(edge.since);
            self.edge_rows.push(row);
            self.in_counts[target as usize + 1] += 1;
        }
    }

    fn finish(mut self, id: u64, keys: &[&str], types: &[&str]) -> Result<Segment, EngineError> {
        self.row_starts.push(self.targets.len() as u32);
        for node in 1..self.in_counts.len() {
            self.in_counts[node] += self.in_counts[node - 1];
        }
        let in_starts = self.in_counts.clone();
        let (mut in_rows, mut in_edges) = (vec![0u32; self.targets.len()], vec![0u32; self.targets.len()]);
        for (edge, target) in self.targets.iter().enumerate() {
            let at = self.in_counts[*target as usize] as usize;
            self.in_counts[*target as usize] += 1;
            in_rows[at] = self.edge_rows[edge];
            in_edges[at] = edge as u32;
        }
        let (key_starts, key_text) = joined(keys);
        let (type_starts, type_text) = joined(types);
        let slots = slots_of(keys);
        let flags = self.flags(types.len());
        let narrow: Vec<u16> = match flags & NARROW_TYPES {
            0 => Vec::new(),
            _ => self.edge_types.iter().map(|edge_type| *edge_type as u16).collect(),
        };
        let types_bytes = if flags & NARROW_TYPES != 0 { bytes_of(&narrow) } else { bytes_of(&self.edge_types) };
        let only = |flag: u32, bytes: &'_ [u8]| if flags & flag != 0 { bytes.to_vec() } else { Vec::new() };
        let mut header = [0u32; HEADER_WORDS];
        let counts = [
            self.ordinals.len(),
            keys.len(),
            self.targets.len(),
            types.len(),
            slots.len(),
            key_text.len(),
            type_text.len(),
        ];
        header[0] = SEGMENT_FORMAT;
        for (word, count) in header[1..].iter_mut().zip(counts) {
            *word = count as u32;
        }
        header[8] = flags;
        let bytes = PlainBytes::copied(&[
            bytes_of(&header),
            bytes_of(&self.ordinals),
            bytes_of(&self.row_nodes),
            bytes_of(&self.row_starts),
            bytes_of(&self.row_created),
            bytes_of(&self.row_since),
            bytes_of(&self.targets),
            types_bytes,
            &only(HAS_WEIGHTS, bytes_of(&self.weights)),
            &only(HAS_EDGE_TIMES, bytes_of(&self.created)),
            &only(HAS_EDGE_TIMES, bytes_of(&self.since)),
            bytes_of(&self.node_rows),
            bytes_of(&in_starts),
            bytes_of(&in_rows),
            bytes_of(&in_edges),
            bytes_of(&key_starts),
            &key_text,
            bytes_of(&slots),
            bytes_of(&type_starts),
            &type_text,
        ]);
        Segment::open(id, bytes)
    }

    /// Which columns are there: those that say nothing are left out.
    fn flags(&self, types: usize) -> u32 {
        let mut flags = if types <= usize::from(u16::MAX) { NARROW_TYPES } else { 0 };
        if self.weights.iter().any(|weight| *weight != 1.0) {
            flags |= HAS_WEIGHTS;
        }
        let differs = |edge: usize| {
            let row = self.edge_rows[edge] as usize;
            self.created[edge] != self.row_created[row] || self.since[edge] != self.row_since[row]
        };
        if (0..self.edge_rows.len()).any(differs) {
            flags |= HAS_EDGE_TIMES;
        }
        flags
    }
}

fn joined(names: &[&str]) -> (Vec<u32>, Vec<u8>) {
    let (mut starts, mut text) = (Vec::with_capacity(names.len() + 1), Vec::new());
    for name in names {
        starts.push(text.len() as u32);
        text.extend_from_slice(name.as_bytes());
    }
    starts.push(text.len() as u32);
    (starts, text)
}

fn slots_of(keys: &[&str]) -> Vec<u32> {
    let mut slots = vec![0u32; (keys.len() + keys.len() / 2 + 1).next_power_of_two()];
    let mask = slots.len() - 1;
    for (node, key) in keys.iter().enumerate() {
        let mut at = hash_key(key.as_bytes()) as usize & mask;
        while slots[at] != 0 {
            at = (at + 1) & mask;
        }
        slots[at] = node as u32 + 1;
    }
    slots
}
