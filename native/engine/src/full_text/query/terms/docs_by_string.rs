//! The documents that hold the strings of a column: the way back from a segment's sorted strings to its documents.
//!
//! A column tells the strings of a document. To find the documents of a few strings, its dictionary is asked for their
//! ordinals and all of it is read, which for a prefix in a large segment is most of a query. Where a column is asked
//! again and again, the way back is made once, on another thread.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tantivy::columnar::StrColumn;
use tantivy::index::SegmentId;
use tantivy::{DocId, SegmentReader};

use crate::bounded_cache::BoundedCache;
use crate::full_text::query::run::pool::beside_queries;

/// Bytes that are kept of an index: two columns of four million documents.
const BYTES_MAX: usize = 32 << 20;

/// The same for each of its documents, where they are more.
const DOCUMENT_BYTES: usize = 2 * size_of::<DocId>();

/// The way back costs about as much as 256 searches without it.
const SEARCHES_MIN: u32 = 256;

/// Columns whose searches are counted.
const COUNTED_MAX: usize = 256;

/// Segments of fewer documents are searched in a few microseconds.
const DOCS_MIN: DocId = 1 << 15;

/// The whole column is read sooner where more than one document in 32 holds a wanted string.
const WANTED_SHARE: usize = 32;

/// Where one string in fewer has another beginning than the one before it, fewer bytes of the beginnings are kept.
const STRINGS_A_BEGINNING: usize = 16;

/// Beginnings that are kept whatever the number of strings: of a hundred thousand, as many as tell nearly all of them apart.
const BEGINNINGS_MIN: usize = 1 << 16;

/// The documents of a segment in the order of their strings.
pub struct StringDocs {
    /// How the strings begin, each beginning once, and the first string of each.
    beginnings: Box<[u64]>,
    firsts: Box<[u32]>,
    /// Bytes of a beginning.
    width: usize,
    strings: u64,
    /// For each string where its documents begin in `docs`, and the end of the last one's; none where each string is in
    /// one document.
    starts: Option<Box<[u32]>>,
    /// A document with several strings is there for each.
    docs: Box<[DocId]>,
}

impl StringDocs {
    fn read(strings: &StrColumn, max_doc: DocId, beginnings_min: usize) -> io::Result<Self> {
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
        let is_each_once = starts.iter().zip(0..).all(|(start, string)| *start == string);
        let (beginnings, firsts, width) = beginnings(strings, beginnings_min)?;
        Ok(Self {
            beginnings: beginnings.into_boxed_slice(),
            firsts: firsts.into_boxed_slice(),
            width,
            strings: strings.num_terms() as u64,
            starts: (!is_each_once).then(|| starts.into_boxed_slice()),
            docs: docs.into_boxed_slice(),
        })
    }

    /// The ordinal of the first string that is not less than `string`, and the number of strings where there is none; `None`
    /// where the beginnings do not tell.
    pub fn first_from(&self, string: &[u8]) -> Option<u64> {
        let beginning = beginning(string, self.width);
        let at = self.beginnings.partition_point(|known| *known < beginning);
        let first = self.firsts.get(at).map_or(self.strings, |first| u64::from(*first));
        // Of strings that begin so, those without the zeros at its end come before it.
        let is_beginning = string.len() <= self.width && string.last() != Some(&0);
        (is_beginning || self.beginnings.get(at) != Some(&beginning)).then_some(first)
    }

    /// The documents of the strings of these ordinals, ascending; `None` where reading the whole column is faster.
    pub fn docs(&self, strings: Range<u64>, max_doc: DocId) -> Option<Vec<DocId>> {
        let end = self.docs.len();
        let start = |string: u64| match &self.starts {
            Some(starts) => starts.get(string as usize).map_or(end, |start| *start as usize),
            None => (string as usize).min(end),
        };
        let found = &self.docs[start(strings.start)..start(strings.end)];
        if found.len() * WANTED_SHARE > max_doc as usize {
            return None;
        }
        let mut found = found.to_vec();
        found.sort_unstable();
        found.dedup();
        Some(found)
    }

    fn bytes(&self) -> usize {
        let starts = self.starts.as_ref().map_or(0, |starts| size_of_val(&**starts));
        size_of_val(&*self.beginnings) + size_of_val(&*self.firsts) + starts + size_of_val(&*self.docs)
    }
}

/// How the strings begin, the first string of each beginning, and the bytes of a beginning: as many as leave few of them.
fn beginnings(strings: &StrColumn, beginnings_min: usize) -> io::Result<(Vec<u64>, Vec<u32>, usize)> {
    let most = beginnings_min.max(strings.num_terms() / STRINGS_A_BEGINNING);
    let (mut beginnings, mut firsts, mut width) = (Vec::new(), Vec::new(), size_of::<u64>());
    let mut all = strings.dictionary().stream()?;
    while all.advance() {
        let next = beginning(all.key(), width);
        if beginnings.last() == Some(&next) {
            continue;
        }
        beginnings.push(next);
        firsts.push(all.term_ord() as u32);
        while beginnings.len() > most {
            width -= 1;
            shorten(&mut beginnings, &mut firsts, width);
        }
    }
    Ok((beginnings, firsts, width))
}

