//! Gathers documents until they are written as one segment.

use std::collections::HashMap;
use std::sync::Arc;

use tantivy::Segment;
use tantivy::index::SegmentComponent;
use tantivy::schema::Field;
use tantivy::store::StoreWriter;
use tantivy::tokenizer::TokenStream;

use super::columns::write_columns;
use super::inverted_index::{IndexedField, InvertedIndex};
use super::known_words::KnownWords;
use super::token_log::{TOKEN_NUMBERS_MAX, TokenLog};
use super::value_log::{DocumentHead, ValueLog};
use super::value_terms::terms_of;
use super::vocabulary::Vocabulary;
use crate::full_text::analysis::{Analyzer, GAP_BETWEEN_TEXTS, TokenSpacing};
use crate::full_text::fields::Fields;

pub struct SegmentBuilder {
    fields: Arc<Fields>,
    /// All values of the documents but their words, those of the current document included.
    pub values: ValueLog,
    /// The document that is being read.
    current: u32,
    /// Tokens of all texts.
    words: Vocabulary,
    known: Vec<KnownWords>,
    slots: Vec<TokenLog>,
    overflow: TokenLog,
    /// Of the current document: for each prefix in the overflow field, where its next text begins.
    overflow_positions: HashMap<String, u32>,
    token: Vec<u8>,
}

impl SegmentBuilder {
    pub fn new(fields: &Arc<Fields>) -> Self {
        Self {
            fields: Arc::clone(fields),
            values: ValueLog::default(),
            current: 0,
            words: Vocabulary::default(),
            known: Vec::new(),
            slots: Vec::new(),
            overflow: TokenLog::default(),
            overflow_positions: HashMap::new(),
            token: Vec::new(),
        }
    }

    pub fn document_count(&self) -> u32 {
        self.values.len()
    }

    /// Whether the segment ought to be written before more comes.
    pub fn is_full(&self, budget_bytes: usize) -> bool {
        let logs = self.slots.iter().chain([&self.overflow]).map(TokenLog::memory_bytes).sum::<usize>();
        let known = self.known.iter().map(KnownWords::memory_bytes).sum::<usize>();
        let bytes = logs + known + self.words.memory_bytes() + self.values.memory_bytes();
        let words = self.known.iter().map(KnownWords::len).fold(self.words.len(), usize::max);
        bytes >= budget_bytes || words >= TOKEN_NUMBERS_MAX / 2
    }

    /// Values and texts that come after this belong to this document, whose number is returned.
    pub fn begin_document(&mut self, head: DocumentHead, key: &str) -> u32 {
        self.overflow_positions.clear();
        self.current = self.values.len();
        self.values.begin_document(head, key);
        self.current
    }

    /// The current document is left out, with all that was read of it.
    pub fn forget_document(&mut self) {
        self.values.forget_document();
        self.slots.iter_mut().chain([&mut self.overflow]).for_each(|log| log.forget(self.current));
    }

    /// The tokens of a text for a slot's field.
    pub fn add_text(&mut self, slot: Field, analyzer: Analyzer, text: &str) {
        let Some(slot) = self.fields.slot_of(slot) else { return };
        if slot >= self.slots.len() {
            self.slots.resize_with(slot + 1, TokenLog::default);
        }
        let (log, words) = (&mut self.slots[slot], &mut self.words);
        log.begin_text(self.current);
        let Some((language, mut stream)) = analyzer.words_before_stems(text) else {
            return analyzer.token_stream(text).process(&mut |token| {
                log.push(words.number_of(token.text.as_bytes()), token.position as u32);
            });
        };
        let at = self.known.iter().position(|known| known.language == language).unwrap_or(self.known.len());
        if at == self.known.len() {
            self.known.push(KnownWords::new(language));
        }
        let known = &mut self.known[at];
        while let Some((text, word, position)) = stream.next_plain() {
            if let Some(number) = known.token_of(text, word, words) {
                log.push(number, position as u32);
            }
        }
    }

    /// The tokens of a text for the overflow field, each behind a prefix. Positions count for each prefix by itself.
    pub fn add_overflow(&mut self, prefix: &str, analyzer: Analyzer, text: &str) {
        let Self { overflow, words, token: buffer, .. } = self;
        overflow.begin_document(self.current);
        let begin = self.overflow_positions.get(prefix).copied().unwrap_or(0);
        let mut next = begin;
        let mut spacing = TokenSpacing::default();
        analyzer.token_stream(text).process(&mut |token| {
            let position = begin + spacing.place(token.position as u32);
            buffer.clear();
            buffer.extend_from_slice(prefix.as_bytes());
            buffer.extend_from_slice(token.text.as_bytes());
            overflow.push_at(words.number_of(buffer), position);
            next = position + 1;
        });
        self.overflow_positions.insert(prefix.to_owned(), next + GAP_BETWEEN_TEXTS);
    }

    /// Writes the files of the segment.
    pub fn finish(self, segment: Segment) -> tantivy::Result<Segment> {
        let Self { fields, values, words, slots, overflow, .. } = self;
        let segment = segment.with_max_doc(values.len());
        let (term_texts, terms) = terms_of(&values);
        let texts = [(fields.overflow, overflow)].into_iter().chain(fields.slots.iter().copied().zip(slots));
        let inverted = InvertedIndex {
            documents: values.len(),
            terms: IndexedField { field: fields.terms, log: terms },
            term_texts,
            texts: texts.map(|(field, log)| IndexedField { field, log }).collect(),
            words,
        };
        inverted.write(&segment)?;
        write_columns(&values, &segment)?;
        write_empty_store(&segment)?;
        segment.meta().untrack_temp_docstore();
        Ok(segment)
    }
}

/// Writes a store without documents: Tantivy opens the store of every segment, and nothing is ever read from it.
pub fn write_empty_store(segment: &Segment) -> tantivy::Result<()> {
    let settings = segment.index().settings();
    let file = segment.open_write(SegmentComponent::Store)?;
    Ok(StoreWriter::new(file, settings.docstore_compression, settings.docstore_blocksize, false)?.close()?)
}
