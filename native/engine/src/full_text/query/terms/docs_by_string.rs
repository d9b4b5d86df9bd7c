//! The documents that hold the strings of a column: the way back from a segment's sorted strings to its documents.
//!
//! A column tells the strings of a document. To find the documents of a few strings, its dictionary is asked for their ordinals and
//! all of it is read, which for a prefix in a large segment is most of a query. Where a column is asked again and again, the way
//! back is made once, on another thread.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use quick_cache::Weighter;
use quick_cache::sync::Cache;
use tantivy::columnar::StrColumn;
use tantivy::index::SegmentId;
use tantivy::{DocId, SegmentReader};

use crate::full_text::query::run::pool::beside_queries;

/// Bytes that are kept of an index: two columns of two million documents.
const BYTES_MAX: u64 = 32 << 20;

/// The way back costs about as much as 256 searches without it.
const SEARCHES_MIN: u32 = 256;

/// Columns whose searches are counted.
const COUNTED_MAX: usize = 256;

/// Segments of fewer documents are searched in a few microseconds.
const DOCS_MIN: DocId = 1 << 15;

/// The whole column is read sooner where more than one document in 32 holds a wanted string.
const WANTED_SHARE: usize = 32;

/// The documents of a segment in the order of their strings.
pub struct StringDocs {
    /// How the strings begin, each beginning once, and the first string of each.
    beginnings: Box<[u64]>,
    firsts: Box<[u32]>,
    /// For each string where its documents begin in `docs`, and the end of the last one's.
    starts: Box<[u32]>,
    /// A document with several strings is there for each.
    docs: Box<[DocId]>,
}

impl StringDocs {
    fn read(strings: &StrColumn, max_doc: DocId) -> io::Result<Self> {
        let (mut beginnings, mut firsts) = (Vec::new(), Vec::new());
        let mut all = strings.dictionary().stream()?;
        while all.advance() {
            let beginning = beginning(all.key());
            if beginnings.last() != Some(&beginning) {
                beginnings.push(beginning);
                firsts.push(all.term_ord() as u32);
            }
        }
        let mut starts = vec![0u32; strings.num_terms() + 1];
        let all = || (0..max_doc).flat_map(|doc| strings.ords().values_for_doc(doc).map(move |string| (string, doc)));
        for (string, _) in all() {
            starts[string as usize + 1] += 1;
        }
        for at in 1..starts.len() {
            starts[at] += starts[at - 1];
        }
        let mut docs = vec![0; starts.last().copied().unwrap_or(0) as usize];
        let mut next = starts.clone();
        for (string, doc) in all() {
            docs[next[string as usize] as usize] = doc;
            next[string as usize] += 1;
        }
        Ok(Self {
            beginnings: beginnings.into_boxed_slice(),
            firsts: firsts.into_boxed_slice(),
            starts: starts.into_boxed_slice(),
            docs: docs.into_boxed_slice(),
        })
    }

    /// The ordinal of the first string that is not less than `string`, and the number of strings where there is none; `None`
    /// where the beginnings do not tell.
    pub fn first_from(&self, string: &[u8]) -> Option<u64> {
        let beginning = beginning(string);
        let at = self.beginnings.partition_point(|known| *known < beginning);
        let first = self.firsts.get(at).map_or(self.starts.len() as u64 - 1, |first| u64::from(*first));
        // Of strings that begin so, those without the zeros at its end come before it.
        let is_beginning = string.len() <= size_of::<u64>() && string.last() != Some(&0);
        (is_beginning || self.beginnings.get(at) != Some(&beginning)).then_some(first)
    }

    /// The documents of the strings of these ordinals, ascending; `None` where reading the whole column is faster.
    pub fn docs(&self, strings: Range<u64>, max_doc: DocId) -> Option<Vec<DocId>> {
        let start = |string: u64| self.starts.get(string as usize).copied().unwrap_or(self.docs.len() as u32) as usize;
        let found = &self.docs[start(strings.start)..start(strings.end)];
        if found.len() * WANTED_SHARE > max_doc as usize {
            return None;
        }
        let mut found = found.to_vec();
        found.sort_unstable();
        found.dedup();
        Some(found)
    }

    fn bytes(&self) -> u64 {
        let beginnings = size_of_val(&*self.beginnings) + size_of_val(&*self.firsts);
        (beginnings + (self.starts.len() + self.docs.len()) * size_of::<u32>()) as u64
    }
}

/// The first eight bytes, filled up with zeros, as a number that is ordered as they are.
fn beginning(string: &[u8]) -> u64 {
    let mut bytes = [0; size_of::<u64>()];
    let length = string.len().min(bytes.len());
    bytes[..length].copy_from_slice(&string[..length]);
    u64::from_be_bytes(bytes)
}

type Name = (SegmentId, Arc<str>);

#[derive(Clone)]
struct Bytes;

impl Weighter<Name, Arc<StringDocs>> for Bytes {
    fn weight(&self, _: &Name, docs: &Arc<StringDocs>) -> u64 {
        docs.bytes()
    }
}

/// The ways back that are known of one index, by segment and column. What is used least makes room.
#[derive(Default)]
pub struct DocsByString {
    /// Made with the first of them: most indexes never have any.
    known: OnceLock<Cache<Name, Arc<StringDocs>, Bytes>>,
    searches: Mutex<HashMap<Name, u32>>,
}

