//! What a plan asks of the strings of each path.

use std::collections::HashMap;
use std::rc::Rc;

use super::conditions::{Condition, add_conditions};
use super::matchers::{TokenMatcher, WholeMatcher};
use super::spans::{DocumentText, Span};
use crate::error::EngineError;
use crate::full_text::analysis::Analyzer;
use crate::full_text::mapping::{FieldRule, TableMapping};
use crate::full_text::plan::QueryPlan;
use crate::full_text::slots::tokens_of;

/// Spans of one text that are marked.
const SPANS_MAX: usize = 2_048;

/// What a plan asks of the strings of one path.
#[derive(Default)]
struct OfPath {
    /// Of each analysed form that is asked for.
    forms: Vec<(Analyzer, Vec<TokenMatcher>)>,
    whole: Vec<WholeMatcher>,
}

/// Everything that a plan asks of texts.
pub struct Wanted<'m> {
    mapping: &'m TableMapping,
    conditions: Vec<Condition>,
    /// By path; types may have given it several rules.
    of_paths: HashMap<String, Vec<(FieldRule, Rc<OfPath>)>>,
}

impl<'m> Wanted<'m> {
    pub fn of(mapping: &'m TableMapping, plan: &QueryPlan) -> Result<Self, EngineError> {
        let mut conditions = Vec::new();
        if let Some(query) = &plan.query {
            add_conditions(mapping, query, &mut conditions)?;
        }
        if conditions.is_empty() {
            plan.filter.iter().try_for_each(|filter| add_conditions(mapping, filter, &mut conditions))?;
        }
        Ok(Self { mapping, conditions, of_paths: HashMap::new() })
    }

    /// The parts of the text that the query asks for, in order and apart from each other.
    pub fn spans_of(&mut self, text: &DocumentText<'_>) -> Vec<Span> {
        let shown = text.shown();
        let all = Span { from: 0, to: shown.len() };
        if all.to == 0 {
            return Vec::new();
        }
        if let Some(date) = text.date {
            let is_asked = |condition: &Condition| condition.accepts_date(&text.path, date);
            return if self.conditions.iter().any(is_asked) { vec![all] } else { Vec::new() };
        }
        let asked = self.of_path(text);
        let is_whole = text.rule.exact && text.text.len() <= text.rule.whole_bytes_max();
        let whole = |matcher: &WholeMatcher| is_whole && matcher.accepts(&text.text);
        let (prefixes, others): (Vec<_>, Vec<_>) =
            asked.whole.iter().partition(|matcher| matches!(matcher, WholeMatcher::Prefix(_)));
        if others.into_iter().any(whole) {
            return vec![all];
        }
        let found = spans_of_tokens(&shown, &asked.forms);
        // A word is nearer to what was asked than all of the string that begins with it.
        if found.is_empty() && prefixes.into_iter().any(whole) { vec![all] } else { found }
    }

    fn of_path(&mut self, text: &DocumentText<'_>) -> Rc<OfPath> {
        let mut known = self.of_paths.get(&text.path).into_iter().flatten();
        if let Some((_, asked)) = known.find(|(rule, _)| *rule == text.rule) {
            return Rc::clone(asked);
        }
        let (mapping, conditions, rule) = (self.mapping, &self.conditions, &text.rule);
        let mut asked = OfPath::default();
        let forms = if mapping.values_only { &[] } else { rule.texts.as_slice() };
        for form in forms {
            let on_tokens = |condition: &Condition| condition.on_tokens(mapping, &text.path, form);
            let matchers: Vec<TokenMatcher> = conditions.iter().flat_map(on_tokens).collect();
            if !matchers.is_empty() {
                asked.forms.push((form.analyzer, matchers));
            }
        }
        asked.whole = conditions.iter().filter_map(|condition| condition.on_whole(mapping, &text.path)).collect();
        let asked = Rc::new(asked);
        self.of_paths.entry(text.path.clone()).or_default().push((rule.clone(), Rc::clone(&asked)));
        asked
    }
}

fn spans_of_tokens(shown: &str, forms: &[(Analyzer, Vec<TokenMatcher>)]) -> Vec<Span> {
    let mut found: Vec<Span> = Vec::new();
    for (analyzer, matchers) in forms {
        // The text that is shown of HTML is cut into the same tokens by the analyzer of plain text.
        let analyzer = if *analyzer == Analyzer::Html { Analyzer::Standard } else { *analyzer };
        let tokens = tokens_of(analyzer, shown);
        let mut marked = vec![false; tokens.len()];
        for matcher in matchers {
            matcher.mark(&tokens, &mut marked);
            if let TokenMatcher::Character(character) = matcher {
                let occurrences = shown.match_indices(*character);
                found.extend(occurrences.map(|(from, text)| Span { from, to: from + text.len() }));
            }
        }
        let of_tokens = tokens.iter().zip(&marked).filter(|(_, marked)| **marked);
        found.extend(of_tokens.map(|(token, _)| Span { from: token.offset_from, to: token.offset_to }));
    }
    found.sort_unstable();
    joined(found)
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
