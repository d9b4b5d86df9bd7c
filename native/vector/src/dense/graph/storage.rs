//! The bytes of a graph, read where they lie; `growth.rs` writes them.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::sync::atomic::{AtomicU32, Ordering};

use memmap2::{Mmap, MmapMut};
use sundew_base::error::{EngineError, damaged, io_failed};

use super::super::metric::Metric;
use super::code_kernels::{NodeCodes, dots};
use super::codes::{CodedQuery, weights};
use super::layout::{Counts, GRAPH_MAGIC, HEADER_BYTES, Layout, NODE_HEAD_BYTES};

#[cfg(target_endian = "big")]
compile_error!("graph files are read in place and are little-endian");

/// Keeps the bytes alive; nothing is read through it.
enum Owner {
    Memory(MmapMut),
    File(Mmap),
}

/// A graph whose links may still be set, by any number of threads, while others walk it.
pub struct Graph {
    pub metric: Metric,
    pub layout: Layout,
    /// Where walks begin, and the highest layer; meaningless without rows.
    pub entry: u32,
    pub top_level: u32,
    /// Length of the longest vector.
    pub longest: f32,
    /// Whether there is an entry.
    pub is_begun: bool,
    start: *const u8,
    owner: Owner,
}

// SAFETY: after `new` and `add_copies`, which have the graph for themselves, only links change, and they are atomics.
unsafe impl Send for Graph {}
// SAFETY: as above.
unsafe impl Sync for Graph {}

/// The head of a node, which describes its vector.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct NodeHead {
    pub scale: f32,
    pub norm: f32,
    pub code_sum: i32,
    pub(super) upper: u32,
}

pub(super) const NO_UPPER: u32 = u32::MAX;

/// Set in `upper` of a row that is a copy of a node, beside the row of that one.
pub(super) const IS_COPY: u32 = 1 << 31;

/// A row whose vector equals that of a node, its leader, or lies next to it. It has no links:
/// a search reaches it through its leader.
#[derive(Debug, Clone, Copy, PartialEq)]
#[repr(C)]
pub struct Copied {
    pub leader: u32,
    pub row: u32,
    /// From the leader, at most; 0 where the vectors are equal. The codes of others are those of the difference to the
    /// leader, so that near copies are told apart.
    pub distance: f32,
}

impl Graph {
    /// A graph of zero bytes, in memory or in a file, which nobody else uses.
    pub(super) fn allocate(metric: Metric, layout: Layout, file: Option<&File>) -> Result<Self, EngineError> {
        let memory = match file {
            Some(file) => map_zeros(file, layout.bytes.max(1)),
            None => MmapMut::map_anon(layout.bytes.max(1)),
        };
        let memory = memory.map_err(io_failed("allocate a graph"))?;
        #[cfg(target_os = "linux")]
        {
            // Fewer misses when addresses are translated; a kernel without huge pages refuses, which does not matter.
            let _ = memory.advise(memmap2::Advice::HugePage);
        }
        let start = memory.as_ptr();
        Ok(Self {
            metric,
            layout,
            entry: 0,
            top_level: 0,
            longest: 0.0,
            is_begun: false,
            start,
            owner: Owner::Memory(memory),
        })
    }

    pub(super) fn memory(&mut self) -> &mut [u8] {
        match &mut self.owner {
            Owner::Memory(memory) => memory,
            Owner::File(_) => unreachable!("a graph of a file is never written"),
        }
    }

    /// Opens a graph file in place. Its length and shape are checked, its links when they are followed.
    pub fn map(metric: Metric, file: &File, dimension: usize, rows: usize) -> Result<Self, EngineError> {
        // SAFETY: files of a checkpoint are never written again; whoever truncates them breaks the data directory.
        let map = unsafe { Mmap::map(file) }.map_err(io_failed("map a graph"))?;
        #[cfg(unix)]
        {
            // Walks read all over the file; a kernel that refuses reads page by page.
            let _ = map.advise(memmap2::Advice::WillNeed);
        }
        let word = |at: usize| u32::from_le_bytes([map[at], map[at + 1], map[at + 2], map[at + 3]]);
        if map.len() < HEADER_BYTES || word(0) != GRAPH_MAGIC {
            return Err(damaged("a graph file without its header"));
        }
        let links = word(16) as usize;
        let (upper_words, keys, copies) = (word(32) as usize, word(40) as usize, word(48) as usize);
        let layout = Layout::new(dimension, links, Counts { rows, upper_words, keys, copies });
        if word(4) as usize != dimension || word(8) as usize != rows || layout.bytes != map.len() {
            return Err(damaged("a graph file whose lengths do not add up"));
        }
        let (entry, top_level, longest) = (word(20), word(24), f32::from_bits(word(28)));
        if entry as usize >= rows {
            return Err(damaged("a graph file whose entry is none of its rows"));
        }
        Ok(Self {
            metric,
            layout,
            entry,
            top_level,
            longest,
            is_begun: true,
            start: map.as_ptr(),
            owner: Owner::File(map),
        })
    }

