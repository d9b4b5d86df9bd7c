//! The tokens of one field, one after another as the documents have them: four bytes for nearly every token.

use std::ops::Range;

use crate::full_text::analysis::{GAP_BETWEEN_TEXTS, TokenSpacing};

/// An entry is the number of a token below, and above it how far its position is from that of the token before it.
const NUMBER_BITS: u32 = 25;
/// The position follows in an entry of its own.
const FAR: u32 = (1 << (32 - NUMBER_BITS)) - 1;

/// Tokens that a log can tell apart.
pub const TOKEN_NUMBERS_MAX: usize = 1 << NUMBER_BITS;

#[derive(Clone, Copy)]
struct DocumentStart {
    document: u32,
    /// Of its entries; they end where those of the next begin.
    start: u32,
}

#[derive(Default)]
pub struct TokenLog {
    entries: Vec<u32>,
    /// The documents that have the field.
    documents: Vec<DocumentStart>,
    /// Of the current document: its last position (`u32::MAX` before the first), where the positions of its current text
    /// begin, and the one after the highest.
    last: u32,
    begin: u32,
    end: u32,
    spacing: TokenSpacing,
}

/// A token of a document.
#[derive(Clone, Copy, Default)]
pub struct Occurrence {
    pub document: u32,
    pub position: u32,
}

impl TokenLog {
    pub fn memory_bytes(&self) -> usize {
        self.entries.capacity() * size_of::<u32>() + self.documents.capacity() * size_of::<DocumentStart>()
    }

    /// The document whose tokens come; documents come in their order.
    pub fn begin_document(&mut self, document: u32) {
        if self.documents.last().is_none_or(|last| last.document != document) {
            self.documents.push(DocumentStart { document, start: self.entries.len() as u32 });
            (self.last, self.begin, self.end) = (u32::MAX, 0, 0);
        }
    }

    /// As `begin_document`, for a text whose positions count from behind those of the texts before it.
    pub fn begin_text(&mut self, document: u32) {
        let is_further = self.documents.last().is_some_and(|last| last.document == document);
        self.begin_document(document);
        if is_further {
            self.begin = self.end + GAP_BETWEEN_TEXTS;
            self.end = self.begin;
        }
        self.spacing = TokenSpacing::default();
    }

    /// `position`: within the text, by its analyzer.
    pub fn push(&mut self, number: u32, position: u32) {
        let position = self.begin + self.spacing.place(position);
        self.push_at(number, position);
    }

    /// `position`: within the document.
    pub fn push_at(&mut self, number: u32, position: u32) {
        let step = position.wrapping_sub(self.last);
        self.last = position;
        self.end = self.end.max(position + 1);
        if step < FAR {
            self.entries.push(number | (step << NUMBER_BITS));
        } else {
            self.entries.extend([number | (FAR << NUMBER_BITS), position]);
        }
    }

    /// Takes back what a document has, if it was the last.
    pub fn forget(&mut self, document: u32) {
        if let Some(forgotten) = self.documents.pop_if(|last| last.document == document) {
            self.entries.truncate(forgotten.start as usize);
        }
    }

    /// Each document with its number of tokens.
    pub fn lengths(&self) -> impl Iterator<Item = (u32, u32)> {
        self.tokens().map(|(document, tokens)| (document, tokens.count() as u32))
    }

    fn tokens(&self) -> impl Iterator<Item = (u32, Tokens<'_>)> {
        let starts = self.documents.iter().skip(1).map(|next| next.start as usize);
        let ends = starts.chain([self.entries.len()]);
        self.documents.iter().zip(ends).map(|(&DocumentStart { document, start }, end)| {
            (document, Tokens { entries: &self.entries[start as usize..end], last: u32::MAX })
        })
    }

    fn for_each(&self, mut visit: impl FnMut(u32, Occurrence)) {
        for (document, tokens) in self.tokens() {
            for (number, position) in tokens {
                visit(number, Occurrence { document, position });
            }
        }
    }

