//! Conditions on the shape of words: wildcards, regular expressions, misspelt words, addresses.

use std::sync::Arc;

use tantivy::query::{DisjunctionMaxQuery, EmptyQuery, Query};

use crate::error::EngineError;
use crate::full_text::analysis::{SLOP_MAX, lone_character};
use crate::full_text::fields::KEY;
use crate::full_text::plan::Fuzziness;
use crate::full_text::query::compile::clauses::{any_of, term_query};
use crate::full_text::query::compile::index_fields::{ExactField, IndexFields, TextField};
use crate::full_text::query::deadline::Deadline;
use crate::full_text::query::terms::levenshtein::FuzzyWord;
use crate::full_text::query::terms::networks::Network;
use crate::full_text::query::terms::string_columns::ExpandedStringsQuery;
use crate::full_text::query::terms::term_expansion::{ExpandedTermsQuery, TermPrefix, Tokens};
use crate::full_text::query::terms::term_pattern::Pattern;
use crate::full_text::query::words::word_positions::{PhrasePosition, PhraseWord, WordPositionsQuery};
use crate::full_text::slots::tokens_of;

/// Where the tokens and the whole strings of a field lie.
struct FieldForms {
    texts: Vec<TextField>,
    exact: Vec<ExactField>,
}

impl FieldForms {
    fn of(index: &IndexFields, field: Option<&str>) -> Self {
        match field {
            None => Self { texts: index.default_texts(), exact: Vec::new() },
            Some(KEY) => Self { texts: Vec::new(), exact: index.exact_fields(KEY) },
            Some(path) => Self { texts: index.texts_of(path), exact: index.exact_fields(path) },
        }
    }
}

fn prefix_of(text_field: &TextField) -> TermPrefix {
    TermPrefix(text_field.term(""))
}

fn expanded(prefixes: Vec<TermPrefix>, tokens: Tokens, deadline: &Deadline) -> Option<Box<dyn Query>> {
    (!prefixes.is_empty())
        .then(|| Box::new(ExpandedTermsQuery { prefixes, tokens, deadline: deadline.clone() }) as Box<dyn Query>)
}

fn expanded_strings(fields: Vec<ExactField>, tokens: &Tokens, deadline: &Deadline) -> Vec<Box<dyn Query>> {
    let query = |field: ExactField| {
        let (tokens, deadline) = (tokens.clone(), deadline.clone());
        Box::new(ExpandedStringsQuery { field, tokens, deadline }) as Box<dyn Query>
    };
    fields.into_iter().map(query).collect()
}

/// The nearest of the tokens and whole strings counts.
fn nearest_of(texts: Vec<TermPrefix>, exact: Vec<ExactField>, tokens: Tokens, deadline: &Deadline) -> Box<dyn Query> {
    let mut queries = expanded_strings(exact, &tokens, deadline);
    queries.extend(expanded(texts, tokens, deadline));
    if queries.len() > 1 { Box::new(DisjunctionMaxQuery::new(queries)) } else { any_of(queries) }
}

pub fn wildcard_query(
    index: &IndexFields,
    field: Option<&str>,
    pattern: &str,
    deadline: &Deadline,
) -> Result<Box<dyn Query>, EngineError> {
    let folded = Pattern::from_wildcard(&pattern.to_lowercase())?;
    Ok(any_of(pattern_queries(index, field, (folded, Pattern::from_wildcard(pattern)?), deadline)))
}

pub fn regexp_query(
    index: &IndexFields,
    field: Option<&str>,
    pattern: &str,
    deadline: &Deadline,
) -> Result<Box<dyn Query>, EngineError> {
    let folded = Pattern::from_expression_in_any_case(pattern)?;
    let queries = pattern_queries(index, field, (folded, Pattern::from_expression(pattern)?), deadline);
    Ok(if queries.len() > 1 { Box::new(DisjunctionMaxQuery::new(queries)) } else { any_of(queries) })
}

/// Words are in lowercase, so that their case does not matter: they are compared with the folded pattern. Whole strings
/// are compared as they are.
fn pattern_queries(
    index: &IndexFields,
    field: Option<&str>,
    (folded, as_written): (Pattern, Pattern),
    deadline: &Deadline,
) -> Vec<Box<dyn Query>> {
    let FieldForms { texts, exact } = FieldForms::of(index, field);
    let (words, whole): (Vec<TextField>, Vec<TextField>) =
        texts.into_iter().partition(|text_field| text_field.analyzer.folds_case());
    let (folded, as_written) = (Tokens::Pattern(Arc::new(folded)), Tokens::Pattern(Arc::new(as_written)));
    let mut queries: Vec<_> = expanded(words.iter().map(prefix_of).collect(), folded, deadline).into_iter().collect();
    queries.extend(expanded(whole.iter().map(prefix_of).collect(), as_written.clone(), deadline));
    queries.extend(expanded_strings(exact, &as_written, deadline));
    queries
}

/// How near a word has to be.
#[derive(Clone, Copy)]
pub struct FuzzyOptions {
    pub fuzziness: Fuzziness,
    pub prefix_length: usize,
}

