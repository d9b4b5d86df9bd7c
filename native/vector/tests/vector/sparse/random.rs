//! Random writes, deletes, commits, checkpoints and restarts: every answer equals brute force, bit for bit.

use std::sync::Arc;

use super::support::*;
use sundew_base::bit_set::BitSet;
use sundew_base::derived_index::DerivedIndex;
use sundew_vector::sparse::SparseIndex;

struct Run {
    random: Random,
    model: Model,
    sequence: u64,
    dimensions: u32,
    documents: u64,
    /// Weights from -1 on, or positive ones.
    lowest: f64,
    /// Weights are whole numbers, so that many documents tie.
    is_coarse: bool,
    /// Merges run beside the commits, so that documents leave segments while they are merged.
    merges_beside: bool,
}

impl Run {
    fn new(seed: u64) -> Self {
        println!("seed {seed}");
        let mut random = Random::new(seed);
        let lowest = if random.below(2) == 0 { -1.0 } else { 0.1 };
        let is_coarse = random.below(3) == 0;
        let merges_beside = random.below(2) == 0;
        let dimensions = [12, 300, 3000][random.below(3) as usize];
        let documents = [50, 900, 20_000][random.below(3) as usize];
        Self { random, model: Model::new(), sequence: 0, dimensions, documents, lowest, is_coarse, merges_beside }
    }

    fn open(&self, scratch: &Scratch) -> Arc<SparseIndex> {
        let mut options = options();
        if self.merges_beside {
            options.commit_merge_postings_max = 0;
        }
        SparseIndex::open(scratch.path(), options).expect("the index opens")
    }

    fn entries(&mut self, count_max: u64) -> Entries {
        let count = 1 + self.random.below(count_max) as usize;
        let mut entries = self.random.entries(count, self.dimensions, self.lowest);
        if self.is_coarse {
            entries.iter_mut().for_each(|entry| entry.1 = entry.1.round());
        }
        entries
    }

    fn changes(&mut self) -> Vec<Change> {
        let count = [1, 7, 60, 700][self.random.below(4) as usize];
        (0..count).map(|_| self.change()).collect()
    }

    fn change(&mut self) -> Change {
        let ordinal = self.random.below(self.documents) as u32;
        self.sequence += 1;
        match self.random.below(8) {
            0 => {
                self.model.remove(&ordinal);
                Change::DeleteVector(ordinal)
            }
            1 => {
                self.model.remove(&ordinal);
                Change::DeleteDocument(ordinal)
            }
            _ => {
                let entries = self.entries(11);
                self.model.insert(ordinal, (self.sequence, entries.clone()));
                Change::Put(ordinal, entries)
            }
        }
    }

    fn allowed(&mut self) -> Option<BitSet> {
        let share = [2.0, 0.5, 0.01][self.random.below(3) as usize];
        if share > 1.0 {
            return None;
        }
        let first = self.random.below(self.documents) as u32;
        Some((first..self.documents as u32).filter(|_| self.random.share() < share).collect())
    }

    fn compare(&mut self, index: &SparseIndex) {
        for _ in 0..6 {
            let query = self.entries(9);
            let limit = 1 + self.random.below(20) as usize;
            let allowed = self.allowed();
            let expected = brute_force(&self.model, &query, limit, allowed.as_ref());
            assert_eq!(found(&search(index, &query, limit, allowed.as_ref())), expected, "query {query:?}");
        }
    }
}

#[test]
fn answers_equal_brute_force_whatever_was_written() {
    for seed in 1..=20 {
        let mut run = Run::new(seed);
        let scratch = Scratch::new();
        let mut index = run.open(&scratch);
        let mut durable = (Model::new(), 0);
        for _ in 0..30 {
            let first = run.sequence + 1;
            let changes = run.changes();
            index.apply(&frame(&changes, first)).expect("rows are applied");
            let report = index.commit(run.sequence).expect("a commit");
            let with_entries = |(_, entries): &&(u64, Entries)| entries.iter().any(|entry| entry.1 != 0.0);
            assert_eq!(report.doc_count, run.model.values().filter(with_entries).count() as u64);
            run.compare(&index);
            match run.random.below(6) {
                0 => {
                    index.checkpoint().expect("a checkpoint");
                    durable = (run.model.clone(), run.sequence);
                    run.compare(&index);
                }
                1 => {
                    index.close().expect("closed");
                    index = run.open(&scratch);
                    assert_eq!(index.stats().applied_sequence, durable.1, "at the last checkpoint");
                    run.model = durable.0.clone();
                    run.sequence = durable.1;
                    run.compare(&index);
                }
                2 => index.rest().expect("merges are done"),
                _ => {}
            }
        }
        index.checkpoint().expect("a checkpoint");
        index.verify().expect("all checksums match");
    }
}

