//! Collecting the matches of one index in the order of fields.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use tantivy::columnar::StrColumn;
use tantivy::query::Weight;
use tantivy::{DocId, Score, SegmentReader};

use crate::error::EngineError;
use crate::full_text::errors::tantivy_failed;
use crate::full_text::first_docs::{FirstDocs, SegmentValue};
use crate::full_text::plan::{QueryPlan, SortField};
use crate::full_text::query::compile::index_fields::IndexFields;
use crate::full_text::query::constant_docs::ConstantDocs;
use crate::full_text::query::deadline::Deadline;
use crate::full_text::query::run::collect::{Collected, Segments, Visible, visit_all, visit_blocks};
use crate::full_text::query::run::ordered::sort_column::{BOOLEAN, MISSING, SortColumn, code_of, code_of_text};
use crate::full_text::query::run::ordered::sort_position::Position;
use crate::full_text::query::run::ordered::sort_values::SortValue;
use crate::full_text::segment_columns::SegmentColumns;
use sundew_base::bit_set::BitSet;

/// For each document of a segment, to find those that come first.
const ORDER_NANOS: u64 = 20;

/// Documents of an order between two looks at the clock: a power of two.
const STEPS_BETWEEN_LOOKS: usize = 1 << 12;

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

    /// The values of documents, with the ranks of their keys.
    fn places(&self, docs: &[DocId], keys: &StrColumn, to: &mut Vec<(SegmentValue, u64)>) {
        let mut values = Vec::with_capacity(docs.len());
        self.values(docs, &mut values);
        let mut ranks = vec![None; docs.len()];
        keys.ords().first_vals(docs, &mut ranks);
        to.clear();
        to.extend(values.into_iter().zip(ranks).map(|(value, rank)| (value, rank.unwrap_or(u64::MAX))));
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

    /// Whether no document can enter whose value in the first field is this one, nor any that comes after it in the order by
    /// that field and key.
    fn ends_before(&self, leading: SegmentValue) -> bool {
        if self.heap.len() < self.wanted {
            return false;
        }
        let Some(last) = self.heap.peek() else { return true };
        self.page.columns.len() == 1 || leading > last.values[0]
    }

    /// Whether a document lies before the page, as far as the first field tells, and the key where there is no other.
    fn is_before_page(&self, doc: DocId, leading: &Sorting) -> bool {
        let SegmentPage { columns, bound, .. } = self.page;
        let Some(bound) = bound else { return false };
        let value = leading.value(doc, 0.0);
        match value.cmp(&bound.values[0]) {
            Ordering::Equal => {
                let rank = || self.keys.ords().first(doc).unwrap_or(u64::MAX);
                columns.len() == 1 && code_of(rank()) <= bound.key_code
            }
            order => order == Ordering::Less,
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
                let score = score();
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
    if leading.column.is_plain() && !backwards {
        match scorer.downcast::<ConstantDocs>() {
            Ok(docs) => {
                if FirstDocs::is_worth_it(first.wanted, docs.all().len(), reader.max_doc()) {
                    let order = fixed.first_docs(&plan.sort[0], || {
                        deadline.expect(u64::from(reader.max_doc()) * ORDER_NANOS)?;
                        Ok(FirstDocs::of(reader.max_doc(), |docs, to| leading.places(docs, &fixed.keys, to)))
                    })?;
                    if walk_order(docs.all(), &order, leading, visible, deadline, first)? {
                        *total += shown_of(docs.all(), visible, deadline)?;
                        return Ok(());
                    }
                    // What was found is found again among all matches.
                    first.heap.clear();
                }
                scorer = docs;
            }
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

/// Goes through the order until no other match can enter; false where that may be behind its end.
fn walk_order(
    matches: &BitSet,
    order: &FirstDocs,
    leading: &Sorting,
    visible: &Visible<'_>,
    deadline: &Deadline,
    first: &mut FirstMatches<'_>,
) -> Result<bool, EngineError> {
    let start = order.docs().partition_point(|doc| first.is_before_page(*doc, leading));
    for (at, doc) in order.docs().iter().skip(start).enumerate() {
        if at & (STEPS_BETWEEN_LOOKS - 1) == STEPS_BETWEEN_LOOKS - 1 && deadline.is_due() {
            return Err(deadline.error());
        }
        if matches.contains(*doc) && visible.shows(*doc) {
            let value = leading.value(*doc, 0.0);
            if first.ends_before(value) {
                return Ok(true);
            }
            first.place(*doc, value, 0.0);
        }
    }
    Ok(order.is_whole())
}

/// How many matches are shown.
fn shown_of(matches: &BitSet, visible: &Visible<'_>, deadline: &Deadline) -> Result<u64, EngineError> {
    if visible.shows_all() {
        return Ok(matches.len() as u64);
    }
    let mut shown = 0;
    for (at, doc) in matches.iter().enumerate() {
        if deadline.is_due_at(at as u64 + 1) {
            return Err(deadline.error());
        }
        shown += u64::from(visible.shows(doc));
    }
    Ok(shown)
}
