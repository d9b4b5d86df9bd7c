//! A field's part of a segment's files, for what Tantivy's readers do not give.

use tantivy::SegmentReader;
use tantivy::directory::{CompositeFile, FileSlice};
use tantivy::index::SegmentComponent;
use tantivy::schema::Field;

/// Bytes before the postings of a field: the number of its tokens.
const TOKEN_COUNT_BYTES: usize = 8;

/// The files in which the ranges of a `TermInfo` lie.
#[derive(Clone)]
pub struct FieldFiles {
    pub postings: FileSlice,
    pub positions: FileSlice,
}

impl FieldFiles {
    /// `None` where the files are gone: the segment was merged into another while a query still reads it.
    pub fn open(reader: &SegmentReader, field: Field) -> Option<Self> {
        let of_field = |component: SegmentComponent| {
            let file = reader.open_read(component).ok()?;
            CompositeFile::open(&file).ok()?.open_read(field)
        };
        let postings = of_field(SegmentComponent::Postings)?.slice_from(TOKEN_COUNT_BYTES);
        Some(Self { postings, positions: of_field(SegmentComponent::Positions)? })
    }
}
