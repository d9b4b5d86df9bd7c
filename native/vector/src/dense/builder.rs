//! Graphs built in the background: what is built next, and the building.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use sundew_base::error::EngineError;

use super::graph::{AddedRow, Graph, Insertion, Way, insert_rows};
use super::options::DenseOptions;
use super::rows::copies::{AllVectors, key_of};
use super::rows::graph_rows::GraphRows;
use super::rows::row_store::{MappedRows, RowStore};
use super::segment::Segment;
use super::segment_files::SegmentFiles;
use sundew_base::bit_set::BitSet;

/// A graph is copied to take in rows when it has at most this many times their number: copying a row costs some hundredths
/// of linking one.
const GROWN_ROWS_RATIO: usize = 32;

/// A graph with a greater share of dead rows is rebuilt.
const DEAD_SHARE_MAX: f64 = 0.25;

/// A graph with a greater share of dead rows is rebuilt before rows without a graph get one.
const DEAD_SHARE_URGENT: f64 = 0.4;

/// The share of the rows that may wait which goes into a graph at once: a writer who waits for room gets some after each build.
const PIECE_SHARE: usize = 4;

/// Threads that build when the options leave it open, at most.
const BUILD_THREADS_MAX: usize = 8;

/// The next build: the graph that grows, if any, and the segments whose rows go into it.
#[derive(Debug, Clone)]
pub struct Plan {
    pub grown: Option<Segment>,
    pub sources: Vec<Segment>,
}

impl Plan {
    /// The segments that the new graph replaces.
    pub fn segments_mut(&mut self) -> impl Iterator<Item = &mut Segment> {
        self.grown.iter_mut().chain(&mut self.sources)
    }

    pub fn segment_ids(&self) -> impl Iterator<Item = u64> + '_ {
        self.grown.iter().chain(&self.sources).map(|segment| segment.id)
    }

    /// Whether most of the rows that will be linked have had a graph before.
    pub fn is_rewrite(&self) -> bool {
        let (linked, new): (Vec<&Segment>, Vec<&Segment>) =
            self.sources.iter().partition(|segment| segment.rows.as_graph().is_some());
        let rows = |segments: Vec<&Segment>| segments.into_iter().map(Segment::live_count).sum::<usize>();
        rows(linked) > rows(new)
    }
}

fn has_dead_share(segment: &Segment, share: f64) -> bool {
    segment.dead.len() as f64 > share * segment.rows.len() as f64
}

/// The next build from segments of which those in `busy` are being built from already; `None` when all is well. Rows without
/// a graph are left alone while their float32s make less than `tail_bytes`.
pub fn plan(segments: &[Segment], busy: &HashSet<u64>, options: &DenseOptions, tail_bytes: usize) -> Option<Plan> {
    let free = || segments.iter().filter(|segment| !busy.contains(&segment.id) && segment.live_count() > 0);
    let mut graphs: Vec<&Segment> = free().filter(|segment| segment.rows.as_graph().is_some()).collect();
    graphs.sort_by_key(|segment| segment.rows.len());
    if let Some(worst) = graphs.iter().find(|segment| has_dead_share(segment, DEAD_SHARE_URGENT)) {
        return Some(Plan { grown: None, sources: vec![(*worst).clone()] });
    }
    let flats: Vec<&Segment> = free().filter(|segment| segment.rows.as_flat().is_some()).collect();
    let flat_rows: usize = flats.iter().map(|segment| segment.live_count()).sum();
    let mut sources: Vec<&Segment> = Vec::new();
    let row_bytes = options.dimension as usize * 4;
    if flat_rows * row_bytes >= tail_bytes {
        let largest_graph = graphs.last().map_or(0, |segment| segment.rows.len());
        let piece_rows = (options.backlog_bytes_max / PIECE_SHARE / row_bytes).max(largest_graph / GROWN_ROWS_RATIO);
        let mut taken_rows = 0;
        sources.extend(flats.into_iter().take_while(|segment| {
            let is_room = taken_rows < piece_rows;
            taken_rows += segment.live_count();
            is_room
        }));
    }
    let decayed: Vec<&Segment> = graphs.extract_if(.., |segment| has_dead_share(segment, DEAD_SHARE_MAX)).collect();
    for segment in decayed {
        let added: usize = sources.iter().map(|segment| segment.live_count()).sum();
        if sources.is_empty() || segment.live_count() <= 8 * added {
            sources.push(segment);
        }
    }
    if sources.is_empty() {
        return None;
    }
    let added: usize = sources.iter().map(|segment| segment.live_count()).sum();
    // The largest graph that is worth copying; the smaller ones go into it.
    let rows_below = |at: usize| graphs[..at].iter().map(|segment| segment.live_count()).sum::<usize>();
    let grown =
        (0..graphs.len()).rev().find(|&at| graphs[at].rows.len() <= GROWN_ROWS_RATIO * (added + rows_below(at)));
    if let Some(at) = grown {
        sources.extend(&graphs[..at]);
    }
    Some(Plan { grown: grown.map(|at| graphs[at].clone()), sources: sources.into_iter().cloned().collect() })
}

