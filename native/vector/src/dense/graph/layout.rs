//! Where things lie in the bytes of a graph; the same in memory and in its file. Little-endian.
//!
//! ```text
//! header   64 bytes   0 magic u32, 4 dimension u32, 8 rows u64, 16 links u32, 20 entry u32, 24 top level u32,
//!                     28 longest vector f32, 32 upper words u64
//! nodes    rows x stride   0 scale f32, 4 norm f32, 8 sum of the codes i32, 12 first upper word u32, 16 codes i8,
//!                          then (aligned to 4) count u32 and 2 x links places u32 of the lowest layer
//! ordinals rows x u32      sequences rows x u64
//! upper    words u32       for each layer above the lowest of a node that has some: count, then `links` places
//! ```

pub const HEADER_BYTES: usize = 64;
pub const NODE_HEAD_BYTES: usize = 16;
/// "SDG1"
pub const GRAPH_MAGIC: u32 = 0x3147_4453;

const CACHE_LINE: usize = 64;
/// Whole cache lines would touch no fewer of them and leave more bytes empty.
const NODE_ALIGNMENT: usize = 32;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    pub dimension: usize,
    pub rows: usize,
    /// Links of a node in each upper layer; twice as many in the lowest.
    pub links: usize,
    pub upper_words: usize,
    pub stride: usize,
    /// Offset of the links in a node.
    pub links_at: usize,
    pub ordinals_at: usize,
    pub sequences_at: usize,
    pub upper_at: usize,
    pub bytes: usize,
}

impl Layout {
    pub fn new(dimension: usize, rows: usize, links: usize, upper_words: usize) -> Self {
        let links_at = (NODE_HEAD_BYTES + dimension).next_multiple_of(4);
        let stride = (links_at + 4 + 8 * links).next_multiple_of(NODE_ALIGNMENT);
        let ordinals_at = (HEADER_BYTES + rows * stride).next_multiple_of(CACHE_LINE);
        let sequences_at = (ordinals_at + 4 * rows).next_multiple_of(CACHE_LINE);
        let upper_at = sequences_at + 8 * rows;
        let bytes = upper_at + 4 * upper_words;
        Self { dimension, rows, links, upper_words, stride, links_at, ordinals_at, sequences_at, upper_at, bytes }
    }

    /// Words of one upper layer of one node.
    pub fn upper_block(&self) -> usize {
        self.links + 1
    }
}
