//! Collecting the matches of one index in the order of fields.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use tantivy::columnar::{Column, DynamicColumn, StrColumn, TermOrdHit};
use tantivy::query::Weight;
use tantivy::{DateTime, DocId, Score, SegmentReader, f64_to_u64, i64_to_u64, u64_to_f64, u64_to_i64};

use crate::error::EngineError;
use crate::full_text::errors::{io_failed, tantivy_failed};
use crate::full_text::fields::KEY;
use crate::full_text::plan::{QueryPlan, SortField};
use crate::full_text::query::compile::index_fields::{IndexFields, column_name};
use crate::full_text::query::deadline::Deadline;
use crate::full_text::query::run::collect::{Collected, Segments, Visible, rounded, visit_all};
use crate::full_text::query::run::ordered::sort_position::Position;
use crate::full_text::query::run::ordered::sort_values::SortValue;
use crate::full_text::segment_columns::SegmentColumns;

pub const SCORE_FIELD: &str = "_score";

#[derive(Debug, Clone)]
pub struct Sorted {
    pub values: Vec<SortValue>,
    pub score: Score,
    pub key_rank: u64,
    pub doc: DocId,
    pub segment: u32,
}

/// A value within one segment: its type's rank, and bits that order as the values of that type do.
pub type SegmentValue = (u8, u64);

const MISSING: SegmentValue = (u8::MAX, 0);
const NUMBER: u8 = 0;
const DATE: u8 = 1;
const TEXT: u8 = 2;
const BOOLEAN: u8 = 3;

#[expect(clippy::large_enum_variant, reason = "there are as many as sort fields")]
pub enum SortColumn {
    Score,
    /// The columns of one path, one for each type that the segment has met there.
    Path {
        numbers: Option<Numbers>,
        dates: Option<Column<DateTime>>,
        texts: Option<StrColumn>,
        booleans: Option<Column<bool>>,
    },
}

pub enum Numbers {
    I64(Column<i64>),
    U64(Column<u64>),
    F64(Column<f64>),
}

/// The least of a document's values, or the greatest: what the direction would show first.
fn first_of<T: PartialOrd>(values: impl Iterator<Item = T>, desc: bool) -> Option<T> {
    values.reduce(|best, value| if (value < best) == desc { best } else { value })
}

impl Numbers {
    fn bits(&self, doc: DocId, desc: bool) -> Option<u64> {
        let number = match self {
            Self::I64(column) => first_of(column.values_for_doc(doc), desc).map(|number| number as f64),
            Self::U64(column) => first_of(column.values_for_doc(doc), desc).map(|number| number as f64),
            Self::F64(column) => first_of(column.values_for_doc(doc), desc),
        };
        number.map(f64_to_u64)
    }
}

impl SortColumn {
    pub fn open(
        reader: &SegmentReader,
        fixed: &SegmentColumns,
        index: &IndexFields,
        field: &str,
    ) -> Result<Self, EngineError> {
        if field == SCORE_FIELD {
            return Ok(Self::Score);
        }
        if field == KEY {
            let texts = Some(fixed.keys.clone());
            return Ok(Self::Path { numbers: None, dates: None, texts, booleans: None });
        }
        let handles = reader.fast_fields().dynamic_column_handles(&column_name(field)).map_err(tantivy_failed)?;
        let (mut numbers, mut dates, mut texts, mut booleans) = (None, None, None, None);
        for handle in handles {
            match handle.open().map_err(io_failed("open a column"))? {
                DynamicColumn::I64(column) => numbers = Some(Numbers::I64(column)),
                DynamicColumn::U64(column) => numbers = Some(Numbers::U64(column)),
                DynamicColumn::F64(column) => numbers = Some(Numbers::F64(column)),
                DynamicColumn::DateTime(column) => dates = Some(column),
                DynamicColumn::Str(column) => texts = Some(column),
                DynamicColumn::Bool(column) => booleans = Some(column),
                _ => {}
            }
        }
        // The whole strings of `f` go by `f.keyword` too.
        for path in index.exact_paths(field) {
            if texts.is_none() {
                texts = reader.fast_fields().str(&column_name(&path)).map_err(tantivy_failed)?;
            }
        }
        Ok(Self::Path { numbers, dates, texts, booleans })
    }

