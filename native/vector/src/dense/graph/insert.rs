//! Linking rows into a graph, by several threads at once.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::super::float_kernels::squared_distance;
use super::codes::CodedQuery;
use super::storage::{Copied, Graph};
use super::walk::Scratch;

/// Locks for the links of all nodes; a node shares its lock with others.
const LOCKS: usize = 4096;

/// Nodes of an upper layer that the search for neighbours in the next one begins at.
pub(super) const STARTS: usize = 8;

/// The building was called off.
#[derive(Debug)]
pub struct Cancelled;

/// The nearest nodes among which a row looks for its leader.
const LEADERS_TRIED: usize = 4;

/// Float32 vectors by row.
type Vectors<'a> = dyn Fn(u32) -> &'a [f32] + Sync + 'a;

struct Inserting<'g, 'a> {
    graph: &'g Graph,
    vectors: &'g Vectors<'a>,
    locks: Vec<Mutex<()>>,
    candidates: usize,
    way: Way,
}

/// The working memory of one thread.
#[derive(Default)]
struct Hands {
    scratch: Scratch,
    query: CodedQuery,
    found: Vec<(f32, u32)>,
    /// By layer.
    chosen: Vec<Vec<u32>>,
    crowd: Crowd,
    copies: Vec<Copied>,
}

/// The working memory of choosing among too many links.
#[derive(Default)]
struct Crowd {
    found: Vec<(f32, u32)>,
    nodes: Vec<u32>,
    chosen: Vec<u32>,
    costs: Vec<f32>,
    dots: Vec<i32>,
}

/// How rows are linked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// In all of their layers; those that codes could not tell from a node nearby become copies.
    New,
    /// In all of their layers. Others are linked to them already, so that none becomes a copy.
    Again,
    /// Above the lowest layer, where they have all of their links.
    Upper,
    /// In the lowest layer, where they have most of their links: to neighbours of those neighbours, without a walk.
    Mended,
}

/// Rows to be linked.
pub struct Insertion<'g, 'a> {
    /// Row and level of each.
    pub rows: Vec<(u32, u32)>,
    pub vectors: &'g Vectors<'a>,
    /// Nodes that are kept while neighbours are looked for.
    pub candidates: usize,
    pub threads: usize,
    pub way: Way,
    pub cancelled: &'g AtomicBool,
}

/// Links rows. Those that codes could not tell from a node nearby get no links and come back as its copies: many of them would
/// be each other's only neighbours, and no walk would lead from them to anything else.
pub fn insert_rows(graph: &mut Graph, mut insertion: Insertion<'_, '_>) -> Result<Vec<Copied>, Cancelled> {
    let mut order = std::mem::take(&mut insertion.rows);
    // Rows of high layers come first: every other one then finds the layers that it passes through, and the entry stays.
    order.sort_by_key(|&(_, level)| std::cmp::Reverse(level));
    let mut copies = Vec::new();
    let mut done = 0;
    while let Some(&(row, level)) = order.get(done)
        && (!graph.is_begun || level > graph.top_level)
    {
        done += 1;
        let mut hands = Hands::default();
        if !graph.is_begun {
            graph.is_begun = true;
        } else {
            Inserting::new(graph, &insertion).insert(row, level, &mut hands);
        }
        if hands.copies.is_empty() {
            (graph.entry, graph.top_level) = (row, level);
        }
        copies.append(&mut hands.copies);
    }
    let Insertion { threads, cancelled, way, .. } = insertion;
    let inserting = Inserting::new(graph, &insertion);
    let next = AtomicUsize::new(done);
    let work = || {
        let mut hands = Hands::default();
        while !cancelled.load(Ordering::Relaxed) {
            let Some(&(row, level)) = order.get(next.fetch_add(1, Ordering::Relaxed)) else { break };
            inserting.insert(row, level, &mut hands);
        }
        hands.copies
    };
    std::thread::scope(|scope| {
        // The calling thread links rows alone where the system has no other thread.
        let start = |_| std::thread::Builder::new().spawn_scoped(scope, work).ok();
        let others: Vec<_> = (1..threads).map_while(start).collect();
        copies.extend(work());
        others.into_iter().for_each(|other| copies.extend(other.join().expect("a thread that links rows")));
    });
    if cancelled.load(Ordering::Relaxed) {
        return Err(Cancelled);
    }
    if way == Way::New {
        link_lonely(graph);
    }
    Ok(copies)
}

