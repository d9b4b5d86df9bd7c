//! The columns of a segment, as Tantivy names those of its fields.

use std::sync::Arc;

use tantivy::Segment;
use tantivy::columnar::{ColumnType, ColumnarWriter};
use tantivy::directory::TerminatingWrite;
use tantivy::index::SegmentComponent;

use super::value_log::{Scalar, ValueLog};
use super::value_terms::path_bytes;
use crate::full_text::fields::{KEY, ORDINAL, SEQUENCE, TTL_BASE, VALUES};

const SEPARATOR: char = '\u{1}';

/// What every segment has a column of.
pub fn fixed_columns() -> [(&'static str, ColumnType); 4] {
    [(ORDINAL, ColumnType::U64), (SEQUENCE, ColumnType::U64), (TTL_BASE, ColumnType::I64), (KEY, ColumnType::Str)]
}

pub fn write_columns(values: &ValueLog, segment: &Segment) -> tantivy::Result<()> {
    let mut columns = ColumnarWriter::default();
    for (name, kind) in fixed_columns() {
        columns.record_column_type(name, kind, false);
    }
    // The last path with its column's name: documents mostly have the same paths.
    let mut names: Vec<(Arc<str>, String)> = Vec::new();
    for (number, document) in values.documents().enumerate() {
        let number = number as u32;
        columns.record_numerical(number, ORDINAL, u64::from(document.head.ordinal));
        columns.record_numerical(number, SEQUENCE, document.head.sequence);
        columns.record_numerical(number, TTL_BASE, document.head.ttl_base_ms);
        columns.record_str(number, KEY, document.key);
        for (at, (path, scalar)) in document.values.iter().enumerate() {
            let name = name_at(&mut names, at, path);
            match *scalar {
                Scalar::Text(span) | Scalar::ColumnOnly(span) => {
                    columns.record_str(number, name, values.text_of(span));
                }
                Scalar::Integer(integer) => columns.record_numerical(number, name, integer),
                Scalar::Float(float) => columns.record_numerical(number, name, float),
                Scalar::Boolean(boolean) => columns.record_bool(number, name, boolean),
                Scalar::Date(date) => columns.record_datetime(number, name, date),
                Scalar::Present => {}
            }
        }
    }
    let mut file = segment.open_write(SegmentComponent::FastFields)?;
    columns.serialize(values.len(), None, &mut file)?;
    Ok(file.terminate()?)
}

/// The name of a path's column. `names` has those of the values of the last document by their places, where this one's
/// mostly has the same path.
fn name_at<'n>(names: &'n mut Vec<(Arc<str>, String)>, at: usize, path: &Arc<str>) -> &'n str {
    if names.get(at).is_none_or(|(known, _)| !Arc::ptr_eq(known, path)) {
        let mut name = VALUES.as_bytes().to_vec();
        name.push(SEPARATOR as u8);
        name.extend(path_bytes(path));
        let name = (Arc::clone(path), String::from_utf8(name).expect("a dot is a byte of its own in UTF-8"));
        if at < names.len() {
            names[at] = name;
        } else {
            names.push(name);
        }
    }
    &names[at].1
}