    pub fn bytes(&self) -> &[u8] {
        match &self.owner {
            Owner::Memory(memory) => &memory[..self.layout.bytes],
            Owner::File(map) => map,
        }
    }

    #[inline(always)]
    pub fn node(&self, row: u32) -> *const u8 {
        debug_assert!((row as usize) < self.layout.rows);
        // SAFETY: callers give rows below the number of rows.
        unsafe { self.start.add(HEADER_BYTES + row as usize * self.layout.stride) }
    }

    #[inline(always)]
    pub fn head(&self, row: u32) -> NodeHead {
        // SAFETY: every node begins with its head, which does not change once the graph is shared.
        unsafe { self.node(row).cast::<NodeHead>().read() }
    }

    pub fn codes(&self, row: u32) -> &[i8] {
        // SAFETY: `dimension` codes follow the head and do not change once the graph is shared.
        unsafe { std::slice::from_raw_parts(self.node(row).add(NODE_HEAD_BYTES).cast(), self.layout.dimension) }
    }

    /// The node that a row stands at: itself, or its leader.
    #[inline]
    pub fn leader_of(&self, row: u32) -> u32 {
        let upper = self.head(row).upper;
        // In a damaged file the leader may lie behind the last row.
        if upper != NO_UPPER && upper & IS_COPY != 0 {
            (upper & !IS_COPY).min(self.layout.rows as u32 - 1)
        } else {
            row
        }
    }

    /// All rows that are copies, by leader, then by distance.
    pub fn copies(&self) -> &[Copied] {
        // SAFETY: `copies` records of three numbers of four bytes lie at `copies_at`, aligned to 4; whatever is written
        // there has the graph for itself.
        unsafe { std::slice::from_raw_parts(self.start.add(self.layout.copies_at).cast(), self.layout.copies) }
    }

    /// The copies of a node, the nearest first.
    #[inline]
    pub fn copies_of(&self, leader: u32) -> &[Copied] {
        if self.layout.copies == 0 {
            return &[];
        }
        let copies = self.copies();
        let from = copies.partition_point(|copy| copy.leader < leader);
        let count = copies[from..].partition_point(|copy| copy.leader == leader);
        &copies[from..from + count]
    }

    /// The keys of vectors, ascending, and the row of each.
    pub(super) fn keys(&self) -> (&[u32], &[u32]) {
        // SAFETY: twice `keys` words lie at `keys_at`, aligned to 4; they do not change once the graph is shared.
        let words: &[u32] =
            unsafe { std::slice::from_raw_parts(self.start.add(self.layout.keys_at).cast(), 2 * self.layout.keys) };
        words.split_at(self.layout.keys)
    }

    /// The key of each row; 0 for one that has none.
    pub fn keys_by_row(&self) -> Vec<u32> {
        let mut by_row = vec![0; self.layout.rows];
        let (keys, rows) = self.keys();
        for (&key, &row) in keys.iter().zip(rows) {
            // In a damaged file the row may lie behind the last one.
            if let Some(entry) = by_row.get_mut(row as usize) {
                *entry = key;
            }
        }
        by_row
    }

    /// Some rows whose vectors have this key, most likely the one that has the vector of which the key was made.
    pub fn rows_with_key(&self, key: u32) -> &[u32] {
        const ROWS_MAX: usize = 16;
        let (keys, rows) = self.keys();
        let from = keys.partition_point(|&other| other < key);
        let count = keys[from..].iter().take(ROWS_MAX).take_while(|&&other| other == key).count();
        let rows = &rows[from..from + count];
        if rows.iter().all(|&row| (row as usize) < self.layout.rows) { rows } else { &[] }
    }

    /// The node's links in a layer, each the row + 1, 0 for none; empty where the node has no such layer.
    #[inline(always)]
    pub fn links(&self, row: u32, level: u32) -> &[AtomicU32] {
        let links = self.layout.links;
        if level == 0 {
            // SAFETY: twice `links` words for each row lie at `links_at`, aligned to 4.
            return unsafe { std::slice::from_raw_parts(self.links_at(row).cast(), 2 * links) };
        }
        let upper = self.head(row).upper;
        if upper & IS_COPY != 0 {
            return &[];
        }
        let from = upper as usize + (level as usize - 1) * links;
        // SAFETY: `upper_words` words lie at `upper_at`, aligned to 4.
        let words: &[AtomicU32] =
            unsafe { std::slice::from_raw_parts(self.start.add(self.layout.upper_at).cast(), self.layout.upper_words) };
        words.get(from..from + links).unwrap_or_default()
    }

