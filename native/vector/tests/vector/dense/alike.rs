//! What a dense index promises where many vectors are alike: equal and nearly equal rows cost the others nothing, whatever
//! their share, and a stored vector finds itself.

use super::support::{Dice, INDEX_ID, Tested, cost, search};
use sundew_base::bit_set::BitSet;
use sundew_base::derived_index::DerivedIndex;
use sundew_vector::dense::{DenseOptions, Metric};

const DIMENSION: usize = 64;
const ROWS: usize = 10_000;
const LIMIT: usize = 10;

/// `groups` vectors that stand in the set `copies` times each; the other rows are distinct.
#[derive(Debug, Clone, Copy)]
struct Shape {
    groups: usize,
    copies: usize,
    /// What is added to each component of a copy, at most.
    apart: f32,
}

const SHAPES: [(usize, usize); 8] =
    [(1, 10), (1, 100), (1, 1000), (1, 5000), (1, 9000), (1, 9900), (10, 500), (20, 300)];

struct Rows {
    vectors: Vec<(u32, Vec<f32>)>,
    copies: Vec<u32>,
    distinct: Vec<u32>,
}

fn draw(dice: &mut Dice) -> Vec<f32> {
    let vector: Vec<f32> = (0..DIMENSION).map(|_| dice.normal()).collect();
    let norm = vector.iter().map(|value| value * value).sum::<f32>().sqrt();
    vector.iter().map(|value| value / norm).collect()
}

/// Copies and distinct rows in an order without a pattern.
fn rows(dice: &mut Dice, shape: Shape) -> Rows {
    let centres: Vec<Vec<f32>> = (0..shape.groups).map(|_| draw(dice)).collect();
    let mut order: Vec<usize> = (0..ROWS).collect();
    (1..ROWS).for_each(|at| order.swap(at, dice.below(at + 1)));
    let mut rows = Rows { vectors: Vec::new(), copies: Vec::new(), distinct: Vec::new() };
    for (&at, ordinal) in order.iter().zip(0..) {
        let vector = match centres.get(at / shape.copies) {
            Some(centre) => centre.iter().map(|value| value + shape.apart * (2.0 * dice.unit() - 1.0)).collect(),
            None => draw(dice),
        };
        let kind = if at < shape.groups * shape.copies { &mut rows.copies } else { &mut rows.distinct };
        kind.push(ordinal);
        rows.vectors.push((ordinal, vector));
    }
    rows
}

/// A twentieth of the distance between near copies, and what float32 makes of equal vectors.
fn tolerance(metric: Metric) -> f64 {
    if metric == Metric::L2Squared { 2e-8 } else { 3e-7 }
}

struct Query {
    /// The row whose vector it is.
    own: Option<u32>,
    vector: Vec<f32>,
    /// Of every row.
    costs: Vec<f64>,
}

impl Query {
    fn new(metric: Metric, own: Option<u32>, vector: Vec<f32>, rows: &Rows) -> Self {
        let costs = rows.vectors.iter().map(|(_, row)| cost(metric, &vector, row)).collect();
        Self { own, vector, costs }
    }

    /// What the last of the nearest that are allowed costs, and how many these are.
    fn truth(&self, allowed: Option<&BitSet>) -> (f64, usize) {
        let costs = self.costs.iter().zip(0..).filter(|&(_, row)| allowed.is_none_or(|allowed| allowed.contains(row)));
        let mut costs: Vec<f64> = costs.map(|(&cost, _)| cost).collect();
        let count = LIMIT.min(costs.len());
        let last = count.checked_sub(1).map(|last| *costs.select_nth_unstable_by(last, f64::total_cmp).1);
        (last.unwrap_or(f64::MAX), count)
    }
}

