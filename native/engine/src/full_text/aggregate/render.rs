//! Merged answers as the JSON that a caller sees.

use std::cmp::Ordering;

use serde_json::{Map, Value, json};

use super::answers::partial::{Partial, PartialBucket, PartialBuckets};
use super::bucket_key::BucketKey;
use super::budget::{BUCKETS_MAX, too_many_buckets};
use super::collect::group_keys::{number_of_bits, plan_date};
use super::context::Context;
use super::geo::geohash;
use super::significance::Frequencies;
use super::value_text::{milliseconds_of, number_json};
use crate::error::EngineError;
use crate::full_text::dates::{date_text, date_text_of_nanoseconds};
use crate::full_text::plan::{Aggregation, AggregationKind, CalendarInterval, SignificanceAlgorithm};

/// An object with a member for each aggregation of `list`.
///
/// Errors: `limit_exceeded` for too many buckets; `query_timeout`.
pub fn render(
    list: &[Aggregation],
    partials: Vec<Partial>,
    backgrounds: &[Partial],
    context: &Context<'_>,
) -> Result<Value, EngineError> {
    let in_order = backgrounds.iter().map(|_| None).collect();
    Renderer { buckets: 0, backgrounds, in_order, context }.members(list, partials)
}

struct Renderer<'a> {
    /// Rendered so far.
    buckets: usize,
    backgrounds: &'a [Partial],
    /// The values of each background, sorted when they are first asked for.
    in_order: Vec<Option<Vec<&'a BucketKey>>>,
    context: &'a Context<'a>,
}

