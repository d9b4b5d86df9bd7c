//! The values of a field within one segment, as what orders its documents.

use std::fmt::Debug;

use tantivy::columnar::{Column, ColumnIndex, DynamicColumn, MonotonicallyMappableToU64, StrColumn, TermOrdHit};
use tantivy::{
    COLLECT_BLOCK_BUFFER_LEN, DateTime, DocId, Score, SegmentReader, f64_to_u64, i64_to_u64, u64_to_f64, u64_to_i64,
};

use super::sort_values::SortValue;
use crate::error::EngineError;
use crate::full_text::errors::io_failed;
use crate::full_text::fields::KEY;
use crate::full_text::first_docs::SegmentValue;
use crate::full_text::query::compile::index_fields::{IndexFields, column_name};
use crate::full_text::segment_columns::SegmentColumns;

pub const SCORE_FIELD: &str = "_score";

pub const MISSING: SegmentValue = (u8::MAX, 0);
const NUMBER: u8 = 0;
const DATE: u8 = 1;
const TEXT: u8 = 2;
pub const BOOLEAN: u8 = 3;

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
    pub fn extend(&self, docs: &[DocId], to: &mut Vec<SegmentValue>) -> bool {
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
        for exact in &index.mapping.facts_of(field).exact_paths {
            if texts.is_none() {
                texts = fixed.named(reader, &column_name(&exact.path))?.into_iter().find_map(|column| match column {
                    DynamicColumn::Str(column) => Some(column),
                    _ => None,
                });
            }
        }
        Ok(Self::Path { numbers, dates, texts, booleans })
    }

    /// Whether the columns are those of the field's own name: others depend on the table's schema, which may change.
    pub fn is_plain(&self) -> bool {
        matches!(self, Self::Path { texts: None, .. })
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
    pub fn bound(&self, value: &SortValue) -> Result<SegmentValue, EngineError> {
        Ok(match (value, self) {
            (SortValue::Number(number), _) => (NUMBER, f64_to_u64(*number)),
            (SortValue::Date(bits), _) => (DATE, i64_to_u64(*bits)),
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
pub fn code_of(rank: u64) -> u64 {
    rank.saturating_mul(2) | 1
}

fn rank_at(code: u64) -> u64 {
    code >> 1
}

pub fn code_of_text(texts: &StrColumn, text: &str) -> Result<u64, EngineError> {
    let hit = texts.dictionary().term_ord_or_next(text.as_bytes()).map_err(io_failed("search a column"))?;
    Ok(match hit {
        TermOrdHit::Exact(rank) => code_of(rank),
        TermOrdHit::Next(rank) => rank.saturating_mul(2),
    })
}
