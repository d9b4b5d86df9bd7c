//! A plan's conditions as Tantivy queries for one index.

use tantivy::query::{AllQuery, BooleanQuery, BoostQuery, ConstScoreQuery, EmptyQuery, Occur, Query};

use super::fields_of_path::{IndexFields, TextField};
use super::plan::{Node, QueryPlan, TermValue};
use super::text_nodes::{bool_prefix_query, match_query, phrase_query, prefix_query};
use super::term_range::TermRangeQuery;
use super::value_nodes::{
    RangeBounds, any_of, boolean_query, date_query, exists_query, filter_clause, ids_query, key_prefix_query,
    number_query, parsed_values, range_query, term_query,
};
use crate::error::EngineError;
use crate::full_text::analysis::Analyzer;
use crate::full_text::dates::parse_date;

const KEY_FIELD: &str = "_id";

/// The whole plan but for its TTL: query, filters, exclusions, key prefix.
pub fn compile_plan(index: &IndexFields, plan: &QueryPlan) -> Result<Box<dyn Query>, EngineError> {
    let mut filters = Vec::new();
    for node in &plan.filter {
        filters.push(compile(index, node)?);
    }
    if let Some(prefix) = plan.key_prefix.as_deref().filter(|prefix| !prefix.is_empty()) {
        filters.push(key_prefix_query(index, prefix));
    }
    let mut exclusions: Vec<(Occur, Box<dyn Query>)> = Vec::new();
    for node in &plan.exclusion {
        exclusions.push((Occur::MustNot, compile(index, node)?));
    }
    let main = match &plan.query {
        None => return Ok(constant_score(filters, exclusions, 1.0)),
        Some(Node::MatchAll { boost }) => return Ok(constant_score(filters, exclusions, *boost)),
        Some(node) => compile(index, node)?,
    };
    if filters.is_empty() && exclusions.is_empty() {
        return Ok(main);
    }
    let mut clauses = vec![(Occur::Must, main)];
    clauses.extend(filters.into_iter().map(filter_clause));
    clauses.extend(exclusions);
    Ok(Box::new(BooleanQuery::new(clauses)))
}

/// Every match scores the same: the filters find the documents, instead of a walk over all of them.
fn constant_score(
    mut filters: Vec<Box<dyn Query>>,
    exclusions: Vec<(Occur, Box<dyn Query>)>,
    score: f32,
) -> Box<dyn Query> {
    if filters.is_empty() {
        filters.push(Box::new(AllQuery));
    }
    let mut clauses: Vec<(Occur, Box<dyn Query>)> = filters.into_iter().map(|query| (Occur::Must, query)).collect();
    clauses.extend(exclusions);
    Box::new(ConstScoreQuery::new(Box::new(BooleanQuery::new(clauses)), score))
}

fn boosted(query: Box<dyn Query>, boost: f32) -> Box<dyn Query> {
    if boost == 1.0 { query } else { Box::new(BoostQuery::new(query, boost)) }
}

fn named_analyzer(name: &Option<String>) -> Result<Option<Analyzer>, EngineError> {
    let Some(name) = name else { return Ok(None) };
    let analyzer = Analyzer::named(name);
    analyzer.map(Some).ok_or_else(|| EngineError::new("invalid_query", format!("there is no analyzer \"{name}\"")))
}

pub fn compile(index: &IndexFields, node: &Node) -> Result<Box<dyn Query>, EngineError> {
    let query = match node {
        Node::MatchAll { boost } => boosted(Box::new(AllQuery), *boost),
        Node::MatchNone {} => Box::new(EmptyQuery),
        Node::Match { field, text, operator, analyzer, boost } => {
            let analyzer = named_analyzer(analyzer)?;
            let on_texts = |texts: &[TextField]| match_query(texts, text, *operator, analyzer);
            boosted(on_text_or_values(index, field.as_deref(), text, on_texts), *boost)
        }
        Node::Phrase { field, text, slop, analyzer, boost } => {
            let analyzer = named_analyzer(analyzer)?;
            let on_texts = |texts: &[TextField]| phrase_query(texts, text, *slop, analyzer);
            boosted(on_text_or_values(index, field.as_deref(), text, on_texts), *boost)
        }
        Node::Term { field, value, boost } => boosted(term_node(index, field.as_deref(), value), *boost),
        Node::Prefix { field, value, boost } => boosted(prefix_node(index, field.as_deref(), value), *boost),
        Node::Range { field, gt, gte, lt, lte, of, boost } => {
            boosted(range_query(index, field, &RangeBounds { gt, gte, lt, lte }, *of)?, *boost)
        }
        Node::Ids { ids, boost } => boosted(ids_query(index, ids), *boost),
        Node::BoolField { field, value, boost } => boosted(boolean_query(index, field, *value), *boost),
        Node::Exists { field, boost } => boosted(exists_query(index, field), *boost),
        Node::BoolPrefix { fields, text, boost } => boosted(bool_prefix_query(index, fields, text), *boost),
        Node::Bool { must, should, must_not, filter, min_should, boost } => {
            boosted(bool_node(index, [must, should, must_not, filter], *min_should)?, *boost)
        }
    };
    Ok(query)
}

