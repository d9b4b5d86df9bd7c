//! A process that dies between any two steps of a checkpoint leaves an index that opens at a whole commit.

use std::process::Command;
use std::sync::Arc;

use super::support::{Change, Clusters, Dice, INDEX_ID, TemporaryDirectory, frame, search};
use sundew_base::derived_index::DerivedIndex;
use sundew_vector::dense::{DenseIndex, DenseOptions, Metric};

const DIRECTORY: &str = "SUNDEW_DENSE_CRASH_DIRECTORY";
const DIMENSION: usize = 8;
const ROUNDS: u32 = 3;
const ROWS: u32 = 400;

fn open(directory: &std::path::Path) -> Arc<DenseIndex> {
    let mut options = DenseOptions::new("taste", INDEX_ID, DIMENSION as u32, Metric::L2Squared);
    options.tail_bytes = 200 * DIMENSION * 4;
    DenseIndex::open(directory, options).expect("the index opens")
}

/// Rounds of writes, each half new rows and half replaced ones, each with a checkpoint behind it.
fn write_rounds(index: &DenseIndex, first: u32) {
    let mut dice = Dice(5);
    let clusters = Clusters::new(&mut dice, 4, DIMENSION);
    for round in first..ROUNDS {
        let vectors: Vec<(u32, Vec<f32>)> =
            (0..ROWS).map(|at| (round * ROWS / 2 + at, clusters.draw(&mut dice, at as usize % 4))).collect();
        let changes: Vec<Change> = vectors.iter().map(|(ordinal, vector)| Change::Put(*ordinal, vector)).collect();
        index.apply(&frame(&changes, u64::from(round * ROWS) + 1)).unwrap();
        index.commit(u64::from((round + 1) * ROWS)).unwrap();
        index.settle();
        index.checkpoint().unwrap();
    }
}

/// Runs in a process of its own, when a directory is given.
#[test]
fn writes_until_it_dies() {
    let Ok(directory) = std::env::var(DIRECTORY) else { return };
    write_rounds(&open(directory.as_ref()), 0);
}

/// As the test program calls a test of this module.
fn named(test: &str) -> String {
    let (_program, module) = module_path!().split_once("::").expect("a module of the program");
    format!("{module}::{test}")
}

#[test]
fn a_crash_between_files_leaves_a_whole_commit() {
    let own = ["before-files", "before-rows"].map(|name| ("vector.checkpoint", name));
    let shared =
        ["after-file", "before-rename", "after-rename", "after-removal"].map(|name| ("checkpoint-files", name));
    for (place, name) in own.into_iter().chain(shared) {
        // In each round the rows before they have a graph, the graph and the dead rows are files of their own.
        let hits = if name == "after-file" { 3 } else { 1 };
        for hit in 1..=ROUNDS * hits {
            let directory = TemporaryDirectory::new();
            let status = Command::new(std::env::current_exe().unwrap())
                .args(["--exact", &named("writes_until_it_dies")])
                .env(DIRECTORY, &directory.0)
                .env("SUNDEW_FAILPOINT", format!("{place}.{name}:{hit}"))
                .output()
                .unwrap()
                .status;
            assert!(!status.success(), "{name}:{hit} was not hit");
            let index = open(&directory.0);
            index.verify().unwrap();
            let stats = index.stats();
            let round = u32::try_from(stats.applied_sequence).unwrap() / ROWS;
            let is_durable = matches!(name, "after-rename" | "after-removal");
            assert_eq!(round, if is_durable { hit } else { (hit - 1) / hits }, "{name}:{hit}");
            let rows = if round == 0 { 0 } else { (round + 1) * ROWS / 2 };
            assert_eq!(stats.doc_count, u64::from(rows));
            write_rounds(&index, round);
            assert_eq!(index.stats().doc_count, u64::from((ROUNDS + 1) * ROWS / 2));
            assert_eq!(search(&index, &[0.5; DIMENSION], 2000, None).hits.len() as u32, (ROUNDS + 1) * ROWS / 2);
            index.verify().unwrap();
        }
    }
}
