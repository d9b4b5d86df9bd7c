//! Conditions on analysed text.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use tantivy::query::{BoostQuery, EmptyQuery, Query};
use tantivy::tokenizer::Token;

use crate::error::EngineError;
use crate::full_text::analysis::{Analyzer, TokenSpacing};
use crate::full_text::mapping::{INDEX_PREFIX, THREE_GRAM, TWO_GRAM};
use crate::full_text::plan::{ALL_FIELDS, Automatic, Fuzziness, Operator, WeightedField};
use crate::full_text::query::boolean::bool_query::BoolQuery;
use crate::full_text::query::compile::clauses::{any_of, term_query};
use crate::full_text::query::compile::context::CompileContext;
use crate::full_text::query::compile::index_fields::{IndexFields, TextField};
use crate::full_text::query::compile::word_nodes::{
    FuzzyOptions, PhraseShape, near_any_query, near_token_query, positions_query,
};
use crate::full_text::query::terms::constant_score_union::BitsOfSegment;
use crate::full_text::query::terms::levenshtein::fuzzy_words;
use crate::full_text::query::terms::string_columns::StringRangeQuery;
use crate::full_text::query::terms::term_range::TermRangeQuery;
use crate::full_text::query::terms::typo_terms::TypoQuery;
use crate::full_text::query::words::exact_phrase::ExactPhraseQuery;
use crate::full_text::slots::tokens_of;

/// Words that `_index_prefix` joins.
const PREFIX_WORDS_MAX: usize = 3;

/// Words of one match or phrase that may be fuzzy: each is a walk of the term dictionary.
const FUZZY_WORDS_MAX: usize = 64;

/// The text that a node asks for, and how.
#[derive(Clone, Copy)]
pub struct Words<'a> {
    pub context: &'a CompileContext<'a>,
    pub text: &'a str,
    /// Instead of the fields' own.
    pub analyzer: Option<Analyzer>,
    pub near: FuzzyOptions,
}

impl Words<'_> {
    fn is_fuzzy(&self) -> bool {
        self.near.fuzziness != Fuzziness::Edits(0)
    }

    fn allows_slips(&self) -> bool {
        self.near.fuzziness == Fuzziness::Auto(Automatic::Typo)
    }

    /// Errors: `limit_exceeded` when there are more words than may be fuzzy.
    pub fn check(&self) -> Result<(), EngineError> {
        if !self.is_fuzzy() || tokens_of(Analyzer::SearchAsYouType, self.text).len() <= FUZZY_WORDS_MAX {
            return Ok(());
        }
        Err(EngineError::new("limit_exceeded", format!("a fuzzy text has at most {FUZZY_WORDS_MAX} words")))
    }

    /// A field may be switched off for slips, never for what a query asks for by number.
    fn near_in(&self, text_field: &TextField) -> FuzzyOptions {
        let is_off = !text_field.typo && self.allows_slips();
        if is_off { FuzzyOptions { fuzziness: Fuzziness::Edits(0), ..self.near } } else { self.near }
    }

    fn word(&self, text_field: &TextField, token: Token) -> Word {
        let written = if self.allows_slips() { self.text.get(token.offset_from..token.offset_to) } else { None };
        let as_written = written.filter(|_| text_field.typo).unwrap_or_default().to_owned();
        Word { text_field: text_field.clone(), token: token.text, as_written }
    }

    fn tokens(&self, text_field: &TextField) -> Vec<Token> {
        tokens_of(self.analyzer.unwrap_or(text_field.analyzer), self.text)
    }

    fn query(&self, word: &Word) -> Box<dyn Query> {
        let near = self.near_in(&word.text_field);
        let words = fuzzy_words(&word.token, &word.as_written, near.fuzziness, near.prefix_length);
        let CompileContext { index, vocabulary, deadline, .. } = self.context;
        let vocabulary = vocabulary.filter(|_| self.allows_slips());
        match vocabulary {
            Some(vocabulary) if !words.is_empty() => {
                let itself = term_query(word.text_field.term(&word.token));
                let near = TypoQuery::new(vocabulary, index, &word.text_field, words, deadline);
                any_of(vec![itself, Box::new(near)])
            }
            _ => near_any_query(&word.text_field, &word.token, words, deadline),
        }
    }
}

/// A token in a field.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Word {
    text_field: TextField,
    token: String,
    /// The text that the token was made of, where slips are counted from it; else empty.
    as_written: String,
}

/// Words of a text in the given fields: by `Or` one word is enough, by `And` every word has to be in one of the fields.
pub fn match_query(texts: &[TextField], words: Words<'_>, operator: Operator) -> Box<dyn Query> {
    match operator {
        Operator::Or => match_any(texts, words),
        Operator::And => match_every(texts, words),
    }
}

fn match_any(texts: &[TextField], words: Words<'_>) -> Box<dyn Query> {
    let of_field = |text_field| words.tokens(text_field).into_iter().map(move |token| words.word(text_field, token));
    let mut asked: Vec<Word> = texts.iter().flat_map(of_field).collect();
    if asked.len() > 1 {
        let mut seen = HashSet::new();
        asked.retain(|word| seen.insert(word.clone()));
    }
    any_of(asked.iter().map(|word| words.query(word)).collect())
}

