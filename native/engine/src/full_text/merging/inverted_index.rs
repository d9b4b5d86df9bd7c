//! Norms, terms, postings and positions of a merged segment.

use std::sync::atomic::{AtomicBool, Ordering};

use tantivy::fieldnorm::{FieldNormReader, FieldNormReaders, FieldNormsSerializer};
use tantivy::index::SegmentComponent;
use tantivy::postings::TermInfo;
use tantivy::schema::{Field, IndexRecordOption, Schema};
use tantivy::termdict::TermMerger;
use tantivy::{Segment, TantivyError};

use super::source_segment::SourceSegment;
use super::stored_postings::{Block, StoredPostings};
use crate::full_text::term_files::TermFilesWriter;

/// Terms between two looks at whether the merge is still wanted: a power of two.
const TERMS_BETWEEN_LOOKS: u64 = 1 << 12;

pub struct MergedIndex<'a> {
    pub sources: &'a [SourceSegment],
    pub segment: &'a Segment,
    /// The merge is not wanted any more.
    pub is_stopped: &'a AtomicBool,
}

impl MergedIndex<'_> {
    pub fn write(&self) -> tantivy::Result<()> {
        let schema = self.segment.schema();
        self.write_norms(&schema)?;
        let norms = FieldNormReaders::open(self.segment.open_read(SegmentComponent::FieldNorms)?)?;
        let mut files = TermFilesWriter::open(self.segment)?;
        for (field, entry) in schema.fields().filter(|(_, entry)| entry.is_indexed()) {
            let has_positions =
                entry.field_type().index_record_option() == Some(IndexRecordOption::WithFreqsAndPositions);
            self.write_field(field, has_positions, norms.get_field(field)?, &mut files)?;
        }
        files.close()
    }

    fn write_norms(&self, schema: &Schema) -> tantivy::Result<()> {
        let mut serializer = FieldNormsSerializer::from_write(self.segment.open_write(SegmentComponent::FieldNorms)?)?;
        let mut norms = Vec::new();
        for (field, _) in schema.fields().filter(|(_, entry)| entry.is_indexed() && entry.has_fieldnorms()) {
            norms.clear();
            for source in self.sources {
                // Most fields of a segment have no text: their norms are zeros.
                if source.reader.inverted_index(field)?.terms().num_terms() == 0 {
                    norms.resize(norms.len() + source.reader.num_docs() as usize, 0);
                } else {
                    let of_source = source.reader.get_fieldnorms_reader(field)?;
                    norms.extend(source.documents().map(|document| of_source.fieldnorm_id(document)));
                }
            }
            serializer.serialize_field(field, &norms)?;
        }
        Ok(serializer.close()?)
    }

    fn write_field(
        &self,
        field: Field,
        has_positions: bool,
        norms: Option<FieldNormReader>,
        files: &mut TermFilesWriter,
    ) -> tantivy::Result<()> {
        let mut sources = Vec::new();
        for source in self.sources {
            let stored = StoredPostings::open(source, field, has_positions)?;
            sources.extend(stored.map(|stored| (source, stored)));
        }
        // A field without terms has no part in the files.
        if sources.is_empty() {
            return Ok(());
        }
        let mut tokens = 0;
        for (source, stored) in &sources {
            tokens += token_count(source, stored, field)?;
        }
        let mut streams = Vec::with_capacity(sources.len());
        for (_, stored) in &sources {
            streams.push(stored.inverted.terms().stream()?);
        }
        let mut terms = TermMerger::new(streams);
        let mut writer = files.field(field, tokens, norms)?;
        let (mut block, mut found) = (Block::default(), Vec::new());
        let mut looked = 0u64;
        while terms.advance() {
            looked += 1;
            if looked & (TERMS_BETWEEN_LOOKS - 1) == 0 && self.is_stopped.load(Ordering::Relaxed) {
                return Err(TantivyError::SystemError("the merge was stopped".to_owned()));
            }
            found.clear();
            found.extend(terms.current_segment_ords_and_term_infos());
            let mut count = 0;
            for (at, info) in &found {
                count += document_count(&sources[*at], info, &mut block)?;
            }
            if count == 0 {
                continue;
            }
            writer.begin_term(terms.key(), if has_positions { count } else { 0 }, has_positions)?;
            for (at, info) in &found {
                let (source, stored) = &sources[*at];
                stored.read(info, &mut block, |block| {
                    if !has_positions {
                        let documents = block.documents.iter().filter_map(|document| source.merged(*document));
                        documents.for_each(|document| writer.write_document(document, 0, &[]));
                        return;
                    }
                    let mut steps = &block.steps[..];
                    for (document, frequency) in block.documents.iter().zip(&block.frequencies) {
                        let (of_document, rest) = steps.split_at(*frequency as usize);
                        steps = rest;
                        if let Some(document) = source.merged(*document) {
                            writer.write_document(document, *frequency, of_document);
                        }
                    }
                })?;
            }
            writer.end_term()?;
        }
        Ok(writer.close()?)
    }
}

/// Documents that have the term and have not left.
fn document_count(
    (source, stored): &(&SourceSegment, StoredPostings),
    info: &TermInfo,
    block: &mut Block,
) -> tantivy::Result<u32> {
    if !source.has_left() {
        return Ok(info.doc_freq);
    }
    let mut count = 0;
    stored.read(info, block, |block| {
        count += block.documents.iter().filter(|document| source.merged(**document).is_some()).count() as u32;
    })?;
    Ok(count)
}

/// Tokens of the documents that have not left. Where some have, their number is that of the norms, which are rounded, and
/// without norms in proportion to the documents: scores depend on it.
fn token_count(source: &SourceSegment, stored: &StoredPostings, field: Field) -> tantivy::Result<u64> {
    let all = stored.inverted.total_num_tokens();
    if !source.has_left() {
        return Ok(all);
    }
    if let Some(norms) = source.reader.fieldnorms_readers().get_field(field)? {
        return Ok(source.documents().map(|document| u64::from(norms.fieldnorm(document))).sum());
    }
    let share = f64::from(source.reader.num_docs()) / f64::from(source.reader.max_doc());
    Ok((all as f64 * share) as u64)
}
