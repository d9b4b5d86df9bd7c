//! A graph of rows that are linked as a file says that they were linked before.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use sundew_base::bit_set::BitSet;
use sundew_base::error::EngineError;

use super::super::builder::{build_threads, live_rows, store_rows};
use super::super::graph::{AddedRow, Cancelled, Copied, Graph, Insertion, Way, insert_rows, judge_links};
use super::super::graph_file::NewGraphFile;
use super::super::options::DenseOptions;
use super::super::rows::copies::AllVectors;
use super::super::rows::graph_rows::GraphRows;
use super::super::segment::Segment;
use super::super::segment_files::SegmentFiles;
use super::link_file::{LinkFile, LinkedNode};

/// Of the rows with links of a file one in 256 is looked up by a walk, and 64 at least.
const JUDGED_ONE_IN: usize = 256;
const JUDGED_MIN: usize = 64;

/// The share of them that a walk has to bear out. Where the file is that of the same rows, it is nearly all, but 0.61
/// of a million vectors without any structure, in which walks lose their way.
const GOOD_SHARE_MIN: f64 = 0.4;

/// A row that has lost more of its neighbours is linked again.
const PRESENT_SHARE_MIN: (usize, usize) = (3, 4);

/// Why there is no graph.
pub enum Unlinked {
    Cancelled,
    Refused(String),
}

impl From<Cancelled> for Unlinked {
    fn from(_: Cancelled) -> Self {
        Self::Cancelled
    }
}

impl From<io::Error> for Unlinked {
    fn from(error: io::Error) -> Self {
        Self::Refused(format!("the file cannot be read: {error}"))
    }
}

impl From<EngineError> for Unlinked {
    fn from(error: EngineError) -> Self {
        Self::Refused(error.message)
    }
}

/// A graph of some rows of segments.
pub struct LinkedGraph {
    pub rows: Arc<GraphRows>,
    /// Segment, by place, and row there of each row.
    pub origins: Vec<(u32, u32)>,
    /// Rows with the links of the file, and rows that were linked again.
    pub kept: usize,
    pub relinked: usize,
}

/// Links those documents of some segments all of whose vectors a file names; the links of a vector that is another one now are
/// not believed. `id` names new files.
pub fn link_by(
    hints: &Path,
    sources: &[Segment],
    options: &DenseOptions,
    id: u64,
    files: Option<&SegmentFiles>,
    cancelled: &AtomicBool,
) -> Result<Option<LinkedGraph>, Unlinked> {
    let mut file = LinkFile::open(hints)?;
    let (mut origins, mut added) = live_rows(sources, options);
    take_named(&file, &mut origins, &mut added);
    if added.is_empty() {
        return Ok(None);
    }
    let rows = rows_of(&file, &added);
    let named = named(&rows, added.len());
    let twins = AllVectors { grown: None, added: &added }.twins(|row| named.contains(row));
    for (row, _) in added.iter_mut().zip(&twins).filter(|(_, twin)| twin.is_some()) {
        (row.level, row.key) = (0, None);
    }
    // Memory has no bound for a graph of all rows of an index.
    let place = files.map(|files| NewGraphFile::create(files, id)).transpose()?;
    let handle = place.as_ref().map(|place| &place.handle);
    let mut graph = Graph::new(options.metric, options.links, options.dimension as usize, None, &added, handle)?;
    let vectors = AllVectors { grown: None, added: &added };
    let linking = Linking { options, vectors, cancelled };
    let taken = linking.take_links(&mut graph, &mut file, &rows)?;
    let rest = (0..).zip(&added).filter(|(row, added)| added.key.is_some() && !taken.nodes.contains(*row));
    let rest: Vec<(u32, u32)> = rest.map(|(row, added)| (row, added.level)).collect();
    let relinked = rest.len() + taken.thin.len();
    let near = linking.insert(&mut graph, rest, Way::New)?;
    vectors.add_copies(&mut graph, near, &twins);
    graph.seal();
    let rows = store_rows(files, id, None, &added)?;
    let rows = match place {
        Some(place) => place.keep(graph, rows, options)?,
        None => GraphRows::in_memory(graph, rows),
    };
    rows.prepare();
    Ok(Some(LinkedGraph { rows: Arc::new(rows), origins, kept: taken.nodes.len() - taken.thin.len(), relinked }))
}

