//! The columns of one path in one segment, read in blocks.

use tantivy::columnar::{Column, ColumnIndex, DynamicColumn, StrColumn};
use tantivy::{DateTime, DocId, SegmentReader};

use crate::error::EngineError;
use crate::full_text::aggregate::geo::GeoPoint;
use crate::full_text::errors::{io_failed, tantivy_failed};
use crate::full_text::fields::KEY;
use crate::full_text::query::{ExactDocs, ExactField, IndexFields, column_name};

/// Documents, each with the bucket that it was found in. A document is once in a bucket.
#[derive(Default)]
pub struct Pairs {
    pub docs: Vec<DocId>,
    pub owners: Vec<u32>,
}

impl Pairs {
    pub fn clear(&mut self) {
        self.docs.clear();
        self.owners.clear();
    }

    pub fn push(&mut self, doc: DocId, owner: u32) {
        self.docs.push(doc);
        self.owners.push(owner);
    }
}

/// Values, and the positions of their documents in the block.
#[derive(Default)]
pub struct ColumnValues<T> {
    pub positions: Vec<u32>,
    pub values: Vec<T>,
}

/// Reads the values of a column; kept to reuse its memory.
pub struct ColumnReader<T> {
    column: Column<T>,
    rows: Vec<u32>,
    found: ColumnValues<T>,
}

impl<T: Copy + Default + PartialOrd + std::fmt::Debug + Send + Sync + 'static> ColumnReader<T> {
    pub fn new(column: Column<T>) -> Self {
        Self { column, rows: Vec::new(), found: ColumnValues { positions: Vec::new(), values: Vec::new() } }
    }

    /// All values of `docs`, in their order.
    pub fn read(&mut self, docs: &[DocId]) -> &ColumnValues<T> {
        let Self { column, rows, found } = self;
        rows.clear();
        found.positions.clear();
        match &column.index {
            ColumnIndex::Empty { .. } => {}
            ColumnIndex::Full => {
                rows.extend_from_slice(docs);
                found.positions.extend(0..docs.len() as u32);
            }
            index => {
                for (position, doc) in docs.iter().enumerate() {
                    for row in index.value_row_ids(*doc) {
                        rows.push(row);
                        found.positions.push(position as u32);
                    }
                }
            }
        }
        found.values.resize(rows.len(), T::default());
        column.values.get_vals(rows, &mut found.values);
        found
    }

    pub fn has_arrays(&self) -> bool {
        matches!(self.column.index, ColumnIndex::Multivalued(_))
    }
}

/// Numbers of a path: a segment keeps them as integers where all of them are.
pub enum Numbers {
    I64(ColumnReader<i64>, ColumnValues<f64>),
    U64(ColumnReader<u64>, ColumnValues<f64>),
    F64(ColumnReader<f64>),
}

fn convert<'a, T: Copy>(
    from: &ColumnValues<T>,
    to: &'a mut ColumnValues<f64>,
    number: impl Fn(T) -> f64,
) -> &'a ColumnValues<f64> {
    to.positions.clone_from(&from.positions);
    to.values.clear();
    to.values.extend(from.values.iter().map(|value| number(*value)));
    to
}

impl Numbers {
    pub fn read(&mut self, docs: &[DocId]) -> &ColumnValues<f64> {
        match self {
            Self::I64(cursor, found) => convert(cursor.read(docs), found, |number| number as f64),
            Self::U64(cursor, found) => convert(cursor.read(docs), found, |number| number as f64),
            Self::F64(cursor) => cursor.read(docs),
        }
    }

    pub fn has_arrays(&self) -> bool {
        match self {
            Self::I64(cursor, _) => cursor.has_arrays(),
            Self::U64(cursor, _) => cursor.has_arrays(),
            Self::F64(cursor) => cursor.has_arrays(),
        }
    }
}

/// Whole strings of a path, as positions in the segment's dictionary.
pub struct Texts {
    pub column: StrColumn,
    ords: ColumnReader<u64>,
    /// Whose strings count; none where those of all documents do.
    exact: Option<ExactDocs>,
    of_exact: ColumnValues<u64>,
}

/// The columns of a path, one for each type that the segment has met there.
#[derive(Default)]
pub struct PathColumns {
    pub numbers: Option<Numbers>,
    pub dates: Option<ColumnReader<DateTime>>,
    pub booleans: Option<ColumnReader<bool>>,
    pub texts: Vec<Texts>,
}

