//! What a directory of index files opens at: nothing, the last checkpoint, or a refusal that says why.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use sundew_base::checkpoint_files::{Checkpoint, CheckpointFiles};
use sundew_base::error::EngineError;

struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("sundew-files-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        let _ = fs::remove_dir_all(&path);
        Self(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn open(path: &Path) -> Result<CheckpointFiles<u32>, &'static str> {
    CheckpointFiles::open(path, "one".to_owned()).map_err(|error| error.code)
}

/// Writes a checkpoint and has it count.
fn publish(files: &mut CheckpointFiles<u32>, checkpoint: Checkpoint<u32>) {
    let draft = files.draft(&checkpoint).expect("a draft").expect("something is new");
    draft.rename().expect("renamed");
    files.accept(checkpoint, &|_| false);
}

fn names(path: &Path) -> Vec<String> {
    let entries = fs::read_dir(path).expect("the directory is there");
    let mut names: Vec<String> =
        entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// A checkpoint of sequence 7 with one file `a`.
fn published(path: &Path) -> CheckpointFiles<u32> {
    let mut files = open(path).expect("an empty directory opens");
    assert!(files.last().is_none());
    let file = files.write("a", &[b"one", b"two"]).expect("a file is written");
    let checkpoint = files.checkpoint(7, vec![file], 3);
    publish(&mut files, checkpoint);
    files
}

#[test]
fn opens_at_the_last_checkpoint_and_removes_what_it_does_not_name() {
    let scratch = Scratch::new();
    let files = published(&scratch.0);
    files.write("b", &[b"of a checkpoint that never came"]).expect("a file is written");
    let mut files = open(&scratch.0).expect("it opens");
    let checkpoint = files.last().expect("a checkpoint");
    assert_eq!((checkpoint.sequence, checkpoint.state, checkpoint.files.len()), (7, 3, 1));
    assert_eq!(names(&scratch.0), ["a", "checkpoint.json"]);
    assert_eq!(&files.map(&checkpoint.files[0]).expect("mapped")[..], b"onetwo");
    files.verify().expect("the checksum matches");

    let next = files.write("c", &[b"three"]).expect("a file is written");
    let checkpoint = files.checkpoint(9, vec![next], 4);
    publish(&mut files, checkpoint);
    assert_eq!(names(&scratch.0), ["c", "checkpoint.json"]);
}

#[test]
fn a_draft_counts_once_it_is_renamed_and_names_what_has_to_be_synced_before() {
    let scratch = Scratch::new();
    let files = published(&scratch.0);
    let old = files.named("a").expect("a durable file").clone();
    let new = files.write("b", &[b"new"]).expect("a file is written");
    let checkpoint = files.checkpoint(8, vec![old, new], 3);
    let draft = files.draft(&checkpoint).expect("a draft").expect("something is new");
    let unsynced: Vec<_> = draft.unsynced().map(Path::to_owned).collect();
    assert_eq!(unsynced, [scratch.0.join("b"), scratch.0.join("checkpoint.json.draft"), scratch.0.clone()]);
    assert_eq!((draft.files, draft.bytes), (1, 3));
    assert_eq!(open(&scratch.0).expect("it opens").last().map(|last| last.sequence), Some(7));

    let last = files.last().expect("a checkpoint");
    assert!(files.draft(last).expect("no draft").is_none(), "nothing has changed");
}

#[test]
fn a_checkpoint_says_what_is_left_out_and_one_that_leaves_nothing_out_does_not_speak_of_it() {
    let scratch = Scratch::new();
    let mut files = published(&scratch.0);
    let text = || fs::read_to_string(scratch.0.join("checkpoint.json")).expect("read");
    assert!(files.left_out().is_empty() && !text().contains("left_out"));
    for (sequence, left_out) in [(8, vec![3, 9]), (9, vec![9]), (10, vec![])] {
        files.leave_out(left_out.clone());
        assert_eq!(open(&scratch.0).expect("it opens").last().map(|last| last.sequence), Some(sequence - 1));
        let checkpoint = files.checkpoint(sequence, files.durable_files().to_vec(), 3);
        publish(&mut files, checkpoint);
        assert_eq!(open(&scratch.0).expect("it opens").left_out(), left_out);
    }
    assert!(!text().contains("left_out"));
}

#[test]
fn a_checkpoint_that_is_given_up_leaves_nothing_and_another_one_follows() {
    let scratch = Scratch::new();
    let mut files = published(&scratch.0);
    files.write("b", &[b"of a checkpoint that is given up"]).expect("a file is written");
    files.write("c", &[b"in use"]).expect("a file is written");
    files.give_up(&|name| name == "c");
    assert_eq!(names(&scratch.0), ["a", "c", "checkpoint.json"]);
    files.begin().expect("nothing was synced");
    let file = files.write("b", &[b"of the next one"]).expect("a file is written");
    let checkpoint = files.checkpoint(8, vec![file], 4);
    publish(&mut files, checkpoint);
    assert_eq!(open(&scratch.0).expect("it opens").last().map(|last| last.sequence), Some(8));
}

#[test]
fn behind_a_draft_that_was_not_accepted_there_is_no_other_until_the_index_is_opened_again() {
    let scratch = Scratch::new();
    let files = published(&scratch.0);
    let file = files.write("b", &[b"new"]).expect("a file is written");
    let checkpoint = files.checkpoint(8, vec![file], 3);
    drop(files.draft(&checkpoint).expect("a draft").expect("something is new"));
    // A sync of it may have failed, or the one behind its renaming.
    let refused = |outcome: Result<(), EngineError>| assert_eq!(outcome.map_err(|error| error.code), Err("internal"));
    refused(files.begin());
    refused(files.draft(&checkpoint).map(drop));
    assert_eq!(names(&scratch.0), ["a", "b", "checkpoint.json", "checkpoint.json.draft"], "it may be what counts");
    let mut files = open(&scratch.0).expect("it opens");
    assert_eq!(names(&scratch.0), ["a", "checkpoint.json"]);
    files.begin().expect("a new beginning");
    let file = files.write("b", &[b"new"]).expect("a file is written");
    publish(&mut files, Checkpoint { files: vec![file], ..checkpoint });
    assert_eq!(open(&scratch.0).expect("it opens").last().map(|last| last.sequence), Some(8));
}

#[test]
fn a_checkpoint_in_place_that_may_not_be_durable_is_written_anew_by_whoever_opens_it_next() {
    let inode = |path: &Path| fs::metadata(path.join("checkpoint.json")).expect("a checkpoint").ino();
    let scratch = Scratch::new();
    let mut files = published(&scratch.0);
    let accepted = inode(&scratch.0);
    drop(open(&scratch.0).expect("it opens"));
    assert_eq!(inode(&scratch.0), accepted, "it is durable");
    let checkpoint = files.checkpoint(8, files.durable_files().to_vec(), 4);
    let draft = files.draft(&checkpoint).expect("a draft").expect("something is new");
    draft.rename().expect("renamed");
    // The sync behind it failed.
    drop(files);
    let renamed = inode(&scratch.0);
    files = open(&scratch.0).expect("it opens");
    assert_eq!(files.last(), Some(&checkpoint));
    let again = inode(&scratch.0);
    assert_ne!(again, renamed);
    drop(files);
    open(&scratch.0).expect("it opens");
    assert_eq!(inode(&scratch.0), again, "once is enough");
}

#[test]
fn names_damage_and_other_options() {
    let scratch = Scratch::new();
    let files = published(&scratch.0);
    let other = CheckpointFiles::<u32>::open(&scratch.0, "two".to_owned());
    assert_eq!(other.map(|_| ()).map_err(|error| error.code), Err("index_incompatible"));

    fs::write(scratch.0.join("a"), b"onetwX").expect("written");
    assert_eq!(files.verify().map_err(|error| error.code), Err("index_damaged"));
    fs::write(scratch.0.join("a"), b"one").expect("written");
    assert_eq!(open(&scratch.0).map(|_| ()), Err("index_damaged"), "a file of another length");

    let text = fs::read_to_string(scratch.0.join("checkpoint.json")).expect("read");
    fs::write(scratch.0.join("checkpoint.json"), text.replace(":7", ":8")).expect("written");
    assert_eq!(open(&scratch.0).map(|_| ()), Err("index_damaged"), "a checkpoint of another checksum");

    // What another format calls a checkpoint need not look like one of ours.
    fs::write(scratch.0.join("checkpoint.json"), r#"{"format":1,"fingerprint":"zero","meta":"{}"}"#).expect("written");
    assert_eq!(open(&scratch.0).map(|_| ()), Err("index_incompatible"));
}
