//! The values of a path over all segments of a table, most frequent first.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use crate::error::EngineError;
use crate::full_text::aggregate::answers::distinct::Distinct;
use crate::full_text::aggregate::answers::partial::{PartialBucket, PartialBuckets};
use crate::full_text::aggregate::bucket_key::BucketKey;
use crate::full_text::aggregate::collect::segment_tree::hash_of_key;
use crate::full_text::aggregate::context::Context;
use crate::full_text::plan::CardinalityMode;

pub struct RankedTerms {
    /// By falling number of documents, equally frequent ones by value.
    terms: Vec<(BucketKey, u64)>,
    /// Answers of cardinalities by mode, once they are asked for.
    distinct: Mutex<Vec<(CardinalityMode, Value)>>,
}

impl RankedTerms {
    pub fn new(segments: Vec<Vec<(BucketKey, u64)>>) -> Self {
        let mut merged: HashMap<BucketKey, u64> = HashMap::new();
        for (key, docs) in segments.into_iter().flatten() {
            *merged.entry(key).or_default() += docs;
        }
        let mut terms: Vec<(BucketKey, u64)> = merged.into_iter().collect();
        terms.sort_unstable_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        Self { terms, distinct: Mutex::default() }
    }

    /// The first `size` buckets. `docs`: documents that were looked at.
    pub fn first(&self, size: usize, docs: u64) -> PartialBuckets {
        let bucket =
            |(key, docs): &(BucketKey, u64)| (key.clone(), PartialBucket { doc_count: *docs, sub: Vec::new() });
        PartialBuckets { docs, by_key: self.terms.iter().take(size).map(bucket).collect() }
    }

    /// The answer of a cardinality. A query that is to end at once fails unless it is known.
    pub fn distinct(&self, mode: CardinalityMode, context: &Context<'_>) -> Result<Value, EngineError> {
        if let Some((_, answer)) = self.known().iter().find(|(of, _)| *of == mode) {
            return Ok(answer.clone());
        }
        if context.deadline.is_inline() {
            return Err(context.deadline.error());
        }
        let mut distinct = Distinct::new(mode);
        for (key, _) in &self.terms {
            distinct.add(hash_of_key(key), context.budget)?;
        }
        let answer = distinct.to_json();
        self.known().push((mode, answer.clone()));
        Ok(answer)
    }

    fn known(&self) -> MutexGuard<'_, Vec<(CardinalityMode, Value)>> {
        self.distinct.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
