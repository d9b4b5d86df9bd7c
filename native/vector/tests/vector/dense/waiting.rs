//! Rows that wait for a graph lie in files where there are many of them.

use std::fs;
use std::time::Duration;

use super::support::{Change, Clusters, Dice, INDEX_ID, Tested, frame, search};
use sundew_base::derived_index::DerivedIndex;
use sundew_vector::dense::{DenseOptions, Metric};

const DIMENSION: usize = 64;
/// Three MiB of vectors.
const ROWS: u32 = 12_288;

fn names(tested: &Tested, extension: &str) -> Vec<String> {
    let entries = fs::read_dir(&tested.directory.0).unwrap().map(|entry| entry.unwrap().file_name());
    let names = entries.map(|name| name.into_string().unwrap());
    names.filter(|name| name.ends_with(extension)).collect()
}

struct World {
    tested: Tested,
    clusters: Clusters,
    dice: Dice,
}

/// One commit of rows, of which no graph is made before the index rests.
fn waiting(mem_only: bool) -> World {
    println!("seed 43");
    let mut dice = Dice(43);
    let clusters = Clusters::new(&mut dice, 20, DIMENSION);
    let options = DenseOptions::new("taste", INDEX_ID, DIMENSION as u32, Metric::Cosine);
    let tested = Tested::new(DenseOptions { mem_only, tail_bytes: 8 << 20, ..options });
    let mut world = World { tested, clusters, dice };
    world.put(0..ROWS);
    world
}

impl World {
    fn put(&mut self, ordinals: std::ops::Range<u32>) {
        let rows: Vec<(u32, Vec<f32>)> =
            ordinals.map(|at| (at, self.clusters.draw(&mut self.dice, at as usize % 20))).collect();
        let changes: Vec<Change> = rows.iter().map(|(ordinal, vector)| Change::Put(*ordinal, vector)).collect();
        self.tested.apply(&changes);
        self.tested.commit();
    }

    fn answers_exactly(&mut self) {
        for cluster in 0..5 {
            let query = self.clusters.draw(&mut self.dice, cluster);
            let found: Vec<u32> =
                search(&self.tested.index, &query, 10, None).hits.iter().map(|hit| hit.ordinal).collect();
            let nearest: Vec<u32> =
                self.tested.nearest(&query, 10, None).into_iter().map(|(ordinal, _)| ordinal).collect();
            assert_eq!(found, nearest);
        }
    }

    fn memory_bytes(&self) -> usize {
        self.tested.index.stats().memory_bytes as usize
    }
}

#[test]
fn many_rows_that_wait_for_a_graph_take_little_memory() {
    const FLOATS: usize = ROWS as usize * DIMENSION * 4;
    let mut world = waiting(false);
    assert!(world.memory_bytes() < FLOATS / 10, "{} bytes", world.memory_bytes());
    world.answers_exactly();
    assert!(waiting(true).memory_bytes() > FLOATS, "an index in memory has no files");
}

#[test]
fn files_of_waiting_rows_go_when_a_graph_has_the_rows() {
    let world = waiting(false);
    assert_eq!(names(&world.tested, ".flat").len(), 1);
    world.tested.index.rest().unwrap();
    world.tested.index.settle();
    // Nobody has asked for a checkpoint before, so none has named the file.
    assert_eq!(names(&world.tested, ".flat").len(), 0);
    assert!(world.tested.recall(&world.clusters.centres[..5], 10, 0.5, None) >= 0.98);
}

#[test]
fn a_checkpoint_that_cannot_be_written_leaves_the_files_that_rows_are_read_from_and_no_others() {
    let mut world = waiting(false);
    world.tested.index.checkpoint().unwrap();
    // Rows in a file of their own, and rows in memory.
    for ordinals in [ROWS..2 * ROWS, 2 * ROWS..2 * ROWS + 10] {
        world.put(ordinals);
    }
    let durable = world.tested.index.stats().checkpoint_sequence;
    let (flats, deads) = (names(&world.tested, ".flat"), names(&world.tested, ".dead"));
    let obstacle = world.tested.directory.0.join("checkpoint.json.draft");
    fs::create_dir(&obstacle).unwrap();
    for _ in 0..2 {
        world.tested.index.checkpoint().expect_err("the draft cannot be written");
        assert_eq!((names(&world.tested, ".flat"), names(&world.tested, ".dead")), (flats.clone(), deads.clone()));
        assert_eq!(world.tested.index.stats().checkpoint_sequence, durable);
        world.answers_exactly();
    }
    world.tested.apply(&[Change::Delete(5)]);
    world.tested.commit();
    fs::remove_dir(&obstacle).unwrap();
    world.tested.index.checkpoint().unwrap();
    world.tested.reopen();
    world.tested.index.verify().unwrap();
    world.answers_exactly();
}

