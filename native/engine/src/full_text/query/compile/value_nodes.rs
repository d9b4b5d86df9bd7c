//! Conditions on values: numbers, booleans, dates, whole strings, keys.

use std::ops::Bound;

use serde_json::Value;
use tantivy::columnar::ColumnType;
use tantivy::query::{
    ConstScoreQuery, EmptyQuery, EmptyScorer, EnableScoring, ExistsQuery, Explanation, Query, RangeQuery, Scorer,
    Weight,
};
use tantivy::{DateTime, DocId, Score, SegmentReader, Term};

use crate::error::EngineError;
use crate::full_text::dates::{parse_date, parse_date_bound};
use crate::full_text::fields::{KEY, PRESENT_PATH};
use crate::full_text::mapping::TableMapping;
use crate::full_text::plan::{RangeKind, TermValue};
use crate::full_text::query::compile::clauses::{any_of, every_document, invalid, term_query};
use crate::full_text::query::compile::index_fields::{ExactField, IndexFields, column_name};
use crate::full_text::query::terms::string_columns::StringRangeQuery;
use crate::full_text::query::terms::term_range::TermRangeQuery;
use crate::full_text::segments::as_integer;

/// The string that a term asks for; none where it asks for a number or a boolean, as a field holds them unless it holds
/// nothing but strings.
pub fn text_of_term(mapping: &TableMapping, field: Option<&str>, value: &TermValue) -> Option<String> {
    match value {
        TermValue::Text(text) => Some(text.clone()),
        TermValue::Number(number) => {
            field.is_none_or(|path| mapping.facts_of(path).numbers_are_texts).then(|| number.to_string())
        }
        TermValue::Boolean(boolean) => {
            field.is_none_or(|path| mapping.facts_of(path).booleans_are_texts).then(|| boolean.to_string())
        }
    }
}

pub fn number_query(index: &IndexFields, path: &str, number: f64) -> Box<dyn Query> {
    match as_integer(number) {
        Some(integer) => {
            let mut term = index.value_term(path);
            term.append_type_and_fast_value(integer);
            term_query(term)
        }
        None => number_range(index, path, Bound::Included(number), Bound::Included(number)),
    }
}

pub fn boolean_query(index: &IndexFields, path: &str, boolean: bool) -> Box<dyn Query> {
    let mut term = index.value_term(path);
    term.append_type_and_fast_value(boolean);
    term_query(term)
}

pub fn date_query(index: &IndexFields, path: &str, date: DateTime) -> Box<dyn Query> {
    date_range(index, path, Bound::Included(date), Bound::Included(date))
}

/// The values that `text` may stand for besides a string: a number, a boolean, a date.
pub fn parsed_values(index: &IndexFields, path: &str, text: &str) -> Vec<Box<dyn Query>> {
    let mut queries: Vec<Box<dyn Query>> = Vec::new();
    if let Ok(number) = text.parse::<f64>()
        && number.is_finite()
    {
        queries.push(number_query(index, path, number));
    }
    if let Ok(boolean) = text.parse::<bool>() {
        queries.push(boolean_query(index, path, boolean));
    }
    if let Some(date) = parse_date(text) {
        queries.push(date_query(index, path, date));
    }
    queries
}

pub fn ids_query(index: &IndexFields, ids: &[String]) -> Box<dyn Query> {
    let fields = index.exact_fields(KEY);
    let keys = ids.iter().flat_map(|id| fields.iter().map(|field| index.string_query(field, id)));
    Box::new(ConstScoreQuery::new(any_of(keys.collect()), 1.0))
}

/// Keys that begin with `prefix`.
pub fn key_prefix_query(index: &IndexFields, prefix: &str) -> Box<dyn Query> {
    let fields = index.exact_fields(KEY);
    let query = |field: &ExactField| StringRangeQuery::with_prefix(field, prefix, &index.strings);
    any_of(fields.iter().map(|field| Box::new(query(field)) as Box<dyn Query>).collect())
}

/// No document may have a NUL in a name; in an index it ends the path, and what follows would be taken for a value.
fn names_no_member(path: &str) -> bool {
    path.contains('\0')
}

pub fn exists_query(index: &IndexFields, path: &str) -> Box<dyn Query> {
    if names_no_member(path) {
        return Box::new(EmptyQuery);
    }
    if path == KEY {
        return every_document();
    }
    let below = format!("{path}.");
    any_of(vec![
        Box::new(ConstScoreQuery::new(Box::new(ExistsQuery::new(column_name(path), true)), 1.0)),
        Box::new(ConstScoreQuery::new(term_query(index.string_term(PRESENT_PATH, path)), 1.0)),
        Box::new(TermRangeQuery::with_prefix(&index.string_term(PRESENT_PATH, &below))),
    ])
}

