//! The links of an index's graphs as a file.

use std::path::Path;

use sundew_base::error::{EngineError, io_failed};

use super::super::dense_index::DenseIndex;
use super::super::graph::Graph;
use super::super::segment::Segment;
use super::link_file::{LinkedNode, write_link_file};

/// A node and the segment that it lies in.
#[derive(Clone, Copy)]
struct Placed {
    node: LinkedNode,
    segment: u32,
    row: u32,
}

impl DenseIndex {
    /// Writes the links of the lowest layer, as the last commit has them, into a file; gives its bytes, and 0 without a file
    /// where no graph has any. Rows without a graph and copies are left out, and so is what leads to them.
    pub fn write_links(&self, path: &Path) -> Result<u64, EngineError> {
        let snapshot = self.snapshot();
        let graphs: Vec<(&Segment, &Graph)> = snapshot
            .segments
            .iter()
            .filter_map(|segment| segment.rows.as_graph().map(|rows| (segment, &rows.graph)))
            .collect();
        let mut placed: Vec<Placed> = Vec::new();
        for (&(segment, graph), at) in graphs.iter().zip(0..) {
            let keys = graph.keys_by_row();
            let is_node = |row: &u32| !segment.dead.contains(*row) && graph.leader_of(*row) == *row;
            let live = (0..graph.layout.rows as u32).filter(is_node);
            placed.extend(live.map(|row| {
                let node =
                    LinkedNode { ordinal: graph.ordinal(row), number: graph.number(row), key: keys[row as usize] };
                Placed { node, segment: at, row }
            }));
        }
        if placed.is_empty() {
            return Ok(0);
        }
        placed.sort_by_key(|placed| (placed.node.ordinal, placed.node.number));
        // By segment and row, where among all nodes it is, from 1 on.
        let mut places: Vec<Vec<u32>> = graphs.iter().map(|(_, graph)| vec![0; graph.layout.rows]).collect();
        for (placed, place) in placed.iter().zip(1..) {
            places[placed.segment as usize][placed.row as usize] = place;
        }
        let links_of = |place: u32, links: &mut Vec<u32>| {
            let Placed { segment, row, .. } = placed[place as usize];
            let (graph, places) = (graphs[segment as usize].1, &places[segment as usize]);
            links.extend(graph.linked(row, 0).filter_map(|other| places[other as usize].checked_sub(1)));
            links.sort_unstable();
            graph.linked(row, 0).count()
        };
        write_link_file(path, placed.iter().map(|placed| placed.node), links_of).map_err(io_failed("write links"))
    }
}
