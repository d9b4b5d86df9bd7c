//! Reads the `_embeddings` member of a document: each vector, in whatever form it was sent, is checked against the index
//! that it is for and becomes the body of a vector row.

use std::borrow::Cow;
use std::ops::Range;

use base64::Engine;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde::Serialize;
use sundew_base::part::dense_set::DenseSet;
use sundew_base::part::{PartBody, PartForm, dense, f32_at, part_head, sparse, sparse_set, u32_at};

use crate::error::EngineError;
use crate::frame::RowKind;
use crate::json::float_at;
use crate::json::{ScanLimits, Scanner, shorten};

/// Entries of one sparse vector.
pub const SPARSE_ENTRIES_MAX: usize = 65_536;

const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// An index of the table, as far as the vectors of a write concern it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VectorTarget {
    pub name: String,
    /// Its incarnation: what vector rows carry.
    pub id: u32,
    pub takes: VectorsTaken,
}

/// Sum of squares of the longest vectors whose squared distances and dot products a float32 still holds; a quarter of
/// its greatest value is 8.5e37.
pub const SQUARES_MAX: f64 = 8e37;

/// What may be written to an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VectorsTaken {
    /// `needs_direction`: a vector of zero norm is refused.
    Dense {
        dimension: u32,
        needs_direction: bool,
    },
    Sparse,
    /// Its embedder makes the vectors.
    Managed,
    /// Not an embeddings index.
    None,
}

/// A vector row to be written; `payload` lies in `VectorRows::payloads`.
#[derive(Debug)]
pub(crate) struct VectorRow {
    pub kind: RowKind,
    pub head: [u8; 8],
    pub payload: Range<usize>,
}

/// The vector rows of many documents.
#[derive(Debug, Default)]
pub(crate) struct VectorRows {
    pub rows: Vec<VectorRow>,
    pub payloads: Vec<u8>,
    entries: Vec<(u32, f32)>,
}

impl VectorRows {
    /// Reads one document's member `_embeddings`, given with its name, which a scan has accepted, and appends a row for
    /// each index named in it. Error: `invalid_embedding`, naming document and index.
    pub fn read(&mut self, member: &[u8], key: &str, indexes: &[VectorTarget]) -> Result<(), EngineError> {
        let limits = ScanLimits { member_name_bytes_max: u32::MAX, ..ScanLimits::default() };
        let mut scanner = Scanner::new(member, &limits)?;
        if scanner.peek() != Some(b'"') {
            return Err(EngineError::internal("a scan entry whose vectors are not a member"));
        }
        scanner.string()?;
        scanner.jump(skip_whitespace(member, skip_whitespace(member, scanner.position()) + 1));
        if scanner.peek() == Some(b'n') {
            return Ok(());
        }
        if scanner.peek() != Some(b'{') {
            let message =
                format!("document {:?}: `_embeddings` must be an object of index names and vectors", shorten(key));
            return Err(EngineError::new("invalid_embedding", message));
        }
        let mut object = scanner.open_object(0)?;
        while let Some(name) = scanner.next_member(&mut object)? {
            let name = scanner.decode(name);
            self.index(&mut scanner, &name, indexes).map_err(|fault| fault.of(key, &name))?;
        }
        Ok(())
    }

    fn index(&mut self, scanner: &mut Scanner<'_>, name: &str, indexes: &[VectorTarget]) -> Result<(), Fault> {
        let Some(index) = indexes.iter().find(|index| index.name == name) else {
            return refuse("names no index of the table; create an embeddings index of this name first");
        };
        match index.takes {
            VectorsTaken::None => return refuse("names an index that is not an embeddings index and holds no vectors"),
            VectorsTaken::Managed => {
                return refuse("cannot be written: the vectors of a managed index are made by its embedder");
            }
            VectorsTaken::Dense { .. } | VectorsTaken::Sparse => {}
        }
        if scanner.peek() == Some(b'n') {
            scanner.value(1)?;
            let head = part_head(index.id, PartForm::Deleted);
            self.rows.push(VectorRow { kind: RowKind::PartDelete, head, payload: 0..0 });
            return Ok(());
        }
        let start = self.payloads.len();
        let form = if let VectorsTaken::Dense { dimension, needs_direction } = index.takes {
            self.dense(scanner, dimension as usize)?;
            self.check_dense(start, dimension as usize, needs_direction)?;
            PartForm::Dense
        } else {
            self.sparse(scanner)?;
            PartForm::Sparse
        };
        let payload = start..self.payloads.len();
        self.rows.push(VectorRow { kind: RowKind::PartPut, head: part_head(index.id, form), payload });
        Ok(())
    }