impl PathColumns {
    pub fn open(reader: &SegmentReader, index: &IndexFields, path: &str) -> Result<Self, EngineError> {
        let mut columns = Self::default();
        if path == KEY {
            let keys = reader.fast_fields().str(KEY).map_err(tantivy_failed)?;
            columns.texts.extend(keys.map(|keys| Texts::new(keys, None)));
            return Ok(columns);
        }
        let mut fields = index.exact_fields(path);
        let with_texts = fields.len();
        if !fields.iter().any(|field| field.path == path) {
            fields.push(ExactField { path: path.to_owned(), column: column_name(path), types: None });
        }
        for (at, field) in fields.iter().enumerate() {
            for handle in reader.fast_fields().dynamic_column_handles(&field.column).map_err(tantivy_failed)? {
                match handle.open().map_err(io_failed("open a column"))? {
                    DynamicColumn::Str(column) if at < with_texts => {
                        let exact = ExactDocs::open(reader, &field.types).map_err(tantivy_failed)?;
                        columns.texts.push(Texts::new(column, exact));
                    }
                    other if field.path == path => columns.take(other),
                    _ => {}
                }
            }
        }
        Ok(columns)
    }

    fn take(&mut self, column: DynamicColumn) {
        match column {
            DynamicColumn::I64(column) => {
                self.numbers = Some(Numbers::I64(ColumnReader::new(column), ColumnValues::default()))
            }
            DynamicColumn::U64(column) => {
                self.numbers = Some(Numbers::U64(ColumnReader::new(column), ColumnValues::default()))
            }
            DynamicColumn::F64(column) => self.numbers = Some(Numbers::F64(ColumnReader::new(column))),
            DynamicColumn::DateTime(column) => self.dates = Some(ColumnReader::new(column)),
            DynamicColumn::Bool(column) => self.booleans = Some(ColumnReader::new(column)),
            _ => {}
        }
    }

    /// Whether a document may have several values of one type.
    pub fn has_arrays(&self) -> bool {
        self.numbers.as_ref().is_some_and(Numbers::has_arrays)
            || self.dates.as_ref().is_some_and(ColumnReader::has_arrays)
            || self.booleans.as_ref().is_some_and(ColumnReader::has_arrays)
            || self.texts.iter().any(|texts| texts.ords.has_arrays())
    }
}

impl Texts {
    fn new(column: StrColumn, exact: Option<ExactDocs>) -> Self {
        let ords = ColumnReader::new(column.ords().clone());
        Self { column, ords, exact, of_exact: ColumnValues::default() }
    }

    /// As of any column.
    pub fn read(&mut self, docs: &[DocId]) -> &ColumnValues<u64> {
        let Self { ords, exact, of_exact, .. } = self;
        let all = ords.read(docs);
        let Some(exact) = exact else { return all };
        of_exact.positions.clear();
        of_exact.values.clear();
        for (position, ord) in all.positions.iter().zip(&all.values) {
            if exact.has(docs[*position as usize]) {
                of_exact.positions.push(*position);
                of_exact.values.push(*ord);
            }
        }
        of_exact
    }

    /// The strings at ascending `ords`, which may repeat.
    pub fn resolve(&self, ords: &[u64], mut take: impl FnMut(&[u8])) -> Result<(), EngineError> {
        let found =
            self.column.dictionary().sorted_ords_to_term_cb(ords, &mut take).map_err(io_failed("read a column"))?;
        if found { Ok(()) } else { Err(EngineError::internal("a column names a string that it does not have")) }
    }
}

/// GeoPoints of a path, from its members `lat` and `lon`.
pub struct GeoPoints {
    lat: Option<Numbers>,
    lon: Option<Numbers>,
    found: ColumnValues<GeoPoint>,
}

impl GeoPoints {
    pub fn open(reader: &SegmentReader, index: &IndexFields, path: &str) -> Result<Self, EngineError> {
        let numbers = |name: &str| -> Result<Option<Numbers>, EngineError> {
            Ok(PathColumns::open(reader, index, &format!("{path}.{name}"))?.numbers)
        };
        let found = ColumnValues { positions: Vec::new(), values: Vec::new() };
        Ok(Self { lat: numbers("lat")?, lon: numbers("lon")?, found })
    }

    /// Whether the segment may have points there.
    pub fn has_any(&self) -> bool {
        self.lat.is_some() && self.lon.is_some()
    }

    /// In arrays, the first latitude goes with the first longitude. What is off the globe is left out.
    pub fn read(&mut self, docs: &[DocId]) -> &ColumnValues<GeoPoint> {
        let Self { lat, lon, found } = self;
        found.positions.clear();
        found.values.clear();
        let (Some(lat), Some(lon)) = (lat, lon) else { return found };
        let (lats, lons) = (lat.read(docs), lon.read(docs));
        let (mut at_lat, mut at_lon) = (0, 0);
        while at_lat < lats.positions.len() && at_lon < lons.positions.len() {
            let (position, other) = (lats.positions[at_lat], lons.positions[at_lon]);
            if position == other
                && let Some(point) = GeoPoint::new(lats.values[at_lat], lons.values[at_lon])
            {
                found.positions.push(position);
                found.values.push(point);
            }
            at_lat += usize::from(position <= other);
            at_lon += usize::from(other <= position);
        }
        found
    }
}
