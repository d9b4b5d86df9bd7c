//! A graph index against a plain map: random edges in many commits, with checkpoints, reopening and damage.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sundew_base::derived_index::DerivedIndex;
use sundew_base::frame::{FrameWriter, RowKind};
use sundew_base::part::edges::{Edge, EdgeOrigin, write_edges};
use sundew_base::part::{PartForm, part_head};
use sundew_graph::search::{Direction, GraphRequest, RemovedTargets, Search, search};
use sundew_graph::{GraphIndex, GraphOptions};

const PART: u32 = 7;

struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("sundew-graph-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        Self(path)
    }

    fn open(&self) -> Arc<GraphIndex> {
        GraphIndex::open(&self.0, GraphOptions::named("g", PART)).unwrap()
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn edge<'a>(edge_type: &'a str, target: &'a str, weight: f32) -> Edge<'a> {
    let (created_ms, updated_ms) = (5, 5);
    Edge { edge_type, target, origin: EdgeOrigin::Declared, weight, created_ms, updated_ms, since: 0, metadata: "" }
}

/// Writes the edges of a document, or deletes it.
fn write(index: &GraphIndex, ordinal: u32, sequence: u64, edges: Option<&[Edge<'_>]>) {
    let key = format!("k{ordinal:03}");
    let mut frame = FrameWriter::new(1, 1 << 16).unwrap();
    match edges {
        Some(edges) => {
            let payload = write_edges(edges).unwrap();
            frame.push(RowKind::PartPut, 0, key.as_bytes(), &[&part_head(PART, PartForm::Edges), &payload]);
        }
        None => frame.push(RowKind::Delete, 0, key.as_bytes(), &[]),
    }
    frame.set_position(0, ordinal, sequence, 0);
    index.apply(&frame.finish()).unwrap();
    index.commit(sequence).unwrap();
}

fn request(search: Search, start: &str, direction: Direction) -> GraphRequest {
    GraphRequest {
        search,
        starts: vec![start.to_owned()],
        targets: Vec::new(),
        edge_types: Vec::new(),
        direction,
        min_weight: None,
        max_weight: None,
        expired_at_or_before_ms: None,
        hidden: Vec::new(),
        range_starts: vec![String::new()],
        edges_max: u64::MAX,
        nodes_max: u64::MAX,
        millis_max: 60_000,
        reports_nodes: false,
    }
}

type Arrow = (String, String, String);

fn arrows(index: &Arc<GraphIndex>, key: &str, direction: Direction) -> Vec<Arrow> {
    let request = request(Search::Edges { limit: 1_000, after: None }, key, direction);
    let answer = search(&[Arc::clone(index)], &request, &RemovedTargets::default(), &|| false).unwrap();
    assert_eq!(answer.total as usize, answer.edges.len());
    answer.edges.into_iter().map(|edge| (edge.source, edge.edge_type, edge.target)).collect()
}

/// Numbers that only look random.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

#[test]
fn holds_the_edges_of_every_commit_in_both_directions() {
    let directory = Directory::new("commits");
    let (mut index, mut random) = (directory.open(), Random(11));
    let mut model: BTreeMap<u32, BTreeSet<(String, String)>> = BTreeMap::new();
    for sequence in 1..=600u64 {
        let ordinal = 1 + random.below(40) as u32;
        let edges: BTreeSet<(String, String)> = (0..random.below(6))
            .map(|_| (["a", "b"][random.below(2) as usize].to_owned(), format!("k{:03}", random.below(50))))
            .collect();
        if random.below(5) == 0 {
            write(&index, ordinal, sequence, None);
            model.remove(&ordinal);
        } else {
            let list: Vec<Edge<'_>> = edges.iter().map(|(edge_type, target)| edge(edge_type, target, 0.5)).collect();
            write(&index, ordinal, sequence, Some(&list));
            model.insert(ordinal, edges);
        }
        if random.below(20) == 0 {
            index.checkpoint().unwrap();
        }
        if random.below(60) == 0 {
            index.rest().unwrap();
        }
        if random.below(60) == 0 {
            index.checkpoint().unwrap();
            index.close().unwrap();
            drop(index);
            index = directory.open();
            assert_eq!(index.stats().applied_sequence, sequence);
        }
    }
    index.verify().unwrap();
    for number in 0..50u32 {
        let key = format!("k{number:03}");
        let out: Vec<Arrow> = model
            .get(&number)
            .into_iter()
            .flatten()
            .map(|(edge_type, target)| (key.clone(), edge_type.clone(), target.clone()))
            .collect();
        assert_eq!(arrows(&index, &key, Direction::Out), out);
        let mut into: Vec<Arrow> = model
            .iter()
            .flat_map(|(source, edges)| edges.iter().map(move |(edge_type, target)| (source, edge_type, target)))
            .filter(|(_, _, target)| **target == key)
            .map(|(source, edge_type, target)| (format!("k{source:03}"), edge_type.clone(), target.clone()))
            .collect();
        into.sort_by(|left, right| (&left.1, &left.0).cmp(&(&right.1, &right.0)));
        assert_eq!(arrows(&index, &key, Direction::In), into);
    }
    let edges: usize = model.values().map(BTreeSet::len).sum();
    assert_eq!(index.stats().term_count, edges as u64);
    assert!(index.stats().segment_count < 25, "segments are merged");
}

#[test]
fn what_was_not_checkpointed_is_lost_and_the_rest_is_there() {
    let directory = Directory::new("lost");
    let index = directory.open();
    write(&index, 1, 1, Some(&[edge("a", "x", 1.0)]));
    index.checkpoint().unwrap();
    write(&index, 2, 2, Some(&[edge("a", "x", 1.0)]));
    drop(index);
    let index = directory.open();
    assert_eq!(index.stats().applied_sequence, 1);
    assert_eq!(arrows(&index, "x", Direction::In), [("k001".to_owned(), "a".to_owned(), "x".to_owned())]);
}

#[test]
fn a_checkpoint_that_cannot_be_written_leaves_nothing_and_the_index_goes_on() {
    let directory = Directory::new("unwritten");
    let index = directory.open();
    write(&index, 1, 1, Some(&[edge("a", "k002", 0.5)]));
    index.checkpoint().unwrap();
    write(&index, 2, 2, Some(&[edge("a", "k001", 0.5)]));
    let obstacle = directory.0.join("checkpoint.json.draft");
    fs::create_dir(&obstacle).unwrap();
    let durable = fs::read_dir(&directory.0).unwrap().count();
    for _ in 0..2 {
        index.checkpoint().expect_err("the draft cannot be written");
        assert_eq!(arrows(&index, "k001", Direction::Both).len(), 2);
        assert_eq!(index.stats().checkpoint_sequence, 1);
        assert_eq!(fs::read_dir(&directory.0).unwrap().count(), durable);
    }
    write(&index, 1, 3, None);
    fs::remove_dir(&obstacle).unwrap();
    assert_eq!(index.checkpoint().unwrap().sequence, 3);
    drop(index);
    let index = directory.open();
    assert_eq!((index.stats().applied_sequence, arrows(&index, "k001", Direction::Both).len()), (3, 1));
    index.verify().unwrap();
}

#[test]
fn what_is_on_disk_is_not_merged_into_memory_while_checkpoints_cannot_be_written() {
    let directory = Directory::new("unmerged");
    let index = directory.open();
    (1..=40).for_each(|at| write(&index, at, at.into(), Some(&[edge("a", "x", 0.5)])));
    index.checkpoint().unwrap();
    index.rest().unwrap();
    index.checkpoint().unwrap();
    let on_disk = index.stats().disk_bytes;
    write(&index, 41, 41, Some(&[edge("a", "x", 0.5)]));
    let obstacle = directory.0.join("checkpoint.json.draft");
    fs::create_dir(&obstacle).unwrap();
    index.checkpoint().expect_err("the draft cannot be written");
    // Most of the segment on disk has left, and there is more beside it than it has.
    (1..=30).for_each(|at| write(&index, at, 50 + u64::from(at), None));
    (50..120).for_each(|at| write(&index, at, 50 + u64::from(at), Some(&[edge("a", "x", 0.5)])));
    index.rest().unwrap();
    assert_eq!((index.stats().disk_bytes, index.stats().segment_count), (on_disk, 2));
    assert_eq!(arrows(&index, "x", Direction::In).len(), 81);
    fs::remove_dir(&obstacle).unwrap();
    index.checkpoint().unwrap();
    index.rest().unwrap();
    assert_eq!((index.stats().disk_bytes, index.stats().segment_count), (0, 1));
    assert_eq!(arrows(&index, "x", Direction::In).len(), 81);
}

#[test]
fn damage_of_any_file_is_told() {
    let directory = Directory::new("damage");
    let index = directory.open();
    write(&index, 1, 1, Some(&[edge("a", "x", 0.25), edge("b", "y", 1.0)]));
    write(&index, 2, 2, Some(&[edge("a", "x", 0.25), edge("b", "y", 1.0)]));
    index.checkpoint().unwrap();
    write(&index, 1, 3, Some(&[edge("a", "z", 1.0)]));
    index.checkpoint().unwrap();
    index.verify().unwrap();
    drop(index);
    let files: Vec<PathBuf> = fs::read_dir(&directory.0).unwrap().map(|file| file.unwrap().path()).collect();
    assert!(files.len() > 1);
    for file in files {
        let whole = fs::read(&file).unwrap();
        for damaged in [whole[..whole.len() - 1].to_vec(), flipped(&whole)] {
            fs::write(&file, damaged).unwrap();
            assert_eq!(told(&directory.0), "index_damaged", "{}", file.display());
        }
        fs::write(&file, whole).unwrap();
    }
    assert_eq!(told(&directory.0), "nothing");
}

fn flipped(whole: &[u8]) -> Vec<u8> {
    let mut bytes = whole.to_vec();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    bytes
}

/// What the opening of a directory says, or the comparison of its checksums.
fn told(path: &Path) -> &'static str {
    let opened = GraphIndex::open(path, GraphOptions::named("g", PART));
    opened.and_then(|index| index.verify()).map_or_else(|error| error.code, |()| "nothing")
}

#[test]
fn other_options_need_another_directory() {
    let directory = Directory::new("options");
    let index = directory.open();
    write(&index, 1, 1, Some(&[edge("a", "x", 1.0)]));
    index.checkpoint().unwrap();
    let other = GraphIndex::open(&directory.0, GraphOptions::named("g", PART + 1));
    assert_eq!(other.err().map(|error| error.code), Some("index_incompatible"));
}

#[test]
fn an_edge_that_was_written_before_its_target_was_deleted_is_gone() {
    let directory = Directory::new("removed");
    let index = directory.open();
    write(&index, 1, 4, Some(&[edge("a", "x", 1.0)]));
    write(&index, 2, 6, Some(&[Edge { since: 3, ..edge("a", "x", 1.0) }, edge("b", "x", 1.0)]));
    let seen = |through: u64| {
        let removed = RemovedTargets::from([("x".to_owned(), vec![through])]);
        let request = request(Search::Edges { limit: 10, after: None }, "x", Direction::In);
        search(&[Arc::clone(&index)], &request, &removed, &|| false).unwrap().total
    };
    assert_eq!([seen(0), seen(3), seen(5), seen(6)], [3, 2, 1, 0]);
}

#[test]
fn a_search_ends_at_its_bounds_and_says_so() {
    let directory = Directory::new("bounds");
    let index = directory.open();
    let keys: Vec<String> = (0..100).map(|number| format!("t{number}")).collect();
    let edges: Vec<Edge<'_>> = keys.iter().map(|key| edge("a", key, 1.0)).collect();
    write(&index, 1, 1, Some(&edges));
    let bounded = |edges_max: u64, nodes_max: u64, cancelled: bool| {
        let request = GraphRequest { edges_max, nodes_max, ..request(Search::Count, "k001", Direction::Out) };
        search(&[Arc::clone(&index)], &request, &RemovedTargets::default(), &|| cancelled)
    };
    assert_eq!(bounded(1_000, 1_000, false).unwrap().partial, None);
    assert_eq!(bounded(50, 1_000, false).unwrap().partial, Some("edges"));
    assert_eq!(bounded(1_000, 50, false).unwrap().partial, Some("nodes"));
}
