//! The facts about a path that queries ask for, worked out once for each path.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use super::exact_types::ExactTypes;
use super::rule::PATH_BYTES_MAX;
use crate::full_text::analysis::Analyzer;

/// Above this many paths all are forgotten: paths come from queries. Those too long for a document are not kept.
const PATHS_KEPT: usize = 1_024;

/// A path under which whole strings lie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExactPath {
    pub path: String,
    /// Whose strings are whole; none where those of all documents are.
    pub types: Option<Arc<ExactTypes>>,
}

/// The kinds of values that documents may hold at a path, as the schema says; all of them where it says nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeldKinds {
    /// Whole ones.
    pub strings: bool,
    pub numbers: bool,
    pub dates: bool,
    pub booleans: bool,
    pub points: bool,
}

impl HeldKinds {
    pub const ALL: Self = Self { strings: true, numbers: true, dates: true, booleans: true, points: true };

    /// Any but points.
    pub fn has_values(self) -> bool {
        self.strings || self.numbers || self.dates || self.booleans
    }
}

/// The rules of the strings at a path, over all document types.
#[derive(Debug)]
pub struct PathFacts {
    /// Those that strings at the path may have been given.
    pub analyzers: Vec<Analyzer>,
    /// Numbers and booleans of all documents are indexed as the texts of their literals.
    pub numbers_are_texts: bool,
    pub booleans_are_texts: bool,
    /// None when the path is declared to have no exact form.
    pub exact_paths: Vec<ExactPath>,
    /// Those of them where strings that are dates lie as strings.
    pub date_texts: Vec<ExactPath>,
    /// Longer strings have no whole value in some documents, bytes.
    pub whole_bytes_max: usize,
    /// Some documents have no words of the path, so that a text that is asked of it is compared with whole strings too.
    pub may_lack_words: bool,
    /// A query without a field searches the path. Types that differ are searched alike: their texts lie together.
    pub is_searched: bool,
    /// Every document type declares that the path is not indexed: nothing can be said of its values.
    pub is_left_out: bool,
    /// No document is indexed by the path, whatever the schema says.
    pub is_never_indexed: bool,
    /// Documents may hold strings here, but only as analysed words.
    pub has_only_text: bool,
    /// The values that aggregations may find here.
    pub holds: HeldKinds,
    /// The strings of some documents have no column.
    pub may_lack_values: bool,
    /// Some documents hold words. A derived field, such as `title._2gram`, has no rules of its own and counts as such.
    pub may_have_words: bool,
    /// Words may be misspelt: no document type switches it off.
    pub allows_typo: bool,
}

#[derive(Debug, Default)]
pub struct KnownPaths(Mutex<HashMap<Box<str>, Arc<PathFacts>>>);

impl KnownPaths {
    pub fn of(&self, path: &str, find: impl FnOnce() -> PathFacts) -> Arc<PathFacts> {
        if path.len() > PATH_BYTES_MAX {
            return Arc::new(find());
        }
        let mut known = self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some(facts) = known.get(path) {
            return Arc::clone(facts);
        }
        if known.len() == PATHS_KEPT {
            known.clear();
        }
        let facts = Arc::new(find());
        known.insert(Box::from(path), Arc::clone(&facts));
        facts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(path: &str) -> PathFacts {
        PathFacts {
            analyzers: Vec::new(),
            exact_paths: vec![ExactPath { path: path.to_owned(), types: None }],
            date_texts: Vec::new(),
            numbers_are_texts: false,
            booleans_are_texts: false,
            whole_bytes_max: 256,
            may_lack_words: false,
            is_searched: true,
            is_left_out: false,
            is_never_indexed: false,
            has_only_text: false,
            holds: HeldKinds::ALL,
            may_lack_values: false,
            may_have_words: false,
            allows_typo: true,
        }
    }

    #[test]
    fn a_path_is_worked_out_once_and_no_more_are_kept_than_fit() {
        let known = KnownPaths::default();
        let mut found = 0;
        for path in (0..3 * PATHS_KEPT).map(|number| format!("path{number}")) {
            for _ in 0..2 {
                let facts = known.of(&path, || {
                    found += 1;
                    facts(&path)
                });
                assert_eq!(facts.exact_paths[0].path, path);
            }
            assert!(known.0.lock().expect("no panic").len() <= PATHS_KEPT);
        }
        assert_eq!(found, 3 * PATHS_KEPT);
    }

    #[test]
    fn a_path_too_long_for_a_document_is_answered_and_not_kept() {
        let known = KnownPaths::default();
        let kept = "p".repeat(PATH_BYTES_MAX);
        let long = "p".repeat(PATH_BYTES_MAX + 1);
        for path in [&kept, &long] {
            assert_eq!(&known.of(path, || facts(path)).exact_paths[0].path, path);
        }
        let paths: Vec<Box<str>> = known.0.lock().expect("no panic").keys().cloned().collect();
        assert_eq!(paths, [Box::from(kept)]);
    }
}
