//! Collecting the matches of one index in the order of fields.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::ops::Range;

use tantivy::columnar::StrColumn;
use tantivy::query::Weight;
use tantivy::{DocId, Score, SegmentReader};

use crate::error::EngineError;
use crate::full_text::block_order::{BlockOrder, OrderedBlock, SegmentValue};
use crate::full_text::errors::tantivy_failed;
use crate::full_text::plan::{QueryPlan, SortField};
use crate::full_text::query::compile::index_fields::IndexFields;
use crate::full_text::query::constant_docs::ConstantDocs;
use crate::full_text::query::deadline::Deadline;
use crate::full_text::query::run::collect::{Collected, Segments, Visible, rounded, visit_all, visit_blocks};
use crate::full_text::query::run::ordered::sort_column::{BOOLEAN, MISSING, SortColumn, code_of, code_of_text};
use crate::full_text::query::run::ordered::sort_position::Position;
use crate::full_text::query::run::ordered::sort_values::SortValue;
use crate::full_text::segment_columns::{BLOCK_DOCS, SegmentColumns};
use sundew_base::bit_set::BitSet;

/// Where fewer match of each block, all matches are visited: to go through the blocks takes longer.
const MATCHES_OF_BLOCK_MIN: usize = 2;

/// For each document of a segment, to bring its blocks into an order.
const ORDER_NANOS: u64 = 10;

#[derive(Debug, Clone)]
pub struct Sorted {
    pub values: Vec<SortValue>,
    pub score: Score,
    pub key_rank: u64,
    pub doc: DocId,
    pub segment: u32,
}

/// Turns values so that all fields compare upwards in the order in which the page is read.
#[derive(Clone, Copy)]
struct Direction {
    desc: bool,
    backwards: bool,
}

impl Direction {
    fn turned(self, (rank, bits): SegmentValue) -> SegmentValue {
        // Missing stays last in either direction, and is first only when the page is read backwards.
        let (rank, bits) = if !self.desc || rank == MISSING.0 { (rank, bits) } else { (BOOLEAN - rank, !bits) };
        if self.backwards { (!rank, !bits) } else { (rank, bits) }
    }

    fn turned_back(self, (rank, bits): SegmentValue) -> SegmentValue {
        let (rank, bits) = if self.backwards { (!rank, !bits) } else { (rank, bits) };
        Self { backwards: false, ..self }.turned((rank, bits))
    }
}

fn turned_rank(key_rank: u64, backwards: bool) -> u64 {
    if backwards { !key_rank } else { key_rank }
}

/// Where the page begins, in the terms of one segment: nothing at or before it is collected.
struct Bound {
    values: Vec<SegmentValue>,
    key_code: u64,
}

impl Bound {
    fn of(position: &Position, columns: &[Sorting], keys: &StrColumn, backwards: bool) -> Result<Self, EngineError> {
        let turned = |(column, value): (&Sorting, &SortValue)| {
            Ok::<_, EngineError>(column.direction.turned(column.column.bound(value)?))
        };
        Ok(Self {
            values: columns.iter().zip(&position.values).map(turned).collect::<Result<_, _>>()?,
            key_code: turned_rank(code_of_text(keys, &position.key)?, backwards),
        })
    }

    fn excludes(&self, values: &[SegmentValue], key_code: impl FnOnce() -> u64) -> bool {
        match values.cmp(&self.values) {
            Ordering::Less => true,
            Ordering::Equal => key_code() <= self.key_code,
            Ordering::Greater => false,
        }
    }
}

struct Sorting {
    column: SortColumn,
    direction: Direction,
}

impl Sorting {
    fn value(&self, doc: DocId, score: Score) -> SegmentValue {
        self.direction.turned(self.column.value(doc, self.direction.desc, score))
    }

    /// Those of documents without scores.
    fn values(&self, docs: &[DocId], to: &mut Vec<SegmentValue>) {
        to.clear();
        match &self.column {
            SortColumn::Path { numbers: Some(numbers), .. } if numbers.extend(docs, to) => {
                to.iter_mut().for_each(|value| *value = self.direction.turned(*value));
            }
            _ => to.extend(docs.iter().map(|doc| self.value(*doc, 0.0))),
        }
    }
}

/// In a `BinaryHeap`, the match that comes last in the order is on top.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct LastFirst {
    values: Vec<SegmentValue>,
    /// Turned as the values are.
    key_rank: u64,
    doc: DocId,
    score_bits: u32,
}

