//! The bytes of a graph and access to them.

use std::fs::File;
use std::sync::atomic::{AtomicU32, Ordering};

use memmap2::{Mmap, MmapMut};
use sundew_base::error::EngineError;

use super::super::metric::Metric;
use super::code_kernels::{NodeCodes, dots};
use super::codes::{CodedQuery, encode, node_norm, squared_norm, weights};
use super::layout::{COPY_BYTES, Counts, GRAPH_MAGIC, HEADER_BYTES, Layout, NODE_HEAD_BYTES};
use sundew_base::error::{damaged, io_failed};

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

// SAFETY: after `new` and `add_rows`, which have the graph for themselves, only links change, and they are atomics.
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
    upper: u32,
}

const NO_UPPER: u32 = u32::MAX;

/// Set in `upper` of a row that is a copy of a node, beside the row of that one.
const IS_COPY: u32 = 1 << 31;

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
    /// A graph of zero bytes.
    fn allocate(metric: Metric, layout: Layout) -> Result<Self, EngineError> {
        let memory = MmapMut::map_anon(layout.bytes.max(1)).map_err(io_failed("allocate a graph"))?;
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

    /// The rows of `grown`, with their links, and unlinked nodes for `added` rows. There is room for every added row to
    /// become a copy.
    pub fn new<'a>(
        metric: Metric,
        links: usize,
        dimension: usize,
        grown: Option<&Self>,
        added: &[AddedRow<'a>],
    ) -> Result<Self, EngineError> {
        let empty = Counts { rows: 0, upper_words: 0, keys: 0, copies: 0 };
        let old = grown.map_or(empty, |old| old.layout.counts());
        let upper_words = old.upper_words + added.iter().map(|row| row.level as usize * links).sum::<usize>();
        let keys = old.keys + added.iter().filter(|row| row.key.is_some()).count();
        let counts = Counts { rows: old.rows + added.len(), upper_words, keys, copies: old.copies + added.len() };
        let mut graph = Self::allocate(metric, Layout::new(dimension, links, counts))?;
        let length = |row: &AddedRow| row.vector.iter().map(|value| value * value).sum::<f32>().sqrt();
        graph.longest = added.iter().map(length).fold(grown.map_or(0.0, |old| old.longest), f32::max);
        if let Some(old) = grown {
            graph.copy(old);
        }
        graph.write_added(old.rows, old.upper_words, added);
        graph.write_keys(grown, old.rows as u32, added);
        graph.write_copies(grown.map_or(&[], |old| old.copies()));
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
            (from.links_at, to.links_at, from.rows * from.links * 8),
            (from.ordinals_at, to.ordinals_at, from.rows * 4),
            (from.sequences_at, to.sequences_at, from.rows * 8),
            (from.numbers_at, to.numbers_at, from.rows * 2),
            (from.upper_at, to.upper_at, from.upper_words * 4),
        ];
        let bytes = old.bytes();
        let memory = self.memory();
        for (from, to, length) in regions {
            memory[to..to + length].copy_from_slice(&bytes[from..from + length]);
        }
        (self.entry, self.top_level, self.is_begun) = (old.entry, old.top_level, true);
        // Longer vectors change the coordinate that all others are lengthened by.
        if self.metric == Metric::InnerProduct && self.longest > old.longest {
            let longest = self.longest;
            for row in 0..from.rows as u32 {
                if self.leader_of(row) != row {
                    continue;
                }
                let norm = node_norm(self.metric, squared_norm(self.codes(row), self.head(row).scale), longest);
                let at = HEADER_BYTES + row as usize * to.stride;
                self.memory()[at + 4..at + 8].copy_from_slice(&norm.to_le_bytes());
            }
        }
    }

    fn write_keys(&mut self, grown: Option<&Self>, first: u32, added: &[AddedRow<'_>]) {
        let (keys, rows) = grown.map_or((&[][..], &[][..]), Self::keys);
        let mut entries: Vec<(u32, u32)> = keys.iter().copied().zip(rows.iter().copied()).collect();
        entries.extend(added.iter().zip(first..).filter_map(|(added, row)| added.key.map(|key| (key, row))));
        // Two ascending runs at worst, which a merge sort takes as they are.
        entries[keys.len()..].sort_unstable();
        entries.sort();
        let (at, count) = (self.layout.keys_at, self.layout.keys);
        let words = entries.iter().map(|entry| entry.0).chain(entries.iter().map(|entry| entry.1));
        let bytes = self.memory()[at..at + 8 * count].as_chunks_mut::<4>().0;
        bytes.iter_mut().zip(words).for_each(|(bytes, word)| *bytes = word.to_le_bytes());
    }

    /// Sets the list of copies, in whatever order.
    fn write_copies(&mut self, copies: &[Copied]) {
        let mut copies = copies.to_vec();
        copies.sort_unstable_by(|a, b| {
            a.leader.cmp(&b.leader).then(a.distance.total_cmp(&b.distance)).then(a.row.cmp(&b.row))
        });
        let counts = Counts { copies: copies.len(), ..self.layout.counts() };
        self.layout = Layout::new(self.layout.dimension, self.layout.links, counts);
        let at = self.layout.copies_at;
        let bytes = &mut self.memory()[at..at + COPY_BYTES * copies.len()];
        for (bytes, copy) in bytes.as_chunks_mut::<COPY_BYTES>().0.iter_mut().zip(&copies) {
            bytes[0..4].copy_from_slice(&copy.leader.to_le_bytes());
            bytes[4..8].copy_from_slice(&copy.row.to_le_bytes());
            bytes[8..12].copy_from_slice(&copy.distance.to_le_bytes());
        }
    }

    /// Makes rows without links copies of their leaders. `difference` fills in what tells a copy at some distance from its
    /// leader.
    pub fn add_copies(&mut self, added: &[Copied], mut difference: impl FnMut(&Copied, &mut Vec<f32>)) {
        let layout = self.layout;
        let (mut vector, mut codes) = (Vec::new(), vec![0i8; layout.dimension]);
        for copy in added {
            let upper = IS_COPY | copy.leader;
            let (mut scale, mut code_sum, mut norm) = (0.0, 0, 0.0);
            codes.fill(0);
            if copy.distance > 0.0 {
                difference(copy, &mut vector);
                (scale, code_sum) = encode(&vector, &mut codes);
                if self.metric == Metric::L2Squared {
                    norm = squared_norm(&codes, scale);
                }
            }
            let node = &mut self.memory()[HEADER_BYTES + copy.row as usize * layout.stride..][..layout.stride];
            write_node(node, NodeHead { scale, norm, code_sum, upper }, &codes);
        }
        let all: Vec<Copied> = self.copies().iter().chain(added).copied().collect();
        self.write_copies(&all);
    }

    fn write_added(&mut self, old_rows: usize, old_words: usize, added: &[AddedRow<'_>]) {
        let (layout, metric, longest) = (self.layout, self.metric, self.longest);
        let mut word = old_words;
        let memory = self.memory();
        let mut codes = vec![0i8; layout.dimension];
        for (added, row) in added.iter().zip(old_rows..) {
            let (scale, code_sum) = encode(added.vector, &mut codes);
            let norm = node_norm(metric, squared_norm(&codes, scale), longest);
            let upper = if added.level == 0 { NO_UPPER } else { word as u32 };
            word += added.level as usize * layout.links;
            let node = &mut memory[HEADER_BYTES + row * layout.stride..][..layout.stride];
            write_node(node, NodeHead { scale, norm, code_sum, upper }, &codes);
            memory[layout.ordinals_at + 4 * row..][..4].copy_from_slice(&added.ordinal.to_le_bytes());
            memory[layout.sequences_at + 8 * row..][..8].copy_from_slice(&added.sequence.to_le_bytes());
            memory[layout.numbers_at + 2 * row..][..2].copy_from_slice(&added.number.to_le_bytes());
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
        header[40..48].copy_from_slice(&(layout.keys as u64).to_le_bytes());
        header[48..56].copy_from_slice(&(layout.copies as u64).to_le_bytes());
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
    fn keys(&self) -> (&[u32], &[u32]) {
        // SAFETY: twice `keys` words lie at `keys_at`, aligned to 4; they do not change once the graph is shared.
        let words: &[u32] =
            unsafe { std::slice::from_raw_parts(self.start.add(self.layout.keys_at).cast(), 2 * self.layout.keys) };
        words.split_at(self.layout.keys)
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

fn write_node(node: &mut [u8], head: NodeHead, codes: &[i8]) {
    node[0..4].copy_from_slice(&head.scale.to_le_bytes());
    node[4..8].copy_from_slice(&head.norm.to_le_bytes());
    node[8..12].copy_from_slice(&head.code_sum.to_le_bytes());
    node[12..16].copy_from_slice(&head.upper.to_le_bytes());
    let bytes = node[NODE_HEAD_BYTES..].iter_mut();
    bytes.zip(codes).for_each(|(byte, code)| *byte = *code as u8);
}

/// A row that a graph takes in.
#[derive(Debug, Clone, Copy)]
pub struct AddedRow<'a> {
    pub ordinal: u32,
    /// Of the vector among those of its document.
    pub number: u16,
    pub sequence: u64,
    pub vector: &'a [f32],
    /// Layers above the lowest.
    pub level: u32,
    /// By which the vector is found; `None` where an equal one is found instead.
    pub key: Option<u32>,
}
