//! Segments become fewer beside the commits and at rest, and what is found, kept and deleted stays as it was.

use std::path::Path;
use std::process::Command;

use super::on_disk::*;
use super::support::*;
use serde_json::json;
use sundew_engine::full_text::{DerivedIndex, IndexOptions, TextIndex};

#[test]
fn segments_of_single_writes_are_merged_beside_the_commits() {
    let scratch = Scratch::new();
    let index = open(scratch.path());
    for at in 0..60 {
        // Each takes a document from the commit before.
        apply(&index, &rows(at.max(1) - 1, at + 1, "alpha"), u64::from(at) * 2 + 1);
        index.commit(u64::from(at) * 2 + 2).expect("a commit");
        let stats = index.stats();
        assert_eq!((count(&index, "alpha"), stats.doc_count), (at as usize + 1, u64::from(at) + 1));
        index.wait_for_merges();
        assert!(index.stats().segment_count < 12, "{:?}", index.stats());
    }
    rest(&index);
    assert_eq!(count(&index, "alpha"), 60);
    // What was merged beside the commits may be so large by then that the latest documents stay apart.
    assert!(index.stats().segment_count <= 2, "{:?}", index.stats());
    index.verify().expect("all checksums match");
}

#[test]
fn files_of_the_last_checkpoint_outlive_merges() {
    let scratch = Scratch::new();
    let index = open(scratch.path());
    for at in 0..12 {
        apply(&index, &rows(at, at + 1, "alpha"), u64::from(at) + 1);
        index.commit(u64::from(at) + 1).expect("a commit");
    }
    index.checkpoint().expect("a checkpoint");
    let of_checkpoint = names(scratch.path());
    for at in 12..60 {
        apply(&index, &rows(at, at + 1, "alpha"), u64::from(at) + 1);
        index.commit(u64::from(at) + 1).expect("a commit");
    }
    rest(&index);
    let kept = names(scratch.path());
    assert!(of_checkpoint.iter().all(|name| kept.contains(name)), "{of_checkpoint:?} of {kept:?}");
    drop(index);
    let index = open(scratch.path());
    assert_eq!(count(&index, "alpha"), 12);
    drop(index);
    // Every file of a checkpoint that a newer one replaced goes.
    let index = open(scratch.path());
    apply(&index, &rows(0, 12, "beta"), 13);
    index.commit(24).expect("a commit");
    rest(&index);
    index.checkpoint().expect("a checkpoint");
    rest(&index);
    apply(&index, &rows(0, 1, "beta"), 25);
    index.commit(25).expect("a commit");
    index.checkpoint().expect("a checkpoint");
    let segments = index.stats().segment_count;
    assert!(names(scratch.path()).len() <= 1 + segments * 7, "{:?}", names(scratch.path()));
}

#[test]
fn an_index_at_rest_becomes_one_segment_and_stays_as_durable_as_it_was() {
    let scratch = Scratch::new();
    let index = open(scratch.path());
    for at in 0..3 {
        apply(&index, &rows(at * 20, at * 20 + 20, "alpha"), u64::from(at) * 20 + 1);
        index.commit(u64::from(at) * 20 + 20).expect("a commit");
    }
    index.checkpoint().expect("a checkpoint");
    apply(&index, &rows(0, 5, "beta"), 61);
    index.commit(65).expect("a commit");
    let before = index.stats();
    rest(&index);
    let after = index.stats();
    assert_eq!((before.segment_count, after.segment_count), (4, 1));
    assert_eq!((count(&index, "alpha"), count(&index, "beta")), (55, 5));
    assert_eq!(after.checkpoint_sequence, 60, "nobody asked for more");
    index.checkpoint().expect("a checkpoint");
    apply(&index, &rows(60, 61, "beta"), 66);
    index.commit(66).expect("a commit");
    rest(&index);
    assert_eq!(index.stats().segment_count, 2, "a document is not worth the merge of sixty");
    apply(&index, &rows(61, 80, "beta"), 67);
    index.commit(85).expect("a commit");
    index.checkpoint().expect("a checkpoint");
    rest(&index);
    index.close().expect("closed");
    drop(index);
    let index = open(scratch.path());
    assert_eq!(index.stats().segment_count, 1, "what was durable is so in fewer segments");
    assert_eq!((count(&index, "alpha"), count(&index, "beta"), index.stats().applied_sequence), (55, 25, 85));
    index.verify().expect("all checksums match");
}

