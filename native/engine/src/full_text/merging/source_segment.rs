//! A segment that is merged, as it was when the merge began.

use tantivy::columnar::ColumnarReader;
use tantivy::directory::CompositeFile;
use tantivy::index::SegmentComponent;
use tantivy::{DocId, Segment, SegmentReader};

/// The number of a document that has left.
const LEFT: DocId = DocId::MAX;

/// All files are open from the start: later commits may remove them.
pub struct SourceSegment {
    pub reader: SegmentReader,
    pub postings: CompositeFile,
    pub positions: CompositeFile,
    pub columns: ColumnarReader,
    /// The number that its first document has in the merged segment.
    first: DocId,
    /// Where documents have left: for each its number in the merged segment.
    numbers: Option<Vec<DocId>>,
}

impl SourceSegment {
    /// `first`: documents of the sources before it.
    pub fn open(segment: &Segment, first: DocId) -> tantivy::Result<Self> {
        let reader = SegmentReader::open(segment)?;
        let file = |component| reader.open_read(component);
        let (postings, positions) = (file(SegmentComponent::Postings)?, file(SegmentComponent::Positions)?);
        Ok(Self {
            postings: CompositeFile::open(&postings)?,
            positions: CompositeFile::open(&positions)?,
            columns: ColumnarReader::open(file(SegmentComponent::FastFields)?)?,
            first,
            numbers: reader.has_deletes().then(|| numbers(&reader, first)),
            reader,
        })
    }

    pub fn has_left(&self) -> bool {
        self.numbers.is_some()
    }

    /// The document in the merged segment, unless it has left.
    pub fn merged(&self, document: DocId) -> Option<DocId> {
        match &self.numbers {
            None => Some(self.first + document),
            Some(numbers) => Some(numbers[document as usize]).filter(|number| *number != LEFT),
        }
    }

    /// Documents that have not left, in their order.
    pub fn documents(&self) -> impl Iterator<Item = DocId> {
        (0..self.reader.max_doc()).filter(|document| self.merged(*document).is_some())
    }
}

fn numbers(reader: &SegmentReader, first: DocId) -> Vec<DocId> {
    let mut next = first;
    let number_of = |document| {
        if reader.is_deleted(document) {
            return LEFT;
        }
        next += 1;
        next - 1
    };
    (0..reader.max_doc()).map(number_of).collect()
}
