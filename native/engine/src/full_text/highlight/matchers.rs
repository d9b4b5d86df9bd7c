//! The conditions of a plan on texts, as tests of their tokens.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;

use tantivy::tokenizer::Token;

use super::spans::{DocumentText, Span};
use crate::error::EngineError;
use crate::full_text::analysis::{Analyzer, lone_character};
use crate::full_text::mapping::{DERIVED_SUFFIXES, KEYWORD_SUFFIX, TableMapping};
use crate::full_text::plan::{ALL_FIELDS, Automatic, Fuzziness, Node, QueryPlan, TermValue};
use crate::full_text::query::{FuzzyWord, Pattern, TokenTest, fuzzy_words};
use crate::full_text::slots::tokens_of;

/// Spans of one text that are marked.
const SPANS_MAX: usize = 2_048;

/// One condition, still in the words of the query.
enum ConditionKind {
    /// Any of the words that the field's analyzer makes of the text.
    Words { text: String, analyzer: Option<Analyzer>, near: Option<Tolerance> },
    /// The words one after another.
    Phrase { text: String, analyzer: Option<Analyzer>, near: Option<Tolerance>, slop: u32 },
    /// A token as it is in the index.
    Token(String),
    /// The beginning of a token, in lowercase.
    Prefix(String),
    /// A pattern of tokens, and the same of whole strings.
    Shape { tokens: Arc<Pattern>, strings: Arc<Pattern> },
    /// A word that is misspelt.
    NearToken { word: String, near: Tolerance },
}

#[derive(Clone, Copy)]
struct Tolerance {
    fuzziness: Fuzziness,
    prefix_length: usize,
}

impl Tolerance {
    fn is_for_slips(self) -> bool {
        self.fuzziness == Fuzziness::Auto(Automatic::Typo)
    }
}

struct Condition {
    /// `None`: the fields that are searched without a name.
    field: Option<String>,
    kind: ConditionKind,
}

/// A condition under one analyzer.
enum TokenMatcher {
    Exact(HashSet<String>),
    Sequence(Vec<String>),
    Prefix(String),
    Shape(Arc<Pattern>),
    Near(FuzzyWord),
    /// Of a script whose tokens are pairs of characters.
    Character(char),
}

/// Everything that a plan asks of texts.
pub struct Wanted<'m> {
    mapping: &'m TableMapping,
    conditions: Vec<Condition>,
    /// By path and analyzer.
    compiled: HashMap<(String, Analyzer), Rc<Vec<TokenMatcher>>>,
}

fn base_of(field: &str) -> &str {
    DERIVED_SUFFIXES.iter().find_map(|suffix| field.strip_suffix(suffix)).unwrap_or(field)
}

fn near_of(fuzziness: Fuzziness, prefix_length: usize) -> Option<Tolerance> {
    (fuzziness != Fuzziness::Edits(0)).then_some(Tolerance { fuzziness, prefix_length })
}

impl<'m> Wanted<'m> {
    pub fn of(mapping: &'m TableMapping, plan: &QueryPlan) -> Result<Self, EngineError> {
        let mut wanted = Self { mapping, conditions: Vec::new(), compiled: HashMap::new() };
        if let Some(query) = &plan.query {
            wanted.add(query)?;
        }
        if wanted.conditions.is_empty() {
            for filter in &plan.filter {
                wanted.add(filter)?;
            }
        }
        Ok(wanted)
    }

    fn push(&mut self, field: Option<&String>, kind: ConditionKind) {
        self.conditions.push(Condition { field: field.map(|field| base_of(field).to_owned()), kind });
    }

