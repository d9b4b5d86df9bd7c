//! A plan's conditions as Tantivy queries for one index.

use std::sync::Arc;

use tantivy::query::{AllQuery, BooleanQuery, BoostQuery, ConstScoreQuery, EmptyQuery, Occur, Query};
use tantivy::tokenizer::TokenStream;

use super::any_alike::AnyAlikeQuery;
use super::fields_of_path::{IndexFields, TextField};
use super::geo_nodes::{GeoQuery, GeoTest};
use super::plan::{Node, QueryPlan, TermValue};
use super::stop::{CancelFlag, Stop};
use super::string_columns::StringRangeQuery;
use super::text_nodes::{Words, bool_prefix_query, match_query, phrase_query, prefix_conditions};
use super::value_nodes::{
    RangeBounds, any_of, boolean_query, date_query, every_document, exists_query, filter_clause, ids_query,
    key_prefix_query, number_query, parsed_values, range_query, term_query,
};
use super::word_nodes::{
    Nearness, PhraseShape, fuzzy_query, ip_range_query, regexp_query, terms_phrase_query, wildcard_query,
};
use crate::error::EngineError;
use crate::full_text::analysis::Analyzer;
use crate::full_text::dates::parse_date;

const KEY_FIELD: &str = "_id";

/// The whole plan but for its TTL: query, filters, exclusions, key prefix.
pub fn compile_plan(index: &IndexFields, plan: &QueryPlan) -> Result<Box<dyn Query>, EngineError> {
    Ok(compile_parts(index, plan)?.map_or_else(|| Box::new(EmptyQuery) as Box<dyn Query>, CompiledPlan::whole))
}

/// Filters, exclusions and key prefix without the query; `None` when they let everything through.
pub fn compile_filter(index: &IndexFields, plan: &QueryPlan) -> Result<Option<Box<dyn Query>>, EngineError> {
    let filter = compile_conditions(index, plan, &walk_stop(plan))?;
    Ok(if filter.is_empty() { None } else { Some(filter.into_query()) })
}

/// What a plan lets through besides its query.
#[derive(Default)]
pub struct Conditions {
    filters: Vec<Box<dyn Query>>,
    exclusions: Vec<Box<dyn Query>>,
    /// Something is left of the plan's filters.
    filters_asked: bool,
    /// Some of them ask for nothing.
    left_out: bool,
}

impl Conditions {
    pub fn is_empty(&self) -> bool {
        self.filters.is_empty() && self.exclusions.is_empty()
    }

    /// All of them; every document when there are none.
    pub fn into_query(self) -> Box<dyn Query> {
        let mut filters = self.filters;
        if filters.is_empty() {
            filters.push(Box::new(AllQuery));
        }
        let mut clauses: Vec<(Occur, Box<dyn Query>)> = filters.into_iter().map(|query| (Occur::Must, query)).collect();
        clauses.extend(self.exclusions.into_iter().map(|query| (Occur::MustNot, query)));
        Box::new(BooleanQuery::new(clauses))
    }
}

/// A plan in its two parts.
pub struct CompiledPlan {
    /// What scores; `None` when every document that the conditions let through scores `constant`.
    pub scored: Option<Box<dyn Query>>,
    pub constant: f32,
    pub conditions: Conditions,
}

impl CompiledPlan {
    /// The same documents by a condition that stands for all others.
    pub fn with_condition(self, condition: Box<dyn Query>) -> Self {
        Self { conditions: Conditions { filters: vec![condition], ..Conditions::default() }, ..self }
    }

    pub fn whole(self) -> Box<dyn Query> {
        let Self { scored, constant, conditions } = self;
        match scored {
            // The filters find the documents, instead of a walk over all of them.
            None => Box::new(ConstScoreQuery::new(conditions.into_query(), constant)),
            Some(scored) if conditions.is_empty() => scored,
            Some(scored) => {
                let mut clauses = vec![(Occur::Must, scored)];
                clauses.extend(conditions.filters.into_iter().map(filter_clause));
                clauses.extend(conditions.exclusions.into_iter().map(|query| (Occur::MustNot, query)));
                Box::new(BooleanQuery::new(clauses))
            }
        }
    }
}

/// `None` when nothing can match. Query and conditions are one bool: what asks for nothing is left out, and when
/// nothing is left of what was asked, nothing matches.
pub fn compile_parts(index: &IndexFields, plan: &QueryPlan) -> Result<Option<CompiledPlan>, EngineError> {
    let stop = &walk_stop(plan);
    let conditions = compile_conditions(index, plan, stop)?;
    let (scored, constant) = match &plan.query {
        None => (None, 1.0),
        Some(Node::MatchAll { boost }) => (None, *boost),
        Some(node) => (compile(index, node, stop)?, 1.0),
    };
    let query_is_left_out = scored.is_none() && plan.query.as_ref().is_some_and(|node| !is_match_all(node));
    let asks_for_something = conditions.filters_asked || scored.is_some();
    if (conditions.left_out || query_is_left_out) && !asks_for_something {
        return Ok(None);
    }
    Ok(Some(CompiledPlan { scored, constant, conditions }))
}

