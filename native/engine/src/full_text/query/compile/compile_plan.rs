//! A plan's conditions as Tantivy queries for one index.

use std::sync::Arc;

use tantivy::query::{AllQuery, BooleanQuery, BoostQuery, ConstScoreQuery, EmptyQuery, Occur, Query};

use crate::error::EngineError;
use crate::full_text::dates::parse_date;
use crate::full_text::fields::KEY;
use crate::full_text::plan::{Node, QueryPlan, TermValue};
use crate::full_text::query::boolean::bool_query::BoolQuery;
use crate::full_text::query::compile::clauses::{any_of, every_document, term_query};
use crate::full_text::query::compile::context::CompileContext;
use crate::full_text::query::compile::dropped_words::{fields_with_words, has_exact_form, is_dropped, named_analyzer};
use crate::full_text::query::compile::field_checks::check_fields;
use crate::full_text::query::compile::index_fields::{IndexFields, TextField};
use crate::full_text::query::compile::text_checks::check_text;
use crate::full_text::query::compile::text_nodes::{
    Words, bool_prefix_query, match_query, phrase_query, prefix_conditions,
};
use crate::full_text::query::compile::value_nodes::{
    RangeBounds, boolean_query, date_query, exists_query, ids_query, key_prefix_query, number_query, parsed_values,
    range_query, text_of_term,
};
use crate::full_text::query::compile::word_nodes::{
    FuzzyOptions, PhraseShape, fuzzy_query, ip_range_query, regexp_query, terms_phrase_query, wildcard_query,
};
use crate::full_text::query::deadline::Deadline;
use crate::full_text::query::geo::geo_query::{GeoQuery, GeoTest};
use crate::full_text::query::terms::constant_score_union::ConstantScoreUnion;
use crate::full_text::query::terms::string_columns::StringRangeQuery;

/// The whole plan but for its TTL: query, filters, exclusions, key prefix.
pub fn compile_plan(context: &CompileContext<'_>, plan: &QueryPlan) -> Result<Box<dyn Query>, EngineError> {
    Ok(compile_parts(context, plan)?.map_or_else(|| Box::new(EmptyQuery) as Box<dyn Query>, CompiledPlan::whole))
}

/// Filters, exclusions and key prefix without the query; `None` when they let everything through.
pub fn compile_filter(context: &CompileContext<'_>, plan: &QueryPlan) -> Result<Option<Box<dyn Query>>, EngineError> {
    check_text(context.index, plan)?;
    check_fields(context.index, plan)?;
    let filter = compile_conditions(context, plan)?;
    Ok(if filter.is_empty() { None } else { Some(filter.into_query()) })
}

/// The conditions of a plan besides its query.
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
    /// The query that scores; `None` when every document that the conditions let through scores `constant`.
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
                clauses.extend(conditions.exclusions.into_iter().map(|query| (Occur::MustNot, query)));
                Box::new(BoolQuery::new(clauses, 0).with_filters(conditions.filters))
            }
        }
    }
}

/// `None` when nothing can match. Query, conditions and searches by vectors are one bool: what asks for nothing is left
/// out, and when nothing is left of what was asked, nothing matches.
pub fn compile_parts(context: &CompileContext<'_>, plan: &QueryPlan) -> Result<Option<CompiledPlan>, EngineError> {
    check_text(context.index, plan)?;
    check_fields(context.index, plan)?;
    let conditions = compile_conditions(context, plan)?;
    let (scored, constant) = match &plan.query {
        None => (None, 1.0),
        Some(Node::MatchAll { boost }) => (None, *boost),
        Some(node) => {
            let context = context.within(plan.query.iter().chain(&plan.filter));
            (compile(&context, node)?, 1.0)
        }
    };
    let query_is_left_out = scored.is_none() && plan.query.as_ref().is_some_and(|node| !is_match_all(node));
    let asks_for_words = conditions.filters_asked || scored.is_some();
    let filters_are_left_out = conditions.left_out && plan.legs.is_empty();
    if (filters_are_left_out || query_is_left_out) && !asks_for_words {
        return Ok(None);
    }
    Ok(Some(CompiledPlan { scored, constant, conditions }))
}

