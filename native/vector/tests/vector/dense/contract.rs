//! What a dense index promises whatever its size: exact answers for small sets, updates, deletes, durability, refusals.

use super::support::{Change, Clusters, Dice, INDEX_ID, Tested, cost, frame, search};
use sundew_base::bit_set::BitSet;
use sundew_base::derived_index::DerivedIndex;
use sundew_base::frame::{FrameWriter, RowKind};
use sundew_base::part::{PartForm, part_head};
use sundew_vector::dense::{DenseIndex, DenseOptions, DistanceBounds, Metric};
use sundew_vector::search::SearchBounds;

const METRICS: [Metric; 3] = [Metric::L2Squared, Metric::Cosine, Metric::InnerProduct];

fn filled(metric: Metric, rows: u32) -> (Tested, Clusters, Dice) {
    let mut dice = Dice(42);
    let clusters = Clusters::new(&mut dice, 20, 24);
    let mut tested = Tested::new(DenseOptions::new("taste", INDEX_ID, 24, metric));
    for start in (0..rows).step_by(100) {
        let end = (start + 100).min(rows);
        let vectors: Vec<Vec<f32>> =
            (start..end).map(|ordinal| clusters.draw(&mut dice, ordinal as usize % 20)).collect();
        let changes: Vec<Change> = (start..end).zip(&vectors).map(|(at, vector)| Change::Put(at, vector)).collect();
        tested.apply(&changes);
        tested.commit();
    }
    (tested, clusters, dice)
}

#[test]
fn small_sets_are_answered_exactly() {
    for metric in METRICS {
        let (tested, clusters, mut dice) = filled(metric, 1500);
        let allowed: BitSet = (0..1500).filter(|ordinal| ordinal % 7 == 0).collect();
        for filter in [None, Some(&allowed)] {
            for cluster in 0..20 {
                let query = clusters.draw(&mut dice, cluster);
                let hits = search(&tested.index, &query, 10, filter).hits;
                let truth = tested.nearest(&query, 10, filter);
                let found: Vec<u32> = hits.iter().map(|hit| hit.ordinal).collect();
                assert_eq!(found, truth.iter().map(|(ordinal, _)| *ordinal).collect::<Vec<_>>(), "{metric:?}");
                for (hit, (_, cost)) in hits.iter().zip(&truth) {
                    let (distance, score) = match metric {
                        Metric::L2Squared => (*cost, 1.0 / (1.0 + cost)),
                        Metric::Cosine => (*cost, 1.0 - cost),
                        Metric::InnerProduct => (*cost, -cost),
                    };
                    assert!((f64::from(hit.distance) - distance).abs() < 1e-5);
                    assert!((f64::from(hit.score) - score).abs() < 1e-5);
                }
            }
        }
    }
}

#[test]
fn replaced_and_deleted_vectors_are_gone_with_the_commit_and_not_before() {
    let (mut tested, clusters, mut dice) = filled(Metric::Cosine, 300);
    let query = tested.rows[&17].clone();
    assert_eq!(search(&tested.index, &query, 1, None).hits[0].ordinal, 17);
    let elsewhere = clusters.draw(&mut dice, 3);
    let before = search(&tested.index, &query, 300, None);
    tested.apply(&[Change::Put(17, &elsewhere), Change::Delete(18), Change::DeleteDocument(19), Change::Delete(9999)]);
    assert_eq!(search(&tested.index, &query, 300, None).hits, before.hits);
    tested.commit();
    let hits = search(&tested.index, &query, 300, None).hits;
    assert_eq!(hits.len(), 298);
    assert!(hits.iter().all(|hit| hit.ordinal != 18 && hit.ordinal != 19));
    let moved = hits.iter().find(|hit| hit.ordinal == 17).expect("the new vector is found");
    assert_eq!(moved.sequence, 301);
    assert!((f64::from(moved.distance) - cost(Metric::Cosine, &query, &elsewhere)).abs() < 1e-5);
}

#[test]
fn rows_that_come_twice_change_nothing() {
    let (mut tested, clusters, mut dice) = filled(Metric::L2Squared, 200);
    let vectors: Vec<Vec<f32>> = (0..50).map(|at| clusters.draw(&mut dice, at % 20)).collect();
    let mut changes: Vec<Change> =
        vectors.iter().enumerate().map(|(at, vector)| Change::Put(at as u32 % 30, vector)).collect();
    changes.push(Change::Delete(7));
    changes.push(Change::DeleteDocument(8));
    tested.apply(&changes);
    tested.commit();
    let query = clusters.draw(&mut dice, 5);
    let once = search(&tested.index, &query, 500, None);
    tested.index.apply(&frame(&changes, 201)).unwrap();
    tested.commit();
    assert_eq!(search(&tested.index, &query, 500, None).hits, once.hits);
}

#[test]
fn an_index_opens_at_its_checkpoint() {
    let (mut tested, clusters, mut dice) = filled(Metric::InnerProduct, 500);
    tested.apply(&[Change::Delete(3), Change::Delete(444)]);
    tested.commit();
    let query = clusters.draw(&mut dice, 5);
    let durable = search(&tested.index, &query, 500, None);
    let report = tested.index.checkpoint().unwrap();
    assert_eq!(report.sequence, 502);
    assert!(report.files_written > 0);
    tested.apply(&[Change::Delete(5)]);
    tested.commit();
    tested.reopen();
    let stats = tested.index.stats();
    assert_eq!((stats.applied_sequence, stats.checkpoint_sequence, stats.doc_count), (502, 502, 498));
    assert_eq!(search(&tested.index, &query, 500, None).hits, durable.hits);
    tested.index.verify().unwrap();
}

