//! The three files, field by field.

use std::io;

use tantivy::directory::{CompositeWrite, WritePtr};
use tantivy::fieldnorm::FieldNormReader;
use tantivy::index::SegmentComponent;
use tantivy::postings::FieldSerializer;
use tantivy::schema::{Field, IndexRecordOption, Schema};
use tantivy::{DocId, Segment};

use super::small_field::SmallField;

/// Documents of a full block of postings.
pub const BLOCK_DOCS: u32 = 128;

/// Writes terms, postings and positions. A field without terms has no part in them.
pub struct TermFilesWriter {
    schema: Schema,
    is_small: bool,
    terms: CompositeWrite<WritePtr>,
    postings: CompositeWrite<WritePtr>,
    positions: CompositeWrite<WritePtr>,
}

impl TermFilesWriter {
    /// The segment knows how many documents it will have.
    pub fn open(segment: &Segment) -> tantivy::Result<Self> {
        Ok(Self {
            schema: segment.schema(),
            is_small: segment.meta().max_doc() < BLOCK_DOCS,
            terms: CompositeWrite::wrap(segment.open_write(SegmentComponent::Terms)?),
            postings: CompositeWrite::wrap(segment.open_write(SegmentComponent::Postings)?),
            positions: CompositeWrite::wrap(segment.open_write(SegmentComponent::Positions)?),
        })
    }

    /// The next field. `tokens`: of all its texts.
    pub fn field(
        &mut self,
        field: Field,
        tokens: u64,
        norms: Option<FieldNormReader>,
    ) -> tantivy::Result<FieldWriter<'_>> {
        let record = self.schema.get_field_entry(field).field_type().index_record_option();
        let record = record.unwrap_or(IndexRecordOption::Basic);
        let terms = self.terms.for_field(field);
        let (postings, positions) = (self.postings.for_field(field), self.positions.for_field(field));
        Ok(if self.is_small {
            FieldWriter::Small(SmallField::new(record, tokens, [terms, postings, positions])?)
        } else {
            FieldWriter::Large(FieldSerializer::create(record, tokens, terms, postings, positions, norms)?)
        })
    }

    pub fn close(self) -> tantivy::Result<()> {
        self.terms.close()?;
        self.postings.close()?;
        Ok(self.positions.close()?)
    }
}

/// Terms come in the order of their bytes, the documents of each in their own order.
pub enum FieldWriter<'a> {
    Small(SmallField<'a>),
    Large(FieldSerializer<'a>),
}

impl FieldWriter<'_> {
    /// `documents`: that have the term; it counts for terms with frequencies alone.
    pub fn begin_term(&mut self, term: &[u8], documents: u32, has_frequencies: bool) -> io::Result<()> {
        match self {
            Self::Small(field) => {
                field.begin_term(term, has_frequencies);
                Ok(())
            }
            Self::Large(field) => field.new_term(term, documents, has_frequencies),
        }
    }

    /// `steps`: the first position, then how much further each of the others is.
    pub fn write_document(&mut self, document: DocId, frequency: u32, steps: &[u32]) {
        match self {
            Self::Small(field) => field.write_document(document, frequency, steps),
            Self::Large(field) => field.write_doc(document, frequency, steps),
        }
    }

    pub fn end_term(&mut self) -> io::Result<()> {
        match self {
            Self::Small(field) => field.end_term(),
            Self::Large(field) => field.close_term(),
        }
    }

    pub fn close(self) -> io::Result<()> {
        match self {
            Self::Small(field) => field.close(),
            Self::Large(field) => field.close(),
        }
    }
}