#[test]
fn a_checkpoint_takes_the_files_of_waiting_rows() {
    let mut world = waiting(false);
    world.tested.apply(&[Change::Delete(5), Change::DeleteDocument(ROWS - 1)]);
    world.tested.commit();
    let report = world.tested.index.checkpoint().unwrap();
    // The rows, and which of them are dead.
    assert_eq!((report.files_written, names(&world.tested, ".flat").len()), (2, 1));
    for _ in 0..2 {
        world.tested.reopen();
        world.tested.index.verify().unwrap();
        assert!(world.memory_bytes() < ROWS as usize * DIMENSION);
        world.answers_exactly();
        world.put(7..8);
        world.tested.index.checkpoint().unwrap();
    }
    // A file that a checkpoint has named stays until another one does not.
    world.tested.index.rest().unwrap();
    world.tested.index.settle();
    world.tested.index.checkpoint().unwrap();
    assert_eq!(names(&world.tested, ".flat").len(), 0);
    world.tested.reopen();
    assert!(world.tested.recall(&world.clusters.centres[..5], 10, 0.5, None) >= 0.98);
}

#[test]
fn rows_stay_in_memory_where_no_file_can_be_written() {
    let mut world = waiting(false);
    fs::remove_dir_all(&world.tested.directory.0).unwrap();
    // A file stands where the directory of the index was.
    fs::write(&world.tested.directory.0, b"").unwrap();
    world.put(ROWS..2 * ROWS);
    world.answers_exactly();
    assert!(world.memory_bytes() > ROWS as usize * DIMENSION * 4);
    fs::remove_file(&world.tested.directory.0).unwrap();
}

#[test]
fn an_index_that_was_closed_removes_no_file_of_its_next_opening() {
    let mut world = waiting(false);
    let closed = std::sync::Arc::clone(&world.tested.index);
    // Without a checkpoint the next opening begins from nothing, and gives the same names.
    world.tested.reopen();
    world.tested.rows.clear();
    world.tested.sequence = 0;
    world.put(0..ROWS);
    drop(closed);
    world.tested.index.checkpoint().unwrap();
    world.tested.index.verify().unwrap();
    world.answers_exactly();
}

#[test]
fn an_index_that_is_about_to_be_closed_takes_rows_without_waiting_for_graphs_and_keeps_them() {
    println!("seed 44");
    let mut dice = Dice(44);
    let clusters = Clusters::new(&mut dice, 20, DIMENSION);
    let options = DenseOptions::new("taste", INDEX_ID, DIMENSION as u32, Metric::Cosine);
    // More waits than may, and the graph of it takes far longer than the test.
    let slow = DenseOptions { backlog_bytes_max: 4 << 20, build_threads: 1, build_candidates: 4_000, ..options };
    let mut world = World { tested: Tested::new(slow), clusters, dice };
    world.put(0..2 * ROWS);
    let vector = world.clusters.draw(&mut world.dice, 3);
    world.tested.rows.insert(2 * ROWS, vector.clone());
    world.tested.sequence += 1;
    let last = frame(&[Change::Put(2 * ROWS, &vector)], world.tested.sequence);
    let index = std::sync::Arc::clone(&world.tested.index);
    let (done, applied) = std::sync::mpsc::channel();
    std::thread::spawn(move || done.send(index.apply(&last).unwrap().rows));
    assert!(applied.recv_timeout(Duration::from_millis(200)).is_err(), "rows have to wait for the graph of the first");
    world.tested.index.close_soon();
    assert_eq!(applied.recv_timeout(Duration::from_secs(5)), Ok(1));
    world.tested.commit();
    world.tested.index.checkpoint().unwrap();
    world.tested.reopen();
    assert_eq!(names(&world.tested, ".graph"), Vec::<String>::new());
    assert_eq!(world.tested.index.stats().doc_count, u64::from(2 * ROWS + 1));
    world.answers_exactly();
}