/// Walks of the term dictionary end by themselves; everything else is ended by who runs the query.
fn walk_stop(plan: &QueryPlan) -> Stop {
    Stop::new(&CancelFlag::default(), plan.timeout_ms)
}

fn compile_conditions(index: &IndexFields, plan: &QueryPlan, stop: &Stop) -> Result<Conditions, EngineError> {
    let Clauses { found: mut filters, left_out } = compile_all(index, &plan.filter, stop)?;
    let filters_asked = !filters.is_empty();
    if let Some(prefix) = plan.key_prefix.as_deref().filter(|prefix| !prefix.is_empty()) {
        filters.push(key_prefix_query(prefix));
    }
    let exclusions = compile_all(index, &plan.exclusion, stop)?.found;
    Ok(Conditions { filters, exclusions, filters_asked, left_out })
}

fn is_match_all(node: &Node) -> bool {
    matches!(node, Node::MatchAll { .. })
}

/// Several nodes, without those that ask for nothing.
struct Clauses {
    found: Vec<Box<dyn Query>>,
    left_out: bool,
}

fn compile_all(index: &IndexFields, nodes: &[Node], stop: &Stop) -> Result<Clauses, EngineError> {
    let mut clauses = Clauses { found: Vec::new(), left_out: false };
    for node in nodes {
        match compile(index, node, stop)? {
            Some(query) => clauses.found.push(query),
            None => clauses.left_out = true,
        }
    }
    Ok(clauses)
}

fn boosted(query: Box<dyn Query>, boost: f32) -> Box<dyn Query> {
    if boost == 1.0 { query } else { Box::new(BoostQuery::new(query, boost)) }
}

fn named_analyzer(name: &Option<String>) -> Result<Option<Analyzer>, EngineError> {
    let Some(name) = name else { return Ok(None) };
    let analyzer = Analyzer::named(name);
    analyzer.map(Some).ok_or_else(|| EngineError::new("invalid_query", format!("there is no analyzer \"{name}\"")))
}

/// `None` when the node asks for nothing: a text without any token (stop words, punctuation).
fn compile(index: &IndexFields, node: &Node, stop: &Stop) -> Result<Option<Box<dyn Query>>, EngineError> {
    let query = match node {
        Node::MatchAll { boost } => boosted(every_document(), *boost),
        Node::MatchNone {} => Box::new(EmptyQuery),
        Node::Match { field, text, operator, analyzer, fuzziness, prefix_length, boost } => {
            let analyzer = named_analyzer(analyzer)?;
            if has_no_token(index, field.as_deref(), text, analyzer) {
                return Ok(None);
            }
            let words = Words {
                index,
                text,
                analyzer,
                near: Nearness { fuzziness: *fuzziness, prefix_length: *prefix_length },
                stop,
            };
            words.check()?;
            let on_texts = |texts: &[TextField]| match_query(texts, words, *operator);
            boosted(on_text_or_values(index, field.as_deref(), text, on_texts), *boost)
        }
        Node::Phrase { field, text, slop, analyzer, fuzziness, prefix_length, boost } => {
            let analyzer = named_analyzer(analyzer)?;
            if has_no_token(index, field.as_deref(), text, analyzer) {
                return Ok(None);
            }
            let words = Words {
                index,
                text,
                analyzer,
                near: Nearness { fuzziness: *fuzziness, prefix_length: *prefix_length },
                stop,
            };
            words.check()?;
            let on_texts = |texts: &[TextField]| phrase_query(texts, words, *slop);
            boosted(on_text_or_values(index, field.as_deref(), text, on_texts), *boost)
        }
        Node::Fuzzy { field, value, fuzziness, prefix_length, boost } => {
            let near = Nearness { fuzziness: *fuzziness, prefix_length: *prefix_length };
            boosted(fuzzy_query(index, field.as_deref(), value, near, stop), *boost)
        }
        Node::Wildcard { field, pattern, boost } => {
            boosted(wildcard_query(index, field.as_deref(), pattern, stop)?, *boost)
        }
        Node::Regexp { field, pattern, boost } => {
            boosted(regexp_query(index, field.as_deref(), pattern, stop)?, *boost)
        }
        Node::TermsPhrase { field, terms, slop, fuzziness, boost } => {
            let shape = PhraseShape { slop: *slop, near: Nearness { fuzziness: *fuzziness, prefix_length: 0 } };
            boosted(terms_phrase_query(index, field.as_deref(), terms, shape, stop), *boost)
        }
        Node::IpRange { field, cidr, boost } => boosted(ip_range_query(index, field, cidr, stop)?, *boost),
        Node::GeoBox { field, top_left, bottom_right, boost } => {
            boosted(geo_query(field, GeoTest::in_box(*top_left, *bottom_right), stop), *boost)
        }
        Node::GeoDistance { field, center, meters, boost } => {
            boosted(geo_query(field, GeoTest::near(*center, *meters)?, stop), *boost)
        }
        Node::GeoPolygon { field, points, boost } => {
            boosted(geo_query(field, GeoTest::in_polygon(points)?, stop), *boost)
        }
        Node::GeoShape { field, geometry, relation, boost } => {
            boosted(geo_query(field, GeoTest::related_to(geometry, *relation)?, stop), *boost)
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
            let Some(query) = bool_node(index, [must, should, must_not, filter], *min_should, stop)? else {
                return Ok(None);
            };
            boosted(query, *boost)
        }
    };
    Ok(Some(query))
}

