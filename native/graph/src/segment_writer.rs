//! Lays the sections of a segment out.

use sundew_base::error::EngineError;
use sundew_base::plain_bytes::{PlainBytes, bytes_of};

use crate::key_hash::hash_key;
use crate::segment::{
    COUNT_MAX, Counts, HAS_EDGE_TIMES, HAS_TWINS, HAS_WEIGHTS, HEADER_WORDS, SEGMENT_FORMAT, Segment,
};

/// An edge of a row, its type and target by their ranks among the names of the segment.
#[derive(Debug, Clone, Copy)]
pub struct RowEdge<'a> {
    pub edge_type: u32,
    pub target: u32,
    pub weight: f32,
    pub created_ms: i64,
    pub updated_ms: i64,
    pub since: u64,
    pub metadata: &'a str,
}

/// Takes the rows of a segment in the order of their ordinals.
pub struct SegmentWriter {
    ordinals: Vec<u32>,
    row_nodes: Vec<u32>,
    row_starts: Vec<u32>,
    row_times: Times,
    targets: Vec<u32>,
    edge_types: Vec<u32>,
    edge_rows: Vec<u32>,
    /// Empty while every weight is 1.
    weights: Vec<f32>,
    /// Empty while every edge has the times of its row.
    edge_times: Times,
    /// Empty while no edge has metadata.
    metadata_ends: Vec<u32>,
    metadata: Vec<u8>,
    node_rows: Vec<u32>,
    in_counts: Vec<u32>,
    has_twins: bool,
}

#[derive(Default)]
struct Times {
    created: Vec<u64>,
    updated: Vec<u64>,
    since: Vec<u64>,
}

impl Times {
    fn push(&mut self, [created, updated, since]: [u64; 3]) {
        self.created.push(created);
        self.updated.push(updated);
        self.since.push(since);
    }

    fn is_empty(&self) -> bool {
        self.created.is_empty()
    }

    fn of(&self, at: usize) -> [u64; 3] {
        [self.created[at], self.updated[at], self.since[at]]
    }
}

impl SegmentWriter {
    pub fn with_room(rows: usize, edges: usize, nodes: usize) -> Self {
        Self {
            ordinals: Vec::with_capacity(rows),
            row_nodes: Vec::with_capacity(rows),
            row_starts: Vec::with_capacity(rows + 1),
            row_times: Times::default(),
            targets: Vec::with_capacity(edges),
            edge_types: Vec::with_capacity(edges),
            edge_rows: Vec::with_capacity(edges),
            weights: Vec::new(),
            edge_times: Times::default(),
            metadata_ends: Vec::new(),
            metadata: Vec::new(),
            node_rows: vec![0; nodes],
            in_counts: vec![0; nodes + 1],
            has_twins: false,
        }
    }