/// Has a neighbour link to every node of the lowest layer that no other one links to: whoever chooses among too many links
/// may drop the last one that leads to a node, and no walk would find that node any more.
fn link_lonely(graph: &Graph) {
    let mut inward = vec![0u32; graph.layout.rows];
    for node in 0..graph.layout.rows as u32 {
        graph.linked(node, 0).for_each(|other| inward[other as usize] += 1);
    }
    let (mut nodes, mut costs, mut dots) = (Vec::new(), Vec::new(), Vec::new());
    for node in 0..graph.layout.rows as u32 {
        if inward[node as usize] > 0 {
            continue;
        }
        for near in graph.linked(node, 0) {
            let links = graph.links(near, 0);
            nodes.clear();
            nodes.extend(graph.linked(near, 0));
            if nodes.len() < links.len() {
                nodes.push(node);
            } else {
                graph.costs_between(near, &nodes, &mut dots, &mut costs);
                let spare = (0..nodes.len()).filter(|&at| inward[nodes[at] as usize] > 1);
                let Some(furthest) = spare.max_by(|&a, &b| costs[a].total_cmp(&costs[b])) else { continue };
                inward[nodes[furthest] as usize] -= 1;
                nodes[furthest] = node;
            }
            Graph::set_links(links, nodes.iter().copied());
            inward[node as usize] = 1;
            break;
        }
    }
}

impl<'g, 'a> Inserting<'g, 'a> {
    fn new(graph: &'g Graph, insertion: &Insertion<'g, 'a>) -> Self {
        let &Insertion { vectors, candidates, way, .. } = insertion;
        let locks = (0..LOCKS).map(|_| Mutex::new(())).collect();
        Self { graph, vectors, locks, candidates, way }
    }

    fn lock(&self, node: u32) -> std::sync::MutexGuard<'_, ()> {
        self.locks[node as usize % LOCKS].lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Links the row in all its layers, or makes it a copy.
    fn insert(&self, row: u32, level: u32, hands: &mut Hands) {
        let graph = self.graph;
        let Hands { scratch, query, found, chosen, crowd, copies } = hands;
        graph.query_of(row, query);
        let lowest = usize::from(self.way == Way::Upper);
        let top = if self.way == Way::Mended { 0 } else { level.min(graph.top_level) as usize };
        if self.way != Way::Mended {
            graph.descend(query, level, STARTS, scratch);
        }
        chosen.resize_with(chosen.len().max(top + 1), Vec::new);
        for at in (lowest..=top).rev() {
            if self.way == Way::Mended {
                graph.look_around(row, query, self.candidates, scratch);
            } else {
                graph.walk(query, at as u32, self.candidates, scratch, &mut || false);
            }
            found.clear();
            found.extend(scratch.beam.iter().filter(|&(_, other)| other != row));
            if at == 0
                && self.way == Way::New
                && let Some(copy) = self.copied(row, found)
            {
                copies.push(copy);
                return;
            }
            if !found.is_empty() {
                scratch.starts.clear();
                scratch.starts.extend(found.iter().take(STARTS));
            }
            choose(graph, found, graph.layout.links, &mut chosen[at], &mut crowd.costs, &mut crowd.dots);
        }
        for (at, chosen) in chosen[..=top].iter_mut().enumerate().skip(lowest).rev() {
            self.link_own(row, at as u32, chosen);
            for &other in chosen.iter() {
                self.link_back(other, row, at as u32, crowd);
            }
        }
    }

    /// The row as a copy of the nearest of the nodes found, if no more lies between them than what rounding adds to a vector.
    fn copied(&self, row: u32, found: &[(f32, u32)]) -> Option<Copied> {
        let graph = self.graph;
        let step = graph.head(row).scale;
        let rounding = step * step * graph.layout.dimension as f32 / 12.0;
        let near = found.iter().take(LEADERS_TRIED).map(|&(_, other)| other);
        // By codes first: the float32 rows may have to come from the disk.
        let near = near.filter(|&other| graph.squared_distance_between(row, other) <= 9.0 * rounding);
        let near = near.map(|other| (squared_distance((self.vectors)(row), (self.vectors)(other)), other));
        let (squared, leader) = near.min_by(|a, b| a.0.total_cmp(&b.0))?;
        (squared <= rounding).then(|| Copied { leader, row, distance: squared.sqrt() })
    }