    pub fn value(&self, doc: DocId, desc: bool, score: Score) -> SegmentValue {
        let Self::Path { numbers, dates, texts, booleans } = self else {
            return (NUMBER, f64_to_u64(f64::from(score)));
        };
        if let Some(bits) = numbers.as_ref().and_then(|numbers| numbers.bits(doc, desc)) {
            return (NUMBER, bits);
        }
        if let Some(date) = dates.as_ref().and_then(|dates| first_of(dates.values_for_doc(doc), desc)) {
            return (DATE, i64_to_u64(date.into_timestamp_nanos()));
        }
        if let Some(rank) = texts.as_ref().and_then(|texts| first_of(texts.term_ords(doc), desc)) {
            return (TEXT, code_of(rank));
        }
        if let Some(boolean) = booleans.as_ref().and_then(|booleans| first_of(booleans.values_for_doc(doc), desc)) {
            return (BOOLEAN, u64::from(boolean));
        }
        MISSING
    }

    /// Where `value` lies among the segment's; a string that no document has lies between two others.
    fn bound(&self, value: &SortValue) -> Result<SegmentValue, EngineError> {
        Ok(match (value, self) {
            (SortValue::Number(number), _) => (NUMBER, f64_to_u64(*number)),
            (SortValue::Date(nanoseconds), _) => (DATE, i64_to_u64(*nanoseconds)),
            (SortValue::Boolean(boolean), _) => (BOOLEAN, u64::from(*boolean)),
            (SortValue::Text(text), Self::Path { texts: Some(texts), .. }) => (TEXT, code_of_text(texts, text)?),
            (SortValue::Text(_), _) => (TEXT, 0),
            (SortValue::Missing, _) => MISSING,
        })
    }

    pub fn sort_value(&self, (rank, bits): SegmentValue) -> Result<SortValue, EngineError> {
        Ok(match (rank, self) {
            (NUMBER, _) => SortValue::Number(u64_to_f64(bits)),
            (DATE, _) => SortValue::Date(u64_to_i64(bits)),
            (BOOLEAN, _) => SortValue::Boolean(bits != 0),
            (TEXT, Self::Path { texts: Some(texts), .. }) => {
                let mut text = String::new();
                texts.ord_to_str(rank_at(bits), &mut text).map_err(io_failed("read a column"))?;
                SortValue::Text(text)
            }
            _ => SortValue::Missing,
        })
    }
}

/// Ranks of strings are odd codes, so that a string which the segment does not hold has a code between two of them.
fn code_of(rank: u64) -> u64 {
    rank.saturating_mul(2) | 1
}

fn rank_at(code: u64) -> u64 {
    code >> 1
}

fn code_of_text(texts: &StrColumn, text: &str) -> Result<u64, EngineError> {
    let hit = texts.dictionary().term_ord_or_next(text.as_bytes()).map_err(io_failed("search a column"))?;
    Ok(match hit {
        TermOrdHit::Exact(rank) => code_of(rank),
        TermOrdHit::Next(rank) => rank.saturating_mul(2),
    })
}

/// Turns values so that all fields compare upwards in the order in which the page is read.
#[derive(Clone, Copy)]
struct Direction {
    desc: bool,
    backwards: bool,
}

impl Direction {
    fn turned(self, (rank, bits): SegmentValue) -> SegmentValue {
        // Missing stays last in either direction, and is first only when the page is read backwards.
        let (rank, bits) = if !self.desc || rank == MISSING.0 { (rank, bits) } else { (BOOLEAN - rank, !bits) };
        if self.backwards { (!rank, !bits) } else { (rank, bits) }
    }

    fn turned_back(self, (rank, bits): SegmentValue) -> SegmentValue {
        let (rank, bits) = if self.backwards { (!rank, !bits) } else { (rank, bits) };
        Self { backwards: false, ..self }.turned((rank, bits))
    }
}

fn turned_rank(key_rank: u64, backwards: bool) -> u64 {
    if backwards { !key_rank } else { key_rank }
}

/// Where the page begins, in the terms of one segment: nothing at or before it is collected.
struct Bound {
    values: Vec<SegmentValue>,
    key_code: u64,
}

impl Bound {
    fn of(position: &Position, columns: &[Sorting], keys: &StrColumn, backwards: bool) -> Result<Self, EngineError> {
        let turned = |(column, value): (&Sorting, &SortValue)| {
            Ok::<_, EngineError>(column.direction.turned(column.column.bound(value)?))
        };
        Ok(Self {
            values: columns.iter().zip(&position.values).map(turned).collect::<Result<_, _>>()?,
            key_code: turned_rank(code_of_text(keys, &position.key)?, backwards),
        })
    }

    fn excludes(&self, values: &[SegmentValue], key_code: impl FnOnce() -> u64) -> bool {
        match values.cmp(&self.values) {
            Ordering::Less => true,
            Ordering::Equal => key_code() <= self.key_code,
            Ordering::Greater => false,
        }
    }
}

