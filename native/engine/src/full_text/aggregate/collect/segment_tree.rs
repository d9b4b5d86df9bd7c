//! The collectors of one segment: a tree that has the shape of the request.

use tantivy::SegmentReader;

use crate::error::EngineError;
use crate::full_text::aggregate::answers::distinct::{Distinct, ValueHash, hash_of_bits, hash_of_text};
use crate::full_text::aggregate::answers::number_summary::NumberSummary;
use crate::full_text::aggregate::answers::partial::Partial;
use crate::full_text::aggregate::bucket_key::BucketKey;
use crate::full_text::aggregate::budget::Budget;
use crate::full_text::aggregate::collect::columns::{GeoPoints, Numbers, Pairs, PathColumns};
use crate::full_text::aggregate::collect::group_keys::{KeySource, number_of_bits};
use crate::full_text::aggregate::collect::groups::{Groups, Nested};
use crate::full_text::aggregate::context::Context;
use crate::full_text::aggregate::value_text::milliseconds_of;
use crate::full_text::plan::{Aggregation, AggregationKind, CardinalityMode, NumberMetric};
use crate::full_text::query::IndexFields;

pub enum Collector {
    Numbers {
        columns: PathColumns,
        metric: NumberMetric,
        summaries: Vec<NumberSummary>,
    },
    /// Without a field: of documents.
    Count {
        field: Option<Box<Counted>>,
        counts: Vec<u64>,
    },
    Distinct {
        columns: PathColumns,
        mode: CardinalityMode,
        states: Vec<Distinct>,
        strings: StringSet,
    },
    Groups(Box<Groups<Self>>),
}

/// The source from which the values of a field are counted.
pub struct Counted {
    columns: PathColumns,
    points: GeoPoints,
}

/// Different strings of each bucket, as (text column, bucket, position in the dictionary).
type StringSet = std::collections::HashSet<(u8, u32, u64)>;

impl Collector {
    pub fn open(
        reader: &SegmentReader,
        index: &IndexFields,
        aggregation: &Aggregation,
        is_root: bool,
    ) -> Result<Self, EngineError> {
        let columns = |path: &str| PathColumns::open(reader, index, path);
        Ok(match &aggregation.of {
            AggregationKind::Numbers { field, metric } => {
                Self::Numbers { columns: columns(field)?, metric: *metric, summaries: Vec::new() }
            }
            AggregationKind::Count { field } => {
                let counted = |path: &str| -> Result<Box<Counted>, EngineError> {
                    Ok(Box::new(Counted { columns: columns(path)?, points: GeoPoints::open(reader, index, path)? }))
                };
                Self::Count { field: field.as_deref().map(counted).transpose()?, counts: Vec::new() }
            }
            AggregationKind::Cardinality { field, mode } => {
                Self::Distinct { columns: columns(field)?, mode: *mode, states: Vec::new(), strings: StringSet::new() }
            }
            of => {
                let source = KeySource::open(reader, index, of)?;
                let source = source.ok_or_else(|| EngineError::internal("an aggregation that makes no buckets"))?;
                let sub = aggregation.sub.iter().map(|sub| Self::open(reader, index, sub, false));
                Self::Groups(Box::new(Groups::new(source, sub.collect::<Result<_, _>>()?, is_root)))
            }
        })
    }
}

impl Nested for Collector {
    fn collect(&mut self, pairs: &Pairs, context: &Context<'_>) -> Result<(), EngineError> {
        match self {
            Self::Numbers { columns, metric, summaries } => {
                summarise(columns, *metric, summaries, pairs);
                Ok(())
            }
            Self::Count { field, counts } => {
                count(field.as_deref_mut(), counts, pairs);
                Ok(())
            }
            Self::Distinct { columns, mode, states, strings } => {
                let grow = || Distinct::new(*mode);
                grow_to(states, pairs, grow);
                distinguish(columns, states, strings, pairs, context.budget)
            }
            Self::Groups(groups) => groups.collect(pairs, context),
        }
    }

    fn finish(self, owners: usize, context: &Context<'_>) -> Result<Vec<Partial>, EngineError> {
        context.is_over()?;
        Ok(match self {
            Self::Numbers { mut summaries, .. } => {
                summaries.resize_with(owners, NumberSummary::default);
                summaries.into_iter().map(Partial::Numbers).collect()
            }
            Self::Count { mut counts, .. } => {
                counts.resize(owners, 0);
                counts.into_iter().map(Partial::Count).collect()
            }
            Self::Distinct { columns, mode, mut states, strings } => {
                states.resize_with(owners, || Distinct::new(mode));
                add_strings(&columns, &mut states, strings, context.budget)?;
                states.into_iter().map(Partial::Distinct).collect()
            }
            Self::Groups(groups) => groups.finish(owners, context)?,
        })
    }
}

fn grow_to<T>(states: &mut Vec<T>, pairs: &Pairs, fresh: impl FnMut() -> T) {
    let needed = pairs.owners.iter().max().map_or(0, |owner| *owner as usize + 1);
    if states.len() < needed {
        states.resize_with(needed, fresh);
    }
}

