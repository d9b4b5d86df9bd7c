//! Rows that a graph holds: their codes and links in the graph, their float32 values in a file of their own.

use std::sync::{Arc, OnceLock};

use crate::dense::graph::{Graph, prefetch};
use crate::dense::rows::row_store::RowStore;
use crate::dense::segment_files::WrittenFile;
use sundew_base::bit_set::BitSet;

const PREFETCHED_BYTES: usize = 512;

/// Looking for the row of an ordinal costs as much as scanning this many rows.
const SEARCH_COST: usize = 16;

pub struct GraphRows {
    pub graph: Graph,
    /// The file that the graph lies in; none of one in memory.
    pub written: Option<WrittenFile>,
    pub rows: Arc<RowStore>,
    /// Rows by ordinal, equal ones by row; made when it is first needed.
    by_ordinal: OnceLock<Option<Vec<u32>>>,
    /// Blocks of 64 rows whose ordinals follow one another without a gap, as those of rows that were written one after
    /// another do; made when it is first needed.
    runs: OnceLock<BitSet>,
    /// The rows that are copies; made when it is first needed.
    copies: OnceLock<BitSet>,
}

impl std::fmt::Debug for GraphRows {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "GraphRows({})", self.len())
    }
}

impl GraphRows {
    pub fn in_memory(graph: Graph, rows: RowStore) -> Self {
        Self::new(graph, None, Arc::new(rows))
    }

    /// `written`: the file in which `graph` lies.
    pub fn in_file(graph: Graph, written: WrittenFile, rows: Arc<RowStore>) -> Self {
        Self::new(graph, Some(written), rows)
    }

    fn new(graph: Graph, written: Option<WrittenFile>, rows: Arc<RowStore>) -> Self {
        let (by_ordinal, runs, copies) = Default::default();
        Self { graph, written, rows, by_ordinal, runs, copies }
    }

    pub fn len(&self) -> usize {
        self.graph.layout.rows
    }

    pub fn vector(&self, row: u32) -> &[f32] {
        self.rows.vector(row, self.graph.layout.dimension)
    }

    /// Makes what is made when it is first needed, so that no search waits for it.
    pub fn prepare(&self) {
        self.by_ordinal();
        self.runs();
        self.copies();
    }

    /// Rows that walks and scans go by: all but the copies.
    pub fn node_count(&self) -> usize {
        self.len() - self.graph.copies().len()
    }

    fn copies(&self) -> &BitSet {
        self.copies.get_or_init(|| {
            let mut copies = BitSet::with_room(self.len());
            self.graph.copies().iter().for_each(|copy| {
                copies.insert(copy.row);
            });
            copies
        })
    }

    /// The nodes at which any of the rows stands.
    pub fn nodes_of(&self, rows: BitSet) -> BitSet {
        if self.graph.copies().is_empty() {
            return rows;
        }
        let copies = self.copies();
        let words = rows.words().iter().zip(copies.words());
        let mut nodes = BitSet::from_words(words.clone().map(|(rows, copies)| rows & !copies).collect());
        let among = BitSet::from_words(words.map(|(rows, copies)| rows & copies).collect());
        among.iter().for_each(|row| {
            nodes.insert(self.graph.leader_of(row));
        });
        nodes
    }

    /// `None` where the rows themselves are in the order of the ordinals.
    fn by_ordinal(&self) -> Option<&Vec<u32>> {
        let ordinals = self.graph.ordinals();
        let order = self.by_ordinal.get_or_init(|| {
            if ordinals.is_sorted() {
                return None;
            }
            let mut order: Vec<u32> = (0..ordinals.len() as u32).collect();
            order.sort_unstable_by_key(|&row| (ordinals[row as usize], row));
            Some(order)
        });
        order.as_ref()
    }

    fn runs(&self) -> &BitSet {
        let ordinals = self.graph.ordinals();
        self.runs.get_or_init(|| {
            let mut runs = BitSet::with_room(ordinals.len().div_ceil(64));
            for (block, at) in ordinals.as_chunks::<64>().0.iter().zip(0..) {
                if block.iter().zip(0..).all(|(&ordinal, step)| Some(ordinal) == block[0].checked_add(step)) {
                    runs.insert(at);
                }
            }
            runs
        })
    }

    /// The rows whose ordinals are in the set and that are not dead.
    pub fn rows_of(&self, set: &BitSet, dead: &BitSet) -> BitSet {
        let ordinals = self.graph.ordinals();
        let runs = self.runs();
        let blocks = ordinals.len().div_ceil(64);
        if set.len() * SEARCH_COST < blocks + 64 * (blocks - runs.len()) {
            let mut rows = BitSet::with_room(ordinals.len());
            for row in set.iter().flat_map(|ordinal| self.rows_of_document(ordinal)) {
                if !dead.contains(row) {
                    rows.insert(row);
                }
            }
            return rows;
        }
        let words = ordinals.chunks(64).zip(dead.words()).zip(0..).map(|((block, dead), at)| {
            let bits = if runs.contains(at) {
                set.bits_from(block[0])
            } else {
                block.iter().zip(0..).fold(0, |bits, (&at, bit)| bits | u64::from(set.contains(at)) << bit)
            };
            bits & !dead
        });
        BitSet::from_words(words.collect())
    }

    /// Has the beginning of a vector brought near; the processor sees the rest coming.
    pub fn prefetch(&self, row: u32) {
        let vector = self.vector(row);
        prefetch(vector.as_ptr().cast(), (vector.len() * 4).min(PREFETCHED_BYTES));
    }

    /// The rows of a document: those of its vectors, and dead ones of earlier vectors.
    pub fn rows_of_document(&self, ordinal: u32) -> impl Iterator<Item = u32> + '_ {
        let ordinals = self.graph.ordinals();
        let order = self.by_ordinal();
        let row_at = move |at: usize| order.map_or(at as u32, |order| order[at]);
        let first = match order {
            None => ordinals.partition_point(|&other| other < ordinal),
            Some(order) => order.partition_point(|&row| ordinals[row as usize] < ordinal),
        };
        (first..ordinals.len()).map(row_at).take_while(move |&row| ordinals[row as usize] == ordinal)
    }
}