#[test]
fn a_document_of_another_segment_ties_and_orders_as_in_one() {
    // The sums of these differ with the order of addition.
    let entries: Entries = vec![(1, 1e8), (2, 0.3), (3, -1e8), (4, 0.7)];
    let query: Entries = entries.iter().map(|&(dimension, _)| (dimension, 1.0)).collect();
    let scratch = Scratch::new();
    let index = open(scratch.path());
    for ordinal in 0..3 {
        index.apply(&frame(&[Change::Put(ordinal, entries.clone())], u64::from(ordinal) + 1)).expect("applied");
        index.commit(u64::from(ordinal) + 1).expect("a commit");
    }
    assert_eq!(index.stats().segment_count, 3);
    let hits = found(&search(&index, &query, 1, None));
    let score = entries.iter().fold(0f32, |score, entry| score + entry.1);
    assert_eq!(hits, [(0, 1, score), (1, 2, score), (2, 3, score)], "all that tie with the last hit");
}

#[test]
fn the_cost_of_a_search_does_not_grow_with_what_was_replaced() {
    let mut random = Random::new(5);
    let scratch = Scratch::new();
    let index = open(scratch.path());
    let (documents, mut sequence, mut visited_first, mut bytes_first) = (4000u64, 0u64, 0, 0);
    let queries: Vec<Entries> = (0..50).map(|_| random.entries(12, 2000, 0.1)).collect();
    let mut model = Model::new();
    for round in 0..=20 {
        // All documents at first, then half of them, at random, in commits of a hundred.
        for part in 0..if round == 0 { documents / 100 } else { documents / 200 } {
            let mut changes = Vec::new();
            for at in 0..100 {
                let ordinal = if round == 0 { part * 100 + at } else { random.below(documents) } as u32;
                let entries = random.entries(20, 2000, 0.1);
                model.insert(ordinal, (sequence + at + 1, entries.clone()));
                changes.push(Change::Put(ordinal, entries));
            }
            index.apply(&frame(&changes, sequence + 1)).expect("applied");
            sequence += 100;
            index.commit(sequence).expect("a commit");
        }
        index.rest().expect("merged");
        let hits: Vec<_> = queries.iter().map(|query| search(&index, query, 10, None)).collect();
        let visited: u64 = hits.iter().map(|hits| hits.report.visited).sum();
        let stats = index.stats();
        if round == 0 {
            (visited_first, bytes_first) = (visited, stats.memory_bytes);
        }
        assert_eq!((stats.doc_count, stats.segment_count < 16), (documents, true));
        assert!(visited * 2 < visited_first * 3, "round {round}: {visited} visited, {visited_first} at first");
        assert!(stats.memory_bytes * 2 < bytes_first * 3, "round {round}: {} bytes", stats.memory_bytes);
    }
    for query in &queries {
        assert_eq!(found(&search(&index, query, 10, None)), brute_force(&model, query, 10, None));
    }
}

#[test]
fn terms_that_add_little_are_not_read_in_full_and_answers_stay_exact() {
    let mut random = Random::new(9);
    let scratch = Scratch::new();
    let index = open(scratch.path());
    let mut model = Model::new();
    let mut postings_of_frequent = 0;
    let changes: Vec<Change> = (0..20_000u32)
        .map(|ordinal| {
            let mut entries: Entries = (0..4).map(|term| (term, (random.share() * 0.1 - 0.03) as f32)).collect();
            entries.retain(|_| random.share() < 0.8);
            postings_of_frequent += entries.len() as u64;
            entries.extend(random.entries(5, 400, 0.5).into_iter().map(|(term, weight)| (term + 4, weight)));
            model.insert(ordinal, (u64::from(ordinal) + 1, entries.clone()));
            Change::Put(ordinal, entries)
        })
        .collect();
    index.apply(&frame(&changes, 1)).expect("applied");
    index.commit(20_000).expect("a commit");
    for limit in [1, 3, 10, 40] {
        for _ in 0..15 {
            let mut query: Entries = (0..4).map(|term| (term, (random.share() - 0.2) as f32)).collect();
            query.extend(random.entries(6, 400, 0.5).into_iter().map(|(term, weight)| (term + 4, weight)));
            let allowed = (random.below(3) == 0).then(|| (0..20_000).filter(|_| random.share() < 0.3).collect());
            let hits = search(&index, &query, limit, allowed.as_ref());
            assert_eq!(found(&hits), brute_force(&model, &query, limit, allowed.as_ref()), "query {query:?}");
            if allowed.is_none() && limit <= 10 {
                assert!(hits.report.visited * 2 < postings_of_frequent, "{:?}", hits.report);
            }
        }
    }
}
