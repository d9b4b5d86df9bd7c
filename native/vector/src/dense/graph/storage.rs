//! The bytes of a graph and access to them.

use std::fs::File;
use std::sync::atomic::{AtomicU32, Ordering};

use memmap2::{Mmap, MmapMut};
use sundew_base::error::EngineError;

use super::super::options::Metric;
use super::code_kernels::{NodeCodes, dots};
use super::codes::{CodedQuery, encode, node_norm, squared_norm, weights};
use super::layout::{GRAPH_MAGIC, HEADER_BYTES, Layout, NODE_HEAD_BYTES};
use crate::errors::{damaged, io_failed};

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
    start: *const u8,
    owner: Owner,
}

// SAFETY: after `new` and `add_rows`, which have the graph for themselves, only links change, and they are atomics.
unsafe impl Send for Graph {}
// SAFETY: as above.
unsafe impl Sync for Graph {}

/// What a node says of its vector.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct NodeHead {
    pub scale: f32,
    pub norm: f32,
    pub code_sum: i32,
    pub upper: u32,
}

pub const NO_UPPER: u32 = u32::MAX;

impl Graph {
    /// A graph of zero bytes with room for `layout.rows` rows.
    fn allocate(metric: Metric, layout: Layout) -> Result<Self, EngineError> {
        let memory = MmapMut::map_anon(layout.bytes.max(1)).map_err(io_failed("allocate a graph"))?;
        #[cfg(target_os = "linux")]
        {
            // Fewer misses when addresses are translated; a kernel without huge pages refuses, which does not matter.
            let _ = memory.advise(memmap2::Advice::HugePage);
        }
        let start = memory.as_ptr();
        Ok(Self { metric, layout, entry: 0, top_level: 0, longest: 0.0, start, owner: Owner::Memory(memory) })
    }

    /// The rows of `grown`, with their links, and unlinked nodes for `added` rows: ordinal, sequence, vector, level.
    pub fn new<'a>(
        metric: Metric,
        links: usize,
        dimension: usize,
        grown: Option<&Self>,
        added: &[AddedRow<'a>],
    ) -> Result<Self, EngineError> {
        let (old_rows, old_words) = grown.map_or((0, 0), |old| (old.layout.rows, old.layout.upper_words));
        let block = links + 1;
        let words = old_words + added.iter().map(|row| row.level as usize * block).sum::<usize>();
        let layout = Layout::new(dimension, old_rows + added.len(), links, words);
        let mut graph = Self::allocate(metric, layout)?;
        let length = |row: &AddedRow| row.vector.iter().map(|value| value * value).sum::<f32>().sqrt();
        graph.longest = added.iter().map(length).fold(grown.map_or(0.0, |old| old.longest), f32::max);
        if let Some(old) = grown {
            graph.copy(old);
        }
        graph.write_added(old_rows, old_words, added);
        Ok(graph)
    }

    fn memory(&mut self) -> &mut [u8] {
        match &mut self.owner {
            Owner::Memory(memory) => memory,
            Owner::File(_) => unreachable!("a graph of a file is never written"),
        }
    }

    fn copy(&mut self, old: &Self) {
        let (from, to) = (old.layout, self.layout);
        assert_eq!((from.stride, from.links), (to.stride, to.links), "a graph grows in its own shape");
        let regions = [
            (HEADER_BYTES, HEADER_BYTES, from.rows * from.stride),
            (from.ordinals_at, to.ordinals_at, from.rows * 4),
            (from.sequences_at, to.sequences_at, from.rows * 8),
            (from.upper_at, to.upper_at, from.upper_words * 4),
        ];
        let bytes = old.bytes();
        let memory = self.memory();
        for (from, to, length) in regions {
            memory[to..to + length].copy_from_slice(&bytes[from..from + length]);
        }
        (self.entry, self.top_level) = (old.entry, old.top_level);
        // Longer vectors change the coordinate that all others are lengthened by.
        if self.metric == Metric::InnerProduct && self.longest > old.longest {
            let longest = self.longest;
            for place in 0..from.rows as u32 {
                let norm = node_norm(self.metric, squared_norm(self.codes(place), self.head(place).scale), longest);
                let at = HEADER_BYTES + place as usize * to.stride;
                self.memory()[at + 4..at + 8].copy_from_slice(&norm.to_le_bytes());
            }
        }
    }

