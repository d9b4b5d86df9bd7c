//! What survives: checkpoints, crashes between their steps, damage, other options.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use super::on_disk::*;
use super::support::*;
use serde_json::json;
use sundew_engine::full_text::{DerivedIndex, IndexOptions, TextIndex};

#[test]
fn a_commit_is_visible_at_once_and_durable_after_a_checkpoint() {
    let scratch = Scratch::new();
    let index = open(scratch.path());
    apply(&index, &rows(0, 20, "alpha"), 1);
    assert_eq!(count(&index, "alpha"), 0, "not before the commit");
    assert_eq!(index.commit(20).expect("a commit").doc_count, 20);
    assert_eq!(count(&index, "alpha"), 20);
    assert_eq!(names(scratch.path()), Vec::<String>::new(), "young files stay in memory");
    let report = index.checkpoint().expect("a checkpoint");
    assert_eq!(report.sequence, 20);
    assert!(report.files_written > 0 && report.bytes_written > 0);
    let stats = index.stats();
    assert_eq!((stats.applied_sequence, stats.checkpoint_sequence, stats.doc_count), (20, 20, 20));
    assert_eq!((stats.memory_bytes, index.slots_used().0), (0, 1));
    apply(&index, &rows(20, 30, "alpha"), 21);
    index.commit(30).expect("a commit");
    index.close().expect("closed");
    drop(index);

    let index = open(scratch.path());
    assert_eq!(index.stats().applied_sequence, 20, "the commit after the checkpoint is to be replayed");
    assert_eq!(count(&index, "alpha"), 20);
    apply(&index, &rows(20, 30, "alpha"), 21);
    index.commit(30).expect("a commit");
    assert_eq!(count(&index, "alpha"), 30);
    index.verify().expect("all checksums match");
}

#[test]
fn a_checkpoint_that_cannot_be_written_leaves_nothing_and_the_index_goes_on() {
    let scratch = Scratch::new();
    let index = open(scratch.path());
    apply(&index, &rows(0, 20, "alpha"), 1);
    index.commit(20).expect("a commit");
    index.checkpoint().expect("a checkpoint");
    let durable = names(scratch.path());
    for at in 1..5 {
        apply(&index, &rows(at * 20, (at + 1) * 20, "alpha"), u64::from(at) * 20 + 1);
        index.commit(u64::from(at + 1) * 20).expect("a commit");
    }
    let obstacle = scratch.path().join("checkpoint.json.draft");
    std::fs::create_dir(&obstacle).expect("a directory in the way of the draft");
    for _ in 0..3 {
        index.checkpoint().expect_err("the draft cannot be written");
        assert_eq!(count(&index, "alpha"), 100);
        assert_eq!(index.stats().checkpoint_sequence, 20);
        let left: Vec<String> = names(scratch.path()).into_iter().filter(|name| !name.ends_with("draft")).collect();
        assert_eq!(left, durable);
        // Merges replace files that the checkpoint would have named.
        rest(&index);
    }
    apply(&index, &rows(0, 10, "beta"), 101);
    index.commit(110).expect("a commit");
    std::fs::remove_dir(&obstacle).expect("removed");
    assert_eq!(index.checkpoint().expect("a checkpoint").sequence, 110);
    assert_eq!(index.stats().memory_bytes, 0, "files that merges have replaced are gone");
    drop(index);
    let index = open(scratch.path());
    assert_eq!((index.stats().applied_sequence, count(&index, "alpha"), count(&index, "beta")), (110, 90, 10));
    index.verify().expect("all checksums match");
}

#[test]
fn replaying_rows_that_the_checkpoint_holds_changes_nothing() {
    let scratch = Scratch::new();
    let index = open(scratch.path());
    apply(&index, &rows(0, 20, "alpha"), 1);
    index.commit(20).expect("a commit");
    index.checkpoint().expect("a checkpoint");
    drop(index);
    let index = open(scratch.path());
    apply(&index, &rows(10, 25, "alpha"), 11);
    index.commit(25).expect("a commit");
    assert_eq!((count(&index, "alpha"), index.stats().doc_count), (25, 25));
}

