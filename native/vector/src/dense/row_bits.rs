//! A bit for each row of a part: the rows that are dead, or those that a filter allows.

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RowBits {
    words: Vec<u64>,
    count: usize,
}

impl RowBits {
    /// No bit set of `rows` bits.
    pub fn none(rows: usize) -> Self {
        Self { words: vec![0; rows.div_ceil(64)], count: 0 }
    }

    pub fn from_words(words: Vec<u64>) -> Self {
        let count = words.iter().map(|word| word.count_ones() as usize).sum();
        Self { words, count }
    }

    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// Bits that are set.
    pub fn count(&self) -> usize {
        self.count
    }

    /// `place` must be below the number of rows.
    #[inline]
    pub fn contains(&self, place: u32) -> bool {
        self.words[place as usize / 64] >> (place % 64) & 1 == 1
    }

    /// Whether the bit is newly set.
    pub fn insert(&mut self, place: u32) -> bool {
        let word = &mut self.words[place as usize / 64];
        let before = *word;
        *word |= 1 << (place % 64);
        let is_new = *word != before;
        self.count += usize::from(is_new);
        is_new
    }

    /// The places whose bit is set, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.words.iter().enumerate().flat_map(|(at, &word)| {
            std::iter::successors((word != 0).then_some(word), |left| {
                let rest = left & (left - 1);
                (rest != 0).then_some(rest)
            })
            .map(move |left| at as u32 * 64 + left.trailing_zeros())
        })
    }
}
