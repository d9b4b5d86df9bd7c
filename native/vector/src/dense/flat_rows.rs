//! Rows in memory that no graph holds yet: sorted by ordinal, each ordinal once, never changed.

use std::collections::HashMap;

use sundew_base::bit_set::BitSet;

#[derive(Debug, Default)]
pub struct FlatRows {
    pub dimension: usize,
    /// Ascending.
    pub ordinals: Vec<u32>,
    pub sequences: Vec<u64>,
    /// `dimension` floats for each row, as the metric wants them.
    pub values: Vec<f32>,
}

impl FlatRows {
    pub fn with_capacity(dimension: usize, rows: usize) -> Self {
        Self {
            dimension,
            ordinals: Vec::with_capacity(rows),
            sequences: Vec::with_capacity(rows),
            values: Vec::with_capacity(rows * dimension),
        }
    }

    pub fn len(&self) -> usize {
        self.ordinals.len()
    }

    pub fn vector(&self, row: u32) -> &[f32] {
        &self.values[row as usize * self.dimension..][..self.dimension]
    }

    pub fn row_of(&self, ordinal: u32) -> Option<u32> {
        self.ordinals.binary_search(&ordinal).ok().map(|row| row as u32)
    }

    pub fn bytes(&self) -> usize {
        self.values.len() * 4 + self.len() * 12
    }

    /// `ordinal` must be greater than that of the last row.
    pub fn push(&mut self, ordinal: u32, sequence: u64, vector: &[f32]) {
        self.ordinals.push(ordinal);
        self.sequences.push(sequence);
        self.values.extend_from_slice(vector);
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
                merged.push(source.0.ordinals[at], source.0.sequences[at], source.0.vector(row));
                *cursor = live(source, row + 1);
            }
        }
    }
}

/// Rows that were applied and are not committed.
#[derive(Debug, Default)]
pub struct PendingRows {
    row_of: HashMap<u32, u32>,
    sequences: Vec<u64>,
    values: Vec<f32>,
}

impl PendingRows {
    pub fn len(&self) -> usize {
        self.row_of.len()
    }

    /// Forgets the row of the ordinal, if there is one.
    pub fn remove(&mut self, ordinal: u32) {
        self.row_of.remove(&ordinal);
    }

    /// The newer row of an ordinal replaces the older one.
    pub fn put(&mut self, ordinal: u32, sequence: u64, vector: &[f32]) {
        let dimension = vector.len();
        if let Some(&row) = self.row_of.get(&ordinal) {
            self.sequences[row as usize] = sequence;
            self.values[row as usize * dimension..][..dimension].copy_from_slice(vector);
            return;
        }
        self.row_of.insert(ordinal, self.sequences.len() as u32);
        self.sequences.push(sequence);
        self.values.extend_from_slice(vector);
    }

    /// Takes the rows out, as they can be searched.
    pub fn take(&mut self, dimension: usize) -> FlatRows {
        let pending = std::mem::take(self);
        let mut order: Vec<(u32, u32)> = pending.row_of.into_iter().collect();
        order.sort_unstable();
        let mut rows = FlatRows::with_capacity(dimension, order.len());
        for (ordinal, row) in order {
            let at = row as usize;
            rows.push(ordinal, pending.sequences[at], &pending.values[at * dimension..][..dimension]);
        }
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_row_of_an_ordinal_is_kept_and_dead_rows_are_left_out() {
        let mut pending = PendingRows::default();
        pending.put(7, 1, &[1.0]);
        pending.put(3, 2, &[2.0]);
        pending.put(7, 3, &[3.0]);
        pending.put(9, 4, &[4.0]);
        pending.remove(9);
        let older = pending.take(1);
        assert_eq!((older.ordinals.as_slice(), older.values.as_slice()), (&[3, 7][..], &[2.0, 3.0][..]));
        pending.put(5, 6, &[6.0]);
        pending.put(3, 5, &[5.0]);
        let newer = pending.take(1);
        let mut dead = BitSet::with_room(2);
        dead.insert(0);
        let merged = FlatRows::merged((&older, &dead), (&newer, &BitSet::with_room(2)));
        assert_eq!(merged.ordinals, [3, 5, 7]);
        assert_eq!(merged.sequences, [5, 6, 3]);
        assert_eq!(merged.values, [5.0, 6.0, 3.0]);
    }
}
