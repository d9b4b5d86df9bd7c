//! Collecting the matches of one index in the order of fields.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::fmt::Debug;

use tantivy::columnar::{Column, ColumnIndex, DynamicColumn, MonotonicallyMappableToU64, StrColumn, TermOrdHit};
use tantivy::query::Weight;
use tantivy::{
    COLLECT_BLOCK_BUFFER_LEN, DateTime, DocId, Score, SegmentReader, f64_to_u64, i64_to_u64, u64_to_f64, u64_to_i64,
};

use crate::error::EngineError;
use crate::full_text::errors::io_failed;
use crate::full_text::fields::KEY;
use crate::full_text::plan::{QueryPlan, SortField};
use crate::full_text::query::compile::index_fields::{IndexFields, column_name};
use crate::full_text::query::deadline::Deadline;
use crate::full_text::query::run::collect::{Collected, Segments, Visible, rounded, visit_all, visit_blocks};
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

/// The same of a column, without an iterator where a document has one value at most.
fn first_in<T>(column: &Column<T>, doc: DocId, desc: bool) -> Option<T>
where
    T: MonotonicallyMappableToU64 + PartialOrd + Copy + Debug + Send + Sync + 'static,
{
    match column.index {
        ColumnIndex::Multivalued(_) => first_of(column.values_for_doc(doc), desc),
        _ => column.first(doc),
    }
}

impl Numbers {
    fn bits(&self, doc: DocId, desc: bool) -> Option<u64> {
        let number = match self {
            Self::I64(column) => first_in(column, doc, desc).map(|number| number as f64),
            Self::U64(column) => first_in(column, doc, desc).map(|number| number as f64),
            Self::F64(column) => first_in(column, doc, desc),
        };
        number.map(f64_to_u64)
    }

    /// Appends the values of `docs`, if every document of the segment has exactly one.
    fn extend(&self, docs: &[DocId], to: &mut Vec<SegmentValue>) -> bool {
        match self {
            Self::I64(column) => extend_by(column, docs, |number| number as f64, to),
            Self::U64(column) => extend_by(column, docs, |number| number as f64, to),
            Self::F64(column) => extend_by(column, docs, |number| number, to),
        }
    }
}

fn extend_by<T: Default + Copy + PartialOrd + Debug + Send + Sync + 'static>(
    column: &Column<T>,
    docs: &[DocId],
    number: impl Fn(T) -> f64,
    to: &mut Vec<SegmentValue>,
) -> bool {
    if !matches!(column.index, ColumnIndex::Full) {
        return false;
    }
    let mut values = [T::default(); COLLECT_BLOCK_BUFFER_LEN];
    for docs in docs.chunks(values.len()) {
        let values = &mut values[..docs.len()];
        column.values.get_vals(docs, values);
        to.extend(values.iter().map(|value| (NUMBER, f64_to_u64(number(*value)))));
    }
    true
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
        let (mut numbers, mut dates, mut texts, mut booleans) = (None, None, None, None);
        for column in fixed.named(reader, &column_name(field))? {
            match column {
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
                texts = fixed.named(reader, &column_name(&path))?.into_iter().find_map(|column| match column {
                    DynamicColumn::Str(column) => Some(column),
                    _ => None,
                });
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
        if let Some(date) = dates.as_ref().and_then(|dates| first_in(dates, doc, desc)) {
            return (DATE, i64_to_u64(date.into_timestamp_nanos()));
        }
        if let Some(rank) = texts.as_ref().and_then(|texts| first_in(texts.ords(), doc, desc)) {
            return (TEXT, code_of(rank));
        }
        if let Some(boolean) = booleans.as_ref().and_then(|booleans| first_in(booleans, doc, desc)) {
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

    /// Those of documents without scores.
    fn values(&self, docs: &[DocId], to: &mut Vec<SegmentValue>) {
        to.clear();
        match &self.column {
            SortColumn::Path { numbers: Some(numbers), .. } if numbers.extend(docs, to) => {
                to.iter_mut().for_each(|value| *value = self.direction.turned(*value));
            }
            _ => to.extend(docs.iter().map(|doc| self.value(*doc, 0.0))),
        }
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

/// The first matches of a segment, of those that were offered.
struct FirstMatches<'a> {
    page: SegmentPage<'a>,
    keys: &'a StrColumn,
    wanted: usize,
    heap: BinaryHeap<LastFirst>,
    values: Vec<SegmentValue>,
}

impl FirstMatches<'_> {
    /// `leading` is the document's value in the first field.
    #[inline]
    fn offer(&mut self, doc: DocId, leading: SegmentValue, score: Score) {
        if self.heap.len() == self.wanted {
            // Most matches end here.
            match self.heap.peek() {
                Some(last) if leading <= last.values[0] => {}
                _ => return,
            }
        }
        self.place(doc, leading, score);
    }

    fn place(&mut self, doc: DocId, leading: SegmentValue, score: Score) {
        let SegmentPage { columns, bound, backwards } = self.page;
        self.values.clear();
        self.values.push(leading);
        self.values.extend(columns[1..].iter().map(|sorting| sorting.value(doc, score)));
        let rank = || self.keys.ords().first(doc).unwrap_or(u64::MAX);
        if bound.is_some_and(|bound| bound.excludes(&self.values, || turned_rank(code_of(rank()), backwards))) {
            return;
        }
        let key_rank = || turned_rank(rank(), backwards);
        if self.heap.len() < self.wanted {
            let values = self.values.clone();
            self.heap.push(LastFirst { values, key_rank: key_rank(), doc, score_bits: score.to_bits() });
            return;
        }
        // A look through `peek_mut` would sift the heap, also when nothing has changed.
        let Some(last) = self.heap.peek() else { return };
        let order = self.values.cmp(&last.values);
        if order == Ordering::Greater || (order == Ordering::Equal && key_rank() >= last.key_rank) {
            return;
        }
        let key_rank = key_rank();
        if let Some(mut last) = self.heap.peek_mut() {
            last.values.clone_from(&self.values);
            last.key_rank = key_rank;
            last.doc = doc;
            last.score_bits = score.to_bits();
        }
    }
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
    let heap = BinaryHeap::with_capacity(wanted.min(1024));
    let mut first = FirstMatches { page, keys: &fixed.keys, wanted, heap, values: Vec::new() };
    let leading = page.columns.first().expect("an order has a field");
    let visited = if scores {
        visit_all(reader, weight, deadline, |doc, score| {
            if visible.shows(doc) {
                collected.total += 1;
                let score = rounded(score());
                collected.max_score = collected.max_score.max(score);
                first.offer(doc, leading.value(doc, score), score);
            }
        })
    } else {
        let (mut shown, mut values) = (Vec::new(), Vec::new());
        visit_blocks(reader, weight, deadline, |docs| {
            let docs = if visible.shows_all() {
                docs
            } else {
                shown.clear();
                shown.extend(docs.iter().copied().filter(|doc| visible.shows(*doc)));
                &shown
            };
            collected.total += docs.len() as u64;
            leading.values(docs, &mut values);
            docs.iter().zip(&values).for_each(|(doc, value)| first.offer(*doc, *value, 0.0));
        })
    };
    collected.note_end(visited, plan, deadline)?;
    Ok(first.heap)
}
