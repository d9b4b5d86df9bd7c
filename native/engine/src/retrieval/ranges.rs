//! The ranges of a query: where documents are, and the order of their keys.

use std::cmp::Ordering;
use std::sync::Arc;

use tantivy::DocId;

use super::ordinal_cache::{OrdinalCache, SegmentOrdinals};
use crate::error::EngineError;
use crate::full_text::{Deadline, Keys, QueryPlan, RangeView, TextIndex, damaged, open_views};

/// A document of one of the ranges.
#[derive(Debug, Clone, Copy)]
pub struct FoundDocument {
    pub range: u32,
    pub ordinal: u32,
    /// `None` while the range's text index does not show the document: it is not there yet, or not any more.
    pub location: Option<DocLocation>,
}

/// Where a text index has a document.
#[derive(Debug, Clone, Copy)]
pub struct DocLocation {
    pub segment: u32,
    pub doc: DocId,
}

pub struct Ranges {
    pub views: Vec<RangeView>,
    pub caches: Vec<Arc<OrdinalCache>>,
    ordinals: Vec<Vec<Arc<SegmentOrdinals>>>,
}

impl Ranges {
    pub fn of(texts: &[Arc<TextIndex>], plan: &QueryPlan, deadline: &Deadline) -> Result<Self, EngineError> {
        let views = open_views(texts, plan, deadline)?;
        let caches: Vec<Arc<OrdinalCache>> = texts.iter().map(|text| text.ordinals()).collect();
        let ordinals = views
            .iter()
            .zip(&caches)
            .map(|(view, cache)| cache.of(&view.searcher, &view.columns))
            .collect::<Result<_, _>>()?;
        Ok(Self { views, caches, ordinals })
    }

    pub fn segment_ordinals(&self, range: usize) -> &[Arc<SegmentOrdinals>] {
        &self.ordinals[range]
    }

    pub fn document_count(&self) -> u64 {
        self.views.iter().map(|view| view.searcher.num_docs()).sum()
    }

    pub fn find(&self, range: usize, ordinal: u32) -> FoundDocument {
        let readers = self.views[range].searcher.segment_readers().iter().zip(&self.ordinals[range]);
        let mut shown = readers.enumerate().filter_map(|(segment, (reader, ordinals))| {
            let doc = ordinals.document(ordinal).filter(|doc| !reader.is_deleted(*doc))?;
            Some(DocLocation { segment: segment as u32, doc })
        });
        FoundDocument { range: range as u32, ordinal, location: shown.next() }
    }

    /// Range, segment and document, and the rank of its key among those of its segment. It is looked up when two
    /// documents tie, which is seldom.
    fn key_rank(&self, range: u32, DocLocation { segment, doc }: DocLocation) -> (usize, (u32, DocId, u64)) {
        let keys = self.views[range as usize].columns[segment as usize].keys.ords();
        (range as usize, (segment, doc, keys.first(doc).unwrap_or(u64::MAX)))
    }

    /// The version that the text index has of the document; 0 when it does not show it.
    pub fn sequence(&self, found: &FoundDocument) -> Result<u64, EngineError> {
        let Some(DocLocation { segment, doc }) = found.location else { return Ok(0) };
        let sequence = &self.views[found.range as usize].columns[segment as usize].sequence;
        sequence.first(doc).ok_or_else(|| damaged("a document has no sequence".to_owned()))
    }
}

/// By key. Documents that no text index shows come last, by range and ordinal.
pub fn by_key(ranges: &Ranges, keys: &mut Keys<'_>, a: &FoundDocument, b: &FoundDocument) -> Ordering {
    match (a.location, b.location) {
        (Some(of_a), Some(of_b)) => keys.compare(ranges.key_rank(a.range, of_a), ranges.key_rank(b.range, of_b)),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => (a.range, a.ordinal).cmp(&(b.range, b.ordinal)),
    }
}
