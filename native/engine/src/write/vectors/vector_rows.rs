//! Reads the `_embeddings` member of a document: each vector, in whatever form it was sent, is checked against the index
//! that it is for and becomes the body of a vector row.

use std::ops::Range;

use sundew_base::part::{PartForm, f32_at, part_head};

use super::vector_reader::{SPARSE_ENTRIES_MAX, read_dense, read_sparse, too_many, wrong_dimension};
use crate::error::EngineError;
use crate::frame::RowKind;
use crate::json::{Scanner, shorten};
use crate::write::index_member::{Fault, MemberPosition, accepted_limits, refuse, scanner_at_value};

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

/// The vectors that an index takes in a write.
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
        let limits = accepted_limits();
        let mut scanner = scanner_at_value(member, &limits)?;
        if scanner.peek() == Some(b'n') {
            return Ok(());
        }
        if scanner.peek() != Some(b'{') {
            let message =
                format!("document {:?}: \"_embeddings\" must be an object of index names and vectors", shorten(key));
            return Err(EngineError::new("invalid_embedding", message));
        }
        let mut object = scanner.open_object(0)?;
        while let Some(name) = scanner.next_member(&mut object)? {
            let name = scanner.decode(name);
            self.index(&mut scanner, &name, indexes).map_err(|fault| {
                let position = MemberPosition { key, member: "_embeddings", index: &name };
                fault.at(position, "invalid_embedding")
            })?;
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
            read_dense(scanner, dimension as usize, &mut self.payloads)?;
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
            return refuse("is the zero vector, which has no direction for \"cosine\"; leave it out or send null");
        }
        Ok(())
    }

    /// Appends the indices, ascending, and then the values.
    fn sparse(&mut self, scanner: &mut Scanner<'_>) -> Result<(), Fault> {
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

fn not_finite() -> Fault {
    Fault::Refused("has a value that is NaN, infinite, or too large for a float32; send finite numbers".into())
}
