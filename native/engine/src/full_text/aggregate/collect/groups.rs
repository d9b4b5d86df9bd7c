//! The buckets of one aggregation in one segment.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, Hasher, RandomState};

use crate::error::EngineError;
use crate::full_text::aggregate::answers::distinct::mixed;
use crate::full_text::aggregate::answers::partial::{Partial, PartialBucket, PartialBuckets};
use crate::full_text::aggregate::budget::Budget;
use crate::full_text::aggregate::collect::columns::Pairs;
use crate::full_text::aggregate::collect::group_keys::{FoundKeys, KeySource, LocalKey, NUMBERED, TEXT};
use crate::full_text::aggregate::context::Context;

/// Pairs that are gathered before the nested aggregations see them.
const PAIRS_PER_BLOCK: usize = 4096;

/// Dictionaries up to this size have a table instead of a map, strings.
const TABLE_MAX: usize = 1 << 20;

/// Neighbouring intervals that have a table, around the first one that was met.
const INTERVALS_IN_TABLE: u64 = 4096;

/// Buckets are found by small keys, once for each value of each document: mixing is enough, with a seed of the process
/// so that documents cannot be made to collide.
#[derive(Clone)]
struct KeyHashing(u64);

struct KeyHasher(u64);

impl BuildHasher for KeyHashing {
    type Hasher = KeyHasher;

    fn build_hasher(&self) -> KeyHasher {
        KeyHasher(self.0)
    }
}

impl Hasher for KeyHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u64(&mut self, bits: u64) {
        self.0 = mixed(self.0.rotate_left(5) ^ bits);
    }
}

#[derive(PartialEq, Eq)]
struct GroupKey {
    owner: u32,
    key: LocalKey,
}

impl Hash for GroupKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(u64::from(self.owner) << 8 | u64::from(self.key.kind));
        state.write_u64(self.key.bits);
    }
}