impl fmt::Debug for DocsByString {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = self.known.get().map_or(0, Cache::len);
        formatter.debug_struct("DocsByString").field("known", &known).finish()
    }
}

impl DocsByString {
    /// The way back of a column, where it is known.
    pub fn of(&self, reader: &SegmentReader, column: &Arc<str>) -> Option<Arc<StringDocs>> {
        self.known.get()?.get(&(reader.segment_id(), Arc::clone(column)))
    }

    /// A column was searched without its way back, which is made once that was often.
    pub fn missed(self: &Arc<Self>, reader: &SegmentReader, column: &Arc<str>, strings: &StrColumn) {
        let name = (reader.segment_id(), Arc::clone(column));
        if reader.max_doc() < DOCS_MIN || self.of(reader, column).is_some() || !self.is_due(&name) {
            return;
        }
        let (this, strings, max_doc) = (Arc::clone(self), strings.clone(), reader.max_doc());
        beside_queries(move || {
            // Where the column cannot be read, searches go on without, and say so.
            if let Ok(docs) = StringDocs::read(&strings, max_doc) {
                this.keep(name, docs);
            }
        });
    }

    fn keep(&self, name: Name, docs: StringDocs) {
        let known = self.known.get_or_init(|| Cache::with_weighter(COUNTED_MAX, BYTES_MAX, Bytes));
        known.insert(name, Arc::new(docs));
    }

    fn is_due(&self, name: &Name) -> bool {
        let mut searches = self.searches.lock().unwrap_or_else(PoisonError::into_inner);
        if searches.len() >= COUNTED_MAX && !searches.contains_key(name) {
            searches.clear();
        }
        let count = searches.entry(name.clone()).or_default();
        *count += 1;
        let is_due = *count >= SEARCHES_MIN;
        if is_due {
            searches.remove(name);
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use tantivy::columnar::{ColumnarReader, ColumnarWriter, DynamicColumn};

    use super::*;

    /// The column of documents that each have some strings.
    fn column(documents: &[Vec<String>]) -> StrColumn {
        let mut writer = ColumnarWriter::default();
        for (doc, strings) in documents.iter().enumerate() {
            strings.iter().for_each(|string| writer.record_str(doc as u32, "s", string));
        }
        let mut bytes = Vec::new();
        writer.serialize(documents.len() as u32, None, &mut bytes).expect("a column in memory");
        let reader = ColumnarReader::open(bytes).expect("a column just written");
        match reader.read_columns("s").expect("the column's handles")[0].open().expect("the column") {
            DynamicColumn::Str(column) => column,
            _ => unreachable!("strings were written"),
        }
    }

    #[test]
    fn strings_lead_to_the_documents_that_a_scan_finds() {
        // Some documents have no string, some several, and some share theirs.
        let strings = |doc: usize| (0..doc % 3).map(|at| format!("{:04}", doc * (at + 7) % 401)).collect();
        let documents: Vec<Vec<String>> = (0..1_000).map(strings).collect();
        let column = column(&documents);
        let back = StringDocs::read(&column, documents.len() as DocId).expect("a column in memory");
        let count = column.num_terms() as u64;
        for (first, end) in [(0, 1), (0, 5), (17, 20), (count - 1, count), (count - 3, count)] {
            let mut scanned = Vec::new();
            column.ords().get_docids_for_value_range(first..=end - 1, 0..documents.len() as DocId, &mut scanned);
            scanned.dedup();
            assert!(!scanned.is_empty());
            assert_eq!(back.docs(first..end, documents.len() as DocId), Some(scanned));
        }
        assert_eq!(back.docs(0..count, documents.len() as DocId), None);
    }

    #[test]
    fn beginnings_tell_where_strings_begin_that_a_dictionary_tells() {
        let strings = ["", "a", "a\0", "abcdefg", "abcdefgh", "abcdefgh\0", "abcdefghi", "abcdefgz and more", "b", "ü"];
        let column = column(&strings.map(|string| vec![string.to_owned()]));
        let back = StringDocs::read(&column, strings.len() as DocId).expect("a column in memory");
        let first_from = |string: &str| strings.iter().filter(|other| **other < string).count() as u64;
        for string in ["", "a", "abcdefgh", "abcdefgi", "abcdefgi and more", "abz", "c", "z", "ü", "üü"] {
            assert_eq!(back.first_from(string.as_bytes()), Some(first_from(string)), "{string:?}");
        }
        for string in ["a\0", "abcdefgh\0", "abcdefghi", "abcdefgz and"] {
            assert_eq!(back.first_from(string.as_bytes()), None, "{string:?}");
        }
    }

    #[test]
    fn a_column_is_due_after_many_searches() {
        let known = DocsByString::default();
        let name = (SegmentId::generate_random(), Arc::from("s"));
        let due: Vec<u32> = (1..=2 * SEARCHES_MIN).filter(|_| known.is_due(&name)).collect();
        assert_eq!(due, [SEARCHES_MIN, 2 * SEARCHES_MIN]);
        assert!(known.known.get().is_none());
        known.keep(name.clone(), StringDocs::read(&column(&[vec!["a".to_owned()]]), 1).expect("a column in memory"));
        assert!(known.known.get().is_some_and(|known| known.get(&name).is_some()));
    }
}