fn date_range(index: &IndexFields, path: &str, lower: Bound<DateTime>, upper: Bound<DateTime>) -> Box<dyn Query> {
    let term = |date: DateTime| {
        let mut term = index.column_term(path);
        term.append_type_and_fast_value(date);
        term
    };
    in_range(lower.map(term), upper.map(term))
}

/// Scores 1. The range alone is a scorer of every document where it holds a segment's values, which a conjunction
/// leaves out with its score.
fn in_range(lower: Bound<Term>, upper: Bound<Term>) -> Box<dyn Query> {
    Box::new(ConstScoreQuery::new(Box::new(RangeQuery::new(lower, upper)), 1.0))
}

fn number_range(index: &IndexFields, path: &str, lower: Bound<f64>, upper: Bound<f64>) -> Box<dyn Query> {
    let (lower, upper) = (lower.map(without_sign_of_zero), upper.map(without_sign_of_zero));
    let is_below_integers = match upper {
        Bound::Included(number) => number < LEAST_INTEGER,
        Bound::Excluded(number) => number <= LEAST_INTEGER,
        Bound::Unbounded => false,
    };
    let is_integer = |bound: &Bound<f64>| match bound {
        Bound::Included(number) | Bound::Excluded(number) => as_integer(*number).is_some(),
        Bound::Unbounded => true,
    };
    // Tantivy wants both bounds to be of one type.
    let as_integers = is_integer(&lower) && is_integer(&upper);
    let term = |number: f64| {
        let mut term = index.column_term(path);
        match as_integer(number).filter(|_| as_integers) {
            Some(integer) => term.append_type_and_fast_value(integer),
            None => term.append_type_and_fast_value(number),
        }
        term
    };
    let range = in_range(lower.map(term), upper.map(term));
    if is_below_integers { Box::new(FractionsQuery { column: column_name(path), range }) } else { range }
}

/// The least of 64 bits.
const LEAST_INTEGER: f64 = i64::MIN as f64;

/// Columns hold no zero with a sign: it would be a number below zero there.
fn without_sign_of_zero(number: f64) -> f64 {
    number + 0.0
}

/// A range of numbers in segments that hold the path's as doubles. Where all of them are integers, Tantivy takes an
/// upper bound below the least integer for no bound.
#[derive(Debug)]
struct FractionsQuery {
    column: String,
    range: Box<dyn Query>,
}

impl Clone for FractionsQuery {
    fn clone(&self) -> Self {
        Self { column: self.column.clone(), range: self.range.box_clone() }
    }
}

impl Query for FractionsQuery {
    fn weight(&self, scoring: EnableScoring<'_>) -> tantivy::Result<Box<dyn Weight>> {
        Ok(Box::new(FractionsWeight { column: self.column.clone(), range: self.range.weight(scoring)? }))
    }
}

struct FractionsWeight {
    column: String,
    range: Box<dyn Weight>,
}

impl Weight for FractionsWeight {
    fn scorer(&self, reader: &SegmentReader, boost: Score) -> tantivy::Result<Box<dyn Scorer>> {
        let columns = reader.fast_fields().dynamic_column_handles(&self.column)?;
        if columns.iter().any(|column| column.column_type() == ColumnType::F64) {
            return self.range.scorer(reader, boost);
        }
        Ok(Box::new(EmptyScorer))
    }

    fn explain(&self, reader: &SegmentReader, document: DocId) -> tantivy::Result<Explanation> {
        self.range.explain(reader, document)
    }
}

/// Whole strings in any of the fields, between two bounds.
fn string_range(
    index: &IndexFields,
    fields: &[ExactField],
    lower: &Bound<String>,
    upper: &Bound<String>,
) -> Box<dyn Query> {
    let (lower, upper) = (lower.as_ref().map(String::as_str), upper.as_ref().map(String::as_str));
    let query = |field: &ExactField| StringRangeQuery::new(field, lower, upper, &index.strings);
    let range = |field| Box::new(query(field)) as Box<dyn Query>;
    any_of(fields.iter().map(range).collect())
}

pub struct RangeBounds<'a> {
    pub gt: &'a Option<Value>,
    pub gte: &'a Option<Value>,
    pub lt: &'a Option<Value>,
    pub lte: &'a Option<Value>,
}