#[test]
fn an_index_of_many_documents_at_rest_becomes_one_segment_by_a_large_merge() {
    let scratch = Scratch::new();
    let options = IndexOptions { merged_documents_max: 100, ..disk_options() };
    let index = TextIndex::open(scratch.path(), options.clone()).expect("the index opens");
    for at in 0..6 {
        apply(&index, &rows(at * 90, at * 90 + 90, "alpha"), u64::from(at) * 90 + 1);
        index.commit(u64::from(at) * 90 + 90).expect("a commit");
    }
    index.checkpoint().expect("a checkpoint");
    rest(&index);
    assert_eq!((index.stats().segment_count, count(&index, "alpha")), (1, 540));
    apply(&index, &rows(540, 800, "beta"), 541);
    index.commit(800).expect("a commit");
    index.checkpoint().expect("a checkpoint");
    rest(&index);
    assert_eq!(index.stats().segment_count, 2, "the larger one is not written again for half as many");
    drop(index);
    let index = TextIndex::open(scratch.path(), options).expect("the index opens");
    assert_eq!((index.stats().segment_count, count(&index, "alpha"), count(&index, "beta")), (2, 540, 260));
    index.verify().expect("all checksums match");
}

#[test]
fn rows_that_come_during_a_merge_at_rest_are_taken() {
    let scratch = Scratch::new();
    let index = open(scratch.path());
    let mut sequence = 0;
    let mut write = |rows: &[Row]| {
        apply(&index, rows, sequence + 1);
        sequence += rows.len() as u64;
        index.commit(sequence).expect("a commit");
    };
    for round in 0..20 {
        write(&rows(round * 50, round * 50 + 50, "alpha"));
        index.rest().expect("released");
        write(&rows(round * 50, round * 50 + 10, "beta"));
        write(&[delete("k", round * 50 + 49)]);
        assert_eq!(count(&index, "alpha"), (round as usize + 1) * 39);
        assert_eq!(count(&index, "beta"), (round as usize + 1) * 10);
    }
    rest(&index);
    rest(&index);
    // Each that stays apart is eight times as large as all smaller ones: 1, 8, 72 and the others at most.
    assert!(index.stats().segment_count <= 4, "{} segments", index.stats().segment_count);
    assert_eq!((count(&index, "alpha"), count(&index, "beta"), index.stats().doc_count), (780, 200, 980));
    index.verify().expect("all checksums match");
}

const LIMITED_DIRECTORY: &str = "SUNDEW_TEST_LIMITED_INDEX";

/// The second process of the test below, which writes no file of more than a few kilobytes; by itself it has nothing to do.
#[test]
fn a_process_whose_files_are_limited() {
    let Some(path) = std::env::var_os(LIMITED_DIRECTORY) else { return };
    let path = Path::new(&path);
    for merged_documents_max in [8, 1 << 20] {
        let options = IndexOptions { memory_file_bytes_max: 64, merged_documents_max, ..disk_options() };
        let index = TextIndex::open(path, options).expect("the index opens");
        // Words of their own, so that what is merged is as large as its parts together.
        let documents = |from: u32| -> Vec<Row> {
            let text = |at: u32| (0..20).map(|word| format!("w{at}x{word}")).collect::<Vec<_>>().join(" ");
            (from..from + 30).map(|at| put(&format!("k{at}"), at, json!({"text": text(at)}))).collect()
        };
        (0..12).for_each(|part| {
            apply(&index, &documents(part * 30), u64::from(part) * 30 + 1);
            index.commit(u64::from(part) * 30 + 30).expect("a commit");
        });
        index.wait_for_merges();
        let (segments, files) = (index.stats().segment_count, names(path).len());
        assert!(segments > 1, "a merge was written");
        rest(&index);
        assert_eq!((index.stats().segment_count, names(path).len()), (segments, files), "nothing is left behind");
        apply(&index, &rows(360, 370, "alpha"), 361);
        index.commit(370).expect("a commit");
        assert_eq!((count(&index, "alpha"), count(&index, "w17x3")), (10, 1));
        index.verify().expect("all checksums match");
        index.close().expect("closed");
    }
    std::process::exit(7);
}

#[test]
fn a_merge_that_cannot_be_written_leaves_its_segments_and_none_of_its_files() {
    let (program, scratch) = (std::env::current_exe().expect("the test program"), Scratch::new());
    // A file that grows beyond sixteen blocks of 512 or 1,024 bytes is an error then, and no signal.
    let limited = "trap '' XFSZ; ulimit -f 16; exec \"$0\" --exact \"$1\" --nocapture";
    let output = Command::new("sh")
        .args([
            "-c",
            limited,
            &program.to_string_lossy(),
            &path_of(module_path!(), "a_process_whose_files_are_limited"),
        ])
        .env(LIMITED_DIRECTORY, scratch.path())
        .output()
        .expect("the process runs");
    assert_eq!(output.status.code(), Some(7), "{}", String::from_utf8_lossy(&output.stderr));
}
