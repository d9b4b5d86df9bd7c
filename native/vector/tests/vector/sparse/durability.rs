//! What survives: checkpoints, crashes between their steps, damage, other options; and what rows the index takes.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::support::*;
use sundew_base::derived_index::DerivedIndex;
use sundew_base::frame::RowKind;
use sundew_base::part::{PartForm, part_head};
use sundew_vector::sparse::{SparseIndex, SparseOptions};

const CHILD_DIRECTORY: &str = "SUNDEW_TEST_SPARSE_DIRECTORY";

fn puts(from: u32, to: u32, dimension: u32) -> Vec<Change> {
    (from..to).map(|ordinal| Change::Put(ordinal, vec![(dimension, 1.0)])).collect()
}

/// Applies and commits; the rows' sequences go from `first_sequence` on.
fn write(index: &SparseIndex, changes: &[Change], first_sequence: u64) {
    let report = index.apply(&frame(changes, first_sequence)).expect("rows are applied");
    assert_eq!((report.rows, report.skipped_count), (changes.len(), 0));
    index.commit(first_sequence + changes.len() as u64 - 1).expect("a commit");
}

fn count(index: &SparseIndex, dimension: u32) -> usize {
    search(index, &[(dimension, 1.0)], 1000, None).hits.len()
}

fn count_all(index: &SparseIndex, dimension: u32) -> usize {
    search(index, &[(dimension, 1.0)], 10_000, None).hits.len()
}

