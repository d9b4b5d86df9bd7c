//! The answers of segments and ranges, and how two of them become one.

use std::collections::HashMap;

use serde_json::Value;

use crate::full_text::aggregate::answers::distinct::Distinct;
use crate::full_text::aggregate::answers::number_summary::NumberSummary;
use crate::full_text::aggregate::bucket_key::BucketKey;
use crate::full_text::plan::{Aggregation, AggregationKind};

#[derive(Debug, Clone)]
pub struct PartialBucket {
    pub doc_count: u64,
    /// One for each nested aggregation.
    pub sub: Vec<Partial>,
}

#[derive(Debug, Clone, Default)]
pub struct PartialBuckets {
    /// Documents that were looked at, in a bucket or not.
    pub docs: u64,
    pub by_key: HashMap<BucketKey, PartialBucket>,
}

#[derive(Debug, Clone)]
pub enum Partial {
    Numbers(NumberSummary),
    Count(u64),
    Distinct(Distinct),
    Buckets(PartialBuckets),
    /// Of everything that was asked, as a caller sees it.
    Rendered(Value),
}

impl Partial {
    /// The answer of no document at all.
    pub fn empty(aggregation: &Aggregation) -> Self {
        match &aggregation.of {
            AggregationKind::Numbers { .. } => Self::Numbers(NumberSummary::default()),
            AggregationKind::Count { .. } => Self::Count(0),
            AggregationKind::Cardinality { mode, .. } => Self::Distinct(Distinct::new(*mode)),
            _ => Self::Buckets(PartialBuckets::default()),
        }
    }

    /// Both are of the same aggregation.
    pub fn merge(&mut self, other: Self) {
        match (self, other) {
            (Self::Numbers(ours), Self::Numbers(theirs)) => ours.merge(&theirs),
            (Self::Count(ours), Self::Count(theirs)) => *ours += theirs,
            (Self::Distinct(ours), Self::Distinct(theirs)) => ours.merge(theirs),
            (Self::Buckets(ours), Self::Buckets(theirs)) => ours.merge(theirs),
            (ours, theirs) => *ours = theirs,
        }
    }
}

impl PartialBuckets {
    fn merge(&mut self, other: Self) {
        self.docs += other.docs;
        if self.by_key.is_empty() {
            self.by_key = other.by_key;
            return;
        }
        for (key, theirs) in other.by_key {
            match self.by_key.entry(key) {
                std::collections::hash_map::Entry::Vacant(entry) => {
                    entry.insert(theirs);
                }
                std::collections::hash_map::Entry::Occupied(mut entry) => {
                    let ours = entry.get_mut();
                    ours.doc_count += theirs.doc_count;
                    merge_all(&mut ours.sub, theirs.sub);
                }
            }
        }
    }
}

pub fn merge_all(ours: &mut [Partial], theirs: Vec<Partial>) {
    for (ours, theirs) in ours.iter_mut().zip(theirs) {
        ours.merge(theirs);
    }
}