impl Renderer<'_> {
    fn members(&mut self, list: &[Aggregation], partials: Vec<Partial>) -> Result<Value, EngineError> {
        let mut members = Map::new();
        for (aggregation, partial) in list.iter().zip(partials) {
            members.insert(aggregation.name.clone(), self.one(aggregation, partial)?);
        }
        Ok(Value::Object(members))
    }

    fn one(&mut self, aggregation: &Aggregation, partial: Partial) -> Result<Value, EngineError> {
        Ok(match (partial, &aggregation.of) {
            (Partial::Numbers(summary), AggregationKind::Numbers { metric, .. }) => summary.to_json(*metric),
            (Partial::Count(count), _) => json!({ "value": count }),
            (Partial::Distinct(distinct), _) => distinct.to_json(),
            (Partial::Rendered(answer), _) => answer,
            (Partial::Buckets(buckets), _) => {
                self.context.is_over()?;
                json!({ "buckets": self.buckets_of(aggregation, buckets)? })
            }
            (Partial::Numbers(_), _) => return Err(EngineError::internal("an answer of another aggregation")),
        })
    }

    fn buckets_of(
        &mut self,
        aggregation: &Aggregation,
        mut buckets: PartialBuckets,
    ) -> Result<Vec<Value>, EngineError> {
        match &aggregation.of {
            AggregationKind::Terms { size, min_doc_count, background, .. } => {
                if let Some(background) = background {
                    self.add_empty(aggregation, &mut buckets, *background, *size)?;
                }
                self.most_frequent(aggregation, buckets, *size, *min_doc_count)
            }
            AggregationKind::GeohashGrid { size, .. } => self.most_frequent(aggregation, buckets, *size, 1),
            AggregationKind::SignificantTerms { size, min_doc_count, algorithm, background, .. } => {
                let background = self.backgrounds.get(*background);
                self.most_significant(aggregation, buckets, (*size, *min_doc_count), *algorithm, background)
            }
            AggregationKind::Range { ranges, .. } | AggregationKind::GeoDistance { ranges, .. } => {
                let bounds = ranges.iter().map(|range| {
                    let mut members = Map::new();
                    members.extend(range.from.map(|from| ("from".to_owned(), number_json(from))));
                    members.extend(range.to.map(|to| ("to".to_owned(), number_json(to))));
                    Ok((range.name.as_str(), members))
                });
                self.ranges(aggregation, &mut buckets, bounds)
            }
            AggregationKind::DateRange { ranges, .. } => {
                let bounds = ranges.iter().map(|range| {
                    let mut members = Map::new();
                    for (name, text) in [("from", &range.from), ("to", &range.to)] {
                        if let Some(text) = text {
                            let date = plan_date(text)?;
                            members.insert(name.to_owned(), number_json(milliseconds_of(date)));
                            members.insert(format!("{name}_as_string"), Value::from(date_text(date)));
                        }
                    }
                    Ok((range.name.as_str(), members))
                });
                self.ranges(aggregation, &mut buckets, bounds)
            }
            AggregationKind::Histogram { interval, min_doc_count, size, .. } => {
                let key = |number: i64| {
                    let key = number_json(number as f64 * interval);
                    let shown = key.to_string();
                    (key, shown)
                };
                self.intervals(aggregation, buckets, *min_doc_count, *size, key)
            }
            AggregationKind::DateHistogram { calendar_interval, min_doc_count, size, .. } => {
                let key = |number: i64| interval_key(*calendar_interval, number);
                self.intervals(aggregation, buckets, *min_doc_count, *size, key)
            }
            AggregationKind::Numbers { .. } | AggregationKind::Count { .. } | AggregationKind::Cardinality { .. } => {
                Err(EngineError::internal("buckets of an aggregation that makes none"))
            }
        }
    }

    /// Adds the first values of the background that are in no bucket, as many as an answer of `size` has room for.
    fn add_empty(
        &mut self,
        aggregation: &Aggregation,
        buckets: &mut PartialBuckets,
        background: usize,
        size: usize,
    ) -> Result<(), EngineError> {
        let Some(Partial::Buckets(of_background)) = self.backgrounds.get(background) else {
            return Err(EngineError::internal("an aggregation without its background"));
        };
        let room = size.saturating_sub(buckets.by_key.len());
        if room == 0 {
            return Ok(());
        }
        let in_order = self.in_order[background].get_or_insert_with(|| {
            let mut keys: Vec<&BucketKey> = of_background.by_key.keys().collect();
            keys.sort_unstable();
            keys
        });
        let absent = in_order.iter().filter(|key| !buckets.by_key.contains_key(**key)).take(room);
        let absent: Vec<BucketKey> = absent.map(|key| (*key).clone()).collect();
        let empty = || PartialBucket { doc_count: 0, sub: aggregation.sub.iter().map(Partial::empty).collect() };
        buckets.by_key.extend(absent.into_iter().map(|key| (key, empty())));
        Ok(())
    }

    fn most_frequent(
        &mut self,
        aggregation: &Aggregation,
        buckets: PartialBuckets,
        size: usize,
        min_doc_count: u64,
    ) -> Result<Vec<Value>, EngineError> {
        let mut found: Vec<(BucketKey, PartialBucket)> = buckets.by_key.into_iter().collect();
        found.retain(|(_, bucket)| bucket.doc_count >= min_doc_count);
        let order = |a: &(BucketKey, PartialBucket), b: &(BucketKey, PartialBucket)| {
            b.1.doc_count.cmp(&a.1.doc_count).then_with(|| a.0.cmp(&b.0))
        };
        first(&mut found, size, order);
        let rendered = found.into_iter().map(|(key, bucket)| {
            let members = key_members(&aggregation.of, &key);
            self.bucket(aggregation, members, Some(bucket))
        });
        rendered.collect()
    }

    fn most_significant(
        &mut self,
        aggregation: &Aggregation,
        buckets: PartialBuckets,
        (size, min_doc_count): (usize, u64),
        algorithm: SignificanceAlgorithm,
        background: Option<&Partial>,
    ) -> Result<Vec<Value>, EngineError> {
        let Some(Partial::Buckets(background)) = background else {
            return Err(EngineError::internal("an aggregation without its background"));
        };
        let mut found = Vec::new();
        for (key, bucket) in buckets.by_key {
            let in_background = background.by_key.get(&key).map_or(0, |bucket| bucket.doc_count);
            let score =
                Frequencies::new(bucket.doc_count, buckets.docs, in_background, background.docs).score(algorithm);
            if bucket.doc_count >= min_doc_count && score > 0.0 {
                found.push((score, in_background.max(bucket.doc_count), key, bucket));
            }
        }
        first(&mut found, size, |a, b| b.0.total_cmp(&a.0).then_with(|| a.2.cmp(&b.2)));
        let rendered = found.into_iter().map(|(score, in_background, key, bucket)| {
            let mut members = key_members(&aggregation.of, &key);
            members.insert("score".to_owned(), Value::from(score));
            members.insert("bg_count".to_owned(), Value::from(in_background));
            self.bucket(aggregation, members, Some(bucket))
        });
        rendered.collect()
    }

    /// All ranges in the order of the request, empty ones too.
    fn ranges<'r>(
        &mut self,
        aggregation: &Aggregation,
        buckets: &mut PartialBuckets,
        ranges: impl Iterator<Item = Result<(&'r str, Map<String, Value>), EngineError>>,
    ) -> Result<Vec<Value>, EngineError> {
        let rendered = ranges.enumerate().map(|(at, range)| {
            let (name, bounds) = range?;
            let mut members = Map::new();
            members.insert("key".to_owned(), Value::from(name));
            members.extend(bounds);
            self.bucket(aggregation, members, buckets.by_key.remove(&BucketKey::Numbered(at as i64)))
        });
        rendered.collect()
    }

    /// From the first interval to the last, those between without documents too unless `min_doc_count` leaves them out.
    fn intervals(
        &mut self,
        aggregation: &Aggregation,
        mut buckets: PartialBuckets,
        min_doc_count: u64,
        size: Option<usize>,
        key_of: impl Fn(i64) -> (Value, String),
    ) -> Result<Vec<Value>, EngineError> {
        let size = size.unwrap_or(usize::MAX);
        let mut found: Vec<(BucketKey, Option<PartialBucket>)> = Vec::new();
        if min_doc_count == 0 {
            let numbers = buckets
                .by_key
                .keys()
                .filter_map(|key| if let BucketKey::Numbered(number) = key { Some(*number) } else { None });
            let numbers: Vec<i64> = numbers.collect();
            if let (Some(least), Some(last)) = (numbers.iter().min(), numbers.iter().max()) {
                let wanted =
                    usize::try_from(i128::from(*last) - i128::from(*least) + 1).unwrap_or(usize::MAX).min(size);
                if wanted > BUCKETS_MAX {
                    return Err(too_many_buckets());
                }
                for number in (*least..=*last).take(wanted) {
                    let key = BucketKey::Numbered(number);
                    let bucket = buckets.by_key.remove(&key);
                    found.push((key, bucket));
                }
            }
        } else {
            let enough = buckets.by_key.into_iter().filter(|(_, bucket)| bucket.doc_count >= min_doc_count);
            found.extend(enough.map(|(key, bucket)| (key, Some(bucket))));
            first(&mut found, size, |a, b| a.0.cmp(&b.0));
        }
        let rendered = found.into_iter().map(|(key, bucket)| {
            let BucketKey::Numbered(number) = key else {
                return Err(EngineError::internal("a key that is not an interval"));
            };
            let (key, shown) = key_of(number);
            let mut members = Map::new();
            members.insert("key".to_owned(), key);
            members.insert("key_as_string".to_owned(), Value::from(shown));
            self.bucket(aggregation, members, bucket)
        });
        rendered.collect()
    }

    fn bucket(
        &mut self,
        aggregation: &Aggregation,
        mut members: Map<String, Value>,
        bucket: Option<PartialBucket>,
    ) -> Result<Value, EngineError> {
        self.buckets += 1;
        if self.buckets > BUCKETS_MAX {
            return Err(too_many_buckets());
        }
        let (doc_count, sub) = match bucket {
            Some(bucket) => (bucket.doc_count, bucket.sub),
            None => (0, aggregation.sub.iter().map(Partial::empty).collect()),
        };
        members.insert("doc_count".to_owned(), Value::from(doc_count));
        if !aggregation.sub.is_empty() {
            members.insert("sub_aggregations".to_owned(), self.members(&aggregation.sub, sub)?);
        }
        Ok(Value::Object(members))
    }
}

