//! An index that takes over the links of another one finds as much as that one, and is not misled by links that lie.

use std::fs;
use std::path::{Path, PathBuf};

use super::support::{Change, Clusters, Dice, INDEX_ID, TemporaryDirectory, Tested};
use sundew_base::derived_index::DerivedIndex;
use sundew_vector::dense::{DenseOptions, LinkReport, Metric};

const DIMENSION: usize = 24;
const CLUSTERS: usize = 60;
const ROWS: u32 = 12_000;
const METRICS: [Metric; 3] = [Metric::L2Squared, Metric::Cosine, Metric::InnerProduct];
/// Low enough that graphs are walked, not scanned, at the sizes of a test.
const EFFORT: f32 = 0.35;

fn options(metric: Metric) -> DenseOptions {
    DenseOptions {
        tail_bytes: 1000 * DIMENSION * 4,
        build_candidates: 64,
        ..DenseOptions::new("taste", INDEX_ID, DIMENSION as u32, metric)
    }
}

type Rows = Vec<(u32, Vec<f32>)>;

struct World {
    dice: Dice,
    clusters: Clusters,
    rows: Rows,
    folder: TemporaryDirectory,
}

impl World {
    fn new(seed: u64) -> Self {
        println!("seed {seed}");
        let mut dice = Dice(seed);
        let clusters = Clusters::new(&mut dice, CLUSTERS, DIMENSION);
        let rows = (0..ROWS).map(|at| (at, clusters.draw(&mut dice, at as usize % CLUSTERS))).collect();
        let folder = TemporaryDirectory::new();
        fs::create_dir_all(&folder.0).unwrap();
        Self { dice, clusters, rows, folder }
    }

    fn draw(&mut self) -> Vec<f32> {
        let cluster = self.dice.below(CLUSTERS);
        self.clusters.draw(&mut self.dice, cluster)
    }

    fn queries(&mut self) -> Vec<Vec<f32>> {
        (0..60).map(|_| self.draw()).collect()
    }

    /// An index whose graphs hold these rows, and a file with their links.
    fn original(&self, metric: Metric) -> (Tested, PathBuf) {
        let mut original = Tested::new(options(metric));
        original.load(&self.rows);
        original.index.rest().unwrap();
        original.index.settle();
        let path = self.folder.0.join(format!("{metric:?}.links"));
        let bytes = original.index.write_links(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().len(), bytes);
        (original, path)
    }
}

/// A new index with these rows and the links of a file.
fn linked_again(metric: Metric, rows: &Rows, links: &Path) -> (Tested, LinkReport) {
    let mut again = Tested::new(options(metric));
    again.index.hold();
    again.load(rows);
    let report = again.index.link_again(links);
    (again, report)
}

fn links_of(tested: &Tested, path: &Path) -> Vec<u8> {
    tested.index.write_links(path).unwrap();
    fs::read(path).unwrap()
}

#[test]
fn the_same_rows_get_the_same_links_and_no_row_is_linked_anew() {
    let mut world = World::new(51);
    let queries = world.queries();
    for metric in METRICS {
        let (original, links) = world.original(metric);
        let (mut again, report) = linked_again(metric, &world.rows, &links);
        assert_eq!(report, LinkReport { kept: ROWS as usize, ..LinkReport::default() }, "{metric:?}");
        assert_eq!(again.index.stats().segment_count, 1);
        assert_eq!(fs::read(&links).unwrap(), links_of(&again, &world.folder.0.join("again")), "{metric:?}");
        let recalls = [original.recall(&queries, 10, EFFORT, None), again.recall(&queries, 10, EFFORT, None)];
        assert!(recalls[1] >= 0.95 && recalls[1] > recalls[0] - 0.01, "{metric:?}: {recalls:?}");
        // They are durable, and the graph goes on to grow.
        again.reopen();
        again.index.verify().unwrap();
        let more: Rows = (ROWS..ROWS + 1000).map(|at| (at, world.draw())).collect();
        again.load(&more);
        let recall = again.recall(&queries, 10, EFFORT, None);
        assert!(recall >= 0.95, "{metric:?}, grown: {recall}");
    }
}

