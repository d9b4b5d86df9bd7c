//! Any of several conditions that each add the same to the score of a document: the beginnings of tokens and of whole
//! strings.

use std::sync::Arc;

use tantivy::query::{EnableScoring, Explanation, Query, Scorer, Weight};
use tantivy::{DocId, Score, SegmentReader, TantivyError};

use crate::full_text::query::constant_docs::{ConstantDocs, Matching};

/// A condition whose documents are found all at once.
pub trait BitsOfSegment: std::fmt::Debug + Send + Sync {
    fn docs(&self, reader: &SegmentReader) -> tantivy::Result<Matching>;
}

#[derive(Debug, Clone)]
pub struct ConstantScoreUnion(pub Vec<Arc<dyn BitsOfSegment>>);

impl Query for ConstantScoreUnion {
    fn weight(&self, _: EnableScoring<'_>) -> tantivy::Result<Box<dyn Weight>> {
        Ok(Box::new(self.clone()))
    }
}

impl Weight for ConstantScoreUnion {
    fn scorer(&self, reader: &SegmentReader, boost: Score) -> tantivy::Result<Box<dyn Scorer>> {
        let conditions: tantivy::Result<_> = self.0.iter().map(|condition| condition.docs(reader)).collect();
        Ok(ConstantDocs::scorer_of_all(conditions?, reader.max_doc(), boost))
    }

    fn explain(&self, reader: &SegmentReader, document: DocId) -> tantivy::Result<Explanation> {
        let mut scorer = self.scorer(reader, 1.0)?;
        if scorer.doc() > document || scorer.seek(document) != document {
            return Err(TantivyError::InvalidArgument(format!("document {document} does not match")));
        }
        Ok(Explanation::new("conditions that hold", scorer.score()))
    }
}