    /// Appends the float32s of an array of numbers or of a base64 string.
    fn dense(&mut self, scanner: &mut Scanner<'_>, dimension: usize) -> Result<(), Fault> {
        match scanner.peek() {
            Some(b'[') => {
                let (mut count, payloads) = (0, &mut self.payloads);
                each_element(scanner, |text, at| {
                    let (number, end) = float_item(text, at)?;
                    if count < dimension {
                        payloads.extend_from_slice(&number.to_le_bytes());
                    }
                    count += 1;
                    Ok(end)
                })?;
                if count == dimension { Ok(()) } else { Err(wrong_dimension(count, dimension)) }
            }
            Some(b'"') => decode_words(scanner, &mut self.payloads),
            Some(b'{') => refuse("has the form of a sparse vector; the index is dense and takes an array of numbers"),
            _ => refuse("must be an array of numbers, a base64 string of little-endian float32s, or null"),
        }
    }

    fn check_dense(&self, start: usize, dimension: usize, needs_direction: bool) -> Result<(), Fault> {
        let payload = &self.payloads[start..];
        if payload.len() / 4 != dimension {
            return Err(wrong_dimension(payload.len() / 4, dimension));
        }
        // Four sums, so that no addition waits for the one before.
        let mut sums = [0.0; 4];
        for (at, bytes) in payload.chunks_exact(4).enumerate() {
            let value = f64::from(f32_at(bytes, 0));
            sums[at % 4] += value * value;
        }
        let norm: f64 = sums.iter().sum();
        if !norm.is_finite() {
            return Err(not_finite());
        }
        if !needs_direction && norm > SQUARES_MAX {
            return refuse("is too long: its squares add up to more than 8e37, and distances would not fit a float32");
        }
        if needs_direction && norm == 0.0 {
            return refuse("is the zero vector, which has no direction for `cosine`; leave it out or send null");
        }
        Ok(())
    }

    /// Appends the indices, ascending, and then the values.
    fn sparse(&mut self, scanner: &mut Scanner<'_>) -> Result<(), Fault> {
        match scanner.peek() {
            Some(b'{') => {}
            Some(b'[' | b'"') => {
                return refuse("has the form of a dense vector; the index is sparse and takes {\"token\": weight}");
            }
            _ => return refuse("must be an object of tokens and weights, {indices, values}, or null"),
        }
        self.entries.clear();
        read_sparse(scanner, &mut self.entries)?;
        let entries = &mut self.entries;
        if entries.len() > SPARSE_ENTRIES_MAX {
            return Err(too_many());
        }
        entries.sort_unstable_by_key(|entry| entry.0);
        if let Some(pair) = entries.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            return refuse(format!("has the index {} twice", pair[0].0));
        }
        if entries.iter().any(|entry| !entry.1.is_finite()) {
            return Err(not_finite());
        }
        if let Some((index, weight)) = entries.iter().find(|entry| entry.1 <= 0.0) {
            return refuse(format!("has the weight {weight} at {index}; weights are above 0, leave the others out"));
        }
        self.payloads.extend(entries.iter().flat_map(|entry| entry.0.to_le_bytes()));
        self.payloads.extend(entries.iter().flat_map(|entry| entry.1.to_le_bytes()));
        Ok(())
    }
}