    #[inline(always)]
    fn links_at(&self, row: u32) -> *const u8 {
        debug_assert!((row as usize) < self.layout.rows);
        // SAFETY: callers give rows below the number of rows.
        unsafe { self.start.add(self.layout.links_at + row as usize * 8 * self.layout.links) }
    }

    /// Others may walk meanwhile: they see some of the old and some of the new links.
    pub fn set_links(links: &[AtomicU32], rows: impl ExactSizeIterator<Item = u32>) {
        let words = rows.map(|row| row + 1).chain(std::iter::repeat(0));
        links.iter().zip(words).for_each(|(link, word)| link.store(word, Ordering::Release));
    }

    pub fn ordinal(&self, row: u32) -> u32 {
        self.column(self.layout.ordinals_at)[row as usize]
    }

    pub fn ordinals(&self) -> &[u32] {
        self.column(self.layout.ordinals_at)
    }

    pub fn sequence(&self, row: u32) -> u64 {
        self.column(self.layout.sequences_at)[row as usize]
    }

    pub fn number(&self, row: u32) -> u16 {
        self.column(self.layout.numbers_at)[row as usize]
    }

    fn column<T>(&self, at: usize) -> &[T] {
        // SAFETY: a column of `rows` integers lies at `at`, aligned to its integers; it does not change once the graph
        // is shared.
        unsafe { std::slice::from_raw_parts(self.start.add(at).cast(), self.layout.rows) }
    }

    /// Has the head and the codes of a node brought near.
    #[inline(always)]
    pub fn prefetch(&self, row: u32) {
        prefetch(self.node(row), NODE_HEAD_BYTES + self.layout.dimension);
    }

    /// Has the links of a node in the lowest layer brought near.
    #[inline(always)]
    pub fn prefetch_links(&self, row: u32) {
        prefetch(self.links_at(row), 8 * self.layout.links);
    }

    /// The cost of each row, by codes.
    #[inline]
    pub fn costs(&self, query: &CodedQuery, rows: &[u32], scratch: &mut Vec<i32>, costs: &mut Vec<f32>) {
        let weights = (query.base, query.slope, query.factor);
        self.costs_of(&query.codes, weights, rows, scratch, costs);
    }

    /// The cost of each row for the vector of another row.
    #[inline]
    pub fn costs_between(&self, of: u32, rows: &[u32], scratch: &mut Vec<i32>, costs: &mut Vec<f32>) {
        let head = self.head(of);
        self.costs_of(self.codes(of), weights(self.metric, head.scale, head.norm), rows, scratch, costs);
    }

    /// Square of the distance between what the codes of two nodes stand for.
    pub fn squared_distance_between(&self, a: u32, b: u32) -> f32 {
        let scales = [self.head(a).scale, self.head(b).scale];
        let codes = self.codes(a).iter().zip(self.codes(b));
        codes.map(|(&a, &b)| (scales[0] * f32::from(a) - scales[1] * f32::from(b)).powi(2)).sum()
    }

    #[inline(always)]
    fn costs_of(
        &self,
        codes: &[i8],
        (base, slope, factor): (f32, f32, f32),
        rows: &[u32],
        scratch: &mut Vec<i32>,
        costs: &mut Vec<f32>,
    ) {
        assert_eq!(codes.len(), self.layout.dimension);
        scratch.resize(rows.len(), 0);
        let nodes = NodeCodes { nodes: self.node(0), stride: self.layout.stride };
        // SAFETY: rows come from links that were checked, or from the caller's own rows; the dimension is the graph's.
        unsafe { dots(codes, nodes, rows, scratch) };
        costs.clear();
        costs.extend(rows.iter().zip(scratch.iter()).map(|(&row, &dot)| {
            let head = self.head(row);
            base + slope * head.norm - factor * head.scale * dot as f32
        }));
    }
}

/// The zeros are written, because a disk that is full is met by a write as an error, but by a map as a signal.
fn map_zeros(mut file: &File, bytes: usize) -> io::Result<MmapMut> {
    file.set_len(0)?;
    file.seek(SeekFrom::Start(0))?;
    io::copy(&mut io::repeat(0).take(bytes as u64), &mut file)?;
    // SAFETY: the graph has the file for itself until it is sealed.
    unsafe { MmapMut::map_mut(file) }
}

/// Has bytes brought near that will be read soon; does nothing where that has no name.
#[inline(always)]
pub fn prefetch(start: *const u8, bytes: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let into_line = start as usize % 64;
        for line in (0..into_line + bytes).step_by(64) {
            // SAFETY: a prefetch reads nothing, so the address need not be one.
            unsafe { _mm_prefetch(start.wrapping_sub(into_line).wrapping_add(line).cast(), _MM_HINT_T0) };
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (start, bytes);
}