/// Keeps the first `size` in order.
fn first<T>(found: &mut Vec<T>, size: usize, order: impl Fn(&T, &T) -> Ordering) {
    if size == 0 {
        found.clear();
    } else if found.len() > size {
        found.select_nth_unstable_by(size - 1, &order);
        found.truncate(size);
    }
    found.sort_unstable_by(order);
}

fn interval_key(interval: CalendarInterval, number: i64) -> (Value, String) {
    let seconds = interval.start_of(number);
    (Value::from(seconds * 1000), date_text_of_nanoseconds(i128::from(seconds) * 1_000_000_000))
}

fn key_members(of: &AggregationKind, key: &BucketKey) -> Map<String, Value> {
    let value = match (of, key) {
        (AggregationKind::GeohashGrid { precision, .. }, BucketKey::Cell(cell)) => {
            Value::from(geohash(*cell, *precision))
        }
        _ => key_json(key),
    };
    let shown = match key {
        BucketKey::Text(_) | BucketKey::Cell(_) => None,
        BucketKey::Date(date) => Some(date_text(*date)),
        _ => Some(value.to_string()),
    };
    let mut members = Map::new();
    members.insert("key".to_owned(), value);
    members.extend(shown.map(|shown| ("key_as_string".to_owned(), Value::from(shown))));
    members
}

/// Strings, numbers and booleans as they are, dates in milliseconds since 1970.
fn key_json(key: &BucketKey) -> Value {
    match key {
        BucketKey::Number(bits) => number_json(number_of_bits(*bits)),
        BucketKey::Date(date) => number_json(milliseconds_of(*date)),
        BucketKey::Text(text) => Value::from(&**text),
        BucketKey::Boolean(boolean) => Value::from(*boolean),
        BucketKey::Numbered(number) => Value::from(*number),
        BucketKey::Cell(cell) => Value::from(*cell),
        BucketKey::Tuple(keys) => keys.iter().map(key_json_in_tuple).collect(),
    }
}

/// Inside of a combination a date is readable: there is no second member to show it in.
fn key_json_in_tuple(key: &BucketKey) -> Value {
    match key {
        BucketKey::Date(date) => Value::from(date_text(*date)),
        other => key_json(other),
    }
}