#[test]
fn updates_and_deletes_replace_by_ordinal() {
    let scratch = Scratch::new();
    let index = open(scratch.path());
    apply(&index, &rows(0, 10, "alpha"), 1);
    apply(&index, &rows(3, 6, "beta"), 11);
    apply(&index, &[delete("k0", 0), delete("k99", 99)], 14);
    index.commit(15).expect("a commit");
    assert_eq!((count(&index, "alpha"), count(&index, "beta"), index.stats().doc_count), (6, 3, 9));
    apply(&index, &[put("k3", 3, json!({"text": "gamma"})), put("k3", 3, json!({"text": "delta"}))], 16);
    index.commit(17).expect("a commit");
    assert_eq!((count(&index, "beta"), count(&index, "gamma"), count(&index, "delta")), (2, 0, 1));
}

#[test]
fn a_commit_of_several_segments_has_the_newest_version_of_each_document() {
    for budget_bytes in [20_000, 200_000, 48_000_000] {
        let options = IndexOptions { writer_budget_bytes: budget_bytes, ..memory_options(json!({})) };
        let index = TextIndex::open(Path::new("unused"), options).expect("an index in memory");
        let mut random = Random::new(7);
        let mut versions: BTreeMap<u32, usize> = BTreeMap::new();
        let (mut sequence, mut version) = (0, 0);
        for rows_of_commit in [300, 40, 5, 700, 1, 300] {
            let rows: Vec<Row> = (0..rows_of_commit)
                .map(|_| {
                    let ordinal = random.below(400) as u32;
                    version += 1;
                    if random.below(4) == 0 {
                        versions.remove(&ordinal);
                        return delete(&format!("k{ordinal}"), ordinal);
                    }
                    versions.insert(ordinal, version);
                    put(&format!("k{ordinal}"), ordinal, json!({"text": format!("every v{version}"), "n": version}))
                })
                .collect();
            for (at, part) in rows.chunks(50).enumerate() {
                apply(&index, part, sequence + 1 + 50 * at as u64);
            }
            sequence += rows.len() as u64;
            index.commit(sequence).expect("a commit");
            let living: Vec<u32> = versions.keys().copied().collect();
            assert_eq!(matching(&index, json!({"kind": "match", "text": "every"})), living, "budget {budget_bytes}");
            for (ordinal, version) in versions.iter().filter(|_| random.below(10) == 0) {
                let node = json!({"kind": "match", "text": format!("v{version}")});
                assert_eq!(matching(&index, node), [*ordinal], "v{version}, budget {budget_bytes}");
                assert_eq!(matching(&index, json!({"kind": "term", "field": "n", "value": version})), [*ordinal]);
            }
        }
    }
}

#[test]
fn large_files_go_to_disk_before_the_checkpoint() {
    let scratch = Scratch::new();
    let options = IndexOptions { memory_file_bytes_max: 64, ..disk_options() };
    let index = TextIndex::open(scratch.path(), options.clone()).expect("the index opens");
    apply(&index, &rows(0, 200, "alpha"), 1);
    index.commit(200).expect("a commit");
    assert!(!names(scratch.path()).is_empty());
    assert_eq!(count(&index, "alpha"), 200);
    drop(index);
    let index = TextIndex::open(scratch.path(), options.clone()).expect("the index opens");
    assert_eq!(names(scratch.path()), Vec::<String>::new(), "no checkpoint named them");
    apply(&index, &rows(0, 200, "alpha"), 1);
    index.commit(200).expect("a commit");
    index.checkpoint().expect("a checkpoint");
    drop(index);
    let index = TextIndex::open(scratch.path(), options).expect("the index opens");
    assert_eq!(count(&index, "alpha"), 200);
}

