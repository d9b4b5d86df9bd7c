//! The rows that an index takes in until a commit shows them, and the segments that the commit makes of them.

use std::collections::HashSet;
use std::sync::Arc;

use sundew_base::error::EngineError;
use sundew_base::frame::{Row, RowKind};
use sundew_base::part::dense_set::DenseSet;
use sundew_base::part::{PartBody, PartForm, dense, part_id_of};

use super::builder::{Plan, plan};
use super::options::DenseOptions;
use super::rows::flat_file::spill_flat_rows;
use super::rows::flat_rows::{FlatRows, PendingRows};
use super::segment::{Segment, SegmentRows};
use super::segment_files::SegmentFiles;
use sundew_base::bit_set::BitSet;

/// While nothing is written, rows without a graph are scanned up to this share of `tail_bytes`: a search then has them
/// compared in some 20 us.
const IDLE_TAIL_SHARE: usize = 4;

/// The state that the next commit will show.
pub struct DenseWriter {
    pub pending: PendingRows,
    pub segments: Vec<Segment>,
    pub next_segment_id: u64,
    /// Segments that are being built from; they stay as they are but for their dead rows.
    pub busy: HashSet<u64>,
    /// Threads that build graphs now; two when rows wait while a large graph is being rebuilt.
    pub builders: usize,
    /// One of them relinks more rows than it adds.
    pub is_rewriting: bool,
    /// No row was committed since the writer was released.
    pub is_idle: bool,
    /// Rows wait for the links that they had in another index.
    pub is_held: bool,
    /// The vectors of the row at hand, and their numbers.
    vectors: Vec<f32>,
    numbers: Vec<u16>,
}

impl DenseWriter {
    pub fn new(segments: Vec<Segment>, next_segment_id: u64, dimension: usize) -> Self {
        Self {
            pending: PendingRows::default(),
            segments,
            next_segment_id,
            busy: HashSet::new(),
            builders: 0,
            is_rewriting: false,
            is_idle: false,
            is_held: false,
            vectors: Vec::with_capacity(dimension),
            numbers: Vec::new(),
        }
    }

    /// Takes in a row, if it is of this index. The inner error is the reason for which it is left out.
    pub fn apply(&mut self, row: &Row<'_>, options: &DenseOptions) -> Result<Result<(), String>, EngineError> {
        match row.kind {
            RowKind::Put | RowKind::Transform | RowKind::State => {}
            RowKind::Delete => self.kill(row.ordinal),
            RowKind::PartPut => return self.put(row, options),
            RowKind::PartDelete => {
                if part_id_of(row.body)? == options.index_id {
                    self.kill(row.ordinal);
                }
            }
        }
        Ok(Ok(()))
    }

    fn put(&mut self, row: &Row<'_>, options: &DenseOptions) -> Result<Result<(), String>, EngineError> {
        if part_id_of(row.body)? != options.index_id {
            return Ok(Ok(()));
        }
        let body = PartBody::parse(row.body)?;
        // The old vector leaves the index, whether the new one can be indexed or not.
        self.kill(row.ordinal);
        let dimension = options.dimension as usize;
        let of_other_length = || Ok(Err(format!("the vector does not have {dimension} dimensions")));
        self.vectors.clear();
        match body.form {
            PartForm::Dense if body.payload.len() == 4 * dimension => {
                self.vectors.extend(dense::values(body.payload)?);
            }
            PartForm::DenseSet => {
                let set = DenseSet::parse(body.payload)?;
                if set.dimension != dimension {
                    return of_other_length();
                }
                (0..set.count()).for_each(|at| self.vectors.extend(set.vector(at)));
            }
            _ => return of_other_length(),
        }
        Ok(self.put_vectors(row, options))
    }

    /// Takes those of `vectors` that can be compared as the document's. Error: why one of them cannot.
    fn put_vectors(&mut self, row: &Row<'_>, options: &DenseOptions) -> Result<(), String> {
        let dimension = options.dimension as usize;
        let mut refused = Ok(());
        self.numbers.clear();
        for at in 0..self.vectors.len() / dimension {
            let vector = &mut self.vectors[at * dimension..][..dimension];
            match options.metric.prepare(vector) {
                Ok(()) => {
                    let to = self.numbers.len();
                    self.vectors.copy_within(at * dimension..(at + 1) * dimension, to * dimension);
                    self.numbers.push(at as u16);
                }
                Err(reason) => refused = Err(reason),
            }
        }
        let taken = self.numbers.len() * dimension;
        self.pending.put(row.ordinal, row.sequence, &self.numbers, &self.vectors[..taken]);
        refused
    }

    pub fn plan(&self, options: &DenseOptions) -> Option<Plan> {
        if self.is_held {
            return None;
        }
        let tail_bytes = if self.is_idle { options.tail_bytes / IDLE_TAIL_SHARE } else { options.tail_bytes };
        plan(&self.segments, &self.busy, options, tail_bytes)
    }

    /// Takes the vectors of the document out of the index. Does nothing where it has none.
    fn kill(&mut self, ordinal: u32) {
        self.pending.remove(ordinal);
        for segment in &mut self.segments {
            if segment.kill(ordinal) {
                return;
            }
        }
    }

    /// Bytes of the committed rows that no graph holds, in memory and in files.
    pub fn flat_bytes(&self) -> usize {
        self.segments.iter().filter_map(|segment| segment.rows.as_flat()).map(FlatRows::bytes).sum()
    }

    /// Makes the pending rows a segment. Neighbouring segments of like size become one, so that there are few of them and
    /// every row is copied a few times only; a large one moves into a file, so that memory holds few rows however many wait
    /// for their graph.
    pub fn add_pending(&mut self, options: &DenseOptions, files: Option<&SegmentFiles>) {
        let busy = &self.busy;
        self.segments.retain(|segment| segment.live_count() > 0 || busy.contains(&segment.id));
        let mut documents = self.pending.document_count();
        if documents == 0 {
            return;
        }
        self.is_idle = false;
        let mut rows = self.pending.take(options.dimension as usize);
        while let Some(last) = self.segments.last()
            && !self.busy.contains(&last.id)
            && let Some(older) = last.rows.as_flat()
            && older.len() <= 2 * rows.len()
            && older.bytes() < options.flat_bytes_max()
        {
            rows = FlatRows::merged((older, &last.dead), (&rows, &BitSet::with_room(rows.len())));
            documents += last.document_count;
            self.segments.pop();
        }
        self.next_segment_id += 1;
        let id = self.next_segment_id;
        if let Some(files) = files
            && rows.bytes() >= options.flat_bytes_max()
        {
            spill_flat_rows(files, id, &mut rows);
        }
        self.segments.push(Segment::new(id, SegmentRows::Flat(Arc::new(rows)), documents));
    }
}