/// Reads `{"5": 0.3}`, `{indices, values}` or `{packed_indices, packed_values}`.
fn read_sparse(scanner: &mut Scanner<'_>, entries: &mut Vec<(u32, f32)>) -> Result<(), Fault> {
    let mut indices: Option<Vec<u32>> = None;
    let mut values: Option<Vec<f32>> = None;
    let mut object = scanner.open_object(1)?;
    while let Some(name) = scanner.next_member(&mut object)? {
        match &*scanner.decode(name) {
            "indices" => indices = Some(read_array(scanner, "indices", index_item)?),
            "values" => values = Some(read_array(scanner, "values", float_item)?),
            "packed_indices" => indices = Some(read_packed(scanner, "packed_indices", u32_at)?),
            "packed_values" => values = Some(read_packed(scanner, "packed_values", f32_at)?),
            token => {
                let index = token.parse::<u32>().ok().filter(|_| token.as_bytes()[0].is_ascii_digit());
                let Some(index) = index else {
                    let shown = shorten(token);
                    return refuse(format!("has the token {shown:?}; tokens are integers from 0 to 4294967295"));
                };
                entries.push((index, read_float(scanner)?));
            }
        }
        if entries.len() > SPARSE_ENTRIES_MAX {
            return Err(too_many());
        }
    }
    match (indices, values) {
        (None, None) => Ok(()),
        (Some(indices), Some(values)) if entries.is_empty() => {
            if indices.len() != values.len() {
                return refuse(format!("has {} indices and {} values; give as many", indices.len(), values.len()));
            }
            if let Some(pair) = indices.windows(2).find(|pair| pair[0] > pair[1]) {
                return refuse(format!(
                    "has the index {} behind {}; list indices in ascending order",
                    pair[1], pair[0]
                ));
            }
            entries.extend(indices.into_iter().zip(values));
            Ok(())
        }
        (Some(_), Some(_)) => refuse("mixes tokens with indices and values; use one form"),
        (Some(_), None) => refuse("has indices without values; give as many of both"),
        (None, Some(_)) => refuse("has values without indices; give as many of both"),
    }
}

fn read_array<T>(
    scanner: &mut Scanner<'_>,
    member: &str,
    read: impl Fn(&[u8], usize) -> Result<(T, usize), Fault>,
) -> Result<Vec<T>, Fault> {
    if scanner.peek() != Some(b'[') {
        return refuse(format!("needs an array as `{member}`"));
    }
    let mut items = Vec::new();
    each_element(scanner, |text, at| {
        let (item, end) = read(text, at)?;
        items.push(item);
        if items.len() > SPARSE_ENTRIES_MAX { Err(too_many()) } else { Ok(end) }
    })?;
    Ok(items)
}

/// Steps over the array of numbers at the cursor; `item` reads the number at a position and answers where it ends.
fn each_element(
    scanner: &mut Scanner<'_>,
    mut item: impl FnMut(&[u8], usize) -> Result<usize, Fault>,
) -> Result<(), Fault> {
    let text = scanner.text();
    let mut at = skip_whitespace(text, scanner.position() + 1);
    if text.get(at) != Some(&b']') {
        loop {
            at = skip_whitespace(text, item(text, at)?);
            match text.get(at) {
                Some(b',') => at = skip_whitespace(text, at + 1),
                Some(b']') => break,
                _ => return Err(not_a_number()),
            }
        }
    }
    scanner.jump(at + 1);
    Ok(())
}

fn skip_whitespace(text: &[u8], mut at: usize) -> usize {
    while let Some(b' ' | b'\n' | b'\r' | b'\t') = text.get(at) {
        at += 1;
    }
    at
}

fn read_packed<T>(scanner: &mut Scanner<'_>, member: &str, word: impl Fn(&[u8], usize) -> T) -> Result<Vec<T>, Fault> {
    if scanner.peek() != Some(b'"') {
        return refuse(format!("needs a base64 string as `{member}`"));
    }
    let mut bytes = Vec::new();
    decode_words(scanner, &mut bytes)?;
    Ok(bytes.chunks_exact(4).map(|chunk| word(chunk, 0)).collect())
}

/// Appends what a base64 string of four-byte words holds.
fn decode_words(scanner: &mut Scanner<'_>, bytes: &mut Vec<u8>) -> Result<(), Fault> {
    let start = bytes.len();
    let literal = scanner.string()?;
    let content: Cow<'_, [u8]> = if literal.escaped {
        Cow::Owned(scanner.decode(literal).into_owned().into_bytes())
    } else {
        Cow::Borrowed(&scanner.text()[literal.start..literal.end])
    };
    if BASE64.decode_vec(content, bytes).is_err() {
        return refuse("is a string that is not base64 of the standard alphabet");
    }
    if (bytes.len() - start).is_multiple_of(4) {
        return Ok(());
    }
    refuse("is base64 of bytes whose length is not a multiple of four")
}

