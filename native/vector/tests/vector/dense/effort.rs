//! What effort buys and costs: counted work and recall rise with it, and no search compares many more rows than a scan of all
//! that are allowed: a walk that turns out to cost more than it saves is abandoned before it has lost half of the scan.

use super::support::{Clusters, Dice, INDEX_ID, Tested, search_with};
use sundew_base::bit_set::BitSet;
use sundew_vector::dense::{DenseOptions, Metric};

const WIDE: usize = 96;
const ROWS: u32 = 40_000;
const LIMIT: usize = 10;
/// Rows that one step of a walk compares at most.
const STEP: usize = 64;
const EFFORTS: [f32; 6] = [0.5, 0.6, 0.7, 0.8, 0.9, 1.0];

struct World {
    tested: Tested,
    /// Far from all rows, and among them.
    queries: [Vec<Vec<f32>>; 2],
}

fn world(metric: Metric) -> World {
    println!("seed 61");
    let mut dice = Dice(61);
    let clusters = Clusters::new(&mut dice, 200, WIDE);
    let rows: Vec<(u32, Vec<f32>)> =
        (0..ROWS).map(|at| (at, clusters.draw(&mut dice, at as usize * 7919 % 200))).collect();
    let near = (0..30).map(|at| clusters.draw(&mut dice, at)).collect();
    let off = (0..30).map(|_| (0..WIDE).map(|_| dice.normal()).collect()).collect();
    let options = DenseOptions::new("taste", INDEX_ID, WIDE as u32, metric);
    let mut tested = Tested::new(DenseOptions { build_candidates: 48, ..options });
    tested.load(&rows);
    World { tested, queries: [off, near] }
}

/// Rows looked at by one search. Those that lie in no graph, of which there are some or none as the builder came to the rows, are
/// compared exactly, the others by their codes.
fn work(tested: &Tested, query: &[f32], effort: f32, allowed: Option<&BitSet>) -> u64 {
    search_with(&tested.index, query, LIMIT, effort, allowed).report.visited
}

/// Each row is looked at once, but for the few that the way down has met already.
fn most(rows: usize) -> u64 {
    (rows + rows / 100) as u64
}

#[test]
fn work_and_recall_rise_with_effort_up_to_those_of_a_scan() {
    for metric in [Metric::Cosine, Metric::L2Squared] {
        let World { tested, queries } = world(metric);
        for (kind, queries) in ["off all clusters", "in clusters"].into_iter().zip(&queries) {
            let (mut last_work, mut last_recall) = (0, 0.0);
            for effort in EFFORTS {
                let each: Vec<u64> = queries.iter().map(|query| work(&tested, query, effort, None)).collect();
                let (sum, largest) = (each.iter().sum::<u64>(), each.iter().copied().max().unwrap_or(0));
                let recall = tested.recall(queries, LIMIT, effort, None);
                println!("{metric:?} {kind} effort {effort}: {} on average, {largest} at most, {recall}", sum / 30);
                assert!(largest <= most(ROWS as usize), "effort {effort} compares {largest} of {ROWS} rows");
                // A scan has no upper layers to pass.
                assert!(sum as f64 >= 0.95 * last_work as f64, "effort {effort}: {sum} after {last_work}");
                assert!(recall >= last_recall - 0.005, "effort {effort}: {recall} after {last_recall}");
                (last_work, last_recall) = (sum, recall);
            }
            assert!(last_recall >= 0.995, "{kind}: {last_recall} with the greatest effort");
        }
    }
}

/// All walks under a filter, upper layers included, compare half as many rows in vain as are allowed, and the scan
/// that may follow compares each of these once, but for the few of `most`.
fn most_under_a_filter(allowed: usize) -> u64 {
    most(allowed) + (allowed / 2 + STEP) as u64
}

#[test]
fn no_filter_makes_a_search_cost_much_more_than_a_scan_of_what_it_allows() {
    let World { tested, queries } = world(Metric::Cosine);
    let (mut arms, mut largest) = (Vec::new(), 0.0f64);
    for kept in [2, 3, 5, 20, 100] {
        let spread: BitSet = (0..ROWS).filter(|at| at % kept == 0).collect();
        let together: BitSet = (0..ROWS).filter(|at| at * 7919 % 200 % kept == 0).collect();
        for (kind, allowed) in [("spread", spread), ("together", together)] {
            for query in queries.iter().flatten() {
                for effort in EFFORTS.into_iter().chain([0.25]) {
                    let report = search_with(&tested.index, query, LIMIT, effort, Some(&allowed)).report;
                    let (compared, bound) = (report.visited + report.candidates, most_under_a_filter(allowed.len()));
                    assert!(compared <= bound, "1 in {kept}, {kind}, effort {effort}: {compared} of {}", allowed.len());
                    arms.extend(report.arms);
                    largest = largest.max(compared as f64 / allowed.len() as f64);
                }
            }
        }
    }
    println!("{largest:.3} of the allowed rows at most");
    for arm in ["filtered_graph", "filtered_steps", "exact_fallback", "scan"] {
        assert!(arms.contains(&arm), "the test does not take the way {arm}");
    }
}
