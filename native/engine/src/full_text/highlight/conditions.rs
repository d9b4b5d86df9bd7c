//! The conditions of a plan that texts are marked by, and what each asks of the tokens of a field.

use std::ops::RangeBounds as _;
use std::sync::Arc;

use tantivy::DateTime;

use super::matchers::{TokenMatcher, WholeMatcher};
use super::near_test::NearTest;
use super::sequences::{PhraseToken, Sequence};
use crate::error::EngineError;
use crate::full_text::analysis::{Analyzer, SLOP_MAX, TokenSpacing, lone_character};
use crate::full_text::dates::parse_date;
use crate::full_text::mapping::{KEYWORD_SUFFIX, TableMapping, TextForm};
use crate::full_text::plan::{ALL_FIELDS, Automatic, Fuzziness, Node, TermValue};
use crate::full_text::query::{FuzzyWord, Network, Pattern, RangeBounds, ValueRange, fuzzy_words, text_of_term};
use crate::full_text::slots::tokens_of;

#[derive(Clone, Copy)]
pub struct Tolerance {
    fuzziness: Fuzziness,
    prefix_length: usize,
}

/// A condition in the words of the query.
enum Kind {
    /// Any of the words that the field's analyzer makes of the text.
    Words {
        text: String,
        analyzer: Option<Analyzer>,
        near: Tolerance,
    },
    /// The words as far apart as they are in the text.
    Phrase {
        text: String,
        analyzer: Option<Analyzer>,
        near: Tolerance,
        slop: u32,
    },
    /// Tokens as they are in the index, one of each position.
    Tokens {
        terms: Vec<Vec<String>>,
        near: Tolerance,
        slop: u32,
    },
    /// A whole string, or a token where the field has no whole strings.
    Value(String),
    Prefix(String),
    /// In lowercase for tokens that are so, and as it is written.
    Shape {
        folded: Arc<Pattern>,
        as_written: Arc<Pattern>,
    },
    /// A word that is misspelt.
    Near {
        word: String,
        near: Tolerance,
    },
    /// Words of a text that is being typed: the last one is the beginning of a word.
    Typed(String),
    /// Whole strings that are addresses of a network.
    Addresses(Network),
    /// Whole strings and dates between bounds.
    Between(ValueRange),
}

pub struct Condition {
    /// `None`: the fields that are searched without a name.
    field: Option<String>,
    kind: Kind,
}

/// Adds what `node` asks of texts.
pub fn add_conditions(mapping: &TableMapping, node: &Node, to: &mut Vec<Condition>) -> Result<(), EngineError> {
    let named = |analyzer: &Option<String>| analyzer.as_deref().and_then(Analyzer::named);
    let tolerance = |fuzziness: &Fuzziness, prefix_length: &usize| Tolerance {
        fuzziness: *fuzziness,
        prefix_length: *prefix_length,
    };
    let mut push = |field: &Option<String>, kind: Kind| to.push(Condition { field: field.clone(), kind });
    match node {
        Node::Match { field, text, analyzer, fuzziness, prefix_length, .. } => {
            let near = tolerance(fuzziness, prefix_length);
            push(field, Kind::Words { text: text.clone(), analyzer: named(analyzer), near });
        }
        Node::Phrase { field, text, analyzer, slop, fuzziness, prefix_length, .. } => {
            let near = tolerance(fuzziness, prefix_length);
            push(field, Kind::Phrase { text: text.clone(), analyzer: named(analyzer), near, slop: *slop });
        }
        Node::TermsPhrase { field, terms, slop, fuzziness, .. } => {
            let near = tolerance(fuzziness, &0);
            push(field, Kind::Tokens { terms: terms.clone(), near, slop: *slop });
        }
        Node::Term { field, value, .. } => {
            let text = text_of_term(mapping, field.as_deref(), value);
            text.into_iter().for_each(|text| push(field, Kind::Value(text)));
        }
        Node::BoolField { field, value, .. } => {
            let text = text_of_term(mapping, Some(field), &TermValue::Boolean(*value));
            text.into_iter().for_each(|text| push(&Some(field.clone()), Kind::Value(text)));
        }
        Node::Prefix { field, value, .. } => push(field, Kind::Prefix(value.clone())),
        Node::Fuzzy { field, value, fuzziness, prefix_length, .. } => {
            push(field, Kind::Near { word: value.clone(), near: tolerance(fuzziness, prefix_length) });
        }
        Node::Wildcard { field, pattern, .. } => {
            let folded = Arc::new(Pattern::from_wildcard(&pattern.to_lowercase())?);
            push(field, Kind::Shape { folded, as_written: Arc::new(Pattern::from_wildcard(pattern)?) });
        }
        Node::Regexp { field, pattern, .. } => {
            let folded = Arc::new(Pattern::from_expression_in_any_case(pattern)?);
            push(field, Kind::Shape { folded, as_written: Arc::new(Pattern::from_expression(pattern)?) });
        }
        Node::BoolPrefix { fields, text, .. } => {
            for weighted in fields {
                let field = (weighted.field != ALL_FIELDS).then(|| weighted.field.clone());
                push(&field, Kind::Typed(text.clone()));
            }
        }
        Node::IpRange { field, cidr, .. } => push(&Some(field.clone()), Kind::Addresses(Network::parse(cidr)?)),
        Node::Range { field, gt, gte, lt, lte, of, .. } => {
            let between = ValueRange::of(field, &RangeBounds { gt, gte, lt, lte }, *of)?;
            between.into_iter().for_each(|between| push(&Some(field.clone()), Kind::Between(between)));
        }
        Node::Bool { must, should, filter, .. } => {
            return must.iter().chain(should).chain(filter).try_for_each(|clause| add_conditions(mapping, clause, to));
        }
        _ => {}
    }
    Ok(())
}

