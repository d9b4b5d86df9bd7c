//! Which buckets of one aggregation a document falls into, within one segment.

use std::collections::HashMap;

use tantivy::{DocId, SegmentReader, f64_to_u64, i64_to_u64, u64_to_f64, u64_to_i64};

use crate::error::EngineError;
use crate::full_text::aggregate::bucket_key::BucketKey;
use crate::full_text::aggregate::collect::columns::{ColumnReader, GeoPoints, Numbers, PathColumns};
use crate::full_text::aggregate::geo::GeoPoint;
use crate::full_text::dates::{parse_date_bound, seconds_of};
use crate::full_text::plan::{AggregationKind, CalendarInterval, DateBounds, NumberBounds};
use crate::full_text::query::IndexFields;

/// Combinations of values that one document may have in a `terms` aggregation over several fields.
const COMBINATIONS_MAX: usize = 10_000;

/// Beyond this the numbers of neighbouring histogram buckets are no longer different doubles.
const INTERVALS_MAX: f64 = 9_007_199_254_740_992.0;

/// A key within its segment: what kind of value, and bits that stand for the value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LocalKey {
    pub kind: u8,
    pub bits: u64,
}

pub const NUMBER: u8 = 0;
pub const DATE: u8 = 1;
const BOOLEAN: u8 = 2;
/// The position of a range, or the number of an interval.
pub const NUMBERED: u8 = 3;
const CELL: u8 = 4;
const TUPLE: u8 = 5;
/// And above: the position in the dictionary of a text column.
pub const TEXT: u8 = 6;

/// Keys, and the positions of their documents in the block; those of one kind are in the order of the documents.
#[derive(Default)]
pub struct FoundKeys {
    pub positions: Vec<u32>,
    pub keys: Vec<LocalKey>,
}

impl FoundKeys {
    fn push(&mut self, position: u32, kind: u8, bits: u64) {
        self.positions.push(position);
        self.keys.push(LocalKey { kind, bits });
    }
}

pub enum KeySource {
    Terms(PathColumns),
    Tuples { fields: Vec<PathColumns>, tuples: Vec<Box<[LocalKey]>>, known: HashMap<Box<[LocalKey]>, u64> },
    Ranges { numbers: Option<Numbers>, ranges: Vec<(f64, f64)> },
    DateRanges { dates: Option<ColumnReader<tantivy::DateTime>>, ranges: Vec<(i128, i128)> },
    Histogram { numbers: Option<Numbers>, interval: f64 },
    DateHistogram { dates: Option<ColumnReader<tantivy::DateTime>>, interval: CalendarInterval },
    Cells { points: GeoPoints, precision: u32 },
    Distances { points: GeoPoints, origin: GeoPoint, ranges: Vec<(f64, f64)> },
}

fn number_ranges(ranges: &[NumberBounds], unit: f64) -> Vec<(f64, f64)> {
    let bound = |bound: Option<f64>, missing: f64| bound.map_or(missing, |bound| bound * unit);
    ranges.iter().map(|range| (bound(range.from, f64::NEG_INFINITY), bound(range.to, f64::INFINITY))).collect()
}

/// A date of a plan, as its bits.
pub fn plan_date(text: &str) -> Result<i64, EngineError> {
    let date = parse_date_bound(text);
    date.map(tantivy::DateTime::into_timestamp_nanos)
        .ok_or_else(|| EngineError::new("invalid_query", format!("\"{text}\" is not a date")))
}

fn date_ranges(ranges: &[DateBounds]) -> Result<Vec<(i128, i128)>, EngineError> {
    let bound = |bound: &Option<String>, missing: i128| match bound {
        Some(text) => plan_date(text).map(i128::from),
        None => Ok(missing),
    };
    ranges.iter().map(|range| Ok((bound(&range.from, i128::MIN)?, bound(&range.to, i128::MAX)?))).collect()
}

impl KeySource {
    /// `None` for what makes no buckets.
    pub fn open(
        reader: &SegmentReader,
        index: &IndexFields,
        of: &AggregationKind,
    ) -> Result<Option<Self>, EngineError> {
        let columns = |path: &str| PathColumns::open(reader, index, path);
        let points = |path: &str| GeoPoints::open(reader, index, path);
        Ok(Some(match of {
            AggregationKind::Terms { fields, .. } => match fields.as_slice() {
                [field] => Self::Terms(columns(field)?),
                fields => Self::Tuples {
                    fields: fields.iter().map(|field| columns(field)).collect::<Result<_, _>>()?,
                    tuples: Vec::new(),
                    known: HashMap::new(),
                },
            },
            AggregationKind::SignificantTerms { field, .. } => Self::Terms(columns(field)?),
            AggregationKind::Range { field, ranges } => {
                Self::Ranges { numbers: columns(field)?.numbers, ranges: number_ranges(ranges, 1.0) }
            }
            AggregationKind::DateRange { field, ranges } => {
                Self::DateRanges { dates: columns(field)?.dates, ranges: date_ranges(ranges)? }
            }
            AggregationKind::Histogram { field, interval, .. } => {
                Self::Histogram { numbers: columns(field)?.numbers, interval: *interval }
            }
            AggregationKind::DateHistogram { field, calendar_interval, .. } => {
                Self::DateHistogram { dates: columns(field)?.dates, interval: *calendar_interval }
            }
            AggregationKind::GeohashGrid { field, precision, .. } => {
                Self::Cells { points: points(field)?, precision: *precision }
            }
            AggregationKind::GeoDistance { field, lat, lon, unit_meters, ranges } => Self::Distances {
                points: points(field)?,
                origin: GeoPoint { lat: *lat, lon: *lon },
                ranges: number_ranges(ranges, *unit_meters),
            },
            AggregationKind::Numbers { .. } | AggregationKind::Count { .. } | AggregationKind::Cardinality { .. } => {
                return Ok(None);
            }
        }))
    }

