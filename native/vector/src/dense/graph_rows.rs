//! Rows that a graph holds: their codes and links in the graph, their float32 values in a file of their own.

use std::sync::{Arc, OnceLock};

use super::graph::{Graph, prefetch};
use super::row_store::RowStore;

const PREFETCHED_BYTES: usize = 512;

pub struct GraphRows {
    pub graph: Graph,
    pub rows: RowStore,
    /// Places by ordinal, equal ones by place; made when it is first needed.
    by_ordinal: OnceLock<Option<Vec<u32>>>,
}

impl std::fmt::Debug for GraphRows {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "GraphRows({})", self.len())
    }
}

impl GraphRows {
    pub fn new(graph: Graph, rows: RowStore) -> Arc<Self> {
        Arc::new(Self { graph, rows, by_ordinal: OnceLock::new() })
    }

    pub fn len(&self) -> usize {
        self.graph.layout.rows
    }

    pub fn vector(&self, place: u32) -> &[f32] {
        self.rows.vector(place, self.graph.layout.dimension)
    }

    /// Has the beginning of a vector brought near; the processor sees the rest coming.
    pub fn prefetch(&self, place: u32) {
        let vector = self.vector(place);
        prefetch(vector.as_ptr().cast(), (vector.len() * 4).min(PREFETCHED_BYTES));
    }

    /// The last place of the ordinal. Earlier ones are dead.
    pub fn place_of(&self, ordinal: u32) -> Option<u32> {
        let ordinals = self.graph.ordinals();
        let order = self.by_ordinal.get_or_init(|| {
            if ordinals.is_sorted() {
                return None;
            }
            let mut order: Vec<u32> = (0..ordinals.len() as u32).collect();
            order.sort_unstable_by_key(|&place| (ordinals[place as usize], place));
            Some(order)
        });
        let place = match order {
            None => ordinals.partition_point(|&other| other <= ordinal).checked_sub(1)? as u32,
            Some(order) => {
                let after = order.partition_point(|&place| ordinals[place as usize] <= ordinal);
                order[after.checked_sub(1)?]
            }
        };
        (ordinals[place as usize] == ordinal).then_some(place)
    }
}
