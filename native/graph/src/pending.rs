//! The rows of the next commit.

use std::collections::BTreeMap;
use std::ops::Range;

use sundew_base::error::EngineError;
use sundew_base::part::edges::read_edges;

use crate::names::Names;
use crate::segment::Segment;
use crate::segment_writer::{RowEdge, SegmentWriter};

/// The rows of a commit: what becomes of each document. Strings are kept once.
#[derive(Default)]
pub struct PendingRows {
    keys: Names,
    types: Names,
    /// By ordinal; none for a document that has no edges any more.
    rows: BTreeMap<u32, Option<PendingRow>>,
    edges: Vec<PendingEdge>,
    metadata: String,
}

struct PendingRow {
    key: u32,
    edges: Range<usize>,
}

struct PendingEdge {
    edge_type: u32,
    target: u32,
    weight: f32,
    created_ms: i64,
    updated_ms: i64,
    since: u64,
    metadata: Range<usize>,
}

impl PendingRows {
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Ordinals of the documents, ascending.
    pub fn ordinals(&self) -> impl Iterator<Item = u32> + '_ {
        self.rows.keys().copied()
    }

    /// The document has no edges any more.
    pub fn remove(&mut self, ordinal: u32) {
        self.rows.insert(ordinal, None);
    }

    /// The document has the edges of a part that was written at `sequence`. Error: `internal` for a payload that cannot be
    /// read, of which nothing is taken.
    pub fn put(&mut self, ordinal: u32, key: &str, sequence: u64, payload: &[u8]) -> Result<(), EngineError> {
        let start = self.edges.len();
        for edge in read_edges(payload)? {
            let metadata_start = self.metadata.len();
            self.metadata.push_str(edge.metadata);
            self.edges.push(PendingEdge {
                edge_type: self.types.number(edge.edge_type),
                target: self.keys.number(edge.target),
                weight: edge.weight,
                created_ms: edge.created_ms,
                updated_ms: edge.updated_ms,
                since: if edge.since == 0 { sequence } else { edge.since },
                metadata: metadata_start..self.metadata.len(),
            });
        }
        let row = PendingRow { key: self.keys.number(key), edges: start..self.edges.len() };
        self.rows.insert(ordinal, Some(row));
        Ok(())
    }

    /// The rows as a segment; none where no document has edges. Error: `limit_exceeded` where it would outgrow its 32-bit
    /// counts.
    pub fn build(&self, id: u64) -> Result<Option<Segment>, EngineError> {
        let rows = || self.rows.iter().filter_map(|(ordinal, row)| Some((*ordinal, row.as_ref()?)));
        let row_count = rows().count();
        if row_count == 0 {
            return Ok(None);
        }
        let ((keys, key_ranks), (types, type_ranks)) = (self.keys.sorted(), self.types.sorted());
        let mut writer = SegmentWriter::with_room(row_count, self.edges.len(), keys.len());
        for (ordinal, row) in rows() {
            let edges = self.edges[row.edges.clone()].iter().map(|edge| RowEdge {
                edge_type: type_ranks[edge.edge_type as usize],
                target: key_ranks[edge.target as usize],
                weight: edge.weight,
                created_ms: edge.created_ms,
                updated_ms: edge.updated_ms,
                since: edge.since,
                metadata: &self.metadata[edge.metadata.clone()],
            });
            writer.row(ordinal, key_ranks[row.key as usize], edges);
        }
        writer.finish(id, &keys, &types).map(Some)
    }
}