fn geo_query(path: &str, test: GeoTest, stop: &Stop) -> Box<dyn Query> {
    Box::new(GeoQuery { path: path.to_owned(), test: Arc::new(test), stop: stop.clone() })
}

/// Whether the analyzers that `text` is read with drop all of it. Decided by the table's mapping where a field is
/// named, so that it does not depend on which documents an index holds.
fn has_no_token(index: &IndexFields, field: Option<&str>, text: &str, analyzer: Option<Analyzer>) -> bool {
    let analyzers = match (analyzer, field) {
        (_, Some(KEY_FIELD)) => return false,
        (_, Some(path))
            if index.may_be_exact_only(path) || index.exact_paths(path).iter().any(|exact| exact != path) =>
        {
            return false;
        }
        (Some(analyzer), _) => vec![analyzer],
        (None, Some(path)) => index.mapping.analyzers_of(path),
        (None, None) => {
            let mut analyzers: Vec<Analyzer> = index.default_texts().iter().map(|text| text.analyzer).collect();
            analyzers.dedup();
            if analyzers.is_empty() { vec![Analyzer::Standard] } else { analyzers }
        }
    };
    !analyzers.is_empty() && analyzers.into_iter().all(|analyzer| !analyzer.token_stream(text).advance())
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
        queries.extend(index.exact_places(path).iter().map(|place| index.string_query(place, text)));
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
    let exact = index.exact_places(path);
    let mut queries: Vec<Box<dyn Query>> = exact.iter().map(|place| index.string_query(place, &text)).collect();
    if exact.is_empty() {
        queries.extend(index.texts_of(path).iter().map(|text_field| term_query(text_field.term(&text))));
    }
    if let Some(date) = parse_date(&text) {
        queries.push(date_query(index, path, date));
    }
    any_of(queries)
}

fn prefix_node(index: &IndexFields, field: Option<&str>, prefix: &str) -> Box<dyn Query> {
    let Some(path) = field else {
        return Box::new(AnyAlikeQuery(prefix_conditions(&index.default_texts(), prefix)));
    };
    if path == KEY_FIELD {
        return key_prefix_query(prefix);
    }
    let mut conditions = prefix_conditions(&index.texts_of(path), prefix);
    for place in index.exact_places(path) {
        conditions.push(Arc::new(StringRangeQuery::with_prefix(place.column, prefix)));
    }
    Box::new(AnyAlikeQuery(conditions))
}

fn bool_node(
    index: &IndexFields,
    [must, should, must_not, filter]: [&Vec<Node>; 4],
    min_should: Option<usize>,
    stop: &Stop,
) -> Result<Option<Box<dyn Query>>, EngineError> {
    let (must, filter) = (compile_all(index, must, stop)?, compile_all(index, filter, stop)?);
    let should = compile_all(index, should, stop)?;
    let must_not = compile_all(index, must_not, stop)?;
    let something_required = !(must.found.is_empty() && filter.found.is_empty());
    if !something_required && should.found.is_empty() && must_not.found.is_empty() {
        let left_out = must.left_out || filter.left_out || should.left_out;
        return Ok(if left_out { None } else { Some(every_document()) });
    }
    let default_min = usize::from(!something_required && !should.found.is_empty());
    let min_should = match min_should {
        // What was left out cannot be asked for.
        Some(min) if should.left_out => min.min(should.found.len()),
        Some(min) => min,
        None => default_min,
    };
    let mut clauses: Vec<(Occur, Box<dyn Query>)> = Vec::new();
    if !something_required && should.found.is_empty() {
        clauses.push((Occur::Must, every_document()));
    }
    clauses.extend(must.found.into_iter().map(|query| (Occur::Must, query)));
    clauses.extend(should.found.into_iter().map(|query| (Occur::Should, query)));
    clauses.extend(must_not.found.into_iter().map(|query| (Occur::MustNot, query)));
    clauses.extend(filter.found.into_iter().map(filter_clause));
    Ok(Some(Box::new(BooleanQuery::with_minimum_required_clauses(clauses, min_should))))
}
