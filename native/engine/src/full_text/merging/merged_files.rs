//! Every file of a merged segment beside that of a segment that was built of the same documents at once.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use tantivy::directory::{CompositeFile, RamDirectory};
use tantivy::index::SegmentComponent;
use tantivy::{DocId, Index, Segment, SegmentMeta};

use super::SegmentMerge;
use crate::full_text::analysis::Analyzer;
use crate::full_text::fields::{Fields, build_schema};
use crate::full_text::random::Random;
use crate::full_text::segments::{DocumentHead, Scalar, SegmentBuilder};
use crate::full_text::text_index::index_settings;
use crate::full_text::writing::without;

/// Frequent words and rare ones; of two texts so few that a norm tells their number exactly.
fn text(random: &mut Random) -> String {
    let words = (0..random.below(20)).map(|_| {
        let greatest = [3, 60, 4_000][random.below(3)];
        format!("w{}", random.below(greatest))
    });
    words.collect::<Vec<_>>().join(" ")
}

/// The same for the same ordinal and seed.
fn add(builder: &mut SegmentBuilder, fields: &Fields, ordinal: u32, seed: u64) {
    let mut random = Random(seed * 1_000_003 + u64::from(ordinal) * 7_919 + 1);
    (0..5).for_each(|_| _ = random.below(2));
    let head = DocumentHead { ordinal, sequence: u64::from(ordinal) + 5, ttl_base_ms: i64::from(ordinal % 3) };
    builder.begin_document(head, &format!("k{:06}", ordinal ^ 0x155));
    for slot in [0, 1, 1, 5] {
        if random.below(4) > 0 {
            builder.add_text(fields.slots[slot], Analyzer::Standard, &text(&mut random));
        }
    }
    if random.below(3) == 0 {
        builder.add_overflow(&format!("path{}\0", random.below(2)), Analyzer::Standard, &text(&mut random));
    }
    let text = format!("t{}", random.below(300));
    let span = builder.values.keep(&text);
    builder.values.push(&Arc::from("tag"), Scalar::Text(span));
    if random.below(2) == 0 {
        builder.values.push(&Arc::from("n"), Scalar::Integer(random.below(1_000) as i64));
    }
}

fn segment_of(index: &Index, fields: &Arc<Fields>, ordinals: impl Iterator<Item = u32>, seed: u64) -> Segment {
    let mut builder = SegmentBuilder::new(fields);
    ordinals.for_each(|ordinal| add(&mut builder, fields, ordinal, seed));
    builder.finish(index.new_segment()).expect("a segment")
}

fn bytes_of(segment: &Segment, component: SegmentComponent) -> Vec<u8> {
    let file = segment.open_read(component).expect("the file");
    file.read_bytes().expect("its bytes").as_slice().to_vec()
}

/// For each field its postings; of fields without norms without the number of tokens, which is estimated after deletes.
fn postings_of(segment: &Segment) -> Vec<Option<Vec<u8>>> {
    let file = CompositeFile::open(&segment.open_read(SegmentComponent::Postings).expect("the file")).expect("fields");
    let fields: Vec<_> = segment.schema().fields().map(|(field, entry)| (field, entry.has_fieldnorms())).collect();
    let of_field = |(field, has_norms)| {
        let bytes = file.open_read(field)?.read_bytes().expect("its bytes");
        Some(bytes.as_slice()[if has_norms { 0 } else { 8 }..].to_vec())
    };
    fields.into_iter().map(of_field).collect()
}

/// `parts`: documents of each segment; of these one in `one_in_left` has left.
fn compare(parts: &[u32], one_in_left: Option<u32>, seed: u64) {
    println!("parts {parts:?}, left {one_in_left:?}, seed {seed}");
    let (schema, fields) = build_schema();
    let fields = Arc::new(fields);
    let index = Index::builder().schema(schema).settings(index_settings());
    let index = index.open_or_create(RamDirectory::create()).expect("an index in memory");
    let has_left = |ordinal: u32| one_in_left.is_some_and(|one_in| ordinal.is_multiple_of(one_in));
    let (mut metas, mut first) = (Vec::<SegmentMeta>::new(), 0);
    for part in parts {
        let segment = segment_of(&index, &fields, first..first + part, seed);
        let left: Vec<DocId> = (0..*part).filter(|document| has_left(first + document)).collect();
        let segment = if left.is_empty() { segment } else { without(segment, &left).expect("deletes") };
        metas.push(segment.meta().clone());
        first += part;
    }
    let merge = SegmentMerge::begin(&index, &metas).expect("a merge begins");
    let merged = merge.write(&AtomicBool::new(false)).expect("a merged segment").segment;
    let whole = segment_of(&index, &fields, (0..first).filter(|ordinal| !has_left(*ordinal)), seed);
    assert_eq!(merged.meta().max_doc(), whole.meta().max_doc());
    for component in [
        SegmentComponent::FieldNorms,
        SegmentComponent::Terms,
        SegmentComponent::Positions,
        SegmentComponent::FastFields,
        SegmentComponent::Store,
    ] {
        let (ours, theirs) = (bytes_of(&merged, component.clone()), bytes_of(&whole, component.clone()));
        assert!(ours == theirs, "{component:?}: {} and {} bytes", ours.len(), theirs.len());
    }
    assert!(postings_of(&merged) == postings_of(&whole), "postings differ");
    if one_in_left.is_none() {
        assert!(bytes_of(&merged, SegmentComponent::Postings) == bytes_of(&whole, SegmentComponent::Postings));
    }
}

#[test]
fn a_merged_segment_has_the_files_of_one_that_was_built_of_its_documents() {
    compare(&[1, 1], None, 1);
    compare(&[127, 1, 128, 130], None, 2);
    compare(&[2_000, 300, 7], None, 3);
}

#[test]
fn documents_that_have_left_are_in_no_file_of_a_merged_segment() {
    compare(&[40, 300, 1, 900], Some(3), 4);
    compare(&[2_000, 300, 7], Some(2), 5);
}

#[test]
fn a_merge_that_is_stopped_ends() {
    let (schema, fields) = build_schema();
    let fields = Arc::new(fields);
    let index = Index::builder().schema(schema).settings(index_settings());
    let index = index.open_or_create(RamDirectory::create()).expect("an index in memory");
    let metas: Vec<SegmentMeta> =
        [0..3_000, 3_000..6_000].map(|ordinals| segment_of(&index, &fields, ordinals, 6).meta().clone()).into();
    let merge = SegmentMerge::begin(&index, &metas).expect("a merge begins");
    assert!(merge.write(&AtomicBool::new(true)).is_err());
}
