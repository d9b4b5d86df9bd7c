//! Norms, terms, postings and positions of a segment.

use tantivy::Segment;
use tantivy::fieldnorm::{FieldNormReaders, FieldNormsSerializer, FieldNormsWriter};
use tantivy::index::SegmentComponent;
use tantivy::schema::Field;

use super::token_log::{Occurrence, TokenLog, parts};
use super::vocabulary::Vocabulary;
use crate::full_text::term_files::{FieldWriter, TermFilesWriter};

/// Occurrences that are gathered at once: 32 MB.
const OCCURRENCES_MAX: u64 = 1 << 22;

pub struct IndexedField {
    pub field: Field,
    pub log: TokenLog,
}

pub struct InvertedIndex {
    pub documents: u32,
    /// Without frequencies and positions.
    pub terms: IndexedField,
    pub term_texts: Vocabulary,
    /// In the order of their fields.
    pub texts: Vec<IndexedField>,
    pub words: Vocabulary,
}

impl InvertedIndex {
    pub fn write(self, segment: &Segment) -> tantivy::Result<()> {
        self.write_norms(segment)?;
        let norms = FieldNormReaders::open(segment.open_read(SegmentComponent::FieldNorms)?)?;
        let mut files = TermFilesWriter::open(segment)?;
        let mut room = Vec::new();
        let mut write_field = |indexed: IndexedField, vocabulary: &Vocabulary, sorted: &[u32], has_positions: bool| {
            let IndexedField { field, log } = indexed;
            let counts = log.counts(vocabulary.len());
            let total = counts.iter().map(|count| u64::from(*count)).sum();
            if total == 0 {
                return tantivy::Result::Ok(());
            }
            let mut field = files.field(field, total, norms.get_field(field)?)?;
            let mut postings = FieldPostings { field: &mut field, vocabulary, has_positions, steps: Vec::new() };
            postings.write(&log, sorted, counts, &mut room)?;
            Ok(field.close()?)
        };
        write_field(self.terms, &self.term_texts, &self.term_texts.sorted(), false)?;
        let sorted = self.words.sorted();
        for text in self.texts {
            write_field(text, &self.words, &sorted, true)?;
        }
        files.close()
    }

    fn write_norms(&self, segment: &Segment) -> tantivy::Result<()> {
        let schema = segment.schema();
        let mut norms = FieldNormsWriter::for_schema(&schema);
        for IndexedField { field, log } in &self.texts {
            if schema.get_field_entry(*field).has_fieldnorms() {
                log.lengths().for_each(|(document, length)| norms.record(document, *field, length));
            }
        }
        norms.fill_up_to_max_doc(self.documents);
        let serializer = FieldNormsSerializer::from_write(segment.open_write(SegmentComponent::FieldNorms)?)?;
        Ok(norms.serialize(serializer, None)?)
    }
}

struct FieldPostings<'f, 's> {
    field: &'f mut FieldWriter<'s>,
    vocabulary: &'f Vocabulary,
    has_positions: bool,
    /// Of one term in one document: how far each position is from the one before it.
    steps: Vec<u32>,
}

impl FieldPostings<'_, '_> {
    /// `counts`: of `log`, by number. `room` is used again for each field.
    fn write(
        &mut self,
        log: &TokenLog,
        sorted: &[u32],
        counts: Vec<u32>,
        room: &mut Vec<Occurrence>,
    ) -> tantivy::Result<()> {
        let present: Vec<u32> = sorted.iter().copied().filter(|number| counts[*number as usize] > 0).collect();
        let mut starts = vec![u32::MAX; counts.len()];
        for (part, total) in parts(&present, &counts, OCCURRENCES_MAX) {
            if room.len() < total {
                room.resize(total, Occurrence::default());
            }
            let mut next = 0;
            for number in part {
                starts[*number as usize] = next;
                next += counts[*number as usize];
            }
            log.gather(&mut starts, room);
            let mut start = 0;
            for number in part {
                let end = std::mem::replace(&mut starts[*number as usize], u32::MAX) as usize;
                self.write_term(*number, &room[start..end])?;
                start = end;
            }
        }
        Ok(())
    }

    fn write_term(&mut self, number: u32, occurrences: &[Occurrence]) -> tantivy::Result<()> {
        let term = self.vocabulary.get(number);
        let by_document = || occurrences.chunk_by(|left, right| left.document == right.document);
        if !self.has_positions {
            self.field.begin_term(term, 0, false)?;
            by_document().for_each(|of_document| self.field.write_document(of_document[0].document, 0, &[]));
            return Ok(self.field.end_term()?);
        }
        self.field.begin_term(term, by_document().count() as u32, true)?;
        for of_document in by_document() {
            self.steps.clear();
            let mut last = 0;
            for occurrence in of_document {
                self.steps.push(occurrence.position.wrapping_sub(last));
                last = occurrence.position;
            }
            self.field.write_document(of_document[0].document, of_document.len() as u32, &self.steps);
        }
        Ok(self.field.end_term()?)
    }
}