/// The first `offset + limit` matches of every segment; not yet ordered.
pub fn collect_sorted(
    segments: Segments<'_>,
    index: &IndexFields,
    weight: &dyn Weight,
    scores: bool,
    plan: &QueryPlan,
    deadline: &Deadline,
) -> Result<Collected<Sorted>, EngineError> {
    let mut collected = Collected::default();
    let backwards = plan.reads_backwards();
    let position = plan.cursor.as_ref().map(|cursor| Position::parse(cursor, plan.sort.len())).transpose()?;
    for (segment, reader, fixed) in segments.iter() {
        let open = |field: &SortField| {
            let direction = Direction { desc: field.desc, backwards };
            Ok::<_, EngineError>(Sorting { column: SortColumn::open(reader, fixed, index, &field.field)?, direction })
        };
        let columns: Vec<Sorting> = plan.sort.iter().map(open).collect::<Result<_, _>>()?;
        let bound =
            position.as_ref().map(|position| Bound::of(position, &columns, &fixed.keys, backwards)).transpose()?;
        let page = SegmentPage { columns: &columns, bound: bound.as_ref(), backwards };
        let heap = collect_segment((reader, fixed), weight, scores, plan, deadline, page, &mut collected)?;
        for last in heap {
            let values = columns
                .iter()
                .zip(&last.values)
                .map(|(sorting, value)| sorting.column.sort_value(sorting.direction.turned_back(*value)));
            collected.matches.push(Sorted {
                values: values.collect::<Result<_, _>>()?,
                score: Score::from_bits(last.score_bits),
                key_rank: turned_rank(last.key_rank, backwards),
                doc: last.doc,
                segment,
            });
        }
        if collected.is_partial {
            break;
        }
    }
    Ok(collected)
}

/// How a segment's matches are placed.
#[derive(Clone, Copy)]
struct SegmentPage<'a> {
    columns: &'a [Sorting],
    bound: Option<&'a Bound>,
    backwards: bool,
}

/// The first matches of a segment, of those that were offered.
struct FirstMatches<'a> {
    page: SegmentPage<'a>,
    keys: &'a StrColumn,
    wanted: usize,
    heap: BinaryHeap<LastFirst>,
    values: Vec<SegmentValue>,
}

impl FirstMatches<'_> {
    /// `leading` is the document's value in the first field.
    #[inline]
    fn offer(&mut self, doc: DocId, leading: SegmentValue, score: Score) {
        if self.heap.len() == self.wanted {
            // Most matches end here.
            match self.heap.peek() {
                Some(last) if leading <= last.values[0] => {}
                _ => return,
            }
        }
        self.place(doc, leading, score);
    }

    /// Whether no document of this block can enter, nor of those behind it in their order.
    fn ends_before(&self, block: &OrderedBlock) -> bool {
        if self.heap.len() < self.wanted {
            return false;
        }
        let Some(last) = self.heap.peek() else { return true };
        match block.first.cmp(&last.values[0]) {
            // Where more fields follow, the keys decide nothing yet.
            Ordering::Equal => self.page.columns.len() == 1 && block.least_key_rank > last.key_rank,
            order => order == Ordering::Greater,
        }
    }

    fn place(&mut self, doc: DocId, leading: SegmentValue, score: Score) {
        let SegmentPage { columns, bound, backwards } = self.page;
        self.values.clear();
        self.values.push(leading);
        self.values.extend(columns[1..].iter().map(|sorting| sorting.value(doc, score)));
        let rank = || self.keys.ords().first(doc).unwrap_or(u64::MAX);
        if bound.is_some_and(|bound| bound.excludes(&self.values, || turned_rank(code_of(rank()), backwards))) {
            return;
        }
        let key_rank = || turned_rank(rank(), backwards);
        if self.heap.len() < self.wanted {
            let values = self.values.clone();
            self.heap.push(LastFirst { values, key_rank: key_rank(), doc, score_bits: score.to_bits() });
            return;
        }
        // A look through `peek_mut` would sift the heap, also when nothing has changed.
        let Some(last) = self.heap.peek() else { return };
        let order = self.values.cmp(&last.values);
        if order == Ordering::Greater || (order == Ordering::Equal && key_rank() >= last.key_rank) {
            return;
        }
        let key_rank = key_rank();
        if let Some(mut last) = self.heap.peek_mut() {
            last.values.clone_from(&self.values);
            last.key_rank = key_rank;
            last.doc = doc;
            last.score_bits = score.to_bits();
        }
    }
}

