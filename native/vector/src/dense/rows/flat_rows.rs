//! Rows that no graph holds yet: sorted by ordinal, the vectors of one document side by side, never changed.

use std::collections::HashMap;
use std::ops::Range;

use sundew_base::bit_set::BitSet;

use super::row_store::RowStore;

pub struct FlatRows {
    pub dimension: usize,
    /// Ascending.
    pub ordinals: Vec<u32>,
    /// Of each vector among those of its document.
    pub numbers: Vec<u16>,
    pub sequences: Vec<u64>,
    /// `dimension` floats for each row, as the metric wants them.
    pub values: RowStore,
}

impl std::fmt::Debug for FlatRows {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "FlatRows({})", self.len())
    }
}

impl FlatRows {
    pub fn with_capacity(dimension: usize, rows: usize) -> Self {
        Self {
            dimension,
            ordinals: Vec::with_capacity(rows),
            numbers: Vec::with_capacity(rows),
            sequences: Vec::with_capacity(rows),
            values: RowStore::Memory(Vec::with_capacity(rows * dimension)),
        }
    }

    pub fn len(&self) -> usize {
        self.ordinals.len()
    }

    pub fn vector(&self, row: u32) -> &[f32] {
        self.values.vector(row, self.dimension)
    }

    /// The rows of a document.
    pub fn rows_of(&self, ordinal: u32) -> Range<u32> {
        // Most rows are behind those of all segments: they come in the order of their ordinals.
        if self.ordinals.last().is_none_or(|&last| last < ordinal) {
            return 0..0;
        }
        let first = self.ordinals.partition_point(|&other| other < ordinal);
        let count = self.ordinals[first..].partition_point(|&other| other == ordinal);
        first as u32..(first + count) as u32
    }

    /// Wherever they lie.
    pub fn bytes(&self) -> usize {
        self.len() * (14 + 4 * self.dimension)
    }

    pub fn memory_bytes(&self) -> usize {
        self.len() * 14 + self.values.memory_bytes()
    }

    /// `ordinal` must not be less than that of the last row.
    pub fn push(&mut self, ordinal: u32, number: u16, sequence: u64, vector: &[f32]) {
        self.ordinals.push(ordinal);
        self.numbers.push(number);
        self.sequences.push(sequence);
        self.values.push(vector);
    }

    /// The rows of both that are not dead. No ordinal may live in both.
    pub fn merged(a: (&Self, &BitSet), b: (&Self, &BitSet)) -> Self {
        let rows = a.0.len() + b.0.len() - a.1.len() - b.1.len();
        let mut merged = Self::with_capacity(a.0.dimension, rows);
        let live = |(rows, dead): (&Self, &BitSet), mut row: u32| {
            while (row as usize) < rows.len() && dead.contains(row) {
                row += 1;
            }
            ((row as usize) < rows.len()).then_some(row)
        };
        let (mut a_row, mut b_row) = (live(a, 0), live(b, 0));
        loop {
            let takes_a = match (a_row, b_row) {
                (None, None) => return merged,
                (Some(_), None) => true,
                (None, Some(_)) => false,
                (Some(at), Some(other)) => a.0.ordinals[at as usize] < b.0.ordinals[other as usize],
            };
            let (source, cursor) = if takes_a { (a, &mut a_row) } else { (b, &mut b_row) };
            if let Some(row) = *cursor {
                let at = row as usize;
                merged.push(source.0.ordinals[at], source.0.numbers[at], source.0.sequences[at], source.0.vector(row));
                *cursor = live(source, row + 1);
            }
        }
    }
}

/// Rows that were applied and are not committed.
#[derive(Debug, Default)]
pub struct PendingRows {
    /// The rows of a document, one behind the other.
    rows_of: HashMap<u32, Range<usize>>,
    numbers: Vec<u16>,
    sequences: Vec<u64>,
    values: Vec<f32>,
}