    /// How often each of the numbers below `length` occurs.
    pub fn counts(&self, length: usize) -> Vec<u32> {
        let mut counts = vec![0; length];
        self.for_each(|number, _| counts[number as usize] += 1);
        counts
    }

    /// The occurrences of some tokens, those of each together and in their order. `starts`: for each number where its
    /// first goes, and `u32::MAX` for one that is passed over; afterwards where its last ends.
    pub fn gather(&self, starts: &mut [u32], occurrences: &mut [Occurrence]) {
        self.for_each(|number, occurrence| {
            let start = &mut starts[number as usize];
            if *start != u32::MAX {
                occurrences[*start as usize] = occurrence;
                *start += 1;
            }
        });
    }
}

/// Numbers and positions of one document.
struct Tokens<'a> {
    entries: &'a [u32],
    last: u32,
}

impl Iterator for Tokens<'_> {
    type Item = (u32, u32);

    fn next(&mut self) -> Option<(u32, u32)> {
        let (&entry, rest) = self.entries.split_first()?;
        self.entries = rest;
        let step = entry >> NUMBER_BITS;
        self.last = if step < FAR { self.last.wrapping_add(step) } else { self.far()? };
        Some((entry & (TOKEN_NUMBERS_MAX as u32 - 1), self.last))
    }
}

impl Tokens<'_> {
    fn far(&mut self) -> Option<u32> {
        let (&position, rest) = self.entries.split_first()?;
        self.entries = rest;
        Some(position)
    }
}

/// The numbers of `sorted` that occur, in parts of at most `occurrences_max` occurrences, unless one number has more.
pub fn parts<'s>(sorted: &'s [u32], counts: &[u32], occurrences_max: u64) -> impl Iterator<Item = (&'s [u32], usize)> {
    let mut next = 0;
    std::iter::from_fn(move || {
        let mut part = Range { start: next, end: next };
        let mut total = 0;
        for number in &sorted[next..] {
            let count = u64::from(counts[*number as usize]);
            if total > 0 && total + count > occurrences_max {
                break;
            }
            total += count;
            part.end += 1;
        }
        next = part.end;
        (!part.is_empty()).then(|| (&sorted[part], total as usize))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(log: &TokenLog) -> Vec<(u32, u32, u32)> {
        let mut found = Vec::new();
        log.for_each(|number, at| found.push((number, at.document, at.position)));
        found
    }

    #[test]
    fn tokens_come_back_with_documents_and_positions() {
        let mut log = TokenLog::default();
        log.begin_text(3);
        log.push(7, 0);
        log.push(8, 0);
        log.push(7, 100);
        log.begin_text(3);
        log.push(9, 2);
        log.begin_text(3);
        log.begin_text(3);
        log.push(9, 0);
        log.begin_text(5);
        log.push(TOKEN_NUMBERS_MAX as u32 - 1, 125);
        log.push(1, 251);
        log.push(1, 378);
        let expected =
            [(7, 3, 0), (8, 3, 0), (7, 3, 100), (9, 3, 359), (9, 3, 872), (TOKEN_NUMBERS_MAX as u32 - 1, 5, 125)];
        assert_eq!(all(&log)[..6], expected);
        assert_eq!(all(&log)[6..], [(1, 5, 251), (1, 5, 378)]);
        assert_eq!(log.lengths().collect::<Vec<_>>(), [(3, 5), (5, 3)]);
        log.forget(4);
        log.forget(5);
        assert_eq!(all(&log), expected[..5]);
        log.forget(3);
        assert!(all(&log).is_empty());
    }

    #[test]
    fn parts_hold_all_numbers_in_their_order() {
        let counts = [3, 0, 4, 9, 1, 2];
        let sorted = [4, 2, 0, 3, 5];
        let parts: Vec<(Vec<u32>, usize)> =
            parts(&sorted, &counts, 5).map(|(part, total)| (part.to_vec(), total)).collect();
        assert_eq!(parts, [(vec![4, 2], 5), (vec![0], 3), (vec![3], 9), (vec![5], 2)]);
        assert_eq!(super::parts(&[], &counts, 5).count(), 0);
    }
}