impl Condition {
    /// What is asked of the tokens of one analysed form of a path.
    pub fn on_tokens(&self, mapping: &TableMapping, path: &str, form: &TextForm) -> Vec<TokenMatcher> {
        let facts = || mapping.facts_of(&format!("{path}{}", form.suffix));
        let applies = match &self.field {
            None => facts().is_searched,
            Some(field) => field.strip_prefix(path) == Some(form.suffix),
        };
        if !applies {
            return Vec::new();
        }
        let analyzer = form.analyzer;
        match &self.kind {
            Kind::Words { text, analyzer: given, near } => {
                let allows_typo = facts().allows_typo;
                word_matchers(analyzer, &tokens_of(given.unwrap_or(analyzer), text), text, *near, allows_typo)
            }
            Kind::Phrase { text, analyzer: given, near, slop } => {
                phrase_matchers(analyzer, given.unwrap_or(analyzer), text, *near, *slop)
            }
            Kind::Tokens { terms, near, slop } => {
                let positions = terms.iter().enumerate().map(|(at, words)| (at, words.as_slice()));
                sequence(positions, *near, *slop).into_iter().collect()
            }
            // A condition on a field that has whole strings means those.
            Kind::Value(_) if self.field.as_ref().is_some_and(|field| has_exact_form(mapping, field)) => Vec::new(),
            Kind::Value(token) => vec![TokenMatcher::exact([token.clone()])],
            Kind::Prefix(prefix) => {
                let prefix = if analyzer.folds_case() { prefix.to_lowercase() } else { prefix.clone() };
                vec![TokenMatcher::Prefix(prefix)]
            }
            Kind::Shape { folded, as_written } => {
                let pattern = if analyzer.folds_case() { folded } else { as_written };
                vec![TokenMatcher::Shape(Arc::clone(pattern))]
            }
            Kind::Near { word, near } => {
                let mut words = vec![word.to_lowercase()];
                if let [token] = &tokens_of(analyzer, word)[..] {
                    words.push(token.text.clone());
                }
                let near = |word: String| match FuzzyWord::new(&word, near.fuzziness, near.prefix_length) {
                    Some(near) => TokenMatcher::Near(NearTest::of(&near)),
                    None => TokenMatcher::exact([word]),
                };
                words.into_iter().map(near).collect()
            }
            Kind::Typed(text) => {
                let Some(last) = tokens_of(Analyzer::SearchAsYouType, text).pop() else { return Vec::new() };
                let words = tokens_of(analyzer, text).into_iter().map(|token| token.text);
                vec![TokenMatcher::exact(words), TokenMatcher::Prefix(last.text)]
            }
            Kind::Addresses(_) | Kind::Between(_) => Vec::new(),
        }
    }