/// The collectors within each bucket.
pub trait Nested: Sized {
    /// Takes matches, each with the number of its bucket.
    fn collect(&mut self, pairs: &Pairs, context: &Context<'_>) -> Result<(), EngineError>;

    /// One answer for each of the `owners` buckets around.
    fn finish(self, owners: usize, context: &Context<'_>) -> Result<Vec<Partial>, EngineError>;
}

pub struct Groups<Sub> {
    source: KeySource,
    sub: Vec<Sub>,
    /// The cost of a bucket, in entries of the budget.
    bucket_cost: usize,
    ids: HashMap<GroupKey, u32, KeyHashing>,
    /// For the one bucket around: the bucket of each string or of each interval, plus one.
    table: Vec<u32>,
    /// Key of the table's first entry.
    table_start: Option<u64>,
    is_root: bool,
    groups: Vec<(u32, LocalKey)>,
    doc_counts: Vec<u64>,
    /// The last pair that each bucket took; only where values may repeat.
    last_pairs: Vec<u64>,
    may_repeat: bool,
    /// Pairs seen, in all and by the bucket around.
    seen: u64,
    seen_by_owner: Vec<u64>,
    found: FoundKeys,
    next: Pairs,
}

impl<Sub: Nested> Groups<Sub> {
    pub fn new(source: KeySource, sub: Vec<Sub>, is_root: bool) -> Self {
        let text_count = source.text_count();
        let table = if is_root && text_count <= TABLE_MAX { vec![0; text_count] } else { Vec::new() };
        Self {
            may_repeat: source.may_repeat(),
            bucket_cost: 1 + sub.len(),
            source,
            sub,
            ids: HashMap::with_hasher(KeyHashing(RandomState::new().hash_one(0))),
            table,
            table_start: None,
            is_root,
            groups: Vec::new(),
            doc_counts: Vec::new(),
            last_pairs: Vec::new(),
            seen: 0,
            seen_by_owner: Vec::new(),
            found: FoundKeys::default(),
            next: Pairs::default(),
        }
    }

    pub fn collect(&mut self, pairs: &Pairs, context: &Context<'_>) -> Result<(), EngineError> {
        context.is_over()?;
        self.count_owners(pairs);
        let mut found = std::mem::take(&mut self.found);
        self.source.find(&pairs.docs, &mut found)?;
        self.next.clear();
        for (position, key) in found.positions.iter().zip(&found.keys) {
            let position = *position as usize;
            let id = self.group_of(pairs.owners[position], *key, context.budget)? as usize;
            if self.may_repeat {
                let pair = self.seen + position as u64 + 1;
                if std::mem::replace(&mut self.last_pairs[id], pair) == pair {
                    continue;
                }
            }
            self.doc_counts[id] += 1;
            if !self.sub.is_empty() {
                self.next.push(pairs.docs[position], id as u32);
                if self.next.docs.len() >= PAIRS_PER_BLOCK {
                    self.pass_on(context)?;
                }
            }
        }
        self.found = found;
        self.seen += pairs.docs.len() as u64;
        self.pass_on(context)
    }

    fn count_owners(&mut self, pairs: &Pairs) {
        if self.is_root {
            self.seen_by_owner.resize(1, 0);
            self.seen_by_owner[0] += pairs.docs.len() as u64;
            return;
        }
        for owner in &pairs.owners {
            let owner = *owner as usize;
            if self.seen_by_owner.len() <= owner {
                self.seen_by_owner.resize(owner + 1, 0);
            }
            self.seen_by_owner[owner] += 1;
        }
    }

    fn pass_on(&mut self, context: &Context<'_>) -> Result<(), EngineError> {
        if self.next.docs.is_empty() {
            return Ok(());
        }
        for sub in &mut self.sub {
            sub.collect(&self.next, context)?;
        }
        self.next.clear();
        Ok(())
    }

    /// The entry of a key in the table, where it has one.
    fn entry_of(&mut self, key: LocalKey) -> Option<usize> {
        match key.kind {
            TEXT if !self.table.is_empty() => Some(key.bits as usize),
            NUMBERED if self.is_root => {
                let start = match self.table_start {
                    Some(start) => start,
                    None => {
                        self.table = vec![0; INTERVALS_IN_TABLE as usize];
                        *self.table_start.insert(key.bits.saturating_sub(INTERVALS_IN_TABLE / 2))
                    }
                };
                key.bits.checked_sub(start).filter(|entry| *entry < INTERVALS_IN_TABLE).map(|entry| entry as usize)
            }
            _ => None,
        }
    }

    fn group_of(&mut self, owner: u32, key: LocalKey, budget: &Budget) -> Result<u32, EngineError> {
        let next = self.groups.len() as u32;
        let id = match self.entry_of(key) {
            Some(entry) => {
                let entry = &mut self.table[entry];
                if *entry != 0 {
                    return Ok(*entry - 1);
                }
                *entry = next + 1;
                next
            }
            None => *self.ids.entry(GroupKey { owner, key }).or_insert(next),
        };
        if id == next {
            budget.charge(self.bucket_cost)?;
            self.groups.push((owner, key));
            self.doc_counts.push(0);
            if self.may_repeat {
                self.last_pairs.push(0);
            }
        }
        Ok(id)
    }

    /// One answer for each of the `owners` buckets around.
    pub fn finish(self, owners: usize, context: &Context<'_>) -> Result<Vec<Partial>, EngineError> {
        let mut answers: Vec<PartialBuckets> = vec![PartialBuckets::default(); owners];
        for (answer, docs) in answers.iter_mut().zip(&self.seen_by_owner) {
            answer.docs = *docs;
        }
        let local: Vec<LocalKey> = self.groups.iter().map(|(_, key)| *key).collect();
        let keys = self.source.resolve(&local)?;
        let groups = self.groups.len();
        let mut of_sub = Vec::with_capacity(self.sub.len());
        for sub in self.sub {
            of_sub.push(sub.finish(groups, context)?.into_iter());
        }
        for ((key, (owner, _)), doc_count) in keys.into_iter().zip(&self.groups).zip(&self.doc_counts) {
            let sub: Vec<Partial> = of_sub.iter_mut().filter_map(Iterator::next).collect();
            let by_key = &mut answers[*owner as usize].by_key;
            match by_key.entry(key) {
                std::collections::hash_map::Entry::Vacant(entry) => {
                    entry.insert(PartialBucket { doc_count: *doc_count, sub });
                }
                // The same string under two spellings of its path.
                std::collections::hash_map::Entry::Occupied(mut entry) => {
                    let bucket = entry.get_mut();
                    bucket.doc_count += doc_count;
                    crate::full_text::aggregate::answers::partial::merge_all(&mut bucket.sub, sub);
                }
            }
        }
        Ok(answers.into_iter().map(Partial::Buckets).collect())
    }
}
