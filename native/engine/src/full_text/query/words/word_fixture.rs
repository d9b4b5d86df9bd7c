//! A segment in memory and its words, for the tests of what reads postings.

use std::sync::Arc;

use tantivy::directory::RamDirectory;
use tantivy::fieldnorm::FieldNormReader;
use tantivy::postings::TermInfo;
use tantivy::query::Bm25Weight;
use tantivy::schema::IndexRecordOption;
use tantivy::{Index, InvertedIndexReader, Score, SegmentReader, Term};

use crate::full_text::analysis::Analyzer;
use crate::full_text::field_files::FieldFiles;
use crate::full_text::fields::{Fields, build_schema};
use crate::full_text::query::words::block_bounds::{BlockBounds, whole};
use crate::full_text::query::words::skip_data::SkipData;
use crate::full_text::query::words::word_cursor::{BlockAhead, WordCursor};
use crate::full_text::segments::{DocumentHead, SegmentBuilder};
use crate::full_text::text_index::index_settings;

/// A segment of documents that each have one text.
pub fn segment_of(documents: u32, mut text_of: impl FnMut(u32) -> String) -> (SegmentReader, Arc<Fields>) {
    let (schema, fields) = build_schema();
    let fields = Arc::new(fields);
    let index = Index::builder().schema(schema).settings(index_settings());
    let index = index.open_or_create(RamDirectory::create()).expect("an index in memory");
    let mut builder = SegmentBuilder::new(&fields);
    for ordinal in 0..documents {
        let head = DocumentHead { ordinal, sequence: u64::from(ordinal) + 1, ttl_base_ms: 0 };
        builder.begin_document(head, &format!("k{ordinal:06}"));
        builder.add_text(fields.slots[0], Analyzer::Standard, &text_of(ordinal));
    }
    let segment = builder.finish(index.new_segment()).expect("a segment");
    (SegmentReader::open(&segment).expect("a reader"), fields)
}

/// A word of a segment, weighed as if all of as many documents were like it.
pub struct FoundWord {
    pub index: Arc<InvertedIndexReader>,
    pub norms: FieldNormReader,
    pub info: TermInfo,
    pub skips: SkipData,
    pub weight: Bm25Weight,
    pub bounds: Option<BlockBounds>,
}

impl FoundWord {
    pub fn find(reader: &SegmentReader, fields: &Fields, word: &str, average: Score, documents: u64) -> Self {
        let field = fields.slots[0];
        let index = reader.inverted_index(field).expect("terms");
        let term = Term::from_field_text(field, word);
        let info = index.get_term_info(&term).expect("terms").expect("the word");
        let files = FieldFiles::open(reader, field).expect("files");
        let skips = SkipData::open(&files, &info).expect("skip data");
        let norms = reader.get_fieldnorms_reader(field).expect("norms");
        let stored = index.total_num_tokens() as Score / reader.max_doc() as Score;
        let weight = Bm25Weight::for_one_term_without_explain(info.doc_freq.into(), documents, average);
        Self { index, norms, info, skips, weight, bounds: BlockBounds::of(stored, average) }
    }

    pub fn cursor(&self) -> WordCursor<'_> {
        let option = IndexRecordOption::WithFreqs;
        WordCursor {
            place: (0, self.info.postings_range.start),
            blocks: self.index.read_block_postings_from_terminfo(&self.info, option).expect("postings"),
            norms: self.norms.clone(),
            weight: &self.weight,
            most: whole(&self.weight),
            least_norm: 1,
            greatest_norm: FieldNormReader::fieldnorm_to_id(70),
            bounds: self.bounds.clone(),
            skips: &self.skips,
            ahead: BlockAhead::NONE,
        }
    }
}
