//! What a dense index promises where documents have several vectors: a hit for each document, found by the nearest of its
//! vectors; pages that are never short; all vectors of a document replaced and deleted together.

use std::collections::BTreeMap;

use super::support::{Clusters, Dice, INDEX_ID, TemporaryDirectory, cost, search_with};
use std::sync::Arc;
use sundew_base::bit_set::BitSet;
use sundew_base::derived_index::DerivedIndex;
use sundew_base::frame::{FrameWriter, RowKind};
use sundew_base::part::{PartForm, part_head};
use sundew_vector::dense::{DenseIndex, DenseOptions, Metric};
use sundew_vector::search::VectorHit;

const METRICS: [Metric; 3] = [Metric::L2Squared, Metric::Cosine, Metric::InnerProduct];

/// An index beside the sets of vectors that it must answer like.
struct Sets {
    directory: TemporaryDirectory,
    options: DenseOptions,
    index: Arc<DenseIndex>,
    documents: BTreeMap<u32, Vec<Vec<f32>>>,
    sequence: u64,
}

fn set_payload(vectors: &[Vec<f32>]) -> Vec<u8> {
    let mut payload = (vectors[0].len() as u32).to_le_bytes().to_vec();
    payload.extend((vectors.len() as u32).to_le_bytes());
    (0..vectors.len() as u32).for_each(|at| {
        payload.extend((10 * at).to_le_bytes());
        payload.extend((10 * at + 10).to_le_bytes());
        payload.extend([0; 16]);
    });
    payload.extend(vectors.iter().flatten().flat_map(|value| value.to_le_bytes()));
    payload
}

impl Sets {
    fn new(options: DenseOptions) -> Self {
        let directory = TemporaryDirectory::new();
        let index = DenseIndex::open(&directory.0, options.clone()).unwrap();
        Self { directory, options, index, documents: BTreeMap::new(), sequence: 0 }
    }

    /// Sets of vectors by document; an empty one deletes the document.
    fn apply(&mut self, changes: &[(u32, Vec<Vec<f32>>)]) {
        let mut writer = FrameWriter::new(changes.len(), 0).unwrap();
        for (at, (ordinal, vectors)) in changes.iter().enumerate() {
            let key = ordinal.to_string();
            if vectors.is_empty() {
                writer.push(RowKind::Delete, 0, key.as_bytes(), &[]);
                self.documents.remove(ordinal);
            } else {
                let head = part_head(INDEX_ID, PartForm::DenseSet);
                writer.push(RowKind::PartPut, 0, key.as_bytes(), &[&head, &set_payload(vectors)]);
                self.documents.insert(*ordinal, vectors.clone());
            }
            self.sequence += 1;
            writer.set_position(at, *ordinal, self.sequence, 0);
        }
        let report = self.index.apply(&writer.finish()).unwrap();
        assert_eq!((report.rows, report.skipped_count), (changes.len(), 0));
        let commit = self.index.commit(self.sequence).unwrap();
        assert_eq!(commit.doc_count, self.documents.len() as u64);
        let vectors = self.documents.values().map(Vec::len).sum::<usize>();
        assert_eq!(self.index.stats().vector_count, vectors as u64);
    }

    fn reopen(&mut self) {
        self.index.close().unwrap();
        self.index = DenseIndex::open(&self.directory.0, self.options.clone()).unwrap();
    }

    /// Ordinal, number and cost of the nearest vector of each document, nearest first.
    fn nearest(&self, query: &[f32], limit: usize, allowed: Option<&BitSet>) -> Vec<(u32, u16, f64)> {
        let permitted = self.documents.iter().filter(|(at, _)| allowed.is_none_or(|allowed| allowed.contains(**at)));
        let best = permitted.map(|(ordinal, vectors)| {
            let costs = vectors.iter().zip(0..).map(|(vector, at)| (at, cost(self.options.metric, query, vector)));
            let (number, cost) = costs.min_by(|a, b| a.1.total_cmp(&b.1)).unwrap();
            (*ordinal, number, cost)
        });
        let mut best: Vec<_> = best.collect();
        best.sort_by(|a, b| a.2.total_cmp(&b.2).then(a.0.cmp(&b.0)));
        best.truncate(limit);
        best
    }