/// Share of the true nearest that are found, and how many of the stored queries do not find themselves.
fn measure(tested: &Tested, queries: &[Query], allowed: Option<&BitSet>) -> (f64, usize) {
    let tolerance = tolerance(tested.options.metric);
    let (mut found, mut wanted, mut lost) = (0, 0, 0);
    for query in queries {
        let (worst, count) = query.truth(allowed);
        let hits = search(&tested.index, &query.vector, LIMIT, allowed).hits;
        assert!(hits.len() >= count, "{} hits of {count}", hits.len());
        let cost_of = |row: u32| query.costs[row as usize];
        found += hits.iter().take(LIMIT).filter(|hit| cost_of(hit.ordinal) <= worst + tolerance).count();
        wanted += count;
        let own = query.own.filter(|&own| allowed.is_none_or(|allowed| allowed.contains(own)));
        lost += usize::from(
            own.is_some_and(|own| hits.first().is_none_or(|hit| cost_of(hit.ordinal) > cost_of(own) + tolerance)),
        );
    }
    (found as f64 / wanted.max(1) as f64, lost)
}

fn check(metric: Metric, apart: f32) {
    println!("seed 53");
    let mut dice = Dice(53);
    for (groups, copies) in SHAPES {
        let shape = Shape { groups, copies, apart };
        let rows = rows(&mut dice, shape);
        let options = DenseOptions::new("taste", INDEX_ID, DIMENSION as u32, metric);
        let mut tested = Tested::new(DenseOptions { tail_bytes: 1 << 19, ..options });
        let mut stored = |ordinals: &[u32], count: usize| -> Vec<Query> {
            let drawn = (0..count).map(|_| ordinals[dice.below(ordinals.len())]);
            drawn.map(|row| Query::new(metric, Some(row), rows.vectors[row as usize].1.clone(), &rows)).collect()
        };
        let (distinct, copies) = (stored(&rows.distinct, 20), stored(&rows.copies, 10));
        let new = (0..10).map(|_| Query::new(metric, None, draw(&mut dice), &rows)).collect();
        let queries = [("distinct", distinct), ("copies", copies), ("new", new)];
        let third: BitSet = (0..ROWS as u32).filter(|at| at % 3 == 0).collect();
        let most_distinct: BitSet =
            rows.distinct.iter().copied().chain(rows.copies.iter().copied().filter(|at| at % 50 == 0)).collect();
        let most_copies: BitSet =
            rows.copies.iter().copied().chain(rows.distinct.iter().copied().filter(|at| at % 50 == 0)).collect();
        for is_settled in [false, true] {
            if is_settled {
                tested.index.rest().unwrap();
                tested.index.settle();
            } else {
                tested.put_all(&rows.vectors);
            }
            for (kind, queries) in &queries {
                let filters = [None, Some(&third), Some(&most_distinct), Some(&most_copies)];
                for (filter, allowed) in ["none", "a third", "distinct", "copies"].into_iter().zip(filters) {
                    let (recall, lost) = measure(&tested, queries, allowed);
                    println!(
                        "{metric:?} {shape:?} settled {is_settled} {kind} filter {filter}: {recall:.3}, {lost} lost"
                    );
                    assert!(recall >= 0.95, "recall {recall}");
                    assert_eq!(lost, 0, "stored vectors that do not find themselves");
                }
            }
        }
    }
}

#[test]
fn equal_vectors_cost_the_others_nothing_by_angle() {
    check(Metric::Cosine, 0.0);
}

#[test]
fn equal_vectors_cost_the_others_nothing_by_distance() {
    check(Metric::L2Squared, 0.0);
}

#[test]
fn equal_vectors_cost_the_others_nothing_by_product() {
    check(Metric::InnerProduct, 0.0);
}

#[test]
fn near_vectors_cost_the_others_nothing_by_angle() {
    check(Metric::Cosine, 1e-4);
}

#[test]
fn near_vectors_cost_the_others_nothing_by_distance() {
    check(Metric::L2Squared, 1e-4);
}

#[test]
fn near_vectors_cost_the_others_nothing_by_product() {
    check(Metric::InnerProduct, 1e-4);
}