impl PendingRows {
    pub fn document_count(&self) -> usize {
        self.rows_of.len()
    }

    /// Forgets the rows of the document, if there are any.
    pub fn remove(&mut self, ordinal: u32) {
        self.rows_of.remove(&ordinal);
    }

    /// Takes the vectors in place of those that the document had; `numbers` and `vectors` have one item for each.
    pub fn put(&mut self, ordinal: u32, sequence: u64, numbers: &[u16], vectors: &[f32]) {
        if numbers.is_empty() {
            self.remove(ordinal);
            return;
        }
        let dimension = vectors.len() / numbers.len();
        if let Some(held) = self.rows_of.get(&ordinal).filter(|held| held.len() == numbers.len()) {
            self.numbers[held.clone()].copy_from_slice(numbers);
            self.sequences[held.clone()].fill(sequence);
            self.values[held.start * dimension..held.end * dimension].copy_from_slice(vectors);
            return;
        }
        let first = self.numbers.len();
        self.numbers.extend_from_slice(numbers);
        self.sequences.resize(self.numbers.len(), sequence);
        self.values.extend_from_slice(vectors);
        self.rows_of.insert(ordinal, first..self.numbers.len());
    }

    /// Takes the rows out, as they can be searched.
    pub fn take(&mut self, dimension: usize) -> FlatRows {
        let mut pending = std::mem::take(self);
        let mut order: Vec<(u32, Range<usize>)> = pending.rows_of.drain().collect();
        order.sort_unstable_by_key(|(ordinal, _)| *ordinal);
        let ends = order.iter().try_fold(0, |end, (_, rows)| (rows.start == end).then_some(rows.end));
        if ends == Some(pending.numbers.len()) {
            let ordinals = order.iter().flat_map(|(ordinal, rows)| std::iter::repeat_n(*ordinal, rows.len())).collect();
            let PendingRows { numbers, sequences, values, .. } = pending;
            return FlatRows { dimension, ordinals, numbers, sequences, values: RowStore::Memory(values) };
        }
        let mut rows = FlatRows::with_capacity(dimension, order.iter().map(|(_, rows)| rows.len()).sum());
        for (ordinal, at) in order.into_iter().flat_map(|(ordinal, rows)| rows.map(move |row| (ordinal, row))) {
            let vector = &pending.values[at * dimension..][..dimension];
            rows.push(ordinal, pending.numbers[at], pending.sequences[at], vector);
        }
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_rows_of_a_document_are_kept_and_dead_rows_are_left_out() {
        let mut pending = PendingRows::default();
        pending.put(7, 1, &[0], &[1.0]);
        pending.put(3, 2, &[0], &[2.0]);
        pending.put(7, 3, &[0, 2], &[3.0, 3.5]);
        pending.put(9, 4, &[0], &[4.0]);
        pending.remove(9);
        let older = pending.take(1);
        let values = |rows: &FlatRows| (0..rows.len() as u32).map(|row| rows.vector(row)[0]).collect::<Vec<f32>>();
        assert_eq!((older.ordinals.as_slice(), values(&older)), (&[3, 7, 7][..], vec![2.0, 3.0, 3.5]));
        assert_eq!((older.rows_of(7), older.rows_of(5)), (1..3, 1..1));
        pending.put(5, 6, &[0], &[6.0]);
        pending.put(3, 5, &[0], &[5.0]);
        let newer = pending.take(1);
        let mut dead = BitSet::with_room(3);
        dead.insert(0);
        let merged = FlatRows::merged((&older, &dead), (&newer, &BitSet::with_room(2)));
        assert_eq!(merged.ordinals, [3, 5, 7, 7]);
        assert_eq!(merged.numbers, [0, 0, 0, 2]);
        assert_eq!(merged.sequences, [5, 6, 3, 3]);
        assert_eq!(values(&merged), [5.0, 6.0, 3.0, 3.5]);
    }
}
