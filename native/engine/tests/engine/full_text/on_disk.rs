//! What tests of indexes on disk share: documents of one word, their number, the files.

use std::path::Path;
use std::sync::Arc;

use super::support::*;
use serde_json::json;
use sundew_engine::full_text::{DerivedIndex, TextIndex};

pub fn open(path: &Path) -> Arc<TextIndex> {
    TextIndex::open(path, disk_options()).expect("the index opens")
}

/// Documents with the ordinals `from..to`.
pub fn rows(from: u32, to: u32, word: &str) -> Vec<Row> {
    (from..to).map(|at| put(&format!("k{at}"), at, json!({"text": word, "n": at}))).collect()
}

pub fn apply(index: &TextIndex, rows: &[Row], first_sequence: u64) {
    let report = index.apply(&frame(rows, first_sequence)).expect("rows are applied");
    assert_eq!((report.rows, report.skipped_count), (rows.len(), 0));
}

/// Until no merge is left to do.
pub fn rest(index: &TextIndex) {
    index.rest().expect("released");
    index.wait_for_merges();
}

pub fn count(index: &Arc<TextIndex>, word: &str) -> usize {
    matching(index, json!({"kind": "match", "field": "text", "text": word})).len()
}

/// Of the files in a directory, in order.
pub fn names(path: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(path).expect("the directory is there");
    let mut names: Vec<String> =
        entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// As the test program calls a test of `module`, which is a `module_path!()`.
pub fn path_of(module: &str, test: &str) -> String {
    let (_program, module) = module.split_once("::").expect("a module of the program");
    format!("{module}::{test}")
}
