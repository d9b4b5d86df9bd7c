//! Conditions on the shape of words: wildcards, regular expressions, misspelt words, addresses.

use std::sync::Arc;

use tantivy::query::{DisjunctionMaxQuery, EmptyQuery, Query};

use super::addresses::Network;
use super::fields_of_path::{ExactPlace, IndexFields, TextField};
use super::near_words::NearWord;
use super::plan::Fuzziness;
use super::stop::Stop;
use super::string_columns::ExpandedStringsQuery;
use super::term_expansion::{ExpandedTermsQuery, TermPlace, Tokens};
use super::term_pattern::Pattern;
use super::value_nodes::{any_of, term_query};
use super::word_positions::{PhrasePosition, PhraseWord, WordPositionsQuery};
use crate::error::EngineError;
use crate::full_text::analysis::lone_character;
use crate::full_text::fields::KEY;
use crate::full_text::slots::tokens_of;

/// Where the tokens and the whole strings of a field lie.
struct Places {
    texts: Vec<TextField>,
    exact: Vec<ExactPlace>,
}

impl Places {
    fn of(index: &IndexFields, field: Option<&str>) -> Self {
        match field {
            None => Self { texts: index.default_texts(), exact: Vec::new() },
            Some(KEY) => Self { texts: Vec::new(), exact: index.exact_places(KEY) },
            Some(path) => Self { texts: index.texts_of(path), exact: index.exact_places(path) },
        }
    }

    fn tokens(&self) -> Vec<TermPlace> {
        self.texts.iter().map(place_of).collect()
    }
}

fn place_of(text_field: &TextField) -> TermPlace {
    TermPlace(text_field.term(""))
}

fn expanded(places: Vec<TermPlace>, tokens: Tokens, stop: &Stop) -> Option<Box<dyn Query>> {
    (!places.is_empty()).then(|| Box::new(ExpandedTermsQuery { places, tokens, stop: stop.clone() }) as Box<dyn Query>)
}

fn expanded_strings(places: Vec<ExactPlace>, tokens: &Tokens, stop: &Stop) -> Vec<Box<dyn Query>> {
    let query = |place: ExactPlace| {
        let (tokens, stop) = (tokens.clone(), stop.clone());
        Box::new(ExpandedStringsQuery { column: place.column, tokens, stop }) as Box<dyn Query>
    };
    places.into_iter().map(query).collect()
}

/// The nearest of the tokens and whole strings counts.
fn nearest_of(texts: Vec<TermPlace>, exact: Vec<ExactPlace>, tokens: Tokens, stop: &Stop) -> Box<dyn Query> {
    let mut queries = expanded_strings(exact, &tokens, stop);
    queries.extend(expanded(texts, tokens, stop));
    if queries.len() > 1 { Box::new(DisjunctionMaxQuery::new(queries)) } else { any_of(queries) }
}

/// Tokens are in lowercase, so the pattern is put in lowercase for them; whole strings are compared as they are.
pub fn wildcard_query(
    index: &IndexFields,
    field: Option<&str>,
    pattern: &str,
    stop: &Stop,
) -> Result<Box<dyn Query>, EngineError> {
    let places = Places::of(index, field);
    let of_tokens = Tokens::Pattern(Arc::new(Pattern::from_wildcard(&pattern.to_lowercase())?));
    let of_strings = Tokens::Pattern(Arc::new(Pattern::from_wildcard(pattern)?));
    let mut queries: Vec<_> = expanded(places.tokens(), of_tokens, stop).into_iter().collect();
    queries.extend(expanded_strings(places.exact, &of_strings, stop));
    Ok(any_of(queries))
}

pub fn regexp_query(
    index: &IndexFields,
    field: Option<&str>,
    pattern: &str,
    stop: &Stop,
) -> Result<Box<dyn Query>, EngineError> {
    let places = Places::of(index, field);
    let tokens = Tokens::Pattern(Arc::new(Pattern::from_expression(pattern)?));
    Ok(nearest_of(places.tokens(), places.exact, tokens, stop))
}

/// How near a word has to be.
#[derive(Clone, Copy)]
pub struct Nearness {
    pub fuzziness: Fuzziness,
    pub prefix_length: usize,
}

