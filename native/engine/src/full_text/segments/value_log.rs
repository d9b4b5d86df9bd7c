//! The values of documents that are no words, one document after another.

use std::collections::HashSet;
use std::sync::Arc;

use tantivy::DateTime;

/// A span of the log's text.
#[derive(Debug, Clone, Copy)]
pub struct Span {
    start: u32,
    end: u32,
}

#[derive(Debug, Clone, Copy)]
pub enum Scalar {
    Text(Span),
    Integer(i64),
    Float(f64),
    Boolean(bool),
    Date(DateTime),
    /// A column, but no term: shapes as JSON, and strings that are analysed only, which are sorted by it.
    ColumnOnly(Span),
    /// Neither column nor term; the path is there.
    Present,
}

#[derive(Debug, Clone, Copy)]
pub struct DocumentHead {
    pub ordinal: u32,
    pub sequence: u64,
    pub ttl_base_ms: i64,
}

struct Entry {
    head: DocumentHead,
    key: Span,
    values_end: u32,
}

/// One document of a log.
pub struct LoggedDocument<'a> {
    pub head: DocumentHead,
    pub key: &'a str,
    pub values: &'a [(Arc<str>, Scalar)],
}

#[derive(Default)]
pub struct ValueLog {
    documents: Vec<Entry>,
    values: Vec<(Arc<str>, Scalar)>,
    /// Keys and strings.
    text: String,
    /// The paths of the current document that `push_present` has seen.
    present: HashSet<Arc<str>>,
}

impl ValueLog {
    pub fn memory_bytes(&self) -> usize {
        let values = self.values.capacity() * size_of::<(Arc<str>, Scalar)>();
        self.documents.capacity() * size_of::<Entry>() + values + self.text.capacity()
    }

    /// Documents that were begun and not forgotten.
    pub fn len(&self) -> u32 {
        self.documents.len() as u32
    }

    pub fn begin_document(&mut self, head: DocumentHead, key: &str) {
        self.present.clear();
        let key = self.keep(key);
        self.documents.push(Entry { head, key, values_end: self.values.len() as u32 });
    }

    /// Copies a string of the current document.
    pub fn keep(&mut self, text: &str) -> Span {
        let start = self.text.len() as u32;
        self.text.push_str(text);
        Span { start, end: self.text.len() as u32 }
    }

    /// A value of the current document.
    pub fn push(&mut self, path: &Arc<str>, scalar: Scalar) {
        self.values.push((Arc::clone(path), scalar));
        if let Some(document) = self.documents.last_mut() {
            document.values_end = self.values.len() as u32;
        }
    }

    /// As `push`, if the document has no such value of this path yet.
    pub fn push_present(&mut self, path: &Arc<str>) {
        if self.present.insert(Arc::clone(path)) {
            self.push(path, Scalar::Present);
        }
    }

    /// Takes back the current document.
    pub fn forget_document(&mut self) {
        if let Some(document) = self.documents.pop() {
            self.values.truncate(self.documents.last().map_or(0, |last| last.values_end as usize));
            self.text.truncate(document.key.start as usize);
        }
    }

    pub fn text_of(&self, span: Span) -> &str {
        &self.text[span.start as usize..span.end as usize]
    }

    pub fn documents(&self) -> impl Iterator<Item = LoggedDocument<'_>> {
        let mut start = 0;
        self.documents.iter().map(move |entry| {
            let values = &self.values[start..entry.values_end as usize];
            start = entry.values_end as usize;
            LoggedDocument { head: entry.head, key: self.text_of(entry.key), values }
        })
    }
}