    /// Whether a document may be found with the same key twice.
    pub fn may_repeat(&self) -> bool {
        match self {
            Self::Terms(columns) => columns.has_arrays(),
            Self::Histogram { numbers, .. } => numbers.as_ref().is_some_and(Numbers::has_arrays),
            Self::DateHistogram { dates, .. } => dates.as_ref().is_some_and(ColumnReader::has_arrays),
            _ => true,
        }
    }

    /// Distinct strings of the first text column.
    pub fn text_count(&self) -> usize {
        match self {
            Self::Terms(columns) => columns.texts.first().map_or(0, |texts| texts.column.dictionary().num_terms()),
            _ => 0,
        }
    }

    pub fn find(&mut self, docs: &[DocId], found: &mut FoundKeys) -> Result<(), EngineError> {
        found.positions.clear();
        found.keys.clear();
        match self {
            Self::Terms(columns) => find_terms(columns, docs, found),
            Self::Tuples { fields, tuples, known } => return find_tuples(fields, tuples, known, docs, found),
            Self::Ranges { numbers: Some(numbers), ranges } => {
                let numbers = numbers.read(docs);
                for (position, number) in numbers.positions.iter().zip(&numbers.values) {
                    find_ranges(ranges, *number, *position, found);
                }
            }
            Self::DateRanges { dates: Some(dates), ranges } => {
                let dates = dates.read(docs);
                for (position, date) in dates.positions.iter().zip(&dates.values) {
                    find_ranges(ranges, i128::from(date.into_timestamp_nanos()), *position, found);
                }
            }
            Self::Histogram { numbers: Some(numbers), interval } => {
                let numbers = numbers.read(docs);
                for (position, number) in numbers.positions.iter().zip(&numbers.values) {
                    let intervals = number / *interval;
                    if intervals.abs() > INTERVALS_MAX {
                        let message = format!("a histogram with the interval {interval:?} cannot place {number:?}");
                        return Err(EngineError::new("limit_exceeded", message));
                    }
                    let towards_zero = intervals as i64;
                    let at = towards_zero - i64::from(intervals < towards_zero as f64);
                    found.push(*position, NUMBERED, i64_to_u64(at));
                }
            }
            Self::DateHistogram { dates: Some(dates), interval } => {
                let dates = dates.read(docs);
                for (position, date) in dates.positions.iter().zip(&dates.values) {
                    let seconds = seconds_of(date.into_timestamp_nanos());
                    found.push(*position, NUMBERED, i64_to_u64(interval.number_of(seconds)));
                }
            }
            Self::Cells { points, precision } => {
                let points = points.read(docs);
                for (position, point) in points.positions.iter().zip(&points.values) {
                    found.push(*position, CELL, point.cell(*precision));
                }
            }
            Self::Distances { points, origin, ranges } => {
                let points = points.read(docs);
                for (position, point) in points.positions.iter().zip(&points.values) {
                    find_ranges(ranges, origin.distance_to(*point), *position, found);
                }
            }
            Self::Ranges { .. } | Self::DateRanges { .. } | Self::Histogram { .. } | Self::DateHistogram { .. } => {}
        }
        Ok(())
    }

    /// The values outside of the segment that the keys stand for, in their order.
    pub fn resolve(&self, keys: &[LocalKey]) -> Result<Vec<BucketKey>, EngineError> {
        match self {
            Self::Terms(columns) => resolve_values(columns, keys),
            Self::Tuples { fields, tuples, .. } => resolve_tuples(fields, tuples, keys),
            _ => Ok(keys.iter().map(|key| value_of(*key)).collect()),
        }
    }
}

fn find_ranges<T: PartialOrd + Copy>(ranges: &[(T, T)], value: T, position: u32, found: &mut FoundKeys) {
    for (at, (from, to)) in ranges.iter().enumerate() {
        if value >= *from && value < *to {
            found.push(position, NUMBERED, i64_to_u64(at as i64));
        }
    }
}

