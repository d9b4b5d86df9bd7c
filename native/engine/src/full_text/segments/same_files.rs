//! Every file of a segment that was built here beside the one that Tantivy's own writer makes of the same tokens and values,
//! but for the store: ours has no documents. Dictionaries of small segments are compared by what is read from them.

use std::collections::BTreeMap;
use std::sync::Arc;

use tantivy::directory::{CompositeFile, RamDirectory};
use tantivy::index::SegmentComponent;
use tantivy::indexer::{AddOperation, SegmentWriter};
use tantivy::postings::TermInfo;
use tantivy::schema::{Field, OwnedValue, Schema};
use tantivy::termdict::TermDictionary;
use tantivy::tokenizer::{PreTokenizedString, RawTokenizer, Token};
use tantivy::{DateTime, Index, Segment, TantivyDocument};

use super::value_log::{Scalar, Span};
use super::{DocumentHead, SegmentBuilder, as_integer};
use crate::full_text::analysis::{Analyzer, GAP_BETWEEN_TEXTS};
use crate::full_text::fields::{
    Fields, KEY, KEY_PATH, LONG_STRING_PATH, ORDINAL, ORDINAL_PATH, PRESENT_PATH, SEQUENCE, TTL_BASE, build_schema,
    long_string_term,
};
use crate::full_text::random::Random;
use crate::full_text::slots::tokens_of;
use crate::full_text::term_files::BLOCK_DOCS;
use crate::full_text::text_index::index_settings;

const ANALYZERS: [&str; 9] = [
    "standard",
    "simple",
    "keyword",
    "html",
    "german",
    "finnish",
    "search_as_you_type",
    "search_as_you_type_2gram",
    "search_as_you_type_index_prefix",
];
const WORDS: &str = "the a running runs runner don't 3.14 Bücher naïve soup Soup 東京都 x of internationalisations _ \
                     <b>bold</b> überraschungen I\u{2019}m b2b";
const PATHS: [&str; 7] = ["title", "a.b", "a.b.c", "a", "ü.x", "n", "long"];

impl Random {
    fn text(&mut self) -> String {
        let mut words: Vec<String> = (0..self.below(40)).map(|_| self.word()).collect();
        if self.below(40) == 0 {
            words.splice(0..0, vec!["the".to_owned(); 300]);
        }
        words.join(" ")
    }

    fn word(&mut self) -> String {
        if self.below(3) == 0 {
            return format!("w{}", self.below(3_000));
        }
        let words: Vec<&str> = WORDS.split(' ').collect();
        words[self.below(words.len())].to_owned()
    }
}

fn index() -> Index {
    let index = Index::builder().schema(build_schema().0).settings(index_settings());
    let index = index.open_or_create(RamDirectory::create()).expect("an index in memory");
    index.tokenizers().register("analyzed", RawTokenizer::default());
    index
}

/// The tokens of one field of one document, positions as they are to be.
fn tokens(tokens: Vec<(String, usize)>) -> PreTokenizedString {
    let tokens = tokens.into_iter().map(|(text, position)| Token { text, position, ..Token::default() }).collect();
    PreTokenizedString { text: String::new(), tokens }
}

/// The tokens of one document.
#[derive(Default)]
struct Texts {
    found: BTreeMap<Field, Vec<(String, usize)>>,
    /// Where the next text begins, for each field and prefix.
    next: BTreeMap<(Field, String), usize>,
}

impl Texts {
    fn add(&mut self, (field, prefix): (Field, String), analyzer: Analyzer, text: &str) {
        let (found, of_text) = (self.found.entry(field).or_default(), tokens_of(analyzer, text));
        let next = self.next.entry((field, prefix.clone())).or_default();
        let end = *next + of_text.last().map_or(0, |last| last.position + 1);
        found.extend(of_text.into_iter().map(|token| (format!("{prefix}{}", token.text), *next + token.position)));
        *next = end + GAP_BETWEEN_TEXTS as usize;
    }
}

