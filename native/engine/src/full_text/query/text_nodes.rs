//! Conditions on analysed text.

use std::collections::{BTreeMap, HashSet};

use tantivy::Term;
use tantivy::query::{BooleanQuery, BoostQuery, EmptyQuery, Occur, PhraseQuery, Query};
use tantivy::tokenizer::Token;

use super::fields_of_path::{IndexFields, TextField};
use super::plan::{Operator, WeightedField};
use super::term_range::TermRangeQuery;
use super::value_nodes::{any_of, term_query};
use crate::full_text::analysis::Analyzer;
use crate::full_text::mapping::{INDEX_PREFIX, THREE_GRAM, TWO_GRAM};
use crate::full_text::slots::tokens_of;

/// Words that `_index_prefix` joins.
const PREFIX_WORDS_MAX: usize = 3;

fn analyzed(text_field: &TextField, analyzer: Option<Analyzer>, text: &str) -> Vec<Token> {
    tokens_of(analyzer.unwrap_or(text_field.analyzer), text)
}

/// Words of `text` in the given fields: any of them, or each of them in some field.
pub fn match_query(texts: &[TextField], text: &str, operator: Operator, analyzer: Option<Analyzer>) -> Box<dyn Query> {
    match operator {
        Operator::Or => match_any(texts, text, analyzer),
        Operator::And => match_every(texts, text, analyzer),
    }
}

fn match_any(texts: &[TextField], text: &str, analyzer: Option<Analyzer>) -> Box<dyn Query> {
    let mut seen = HashSet::new();
    let mut queries = Vec::new();
    for text_field in texts {
        for token in analyzed(text_field, analyzer, text) {
            let term = text_field.term(&token.text);
            if seen.insert(term.clone()) {
                queries.push(term_query(term));
            }
        }
    }
    any_of(queries)
}

/// A word is known by where it begins in the query's text. A word that one of the analyzers drops (a stop word of its
/// language) is asked of no field, so that fields of several languages can be searched together.
fn match_every(texts: &[TextField], text: &str, analyzer: Option<Analyzer>) -> Box<dyn Query> {
    let mut words: BTreeMap<usize, (usize, Vec<Term>)> = BTreeMap::new();
    for text_field in texts {
        let mut starts = HashSet::new();
        for token in analyzed(text_field, analyzer, text) {
            let (fields, terms) = words.entry(token.offset_from).or_default();
            if starts.insert(token.offset_from) {
                *fields += 1;
            }
            let term = text_field.term(&token.text);
            if !terms.contains(&term) {
                terms.push(term);
            }
        }
    }
    let asked_of_all = words.values().any(|(fields, _)| *fields == texts.len());
    let mut required: Vec<Box<dyn Query>> = Vec::new();
    let mut seen = HashSet::new();
    for (fields, terms) in words.into_values() {
        if (fields == texts.len() || !asked_of_all) && seen.insert(terms.clone()) {
            required.push(any_of(terms.into_iter().map(term_query).collect()));
        }
    }
    match required.len() {
        0 => Box::new(EmptyQuery),
        1 => required.remove(0),
        _ => Box::new(BooleanQuery::intersection(required)),
    }
}

/// The words of `text` one after another in one of the fields; `slop` moves are allowed.
pub fn phrase_query(texts: &[TextField], text: &str, slop: u32, analyzer: Option<Analyzer>) -> Box<dyn Query> {
    let queries = texts.iter().filter_map(|text_field| {
        let terms: Vec<(usize, Term)> = analyzed(text_field, analyzer, text)
            .into_iter()
            .map(|token| (token.position, text_field.term(&token.text)))
            .collect();
        match terms.len() {
            0 => None,
            1 => terms.into_iter().next().map(|(_, term)| term_query(term)),
            _ => Some(Box::new(PhraseQuery::new_with_offset_and_slop(terms, slop)) as Box<dyn Query>),
        }
    });
    any_of(queries.collect())
}

/// Tokens that begin with `prefix` in its lowercase form.
pub fn prefix_query(texts: &[TextField], prefix: &str) -> Vec<Box<dyn Query>> {
    let lowercase = prefix.to_lowercase();
    texts.iter().map(|text_field| prefix_of(text_field, &lowercase)).collect()
}

fn prefix_of(text_field: &TextField, prefix: &str) -> Box<dyn Query> {
    Box::new(TermRangeQuery::with_prefix(&text_field.term(prefix)))
}

/// Any word, the last one as the beginning of a word, in any of the fields; scores add up.
pub fn bool_prefix_query(index: &IndexFields, fields: &[WeightedField], text: &str) -> Box<dyn Query> {
    let words = tokens_of(Analyzer::SearchAsYouType, text);
    let Some(last) = words.last() else { return Box::new(EmptyQuery) };
    let mut clauses: Vec<(Occur, Box<dyn Query>)> = Vec::new();
    for weighted in fields {
        let mut queries = Vec::new();
        for text_field in index.texts_of(&weighted.field) {
            queries.extend(word_clauses(&text_field, text, &last.text));
        }
        for (suffix, size) in [(TWO_GRAM, 2), (THREE_GRAM, 3)] {
            for text_field in index.texts_of(&format!("{}{suffix}", weighted.field)) {
                queries.extend(shingle_clauses(&text_field, &words, size));
            }
        }
        for text_field in index.texts_of(&format!("{}{INDEX_PREFIX}", weighted.field)) {
            let from = words.len().saturating_sub(PREFIX_WORDS_MAX);
            queries.push(term_query(text_field.term(&joined(&words[from..]))));
        }
        if queries.is_empty() {
            for path in index.exact_paths(&weighted.field) {
                queries.push(Box::new(TermRangeQuery::with_prefix(&index.string_term(&path, text))));
            }
        }
        let scored = any_of(queries);
        clauses.push((Occur::Should, Box::new(BoostQuery::new(scored, weighted.boost))));
    }
    Box::new(BooleanQuery::new(clauses))
}

fn word_clauses(text_field: &TextField, text: &str, last_word: &str) -> Vec<Box<dyn Query>> {
    let mut queries: Vec<Box<dyn Query>> = Vec::new();
    let mut seen = HashSet::new();
    for token in tokens_of(text_field.analyzer, text) {
        let term = text_field.term(&token.text);
        if seen.insert(term.clone()) {
            queries.push(term_query(term));
        }
    }
    queries.push(prefix_of(text_field, last_word));
    queries
}

fn shingle_clauses(text_field: &TextField, words: &[Token], size: usize) -> Vec<Box<dyn Query>> {
    let windows = words.windows(size).count();
    let shingles = words.windows(size).enumerate();
    shingles
        .map(|(at, window)| {
            let shingle = joined(window);
            if at + 1 == windows { prefix_of(text_field, &shingle) } else { term_query(text_field.term(&shingle)) }
        })
        .collect()
}

fn joined(words: &[Token]) -> String {
    let texts: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
    texts.join(" ")
}