fn collect_segment(
    (reader, fixed): (&SegmentReader, &SegmentColumns),
    weight: &dyn Weight,
    scores: bool,
    plan: &QueryPlan,
    deadline: &Deadline,
    page: SegmentPage<'_>,
    collected: &mut Collected<Sorted>,
) -> Result<BinaryHeap<LastFirst>, EngineError> {
    let wanted = plan.offset + plan.limit;
    let visible = Visible::new(reader, fixed, plan);
    let heap = BinaryHeap::with_capacity(wanted.min(1024));
    let mut first = FirstMatches { page, keys: &fixed.keys, wanted, heap, values: Vec::new() };
    let leading = page.columns.first().expect("an order has a field");
    let visited = if scores {
        visit_all(reader, weight, deadline, |doc, score| {
            if visible.shows(doc) {
                collected.total += 1;
                let score = rounded(score());
                collected.max_score = collected.max_score.max(score);
                first.offer(doc, leading.value(doc, score), score);
            }
        })
    } else {
        collect_unscored((reader, fixed), weight, plan, deadline, &visible, &mut first, &mut collected.total)
    };
    collected.note_end(visited, plan, deadline)?;
    Ok(first.heap)
}

fn collect_unscored(
    (reader, fixed): (&SegmentReader, &SegmentColumns),
    weight: &dyn Weight,
    plan: &QueryPlan,
    deadline: &Deadline,
    visible: &Visible<'_>,
    first: &mut FirstMatches<'_>,
    total: &mut u64,
) -> Result<(), EngineError> {
    let SegmentPage { columns: [leading, ..], backwards, .. } = first.page else { return Ok(()) };
    if deadline.is_due() {
        return Err(deadline.error());
    }
    let mut scorer = weight.scorer(reader, 1.0).map_err(tantivy_failed)?;
    let matches_min = MATCHES_OF_BLOCK_MIN * (reader.max_doc() as usize).div_ceil(BLOCK_DOCS);
    if leading.column.is_plain() && !backwards && visible.shows_all() {
        match scorer.downcast::<ConstantDocs>() {
            Ok(docs) if docs.all().len() >= matches_min => {
                *total += docs.all().len() as u64;
                let order = fixed.block_order(&plan.sort[0], || {
                    deadline.expect(u64::from(reader.max_doc()) * ORDER_NANOS)?;
                    Ok(BlockOrder::of(fixed.blocks_by_key(), |docs, to| leading.values(docs, to)))
                })?;
                return collect_blocks(docs.all(), &order, leading, deadline, first);
            }
            Ok(docs) => scorer = docs,
            Err(other) => scorer = other,
        }
    }
    let (mut shown, mut values) = (Vec::new(), Vec::new());
    visit_blocks(scorer, deadline, |docs| {
        let docs = if visible.shows_all() {
            docs
        } else {
            shown.clear();
            shown.extend(docs.iter().copied().filter(|doc| visible.shows(*doc)));
            &shown
        };
        *total += docs.len() as u64;
        leading.values(docs, &mut values);
        docs.iter().zip(&values).for_each(|(doc, value)| first.offer(*doc, *value, 0.0));
    })
}

/// Looks at the blocks in their order, until no match of the next can enter.
fn collect_blocks(
    matches: &BitSet,
    order: &BlockOrder,
    leading: &Sorting,
    deadline: &Deadline,
    first: &mut FirstMatches<'_>,
) -> Result<(), EngineError> {
    let (mut docs, mut values) = (Vec::new(), Vec::new());
    for (at, block) in order.blocks().iter().enumerate() {
        if first.ends_before(block) {
            break;
        }
        docs.clear();
        push_matches(matches, block.docs(), &mut docs);
        if docs.is_empty() {
            continue;
        }
        leading.values(&docs, &mut values);
        docs.iter().zip(&values).for_each(|(doc, value)| first.offer(*doc, *value, 0.0));
        if deadline.is_due_at((at as u64 + 1) * BLOCK_DOCS as u64) {
            return Err(deadline.error());
        }
    }
    Ok(())
}

/// The range begins at a multiple of 64.
fn push_matches(matches: &BitSet, range: Range<DocId>, docs: &mut Vec<DocId>) {
    let first = range.start as usize / 64;
    for (at, word) in matches.words().iter().enumerate().take(range.end.div_ceil(64) as usize).skip(first) {
        let mut word = *word;
        while word != 0 {
            docs.push(at as DocId * 64 + word.trailing_zeros());
            word &= word - 1;
        }
    }
}
