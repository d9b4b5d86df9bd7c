//! Rows with equal vectors, and those that lie too near to a node to be told apart from it by codes: a graph takes them as
//! copies of one node.

use std::collections::HashMap;

use crate::dense::graph::{AddedRow, Copied, Graph};
use crate::dense::rows::graph_rows::GraphRows;

/// Rows with the same key that a vector is compared with, at most; more have the same key by somebody's design.
const COMPARED_MAX: usize = 16;

/// Equal for equal vectors, and for few others.
pub fn key_of(vector: &[f32]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    let mut bytes = [0u8; 256];
    for block in vector.chunks(64) {
        for (bytes, value) in bytes.as_chunks_mut::<4>().0.iter_mut().zip(block) {
            *bytes = value.to_le_bytes();
        }
        hasher.update(&bytes[..4 * block.len()]);
    }
    hasher.finalize()
}

/// Vectors of a graph that grows and of the rows that it takes in, by row.
#[derive(Clone, Copy)]
pub struct AllVectors<'a> {
    pub grown: Option<&'a GraphRows>,
    pub added: &'a [AddedRow<'a>],
}

impl<'a> AllVectors<'a> {
    pub fn first_added(&self) -> u32 {
        self.grown.map_or(0, |grown| grown.len() as u32)
    }

    pub fn vector(&self, row: u32) -> &'a [f32] {
        let first = self.first_added();
        match self.grown {
            Some(grown) if row < first => grown.vector(row),
            _ => self.added[(row - first) as usize].vector,
        }
    }

    /// For each added row the row of another one with an equal vector, if there is one: of one before it, or of a `leading` one.
    /// Keys must be there.
    pub fn twins(&self, is_leading: impl Fn(u32) -> bool) -> Vec<Option<u32>> {
        let first = self.first_added();
        let keyed = self.added.iter().zip(first..).filter_map(|(added, row)| added.key.map(|key| (key, row)));
        let mut order: Vec<(u32, bool, u32)> = keyed.map(|(key, row)| (key, !is_leading(row), row)).collect();
        order.sort_unstable();
        let mut twins = vec![None; self.added.len()];
        for alike in order.chunk_by(|a, b| a.0 == b.0) {
            let mut known: Vec<u32> =
                self.grown.map_or_else(Vec::new, |grown| grown.graph.rows_with_key(alike[0].0).to_vec());
            for &(_, _, row) in alike {
                let vector = self.vector(row);
                let twin = known.iter().copied().find(|&other| self.vector(other) == vector);
                twins[(row - first) as usize] = twin;
                if twin.is_none() && known.len() < COMPARED_MAX {
                    known.push(row);
                }
            }
        }
        twins
    }

    /// Makes copies of the rows that have been found to be near to a node, and of those that have a twin.
    pub fn add_copies(&self, graph: &mut Graph, near: Vec<Copied>, twins: &[Option<u32>]) {
        let known: HashMap<u32, Copied> = near.iter().map(|copy| (copy.row, *copy)).collect();
        let mut copies = near;
        for (&twin, row) in twins.iter().zip(self.first_added()..) {
            let Some(twin) = twin else { continue };
            let leader = graph.leader_of(twin);
            let of_leader = || graph.copies_of(leader).iter().find(|copy| copy.row == twin).copied();
            let copy = known.get(&twin).copied().or_else(|| if leader == twin { None } else { of_leader() });
            copies.push(copy.map_or(Copied { leader: twin, row, distance: 0.0 }, |copy| Copied { row, ..copy }));
        }
        graph.add_copies(&copies, |copy, difference| {
            difference.clear();
            let values = self.vector(copy.row).iter().zip(self.vector(copy.leader));
            difference.extend(values.map(|(value, leader)| value - leader));
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_vectors_are_twins_of_the_first() {
        let vectors = [[1.0f32, 2.0], [3.0, 4.0], [1.0, 2.0], [1.0, 2.5], [3.0, 4.0], [1.0, 2.0]];
        let added: Vec<AddedRow> = vectors
            .iter()
            .zip(0..)
            .map(|(vector, at)| AddedRow {
                ordinal: at,
                number: 0,
                sequence: u64::from(at) + 1,
                vector,
                level: 0,
                key: Some(key_of(vector)),
            })
            .collect();
        let all = AllVectors { grown: None, added: &added };
        assert_eq!(all.twins(|_| false), [None, None, Some(0), None, Some(1), Some(0)]);
        assert_eq!(all.twins(|row| row == 2), [Some(2), None, None, None, Some(1), Some(2)]);
    }
}