/// For each node of a file its row + 1; 0 where there is none, or one with another vector.
fn rows_of(file: &LinkFile, added: &[AddedRow<'_>]) -> Vec<u32> {
    let mut added = (1..).zip(added).peekable();
    let row_of = |node: &LinkedNode| {
        let place = (node.ordinal, node.number);
        while added.next_if(|(_, row)| (row.ordinal, row.number) < place).is_some() {}
        let found = added.peek().filter(|(_, row)| (row.ordinal, row.number) == place && row.key == Some(node.key));
        found.map_or(0, |&(row, _)| row)
    };
    file.nodes.iter().map(row_of).collect()
}

fn named(rows: &[u32], count: usize) -> BitSet {
    let mut named = BitSet::with_room(count);
    rows.iter().filter_map(|row| row.checked_sub(1)).for_each(|row| {
        named.insert(row);
    });
    named
}

/// Leaves the documents all of whose vectors are nodes of the file, or equal to one.
fn take_named(file: &LinkFile, origins: &mut Vec<(u32, u32)>, added: &mut Vec<AddedRow<'_>>) {
    let mut named = named(&rows_of(file, added), added.len());
    if named.len() == added.len() {
        return;
    }
    let twins = AllVectors { grown: None, added }.twins(|row| named.contains(row));
    for (twin, row) in twins.iter().zip(0..) {
        if twin.is_some_and(|twin| named.contains(twin)) {
            named.insert(row);
        }
    }
    let mut first = 0;
    for document in added.chunk_by(|a, b| a.ordinal == b.ordinal) {
        let rows = first..first + document.len() as u32;
        first = rows.end;
        if !rows.clone().all(|row| named.contains(row)) {
            rows.for_each(|row| named.remove(row));
        }
    }
    let mut row = 0..;
    origins.retain(|_| row.next().is_some_and(|row| named.contains(row)));
    let mut row = 0..;
    added.retain(|_| row.next().is_some_and(|row| named.contains(row)));
}

/// Rows that have links of a file.
#[derive(Default)]
struct Taken {
    nodes: BitSet,
    /// Those that have lost some of their neighbours.
    worn: Vec<(u32, u32)>,
    /// Those with too few neighbours left: walks link them.
    thin: Vec<(u32, u32)>,
}

struct Linking<'a> {
    options: &'a DenseOptions,
    vectors: AllVectors<'a>,
    cancelled: &'a AtomicBool,
}

impl Linking<'_> {
    /// Gives rows the links of a file in the lowest layer, and has walks link them in those above, and link what is thin.
    fn take_links(&self, graph: &mut Graph, file: &mut LinkFile, rows: &[u32]) -> Result<Taken, Unlinked> {
        let taken = self.set_links(graph, file, rows)?;
        let mut kept = taken.nodes.clone();
        taken.thin.iter().for_each(|&(row, _)| kept.remove(row));
        let leveled = kept.iter().map(|row| (row, self.level(row)));
        let mut upper: Vec<(u32, u32)> = leveled.filter(|&(_, level)| level > 0).collect();
        if upper.is_empty() {
            upper.extend(kept.iter().take(1).map(|row| (row, 0)));
        }
        self.insert(graph, upper, Way::Upper)?;
        let one_in = (kept.len() / JUDGED_MIN).clamp(1, JUDGED_ONE_IN) as u64;
        // Nobody who writes a file knows which rows will be looked up.
        let random = RandomState::new();
        let judged: Vec<u32> = kept.iter().filter(|row| random.hash_one(row) % one_in == 0).collect();
        let good = judge_links(graph, judged.iter().copied(), self.options.build_candidates, self.cancelled)?;
        if (good as f64) < GOOD_SHARE_MIN * judged.len() as f64 {
            let reason = format!("of {} vectors that were looked up {good} are linked to what is near", judged.len());
            return Err(Unlinked::Refused(reason));
        }
        self.insert(graph, taken.worn.clone(), Way::Mended)?;
        self.insert(graph, taken.thin.clone(), Way::Again)?;
        Ok(taken)
    }

    fn set_links(&self, graph: &Graph, file: &mut LinkFile, rows: &[u32]) -> io::Result<Taken> {
        let mut taken = Taken { nodes: BitSet::with_room(self.vectors.added.len()), ..Taken::default() };
        let (mut places, mut near) = (Vec::new(), Vec::new());
        for &row in rows {
            let had = file.next_links(&mut places)?;
            // A row that is equal to another one is no node.
            let is_node = |row: &u32| self.vectors.added[*row as usize].key.is_some();
            let Some(row) = row.checked_sub(1).filter(is_node) else { continue };
            let present = places.iter().filter_map(|&place| rows[place as usize].checked_sub(1));
            near.clear();
            near.extend(present.filter(|other| *other != row && is_node(other)));
            let links = graph.links(row, 0);
            near.truncate(links.len());
            Graph::set_links(links, near.iter().copied());
            taken.nodes.insert(row);
            if near.is_empty() || near.len() * PRESENT_SHARE_MIN.1 < had * PRESENT_SHARE_MIN.0 {
                taken.thin.push((row, self.level(row)));
            } else if near.len() < had {
                taken.worn.push((row, self.level(row)));
            }
        }
        Ok(taken)
    }

    fn level(&self, row: u32) -> u32 {
        self.vectors.added[row as usize].level
    }

    fn insert(&self, graph: &mut Graph, rows: Vec<(u32, u32)>, way: Way) -> Result<Vec<Copied>, Cancelled> {
        let insertion = Insertion {
            rows,
            vectors: &|row| self.vectors.vector(row),
            candidates: self.options.build_candidates,
            threads: build_threads(self.options, self.vectors.added.len()),
            way,
            cancelled: self.cancelled,
        };
        insert_rows(graph, insertion)
    }
}
