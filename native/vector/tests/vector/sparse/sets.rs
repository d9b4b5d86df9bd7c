//! What a sparse index promises where documents have several vectors: a hit for each document, scored by the best of its
//! vectors; pages that are never short; all vectors of a document replaced and deleted together.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::support::*;
use sundew_base::bit_set::BitSet;
use sundew_base::derived_index::DerivedIndex;
use sundew_base::frame::RowKind;
use sundew_base::part::{PartForm, part_head};
use sundew_vector::sparse::SparseIndex;

/// The vectors of each document with their sequence; a document may have vectors without entries.
type Sets = BTreeMap<u32, (u64, Vec<Entries>)>;
/// Ordinal, number, sequence, score.
type SetHitList = Vec<(u32, u16, u64, f32)>;

fn set_body(vectors: &[Entries]) -> Vec<u8> {
    let mut body = part_head(INDEX_ID, PartForm::SparseSet).to_vec();
    body.extend((vectors.len() as u32).to_le_bytes());
    for (vector, at) in vectors.iter().zip(0u32..) {
        body.extend((10 * at).to_le_bytes());
        body.extend((10 * at + 10).to_le_bytes());
        body.extend([0; 16]);
        body.extend((vector.len() as u32).to_le_bytes());
    }
    for vector in vectors {
        body.extend(vector.iter().flat_map(|entry| entry.0.to_le_bytes()));
        body.extend(vector.iter().flat_map(|entry| entry.1.to_le_bytes()));
    }
    body
}

fn score_of(query: &Entries, vector: &Entries) -> Option<f32> {
    let mut score = None;
    for &(dimension, weight) in query.iter().filter(|entry| entry.1 != 0.0) {
        if let Ok(at) = vector.binary_search_by_key(&dimension, |entry| entry.0)
            && vector[at].1 != 0.0
        {
            score = Some(score.unwrap_or(0.0) + weight * vector[at].1);
        }
    }
    score
}

fn best_of_sets(sets: &Sets, query: &Entries, limit: usize, allowed: Option<&BitSet>) -> SetHitList {
    let mut all = SetHitList::new();
    for (&ordinal, (sequence, vectors)) in sets {
        let mut best: Option<(u16, f32)> = None;
        for (vector, number) in vectors.iter().zip(0u16..) {
            match score_of(query, vector) {
                Some(score) if best.is_none_or(|best| score > best.1) => best = Some((number, score)),
                _ => {}
            }
        }
        if let Some((number, score)) = best.filter(|_| allowed.is_none_or(|allowed| allowed.contains(ordinal))) {
            all.push((ordinal, number, *sequence, score));
        }
    }
    all.sort_by(|one, other| other.3.total_cmp(&one.3).then(one.0.cmp(&other.0)));
    if let Some(last) = all.get(limit - 1).map(|hit| hit.3) {
        all.retain(|hit| hit.3 >= last);
    }
    all
}

struct Run {
    random: Random,
    sets: Sets,
    sequence: u64,
    documents: u64,
    dimensions: u32,
    lowest: f64,
    is_coarse: bool,
}

impl Run {
    fn new(seed: u64) -> Self {
        println!("seed {seed}");
        let mut random = Random::new(seed);
        let documents = [20, 400, 3000][random.below(3) as usize];
        let dimensions = [10, 200, 2000][random.below(3) as usize];
        let lowest = if random.below(2) == 0 { -1.0 } else { 0.1 };
        let is_coarse = random.below(2) == 0;
        Self { random, sets: Sets::new(), sequence: 0, documents, dimensions, lowest, is_coarse }
    }

    fn entries(&mut self, most: u64) -> Entries {
        let count = 1 + self.random.below(most) as usize;
        let mut entries = self.random.entries(count, self.dimensions, self.lowest);
        if self.is_coarse {
            entries.iter_mut().for_each(|entry| entry.1 = entry.1.round());
        }
        entries
    }

    /// One document has more vectors than a window holds beside the others, now and then.
    fn vectors(&mut self) -> Vec<Entries> {
        let count = [1, 2, 5, 40, 1200][[0, 1, 1, 2, 2, 2, 3, 3, 3, 4][self.random.below(10) as usize]];
        let nothing_at = self.random.below(6) as usize;
        (0..count).map(|at| if at == nothing_at { Entries::new() } else { self.entries(8) }).collect()
    }