fn find_terms(columns: &mut PathColumns, docs: &[DocId], found: &mut FoundKeys) {
    if let Some(numbers) = &mut columns.numbers {
        let numbers = numbers.read(docs);
        for (position, number) in numbers.positions.iter().zip(&numbers.values) {
            // Zero has one key, whatever its sign.
            found.push(*position, NUMBER, f64_to_u64(number + 0.0));
        }
    }
    if let Some(dates) = &mut columns.dates {
        let dates = dates.read(docs);
        for (position, date) in dates.positions.iter().zip(&dates.values) {
            found.push(*position, DATE, i64_to_u64(date.into_timestamp_nanos()));
        }
    }
    if let Some(booleans) = &mut columns.booleans {
        let booleans = booleans.read(docs);
        for (position, boolean) in booleans.positions.iter().zip(&booleans.values) {
            found.push(*position, BOOLEAN, u64::from(*boolean));
        }
    }
    for (at, texts) in columns.texts.iter_mut().enumerate() {
        let ords = texts.read(docs);
        found.positions.extend_from_slice(&ords.positions);
        found.keys.extend(ords.values.iter().map(|ord| LocalKey { kind: TEXT + at as u8, bits: *ord }));
    }
}

/// Each combination of one value of every field; a document without a value of some field has none.
fn find_tuples(
    fields: &mut [PathColumns],
    tuples: &mut Vec<Box<[LocalKey]>>,
    known: &mut HashMap<Box<[LocalKey]>, u64>,
    docs: &[DocId],
    found: &mut FoundKeys,
) -> Result<(), EngineError> {
    let mut values: Vec<Vec<Vec<LocalKey>>> = vec![vec![Vec::new(); fields.len()]; docs.len()];
    let mut of_field = FoundKeys::default();
    for (at, columns) in fields.iter_mut().enumerate() {
        of_field.positions.clear();
        of_field.keys.clear();
        find_terms(columns, docs, &mut of_field);
        for (position, key) in of_field.positions.iter().zip(&of_field.keys) {
            values[*position as usize][at].push(*key);
        }
    }
    for (position, values) in values.iter().enumerate() {
        let combinations = values.iter().fold(1usize, |product, keys| product.saturating_mul(keys.len()));
        if combinations > COMBINATIONS_MAX {
            let message =
                format!("a document has more than {COMBINATIONS_MAX} combinations of values for a bucket key");
            return Err(EngineError::new("limit_exceeded", message));
        }
        for number in 0..combinations {
            let mut rest = number;
            let tuple: Box<[LocalKey]> = values
                .iter()
                .map(|keys| {
                    let key = keys[rest % keys.len()];
                    rest /= keys.len();
                    key
                })
                .collect();
            let next = tuples.len() as u64;
            let id = *known.entry(tuple).or_insert_with_key(|tuple| {
                tuples.push(tuple.clone());
                next
            });
            found.push(position as u32, TUPLE, id);
        }
    }
    Ok(())
}

fn value_of(key: LocalKey) -> BucketKey {
    match key.kind {
        NUMBER => BucketKey::Number(key.bits),
        DATE => BucketKey::Date(u64_to_i64(key.bits)),
        BOOLEAN => BucketKey::Boolean(key.bits != 0),
        CELL => BucketKey::Cell(key.bits),
        _ => BucketKey::Numbered(u64_to_i64(key.bits)),
    }
}

/// The double that a number's key stands for.
pub fn number_of_bits(bits: u64) -> f64 {
    u64_to_f64(bits)
}

fn resolve_values(columns: &PathColumns, keys: &[LocalKey]) -> Result<Vec<BucketKey>, EngineError> {
    let mut resolved: Vec<BucketKey> = keys.iter().map(|key| value_of(*key)).collect();
    for (at, texts) in columns.texts.iter().enumerate() {
        let kind = TEXT + at as u8;
        let mut ords: Vec<(u64, usize)> =
            keys.iter().enumerate().filter(|(_, key)| key.kind == kind).map(|(at, key)| (key.bits, at)).collect();
        ords.sort_unstable();
        let sorted: Vec<u64> = ords.iter().map(|(ord, _)| *ord).collect();
        let mut points = ords.iter().map(|(_, at)| *at);
        texts.resolve(&sorted, |text| {
            if let Some(at) = points.next() {
                resolved[at] = BucketKey::Text(String::from_utf8_lossy(text).into());
            }
        })?;
    }
    Ok(resolved)
}

fn resolve_tuples(
    fields: &[PathColumns],
    tuples: &[Box<[LocalKey]>],
    keys: &[LocalKey],
) -> Result<Vec<BucketKey>, EngineError> {
    let mut by_field = Vec::with_capacity(fields.len());
    for (at, columns) in fields.iter().enumerate() {
        let of_field: Vec<LocalKey> = keys.iter().map(|key| tuples[key.bits as usize][at]).collect();
        by_field.push(resolve_values(columns, &of_field)?.into_iter());
    }
    let mut tuple = || BucketKey::Tuple(by_field.iter_mut().flat_map(Iterator::next).collect());
    Ok(keys.iter().map(|_| tuple()).collect())
}