#[test]
fn damage_and_other_options_are_told_apart() {
    let (tested, _, _) = filled(Metric::Cosine, 100);
    tested.index.checkpoint().unwrap();
    tested.index.close().unwrap();
    let other = DenseOptions { dimension: 25, ..tested.options.clone() };
    assert_eq!(DenseIndex::open(&tested.directory.0, other).err().unwrap().code, "index_incompatible");
    let files = std::fs::read_dir(&tested.directory.0).unwrap().map(|entry| entry.unwrap().path());
    for path in files {
        let sound = std::fs::read(&path).unwrap();
        let mut broken = sound.clone();
        let middle = broken.len() / 2;
        broken[middle] ^= 1;
        std::fs::write(&path, &broken).unwrap();
        let outcome = DenseIndex::open(&tested.directory.0, tested.options.clone()).and_then(|index| index.verify());
        assert_eq!(outcome.expect_err("damage is seen").code, "index_damaged", "{path:?}");
        std::fs::write(&path, &sound).unwrap();
    }
}

#[test]
fn an_index_in_memory_writes_nothing() {
    let mut options = DenseOptions::new("taste", INDEX_ID, 2, Metric::Cosine);
    options.mem_only = true;
    let mut tested = Tested::new(options);
    tested.apply(&[Change::Put(1, &[1.0, 0.0])]);
    tested.commit();
    tested.index.checkpoint().unwrap();
    assert!(!tested.directory.0.exists());
    assert_eq!(search(&tested.index, &[1.0, 1.0], 5, None).hits.len(), 1);
}

#[test]
fn distance_bounds_keep_what_lies_within_both_ends_included() {
    let mut tested = Tested::new(DenseOptions::new("taste", INDEX_ID, 1, Metric::L2Squared));
    let vectors: Vec<[f32; 1]> = (0..100).map(|at| [at as f32]).collect();
    let changes: Vec<Change> = vectors.iter().enumerate().map(|(at, v)| Change::Put(at as u32, v)).collect();
    tested.apply(&changes);
    tested.commit();
    let within = |under, over| -> Vec<u32> {
        let bounds = SearchBounds { limit: 4, allowed: None, is_due: &|| false };
        let hits = tested.index.search(&[0.0], 0.5, DistanceBounds { under, over }, &bounds).unwrap().hits;
        hits.iter().map(|hit| hit.ordinal).collect()
    };
    assert_eq!(within(Some(4.0), None), [0, 1, 2]);
    assert_eq!(within(None, Some(2500.0)), [50, 51, 52, 53]);
    assert_eq!(within(Some(9.0), Some(4.0)), [2, 3]);
}

#[test]
fn bad_vectors_are_left_out_and_named_and_bad_queries_refused() {
    let tested = Tested::new(DenseOptions::new("taste", INDEX_ID, 3, Metric::Cosine));
    let rows: [&[f32]; 4] = [&[1.0, 2.0], &[0.0, 0.0, 0.0], &[1.0, f32::NAN, 0.0], &[1.0, 2.0, 3.0]];
    let changes: Vec<Change> = rows.iter().enumerate().map(|(at, row)| Change::Put(at as u32, row)).collect();
    let report = tested.index.apply(&frame(&changes, 1)).unwrap();
    assert_eq!((report.rows, report.skipped_count), (4, 3));
    assert!(report.skipped[0].reason.contains("3 dimensions"), "{}", report.skipped[0].reason);
    assert!(report.skipped[1].reason.contains("direction"), "{}", report.skipped[1].reason);
    tested.index.commit(4).unwrap();
    let bounds = SearchBounds { limit: 5, allowed: None, is_due: &|| false };
    let refusal = |query: &[f32]| tested.index.search(query, 0.5, DistanceBounds::default(), &bounds).err().unwrap();
    assert_eq!(refusal(&[1.0]).code, "invalid_query");
    assert_eq!(refusal(&[0.0, 0.0, 0.0]).code, "invalid_query");
    assert_eq!(refusal(&[1.0, f32::INFINITY, 0.0]).code, "invalid_query");
}

#[test]
fn rows_of_other_indexes_are_stepped_over() {
    let mut tested = Tested::new(DenseOptions::new("taste", INDEX_ID, 1, Metric::L2Squared));
    tested.apply(&[Change::Put(1, &[1.0])]);
    let mut writer = FrameWriter::new(5, 0).unwrap();
    let other = part_head(INDEX_ID + 1, PartForm::Dense);
    writer.push(RowKind::PartPut, 0, b"1", &[&other, &9f32.to_le_bytes()]);
    writer.push(RowKind::PartDelete, 0, b"1", &[&part_head(INDEX_ID + 1, PartForm::Deleted)]);
    writer.push(RowKind::Put, 0, b"1", &[b"{}"]);
    // Of a form that these indexes know nothing of.
    let mut unknown = other;
    unknown[4] = 99;
    writer.push(RowKind::PartPut, 0, b"1", &[&unknown, b"whatever"]);
    writer.push(RowKind::PartDelete, 0, b"1", &[&unknown]);
    (0..5).for_each(|at| writer.set_position(at, 1, 2 + at as u64, 0));
    tested.index.apply(&writer.finish()).unwrap();
    tested.sequence = 6;
    tested.commit();
    assert_eq!(search(&tested.index, &[1.0], 5, None).hits[0].distance, 0.0);
}