    /// Another thread may have linked to the node already; its link is kept.
    fn link_own(&self, node: u32, level: u32, chosen: &mut Vec<u32>) {
        let _held = self.lock(node);
        let links = self.graph.links(node, level);
        for earlier in self.graph.linked(node, level) {
            if !chosen.contains(&earlier) {
                chosen.push(earlier);
            }
        }
        chosen.truncate(links.len());
        Graph::set_links(links, chosen.iter().copied());
    }

    fn link_back(&self, from: u32, to: u32, level: u32, crowd: &mut Crowd) {
        let graph = self.graph;
        let _held = self.lock(from);
        let links = graph.links(from, level);
        crowd.nodes.clear();
        crowd.nodes.extend(graph.linked(from, level));
        if crowd.nodes.contains(&to) || links.is_empty() {
            return;
        }
        crowd.nodes.push(to);
        let room = links.len();
        if crowd.nodes.len() > room {
            graph.costs_between(from, &crowd.nodes, &mut crowd.dots, &mut crowd.costs);
            crowd.found.clear();
            crowd.found.extend(crowd.costs.iter().copied().zip(crowd.nodes.iter().copied()));
            crowd.found.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
            choose(graph, &crowd.found, room, &mut crowd.chosen, &mut crowd.costs, &mut crowd.dots);
            std::mem::swap(&mut crowd.nodes, &mut crowd.chosen);
        }
        Graph::set_links(links, crowd.nodes.iter().copied());
    }
}

/// Of the nodes found, nearest first, those that no chosen one is nearer to than the node in question: links in all
/// directions rather than many into one crowd (algorithm 4 of the paper).
fn choose(
    graph: &Graph,
    found: &[(f32, u32)],
    limit: usize,
    chosen: &mut Vec<u32>,
    costs: &mut Vec<f32>,
    dots: &mut Vec<i32>,
) {
    chosen.clear();
    for &(cost, node) in found {
        if chosen.len() == limit {
            return;
        }
        let is_hidden = chosen.chunks(4).any(|near| {
            graph.costs_between(node, near, dots, costs);
            costs.iter().any(|&other| other < cost)
        });
        if !is_hidden {
            chosen.push(node);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::metric::Metric;
    use super::super::growth::AddedRow;
    use super::*;

    #[test]
    fn no_node_is_left_without_a_link_to_it() {
        const DIMENSION: usize = 32;
        let mut state = 42u64;
        let mut value = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 40) as f32 / (1u64 << 24) as f32 - 0.5
        };
        let vectors: Vec<Vec<f32>> = (0..4000).map(|_| (0..DIMENSION).map(|_| value()).collect()).collect();
        let mut rows = vectors.iter().zip(0u32..).map(|(vector, ordinal)| {
            let level = u32::from(ordinal.is_multiple_of(8));
            AddedRow { ordinal, number: 0, sequence: u64::from(ordinal) + 1, vector, level, key: Some(ordinal) }
        });
        let mut grown = None;
        for count in [3000, 1000] {
            let added: Vec<AddedRow> = rows.by_ref().take(count).collect();
            let first = grown.as_ref().map_or(0, |old: &Graph| old.layout.rows as u32);
            let mut graph = Graph::new(Metric::L2Squared, 8, DIMENSION, grown.as_ref(), &added, None).expect("a graph");
            let insertion = Insertion {
                rows: added.iter().zip(first..).map(|(added, row)| (row, added.level)).collect(),
                vectors: &|row| &vectors[row as usize],
                candidates: 64,
                threads: 2,
                way: Way::New,
                cancelled: &AtomicBool::new(false),
            };
            assert_eq!(insert_rows(&mut graph, insertion).expect("linked"), []);
            let mut inward = vec![0; graph.layout.rows];
            (0..graph.layout.rows as u32).for_each(|node| {
                graph.linked(node, 0).for_each(|other| inward[other as usize] += 1);
            });
            assert_eq!(inward.iter().filter(|&&links| links == 0).count(), 0, "of {} nodes", inward.len());
            grown = Some(graph);
        }
    }
}
