//! Where what lies in the bytes of a graph, in memory and in its file (all little-endian):
//!
//! ```text
//! header   64 bytes   0 magic u32, 4 dimension u32, 8 rows u64, 16 links u32, 20 entry u32, 24 top level u32,
//!                     28 longest vector f32, 32 upper words u64, 40 keys u64, 48 copies u64
//! nodes    rows x stride   0 scale f32, 4 norm f32, 8 sum of the codes i32, 12 first upper word u32 or, of a copy, its
//!                          leader with the highest bit set, 16 codes i8
//! links    rows x 2 x links u32   of the lowest layer: rows + 1, 0 for none
//! ordinals rows x u32      sequences rows x u64      numbers rows x u16, filled up to 4 bytes
//! keys     keys x u32, ascending, then the row of each u32
//! upper    words u32       for each layer above the lowest of a node that has some: `links` rows + 1
//! copies   copies x (leader u32, row u32, distance f32), by leader, then by distance
//! ```
//!
//! Codes lie apart from the links, so that a scan reads little else.

pub const HEADER_BYTES: usize = 64;
pub const NODE_HEAD_BYTES: usize = 16;
/// "SDG3"
pub const GRAPH_MAGIC: u32 = 0x3347_4453;
/// The leader, the row and the distance.
pub const COPY_BYTES: usize = 12;

const CACHE_LINE: usize = 64;
/// More would touch no fewer cache lines and leave more bytes empty.
const NODE_ALIGNMENT: usize = 16;

/// How much of everything a graph has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    pub rows: usize,
    pub upper_words: usize,
    pub keys: usize,
    pub copies: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    pub dimension: usize,
    pub rows: usize,
    /// Links of a node in each upper layer; twice as many in the lowest.
    pub links: usize,
    pub upper_words: usize,
    pub keys: usize,
    pub copies: usize,
    pub stride: usize,
    pub links_at: usize,
    pub ordinals_at: usize,
    pub sequences_at: usize,
    pub numbers_at: usize,
    pub keys_at: usize,
    pub upper_at: usize,
    pub copies_at: usize,
    pub bytes: usize,
}

impl Layout {
    pub fn new(dimension: usize, links: usize, counts: Counts) -> Self {
        let Counts { rows, upper_words, keys, copies } = counts;
        let stride = (NODE_HEAD_BYTES + dimension).next_multiple_of(NODE_ALIGNMENT);
        let links_at = (HEADER_BYTES + rows * stride).next_multiple_of(CACHE_LINE);
        let ordinals_at = (links_at + rows * 8 * links).next_multiple_of(CACHE_LINE);
        let sequences_at = (ordinals_at + 4 * rows).next_multiple_of(CACHE_LINE);
        let numbers_at = sequences_at + 8 * rows;
        let keys_at = (numbers_at + 2 * rows).next_multiple_of(4);
        let upper_at = keys_at + 8 * keys;
        let copies_at = upper_at + 4 * upper_words;
        let bytes = copies_at + COPY_BYTES * copies;
        Self {
            dimension,
            rows,
            links,
            upper_words,
            keys,
            copies,
            stride,
            links_at,
            ordinals_at,
            sequences_at,
            numbers_at,
            keys_at,
            upper_at,
            copies_at,
            bytes,
        }
    }

    pub fn counts(&self) -> Counts {
        Counts { rows: self.rows, upper_words: self.upper_words, keys: self.keys, copies: self.copies }
    }
}