fn names(path: &Path) -> Vec<String> {
    let entries = fs::read_dir(path).expect("the directory is there");
    let mut names: Vec<String> =
        entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn a_commit_is_visible_at_once_and_durable_after_a_checkpoint() {
    let scratch = Scratch::new();
    let index = open(scratch.path());
    index.apply(&frame(&puts(0, 20, 5), 1)).expect("rows are applied");
    assert_eq!((count(&index, 5), index.stats().uncommitted_rows), (0, 20), "not before the commit");
    assert_eq!(index.commit(20).expect("a commit").doc_count, 20);
    assert_eq!(count(&index, 5), 20);
    assert!(names(scratch.path()).is_empty(), "young segments stay in memory");
    let report = index.checkpoint().expect("a checkpoint");
    assert_eq!((report.sequence, report.files_written), (20, 1));
    assert_eq!((index.stats().memory_bytes, index.stats().term_count), (0, 1));
    assert_eq!(index.checkpoint().expect("a checkpoint").files_written, 0, "nothing has changed");

    // A document that is written again leaves a file behind that says so.
    write(&index, &puts(3, 4, 6), 21);
    index.checkpoint().expect("a checkpoint");
    assert_eq!(names(scratch.path()), ["0-1.dead", "0.segment", "1.segment", "checkpoint.json"]);
    write(&index, &puts(20, 30, 5), 22);
    index.close().expect("closed");
    assert_eq!(count(&index, 5), 29, "searches on the last commit still work");
    drop(index);

    let index = open(scratch.path());
    let stats = index.stats();
    assert_eq!((stats.applied_sequence, stats.checkpoint_sequence, stats.doc_count), (21, 21, 20));
    assert_eq!((count(&index, 5), count(&index, 6)), (19, 1));
    write(&index, &puts(20, 30, 5), 22);
    assert_eq!(count(&index, 5), 29);
    index.verify().expect("all checksums match");
}

#[test]
fn a_checkpoint_that_cannot_be_written_leaves_nothing_and_the_index_goes_on() {
    let scratch = Scratch::new();
    let index = open(scratch.path());
    write(&index, &puts(0, 20, 5), 1);
    index.checkpoint().expect("a checkpoint");
    write(&index, &puts(10, 30, 6), 21);
    let obstacle = scratch.path().join("checkpoint.json.draft");
    fs::create_dir(&obstacle).expect("a directory in the way of the draft");
    for _ in 0..2 {
        index.checkpoint().expect_err("the draft cannot be written");
        assert_eq!((count(&index, 5), count(&index, 6), index.stats().checkpoint_sequence), (10, 20, 20));
        assert_eq!(names(scratch.path()), ["0.segment", "checkpoint.json", "checkpoint.json.draft"]);
    }
    write(&index, &puts(0, 5, 7), 41);
    fs::remove_dir(&obstacle).expect("removed");
    assert_eq!(index.checkpoint().expect("a checkpoint").sequence, 45);
    drop(index);
    let index = open(scratch.path());
    assert_eq!((count(&index, 5), count(&index, 6), count(&index, 7)), (5, 20, 5));
    index.verify().expect("all checksums match");
}

#[test]
fn what_is_on_disk_is_not_merged_into_memory_while_checkpoints_cannot_be_written() {
    let scratch = Scratch::new();
    let index = open(scratch.path());
    // Three that a fourth of like size is merged with, each of more vectors than all that come later.
    for at in 0..3 {
        write(&index, &puts(at * 1_000, (at + 1) * 1_000, 5), u64::from(at) * 1_000 + 1);
        index.checkpoint().expect("a checkpoint");
    }
    let on_disk = index.stats().disk_bytes;
    write(&index, &puts(3_000, 3_010, 5), 3_001);
    let obstacle = scratch.path().join("checkpoint.json.draft");
    fs::create_dir(&obstacle).expect("a directory in the way of the draft");
    index.checkpoint().expect_err("the draft cannot be written");
    // Most of the first is replaced by a segment of like size.
    write(&index, &puts(0, 900, 6), 4_001);
    for at in 0..40 {
        write(&index, &puts(5_000 + at, 5_001 + at, 6), 6_000 + u64::from(at));
    }
    index.rest().expect("it rests");
    assert_eq!((index.stats().disk_bytes, count_all(&index, 5), count_all(&index, 6)), (on_disk, 2_110, 940));
    assert!(index.stats().segment_count < 12, "what is in memory is merged");
    fs::remove_dir(&obstacle).expect("removed");
    index.checkpoint().expect("a checkpoint");
    write(&index, &puts(7_000, 7_001, 6), 8_000);
    index.rest().expect("it rests");
    assert!(index.stats().disk_bytes < on_disk, "they are merged once there is room");
    assert_eq!((count_all(&index, 5), count_all(&index, 6)), (2_110, 941));
}

/// What a crash test's process does; nothing when the tests run it by themselves.
#[test]
fn a_process_that_dies() {
    let Ok(directory) = std::env::var(CHILD_DIRECTORY) else { return };
    let index = open(Path::new(&directory));
    write(&index, &puts(0, 40, 5), 1);
    index.checkpoint().expect("a checkpoint");
    write(&index, &puts(30, 60, 6), 41);
    index.checkpoint().expect("a checkpoint");
    write(&index, &puts(0, 60, 7), 71);
}

/// As the test program calls a test of this module.
fn named(test: &str) -> String {
    let (_program, module) = module_path!().split_once("::").expect("a module of the program");
    format!("{module}::{test}")
}

#[test]
fn a_crash_at_any_step_of_a_checkpoint_leaves_the_older_or_the_newer_one() {
    let program = std::env::current_exe().expect("this test");
    for (failpoint, survives) in [
        ("vector.checkpoint.before-files", 0),
        ("checkpoint-files.after-file", 0),
        ("checkpoint-files.before-rename", 0),
        ("checkpoint-files.after-rename", 40),
        ("vector.checkpoint.before-files:2", 40),
        ("checkpoint-files.after-file:2", 40),
        ("checkpoint-files.after-file:3", 40),
        ("checkpoint-files.before-rename:2", 40),
        ("checkpoint-files.after-rename:2", 70),
    ] {
        let scratch = Scratch::new();
        let status = Command::new(&program)
            .args(["--exact", &named("a_process_that_dies")])
            .env(CHILD_DIRECTORY, scratch.path())
            .env("SUNDEW_FAILPOINT", failpoint)
            .output()
            .expect("the process runs")
            .status;
        assert_eq!(status.code(), None, "{failpoint} was not hit");
        let index = open(scratch.path());
        let held = (index.stats().applied_sequence, count(&index, 5), count(&index, 6));
        let expected = match survives {
            0 => (0, 0, 0),
            40 => (40, 40, 0),
            _ => (70, 30, 30),
        };
        assert_eq!(held, expected, "{failpoint}");
        index.verify().expect("all checksums match");
        // What the crash lost is replayed, rows that are held among it, and the next checkpoint works.
        write(&index, &puts(0, 40, 5), 1);
        write(&index, &puts(30, 60, 6), 41);
        index.checkpoint().expect("a checkpoint");
        drop(index);
        let index = open(scratch.path());
        assert_eq!((index.stats().applied_sequence, count(&index, 5), count(&index, 6)), (70, 30, 30), "{failpoint}");
    }
}

#[test]
fn damage_and_other_options_are_named() {
    let scratch = Scratch::new();
    let index = open(scratch.path());
    write(&index, &puts(0, 40, 5), 1);
    write(&index, &puts(0, 1, 6), 41);
    index.checkpoint().expect("a checkpoint");
    let refusal = |options: SparseOptions| SparseIndex::open(scratch.path(), options).err().map(|error| error.code);
    for other in [
        SparseOptions { incarnation: "2".to_owned(), ..options() },
        SparseOptions { min_weight: 0.5, ..options() },
        SparseOptions { index_id: INDEX_ID + 1, ..options() },
    ] {
        assert_eq!(refusal(other), Some("index_incompatible"));
    }
    for name in names(scratch.path()) {
        let path = scratch.path().join(&name);
        let bytes = fs::read(&path).expect("read");
        let mut flipped = bytes.clone();
        flipped[bytes.len() / 2] ^= 4;
        fs::write(&path, &flipped).expect("written");
        let outcome = SparseIndex::open(scratch.path(), options()).and_then(|index| index.verify());
        assert_eq!(outcome.map_err(|error| error.code), Err("index_damaged"), "a bit of {name}");
        fs::write(&path, &bytes[..bytes.len() - 1]).expect("written");
        assert_eq!(refusal(options()), Some("index_damaged"), "{name} is too short");
        fs::write(&path, &bytes).expect("written");
    }
    open(scratch.path()).verify().expect("whole again");
}

#[test]
fn any_damaged_segment_is_refused_or_answers_something() {
    let scratch = Scratch::new();
    let index = open(scratch.path());
    let mut random = Random::new(11);
    let changes: Vec<Change> = (0..300).map(|ordinal| Change::Put(ordinal, random.entries(6, 40, -1.0))).collect();
    write(&index, &changes, 1);
    index.checkpoint().expect("a checkpoint");
    drop(index);
    let path = scratch.path().join("0.segment");
    let sound = fs::read(&path).expect("read");
    for _ in 0..300 {
        let mut bytes = sound.clone();
        for _ in 0..1 + random.below(3) {
            let at = random.below(bytes.len() as u64) as usize;
            bytes[at] = random.next() as u8;
        }
        fs::write(&path, &bytes).expect("written");
        if let Ok(index) = SparseIndex::open(scratch.path(), options()) {
            search(&index, &random.entries(5, 40, -1.0), 3, None);
            let changes: Vec<Change> = (0..200).map(Change::DeleteVector).collect();
            write(&index, &changes, 301);
            search(&index, &random.entries(5, 40, -1.0), 3, None);
        }
    }
}

#[test]
fn takes_the_rows_of_its_own_id_and_names_what_it_cannot_take() {
    let scratch = Scratch::new();
    let index = SparseIndex::open(scratch.path(), SparseOptions { mem_only: true, min_weight: 0.5, ..options() })
        .expect("the index opens");
    let mut dense = part_head(INDEX_ID, PartForm::Dense).to_vec();
    dense.extend(1f32.to_le_bytes());
    let rows = [
        (RowKind::Put, 0, b"{}".to_vec()),
        (RowKind::PartPut, 0, sparse_body(INDEX_ID, &[(1, 0.5), (2, -0.75), (3, 0.25)])),
        (RowKind::PartPut, 1, sparse_body(INDEX_ID + 1, &[(1, 1.0)])),
        (RowKind::PartPut, 2, sparse_body(INDEX_ID, &[(1, 1.0)])),
        (RowKind::PartPut, 2, dense),
        (RowKind::PartPut, 3, sparse_body(INDEX_ID, &[(4, 1.0), (4, 1.0)])),
        (RowKind::PartPut, 4, sparse_body(INDEX_ID, &[(1, f32::NAN)])),
        (RowKind::Put, 0, b"{\"a\":1}".to_vec()),
    ];
    let report = index.apply(&raw_frame(&rows, 1)).expect("rows are applied");
    assert_eq!((report.rows, report.skipped_count), (8, 3));
    assert_eq!(report.skipped.iter().map(|row| row.key.as_str()).collect::<Vec<_>>(), ["k2", "k3", "k4"]);
    index.commit(8).expect("a commit");
    assert_eq!(found(&search(&index, &[(1, 2.0)], 10, None)), [(0, 2, 1.0)]);
    assert_eq!(found(&search(&index, &[(2, 1.0)], 10, None)), [(0, 2, -0.75)], "negative scores are scores");
    assert_eq!(count(&index, 3), 0, "a weight below the least one is left out");
    assert_eq!(index.stats().skipped_count, 3);
    assert_eq!(index.checkpoint().expect("nothing to do").files_written, 0);
    assert!(!scratch.path().exists(), "nothing is written");
}

#[test]
fn huge_weights_answer_numbers() {
    let scratch = Scratch::new();
    let index = open(scratch.path());
    write(&index, &[Change::Put(0, vec![(1, 3e38), (2, 3e38)]), Change::Put(1, vec![(1, 3e38), (2, -3e38)])], 1);
    let hits = found(&search(&index, &[(1, 3e38), (2, 3e38)], 10, None));
    assert_eq!(hits, [(0, 1, f32::MAX), (1, 2, 0.0)]);
    let refused = index.search(&[(2, 1.0), (1, 1.0)], &bounds(&|| false));
    assert_eq!(refused.map_err(|error| error.code), Err("internal"), "dimensions must ascend");
}

fn bounds<'a>(is_due: &'a (dyn Fn() -> bool + Sync)) -> sundew_vector::search::SearchBounds<'a> {
    sundew_vector::search::SearchBounds { limit: 10, allowed: None, is_due }
}

#[test]
fn a_search_whose_time_is_over_says_so() {
    let scratch = Scratch::new();
    let index = open(scratch.path());
    write(&index, &puts(0, 40, 5), 1);
    let hits = index.search(&[(5, 1.0)], &bounds(&|| true)).expect("a search");
    assert!(hits.is_partial && hits.hits.is_empty());
}