#[test]
fn rows_that_have_changed_or_gone_since_are_left_out_and_new_ones_are_linked_anew() {
    let mut world = World::new(52);
    let queries = world.queries();
    for metric in METRICS {
        let (_, links) = world.original(metric);
        let mut rows: Rows = world.rows.iter().filter(|(ordinal, _)| ordinal % 10 != 3).cloned().collect();
        for (_, vector) in rows.iter_mut().filter(|(ordinal, _)| ordinal % 10 == 5) {
            let cluster = world.dice.below(CLUSTERS);
            *vector = world.clusters.draw(&mut world.dice, cluster);
        }
        rows.extend((ROWS..ROWS + 600).map(|at| (at, world.draw())));
        let (again, report) = linked_again(metric, &rows, &links);
        let changed = (ROWS / 10 + 600) as usize;
        assert_eq!((report.left, report.refused.as_ref()), (changed, None), "{metric:?}");
        assert_eq!(report.kept + report.relinked + report.left, rows.len(), "{metric:?}: {report:?}");
        assert!(report.kept > rows.len() * 3 / 4, "{metric:?}: {report:?}");
        again.index.rest().unwrap();
        again.index.settle();
        let mut fresh = Tested::new(options(metric));
        fresh.load(&rows);
        let recalls = [fresh.recall(&queries, 10, EFFORT, None), again.recall(&queries, 10, EFFORT, None)];
        assert!(recalls[1] >= 0.95 && recalls[1] > recalls[0] - 0.02, "{metric:?}: {recalls:?}");
        println!("{metric:?}: {report:?}, {recalls:?}");
    }
}

#[test]
fn rows_that_were_deleted_before_are_not_missed_by_those_that_stay() {
    let mut world = World::new(53);
    // Without any structure, so that each link counts.
    let mut draw = || -> Vec<f32> { (0..DIMENSION).map(|_| world.dice.normal()).collect() };
    world.rows.iter_mut().for_each(|(_, vector)| *vector = draw());
    let queries: Vec<Vec<f32>> = (0..100).map(|_| draw()).collect();
    let (mut original, links) = world.original(Metric::Cosine);
    let gone: Vec<Change> = (0..ROWS).filter(|at| at % 7 == 2).map(Change::DeleteDocument).collect();
    original.apply(&gone);
    original.commit();
    original.index.settle();
    let rows: Rows = original.rows.iter().map(|(ordinal, vector)| (*ordinal, vector.clone())).collect();
    let mut fresh = Tested::new(options(Metric::Cosine));
    fresh.load(&rows);
    let wanted = fresh.recall(&queries, 10, 0.2, None);
    let later = world.folder.0.join("later");
    original.index.write_links(&later).unwrap();
    for path in [links, later] {
        let (again, report) = linked_again(Metric::Cosine, &rows, &path);
        assert!(report.kept > rows.len() * 3 / 4, "{report:?}");
        let recall = again.recall(&queries, 10, 0.2, None);
        assert!(recall > wanted - 0.03, "{recall} beside {wanted}");
    }
}

#[test]
fn rows_that_were_held_and_got_no_links_are_linked_once_the_index_is_opened_again() {
    let world = World::new(57);
    let mut held = Tested::new(options(Metric::Cosine));
    held.index.hold();
    held.load(&world.rows[..3000]);
    held.index.rest().unwrap();
    held.index.settle();
    let path = world.folder.0.join("held");
    assert_eq!(held.index.write_links(&path).unwrap(), 0);
    held.index.checkpoint().unwrap();
    held.reopen();
    held.index.rest().unwrap();
    held.index.settle();
    assert!(held.index.write_links(&path).unwrap() > 0);
}