fn compile_conditions(context: &CompileContext<'_>, plan: &QueryPlan) -> Result<Conditions, EngineError> {
    // Not beside the query's words: what filters let through is kept for queries of other words.
    let Clauses { found: mut filters, left_out } = compile_all(&context.within(&plan.filter), &plan.filter)?;
    let filters_asked = !filters.is_empty();
    if let Some(prefix) = plan.key_prefix.as_deref().filter(|prefix| !prefix.is_empty()) {
        filters.push(key_prefix_query(context.index, prefix));
    }
    filters.extend(compile_row_filters(context, plan)?);
    let exclusions = compile_apart(context, &plan.exclusion)?.found;
    Ok(Conditions { filters, exclusions, filters_asked, left_out })
}

/// A filter that asks for nothing permits nothing: a filter that was left out would show every row.
fn compile_row_filters(context: &CompileContext<'_>, plan: &QueryPlan) -> Result<Vec<Box<dyn Query>>, EngineError> {
    let compiled = plan.row_filter.iter().map(|node| {
        let query = compile(&context.within([node]), node)?;
        Ok(query.unwrap_or_else(|| Box::new(EmptyQuery)))
    });
    compiled.collect()
}

/// The documents that the row filters of `plan` permit; all of them without one.
pub fn compile_permitted(context: &CompileContext<'_>, plan: &QueryPlan) -> Result<Box<dyn Query>, EngineError> {
    let permitted = Conditions { filters: compile_row_filters(context, plan)?, ..Conditions::default() };
    Ok(permitted.into_query())
}

fn is_match_all(node: &Node) -> bool {
    matches!(node, Node::MatchAll { .. })
}

/// Several nodes, without those that ask for nothing.
#[derive(Default)]
struct Clauses {
    found: Vec<Box<dyn Query>>,
    left_out: bool,
}

impl Clauses {
    fn add(&mut self, query: Option<Box<dyn Query>>) {
        match query {
            Some(query) => self.found.push(query),
            None => self.left_out = true,
        }
    }
}

fn compile_all(context: &CompileContext<'_>, nodes: &[Node]) -> Result<Clauses, EngineError> {
    let mut clauses = Clauses::default();
    for node in nodes {
        clauses.add(compile(context, node)?);
    }
    Ok(clauses)
}

/// As `compile_all`, for nodes of which each is asked for by itself: the words of one say nothing about the text of another.
fn compile_apart(context: &CompileContext<'_>, nodes: &[Node]) -> Result<Clauses, EngineError> {
    let mut clauses = Clauses::default();
    for node in nodes {
        clauses.add(compile(&context.within([node]), node)?);
    }
    Ok(clauses)
}

fn boosted(query: Box<dyn Query>, boost: f32) -> Box<dyn Query> {
    if boost == 1.0 { query } else { Box::new(BoostQuery::new(query, boost)) }
}