/// Tokens near the word in lowercase or near what the field's analyzer makes of it; whole strings near it.
pub fn fuzzy_query(
    index: &IndexFields,
    field: Option<&str>,
    word: &str,
    near: FuzzyOptions,
    deadline: &Deadline,
) -> Box<dyn Query> {
    let forms = FieldForms::of(index, field);
    let mut by_word: Vec<(String, Vec<TermPrefix>)> = Vec::new();
    let mut add = |word: String, prefix: TermPrefix| match by_word.iter_mut().find(|(known, _)| *known == word) {
        Some((_, prefixes)) if prefixes.contains(&prefix) => {}
        Some((_, prefixes)) => prefixes.push(prefix),
        None => by_word.push((word, vec![prefix])),
    };
    for text_field in &forms.texts {
        add(word.to_lowercase(), prefix_of(text_field));
        if let [token] = &tokens_of(text_field.analyzer, word)[..] {
            add(token.text.clone(), prefix_of(text_field));
        }
    }
    if by_word.iter().all(|(known, _)| known != word) {
        by_word.push((word.to_owned(), Vec::new()));
    }
    let mut queries = Vec::new();
    for (near_word, texts) in by_word {
        let exact = if near_word == word { forms.exact.clone() } else { Vec::new() };
        match FuzzyWord::new(&near_word, near.fuzziness, near.prefix_length) {
            Some(near) => queries.push(nearest_of(texts, exact, Tokens::Fuzzy(Arc::new(near)), deadline)),
            None => {
                queries.extend(texts.iter().map(|prefix| term_query(prefix.term(&near_word))));
                queries.extend(exact.iter().map(|field| index.string_query(field, word)));
            }
        }
    }
    any_of(queries)
}

/// The pairs that a character is part of; it means only itself in an expression.
fn pairs_of(text_field: &TextField, character: char, deadline: &Deadline) -> Option<Box<dyn Query>> {
    let pairs = Pattern::from_expression(&format!("{character}.|.{character}")).ok()?;
    expanded(vec![prefix_of(text_field)], Tokens::Pattern(Arc::new(pairs)), deadline)
}

/// One word of a text: the token itself by BM25, and beside it the tokens near any of `words`, which score less.
pub fn near_any_query(
    text_field: &TextField,
    token: &str,
    words: Vec<FuzzyWord>,
    deadline: &Deadline,
) -> Box<dyn Query> {
    if words.is_empty() {
        return near_token_query(
            text_field,
            token,
            FuzzyOptions { fuzziness: Fuzziness::Edits(0), prefix_length: 0 },
            deadline,
        );
    }
    let itself = term_query(text_field.term(token));
    let tokens = Tokens::FuzzyAny(words.into());
    any_of([Some(itself), expanded(vec![prefix_of(text_field)], tokens, deadline)].into_iter().flatten().collect())
}

/// One word of a text: the token itself by BM25, and beside it the tokens near it, which score less.
pub fn near_token_query(
    text_field: &TextField,
    token: &str,
    near: FuzzyOptions,
    deadline: &Deadline,
) -> Box<dyn Query> {
    let itself = term_query(text_field.term(token));
    if let Some(character) = lone_character(text_field.analyzer, token) {
        return any_of([Some(itself), pairs_of(text_field, character, deadline)].into_iter().flatten().collect());
    }
    let Some(near) = FuzzyWord::new(token, near.fuzziness, near.prefix_length) else { return itself };
    let tokens = Tokens::Fuzzy(Arc::new(near));
    any_of([Some(itself), expanded(vec![prefix_of(text_field)], tokens, deadline)].into_iter().flatten().collect())
}

/// The demands of a phrase besides its words.
#[derive(Clone, Copy)]
pub struct PhraseShape {
    pub slop: u32,
    pub near: FuzzyOptions,
}

/// A phrase in one field: the offset and the words of each position.
pub fn positions_query(
    text_field: &TextField,
    positions: Vec<(usize, Vec<String>)>,
    shape: PhraseShape,
    deadline: &Deadline,
) -> Box<dyn Query> {
    let word = |token: &String| PhraseWord {
        term: text_field.term(token),
        near: FuzzyWord::new(token, shape.near.fuzziness, shape.near.prefix_length).map(Arc::new),
    };
    let position =
        |(offset, words): (usize, Vec<String>)| PhrasePosition { offset, words: words.iter().map(word).collect() };
    let positions: Vec<PhrasePosition> = positions.into_iter().map(position).collect();
    if positions.is_empty() || positions.iter().any(|position| position.words.is_empty()) {
        return Box::new(EmptyQuery);
    }
    Box::new(WordPositionsQuery {
        field: text_field.field,
        token_prefix: text_field.token_prefix.clone(),
        positions,
        slop: shape.slop.min(SLOP_MAX),
        deadline: deadline.clone(),
    })
}

/// Tokens as they are in the index, in any of the field's analysed forms.
pub fn terms_phrase_query(
    index: &IndexFields,
    field: Option<&str>,
    terms: &[Vec<String>],
    shape: PhraseShape,
    deadline: &Deadline,
) -> Box<dyn Query> {
    let texts = field.map_or_else(|| index.default_texts(), |path| index.texts_of(path));
    let positions: Vec<(usize, Vec<String>)> = terms.iter().cloned().enumerate().collect();
    any_of(texts.iter().map(|text_field| positions_query(text_field, positions.clone(), shape, deadline)).collect())
}

pub fn ip_range_query(
    index: &IndexFields,
    path: &str,
    cidr: &str,
    deadline: &Deadline,
) -> Result<Box<dyn Query>, EngineError> {
    let network = Tokens::Addresses(Network::parse(cidr)?);
    Ok(any_of(expanded_strings(index.exact_fields(path), &network, deadline)))
}
