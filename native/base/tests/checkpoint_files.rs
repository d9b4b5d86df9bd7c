//! What a directory of index files opens at: nothing, the last checkpoint, or a refusal that says why.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use sundew_base::checkpoint_files::{Checkpoint, CheckpointFiles};

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

fn open(path: &Path) -> Result<(CheckpointFiles, Option<Checkpoint<u32>>), &'static str> {
    CheckpointFiles::open(path, "one".to_owned()).map_err(|error| error.code)
}

fn names(path: &Path) -> Vec<String> {
    let entries = fs::read_dir(path).expect("the directory is there");
    let mut names: Vec<String> =
        entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// A checkpoint of sequence 7 with one file `a`.
fn published(path: &Path) -> CheckpointFiles {
    let (files, checkpoint) = open(path).expect("an empty directory opens");
    assert!(checkpoint.is_none());
    let file = files.write("a", &[b"one", b"two"]).expect("a file is written");
    files.publish(&Checkpoint { sequence: 7, files: vec![file], state: 3 }, &|_| false).expect("a checkpoint");
    files
}

#[test]
fn opens_at_the_last_checkpoint_and_removes_what_it_does_not_name() {
    let scratch = Scratch::new();
    let files = published(&scratch.0);
    files.write("b", &[b"of a checkpoint that never came"]).expect("a file is written");
    let (files, checkpoint) = open(&scratch.0).expect("it opens");
    let checkpoint = checkpoint.expect("a checkpoint");
    assert_eq!((checkpoint.sequence, checkpoint.state, checkpoint.files.len()), (7, 3, 1));
    assert_eq!(names(&scratch.0), ["a", "checkpoint.json"]);
    assert_eq!(&files.map(&checkpoint.files[0]).expect("mapped")[..], b"onetwo");
    files.verify(&checkpoint.files[0]).expect("the checksum matches");

    let next = files.write("c", &[b"three"]).expect("a file is written");
    files.publish(&Checkpoint { sequence: 9, files: vec![next], state: 4 }, &|_| false).expect("a checkpoint");
    assert_eq!(names(&scratch.0), ["c", "checkpoint.json"]);
}

#[test]
fn names_damage_and_other_options() {
    let scratch = Scratch::new();
    let files = published(&scratch.0);
    let checkpoint = open(&scratch.0).expect("it opens").1.expect("a checkpoint");
    let other = CheckpointFiles::open::<u32>(&scratch.0, "two".to_owned());
    assert_eq!(other.map(|_| ()).map_err(|error| error.code), Err("index_incompatible"));

    fs::write(scratch.0.join("a"), b"onetwX").expect("written");
    assert_eq!(files.verify(&checkpoint.files[0]).map_err(|error| error.code), Err("index_damaged"));
    fs::write(scratch.0.join("a"), b"one").expect("written");
    assert_eq!(open(&scratch.0).map(|_| ()), Err("index_damaged"), "a file of another length");

    let text = fs::read_to_string(scratch.0.join("checkpoint.json")).expect("read");
    fs::write(scratch.0.join("checkpoint.json"), text.replace(":7", ":8")).expect("written");
    assert_eq!(open(&scratch.0).map(|_| ()), Err("index_damaged"), "a checkpoint of another checksum");
}
