//! Unions of so few postings that all are read before any document is scored.

use tantivy::{DocId, Score};

use crate::error::EngineError;
use crate::full_text::query::deadline::Deadline;
use crate::full_text::query::words::word_cursor::{WordCursor, least_frequency};
use crate::full_text::query::words::word_walks::Watch;

/// Bits of the sieve that tells documents of several words, for each posting: a power of two. The share of documents
/// that it takes for such, though they have one of the words, is at most one divided by this.
const SIEVE_BITS: usize = 32;

/// All matches of a union, in order.
pub fn gather(
    cursors: &mut [WordCursor<'_>],
    lets_through: impl Fn(DocId) -> bool,
    deadline: &Deadline,
) -> Result<Vec<(DocId, Score)>, EngineError> {
    let mut watch = Watch::new(deadline);
    let postings: u32 = cursors.iter().map(|cursor| cursor.blocks.doc_freq()).sum();
    let mut found: Vec<(DocId, Score)> = Vec::with_capacity(postings as usize);
    for cursor in cursors.iter_mut() {
        while !cursor.blocks.docs().is_empty() {
            watch.block()?;
            let wanted = cursor.blocks.docs().iter().enumerate().filter(|(_, doc)| lets_through(**doc));
            found.extend(wanted.map(|(at, doc)| (*doc, cursor.score(at))));
            cursor.blocks.advance();
        }
    }
    if cursors.len() > 1 {
        // Stable, and fast on what is a few sorted runs.
        found.sort_by_key(|(doc, _)| *doc);
        add_up_same(&mut found);
    }
    Ok(found)
}

/// Makes one of the scores of each document, which are side by side.
fn add_up_same(found: &mut Vec<(DocId, Score)>) {
    let (mut at, mut kept) = (0, 0);
    while at < found.len() {
        let (doc, first) = found[at];
        let mut score = f64::from(first);
        at += 1;
        while at < found.len() && found[at].0 == doc {
            score += f64::from(found[at].1);
            at += 1;
        }
        found[kept] = (doc, score as Score);
        kept += 1;
    }
    found.truncate(kept);
}

/// The same without documents whose score does not exceed `threshold`. The length of a document is read only where it
/// has several of the words, or one so often that it might exceed the threshold.
pub fn gather_best(
    cursors: &mut [WordCursor<'_>],
    lets_through: impl Fn(DocId) -> bool,
    threshold: Score,
    deadline: &Deadline,
) -> Result<Vec<(DocId, Score)>, EngineError> {
    let mut lists = Vec::with_capacity(cursors.len());
    let mut watch = Watch::new(deadline);
    for cursor in cursors.iter_mut() {
        lists.push(Postings::read(cursor, &mut watch)?);
    }
    let several = of_several(cursors, &lists);
    let is_single = |doc: DocId| several.binary_search_by_key(&doc, |(doc, _)| *doc).is_err();
    let mut found: Vec<(DocId, Score)> = Vec::new();
    for (cursor, Postings { docs, frequencies }) in cursors.iter().zip(&lists) {
        let least = least_frequency(&cursor.most_by_frequency(), f64::from(threshold));
        for (doc, frequency) in docs.iter().zip(frequencies) {
            if *frequency >= least {
                let score = cursor.score_of(*doc, *frequency);
                if score > threshold && is_single(*doc) && lets_through(*doc) {
                    found.push((*doc, score));
                }
            }
        }
    }
    found.extend(several.iter().filter(|(doc, score)| *score > threshold && lets_through(*doc)));
    found.sort_unstable_by_key(|(doc, _)| *doc);
    Ok(found)
}

/// All postings of a word.
struct Postings {
    docs: Vec<DocId>,
    frequencies: Vec<u32>,
}

impl Postings {
    fn read(cursor: &mut WordCursor<'_>, watch: &mut Watch<'_>) -> Result<Self, EngineError> {
        let count = cursor.blocks.doc_freq() as usize;
        let (mut docs, mut frequencies) = (Vec::with_capacity(count), Vec::with_capacity(count));
        while !cursor.blocks.docs().is_empty() {
            watch.block()?;
            docs.extend_from_slice(cursor.blocks.docs());
            frequencies.extend_from_slice(cursor.blocks.freqs());
            cursor.blocks.advance();
        }
        Ok(Self { docs, frequencies })
    }
}

/// The documents that have several of the words, in order, with their scores.
fn of_several(cursors: &[WordCursor<'_>], lists: &[Postings]) -> Vec<(DocId, Score)> {
    let Some((last, before)) = lists.split_last().filter(|(_, before)| !before.is_empty()) else { return Vec::new() };
    let bits = (before.iter().map(|list| list.docs.len()).sum::<usize>() * SIEVE_BITS).next_power_of_two().max(64);
    let mut sieve = vec![0u64; bits / 64];
    let place = |doc: DocId| (doc as usize % bits / 64, 1 << (doc % 64));
    let mut suspects: Vec<DocId> = Vec::new();
    for (at, list) in before.iter().chain([last]).enumerate() {
        if at > 0 {
            let is_in_sieve = |doc: &&DocId| {
                let (word, bit) = place(**doc);
                sieve[word] & bit != 0
            };
            suspects.extend(list.docs.iter().filter(is_in_sieve));
        }
        if at < before.len() {
            for doc in &list.docs {
                let (word, bit) = place(*doc);
                sieve[word] |= bit;
            }
        }
    }
    suspects.sort_unstable();
    suspects.dedup();
    let scored = suspects.into_iter().filter_map(|doc| {
        let (mut words, mut score) = (0, 0.0);
        for (cursor, list) in cursors.iter().zip(lists) {
            if let Ok(at) = list.docs.binary_search(&doc) {
                words += 1;
                score += f64::from(cursor.score_of(doc, list.frequencies[at]));
            }
        }
        (words > 1).then_some((doc, score as Score))
    });
    scored.collect()
}