/// Gives both the same documents.
struct Both<'f> {
    schema: Schema,
    fields: &'f Arc<Fields>,
    ours: SegmentBuilder,
    theirs: SegmentWriter,
    random: Random,
}

impl Both<'_> {
    fn add(&mut self, ordinal: u32) {
        let mut document = TantivyDocument::new();
        let key = format!("key{}", "long".repeat(self.random.below(4))) + &ordinal.to_string();
        let head = DocumentHead { ordinal, sequence: u64::from(ordinal) * 3 + 1, ttl_base_ms: i64::from(ordinal % 7) };
        self.ours.begin_document(head, &key);
        let field = |name: &str| self.schema.get_field(name).expect("a field of the schema");
        document.add_u64(field(ORDINAL), u64::from(ordinal));
        document.add_u64(field(SEQUENCE), head.sequence);
        document.add_i64(field(TTL_BASE), head.ttl_base_ms);
        document.add_text(field(KEY), &key);
        self.add_texts(&mut document);
        self.add_values(&mut document, i64::from(ordinal), &key);
        self.theirs.add_document(AddOperation { opstamp: 0, document }).expect("a document is added");
    }

    fn add_texts(&mut self, document: &mut TantivyDocument) {
        let mut texts = Texts::default();
        for _ in 0..self.random.below(5) {
            let analyzer = Analyzer::named(ANALYZERS[self.random.below(ANALYZERS.len())]).expect("an analyzer");
            let (slot, text) = (self.fields.slots[self.random.below(70) % 9], self.random.text());
            self.ours.add_text(slot, analyzer, &text);
            texts.add((slot, String::new()), analyzer, &text);
        }
        for _ in 0..self.random.below(4) {
            let (prefix, text) = (format!("path{}\0", self.random.below(2)), self.random.text());
            self.ours.add_overflow(&prefix, Analyzer::Standard, &text);
            texts.add((self.fields.overflow, prefix), Analyzer::Standard, &text);
        }
        for (field, found) in texts.found {
            document.add_pre_tokenized_text(field, tokens(found));
        }
    }

    fn add_values(&mut self, document: &mut TantivyDocument, ordinal: i64, key: &str) {
        let (mut values, mut terms) = (Vec::new(), vec![(ORDINAL_PATH.to_owned(), OwnedValue::I64(ordinal))]);
        terms.push(string_term(KEY_PATH, key));
        for _ in 0..self.random.below(9) {
            let path: Arc<str> = Arc::from(PATHS[self.random.below(PATHS.len())]);
            let number = self.random.below(50) as i64 - 25;
            let text = "some string of letters"[..self.random.below(22)].to_owned();
            let float = number as f64 / 2.0;
            let date = DateTime::from_timestamp_millis(number * 1_234_567);
            let (scalar, value, term) = match self.random.below(7) {
                0 => (Scalar::Integer(number), Some(OwnedValue::I64(number)), Some(OwnedValue::I64(number))),
                1 => (Scalar::Float(float), Some(OwnedValue::F64(float)), as_integer(float).map(OwnedValue::I64)),
                2 => {
                    let boolean = OwnedValue::Bool(number > 0);
                    (Scalar::Boolean(number > 0), Some(boolean.clone()), Some(boolean))
                }
                3 => (Scalar::Date(date), Some(OwnedValue::Date(date)), None),
                4 => (Scalar::ColumnOnly(self.ours.values.keep(&text)), Some(OwnedValue::Str(text)), None),
                5 => {
                    terms.push(string_term(&path, &text));
                    (Scalar::Text(self.ours.values.keep(&text)), Some(OwnedValue::Str(text)), None)
                }
                _ => {
                    terms.push((PRESENT_PATH.to_owned(), OwnedValue::Str(path.to_string())));
                    (Scalar::Present, None, None)
                }
            };
            self.ours.values.push(&path, scalar);
            values.extend(value.map(|value| (path.to_string(), value)));
            terms.extend(term.map(|term| (path.to_string(), term)));
        }
        document.add_field_value(self.fields.values, &OwnedValue::Object(values));
        document.add_field_value(self.fields.terms, &OwnedValue::Object(terms));
    }

    /// What a document that is left out has had so far leaves nothing.
    fn add_and_forget(&mut self) {
        let head = DocumentHead { ordinal: 9_999_999, sequence: 1, ttl_base_ms: 0 };
        self.ours.begin_document(head, "left out");
        let text = self.random.text();
        self.ours.add_text(self.fields.slots[self.random.below(12)], Analyzer::Standard, &text);
        self.ours.add_overflow("left out\0", Analyzer::Standard, &text);
        let span: Span = self.ours.values.keep(&text);
        self.ours.values.push(&Arc::from("left.out"), Scalar::Text(span));
        self.ours.forget_document();
    }
}