    fn apply(&mut self, index: &SparseIndex) {
        let first = self.sequence + 1;
        let mut rows = Vec::new();
        for _ in 0..[1, 5, 30][self.random.below(3) as usize] {
            let ordinal = self.random.below(self.documents) as u32;
            self.sequence += 1;
            rows.push(match self.random.below(8) {
                0 => {
                    self.sets.remove(&ordinal);
                    (RowKind::Delete, ordinal, Vec::new())
                }
                1 => {
                    self.sets.remove(&ordinal);
                    (RowKind::PartDelete, ordinal, part_head(INDEX_ID, PartForm::Deleted).to_vec())
                }
                2 => {
                    let entries = self.entries(8);
                    self.sets.insert(ordinal, (self.sequence, vec![entries.clone()]));
                    (RowKind::PartPut, ordinal, sparse_body(INDEX_ID, &entries))
                }
                _ => {
                    let vectors = self.vectors();
                    self.sets.insert(ordinal, (self.sequence, vectors.clone()));
                    (RowKind::PartPut, ordinal, set_body(&vectors))
                }
            });
        }
        let report = index.apply(&raw_frame(&rows, first)).expect("rows are applied");
        assert_eq!((report.rows, report.skipped_count), (rows.len(), 0));
        let doc_count = index.commit(self.sequence).expect("a commit").doc_count;
        let counts = |vector: &&Entries| vector.iter().any(|entry| entry.1 != 0.0);
        let found = self.sets.values().map(|(_, vectors)| vectors.iter().filter(counts).count());
        let counted: Vec<usize> = found.filter(|&count| count > 0).collect();
        assert_eq!(doc_count, counted.len() as u64, "documents");
        assert_eq!(index.stats().vector_count, counted.iter().sum::<usize>() as u64, "vectors");
    }

    fn compare(&mut self, index: &SparseIndex) {
        for _ in 0..6 {
            let query = self.entries(8);
            let limit = 1 + self.random.below(12) as usize;
            let share = [2.0, 0.5, 0.02][self.random.below(3) as usize];
            let allowed = (share < 1.0)
                .then(|| (0..self.documents as u32).filter(|_| self.random.share() < share).collect::<BitSet>());
            let hits = search(index, &query, limit, allowed.as_ref());
            let found: SetHitList =
                hits.hits.iter().map(|hit| (hit.ordinal, hit.number, hit.sequence, hit.score)).collect();
            assert_eq!(found, best_of_sets(&self.sets, &query, limit, allowed.as_ref()), "query {query:?}");
        }
    }
}

#[test]
fn answers_equal_brute_force_whatever_was_written() {
    for seed in 1..=16 {
        let mut run = Run::new(seed);
        let scratch = Scratch::new();
        let mut index = open(scratch.path());
        let mut durable = (Sets::new(), 0);
        for _ in 0..25 {
            run.apply(&index);
            run.compare(&index);
            match run.random.below(6) {
                0 => {
                    index.checkpoint().expect("a checkpoint");
                    durable = (run.sets.clone(), run.sequence);
                }
                1 => {
                    index.close().expect("closed");
                    index = open(scratch.path());
                    assert_eq!(index.stats().applied_sequence, durable.1, "at the last checkpoint");
                    (run.sets, run.sequence) = durable.clone();
                    run.compare(&index);
                }
                2 => index.rest().expect("merges are done"),
                _ => {}
            }
        }
        index.checkpoint().expect("a checkpoint");
        index.verify().expect("all checksums match");
        let counts = (index.stats().doc_count, index.stats().vector_count);
        drop(index);
        let index = open(scratch.path());
        assert_eq!((index.stats().doc_count, index.stats().vector_count), counts, "as they were counted before");
        run.compare(&index);
    }
}

#[test]
fn a_document_with_many_near_vectors_leaves_room_for_others() {
    let scratch = Scratch::new();
    let index: Arc<SparseIndex> = open(scratch.path());
    let many = set_body(&vec![vec![(1, 5.0)]; 4096]);
    let others = (1..40).map(|ordinal| (RowKind::PartPut, ordinal, set_body(&[vec![(2, 1.0)], vec![(1, 1.0)]])));
    let rows: Vec<_> = [(RowKind::PartPut, 0, many)].into_iter().chain(others).collect();
    index.apply(&raw_frame(&rows, 1)).expect("applied");
    index.commit(rows.len() as u64).expect("a commit");
    let hits = search(&index, &[(1, 1.0)], 40, None).hits;
    assert_eq!(hits.len(), 40, "one hit for each document");
    assert_eq!((hits[0].ordinal, hits[0].number, hits[0].score), (0, 0, 5.0));
    assert!(hits[1..].iter().all(|hit| hit.number == 1 && hit.score == 1.0), "the vector that has the dimension");
}

#[test]
fn a_set_that_is_no_set_is_left_out_with_the_older_one() {
    let scratch = Scratch::new();
    let index = open(scratch.path());
    let whole = set_body(&[vec![(1, 1.0)], vec![(2, 1.0)]]);
    let broken: [Vec<u8>; 3] = [
        whole[..whole.len() - 1].to_vec(),
        set_body(&[vec![(1, 1.0)], vec![(2, f32::NAN)]]),
        set_body(&[vec![(2, 1.0), (1, 1.0)]]),
    ];
    for (at, body) in broken.into_iter().enumerate() {
        let sequence = 2 * at as u64 + 1;
        index.apply(&raw_frame(&[(RowKind::PartPut, 3, whole.clone())], sequence)).expect("applied");
        index.commit(sequence).expect("a commit");
        assert_eq!(search(&index, &[(2, 1.0)], 5, None).hits.len(), 1);
        let report = index.apply(&raw_frame(&[(RowKind::PartPut, 3, body)], sequence + 1)).expect("applied");
        assert_eq!(report.skipped_count, 1);
        index.commit(sequence + 1).expect("a commit");
        assert_eq!(search(&index, &[(1, 1.0), (2, 1.0)], 5, None).hits.len(), 0);
        assert_eq!((index.stats().doc_count, index.stats().vector_count), (0, 0));
    }
}