    fn write_added(&mut self, old_rows: usize, old_words: usize, added: &[AddedRow<'_>]) {
        let (layout, metric, longest) = (self.layout, self.metric, self.longest);
        let mut word = old_words;
        let memory = self.memory();
        let mut codes = vec![0i8; layout.dimension];
        for (row, place) in added.iter().zip(old_rows..) {
            let (scale, code_sum) = encode(row.vector, &mut codes);
            let norm = node_norm(metric, squared_norm(&codes, scale), longest);
            let upper = if row.level == 0 { NO_UPPER } else { word as u32 };
            word += row.level as usize * layout.upper_block();
            let node = &mut memory[HEADER_BYTES + place * layout.stride..][..layout.stride];
            node[0..4].copy_from_slice(&scale.to_le_bytes());
            node[4..8].copy_from_slice(&norm.to_le_bytes());
            node[8..12].copy_from_slice(&code_sum.to_le_bytes());
            node[12..16].copy_from_slice(&upper.to_le_bytes());
            let bytes = node[NODE_HEAD_BYTES..].iter_mut();
            bytes.zip(&codes).for_each(|(byte, code)| *byte = *code as u8);
            memory[layout.ordinals_at + 4 * place..][..4].copy_from_slice(&row.ordinal.to_le_bytes());
            memory[layout.sequences_at + 8 * place..][..8].copy_from_slice(&row.sequence.to_le_bytes());
        }
    }

    /// Writes the header, when nothing changes any more.
    pub fn seal(&mut self) {
        let layout = self.layout;
        let mut header = [0u8; HEADER_BYTES];
        header[0..4].copy_from_slice(&GRAPH_MAGIC.to_le_bytes());
        header[4..8].copy_from_slice(&(layout.dimension as u32).to_le_bytes());
        header[8..16].copy_from_slice(&(layout.rows as u64).to_le_bytes());
        header[16..20].copy_from_slice(&(layout.links as u32).to_le_bytes());
        header[20..24].copy_from_slice(&self.entry.to_le_bytes());
        header[24..28].copy_from_slice(&self.top_level.to_le_bytes());
        header[28..32].copy_from_slice(&self.longest.to_le_bytes());
        header[32..40].copy_from_slice(&(layout.upper_words as u64).to_le_bytes());
        self.memory()[..HEADER_BYTES].copy_from_slice(&header);
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
        let layout = Layout::new(dimension, rows, links, word(32) as usize);
        if word(4) as usize != dimension || word(8) as usize != rows || layout.bytes != map.len() {
            return Err(damaged("a graph file whose lengths do not add up"));
        }
        let (entry, top_level, longest) = (word(20), word(24), f32::from_bits(word(28)));
        if entry as usize >= rows {
            return Err(damaged("a graph file whose entry is none of its rows"));
        }
        Ok(Self { metric, layout, entry, top_level, longest, start: map.as_ptr(), owner: Owner::File(map) })
    }

    pub fn bytes(&self) -> &[u8] {
        match &self.owner {
            Owner::Memory(memory) => &memory[..self.layout.bytes],
            Owner::File(map) => map,
        }
    }

    #[inline(always)]
    pub fn node(&self, place: u32) -> *const u8 {
        debug_assert!((place as usize) < self.layout.rows);
        // SAFETY: callers give places below the number of rows.
        unsafe { self.start.add(HEADER_BYTES + place as usize * self.layout.stride) }
    }

    #[inline(always)]
    pub fn head(&self, place: u32) -> NodeHead {
        // SAFETY: every node begins with its head, which does not change once the graph is shared.
        unsafe { self.node(place).cast::<NodeHead>().read() }
    }

    pub fn codes(&self, place: u32) -> &[i8] {
        // SAFETY: `dimension` codes follow the head and do not change once the graph is shared.
        unsafe { std::slice::from_raw_parts(self.node(place).add(NODE_HEAD_BYTES).cast(), self.layout.dimension) }
    }

    /// Count and places of the node's links in a layer; empty where the node has no such layer.
    #[inline(always)]
    pub fn links(&self, place: u32, level: u32) -> &[AtomicU32] {
        if level == 0 {
            // SAFETY: count and twice `links` places lie at `links_at` of every node, aligned to 4.
            return unsafe {
                let at = self.node(place).add(self.layout.links_at);
                std::slice::from_raw_parts(at.cast(), 2 * self.layout.links + 1)
            };
        }
        let upper = self.head(place).upper;
        if upper == NO_UPPER {
            return &[];
        }
        let block = self.layout.upper_block();
        let from = upper as usize + (level as usize - 1) * block;
        // SAFETY: `upper_words` words lie at `upper_at`, aligned to 4.
        let words: &[AtomicU32] =
            unsafe { std::slice::from_raw_parts(self.start.add(self.layout.upper_at).cast(), self.layout.upper_words) };
        words.get(from..from + block).unwrap_or_default()
    }

    pub fn set_links(links: &[AtomicU32], places: impl ExactSizeIterator<Item = u32>) {
        let count = places.len() as u32;
        for (link, place) in links[1..].iter().zip(places) {
            link.store(place, Ordering::Relaxed);
        }
        links[0].store(count, Ordering::Release);
    }

    pub fn ordinal(&self, place: u32) -> u32 {
        self.column(self.layout.ordinals_at)[place as usize]
    }

    pub fn ordinals(&self) -> &[u32] {
        self.column(self.layout.ordinals_at)
    }

    pub fn sequence(&self, place: u32) -> u64 {
        self.column(self.layout.sequences_at)[place as usize]
    }

    fn column<T>(&self, at: usize) -> &[T] {
        // SAFETY: a column of `rows` integers lies at `at`, aligned to a cache line; it does not change once the graph
        // is shared.
        unsafe { std::slice::from_raw_parts(self.start.add(at).cast(), self.layout.rows) }
    }

    /// Has the head and the codes of a node brought near.
    #[inline(always)]
    pub fn prefetch(&self, place: u32) {
        prefetch(self.node(place), self.layout.links_at);
    }

    /// Has the links of a node in the lowest layer brought near.
    #[inline(always)]
    pub fn prefetch_links(&self, place: u32) {
        prefetch(self.node(place).wrapping_add(self.layout.links_at), self.layout.stride - self.layout.links_at);
    }

    /// The cost of each place, by codes.
    #[inline]
    pub fn costs(&self, query: &CodedQuery, places: &[u32], scratch: &mut Vec<i32>, costs: &mut Vec<f32>) {
        let weights = (query.base, query.slope, query.factor);
        self.costs_of(&query.codes, weights, places, scratch, costs);
    }

    /// The cost of each place for the vector of another place.
    #[inline]
    pub fn costs_between(&self, of: u32, places: &[u32], scratch: &mut Vec<i32>, costs: &mut Vec<f32>) {
        let head = self.head(of);
        self.costs_of(self.codes(of), weights(self.metric, head.scale, head.norm), places, scratch, costs);
    }

    #[inline(always)]
    fn costs_of(
        &self,
        codes: &[i8],
        (base, slope, factor): (f32, f32, f32),
        places: &[u32],
        scratch: &mut Vec<i32>,
        costs: &mut Vec<f32>,
    ) {
        assert_eq!(codes.len(), self.layout.dimension);
        scratch.resize(places.len(), 0);
        let nodes = NodeCodes { nodes: self.node(0), stride: self.layout.stride };
        // SAFETY: places come from links that were checked, or from the caller's own rows; the dimension is the graph's.
        unsafe { dots(codes, nodes, places, scratch) };
        costs.clear();
        costs.extend(places.iter().zip(scratch.iter()).map(|(&place, &dot)| {
            let head = self.head(place);
            base + slope * head.norm - factor * head.scale * dot as f32
        }));
    }
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

/// A row that a graph takes in.
#[derive(Debug, Clone, Copy)]
pub struct AddedRow<'a> {
    pub ordinal: u32,
    pub sequence: u64,
    pub vector: &'a [f32],
    /// Layers above the lowest.
    pub level: u32,
}