fn string_term(path: &str, text: &str) -> (String, OwnedValue) {
    match long_string_term(path, text) {
        Some(number) => (LONG_STRING_PATH.to_owned(), OwnedValue::I64(number)),
        None => (path.to_owned(), OwnedValue::Str(text.to_owned())),
    }
}

fn file_of(segment: &Segment, component: SegmentComponent) -> Vec<u8> {
    let file = segment.open_read(component).expect("the file");
    file.read_bytes().expect("its bytes").as_slice().to_vec()
}

/// All terms with where their postings are, read in order and looked up one by one.
fn terms_of(segment: &Segment) -> Vec<(Field, Vec<u8>, TermInfo)> {
    let file = CompositeFile::open(&segment.open_read(SegmentComponent::Terms).expect("the file")).expect("its fields");
    let mut terms = Vec::new();
    for (field, _) in segment.schema().fields() {
        let Some(of_field) = file.open_read(field) else { continue };
        let dictionary = TermDictionary::open(of_field).expect("a dictionary");
        let mut stream = dictionary.stream().expect("its terms");
        while stream.advance() {
            assert_eq!(dictionary.get(stream.key()).expect("a lookup").as_ref(), Some(stream.value()));
            terms.push((field, stream.key().to_vec(), stream.value().clone()));
        }
    }
    terms
}

fn compare(documents: u32, seed: u64) {
    println!("seed {seed}");
    let (schema, fields) = build_schema();
    let fields = Arc::new(fields);
    let (our_index, their_index) = (index(), index());
    let their_segment = their_index.new_segment();
    let theirs = SegmentWriter::for_segment(15_000_000, their_segment.clone()).expect("a writer");
    let mut both = Both { schema, fields: &fields, ours: SegmentBuilder::new(&fields), theirs, random: Random(seed) };
    for number in 0..documents {
        if both.random.below(5) == 0 {
            both.add_and_forget();
        }
        // Ordinals in another order than documents.
        both.add(number ^ 1);
    }
    both.theirs.finalize().expect("their segment");
    let ours = both.ours.finish(our_index.new_segment()).expect("our segment");
    assert_eq!(ours.meta().max_doc(), documents);
    assert_eq!(terms_of(&ours), terms_of(&their_segment));
    for component in [
        SegmentComponent::FieldNorms,
        SegmentComponent::Terms,
        SegmentComponent::Postings,
        SegmentComponent::Positions,
        SegmentComponent::FastFields,
    ] {
        if component == SegmentComponent::Terms && documents < BLOCK_DOCS {
            continue;
        }
        let (our_file, their_file) = (file_of(&ours, component.clone()), file_of(&their_segment, component.clone()));
        assert!(our_file == their_file, "{component:?}: {} and {} bytes", our_file.len(), their_file.len());
    }
}

#[test]
fn a_segment_has_the_bytes_that_tantivy_writes() {
    for (documents, seed) in [(1, 1), (2, 2), (40, 6), (127, 3), (128, 4), (1_500, 5)] {
        compare(documents, seed);
    }
}