/// Every word has to be in one of the fields. A word is known by where it begins in the query's text. Analyzers do not keep
/// the same words (each drops the stop words of its language): the words of one are asked for together, and one of them at
/// least of a field that is its own.
fn match_every(texts: &[TextField], words: Words<'_>) -> Box<dyn Query> {
    let mut by_start: BTreeMap<usize, Vec<Word>> = BTreeMap::new();
    let mut starts_of: Vec<(Analyzer, BTreeSet<usize>)> = Vec::new();
    for text_field in texts {
        let analyzer = words.analyzer.unwrap_or(text_field.analyzer);
        let tokens = words.tokens(text_field);
        if !tokens.is_empty() && starts_of.iter().all(|(known, _)| *known != analyzer) {
            starts_of.push((analyzer, tokens.iter().map(|token| token.offset_from).collect()));
        }
        for token in tokens {
            let alternatives = by_start.entry(token.offset_from).or_default();
            let word = words.word(text_field, token);
            if !alternatives.contains(&word) {
                alternatives.push(word);
            }
        }
    }
    let every = |starts: &BTreeSet<usize>| -> Vec<Box<dyn Query>> {
        let mut seen = HashSet::new();
        let asked = starts.iter().map(|start| &by_start[start]).filter(|alternatives| seen.insert(*alternatives));
        asked.map(|alternatives| any_word(alternatives, words)).collect()
    };
    let Some((_, first)) = starts_of.first() else { return Box::new(EmptyQuery) };
    if starts_of.iter().all(|(_, starts)| starts == first) {
        return all_of(every(first));
    }
    let by_analyzer = starts_of.iter().map(|(analyzer, starts)| {
        let own = by_start.values().flatten().filter(|word| word.text_field.analyzer == *analyzer);
        let own = any_of(own.map(|word| words.query(word)).collect());
        all_of(every(starts).into_iter().chain([own]).collect())
    });
    let found = any_of(by_analyzer.collect());
    let scored = any_of(by_start.values().map(|alternatives| any_word(alternatives, words)).collect());
    Box::new(BoolQuery::every(vec![scored]).with_filters([found]))
}

fn any_word(alternatives: &[Word], words: Words<'_>) -> Box<dyn Query> {
    any_of(alternatives.iter().map(|word| words.query(word)).collect())
}

/// One query or more.
fn all_of(mut queries: Vec<Box<dyn Query>>) -> Box<dyn Query> {
    if queries.len() == 1 { queries.remove(0) } else { Box::new(BoolQuery::every(queries)) }
}

/// The words of a text one after another in one of the fields; `slop` moves are allowed.
pub fn phrase_query(texts: &[TextField], words: Words<'_>, slop: u32) -> Box<dyn Query> {
    any_of(texts.iter().filter_map(|text_field| phrase_in(text_field, words, slop)).collect())
}

fn phrase_in(text_field: &TextField, words: Words<'_>, slop: u32) -> Option<Box<dyn Query>> {
    let tokens = words.tokens(text_field);
    let mut spacing = TokenSpacing::default();
    let placed = |token: Token| (spacing.place(token.position as u32) as usize, token.text);
    match &tokens[..] {
        [] => None,
        [token] => Some(near_token_query(text_field, &token.text, words.near, &words.context.deadline)),
        // Tantivy counts loose phrases from the word that is rarer in the segment, so that scores would depend on how
        // documents are spread.
        _ if words.is_fuzzy() || slop > 0 => {
            let shape = PhraseShape { slop, near: words.near };
            let positions = tokens.into_iter().map(placed).map(|(at, text)| (at, vec![text])).collect();
            Some(positions_query(text_field, positions, shape, &words.context.deadline))
        }
        _ => {
            let terms = tokens.into_iter().map(placed).map(|(at, text)| (at, text_field.term(&text))).collect();
            Some(Box::new(ExactPhraseQuery::new(terms)))
        }
    }
}

/// Tokens that begin with `prefix`, in its lowercase form where they are in lowercase.
pub fn prefix_conditions(index: &IndexFields, texts: &[TextField], prefix: &str) -> Vec<Arc<dyn BitsOfSegment>> {
    let lowercase = prefix.to_lowercase();
    let condition = |text_field: &TextField| {
        let prefix = if text_field.analyzer.folds_case() { &lowercase } else { prefix };
        Arc::new(prefix_range(text_field, prefix).reading(&index.segments)) as Arc<dyn BitsOfSegment>
    };
    texts.iter().map(condition).collect()
}

fn prefix_range(text_field: &TextField, prefix: &str) -> TermRangeQuery {
    TermRangeQuery::with_prefix(&text_field.term(prefix))
}

fn prefix_of(text_field: &TextField, prefix: &str) -> Box<dyn Query> {
    Box::new(prefix_range(text_field, prefix))
}

/// Any word, the last one as the beginning of a word, in any of the fields; scores add up.
pub fn bool_prefix_query(index: &IndexFields, fields: &[WeightedField], text: &str) -> Box<dyn Query> {
    let words = tokens_of(Analyzer::SearchAsYouType, text);
    let Some(last) = words.last() else { return Box::new(EmptyQuery) };
    let mut clauses: Vec<Box<dyn Query>> = Vec::new();
    for weighted in fields {
        let mut queries = Vec::new();
        let of_all = weighted.field == ALL_FIELDS;
        let texts = if of_all { index.default_texts() } else { index.texts_of(&weighted.field) };
        for text_field in texts {
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
        let may_lack_words = index.mapping.facts_of(&weighted.field).may_lack_words;
        for exact in index.exact_fields(&weighted.field) {
            // `title.keyword` always means the whole strings of `title`.
            if may_lack_words || exact.path != weighted.field {
                queries.push(Box::new(StringRangeQuery::with_prefix(&exact, text, &index.strings)));
            }
        }
        let scored = any_of(queries);
        clauses.push(Box::new(BoostQuery::new(scored, weighted.boost)));
    }
    Box::new(BoolQuery::any(clauses))
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
