//! What a dense index promises when its rows lie in graphs: recall with and without filters, for every metric; never fewer
//! hits than there are; no decay; everything that a small set promises, too.

use super::support::{Change, Clusters, Dice, INDEX_ID, Tested, search, search_with};
use sundew_base::bit_set::BitSet;
use sundew_base::derived_index::DerivedIndex;
use sundew_vector::dense::{DenseOptions, DistanceBounds, Metric};
use sundew_vector::search::SearchBounds;

const DIMENSION: usize = 24;
const CLUSTERS: usize = 60;
const METRICS: [Metric; 3] = [Metric::L2Squared, Metric::Cosine, Metric::InnerProduct];
/// Low enough that graphs are walked, not scanned, at the sizes of a test.
const EFFORT: f32 = 0.35;

/// Graphs of few rows, built fast.
fn options(metric: Metric) -> DenseOptions {
    DenseOptions {
        tail_bytes: 1000 * DIMENSION * 4,
        build_candidates: 64,
        ..DenseOptions::new("taste", INDEX_ID, DIMENSION as u32, metric)
    }
}

struct World {
    dice: Dice,
    clusters: Clusters,
}

impl World {
    fn new(seed: u64) -> Self {
        println!("seed {seed}");
        let mut dice = Dice(seed);
        let clusters = Clusters::new(&mut dice, CLUSTERS, DIMENSION);
        Self { dice, clusters }
    }

    fn cluster_of(ordinal: u32) -> usize {
        (ordinal as usize).wrapping_mul(2_654_435_761) % CLUSTERS
    }

    fn rows(&mut self, ordinals: impl Iterator<Item = u32>) -> Vec<(u32, Vec<f32>)> {
        ordinals.map(|at| (at, self.clusters.draw(&mut self.dice, Self::cluster_of(at)))).collect()
    }

    fn queries(&mut self, count: usize) -> Vec<Vec<f32>> {
        (0..count).map(|at| self.clusters.draw(&mut self.dice, at % CLUSTERS)).collect()
    }
}