/// `None` when the node asks for nothing: a text without any token (stop words, punctuation).
fn compile(context: &CompileContext<'_>, node: &Node) -> Result<Option<Box<dyn Query>>, EngineError> {
    let CompileContext { index, deadline, .. } = context;
    let query = match node {
        Node::MatchAll { boost } => boosted(every_document(), *boost),
        Node::MatchNone {} => Box::new(EmptyQuery),
        Node::Match { field, text, operator, analyzer, fuzziness, prefix_length, boost } => {
            let near = FuzzyOptions { fuzziness: *fuzziness, prefix_length: *prefix_length };
            let query = words_node(context, field.as_deref(), text, analyzer, near, |texts, words| {
                match_query(texts, words, *operator)
            })?;
            return Ok(query.map(|query| boosted(query, *boost)));
        }
        Node::Phrase { field, text, slop, analyzer, fuzziness, prefix_length, boost } => {
            let near = FuzzyOptions { fuzziness: *fuzziness, prefix_length: *prefix_length };
            let query = words_node(context, field.as_deref(), text, analyzer, near, |texts, words| {
                phrase_query(texts, words, *slop)
            })?;
            return Ok(query.map(|query| boosted(query, *boost)));
        }
        Node::Fuzzy { field, value, fuzziness, prefix_length, boost } => {
            let near = FuzzyOptions { fuzziness: *fuzziness, prefix_length: *prefix_length };
            boosted(fuzzy_query(index, field.as_deref(), value, near, deadline), *boost)
        }
        Node::Wildcard { field, pattern, boost } => {
            boosted(wildcard_query(index, field.as_deref(), pattern, deadline)?, *boost)
        }
        Node::Regexp { field, pattern, boost } => {
            boosted(regexp_query(index, field.as_deref(), pattern, deadline)?, *boost)
        }
        Node::TermsPhrase { field, terms, slop, fuzziness, boost } => {
            let shape = PhraseShape { slop: *slop, near: FuzzyOptions { fuzziness: *fuzziness, prefix_length: 0 } };
            boosted(terms_phrase_query(index, field.as_deref(), terms, shape, deadline), *boost)
        }
        Node::IpRange { field, cidr, boost } => boosted(ip_range_query(index, field, cidr, deadline)?, *boost),
        Node::GeoBox { field, top_left, bottom_right, boost } => {
            boosted(geo_query(field, GeoTest::in_box(*top_left, *bottom_right), deadline), *boost)
        }
        Node::GeoDistance { field, center, meters, boost } => {
            boosted(geo_query(field, GeoTest::near(*center, *meters)?, deadline), *boost)
        }
        Node::GeoPolygon { field, points, boost } => {
            boosted(geo_query(field, GeoTest::in_polygon(points)?, deadline), *boost)
        }
        Node::GeoShape { field, geometry, relation, boost } => {
            boosted(geo_query(field, GeoTest::related_to(geometry, *relation)?, deadline), *boost)
        }
        Node::Term { field, value, boost } => boosted(term_node(index, field.as_deref(), value), *boost),
        Node::Prefix { field, value, boost } => boosted(prefix_node(index, field.as_deref(), value), *boost),
        Node::Range { field, gt, gte, lt, lte, of, boost } => {
            boosted(range_query(index, field, &RangeBounds { gt, gte, lt, lte }, *of)?, *boost)
        }
        Node::Ids { ids, boost } => boosted(ids_query(index, ids), *boost),
        Node::BoolField { field, value, boost } => {
            boosted(term_node(index, Some(field), &TermValue::Boolean(*value)), *boost)
        }
        Node::Exists { field, boost } => boosted(exists_query(index, field), *boost),
        Node::BoolPrefix { fields, text, boost } => boosted(bool_prefix_query(index, fields, text), *boost),
        Node::Bool { must, should, must_not, filter, min_should, boost } => {
            let Some(query) = bool_node(context, [must, should, must_not, filter], *min_should)? else {
                return Ok(None);
            };
            boosted(query, *boost)
        }
    };
    Ok(Some(query))
}

