//! Merges segments.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use sundew_base::bit_set::BitSet;
use sundew_base::error::EngineError;

use crate::segment::{Columns, Segment};
use crate::segment_writer::{RowEdge, SegmentWriter};
use crate::snapshot::LiveSegment;

/// One segment of the live rows of several. Their names are sorted already: nothing is hashed but for the new table of keys.
///
/// Error: `limit_exceeded` where the segment would outgrow its 32-bit counts.
pub fn merged(id: u64, lives: &[LiveSegment]) -> Result<Segment, EngineError> {
    let columns: Vec<Columns<'_>> = lives.iter().map(|live| live.segment.columns()).collect();
    let mut rows: Vec<(u32, u32, u32)> = Vec::with_capacity(lives.iter().map(LiveSegment::live_rows).sum());
    let (mut used_keys, mut used_types) = (Vec::new(), Vec::new());
    for (at, (live, columns)) in lives.iter().zip(&columns).enumerate() {
        let mut keys = BitSet::with_room(columns.node_count() as usize);
        let mut types = BitSet::default();
        for (row, ordinal) in columns.ordinals.iter().enumerate().filter(|(row, _)| live.is_live(*row)) {
            rows.push((*ordinal, at as u32, row as u32));
            keys.insert(columns.row_nodes[row]);
            for edge in columns.row_edges(row) {
                keys.insert(columns.targets[edge]);
                types.insert(columns.edge_type(edge));
            }
        }
        used_keys.push(keys);
        used_types.push(types);
    }
    rows.sort_unstable();
    let (keys, key_ranks) = merged_names(&used_keys, |at, node| columns[at].key(node));
    let (types, type_ranks) = merged_names(&used_types, |at, edge_type| columns[at].type_name(edge_type));
    let edge_count = lives.iter().map(|live| live.live_edges).sum();
    let mut writer = SegmentWriter::with_room(rows.len(), edge_count, keys.len());
    for (ordinal, at, row) in rows {
        let (at, row) = (at as usize, row as usize);
        let (columns, key_ranks, type_ranks) = (&columns[at], &key_ranks[at], &type_ranks[at]);
        let edges = columns.row_edges(row).map(|edge| RowEdge {
            edge_type: type_ranks[columns.edge_type(edge) as usize],
            target: key_ranks[columns.targets[edge] as usize],
            weight: columns.weight(edge),
            created_ms: columns.created_ms(row, edge),
            updated_ms: columns.updated_ms(row, edge),
            since: columns.since(row, edge),
            metadata: columns.metadata(edge),
        });
        writer.row(ordinal, key_ranks[columns.row_nodes[row] as usize], edges);
    }
    writer.finish(id, &keys, &types)
}

/// Merges sorted lists of names of which `used` names the members. Returns the names, and of each list the new rank of each
/// member.
fn merged_names<'a>(used: &[BitSet], name: impl Fn(usize, u32) -> &'a str) -> (Vec<&'a str>, Vec<Vec<u32>>) {
    let mut lists: Vec<_> = used.iter().map(|used| used.iter()).collect();
    let mut ranks: Vec<Vec<u32>> = used.iter().map(|used| vec![0; used.words().len() * 64]).collect();
    let mut names: Vec<&str> = Vec::new();
    let mut heads = BinaryHeap::new();
    for (at, list) in lists.iter_mut().enumerate() {
        heads.extend(list.next().map(|member| Reverse((name(at, member), at, member))));
    }
    while let Some(Reverse((text, at, member))) = heads.pop() {
        if names.last() != Some(&text) {
            names.push(text);
        }
        ranks[at][member as usize] = names.len() as u32 - 1;
        heads.extend(lists[at].next().map(|member| Reverse((name(at, member), at, member))));
    }
    (names, ranks)
}
