//! A segment of the index: rows that never change, and which of them are dead.

use std::sync::Arc;

use super::rows::flat_rows::FlatRows;
use super::rows::graph_rows::GraphRows;
use sundew_base::bit_set::BitSet;

#[derive(Debug, Clone)]
pub enum SegmentRows {
    /// Few rows, which are scanned.
    Flat(Arc<FlatRows>),
    Graph(Arc<GraphRows>),
}

impl SegmentRows {
    pub fn len(&self) -> usize {
        match self {
            Self::Flat(rows) => rows.len(),
            Self::Graph(rows) => rows.len(),
        }
    }

    pub fn as_flat(&self) -> Option<&FlatRows> {
        match self {
            Self::Flat(rows) => Some(rows),
            Self::Graph(_) => None,
        }
    }

    pub fn as_graph(&self) -> Option<&Arc<GraphRows>> {
        match self {
            Self::Flat(_) => None,
            Self::Graph(rows) => Some(rows),
        }
    }

    pub fn ordinal(&self, row: u32) -> u32 {
        match self {
            Self::Flat(rows) => rows.ordinals[row as usize],
            Self::Graph(rows) => rows.graph.ordinal(row),
        }
    }

    /// Of the vector among those of its document.
    pub fn number(&self, row: u32) -> u16 {
        match self {
            Self::Flat(rows) => rows.numbers[row as usize],
            Self::Graph(rows) => rows.graph.number(row),
        }
    }

    pub fn sequence(&self, row: u32) -> u64 {
        match self {
            Self::Flat(rows) => rows.sequences[row as usize],
            Self::Graph(rows) => rows.graph.sequence(row),
        }
    }

    pub fn vector(&self, row: u32) -> &[f32] {
        match self {
            Self::Flat(rows) => rows.vector(row),
            Self::Graph(rows) => rows.vector(row),
        }
    }

    pub fn memory_bytes(&self) -> usize {
        match self {
            Self::Flat(rows) => rows.memory_bytes(),
            Self::Graph(rows) => rows.graph.layout.bytes + rows.rows.memory_bytes(),
        }
    }
}

#[derive(Debug, Clone)]
pub struct Segment {
    /// Unique within the index, never used again; names the files.
    pub id: u64,
    pub rows: SegmentRows,
    pub dead: Arc<BitSet>,
    /// Whose vectors live here; those of one document are all in one segment.
    pub document_count: usize,
}

impl Segment {
    pub fn new(id: u64, rows: SegmentRows, document_count: usize) -> Self {
        let dead = Arc::new(BitSet::with_room(rows.len()));
        Self { id, rows, dead, document_count }
    }

    /// Vectors.
    pub fn live_count(&self) -> usize {
        self.rows.len() - self.dead.len()
    }

    /// Takes the vectors of a document out. Whether there were any here.
    pub fn kill(&mut self, ordinal: u32) -> bool {
        let live: Vec<u32> = match &self.rows {
            SegmentRows::Flat(rows) => rows.rows_of(ordinal).filter(|&row| !self.dead.contains(row)).collect(),
            SegmentRows::Graph(rows) => {
                rows.rows_of_document(ordinal).filter(|&row| !self.dead.contains(row)).collect()
            }
        };
        if live.is_empty() {
            return false;
        }
        let dead = Arc::make_mut(&mut self.dead);
        live.into_iter().for_each(|row| {
            dead.insert(row);
        });
        self.document_count -= 1;
        true
    }

    pub fn memory_bytes(&self) -> usize {
        self.rows.memory_bytes() + self.dead.words().len() * 8
    }
}

/// The state that searches see: one commit.
#[derive(Debug, Default)]
pub struct Snapshot {
    pub sequence: u64,
    pub segments: Vec<Segment>,
}

impl Snapshot {
    /// Vectors.
    pub fn live_count(&self) -> usize {
        self.segments.iter().map(Segment::live_count).sum()
    }

    pub fn document_count(&self) -> usize {
        self.segments.iter().map(|segment| segment.document_count).sum()
    }
}
