//! What the stored bounds of blocks tell of scores by another average length.
//!
//! Of each full block Tantivy stores the norm and frequency that score most by the average length of texts in the
//! segment, as it was when the segment was written. Queries score by the average of all segments and ranges, by which
//! another document of the block may score more: one that has the word more often in a longer text, where the average
//! is greater.
//!
//! BM25 gives `f / (f + k)` of a word's weight, with `k = k1 * (1 - b + b * length / average)`. By an average that is
//! `1 / r` times the stored one, `k` is at least `r` times what it was, whatever the length. With `s` the greatest
//! share by the stored average, no document of the block has a share above `s / (s + r * (1 - s))`.

use tantivy::Score;
use tantivy::fieldnorm::FieldNormReader;
use tantivy::postings::BlockSegmentPostings;
use tantivy::query::Bm25Weight;

/// A score, and a bound, each come out of a dozen operations in single precision.
const ROUNDING: Score = 1.0 + 16.0 * Score::EPSILON;

/// The bounds of a field's blocks in one segment.
#[derive(Clone)]
pub struct BlockBounds {
    /// By the stored average, of any word.
    stored: Bm25Weight,
    /// Of that word.
    weight: Score,
    /// `r`, at most 1: by a smaller average no document scores more.
    ratio: Score,
}

impl BlockBounds {
    /// `stored` is the average when the segment was written, `asked` that of the query; `None` where they are the same.
    pub fn of(stored: Score, asked: Score) -> Option<Self> {
        if stored == asked {
            return None;
        }
        let weight = Bm25Weight::for_one_term_without_explain(1, 1, stored);
        Some(Self { weight: whole(&weight), stored: weight, ratio: (stored / asked).min(1.0) })
    }

    /// The most that a document of the block scores of a word's `weight`; 0 where nothing is stored.
    pub fn of_block(&self, blocks: &mut BlockSegmentPostings, norms: &FieldNormReader, weight: Score) -> Score {
        self.widened(blocks.block_max_score(norms, &self.stored), weight)
    }

    /// The same of a block whose stored norm and frequency these are.
    pub fn of_best(&self, norm: u8, frequency: u32, weight: Score) -> Score {
        self.widened(self.stored.score(norm, frequency), weight)
    }

    fn widened(&self, stored: Score, weight: Score) -> Score {
        let share = stored / self.weight;
        weight * ROUNDING * share / (share + self.ratio * (1.0 - share))
    }
}

/// What a word scores at most, however often it is in however short a text.
pub fn whole(weight: &Bm25Weight) -> Score {
    weight.score(0, u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of every two documents, the one that scores most by the stored average bounds the other by any average.
    #[test]
    fn no_document_of_a_block_scores_above_its_bound() {
        let lengths = [1, 2, 3, 5, 9, 14, 40, 200, 3_000].map(|length| {
            let norm = (0..=u8::MAX).rev().find(|norm| FieldNormReader::id_to_fieldnorm(*norm) <= length);
            norm.expect("a norm")
        });
        let documents = || lengths.into_iter().flat_map(|norm| [1, 2, 3, 7, 50].map(|frequency| (norm, frequency)));
        let averages = [1.0, 1.5, 8.0, 10.0, 10.1, 20.0, 400.0];
        for (stored, asked) in averages.into_iter().flat_map(|stored| averages.map(|asked| (stored, asked))) {
            let by = |average: Score| Bm25Weight::for_one_term_without_explain(30, 1_000, average);
            let (then, now) = (by(stored), by(asked));
            let bounds = BlockBounds::of(stored, asked);
            for (best, other) in documents().flat_map(|best| documents().map(move |other| (best, other))) {
                if then.score(best.0, best.1) < then.score(other.0, other.1) {
                    continue;
                }
                let bound = match &bounds {
                    Some(bounds) => bounds.of_best(best.0, best.1, whole(&now)),
                    None => now.score(best.0, best.1),
                };
                assert!(now.score(other.0, other.1) <= bound, "{stored} {asked} {best:?} {other:?}");
            }
        }
    }
}