/// `on_texts` where the path has analysed text; the whole value where it has only that, and what `text` may stand for
/// besides a string.
fn on_text_or_values(
    index: &IndexFields,
    field: Option<&str>,
    text: &str,
    on_texts: impl Fn(&[TextField]) -> Box<dyn Query>,
) -> Box<dyn Query> {
    let Some(path) = field else { return on_texts(&index.default_texts()) };
    if path == KEY_FIELD {
        return ids_query(index, &[text.to_owned()]);
    }
    let texts = index.texts_of(path);
    let mut queries = Vec::new();
    if texts.is_empty() || index.may_be_exact_only(path) {
        queries.extend(index.exact_paths(path).iter().map(|path| term_query(index.string_term(path, text))));
    }
    queries.extend(parsed_values(index, path, text));
    if !texts.is_empty() {
        queries.push(on_texts(&texts));
    }
    any_of(queries)
}

fn term_node(index: &IndexFields, field: Option<&str>, value: &TermValue) -> Box<dyn Query> {
    let text = match value {
        TermValue::Text(text) => text.clone(),
        TermValue::Number(number) => match field {
            Some(path) => return number_query(index, path, *number),
            None => number.to_string(),
        },
        TermValue::Boolean(boolean) => match field {
            Some(path) => return boolean_query(index, path, *boolean),
            None => boolean.to_string(),
        },
    };
    let Some(path) = field else {
        let tokens = index.default_texts();
        return any_of(tokens.iter().map(|text_field| term_query(text_field.term(&text))).collect());
    };
    if path == KEY_FIELD {
        return ids_query(index, &[text]);
    }
    let exact = index.exact_paths(path);
    let mut queries: Vec<Box<dyn Query>> =
        exact.iter().map(|path| term_query(index.string_term(path, &text))).collect();
    if exact.is_empty() {
        queries.extend(index.texts_of(path).iter().map(|text_field| term_query(text_field.term(&text))));
    }
    if let Some(date) = parse_date(&text) {
        queries.push(date_query(index, path, date));
    }
    any_of(queries)
}

fn prefix_node(index: &IndexFields, field: Option<&str>, prefix: &str) -> Box<dyn Query> {
    let Some(path) = field else { return any_of(prefix_query(&index.default_texts(), prefix)) };
    if path == KEY_FIELD {
        return key_prefix_query(index, prefix);
    }
    let mut queries = prefix_query(&index.texts_of(path), prefix);
    for path in index.exact_paths(path) {
        queries.push(Box::new(TermRangeQuery::with_prefix(&index.string_term(&path, prefix))));
    }
    any_of(queries)
}

fn bool_node(
    index: &IndexFields,
    [must, should, must_not, filter]: [&Vec<Node>; 4],
    min_should: Option<usize>,
) -> Result<Box<dyn Query>, EngineError> {
    let mut clauses: Vec<(Occur, Box<dyn Query>)> = Vec::new();
    for (occur, nodes) in [(Occur::Must, must), (Occur::Should, should), (Occur::MustNot, must_not)] {
        for node in nodes {
            clauses.push((occur, compile(index, node)?));
        }
    }
    for node in filter {
        clauses.push(filter_clause(compile(index, node)?));
    }
    let something_required = !(must.is_empty() && filter.is_empty());
    if !something_required && should.is_empty() {
        clauses.push((Occur::Must, Box::new(AllQuery)));
    }
    let default_min = usize::from(!something_required && !should.is_empty());
    let min_should = min_should.unwrap_or(default_min);
    Ok(Box::new(BooleanQuery::with_minimum_required_clauses(clauses, min_should)))
}
