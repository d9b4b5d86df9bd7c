//! The view that a query has of the index of one range.

use std::sync::Arc;

use tantivy::schema::Schema;
use tantivy::{Searcher, SegmentReader};

use crate::error::EngineError;
use crate::full_text::TextIndex;
use crate::full_text::aggregate::CounterCache;
use crate::full_text::plan::QueryPlan;
use crate::full_text::query::compile::context::CompileContext;
use crate::full_text::query::compile::index_fields::IndexFields;
use crate::full_text::query::deadline::{CancelFlag, Deadline};
use crate::full_text::query::run::collect::{Segments, Visible};
use crate::full_text::query::run::filter::filter_cache::FilterCache;
use crate::full_text::query::terms::typo_terms::Vocabulary;
use crate::full_text::segment_columns::SegmentColumns;

/// The view of one index: one commit.
pub struct RangeView {
    pub searcher: Searcher,
    pub columns: Arc<[Arc<SegmentColumns>]>,
    pub index: IndexFields,
    pub schema: Schema,
    pub filters: Arc<FilterCache>,
    pub counters: Arc<CounterCache>,
    /// The words of all ranges of the query; shared where words may be misspelt.
    vocabulary: Option<Arc<Vocabulary>>,
    cancel: CancelFlag,
}

impl RangeView {
    /// The view of one index, for conditions that are the same without the words of the others.
    pub fn of(index: &TextIndex, cancel: &CancelFlag) -> Result<Self, EngineError> {
        // The slots are read after the commit: they are only ever added to.
        let searcher = index.searcher();
        let columns = index.columns.of(&searcher)?;
        index.strings.set_documents(searcher.segment_readers().iter().map(|reader| u64::from(reader.max_doc())).sum());
        let filters = Arc::clone(&index.filters);
        let counters = Arc::clone(&index.counters);
        let mapping = Arc::clone(&index.mapping);
        let fields = IndexFields::new(Arc::clone(&index.fields), mapping, index.slots.snapshot())
            .keeping(&index.strings)
            .reading(&columns);
        Ok(Self {
            searcher,
            columns,
            index: fields,
            schema: index.schema().clone(),
            filters,
            counters,
            vocabulary: None,
            cancel: cancel.clone(),
        })
    }

    /// The same for a query over several ranges whose words may be misspelt.
    pub fn with_vocabulary(self, vocabulary: &Arc<Vocabulary>) -> Self {
        Self { vocabulary: Some(Arc::clone(vocabulary)), ..self }
    }

    /// The context in which `plan` is compiled for this range.
    pub fn compiling(&self, plan: &QueryPlan) -> CompileContext<'_> {
        let deadline = Deadline::new(&self.cancel, plan.timeout_ms);
        CompileContext::new(&self.index, self.vocabulary.as_ref(), deadline)
    }

    /// Documents that are deleted or may have expired, at most.
    pub fn hidden_at_most(&self, plan: &QueryPlan) -> u64 {
        let hidden = |(_, reader, columns): (u32, &SegmentReader, &SegmentColumns)| {
            let may_expire = columns.expires && plan.expired_at_or_before_ms.is_some();
            u64::from(if may_expire { reader.max_doc() } else { reader.num_deleted_docs() })
        };
        self.segments().iter().map(hidden).sum()
    }

    /// Whether some documents may have expired.
    pub fn hides_expired(&self, plan: &QueryPlan) -> bool {
        self.segments().iter().any(|(_, reader, columns)| Visible::new(reader, columns, plan).hides_expired())
    }

    pub fn segments(&self) -> Segments<'_> {
        Segments { readers: self.searcher.segment_readers(), columns: &self.columns }
    }
}