struct Sorting {
    column: SortColumn,
    direction: Direction,
}

impl Sorting {
    fn value(&self, doc: DocId, score: Score) -> SegmentValue {
        self.direction.turned(self.column.value(doc, self.direction.desc, score))
    }
}

/// In a `BinaryHeap`, the match that comes last in the order is on top.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct LastFirst {
    values: Vec<SegmentValue>,
    /// Turned as the values are.
    key_rank: u64,
    doc: DocId,
    score_bits: u32,
}

/// The first `offset + limit` matches of every segment; not yet ordered.
pub fn collect_sorted(
    segments: Segments<'_>,
    index: &IndexFields,
    weight: &dyn Weight,
    scores: bool,
    plan: &QueryPlan,
    deadline: &Deadline,
) -> Result<Collected<Sorted>, EngineError> {
    let mut collected = Collected::default();
    let backwards = plan.reads_backwards();
    let position = plan.cursor.as_ref().map(|cursor| Position::parse(cursor, plan.sort.len())).transpose()?;
    for (segment, reader, fixed) in segments.iter() {
        let open = |field: &SortField| {
            let direction = Direction { desc: field.desc, backwards };
            Ok::<_, EngineError>(Sorting { column: SortColumn::open(reader, fixed, index, &field.field)?, direction })
        };
        let columns: Vec<Sorting> = plan.sort.iter().map(open).collect::<Result<_, _>>()?;
        let bound =
            position.as_ref().map(|position| Bound::of(position, &columns, &fixed.keys, backwards)).transpose()?;
        let page = SegmentPage { columns: &columns, bound: bound.as_ref(), backwards };
        let heap = collect_segment((reader, fixed), weight, scores, plan, deadline, page, &mut collected)?;
        for last in heap {
            let values = columns
                .iter()
                .zip(&last.values)
                .map(|(sorting, value)| sorting.column.sort_value(sorting.direction.turned_back(*value)));
            collected.matches.push(Sorted {
                values: values.collect::<Result<_, _>>()?,
                score: Score::from_bits(last.score_bits),
                key_rank: turned_rank(last.key_rank, backwards),
                doc: last.doc,
                segment,
            });
        }
        if collected.is_partial {
            break;
        }
    }
    Ok(collected)
}

/// How a segment's matches are placed.
#[derive(Clone, Copy)]
struct SegmentPage<'a> {
    columns: &'a [Sorting],
    bound: Option<&'a Bound>,
    backwards: bool,
}

fn collect_segment(
    (reader, fixed): (&SegmentReader, &SegmentColumns),
    weight: &dyn Weight,
    scores: bool,
    plan: &QueryPlan,
    deadline: &Deadline,
    page: SegmentPage<'_>,
    collected: &mut Collected<Sorted>,
) -> Result<BinaryHeap<LastFirst>, EngineError> {
    let wanted = plan.offset + plan.limit;
    let visible = Visible::new(reader, fixed, plan);
    let mut first = BinaryHeap::with_capacity(wanted.min(1024));
    let mut values: Vec<SegmentValue> = Vec::with_capacity(page.columns.len());
    let visited = visit_all(reader, weight, deadline, |doc, score| {
        if !visible.shows(doc) {
            return;
        }
        collected.total += 1;
        let score = if scores { rounded(score()) } else { 0.0 };
        collected.max_score = collected.max_score.max(score);
        if wanted == 0 {
            return;
        }
        values.clear();
        values.extend(page.columns.iter().map(|sorting| sorting.value(doc, score)));
        let rank = || fixed.keys.ords().first(doc).unwrap_or(u64::MAX);
        if page.bound.is_some_and(|bound| bound.excludes(&values, || turned_rank(code_of(rank()), page.backwards))) {
            return;
        }
        let key_rank = || turned_rank(rank(), page.backwards);
        if first.len() == wanted {
            let Some(mut last) = first.peek_mut() else { return };
            let last: &mut LastFirst = &mut last;
            let order = values.cmp(&last.values);
            if order == Ordering::Greater || (order == Ordering::Equal && key_rank() >= last.key_rank) {
                return;
            }
            last.values.clone_from(&values);
            last.key_rank = key_rank();
            last.doc = doc;
            last.score_bits = score.to_bits();
        } else {
            first.push(LastFirst { values: values.clone(), key_rank: key_rank(), doc, score_bits: score.to_bits() });
        }
    });
    collected.note_end(visited, plan, deadline)?;
    Ok(first)
}