    /// Adds a document, whose edges come in the order of types and targets.
    pub fn row<'a>(&mut self, ordinal: u32, node: u32, edges: impl Iterator<Item = RowEdge<'a>>) {
        let row = self.ordinals.len();
        self.ordinals.push(ordinal);
        self.row_nodes.push(node);
        self.row_starts.push(self.targets.len() as u32);
        self.node_rows[node as usize] = row as u32 + 1;
        for edge in edges {
            self.edge(row, &edge);
        }
        if self.row_times.created.len() == row {
            self.row_times.push([0; 3]);
        }
    }

    fn edge(&mut self, row: usize, edge: &RowEdge<'_>) {
        let at = self.targets.len();
        let times = [edge.created_ms as u64, edge.updated_ms as u64, edge.since];
        self.has_twins |= self.edge_rows.last() == Some(&(row as u32))
            && self.edge_types.last() == Some(&edge.edge_type)
            && self.targets.last() == Some(&edge.target);
        if self.row_times.created.len() == row {
            self.row_times.push(times);
        }
        if self.edge_times.is_empty() && self.row_times.of(row) != times {
            for row in &self.edge_rows {
                self.edge_times.push(self.row_times.of(*row as usize));
            }
            self.edge_times.push(times);
        } else if !self.edge_times.is_empty() {
            self.edge_times.push(times);
        }
        if self.weights.is_empty() && edge.weight != 1.0 {
            self.weights.resize(at, 1.0);
        }
        if edge.weight != 1.0 || !self.weights.is_empty() {
            self.weights.push(edge.weight);
        }
        if self.metadata_ends.is_empty() && !edge.metadata.is_empty() {
            self.metadata_ends.resize(at, 0);
        }
        if !edge.metadata.is_empty() || !self.metadata_ends.is_empty() {
            self.metadata.extend_from_slice(edge.metadata.as_bytes());
            self.metadata_ends.push(self.metadata.len() as u32);
        }
        self.targets.push(edge.target);
        self.edge_types.push(edge.edge_type);
        self.edge_rows.push(row as u32);
        self.in_counts[edge.target as usize + 1] += 1;
    }

    /// Error: `limit_exceeded` where the segment would outgrow its 32-bit counts.
    pub fn finish(mut self, id: u64, keys: &[&str], types: &[&str]) -> Result<Segment, EngineError> {
        let (key_starts, key_text) = joined(keys);
        let (type_starts, type_text) = joined(types);
        let sizes = [self.targets.len(), keys.len(), key_text.len(), type_text.len(), self.metadata.len()];
        if sizes.into_iter().any(|size| size > COUNT_MAX) {
            let message = "a graph index of one range has more than 2^32 edges, or bytes of keys or metadata";
            return Err(EngineError::new("limit_exceeded", message));
        }
        self.row_starts.push(self.targets.len() as u32);
        let (in_starts, in_rows, in_edges) = self.edges_by_target(types.len());
        let slots = slots_of(keys);
        let has = |flag: u32, is_set: bool| if is_set { flag } else { 0 };
        let flags = has(HAS_WEIGHTS, !self.weights.is_empty())
            | has(HAS_EDGE_TIMES, !self.edge_times.is_empty())
            | has(HAS_TWINS, self.has_twins);
        let counts = Counts {
            rows: self.ordinals.len(),
            nodes: keys.len(),
            edges: self.targets.len(),
            types: types.len(),
            slots: slots.len(),
            key_bytes: key_text.len(),
            type_bytes: type_text.len(),
            metadata_bytes: self.metadata.len(),
            flags,
        };
        let mut metadata_starts = Vec::new();
        if !self.metadata_ends.is_empty() {
            metadata_starts.push(0);
            metadata_starts.append(&mut self.metadata_ends);
        }
        let bytes = PlainBytes::copied(&[
            bytes_of(&header_of(&counts)),
            bytes_of(&self.ordinals),
            bytes_of(&self.row_nodes),
            bytes_of(&self.row_starts),
            bytes_of(&self.row_times.created),
            bytes_of(&self.row_times.updated),
            bytes_of(&self.row_times.since),
            bytes_of(&self.targets),
            &narrowed(&self.edge_types, counts.type_width()),
            bytes_of(&self.weights),
            bytes_of(&self.edge_times.created),
            bytes_of(&self.edge_times.updated),
            bytes_of(&self.edge_times.since),
            bytes_of(&metadata_starts),
            &self.metadata,
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

    /// Where the edges of each target begin, their rows, and the edges themselves, in the order of types and then of
    /// sources: counting sorts, the last of them by target.
    fn edges_by_target(&mut self, type_count: usize) -> (Vec<u32>, Vec<u32>, Vec<u32>) {
        let mut order: Vec<u32> = Vec::with_capacity(self.targets.len());
        for row in self.node_rows.iter().filter_map(|row| (*row as usize).checked_sub(1)) {
            order.extend(self.row_starts[row]..self.row_starts[row + 1]);
        }
        if type_count > 1 {
            order = self.sorted_by_type(&order, type_count);
        }
        for node in 1..self.in_counts.len() {
            self.in_counts[node] += self.in_counts[node - 1];
        }
        let starts = self.in_counts.clone();
        let (mut rows, mut edges) = (vec![0u32; self.targets.len()], vec![0u32; self.targets.len()]);
        for edge in order {
            let target = self.targets[edge as usize] as usize;
            let at = self.in_counts[target] as usize;
            self.in_counts[target] += 1;
            rows[at] = self.edge_rows[edge as usize];
            edges[at] = edge;
        }
        (starts, rows, edges)
    }

    fn sorted_by_type(&self, order: &[u32], type_count: usize) -> Vec<u32> {
        let mut next = vec![0usize; type_count + 1];
        for edge_type in &self.edge_types {
            next[*edge_type as usize + 1] += 1;
        }
        for edge_type in 1..next.len() {
            next[edge_type] += next[edge_type - 1];
        }
        let mut sorted = vec![0; order.len()];
        for edge in order {
            let at = &mut next[self.edge_types[*edge as usize] as usize];
            sorted[*at] = *edge;
            *at += 1;
        }
        sorted
    }
}

fn header_of(counts: &Counts) -> [u32; HEADER_WORDS] {
    let Counts { rows, nodes, edges, types, slots, key_bytes, type_bytes, metadata_bytes, flags } = *counts;
    let mut header = [0u32; HEADER_WORDS];
    header[0] = SEGMENT_FORMAT;
    let words = [rows, nodes, edges, types, slots, key_bytes, type_bytes, metadata_bytes];
    for (word, count) in header[1..].iter_mut().zip(words) {
        *word = count as u32;
    }
    header[9] = flags;
    header
}

/// The types of edges in `width` bytes each.
fn narrowed(edge_types: &[u32], width: usize) -> Vec<u8> {
    edge_types.iter().flat_map(|edge_type| edge_type.to_le_bytes().into_iter().take(width)).collect()
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