    fn add(&mut self, node: &Node) -> Result<(), EngineError> {
        let named = |analyzer: &Option<String>| analyzer.as_deref().and_then(Analyzer::named);
        match node {
            Node::Match { field, text, analyzer, fuzziness, prefix_length, .. } => {
                let near = near_of(*fuzziness, *prefix_length);
                self.push(field.as_ref(), ConditionKind::Words { text: text.clone(), analyzer: named(analyzer), near });
            }
            Node::Phrase { field, text, analyzer, slop, fuzziness, prefix_length, .. } => {
                let near = near_of(*fuzziness, *prefix_length);
                let phrase = ConditionKind::Phrase { text: text.clone(), analyzer: named(analyzer), near, slop: *slop };
                self.push(field.as_ref(), phrase);
            }
            Node::Term { field, value: TermValue::Text(text), .. } => {
                self.push(field.as_ref(), ConditionKind::Token(text.clone()));
            }
            Node::Prefix { field, value, .. } => self.push(field.as_ref(), ConditionKind::Prefix(value.to_lowercase())),
            Node::Fuzzy { field, value, fuzziness, prefix_length, .. } => {
                if let Some(near) = near_of(*fuzziness, *prefix_length) {
                    self.push(field.as_ref(), ConditionKind::NearToken { word: value.clone(), near });
                }
                self.push(field.as_ref(), ConditionKind::Words { text: value.clone(), analyzer: None, near: None });
            }
            Node::Wildcard { field, pattern, .. } => {
                let tokens = Arc::new(Pattern::from_wildcard(&pattern.to_lowercase())?);
                let strings = Arc::new(Pattern::from_wildcard(pattern)?);
                self.push(field.as_ref(), ConditionKind::Shape { tokens, strings });
            }
            Node::Regexp { field, pattern, .. } => {
                let tokens = Arc::new(Pattern::from_expression(pattern)?);
                self.push(field.as_ref(), ConditionKind::Shape { strings: Arc::clone(&tokens), tokens });
            }
            Node::TermsPhrase { field, terms, .. } => {
                for token in terms.iter().flatten() {
                    self.push(field.as_ref(), ConditionKind::Token(token.clone()));
                }
            }
            Node::BoolPrefix { fields, text, .. } => {
                let last = tokens_of(Analyzer::SearchAsYouType, text).pop();
                for weighted in fields {
                    let field = (weighted.field != ALL_FIELDS).then_some(&weighted.field);
                    self.push(field, ConditionKind::Words { text: text.clone(), analyzer: None, near: None });
                    if let Some(last) = &last {
                        self.push(field, ConditionKind::Prefix(last.text.clone()));
                    }
                }
            }
            Node::Bool { must, should, filter, .. } => {
                for clause in must.iter().chain(should).chain(filter) {
                    self.add(clause)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// The parts of the text that the query asks for, in order and apart from each other.
    pub fn spans_of(&mut self, text: &DocumentText<'_>) -> Vec<Span> {
        let shown = text.shown();
        if let Some(whole) = self.whole(text, &shown) {
            return vec![whole];
        }
        let Some(analyzer) = text.analyzer() else { return Vec::new() };
        let matchers = self.matchers_for(text, analyzer);
        if matchers.is_empty() {
            return Vec::new();
        }
        // The text that is shown of HTML is cut into the same tokens by the analyzer of plain text.
        let tokens = tokens_of(if analyzer == Analyzer::Html { Analyzer::Standard } else { analyzer }, &shown);
        let mut marked = vec![false; tokens.len()];
        for matcher in matchers.iter() {
            matcher.mark(&tokens, &mut marked);
        }
        let of_tokens = tokens.iter().zip(&marked).filter(|(_, marked)| **marked);
        let mut found: Vec<Span> =
            of_tokens.map(|(token, _)| Span { from: token.offset_from, to: token.offset_to }).collect();
        for matcher in matchers.iter() {
            if let TokenMatcher::Character(character) = matcher {
                let occurrences = shown.match_indices(*character);
                found.extend(occurrences.map(|(from, text)| Span { from, to: from + text.len() }));
            }
        }
        found.sort_unstable();
        joined(found)
    }

    /// All of a string that a pattern matches as a whole.
    fn whole(&self, text: &DocumentText<'_>, shown: &str) -> Option<Span> {
        if !text.rule.exact || shown.is_empty() {
            return None;
        }
        let keyword = format!("{}{KEYWORD_SUFFIX}", text.path);
        let is_asked = |condition: &Condition| {
            let of_path = condition.field.as_deref() == Some(&text.path);
            if !of_path && condition.field.as_deref() != Some(&keyword) {
                return false;
            }
            match &condition.kind {
                ConditionKind::Token(value) => value == shown,
                ConditionKind::Words { text: value, .. } => text.analyzer().is_none() && value == shown,
                ConditionKind::Shape { strings, .. } => accepts(&strings.walker(), shown),
                ConditionKind::Prefix(prefix) => text.analyzer().is_none() && shown.to_lowercase().starts_with(prefix),
                _ => false,
            }
        };
        self.conditions.iter().any(is_asked).then_some(Span { from: 0, to: shown.len() })
    }

    fn matchers_for(&mut self, text: &DocumentText<'_>, analyzer: Analyzer) -> Rc<Vec<TokenMatcher>> {
        let key = (text.path.clone(), analyzer);
        if let Some(known) = self.compiled.get(&key) {
            return Rc::clone(known);
        }
        let is_default = !self.mapping.any_in_all || text.rule.in_all;
        let applies = |condition: &&Condition| match &condition.field {
            Some(field) => *field == text.path,
            None => is_default,
        };
        let matchers =
            self.conditions.iter().filter(applies).flat_map(|condition| condition.kind.under(analyzer, text));
        let matchers = Rc::new(matchers.collect::<Vec<_>>());
        self.compiled.insert(key, Rc::clone(&matchers));
        matchers
    }
}

/// `found` ascend; what overlaps becomes one.
fn joined(found: Vec<Span>) -> Vec<Span> {
    let mut spans: Vec<Span> = Vec::new();
    for span in found {
        let count = spans.len();
        match spans.last_mut() {
            Some(last) if span.from < last.to => last.to = last.to.max(span.to),
            _ if count == SPANS_MAX => break,
            _ => spans.push(span),
        }
    }
    spans
}

impl ConditionKind {
    fn under(&self, analyzer: Analyzer, text: &DocumentText<'_>) -> Vec<TokenMatcher> {
        let path = text;
        let words = |text: &str, given: &Option<Analyzer>| -> Vec<Token> { tokens_of(given.unwrap_or(analyzer), text) };
        let with_near = |tokens: Vec<Token>, text: &str, near: &Option<Tolerance>| -> Vec<TokenMatcher> {
            let near_token = |near: &Tolerance| -> Vec<TokenMatcher> {
                if near.is_for_slips() && path.rule.typo_off {
                    return Vec::new();
                }
                let words = tokens.iter().flat_map(|token| {
                    let written = text.get(token.offset_from..token.offset_to).unwrap_or(&token.text);
                    fuzzy_words(&token.text, written, near.fuzziness, near.prefix_length)
                });
                words.map(TokenMatcher::Near).collect()
            };
            let mut matchers = near.as_ref().map(near_token).unwrap_or_default();
            let lone = tokens.iter().filter_map(|token| lone_character(analyzer, &token.text));
            matchers.extend(lone.map(TokenMatcher::Character));
            matchers.push(TokenMatcher::Exact(tokens.into_iter().map(|token| token.text).collect()));
            matchers
        };
        match self {
            Self::Words { text, analyzer, near } => with_near(words(text, analyzer), text, near),
            Self::Phrase { text, analyzer, near, slop } => {
                let tokens = words(text, analyzer);
                if *slop == 0 && near.is_none() && tokens.len() > 1 {
                    let words = tokens.into_iter().map(|token| token.text).collect();
                    return vec![TokenMatcher::Sequence(words)];
                }
                with_near(tokens, text, near)
            }
            // Where the path has an exact form, a term is all of it.
            Self::Token(_) if text.rule.exact => Vec::new(),
            Self::Token(token) => vec![TokenMatcher::Exact([token.clone()].into())],
            Self::Prefix(prefix) => vec![TokenMatcher::Prefix(prefix.clone())],
            Self::Shape { tokens, .. } => vec![TokenMatcher::Shape(Arc::clone(tokens))],
            Self::NearToken { word, near } => {
                let near = FuzzyWord::new(&word.to_lowercase(), near.fuzziness, near.prefix_length);
                near.map(TokenMatcher::Near).into_iter().collect()
            }
        }
    }
}

impl TokenMatcher {
    fn mark(&self, tokens: &[Token], marked: &mut [bool]) {
        let mut mark_each = |wants: &dyn Fn(&str) -> bool| {
            for (token, marked) in tokens.iter().zip(marked.iter_mut()) {
                *marked = *marked || wants(&token.text);
            }
        };
        match self {
            Self::Exact(words) => mark_each(&|token| words.contains(token)),
            Self::Prefix(prefix) => mark_each(&|token| token.starts_with(prefix.as_str())),
            Self::Shape(pattern) => {
                let walker = pattern.walker();
                mark_each(&|token| accepts(&walker, token));
            }
            Self::Near(word) => {
                let walker = word.walker();
                mark_each(&|token| {
                    token.strip_prefix(word.fixed()).is_some_and(|rest| walker.distance(rest.as_bytes()).is_some())
                });
            }
            Self::Character(_) => {}
            Self::Sequence(words) => {
                for (at, window) in tokens.windows(words.len()).enumerate() {
                    if window.iter().map(|token| &token.text).eq(words) {
                        marked[at..at + words.len()].fill(true);
                    }
                }
            }
        }
    }
}

/// A pattern that grows too large for a token does not match it.
fn accepts<T: TokenTest>(test: &T, token: &str) -> bool {
    let mut state = test.start().ok().flatten();
    for byte in token.bytes() {
        state = state.and_then(|state| test.step(state, byte).ok().flatten());
    }
    state.is_some_and(|state| test.accepts(state).unwrap_or(false))
}