/// A new graph and where its rows come from.
pub struct Built {
    pub rows: Arc<GraphRows>,
    /// Source (by its position in the plan) and row there of each row behind those of the grown graph.
    origins: Vec<(u32, u32)>,
    grown_rows: usize,
}

impl Built {
    /// The rows of the new graph that are dead in the segments that it replaces.
    pub fn dead_rows(&self, plan: &Plan, segments: &[Segment]) -> BitSet {
        let segment_of = |id: u64| segments.iter().find(|segment| segment.id == id);
        let mut dead = BitSet::with_room(self.rows.len());
        if let Some(grown) = &plan.grown {
            let newest = segment_of(grown.id).unwrap_or(grown);
            newest.dead.iter().for_each(|row| {
                dead.insert(row);
            });
        }
        let sources: Vec<Option<&Segment>> = plan.sources.iter().map(|source| segment_of(source.id)).collect();
        for (&(source, row), at) in self.origins.iter().zip(self.grown_rows as u32..) {
            // A segment that is gone had no live row left.
            if sources[source as usize].is_none_or(|segment| segment.dead.contains(row)) {
                dead.insert(at);
            }
        }
        dead
    }
}

/// Builds what was planned; `None` when it was called off. `id` names new files.
pub fn build(
    options: &DenseOptions,
    plan: &Plan,
    id: u64,
    files: Option<&SegmentFiles>,
    cancelled: &AtomicBool,
) -> Result<Option<Built>, EngineError> {
    let (origins, mut added) = live_rows(&plan.sources, options);
    let grown = plan.grown.as_ref().and_then(|segment| segment.rows.as_graph()).map(Arc::as_ref);
    let grown_rows = grown.map_or(0, GraphRows::len);
    let twins = AllVectors { grown, added: &added }.twins(|_| false);
    for (row, _) in added.iter_mut().zip(&twins).filter(|(_, twin)| twin.is_some()) {
        (row.level, row.key) = (0, None);
    }
    let dimension = options.dimension as usize;
    let mut graph = Graph::new(options.metric, options.links, dimension, grown.map(|rows| &rows.graph), &added, None)?;
    let vectors = AllVectors { grown, added: &added };
    let added_rows = (grown_rows as u32..).zip(&added);
    let insertion = Insertion {
        rows: added_rows.filter(|(_, added)| added.key.is_some()).map(|(row, added)| (row, added.level)).collect(),
        vectors: &|row| vectors.vector(row),
        candidates: options.build_candidates,
        threads: build_threads(options, added.len()),
        way: Way::New,
        cancelled,
    };
    let Ok(near) = insert_rows(&mut graph, insertion) else { return Ok(None) };
    vectors.add_copies(&mut graph, near, &twins);
    graph.seal();
    let rows = store_rows(files, id, grown, &added)?;
    let rows = GraphRows::in_memory(graph, rows);
    rows.prepare();
    Ok(Some(Built { rows: Arc::new(rows), origins, grown_rows }))
}

