//! The peer of our ingest and queries: Tantivy by itself, one typed column for each member, analyzers made of
//! Tantivy's own parts.
//!
//! `bare_tantivy DOCUMENTS.ndjson [QUERIES.ndjson] [--commit-every N]` prints JSON lines. A query line is
//! `{"kind":"or|and|phrase|prefix","field":"body","text":"..."}`.

use std::collections::HashMap;
use std::fs;
use std::time::Instant;

use serde_json::{Value, json};
use tantivy::collector::TopDocs;
use tantivy::query::{BooleanQuery, Occur, PhrasePrefixQuery, PhraseQuery, Query, TermQuery};
use tantivy::schema::{FAST, Field, INDEXED, IndexRecordOption, STRING, Schema, TextFieldIndexing, TextOptions};
use tantivy::tokenizer::{
    Language, LowerCaser, RemoveLongFilter, SimpleTokenizer, Stemmer, StopWordFilter, TextAnalyzer,
};
use tantivy::{Index, IndexWriter, ReloadPolicy, TantivyDocument, Term};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const WRITER_BUDGET_BYTES: usize = 48_000_000;
const QUERY_ROUNDS: usize = 200;

enum Kind {
    Text(Field),
    Keyword(Field),
    Integer(Field),
    Float(Field),
    Boolean(Field),
}

fn analyzer() -> TextAnalyzer {
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

fn compile(query: &Value, schema: &Schema) -> Box<dyn Query> {
    let field = schema.get_field(query["field"].as_str().expect("a field")).expect("a known field");
    let mut terms = Vec::new();
    analyzer().token_stream(query["text"].as_str().expect("a text")).process(&mut |token| {
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
            Box::new(PhrasePrefixQuery::new(vec![Term::from_field_text(field, query["text"].as_str().unwrap_or(""))]))
        }
        _ => Box::new(all(Occur::Should, terms)),
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let commit_every = arguments.iter().position(|argument| argument == "--commit-every");
    let commit_every = commit_every.and_then(|at| arguments.get(at + 1)?.parse::<usize>().ok());
    let lines = fs::read_to_string(&arguments[0]).expect("documents");
    let lines: Vec<&str> = lines.lines().collect();
    let (schema, kinds) = columns(&serde_json::from_str(lines[0]).expect("a JSON document"));
    let directory = std::env::temp_dir().join(format!("bare-tantivy-{}", std::process::id()));
    fs::create_dir_all(&directory).expect("a directory");
    let index = Index::create_in_dir(&directory, schema.clone()).expect("an index");
    index.tokenizers().register("english", analyzer());
    let mut writer: IndexWriter = index.writer_with_num_threads(1, WRITER_BUDGET_BYTES).expect("a writer");
    let key = schema.get_field("_id").expect("a key field");
    let started = Instant::now();
    for (at, line) in lines.iter().enumerate() {
        writer.add_document(document(line, at, key, &kinds)).expect("added");
        if commit_every.is_some_and(|every| (at + 1).is_multiple_of(every)) {
            writer.commit().expect("a commit");
        }
    }
    writer.commit().expect("a commit");
    let seconds = started.elapsed().as_secs_f64();
    writer.wait_merging_threads().expect("merges end");
    let files = fs::read_dir(&directory).expect("the directory");
    let bytes: u64 = files.filter_map(|entry| entry.ok()?.metadata().ok()).map(|metadata| metadata.len()).sum();
    let ingest =
        json!({"docs": lines.len(), "seconds": seconds, "docs_per_s": lines.len() as f64 / seconds, "bytes": bytes});
    println!("{ingest}");
    let reader = index.reader_builder().reload_policy(ReloadPolicy::Manual).try_into().expect("a reader");
    let reader: tantivy::IndexReader = reader;
    let queries = arguments.get(1).filter(|argument| !argument.starts_with("--"));
    let queries = queries.map(|path| fs::read_to_string(path).expect("queries")).unwrap_or_default();
    for line in queries.lines() {
        let query: Value = serde_json::from_str(line).expect("a JSON query");
        let compiled = compile(&query, &schema);
        let searcher = reader.searcher();
        let mut micros: Vec<u128> = (0..QUERY_ROUNDS)
            .map(|_| {
                let started = Instant::now();
                searcher.search(&*compiled, &TopDocs::with_limit(10).order_by_score()).expect("hits");
                started.elapsed().as_micros()
            })
            .collect();
        micros.sort_unstable();
        println!("{}", json!({"query": query, "p50_micros": micros[micros.len() / 2] as u64}));
    }
    let _ = fs::remove_dir_all(&directory);
}