    /// What is asked of the whole strings of a path.
    pub fn on_whole(&self, mapping: &TableMapping, path: &str) -> Option<WholeMatcher> {
        let field = self.field.as_ref()?;
        let is_own = field == path;
        if !is_own && field.strip_suffix(KEYWORD_SUFFIX) != Some(path) {
            return None;
        }
        let facts = mapping.facts_of(field);
        if facts.exact_paths.iter().all(|exact| exact.path != path) {
            return None;
        }
        match &self.kind {
            Kind::Value(text) => Some(WholeMatcher::Equal(text.clone())),
            Kind::Words { text, analyzer, .. } | Kind::Phrase { text, analyzer, .. } => {
                let is_dropped = match analyzer {
                    Some(analyzer) => tokens_of(*analyzer, text).is_empty(),
                    None => facts.analyzers.iter().all(|analyzer| tokens_of(*analyzer, text).is_empty()),
                };
                (!is_own || facts.may_lack_words || is_dropped).then(|| WholeMatcher::Equal(text.clone()))
            }
            Kind::Shape { as_written, .. } => Some(WholeMatcher::Shape(Arc::clone(as_written))),
            Kind::Prefix(prefix) => Some(WholeMatcher::Prefix(prefix.clone())),
            Kind::Typed(text) => (!is_own || facts.may_lack_words).then(|| WholeMatcher::Prefix(text.clone())),
            Kind::Near { word, near } => Some(match FuzzyWord::new(word, near.fuzziness, near.prefix_length) {
                Some(near) => WholeMatcher::Near(NearTest::of(&near)),
                None => WholeMatcher::Equal(word.clone()),
            }),
            Kind::Addresses(network) => Some(WholeMatcher::Address(*network)),
            Kind::Between(ValueRange::Strings(low, high)) => Some(WholeMatcher::Between(low.clone(), high.clone())),
            Kind::Between(ValueRange::DatesOrStrings(_, (low, high))) => {
                (!facts.date_texts.is_empty()).then(|| WholeMatcher::Between(low.clone(), high.clone()))
            }
            Kind::Between(_) | Kind::Tokens { .. } => None,
        }
    }

    /// Whether a date of `path` is what is asked for.
    pub fn accepts_date(&self, path: &str, date: DateTime) -> bool {
        if self.field.as_deref() != Some(path) {
            return false;
        }
        match &self.kind {
            Kind::Value(value) | Kind::Words { text: value, .. } | Kind::Phrase { text: value, .. } => {
                parse_date(value) == Some(date)
            }
            Kind::Between(ValueRange::Dates(low, high) | ValueRange::DatesOrStrings((low, high), _)) => {
                (*low, *high).contains(&date)
            }
            _ => false,
        }
    }
}

fn has_exact_form(mapping: &TableMapping, field: &str) -> bool {
    !mapping.facts_of(field).exact_paths.is_empty()
}

/// Any of the words, and those near each.
fn word_matchers(
    analyzer: Analyzer,
    tokens: &[tantivy::tokenizer::Token],
    text: &str,
    near: Tolerance,
    allows_typo: bool,
) -> Vec<TokenMatcher> {
    let is_for_slips = near.fuzziness == Fuzziness::Auto(Automatic::Typo);
    let mut matchers = Vec::new();
    for token in tokens {
        let written = text.get(token.offset_from..token.offset_to).filter(|_| is_for_slips).unwrap_or_default();
        let words = if is_for_slips && !allows_typo {
            Vec::new()
        } else {
            fuzzy_words(&token.text, written, near.fuzziness, near.prefix_length)
        };
        if words.is_empty() {
            matchers.extend(lone_character(analyzer, &token.text).map(TokenMatcher::Character));
        }
        matchers.extend(words.iter().map(|word| TokenMatcher::Near(NearTest::of(word))));
    }
    matchers.push(TokenMatcher::exact(tokens.iter().map(|token| token.text.clone())));
    matchers
}

/// The words of a phrase where the index has them; a single word stands anywhere.
fn phrase_matchers(
    analyzer: Analyzer,
    words_by: Analyzer,
    text: &str,
    near: Tolerance,
    slop: u32,
) -> Vec<TokenMatcher> {
    let tokens = tokens_of(words_by, text);
    if let [token] = &tokens[..] {
        let around = match lone_character(analyzer, &token.text) {
            Some(character) => Some(TokenMatcher::Character(character)),
            None => FuzzyWord::new(&token.text, near.fuzziness, near.prefix_length)
                .map(|near| TokenMatcher::Near(NearTest::of(&near))),
        };
        return around.into_iter().chain([TokenMatcher::exact([token.text.clone()])]).collect();
    }
    let mut spacing = TokenSpacing::default();
    let places: Vec<usize> = tokens.iter().map(|token| spacing.place(token.position as u32) as usize).collect();
    let words: Vec<[String; 1]> = tokens.into_iter().map(|token| [token.text]).collect();
    let positions = places.into_iter().zip(&words).map(|(at, words)| (at, words.as_slice()));
    sequence(positions, near, slop).into_iter().collect()
}

fn sequence<'w>(
    positions: impl Iterator<Item = (usize, &'w [String])>,
    near: Tolerance,
    slop: u32,
) -> Option<TokenMatcher> {
    let word = |text: &String| {
        let near = FuzzyWord::new(text, near.fuzziness, near.prefix_length);
        PhraseToken { text: text.clone(), near: near.as_ref().map(NearTest::of) }
    };
    let positions = positions.map(|(at, words)| (at as i64, words.iter().map(word).collect()));
    Sequence::new(positions.collect(), slop.min(SLOP_MAX)).map(TokenMatcher::Sequence)
}