#[test]
fn damage_and_other_options_are_told_apart() {
    let scratch = Scratch::new();
    let index = open(scratch.path());
    apply(&index, &rows(0, 50, "alpha"), 1);
    index.commit(50).expect("a commit");
    index.checkpoint().expect("a checkpoint");
    drop(index);
    let code = |options| TextIndex::open(scratch.path(), options).err().map(|error| error.code);
    assert_eq!(code(disk_options()), None);
    let other_schema = IndexOptions { schema: json!({"document_schemas": {}}), ..disk_options() };
    assert_eq!(code(other_schema), None, "the caller says by the incarnation what a schema change means");
    assert_eq!(code(IndexOptions { analysis_version: 9, ..disk_options() }), Some("index_incompatible"));
    let other = IndexOptions { incarnation: "2".to_owned(), ..disk_options() };
    assert_eq!(code(other), Some("index_incompatible"));

    let checkpoint = scratch.path().join("checkpoint.json");
    let sound = std::fs::read(&checkpoint).expect("the checkpoint");
    std::fs::write(&checkpoint, &sound[..sound.len() / 2]).expect("written");
    assert_eq!(code(disk_options()), Some("index_damaged"));
    let text = String::from_utf8(sound.clone()).expect("JSON").replacen("opstamp", "opstamq", 1);
    std::fs::write(&checkpoint, text).expect("written");
    assert_eq!(code(disk_options()), Some("index_damaged"));
    std::fs::write(&checkpoint, &sound).expect("written");
    assert_eq!(code(disk_options()), None);

    for extension in ["idx", "term", "fast", "fieldnorm", "pos", "store"] {
        let name = names(scratch.path()).into_iter().find(|name| name.ends_with(extension)).expect("a segment file");
        let path = scratch.path().join(name);
        let sound = std::fs::read(&path).expect("a file");
        std::fs::write(&path, &sound[..sound.len() - 1]).expect("written");
        assert_eq!(code(disk_options()), Some("index_damaged"), "a short .{extension}");
        let mut flipped = sound.clone();
        flipped[sound.len() / 4] ^= 0x20;
        std::fs::write(&path, &flipped).expect("written");
        match TextIndex::open(scratch.path(), disk_options()) {
            Ok(index) => assert_eq!(index.verify().err().map(|error| error.code), Some("index_damaged")),
            Err(error) => assert_eq!(error.code, "index_damaged"),
        }
        std::fs::remove_file(&path).expect("removed");
        assert_eq!(code(disk_options()), Some("index_damaged"), "no .{extension}");
        std::fs::write(&path, &sound).expect("written");
    }
    open(scratch.path()).verify().expect("sound again");
}

#[test]
fn an_index_in_memory_leaves_nothing_on_disk() {
    let scratch = Scratch::new();
    let index = TextIndex::open(scratch.path(), memory_options(json!(null))).expect("opens");
    apply(&index, &rows(0, 50, "alpha"), 1);
    index.commit(50).expect("a commit");
    assert_eq!(index.checkpoint().expect("nothing to do").files_written, 0);
    assert_eq!(count(&index, "alpha"), 50);
    assert_eq!(names(scratch.path()), Vec::<String>::new());
    assert!(index.stats().memory_bytes > 0);
}

#[test]
fn commits_of_few_documents_are_kept_by_a_checkpoint_with_what_they_delete() {
    let scratch = Scratch::new();
    let index = open(scratch.path());
    apply(&index, &rows(0, 20, "alpha"), 1);
    index.commit(20).expect("a commit");
    apply(&index, &[delete("k", 3), delete("k", 4)], 21);
    index.commit(22).expect("a commit of deletes alone");
    apply(&index, &rows(5, 6, "beta"), 23);
    index.commit(23).expect("a commit");
    index.checkpoint().expect("a checkpoint");
    apply(&index, &rows(6, 20, "beta"), 24);
    index.commit(37).expect("a commit that is lost");
    drop(index);
    let index = open(scratch.path());
    assert_eq!((index.stats().applied_sequence, count(&index, "alpha"), count(&index, "beta")), (23, 17, 1));
    apply(&index, &(0..20).map(|at| delete("k", at)).collect::<Vec<_>>(), 24);
    index.commit(43).expect("a commit that leaves nothing");
    assert_eq!((index.stats().doc_count, index.stats().segment_count), (0, 0));
    apply(&index, &rows(0, 500, "gamma"), 44);
    index.commit(543).expect("a large commit");
    apply(&index, &rows(0, 10, "delta"), 544);
    index.rest().expect("refused: rows wait for a commit");
    index.commit(553).expect("a commit");
    rest(&index);
    assert_eq!((count(&index, "gamma"), count(&index, "delta")), (490, 10));
    index.verify().expect("all checksums match");
}

#[test]
fn documents_that_cannot_be_indexed_are_named() {
    let scratch = Scratch::new();
    let index = open(scratch.path());
    let broken = Row { body: Some("{\"text\": ".to_owned()), ..put("bad", 1, json!({})) };
    let report = index.apply(&frame(&[put("good", 0, json!({"text": "alpha"})), broken], 1)).expect("applied");
    assert_eq!((report.rows, report.skipped_count, report.skipped[0].key.as_str()), (2, 1, "bad"));
    index.commit(2).expect("a commit");
    index.checkpoint().expect("a checkpoint");
    drop(index);
    let index = open(scratch.path());
    assert_eq!((count(&index, "alpha"), index.stats().skipped_count), (1, 1));
}