/// The number at the cursor; an overflow becomes an infinity.
fn read_float(scanner: &mut Scanner<'_>) -> Result<f32, Fault> {
    let (number, end) = float_at(scanner.text(), scanner.position()).ok_or_else(not_a_number)?;
    scanner.jump(end);
    Ok(number)
}

fn float_item(text: &[u8], at: usize) -> Result<(f32, usize), Fault> {
    float_at(text, at).ok_or_else(not_a_number)
}

fn index_item(text: &[u8], at: usize) -> Result<(u32, usize), Fault> {
    let (_, end) = float_item(text, at)?;
    let digits = std::str::from_utf8(&text[at..end]).map_err(|_| not_a_number())?;
    let index = digits.parse().map_err(|_| {
        Fault::Refused(format!("has the index {}; indices are integers from 0 to 4294967295", shorten(digits)).into())
    })?;
    Ok((index, end))
}

/// Why a vector is not taken, without its position.
#[derive(Debug)]
enum Fault {
    Refused(Cow<'static, str>),
    Json(EngineError),
}

impl Fault {
    fn of(self, key: &str, index: &str) -> EngineError {
        match self {
            Self::Json(error) => error,
            Self::Refused(what) => {
                let message = format!("document {:?}: `_embeddings.{}` {what}", shorten(key), shorten(index));
                EngineError::new("invalid_embedding", message)
            }
        }
    }
}

impl From<EngineError> for Fault {
    fn from(error: EngineError) -> Self {
        Self::Json(error)
    }
}

fn refuse<T>(what: impl Into<Cow<'static, str>>) -> Result<T, Fault> {
    Err(Fault::Refused(what.into()))
}

fn not_a_number() -> Fault {
    Fault::Refused("must hold numbers only".into())
}

fn not_finite() -> Fault {
    Fault::Refused("has a value that is NaN, infinite, or too large for a float32; send finite numbers".into())
}

fn too_many() -> Fault {
    Fault::Refused(format!("has more than {SPARSE_ENTRIES_MAX} entries; keep the greatest weights").into())
}

fn wrong_dimension(count: usize, dimension: usize) -> Fault {
    Fault::Refused(format!("has dimension {count}; the index takes dimension {dimension}").into())
}

/// The JSON text of a stored vector: an array of numbers, or `{"indices":[..],"values":[..]}`;
/// of several vectors an array of them. Every number is the shortest that stands for its float32. Error: `internal` for bytes that are not a vector.
pub fn render_vector(body: &[u8]) -> Result<String, EngineError> {
    let body = PartBody::parse(body)?;
    match body.form {
        PartForm::Deleted => Ok("null".to_owned()),
        PartForm::Dense => as_json(&dense::values(body.payload)?.collect::<Vec<_>>()),
        PartForm::DenseSet => {
            let set = DenseSet::parse(body.payload)?;
            let vectors: Vec<Vec<f32>> = (0..set.count()).map(|at| set.vector(at).collect()).collect();
            as_json(&vectors)
        }
        PartForm::Sparse => render_sparse(body.payload),
        PartForm::SparseSet => {
            let vectors: Vec<String> =
                sparse_set::vectors(body.payload)?.into_iter().map(render_sparse).collect::<Result<_, _>>()?;
            Ok(format!("[{}]", vectors.join(",")))
        }
        PartForm::Edges | PartForm::ChunkSet | PartForm::Asset => {
            Err(EngineError::internal("a part that is not a vector"))
        }
    }
}

fn render_sparse(payload: &[u8]) -> Result<String, EngineError> {
    let (indices, values): (Vec<u32>, Vec<f32>) = sparse::entries(payload)?.unzip();
    Ok(format!("{{\"indices\":{},\"values\":{}}}", as_json(&indices)?, as_json(&values)?))
}

fn as_json<T: Serialize>(numbers: &[T]) -> Result<String, EngineError> {
    serde_json::to_string(numbers)
        .map_err(|error| EngineError::internal(format!("a vector that cannot be written as JSON: {error}")))
}