#[test]
fn copies_of_one_vector_are_copies_again() {
    let mut world = World::new(54);
    for (ordinal, vector) in &mut world.rows.clone() {
        if *ordinal % 3 != 0 {
            continue;
        }
        world.rows[*ordinal as usize + 1].1 = vector.clone();
    }
    let (original, links) = world.original(Metric::L2Squared);
    let (again, report) = linked_again(Metric::L2Squared, &world.rows, &links);
    assert_eq!(report, LinkReport { kept: ROWS as usize * 2 / 3, ..LinkReport::default() });
    assert_eq!(again.index.stats().segment_count, 1);
    let queries = world.queries();
    assert_eq!(original.recall(&queries, 10, 0.5, None), again.recall(&queries, 10, 0.5, None));
}

#[test]
fn links_of_other_vectors_are_left_out() {
    let mut world = World::new(55);
    let (_, links) = world.original(Metric::Cosine);
    let other: Rows = (0..ROWS).map(|at| (at, world.draw())).collect();
    let (again, report) = linked_again(Metric::Cosine, &other, &links);
    assert_eq!(report, LinkReport { left: ROWS as usize, ..LinkReport::default() });
    again.index.settle();
    let queries = world.queries();
    let recall = again.recall(&queries, 10, EFFORT, None);
    assert!(recall >= 0.95, "{recall}");
}

/// The bytes before the links of a file whose nodes have ordinals that follow one another.
fn head_bytes(nodes: usize) -> usize {
    8 + nodes * 6
}

#[test]
fn a_file_that_lies_is_left_out_and_said_to_be() {
    let mut world = World::new(56);
    let queries = world.queries();
    let (_, links) = world.original(Metric::Cosine);
    let whole = fs::read(&links).unwrap();
    let head = &whole[..head_bytes(ROWS as usize)];
    let mut dice = Dice(57);
    let mut lie = |links_of: &mut dyn FnMut(&mut Dice, usize) -> Vec<usize>| {
        let mut bytes = head.to_vec();
        for row in 0..ROWS as usize {
            let mut links = links_of(&mut dice, row);
            links.sort_unstable();
            links.dedup();
            varint(&mut bytes, links.len());
            varint(&mut bytes, links.len());
            links.iter().fold(0, |last, &link| {
                varint(&mut bytes, link - last);
                link
            });
        }
        bytes
    };
    let rows = ROWS as usize;
    let cases: [(&str, Vec<u8>); 6] = [
        ("random links", lie(&mut |dice, _| (0..32).map(|_| dice.below(rows)).collect())),
        ("a ring", lie(&mut |_, row| vec![(row + 1) % rows])),
        ("links to itself", lie(&mut |_, row| vec![row])),
        ("one crowd", lie(&mut |_, _| (0..32).collect())),
        ("half of it", whole[..whole.len() / 2].to_vec()),
        ("nothing", Vec::new()),
    ];
    for (name, bytes) in cases {
        fs::write(&links, bytes).unwrap();
        let (again, report) = linked_again(Metric::Cosine, &world.rows, &links);
        assert!(report.refused.is_some() || name == "links to itself", "{name}: {report:?}");
        assert_eq!((report.kept, report.relinked + report.left), (0, rows), "{name}");
        again.index.settle();
        let recall = again.recall(&queries, 10, EFFORT, None);
        assert!(recall >= 0.95, "{name}: {recall}");
    }
}

fn varint(bytes: &mut Vec<u8>, mut value: usize) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

#[test]
fn an_index_without_a_graph_has_no_links() {
    let world = World::new(58);
    let mut tested = Tested::new(options(Metric::Cosine));
    tested.load(&world.rows[..10]);
    let path = world.folder.0.join("none");
    assert_eq!(tested.index.write_links(&path).unwrap(), 0);
    assert!(!path.exists());
}