    /// Share of the true nearest documents among the hits; every page is full, has each document once, and names a vector
    /// at the distance that it tells.
    fn recall(&self, query: &[f32], limit: usize, effort: f32, allowed: Option<&BitSet>) -> (usize, usize) {
        let truth = self.nearest(query, limit, allowed);
        let hits = search_with(&self.index, query, limit, effort, allowed).hits;
        assert!(hits.len() >= truth.len(), "{} hits of {}", hits.len(), truth.len());
        let mut ordinals: Vec<u32> = hits.iter().map(|hit| hit.ordinal).collect();
        ordinals.sort_unstable();
        ordinals.dedup();
        assert_eq!(ordinals.len(), hits.len(), "a document stands on the page twice");
        hits.iter().for_each(|hit| self.check(query, hit, allowed));
        let worst = truth.last().map_or(f64::MAX, |found| found.2 + 1e-5);
        let found = hits.iter().take(limit).filter(|hit| f64::from(hit.distance) <= worst).count();
        (found, truth.len())
    }

    fn check(&self, query: &[f32], hit: &VectorHit, allowed: Option<&BitSet>) {
        assert!(allowed.is_none_or(|allowed| allowed.contains(hit.ordinal)));
        let vector = &self.documents[&hit.ordinal][usize::from(hit.number)];
        assert!((f64::from(hit.distance) - cost(self.options.metric, query, vector)).abs() < 1e-4);
    }
}

fn draw_set(clusters: &Clusters, dice: &mut Dice, count: usize) -> Vec<Vec<f32>> {
    let cluster = dice.below(clusters.centres.len());
    // Some texts are the same in many documents.
    let common = clusters.draw(&mut Dice(7), 0);
    (0..count).map(|_| if dice.below(10) == 0 { common.clone() } else { clusters.draw(dice, cluster) }).collect()
}

#[test]
fn hits_are_documents_by_their_nearest_vector_through_every_change() {
    for (metric, seed) in METRICS.into_iter().zip([11, 12, 13]) {
        println!("metric {metric:?} seed {seed}");
        let mut dice = Dice(seed);
        let clusters = Clusters::new(&mut dice, 12, 16);
        // Few bytes wait for a graph, so that graphs are built, grow and are rewritten all the time.
        let options = DenseOptions { tail_bytes: 16 * 1024, ..DenseOptions::new("parts", INDEX_ID, 16, metric) };
        let mut sets = Sets::new(options);
        let (mut found, mut wanted) = (0, 0);
        for round in 0..40 {
            let changes: Vec<(u32, Vec<Vec<f32>>)> = (0..40)
                .map(|_| {
                    let count = [0, 1, 1, 2, 3, 5, 9][dice.below(7)];
                    (dice.below(300) as u32, draw_set(&clusters, &mut dice, count))
                })
                .collect();
            sets.apply(&changes);
            if round % 7 == 3 {
                sets.index.checkpoint().unwrap();
                sets.reopen();
                sets.index.verify().unwrap();
            }
            if round % 3 == 0 {
                sets.index.settle();
            }
            let allowed: BitSet = (0..300).filter(|ordinal| ordinal % 3 == round % 3).collect();
            for filter in [None, Some(&allowed)] {
                for limit in [1, 7, 400] {
                    let cluster = dice.below(12);
                    let query = clusters.draw(&mut dice, cluster);
                    let (hits, truth) = sets.recall(&query, limit, 0.5, filter);
                    (found, wanted) = (found + hits, wanted + truth);
                }
            }
        }
        assert!(found as f64 >= 0.999 * wanted as f64, "{metric:?}: {found} of {wanted}");
    }
}