/// A text that is read by an analyzer, and what `on_texts` makes of its words; `None` when it asks for nothing.
fn words_node(
    context: &CompileContext<'_>,
    field: Option<&str>,
    text: &str,
    analyzer: &Option<String>,
    near: FuzzyOptions,
    on_texts: impl Fn(&[TextField], Words<'_>) -> Box<dyn Query>,
) -> Result<Option<Box<dyn Query>>, EngineError> {
    let analyzer = named_analyzer(analyzer)?;
    let is_dropped = is_dropped(context.index, field, text, analyzer);
    if is_dropped && !field.is_some_and(|path| may_be_whole(context, path)) {
        return Ok(None);
    }
    let words = Words { context, text, analyzer, near };
    words.check()?;
    Ok(Some(on_text_or_values(context.index, field, text, is_dropped, |texts| on_texts(texts, words))))
}

fn geo_query(path: &str, test: GeoTest, deadline: &Deadline) -> Box<dyn Query> {
    Box::new(GeoQuery { path: path.to_owned(), test: Arc::new(test), deadline: deadline.clone() })
}

/// Whether a text that analysis leaves no word of may mean a whole value. Beside required words of its field it means none:
/// `title:(the fox)` asks for the fox, `source:a` for that very string, and so does `source:(a OR b)`.
fn may_be_whole(context: &CompileContext<'_>, path: &str) -> bool {
    let has_words = path != KEY && context.has_words_of(path);
    has_exact_form(context.index, path) && !has_words
}

/// `on_texts` where the path has analysed text; the whole value where it has only that or where analysis leaves no word of
/// `text` (`is_dropped`), and what `text` may stand for besides a string.
fn on_text_or_values(
    index: &IndexFields,
    field: Option<&str>,
    text: &str,
    is_dropped: bool,
    on_texts: impl Fn(&[TextField]) -> Box<dyn Query>,
) -> Box<dyn Query> {
    let Some(path) = field else { return on_texts(&index.default_texts()) };
    if path == KEY {
        return ids_query(index, &[text.to_owned()]);
    }
    let texts = index.texts_of(path);
    let means_whole = is_dropped || index.mapping.facts_of(path).may_lack_words;
    // `title.keyword` always means the whole strings of `title`.
    let exact = index.exact_fields(path).into_iter().filter(|field| means_whole || field.path != path);
    let mut queries: Vec<Box<dyn Query>> = exact.map(|field| index.string_query(&field, text)).collect();
    queries.extend(parsed_values(index, path, text));
    if !texts.is_empty() {
        queries.push(on_texts(&texts));
    }
    any_of(queries)
}

fn term_node(index: &IndexFields, field: Option<&str>, value: &TermValue) -> Box<dyn Query> {
    let Some(text) = text_of_term(&index.mapping, field, value) else {
        return match (field, value) {
            (Some(path), TermValue::Number(number)) => number_query(index, path, *number),
            (Some(path), TermValue::Boolean(boolean)) => boolean_query(index, path, *boolean),
            _ => Box::new(EmptyQuery),
        };
    };
    let Some(path) = field else {
        let tokens = index.default_texts();
        return any_of(tokens.iter().map(|text_field| term_query(text_field.term(&text))).collect());
    };
    if path == KEY {
        return ids_query(index, &[text]);
    }
    let exact = index.exact_fields(path);
    let mut queries: Vec<Box<dyn Query>> = exact.iter().map(|field| index.string_query(field, &text)).collect();
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
        return Box::new(ConstantScoreUnion(prefix_conditions(index, &index.default_texts(), prefix)));
    };
    if path == KEY {
        return key_prefix_query(index, prefix);
    }
    let mut conditions = prefix_conditions(index, &index.texts_of(path), prefix);
    for field in index.exact_fields(path) {
        conditions.push(Arc::new(StringRangeQuery::with_prefix(&field, prefix, &index.strings)));
    }
    Box::new(ConstantScoreUnion(conditions))
}

fn bool_node(
    context: &CompileContext<'_>,
    [must, should, must_not, filter]: [&Vec<Node>; 4],
    min_should: Option<usize>,
) -> Result<Option<Box<dyn Query>>, EngineError> {
    let (must, filter) = (compile_all(context, must)?, compile_all(context, filter)?);
    // One of several alternatives is enough, and each counts by itself: unless none of them has words.
    let is_choice = should.len() > 1 && min_should.is_none_or(|min| min <= 1);
    let are_apart = is_choice && !fields_with_words(context.index, should).is_empty();
    let should = if are_apart { compile_apart(context, should)? } else { compile_all(context, should)? };
    let must_not = compile_apart(context, must_not)?;
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
    Ok(Some(Box::new(BoolQuery::new(clauses, min_should).with_filters(filter.found))))
}