impl<'a> RangeBounds<'a> {
    fn lower(&self) -> Bound<&'a Value> {
        match (self.gt, self.gte) {
            (Some(bound), _) => Bound::Excluded(bound),
            (None, Some(bound)) => Bound::Included(bound),
            (None, None) => Bound::Unbounded,
        }
    }

    fn upper(&self) -> Bound<&'a Value> {
        match (self.lt, self.lte) {
            (Some(bound), _) => Bound::Excluded(bound),
            (None, Some(bound)) => Bound::Included(bound),
            (None, None) => Bound::Unbounded,
        }
    }
}

fn as_date(value: &Value) -> Option<DateTime> {
    value.as_str().and_then(parse_date_bound)
}

fn map_bound<T>(bound: Bound<&Value>, read: impl Fn(&Value) -> Option<T>, what: &str) -> Result<Bound<T>, EngineError> {
    let read = |value: &Value| read(value).ok_or_else(|| invalid(format!("{value} is not {what}")));
    Ok(match bound {
        Bound::Included(value) => Bound::Included(read(value)?),
        Bound::Excluded(value) => Bound::Excluded(read(value)?),
        Bound::Unbounded => Bound::Unbounded,
    })
}

/// The values between two bounds.
pub enum ValueRange {
    Numbers(Bound<f64>, Bound<f64>),
    Dates(Bound<DateTime>, Bound<DateTime>),
    Strings(Bound<String>, Bound<String>),
    /// Dates, and strings where a date is kept as the string that it was.
    DatesOrStrings((Bound<DateTime>, Bound<DateTime>), (Bound<String>, Bound<String>)),
}

impl ValueRange {
    /// `None` without bounds.
    pub fn of(path: &str, bounds: &RangeBounds<'_>, kind: RangeKind) -> Result<Option<Self>, EngineError> {
        let (lower, upper) = (bounds.lower(), bounds.upper());
        let given: Vec<&Value> = [lower, upper]
            .into_iter()
            .filter_map(|bound| match bound {
                Bound::Included(value) | Bound::Excluded(value) => Some(value),
                Bound::Unbounded => None,
            })
            .collect();
        if given.is_empty() {
            return Ok(None);
        }
        let kind = match kind {
            _ if path == KEY => RangeKind::Term,
            RangeKind::Auto if given.iter().all(|value| value.is_number()) => RangeKind::Number,
            RangeKind::Auto if given.iter().all(|value| as_date(value).is_some()) => {
                let dates = (map_bound(lower, as_date, "a date")?, map_bound(upper, as_date, "a date")?);
                return Ok(Some(Self::DatesOrStrings(dates, (as_text(lower)?, as_text(upper)?))));
            }
            other => other,
        };
        Ok(Some(match kind {
            RangeKind::Number => Self::Numbers(
                map_bound(lower, Value::as_f64, "a number")?,
                map_bound(upper, Value::as_f64, "a number")?,
            ),
            RangeKind::Date => Self::Dates(map_bound(lower, as_date, "a date")?, map_bound(upper, as_date, "a date")?),
            RangeKind::Term | RangeKind::Auto => Self::Strings(as_text(lower)?, as_text(upper)?),
        }))
    }
}

pub fn range_query(
    index: &IndexFields,
    path: &str,
    bounds: &RangeBounds<'_>,
    kind: RangeKind,
) -> Result<Box<dyn Query>, EngineError> {
    let between = ValueRange::of(path, bounds, kind)?;
    Ok(match between {
        None => exists_query(index, path),
        Some(_) if names_no_member(path) => Box::new(EmptyQuery),
        Some(ValueRange::Numbers(lower, upper)) => number_range(index, path, lower, upper),
        Some(ValueRange::Dates(lower, upper)) => date_range(index, path, lower, upper),
        Some(ValueRange::Strings(lower, upper)) => string_range(index, &index.exact_fields(path), &lower, &upper),
        Some(ValueRange::DatesOrStrings((lower, upper), (low, high))) => {
            let mut queries = vec![date_range(index, path, lower, upper)];
            let texts = index.fields_of_date_texts(path);
            if !texts.is_empty() {
                queries.push(string_range(index, &texts, &low, &high));
            }
            any_of(queries)
        }
    })
}

fn as_text(bound: Bound<&Value>) -> Result<Bound<String>, EngineError> {
    let text = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    };
    map_bound(bound, text, "a string")
}
