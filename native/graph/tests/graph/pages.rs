//! Pages of the edges of a node, which are found by their place, beside a look at every edge.

use std::sync::Arc;

use sundew_base::derived_index::DerivedIndex;
use sundew_base::frame::{FrameWriter, RowKind};
use sundew_base::part::edges::{Edge, EdgeOrigin, write_edges};
use sundew_base::part::{PartForm, part_head};
use sundew_graph::search::{Direction, GraphAnswer, GraphRequest, RemovedTargets, Search, search};
use sundew_graph::{GraphIndex, GraphOptions};

const PART: u32 = 7;
const SPLIT: &str = "k050";

/// Two ranges, in memory; documents from `SPLIT` on lie in the second.
struct Table {
    ranges: [Arc<GraphIndex>; 2],
    sequence: u64,
}

impl Table {
    fn new() -> Self {
        let options = GraphOptions { mem_only: true, ..GraphOptions::named("g", PART) };
        let open = || GraphIndex::open("".as_ref(), options.clone()).unwrap();
        Self { ranges: [open(), open()], sequence: 0 }
    }

    /// Writes the edges of some documents in one commit of each range; none deletes one.
    fn write(&mut self, documents: &[(u32, Option<Vec<Edge<'_>>>)]) {
        for range in 0..2 {
            let of_range: Vec<_> =
                documents.iter().filter(|(ordinal, _)| usize::from(*ordinal >= 50) == range).collect();
            let mut frame = FrameWriter::new(of_range.len(), 1 << 20).unwrap();
            for (row, (ordinal, edges)) in of_range.iter().enumerate() {
                let key = format!("k{ordinal:03}");
                match edges {
                    Some(edges) => {
                        let payload = write_edges(edges).unwrap();
                        frame.push(RowKind::PartPut, 0, key.as_bytes(), &[&part_head(PART, PartForm::Edges), &payload]);
                    }
                    None => frame.push(RowKind::Delete, 0, key.as_bytes(), &[]),
                }
                self.sequence += 1;
                frame.set_position(row, *ordinal, self.sequence, 0);
            }
            self.ranges[range].apply(&frame.finish()).unwrap();
            self.ranges[range].commit(self.sequence).unwrap();
        }
    }

    fn page(&self, request: &GraphRequest, removed: &RemovedTargets) -> GraphAnswer {
        search(&self.ranges, request, removed, &|| false).unwrap()
    }
}

fn edge<'a>(edge_type: &'a str, target: &'a str, origin: EdgeOrigin, created_ms: i64) -> Edge<'a> {
    Edge { edge_type, target, origin, weight: 1.0, created_ms, updated_ms: 5, since: 0, metadata: "" }
}

fn request(key: &str, direction: Direction, limit: usize) -> GraphRequest {
    let request = format!(
        r#"{{"search":{{"edges":{{"limit":{limit},"after":null}}}},"starts":["{key}"],"direction":"out",
           "range_starts":["","{SPLIT}"],"edges_max":1000000,"nodes_max":1000000,"millis_max":60000}}"#
    );
    GraphRequest { direction, ..serde_json::from_str(&request).unwrap() }
}

struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

/// All pages, one after another, as a look at every edge finds them and as they are found by their places.
fn assert_alike(table: &Table, first: &GraphRequest, removed: &RemovedTargets) {
    let mut request = first.clone();
    let mut pages = 0;
    loop {
        let sought = table.page(&GraphRequest { reports_nodes: false, ..request.clone() }, removed);
        let looked = table.page(&GraphRequest { reports_nodes: true, ..request.clone() }, removed);
        assert_eq!(sought, GraphAnswer { touched: Vec::new(), ..looked }, "page {pages} of {first:?}");
        pages += 1;
        let Search::Edges { limit, .. } = request.search else { unreachable!() };
        match sought.next {
            Some(next) => request.search = Search::Edges { limit, after: Some(next) },
            None => return,
        }
    }
}

#[test]
fn pages_are_those_of_a_look_at_every_edge() {
    for seed in 1..=12 {
        let mut random = Random(seed);
        let mut table = Table::new();
        let with_twins = seed % 3 == 0;
        let targets: Vec<String> = (0..100).map(|number| format!("k{number:03}")).chain(["hub".to_owned()]).collect();
        let types = ["knows", "likes", "made"];
        for _ in 0..8 {
            let documents: Vec<(u32, Option<Vec<Edge<'_>>>)> = (0..100)
                .filter(|_| random.below(3) > 0)
                .collect::<Vec<u32>>()
                .into_iter()
                .map(|ordinal| {
                    if random.below(8) == 0 {
                        return (ordinal, None);
                    }
                    let mut edges: Vec<Edge<'_>> = (0..random.below(6))
                        .map(|_| {
                            let target = &targets[random.below(101) as usize];
                            let target = if random.below(2) == 0 { "hub" } else { target };
                            let origin = if with_twins && random.below(2) == 0 {
                                EdgeOrigin::Derived
                            } else {
                                EdgeOrigin::Declared
                            };
                            edge(types[random.below(3) as usize], target, origin, random.below(4) as i64)
                        })
                        .collect();
                    edges.sort_by_key(Edge::identity);
                    edges.dedup_by_key(|edge| edge.identity());
                    (ordinal, Some(edges))
                })
                .collect();
            table.write(&documents);
        }
        for _ in 0..60 {
            let key = &targets[[100, random.below(101)][random.below(2) as usize] as usize];
            let direction = [Direction::In, Direction::Out, Direction::Both][random.below(3) as usize];
            let mut asked = request(key, direction, [1, 3, 10, 1_000][random.below(4) as usize]);
            if random.below(3) == 0 {
                asked.edge_types = vec![types[random.below(3) as usize].to_owned(), "none".to_owned()];
            }
            if random.below(4) == 0 {
                asked.expired_at_or_before_ms = Some(random.below(4) as i64 - 1);
            }
            if random.below(4) == 0 {
                asked.hidden = vec![targets[random.below(101) as usize].clone()];
            }
            let mut removed = RemovedTargets::default();
            for _ in 0..random.below(4) {
                let through = [random.below(table.sequence + 1), random.below(table.sequence + 1)];
                removed.insert(targets[random.below(101) as usize].clone(), through.to_vec());
            }
            assert_alike(&table, &asked, &removed);
        }
    }
}

#[test]
fn a_page_of_a_hub_looks_at_no_more_edges_than_it_shows() {
    let mut table = Table::new();
    let documents = |marked: bool| {
        let name = if marked { "likes" } else { "knows" };
        (0..100)
            .map(move |ordinal| (ordinal, Some(vec![edge(name, "hub", EdgeOrigin::Declared, 1)])))
            .collect::<Vec<_>>()
    };
    table.write(&documents(false));
    table.write(&documents(true)[10..12]);
    let mut asked = GraphRequest { edges_max: 30, ..request("hub", Direction::In, 10) };
    let first = table.page(&asked, &RemovedTargets::default());
    assert_eq!((first.edges.len(), first.total, first.partial), (10, 100, None));
    asked.search = Search::Edges { limit: 10, after: first.next };
    let second = table.page(&asked, &RemovedTargets::default());
    let sources: Vec<&str> = second.edges.iter().map(|edge| &*edge.source).collect();
    let expected: Vec<String> = (12..22).map(|ordinal| format!("k{ordinal:03}")).collect();
    assert_eq!((sources, second.total, second.partial), (expected.iter().map(|key| &**key).collect(), 100, None));
}