#[test]
fn a_document_with_many_near_vectors_pushes_no_other_off_the_page() {
    for is_settled in [false, true] {
        let mut dice = Dice(5);
        let clusters = Clusters::new(&mut dice, 30, 16);
        let options =
            DenseOptions { tail_bytes: 64 * 1024, ..DenseOptions::new("parts", INDEX_ID, 16, Metric::Cosine) };
        let mut sets = Sets::new(options);
        for ordinals in (0..6_000u32).collect::<Vec<_>>().chunks(500) {
            let changes = ordinals.iter().map(|&at| (at, draw_set(&clusters, &mut dice, 2))).collect::<Vec<_>>();
            sets.apply(&changes);
        }
        let query = clusters.draw(&mut dice, 4);
        let near = |dice: &mut Dice| query.iter().map(|value| value + 1e-3 * dice.normal()).collect::<Vec<f32>>();
        let crowd: Vec<Vec<f32>> = (0..1_500).map(|_| near(&mut dice)).collect();
        sets.apply(&[(6_000, crowd[..700].to_vec()), (6_001, crowd[700..].to_vec())]);
        if is_settled {
            sets.index.rest().unwrap();
            sets.index.settle();
        }
        let allowed: BitSet = (0..6_100).filter(|ordinal| ordinal % 4 < 2).collect();
        for filter in [None, Some(&allowed)] {
            for limit in [2, 10, 100] {
                let (found, wanted) = sets.recall(&query, limit, 0.5, filter);
                assert!(found + limit / 50 >= wanted, "{found} of {wanted}, settled: {is_settled}");
            }
        }
    }
}

#[test]
fn recall_holds_where_documents_have_several_vectors() {
    let mut dice = Dice(9);
    let clusters = Clusters::new(&mut dice, 100, 32);
    let options = DenseOptions { tail_bytes: 64 * 1024, ..DenseOptions::new("parts", INDEX_ID, 32, Metric::Cosine) };
    let mut sets = Sets::new(options);
    for ordinals in (0..4_000u32).collect::<Vec<_>>().chunks(500) {
        let changes: Vec<_> = ordinals
            .iter()
            .map(|&at| {
                let count = 1 + dice.below(9);
                (at, draw_set(&clusters, &mut dice, count))
            })
            .collect();
        sets.apply(&changes);
    }
    sets.index.rest().unwrap();
    sets.index.settle();
    for share in [1, 2, 10, 50] {
        let allowed: BitSet = (0..4_000).filter(|ordinal| ordinal % share == 0).collect();
        let filter = if share == 1 { None } else { Some(&allowed) };
        let (mut found, mut wanted) = (0, 0);
        for _ in 0..100 {
            let cluster = dice.below(100);
            let query = clusters.draw(&mut dice, cluster);
            let (hits, truth) = sets.recall(&query, 10, 0.5, filter);
            (found, wanted) = (found + hits, wanted + truth);
        }
        assert!(found as f64 >= 0.97 * wanted as f64, "one in {share}: {found} of {wanted}");
    }
}

#[test]
fn fewer_vectors_leave_none_of_the_earlier_ones() {
    let mut dice = Dice(3);
    let clusters = Clusters::new(&mut dice, 4, 8);
    let mut sets = Sets::new(DenseOptions::new("parts", INDEX_ID, 8, Metric::L2Squared));
    let five = draw_set(&clusters, &mut dice, 5);
    sets.apply(&[(1, five.clone()), (2, draw_set(&clusters, &mut dice, 1))]);
    sets.apply(&[(1, five[..2].to_vec())]);
    assert_eq!(sets.index.stats().vector_count, 3);
    let hits = search_with(&sets.index, &five[4], 10, 0.5, None).hits;
    let own = hits.iter().find(|hit| hit.ordinal == 1).unwrap();
    assert!(own.number < 2);
    sets.check(&five[4], own, None);
}
