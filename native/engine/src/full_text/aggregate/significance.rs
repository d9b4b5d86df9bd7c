//! How much more frequent a term is in a set of documents than in its background.

use crate::full_text::plan::SignificanceAlgorithm;

/// Documents with the term, and all documents, of the set and of its background.
#[derive(Debug, Clone, Copy)]
pub struct Frequencies {
    pub in_set: f64,
    pub set: f64,
    pub in_background: f64,
    pub background: f64,
}

impl Frequencies {
    /// The set is part of the background, but for an answer whose time was over before all of the background was seen.
    pub fn new(in_set: u64, set: u64, in_background: u64, background: u64) -> Self {
        let in_background = in_background.max(in_set) as f64;
        let outside = (background as f64).max(set as f64).max(in_background + set as f64 - in_set as f64);
        Self { in_set: in_set as f64, set: set as f64, in_background, background: outside }
    }

    /// 0 or less: no more frequent than in the background. Formulas: `percentage` and `jlh` compare shares; the others
    /// are those of Manning, Raghavan and Schütze, "Introduction to Information Retrieval", 13.5.
    pub fn score(&self, algorithm: SignificanceAlgorithm) -> f64 {
        let share = self.in_set / self.set;
        let background_share = self.in_background / self.background;
        if share <= background_share && algorithm != SignificanceAlgorithm::Percentage {
            return 0.0;
        }
        match algorithm {
            SignificanceAlgorithm::Percentage => self.in_set / self.in_background,
            SignificanceAlgorithm::Jlh => (share - background_share) * (share / background_share),
            SignificanceAlgorithm::ChiSquared => self.chi_squared(),
            SignificanceAlgorithm::MutualInformation => self.mutual_information(),
        }
    }

    /// Documents with and without the term (rows), inside and outside of the set (columns).
    fn table(&self) -> [[f64; 2]; 2] {
        let with_outside = self.in_background - self.in_set;
        let without_inside = self.set - self.in_set;
        let without_outside = self.background - self.in_background - without_inside;
        [[self.in_set, with_outside], [without_inside, without_outside]]
    }

    fn chi_squared(&self) -> f64 {
        let [[a, b], [c, d]] = self.table();
        let margins = (a + b) * (c + d) * (a + c) * (b + d);
        if margins == 0.0 { 0.0 } else { self.background * (a * d - b * c).powi(2) / margins }
    }

    fn mutual_information(&self) -> f64 {
        let table = self.table();
        let mut sum = 0.0;
        for row in 0..2 {
            for column in 0..2 {
                let cell = table[row][column];
                let margins = (table[row][0] + table[row][1]) * (table[0][column] + table[1][column]);
                if cell > 0.0 {
                    sum += cell / self.background * (self.background * cell / margins).log2();
                }
            }
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::{Frequencies, SignificanceAlgorithm};

    fn scores(frequencies: Frequencies) -> [f64; 4] {
        use SignificanceAlgorithm::{ChiSquared, Jlh, MutualInformation, Percentage};
        [Jlh, Percentage, ChiSquared, MutualInformation].map(|algorithm| frequencies.score(algorithm))
    }

    #[test]
    fn the_worked_example_of_the_textbook() {
        // 49 of 190 poultry documents speak of exports, of 27,701 outside; the book counts 141 + 774,106 without.
        let frequencies = Frequencies::new(49, 190, 49 + 27_652, 801_948);
        let [_, _, chi_squared, information] = scores(frequencies);
        assert!((chi_squared - 284.0).abs() < 1.0, "{chi_squared}");
        assert!((information - 0.000_110_5).abs() < 1e-6, "{information}");
    }

    #[test]
    fn shares_are_compared() {
        let [jlh, percentage, ..] = scores(Frequencies::new(5, 10, 20, 100));
        assert!((jlh - 0.75).abs() < 1e-12 && (percentage - 0.25).abs() < 1e-12);
        assert_eq!(scores(Frequencies::new(1, 10, 50, 100))[0], 0.0);
        // A background of which little was seen.
        assert!(scores(Frequencies::new(5, 10, 0, 3)).iter().all(|score| score.is_finite()));
    }
}