/// Beginnings of `width` bytes.
fn shorten(beginnings: &mut Vec<u64>, firsts: &mut Vec<u32>, width: usize) {
    let mut kept = 0;
    for at in 0..beginnings.len() {
        let shorter = first_bytes(beginnings[at], width);
        if kept == 0 || beginnings[kept - 1] != shorter {
            (beginnings[kept], firsts[kept]) = (shorter, firsts[at]);
            kept += 1;
        }
    }
    beginnings.truncate(kept);
    firsts.truncate(kept);
}

/// The first `width` bytes, at most eight, filled up with zeros, as a number that is ordered as they are.
fn beginning(string: &[u8], width: usize) -> u64 {
    let mut bytes = [0; size_of::<u64>()];
    let length = string.len().min(width);
    bytes[..length].copy_from_slice(&string[..length]);
    u64::from_be_bytes(bytes)
}

fn first_bytes(beginning: u64, width: usize) -> u64 {
    beginning & u64::MAX.checked_shl(8 * (size_of::<u64>() - width) as u32).unwrap_or(0)
}

type Name = (SegmentId, Arc<str>);

/// The ways back that are known of one index, by segment and column. What is used least makes room.
pub struct DocsByString {
    known: BoundedCache<Name, StringDocs>,
    searches: Mutex<HashMap<Name, u32>>,
    /// Of all segments.
    documents: AtomicU64,
}

impl Default for DocsByString {
    fn default() -> Self {
        let known = BoundedCache::new(BYTES_MAX, |(_, column): &Name, docs: &StringDocs| column.len() + docs.bytes());
        Self { known, searches: Mutex::default(), documents: AtomicU64::new(0) }
    }
}

impl fmt::Debug for DocsByString {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("DocsByString").finish_non_exhaustive()
    }
}

impl DocsByString {
    /// The way back of a column, where it is known.
    pub fn of(&self, reader: &SegmentReader, column: &Arc<str>) -> Option<Arc<StringDocs>> {
        self.known.get(&(reader.segment_id(), Arc::clone(column)))
    }

    /// Of the newest commit.
    pub fn set_documents(&self, documents: u64) {
        self.documents.store(documents, Ordering::Relaxed);
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
            if let Ok(docs) = StringDocs::read(&strings, max_doc, BEGINNINGS_MIN) {
                this.keep(name, docs);
            }
        });
    }

    fn keep(&self, name: Name, docs: StringDocs) {
        let wanted_bytes = DOCUMENT_BYTES * self.documents.load(Ordering::Relaxed) as usize;
        self.known.insert(name, Arc::new(docs), wanted_bytes);
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
        let back = StringDocs::read(&column, documents.len() as DocId, BEGINNINGS_MIN).expect("a column in memory");
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
        let mut back = StringDocs::read(&column, strings.len() as DocId, BEGINNINGS_MIN).expect("a column in memory");
        let first_from = |string: &str| strings.iter().filter(|other| **other < string).count() as u64;
        for string in ["", "a", "abcdefgh", "abcdefgi", "abcdefgi and more", "abz", "c", "z", "ü", "üü"] {
            assert_eq!(back.first_from(string.as_bytes()), Some(first_from(string)), "{string:?}");
        }
        for string in ["a\0", "abcdefgh\0", "abcdefghi", "abcdefgz and"] {
            assert_eq!(back.first_from(string.as_bytes()), None, "{string:?}");
        }
        // Of fewer bytes.
        for width in (1..8).rev() {
            let (mut beginnings, mut firsts) = (back.beginnings.into_vec(), back.firsts.into_vec());
            shorten(&mut beginnings, &mut firsts, width);
            back = StringDocs { beginnings: beginnings.into(), firsts: firsts.into(), width, ..back };
            for string in ["", "a", "b", "c", "z", "ü", "abcdefgh", "abcdefgi", "abz", "abcdefgz and"] {
                let told = back.first_from(string.as_bytes());
                assert!(told.is_none_or(|told| told == first_from(string)), "{string:?} of {width}");
                assert!(told.is_some() || string.len() > width, "{string:?} of {width}");
            }
        }
    }

    #[test]
    fn a_column_is_due_after_many_searches() {
        let known = DocsByString::default();
        let name = (SegmentId::generate_random(), Arc::from("s"));
        let due: Vec<u32> = (1..=2 * SEARCHES_MIN).filter(|_| known.is_due(&name)).collect();
        assert_eq!(due, [SEARCHES_MIN, 2 * SEARCHES_MIN]);
    }

    #[test]
    fn two_columns_of_all_documents_have_room_whatever_the_number_of_documents() {
        // Each string is in one document. Few beginnings are kept, as of a column with many more strings.
        let documents: Vec<Vec<String>> = (0..40_000).map(|doc| vec![format!("{:08}", doc * 7 % 40_000)]).collect();
        let column = column(&documents);
        let back = || StringDocs::read(&column, documents.len() as DocId, 256).expect("a column in memory");
        let known = DocsByString::default();
        let segments: Vec<SegmentId> = (0..300).map(|_| SegmentId::generate_random()).collect();
        known.set_documents(segments.len() as u64 * documents.len() as u64);
        let names = || segments.iter().flat_map(|segment| ["s", "t"].map(|name| (*segment, Arc::from(name))));
        names().for_each(|name| known.keep(name, back()));
        let forgotten = names().filter(|name| known.known.get(name).is_none()).count();
        // What is kept beside the documents takes the rest.
        assert!(forgotten < segments.len() / 8, "{forgotten}");
    }
}