/// Tokens near the word in lowercase or near what the field's analyzer makes of it; whole strings near it.
pub fn fuzzy_query(
    index: &IndexFields,
    field: Option<&str>,
    word: &str,
    near: Nearness,
    stop: &Stop,
) -> Box<dyn Query> {
    let places = Places::of(index, field);
    let mut by_word: Vec<(String, Vec<TermPlace>)> = Vec::new();
    let mut add = |word: String, place: TermPlace| match by_word.iter_mut().find(|(known, _)| *known == word) {
        Some((_, places)) if places.contains(&place) => {}
        Some((_, places)) => places.push(place),
        None => by_word.push((word, vec![place])),
    };
    for text_field in &places.texts {
        add(word.to_lowercase(), place_of(text_field));
        if let [token] = &tokens_of(text_field.analyzer, word)[..] {
            add(token.text.clone(), place_of(text_field));
        }
    }
    if by_word.iter().all(|(known, _)| known != word) {
        by_word.push((word.to_owned(), Vec::new()));
    }
    let mut queries = Vec::new();
    for (near_word, texts) in by_word {
        let exact = if near_word == word { places.exact.clone() } else { Vec::new() };
        match NearWord::new(&near_word, near.fuzziness, near.prefix_length) {
            Some(near) => queries.push(nearest_of(texts, exact, Tokens::Near(Arc::new(near)), stop)),
            None => {
                queries.extend(texts.iter().map(|place| term_query(place.term(&near_word))));
                queries.extend(exact.iter().map(|place| index.string_query(place, word)));
            }
        }
    }
    any_of(queries)
}

/// The pairs that a character is part of; it means only itself in an expression.
fn pairs_of(text_field: &TextField, character: char, stop: &Stop) -> Option<Box<dyn Query>> {
    let pairs = Pattern::from_expression(&format!("{character}.|.{character}")).ok()?;
    expanded(vec![place_of(text_field)], Tokens::Pattern(Arc::new(pairs)), stop)
}

/// One word of a text: the token itself by BM25, and beside it the tokens near any of `words`, which score less.
pub fn near_any_query(text_field: &TextField, token: &str, words: Vec<NearWord>, stop: &Stop) -> Box<dyn Query> {
    if words.is_empty() {
        return near_token_query(
            text_field,
            token,
            Nearness { fuzziness: Fuzziness::Edits(0), prefix_length: 0 },
            stop,
        );
    }
    let itself = term_query(text_field.term(token));
    let tokens = Tokens::NearAny(words.into());
    any_of([Some(itself), expanded(vec![place_of(text_field)], tokens, stop)].into_iter().flatten().collect())
}

/// One word of a text: the token itself by BM25, and beside it the tokens near it, which score less.
pub fn near_token_query(text_field: &TextField, token: &str, near: Nearness, stop: &Stop) -> Box<dyn Query> {
    let itself = term_query(text_field.term(token));
    if let Some(character) = lone_character(text_field.analyzer, token) {
        return any_of([Some(itself), pairs_of(text_field, character, stop)].into_iter().flatten().collect());
    }
    let Some(near) = NearWord::new(token, near.fuzziness, near.prefix_length) else { return itself };
    let tokens = Tokens::Near(Arc::new(near));
    any_of([Some(itself), expanded(vec![place_of(text_field)], tokens, stop)].into_iter().flatten().collect())
}

/// What a phrase asks for besides its words.
#[derive(Clone, Copy)]
pub struct PhraseShape {
    pub slop: u32,
    pub near: Nearness,
}

/// A phrase in one field: the offset and the words of each position.
pub fn positions_query(
    text_field: &TextField,
    positions: Vec<(usize, Vec<String>)>,
    shape: PhraseShape,
    stop: &Stop,
) -> Box<dyn Query> {
    let word = |token: &String| PhraseWord {
        term: text_field.term(token),
        near: NearWord::new(token, shape.near.fuzziness, shape.near.prefix_length).map(Arc::new),
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
        slop: shape.slop,
        stop: stop.clone(),
    })
}

/// Tokens as they are in the index, in any of the field's analysed forms.
pub fn terms_phrase_query(
    index: &IndexFields,
    field: Option<&str>,
    terms: &[Vec<String>],
    shape: PhraseShape,
    stop: &Stop,
) -> Box<dyn Query> {
    let texts = field.map_or_else(|| index.default_texts(), |path| index.texts_of(path));
    let positions: Vec<(usize, Vec<String>)> = terms.iter().cloned().enumerate().collect();
    any_of(texts.iter().map(|text_field| positions_query(text_field, positions.clone(), shape, stop)).collect())
}

pub fn ip_range_query(index: &IndexFields, path: &str, cidr: &str, stop: &Stop) -> Result<Box<dyn Query>, EngineError> {
    let network = Tokens::Addresses(Network::parse(cidr)?);
    Ok(any_of(expanded_strings(index.exact_places(path), &network, stop)))
}