fn summarise(columns: &mut PathColumns, metric: NumberMetric, summaries: &mut Vec<NumberSummary>, pairs: &Pairs) {
    grow_to(summaries, pairs, NumberSummary::default);
    if let Some(numbers) = &mut columns.numbers {
        let numbers = numbers.read(&pairs.docs);
        for (position, number) in numbers.positions.iter().zip(&numbers.values) {
            summaries[pairs.owners[*position as usize] as usize].add(metric, *number);
        }
    }
    if let Some(dates) = &mut columns.dates {
        let dates = dates.read(&pairs.docs);
        for (position, date) in dates.positions.iter().zip(&dates.values) {
            let milliseconds = milliseconds_of(date.into_timestamp_nanos());
            summaries[pairs.owners[*position as usize] as usize].add_date(metric, milliseconds);
        }
    }
}

fn count(field: Option<&mut Counted>, counts: &mut Vec<u64>, pairs: &Pairs) {
    grow_to(counts, pairs, || 0);
    let Some(Counted { columns, points }) = field else {
        for owner in &pairs.owners {
            counts[*owner as usize] += 1;
        }
        return;
    };
    let mut take = |positions: &[u32]| {
        for position in positions {
            counts[pairs.owners[*position as usize] as usize] += 1;
        }
    };
    if let Some(numbers) = &mut columns.numbers {
        take(&numbers.read(&pairs.docs).positions);
    }
    if let Some(dates) = &mut columns.dates {
        take(&dates.read(&pairs.docs).positions);
    }
    if let Some(booleans) = &mut columns.booleans {
        take(&booleans.read(&pairs.docs).positions);
    }
    for texts in &mut columns.texts {
        take(&texts.read(&pairs.docs).positions);
    }
    take(&points.read(&pairs.docs).positions);
}

const NUMBER_KIND: u8 = 1;
const DATE_KIND: u8 = 2;
const BOOLEAN_KIND: u8 = 3;

/// The identity of a value as `distinguish` and `add_strings` give it to the same value of a column.
pub fn hash_of_key(key: &BucketKey) -> ValueHash {
    match key {
        BucketKey::Text(text) => hash_of_text(text.as_bytes()),
        BucketKey::Date(bits) => hash_of_bits(DATE_KIND, *bits as u64),
        BucketKey::Boolean(boolean) => hash_of_bits(BOOLEAN_KIND, u64::from(*boolean)),
        BucketKey::Number(bits) => hash_of_bits(NUMBER_KIND, number_of_bits(*bits).to_bits()),
        BucketKey::Numbered(_) | BucketKey::Cell(_) | BucketKey::Tuple(_) => unreachable!("no key of a single value"),
    }
}

fn distinguish(
    columns: &mut PathColumns,
    states: &mut [Distinct],
    strings: &mut StringSet,
    pairs: &Pairs,
    budget: &Budget,
) -> Result<(), EngineError> {
    let owner_at = |position: &u32| pairs.owners[*position as usize];
    if let Some(numbers) = &mut columns.numbers {
        let numbers: &mut Numbers = numbers;
        let numbers = numbers.read(&pairs.docs);
        for (position, number) in numbers.positions.iter().zip(&numbers.values) {
            let bits = (number + 0.0).to_bits();
            states[owner_at(position) as usize].add(hash_of_bits(NUMBER_KIND, bits), budget)?;
        }
    }
    if let Some(dates) = &mut columns.dates {
        let dates = dates.read(&pairs.docs);
        for (position, date) in dates.positions.iter().zip(&dates.values) {
            let bits = date.into_timestamp_nanos() as u64;
            states[owner_at(position) as usize].add(hash_of_bits(DATE_KIND, bits), budget)?;
        }
    }
    if let Some(booleans) = &mut columns.booleans {
        let booleans = booleans.read(&pairs.docs);
        for (position, boolean) in booleans.positions.iter().zip(&booleans.values) {
            let hash = hash_of_bits(BOOLEAN_KIND, u64::from(*boolean));
            states[owner_at(position) as usize].add(hash, budget)?;
        }
    }
    for (at, texts) in columns.texts.iter_mut().enumerate() {
        let ords = texts.read(&pairs.docs);
        for (position, ord) in ords.positions.iter().zip(&ords.values) {
            if strings.insert((at as u8, owner_at(position), *ord)) {
                budget.charge(1)?;
            }
        }
    }
    Ok(())
}

/// The strings themselves are looked up once, in the order of the dictionary.
fn add_strings(
    columns: &PathColumns,
    states: &mut [Distinct],
    strings: StringSet,
    budget: &Budget,
) -> Result<(), EngineError> {
    let mut strings: Vec<(u8, u64, u32)> = strings.into_iter().map(|(at, owner, ord)| (at, ord, owner)).collect();
    strings.sort_unstable();
    for (at, texts) in columns.texts.iter().enumerate() {
        let of_column = strings.iter().filter(|(column, ..)| usize::from(*column) == at);
        let (ords, owners): (Vec<u64>, Vec<u32>) = of_column.map(|(_, ord, owner)| (*ord, *owner)).unzip();
        let mut owners = owners.into_iter();
        let mut failed = Ok(());
        texts.resolve(&ords, |text| {
            if let Some(owner) = owners.next()
                && failed.is_ok()
            {
                failed = states[owner as usize].add(hash_of_text(text), budget);
            }
        })?;
        failed?;
    }
    Ok(())
}
