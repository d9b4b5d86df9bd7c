//! Tantivy by itself: one typed column for each member, analyzers made of Tantivy's own parts.

use std::collections::HashMap;
use std::path::Path;

use serde_json::Value;
use tantivy::query::{BooleanQuery, Occur, PhrasePrefixQuery, PhraseQuery, Query, TermQuery};
use tantivy::schema::{FAST, Field, INDEXED, IndexRecordOption, STRING, Schema, TextFieldIndexing, TextOptions};
use tantivy::tokenizer::{
    Language, LowerCaser, RemoveLongFilter, SimpleTokenizer, Stemmer, StopWordFilter, TextAnalyzer,
};
use tantivy::{Index, IndexReader, IndexWriter, ReloadPolicy, TantivyDocument, Term};

const WRITER_BUDGET_BYTES: usize = 48_000_000;

enum Kind {
    Text(Field),
    Keyword(Field),
    Integer(Field),
    Float(Field),
    Boolean(Field),
}

pub fn analyzer() -> TextAnalyzer {
    TextAnalyzer::builder(SimpleTokenizer::default())
        .filter(RemoveLongFilter::limit(255))
        .filter(LowerCaser)
        .filter(StopWordFilter::new(Language::English).expect("an English list"))
        .filter(Stemmer::new(Language::English))
        .build()
}

/// The columns of the first document's members; strings with a space are text, others keywords.
fn columns(first: &Value) -> (Schema, HashMap<String, Kind>) {
    let mut schema = Schema::builder();
    let indexing = TextFieldIndexing::default()
        .set_tokenizer("english")
        .set_index_option(IndexRecordOption::WithFreqsAndPositions);
    let text = TextOptions::default().set_indexing_options(indexing);
    schema.add_text_field("_id", STRING | FAST);
    let members = first.as_object().into_iter().flatten().map(|(name, value)| {
        let kind = match value {
            Value::String(value) if value.contains(' ') => Kind::Text(schema.add_text_field(name, text.clone())),
            Value::Bool(_) => Kind::Boolean(schema.add_bool_field(name, INDEXED | FAST)),
            Value::Number(number) if number.is_f64() => Kind::Float(schema.add_f64_field(name, INDEXED | FAST)),
            Value::Number(_) => Kind::Integer(schema.add_i64_field(name, INDEXED | FAST)),
            _ => Kind::Keyword(schema.add_text_field(name, STRING | FAST)),
        };
        (name.clone(), kind)
    });
    let kinds = members.collect();
    (schema.build(), kinds)
}

/// Every document has a key, as in any index that is updated.
fn document(line: &str, at: usize, key: Field, kinds: &HashMap<String, Kind>) -> TantivyDocument {
    let value: Value = serde_json::from_str(line).expect("a JSON document");
    let mut document = TantivyDocument::new();
    document.add_text(key, format!("doc{at:08}"));
    for (name, value) in value.as_object().into_iter().flatten() {
        match (kinds.get(name), value) {
            (Some(Kind::Text(field) | Kind::Keyword(field)), Value::String(text)) => document.add_text(*field, text),
            (Some(Kind::Keyword(field)), Value::Array(list)) => {
                list.iter().filter_map(Value::as_str).for_each(|text| document.add_text(*field, text));
            }
            (Some(Kind::Integer(field)), value) => document.add_i64(*field, value.as_i64().unwrap_or(0)),
            (Some(Kind::Float(field)), value) => document.add_f64(*field, value.as_f64().unwrap_or(0.0)),
            (Some(Kind::Boolean(field)), Value::Bool(value)) => document.add_bool(*field, *value),
            _ => {}
        }
    }
    document
}

/// A query line: `{"kind":"or|and|phrase|prefix","field":"body","text":"..."}`.
pub fn compile(query: &Value, schema: &Schema, analyzer: &mut TextAnalyzer) -> Box<dyn Query> {
    let field = schema.get_field(query["field"].as_str().expect("a field")).expect("a known field");
    let mut terms = Vec::new();
    analyzer.token_stream(query["text"].as_str().expect("a text")).process(&mut |token| {
        terms.push(Term::from_field_text(field, &token.text));
    });
    let all = |occur: Occur, terms: Vec<Term>| {
        let clause = |term| (occur, Box::new(TermQuery::new(term, IndexRecordOption::WithFreqs)) as Box<dyn Query>);
        BooleanQuery::new(terms.into_iter().map(clause).collect())
    };
    match query["kind"].as_str() {
        Some("and") => Box::new(all(Occur::Must, terms)),
        Some("phrase") => Box::new(PhraseQuery::new(terms)),
        Some("prefix") => {
            let term = Term::from_field_text(field, query["text"].as_str().unwrap_or(""));
            let mut prefix = PhrasePrefixQuery::new(vec![term]);
            // Otherwise it leaves out all but the first 50 words.
            prefix.set_max_expansions(u32::MAX);
            Box::new(prefix)
        }
        _ => Box::new(all(Occur::Should, terms)),
    }
}

/// Indexes `lines` in `directory`, which must be there, with one indexing thread; committed after every `commit_every`
/// documents and at the end. The writer's merges may still be at work.
pub fn build(directory: &Path, lines: &[&str], commit_every: Option<usize>) -> (Index, IndexWriter) {
    let (schema, kinds) = columns(&serde_json::from_str(lines[0]).expect("a JSON document"));
    let key = schema.get_field("_id").expect("a key field");
    let index = Index::create_in_dir(directory, schema).expect("an index");
    index.tokenizers().register("english", analyzer());
    let mut writer: IndexWriter = index.writer_with_num_threads(1, WRITER_BUDGET_BYTES).expect("a writer");
    for (at, line) in lines.iter().enumerate() {
        writer.add_document(document(line, at, key, &kinds)).expect("added");
        if commit_every.is_some_and(|every| (at + 1).is_multiple_of(every)) {
            writer.commit().expect("a commit");
        }
    }
    writer.commit().expect("a commit");
    (index, writer)
}

pub fn reader(index: &Index) -> IndexReader {
    index.reader_builder().reload_policy(ReloadPolicy::Manual).try_into().expect("a reader")
}
