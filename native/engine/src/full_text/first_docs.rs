//! The documents of a segment that come first by a field, so that a page of many matches looks at few of them.

use tantivy::DocId;

/// A value within one segment: its type's rank, and bits that order as the values of that type do.
pub type SegmentValue = (u8, u64);

/// Documents that are kept of a segment: 256 KiB an order.
const KEPT_MAX: usize = 1 << 16;

/// Steps through the order that cost as much as a visit to a match.
const STEPS_OF_VISIT: u64 = 3;

pub struct FirstDocs {
    /// In their order.
    docs: Vec<DocId>,
    /// The segment has no others.
    is_whole: bool,
}

impl FirstDocs {
    /// Of `count` documents. `places` replaces what is in the list by the values of documents and the ranks of their keys,
    /// which compare upwards in the order.
    pub fn of(count: DocId, mut places: impl FnMut(&[DocId], &mut Vec<(SegmentValue, u64)>)) -> Self {
        let (mut docs, mut found) = (Vec::new(), Vec::new());
        let mut first: Vec<(SegmentValue, u64, DocId)> = Vec::new();
        let mut start = 0;
        while start < count {
            let end = count.min(start.saturating_add(KEPT_MAX as DocId));
            docs.clear();
            docs.extend(start..end);
            places(&docs, &mut found);
            first.extend(docs.iter().zip(&found).map(|(doc, (value, key_rank))| (*value, *key_rank, *doc)));
            if first.len() > KEPT_MAX {
                first.select_nth_unstable(KEPT_MAX);
                first.truncate(KEPT_MAX);
            }
            start = end;
        }
        first.sort_unstable();
        Self { docs: first.into_iter().map(|(.., doc)| doc).collect(), is_whole: count as usize <= KEPT_MAX }
    }

    pub fn docs(&self) -> &[DocId] {
        &self.docs
    }

    pub fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// Whether as many of `matches` documents of a segment are likely to be found, sooner than by a visit to each.
    pub fn is_worth_it(wanted: usize, matches: usize, count: DocId) -> bool {
        if wanted == 0 {
            return false;
        }
        let steps = (wanted as u64).saturating_mul(u64::from(count)) / (matches as u64).max(1);
        steps <= (matches as u64).saturating_mul(STEPS_OF_VISIT) && steps <= KEPT_MAX as u64 / 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_more_documents_than_are_kept_come_in_the_order_of_value_and_key() {
        let count = 3 * KEPT_MAX as DocId + 17;
        let place = |doc: DocId| ((1, u64::from(doc % 1_000)), u64::from(count - doc));
        let first = FirstDocs::of(count, |docs, to| {
            to.clear();
            to.extend(docs.iter().map(|doc| place(*doc)));
        });
        let mut wanted: Vec<DocId> = (0..count).collect();
        wanted.sort_unstable_by_key(|doc| place(*doc));
        assert!(!first.is_whole());
        assert_eq!(first.docs(), &wanted[..KEPT_MAX]);
    }

    #[test]
    fn few_documents_are_kept_whole() {
        let first = FirstDocs::of(3, |docs, to| {
            to.clear();
            to.extend(docs.iter().map(|doc| ((0, 7), u64::from(9 - doc))));
        });
        assert!(first.is_whole());
        assert_eq!(first.docs(), [2, 1, 0]);
    }
}