const CHILD_DIRECTORY: &str = "SUNDEW_TEST_INDEX";

/// The second process of the test below; by itself it has nothing to do.
#[test]
fn a_process_that_dies() {
    let Some(path) = std::env::var_os(CHILD_DIRECTORY) else { return };
    let index = open(Path::new(&path));
    apply(&index, &rows(0, 40, "alpha"), 1);
    index.commit(40).expect("a commit");
    index.checkpoint().expect("a checkpoint");
    apply(&index, &rows(0, 10, "beta"), 41);
    index.commit(50).expect("a commit");
    apply(&index, &rows(40, 60, "beta"), 51);
    index.commit(70).expect("a commit");
    index.checkpoint().expect("a checkpoint");
    index.rest().expect("released");
    index.wait_for_merges();
    std::process::exit(7);
}

#[test]
fn a_crash_between_any_two_steps_leaves_one_checkpoint_or_the_other() {
    let program = std::env::current_exe().expect("the test program");
    for (failpoint, survives) in [
        ("index.checkpoint.before-files:1", 0),
        ("checkpoint-files.after-file:1", 0),
        ("checkpoint-files.before-rename:1", 0),
        ("checkpoint-files.after-rename:1", 40),
        ("index.commit.prepared:2", 40),
        ("index.checkpoint.before-files:2", 40),
        ("checkpoint-files.after-file:8", 40),
        ("checkpoint-files.before-sync:2", 40),
        ("checkpoint-files.before-draft:2", 40),
        ("checkpoint-files.before-rename:2", 40),
        ("checkpoint-files.after-rename:2", 70),
        ("checkpoint-files.before-removal:2", 70),
        ("checkpoint-files.after-removal:2", 70),
        // The same commit again, merged while the index rested.
        ("index.merge.written:1", 70),
        ("index.checkpoint.before-files:3", 70),
        ("checkpoint-files.before-rename:3", 70),
        ("checkpoint-files.after-rename:3", 70),
        ("checkpoint-files.before-removal:3", 70),
    ] {
        let scratch = Scratch::new();
        let status = Command::new(&program)
            .args(["--exact", &path_of(module_path!(), "a_process_that_dies")])
            .env(CHILD_DIRECTORY, scratch.path())
            .env("SUNDEW_FAILPOINT", failpoint)
            .output()
            .expect("the process runs")
            .status;
        assert_eq!(status.code(), None, "{failpoint} was not hit");
        let index = open(scratch.path());
        let counts = (index.stats().applied_sequence, count(&index, "alpha"), count(&index, "beta"));
        let expected = match survives {
            0 => (0, 0, 0),
            40 => (40, 40, 0),
            _ => (70, 30, 30),
        };
        assert_eq!(counts, expected, "{failpoint}");
        index.verify().expect("all checksums match");
        // What the crash lost is replayed, and the next checkpoint works.
        apply(&index, &rows(0, 10, "beta"), 41);
        apply(&index, &rows(10, 40, "alpha"), 11);
        apply(&index, &rows(40, 60, "beta"), 51);
        index.commit(70).expect("a commit");
        index.checkpoint().expect("a checkpoint");
        drop(index);
        let index = open(scratch.path());
        assert_eq!((count(&index, "alpha"), count(&index, "beta")), (30, 30), "{failpoint}");
    }
}

#[test]
fn texts_beyond_the_slots_are_found_without_their_field_after_a_restart() {
    let scratch = Scratch::new();
    let properties = json!({"de": {"type": "string", "x-service-types": ["text"], "x-service-analyzer": "german"}});
    let schema = json!({"document_schemas": {"doc": {"schema": {"type": "object", "properties": properties}}}});
    let open = || TextIndex::open(scratch.path(), IndexOptions { schema: schema.clone(), ..disk_options() });
    let index = open().expect("the index opens");
    let many: serde_json::Map<_, _> = (0..70).map(|at| (format!("f{at}"), json!("filler"))).collect();
    apply(&index, &[put("k0", 0, many.into()), put("k1", 1, json!({"de": "Häuser"}))], 1);
    index.commit(2).expect("a commit");
    index.checkpoint().expect("a checkpoint");
    drop(index);
    assert_eq!(matching(&open().expect("the index opens"), json!({"kind": "match", "text": "Haus"})), [1]);
}