#[test]
fn recall_holds_with_every_metric_and_every_filter() {
    const ROWS: u32 = 14_000;
    for metric in METRICS {
        let mut world = World::new(42);
        let mut tested = Tested::new(DenseOptions { mem_only: metric == Metric::L2Squared, ..options(metric) });
        tested.load(&world.rows(0..ROWS));
        let queries = world.queries(40);
        let recall = tested.recall(&queries, 10, EFFORT, None);
        assert!(recall >= 0.95, "{metric:?} without a filter: {recall}");
        let mut arms = search_with(&tested.index, &queries[0], 10, EFFORT, None).report.arms;
        // In thousandths of the rows.
        for kept in [800, 500, 200, 100, 50, 10, 1] {
            let mixed = |what: u64| (what + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
            let independent: BitSet = (0..ROWS).filter(|&at| mixed(u64::from(at)) % 1000 < kept).collect();
            let correlated: BitSet =
                (0..ROWS).filter(|&at| mixed(World::cluster_of(at) as u64 * 31) % 1000 < kept).collect();
            for (kind, allowed) in [("independent", independent), ("correlated", correlated)] {
                let recall = tested.recall(&queries, 10, EFFORT, Some(&allowed));
                assert!(recall >= 0.95 || allowed.is_empty(), "{metric:?}, {kind}, {kept} of 1000: {recall}");
                for query in &queries[..8] {
                    arms.extend(search_with(&tested.index, query, 10, EFFORT, Some(&allowed)).report.arms);
                }
            }
        }
        for arm in ["graph", "filtered_graph", "filtered_steps", "scan"] {
            assert!(arms.contains(&arm), "the test does not take the way {arm}");
        }
    }
}

#[test]
fn neighbours_in_narrow_clusters_are_told_apart() {
    const ROWS: u32 = 6000;
    let mut world = World::new(31);
    // A fortieth of the usual spread: the angles within a cluster are as small as what rounding adds to a vector.
    let mut narrow = |cluster: usize| -> Vec<f32> {
        let centre = world.clusters.centres[cluster].clone();
        let drawn = world.clusters.draw(&mut world.dice, cluster);
        let length = drawn.iter().zip(&centre).map(|(value, centre)| value * centre).sum::<f32>();
        let moved = |(value, centre): (&f32, &f32)| centre + (value / length - centre) / 40.0;
        drawn.iter().zip(&centre).map(moved).collect()
    };
    let rows: Vec<(u32, Vec<f32>)> = (0..ROWS).map(|at| (at, narrow(World::cluster_of(at)))).collect();
    let queries: Vec<Vec<f32>> = (0..60).map(|at| narrow(at % CLUSTERS)).collect();
    for metric in [Metric::Cosine, Metric::L2Squared] {
        let mut tested = Tested::new(options(metric));
        tested.load(&rows);
        let is_found = |(ordinal, vector): &&(u32, Vec<f32>)| {
            search(&tested.index, vector, 1, None).hits.iter().any(|hit| hit.ordinal == *ordinal)
        };
        let found = rows.iter().filter(is_found).count();
        assert!(found as u32 >= ROWS - ROWS / 500, "{metric:?}: {found} rows are found by their own vectors");
        let recall = tested.recall(&queries, 10, 0.5, None);
        assert!(recall >= 0.97, "{metric:?}: {recall}");
    }
}

#[test]
fn rows_without_any_structure_are_found_too() {
    const WIDE: usize = 96;
    println!("seed 31");
    let mut dice = Dice(31);
    let mut draw = || -> Vec<f32> { (0..WIDE).map(|_| dice.normal()).collect() };
    let rows: Vec<(u32, Vec<f32>)> = (0..10_000).map(|at| (at, draw())).collect();
    let queries: Vec<Vec<f32>> = (0..30).map(|_| draw()).collect();
    let half: BitSet = (0..10_000).filter(|at| at % 2 == 0).collect();
    for metric in METRICS {
        let options = DenseOptions::new("taste", INDEX_ID, WIDE as u32, metric);
        let mut tested = Tested::new(DenseOptions { tail_bytes: 1 << 20, build_candidates: 64, ..options });
        tested.load(&rows);
        for allowed in [None, Some(&half)] {
            let recall = tested.recall(&queries, 10, 0.5, allowed);
            assert!(recall >= 0.98, "{metric:?}, half of the rows: {}: {recall}", allowed.is_some());
        }
    }
}

/// More rows than are scanned after any walk that is in doubt.
const MANY: u32 = 48_000;

#[test]
fn rows_without_any_structure_are_found_among_many() {
    const WIDE: usize = 64;
    println!("seed 37");
    let mut dice = Dice(37);
    let mut draw = || -> Vec<f32> { (0..WIDE).map(|_| dice.normal()).collect() };
    let rows: Vec<(u32, Vec<f32>)> = (0..MANY).map(|at| (at, draw())).collect();
    let queries: Vec<Vec<f32>> = (0..40).map(|_| draw()).collect();
    let options = DenseOptions::new("taste", INDEX_ID, WIDE as u32, Metric::Cosine);
    let mut tested = Tested::new(DenseOptions { build_candidates: 48, ..options });
    tested.load(&rows);
    let most: BitSet = (0..MANY).filter(|at| at % 10 != 0).collect();
    for allowed in [None, Some(&most)] {
        let recall = tested.recall(&queries, 10, 0.5, allowed);
        assert!(recall >= 0.95, "nine in ten rows: {}: {recall}", allowed.is_some());
    }
    // Time is over after a first walk, which has found something.
    let bounds = SearchBounds { limit: 10, allowed: None, is_due: &|| true };
    for query in &queries {
        let found = tested.index.search(query, 0.5, DistanceBounds::default(), &bounds).unwrap();
        assert!(found.hits.len() >= 10, "{} hits", found.hits.len());
    }
}

#[test]
fn rows_are_found_by_queries_off_all_clusters() {
    const WIDE: usize = 128;
    println!("seed 41");
    let mut dice = Dice(41);
    let clusters = Clusters::new(&mut dice, 200, WIDE);
    let mut row = |at: u32| {
        // Few large clusters and many small ones.
        let cluster = 200f32.powf(dice.unit()) as usize - 1;
        let wide = clusters.draw(&mut dice, cluster);
        (at, clusters.centres[cluster].iter().zip(wide).map(|(centre, value)| 2.0 * centre + value).collect())
    };
    let rows: Vec<(u32, Vec<f32>)> = (0..MANY).map(&mut row).collect();
    let near: Vec<Vec<f32>> = (0..40).map(|at| row(at).1).collect();
    let off: Vec<Vec<f32>> = (0..40).map(|_| (0..WIDE).map(|_| dice.normal()).collect()).collect();
    let options = DenseOptions::new("taste", INDEX_ID, WIDE as u32, Metric::Cosine);
    let mut tested = Tested::new(DenseOptions { build_candidates: 48, ..options });
    tested.load(&rows);
    for (kind, queries, least) in [("in a cluster", near, 0.98), ("off all", off, 0.8)] {
        let recall = tested.recall(&queries, 10, 0.5, None);
        println!("{kind}: {recall}");
        assert!(recall >= least, "{kind}: {recall}");
    }
}

#[test]
fn all_rows_are_found_when_all_are_wanted() {
    let mut world = World::new(7);
    let mut tested = Tested::new(options(Metric::L2Squared));
    // Islands that no link leads to: each vector stands two hundred times.
    let rows: Vec<(u32, Vec<f32>)> =
        (0..4000).map(|at| (at, world.clusters.centres[at as usize / 200].clone())).collect();
    tested.load(&rows);
    let deleted: Vec<Change> = (0..4000).filter(|at| at % 10 == 3).map(Change::Delete).collect();
    tested.apply(&deleted);
    tested.commit();
    let query = world.queries(1).remove(0);
    for limit in [1, 10, 500, 3600, 5000] {
        assert!(search(&tested.index, &query, limit, None).hits.len() >= limit.min(3600), "limit {limit}");
    }
    let allowed: BitSet = (0..4000).filter(|at| at % 3 == 0).collect();
    let live = allowed.iter().filter(|at| at % 10 != 3).count();
    assert_eq!(search(&tested.index, &query, 4000, Some(&allowed)).hits.len(), live);
}

#[test]
fn distance_bounds_lose_nothing() {
    let mut world = World::new(11);
    for metric in METRICS {
        let mut tested = Tested::new(options(metric));
        tested.load(&world.rows(0..4000));
        for query in world.queries(10) {
            let all = tested.nearest(&query, 4000, None);
            // Halfway between neighbours, so that rounding decides nothing.
            let between = |at: usize| ((all[at].1 + all[at + 1].1) / 2.0) as f32;
            for (first, last) in [(0, 4), (0, 300), (100, 105), (1500, 1600), (3990, 3998)] {
                let (over, under) = ((first > 0).then(|| between(first - 1)), Some(between(last - 1)));
                let bounds = SearchBounds { limit: 1000, allowed: None, is_due: &|| false };
                let found =
                    tested.index.search(&query, EFFORT, DistanceBounds { under, over }, &bounds).unwrap().hits.len();
                assert!(found as f64 >= 0.98 * (last - first) as f64, "{metric:?} {first}..{last}: {found}");
                assert!(found <= last - first, "{metric:?} {first}..{last}: {found}");
            }
        }
    }
}

#[test]
fn neither_recall_nor_cost_decays_under_replacement() {
    const ROWS: u32 = 6000;
    let mut world = World::new(13);
    let mut tested = Tested::new(options(Metric::Cosine));
    tested.load(&world.rows(0..ROWS));
    let queries = world.queries(30);
    let cost = |tested: &Tested| -> u64 {
        queries.iter().map(|query| search_with(&tested.index, query, 10, EFFORT, None).report.visited).sum()
    };
    let fresh = cost(&tested);
    for round in 0..10 {
        let replaced = world.rows((0..ROWS).filter(|at| at % 2 == round % 2));
        tested.load(&replaced);
        let recall = tested.recall(&queries, 10, EFFORT, None);
        assert!(recall >= 0.95, "round {round}: {recall}");
    }
    let worn = cost(&tested);
    assert!(worn as f64 <= 1.5 * fresh as f64, "{worn} visits after ten rounds, {fresh} before");
    let stats = tested.index.stats();
    assert!(stats.segment_count <= 12, "{} segments", stats.segment_count);
    assert!(stats.memory_bytes as usize <= 3 * ROWS as usize * (DIMENSION * 4 + 192), "{} bytes", stats.memory_bytes);
}

#[test]
fn rows_that_die_while_a_graph_is_built_stay_dead() {
    let mut world = World::new(17);
    let mut tested = Tested::new(options(Metric::L2Squared));
    let rows = world.rows(0..5000);
    for frame in rows.chunks(250) {
        let changes: Vec<Change> = frame.iter().map(|(ordinal, vector)| Change::Put(*ordinal, vector)).collect();
        tested.apply(&changes);
        tested.commit();
        // While the builder has the rows that came before.
        let first = frame[0].0;
        let moved = world.clusters.draw(&mut world.dice, 1);
        tested.apply(&[
            Change::Delete(first / 2 + 7),
            Change::Put(first / 3 + 11, &moved),
            Change::DeleteDocument(first),
        ]);
        tested.commit();
    }
    tested.index.settle();
    let queries = world.queries(20);
    assert!(tested.recall(&queries, 10, 0.5, None) >= 0.99);
    assert_eq!(search(&tested.index, &queries[0], 5000, None).hits.len(), tested.rows.len());
}

#[test]
fn graphs_open_at_the_checkpoint_and_go_on_from_there() {
    let mut world = World::new(19);
    let mut tested = Tested::new(options(Metric::InnerProduct));
    tested.load(&world.rows(0..3000));
    tested.apply(&[Change::Delete(5), Change::Delete(2999)]);
    tested.commit();
    tested.index.checkpoint().unwrap();
    let (rows, sequence) = (tested.rows.clone(), tested.sequence);
    // What comes after the checkpoint is lost with the process, and comes again.
    let later = world.rows(2000..5000);
    tested.load(&later);
    let queries = world.queries(20);
    tested.reopen();
    tested.index.verify().unwrap();
    (tested.rows, tested.sequence) = (rows, sequence);
    assert_eq!(tested.index.stats().applied_sequence, sequence);
    assert!(tested.recall(&queries, 10, 0.5, None) >= 0.98);
    tested.load(&later);
    assert!(tested.recall(&queries, 10, 0.5, None) >= 0.98);
    tested.index.checkpoint().unwrap();
    tested.reopen();
    tested.index.verify().unwrap();
    assert!(tested.recall(&queries, 10, 0.5, None) >= 0.98);
    let names = std::fs::read_dir(&tested.directory.0).unwrap().count();
    assert!(names <= 2 * tested.index.stats().segment_count + 2, "{names} files are left");
}

#[test]
fn rows_get_a_graph_when_nothing_more_is_written() {
    let mut world = World::new(29);
    let mut tested = Tested::new(options(Metric::Cosine));
    let query = world.queries(1).remove(0);
    // A graph of so few rows is scanned by its codes.
    let ways = |tested: &Tested| search(&tested.index, &query, 5, None).report.arms;
    tested.load(&world.rows(0..900));
    assert_eq!(ways(&tested), ["scan"]);
    tested.index.checkpoint().unwrap();
    tested.reopen();
    tested.index.rest().unwrap();
    tested.index.settle();
    assert_eq!(ways(&tested), ["exact_fallback"]);
    // Nobody asks for a checkpoint while nothing is written.
    tested.reopen();
    assert_eq!(ways(&tested), ["exact_fallback"]);
    // A few rows more are scanned beside it, however often nothing is written.
    tested.load(&world.rows(850..1000));
    tested.index.rest().unwrap();
    tested.index.settle();
    assert_eq!(ways(&tested), ["exact_fallback", "scan"]);
    assert!(tested.recall(&world.queries(20), 10, 0.5, None) >= 0.98);
    tested.index.checkpoint().unwrap();
    tested.reopen();
    tested.index.verify().unwrap();
    assert_eq!(ways(&tested), ["exact_fallback", "scan"]);
    assert_eq!(search(&tested.index, &query, 2000, None).hits.len(), 1000);
}

#[test]
fn a_search_that_is_due_ends_with_what_it_has() {
    let mut world = World::new(23);
    let mut tested = Tested::new(options(Metric::Cosine));
    tested.load(&world.rows(0..3000));
    let query = world.queries(1).remove(0);
    let bounds = SearchBounds { limit: 3000, allowed: None, is_due: &|| true };
    let hits = tested.index.search(&query, 1.0, DistanceBounds::default(), &bounds).unwrap();
    assert!(hits.is_partial && hits.hits.len() < 3000);
}