/// The live rows of segments as a graph takes them in, and where each comes from: its segment, by place, and the row there.
pub fn live_rows<'a>(sources: &'a [Segment], options: &DenseOptions) -> (Vec<(u32, u32)>, Vec<AddedRow<'a>>) {
    let mut order: Vec<(u32, u32, u32)> = Vec::new();
    for (segment, source) in sources.iter().zip(0..) {
        let live = (0..segment.rows.len() as u32).filter(|&row| !segment.dead.contains(row));
        order.extend(live.map(|row| (segment.rows.ordinal(row), source, row)));
    }
    // Ascending ordinals let the index find them without a table of its own.
    order.sort_unstable();
    let added = order.iter().map(|&(ordinal, source, row)| {
        let rows = &sources[source as usize].rows;
        let (vector, number) = (rows.vector(row), rows.number(row));
        let level = level_of(ordinal, number, options.links);
        AddedRow { ordinal, number, sequence: rows.sequence(row), vector, level, key: Some(key_of(vector)) }
    });
    let added = added.collect();
    (order.into_iter().map(|(_, source, row)| (source, row)).collect(), added)
}

/// Half of the cores, which leaves the others to queries; all when much waits.
pub fn build_threads(options: &DenseOptions, rows: usize) -> usize {
    if options.build_threads > 0 {
        return options.build_threads;
    }
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get().min(BUILD_THREADS_MAX));
    let is_much = rows * options.dimension as usize * 4 > options.backlog_bytes_max / 8;
    if is_much { cores } else { cores.div_ceil(2) }
}

pub fn store_rows(
    files: Option<&SegmentFiles>,
    id: u64,
    grown: Option<&GraphRows>,
    added: &[AddedRow<'_>],
) -> Result<RowStore, EngineError> {
    let vectors = added.iter().map(|row| row.vector);
    let earlier = grown.map(|rows| rows.rows.as_ref());
    let Some(files) = files else {
        let mut values = match earlier {
            Some(RowStore::Memory(values)) => values.clone(),
            _ => Vec::new(),
        };
        vectors.for_each(|vector| values.extend_from_slice(vector));
        return Ok(RowStore::Memory(values));
    };
    let rows = match earlier {
        Some(RowStore::File(earlier)) => MappedRows::append(Arc::clone(&earlier.written.file), Some(earlier), vectors),
        _ => MappedRows::append(files.new_file(format!("{id}.rows")), None, vectors),
    };
    Ok(RowStore::File(rows?))
}

/// The layers above the lowest in which a row has links: one in `links` rows has one, one in `links^2` two. The same for
/// every building of the row.
fn level_of(ordinal: u32, number: u16, links: usize) -> u32 {
    let vector = u64::from(ordinal) | u64::from(number) << 32;
    let mut mixed = vector.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    let unit = ((mixed >> 11) + 1) as f64 / (1u64 << 53) as f64;
    (-unit.ln() / (links.max(2) as f64).ln()) as u32
}

#[cfg(test)]
mod tests {
    use super::super::metric::Metric;
    use super::super::rows::flat_rows::FlatRows;
    use super::super::segment::SegmentRows;
    use super::*;

    const DIMENSION: usize = 4;

    fn waiting(id: u64, rows: u32) -> Segment {
        let mut flat = FlatRows::with_capacity(DIMENSION, rows as usize);
        (0..rows).for_each(|row| flat.push(id as u32 * 1_000 + row, 0, 1, &[1.0; DIMENSION]));
        Segment::new(id, SegmentRows::Flat(Arc::new(flat)), rows as usize)
    }

    #[test]
    fn many_waiting_rows_go_into_a_graph_piece_by_piece_so_that_a_writer_gets_room_after_each() {
        let options = DenseOptions::new("v", 1, DIMENSION as u32, Metric::Cosine);
        // Room for 400 rows, a quarter of which is a piece.
        let options = DenseOptions { backlog_bytes_max: 400 * DIMENSION * 4, ..options };
        let segments: Vec<Segment> = (1..=8).map(|id| waiting(id, 60)).collect();
        let planned = |segments: &[Segment], busy: &[u64]| {
            let busy = busy.iter().copied().collect();
            plan(segments, &busy, &options, 1).map(|plan| plan.segment_ids().collect::<Vec<u64>>())
        };
        assert_eq!(planned(&segments, &[]), Some(vec![1, 2]));
        assert_eq!(planned(&segments, &[1, 2]), Some(vec![3, 4]));
        assert_eq!(planned(&segments[..1], &[]), Some(vec![1]));
    }
}
