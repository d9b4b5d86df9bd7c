//! The bodies of parts as `src/lib/parts/` writes them; `test/unit/part-bodies.test.ts` holds the same file.

use std::collections::HashMap;

use sundew_base::part::asset::read_asset;
use sundew_base::part::chunk_set::{Chunk, read_chunks};
use sundew_base::part::dense_set::DenseSet;
use sundew_base::part::edges::{Edge, EdgeOrigin, read_edges, write_edges};
use sundew_base::part::{PartBody, PartForm, dense, sparse, sparse_set};

const FIXTURE: &str = include_str!("../../../test/fixtures/part-bodies.txt");

fn bytes_of(hex: &str) -> Vec<u8> {
    (0..hex.len() / 2).map(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).unwrap()).collect()
}

fn bodies() -> HashMap<&'static str, Vec<u8>> {
    let lines = FIXTURE.lines().map(|line| line.split_once(' ').unwrap());
    lines.map(|(name, hex)| (name, bytes_of(hex))).collect()
}

#[test]
fn every_form_is_read_as_it_was_written() {
    let bodies = bodies();
    let parsed = |name: &str, form: PartForm| {
        let body = PartBody::parse(&bodies[name]).unwrap();
        assert_eq!((body.id, body.form), (7, form), "{name}");
        body
    };
    assert!(parsed("deleted", PartForm::Deleted).payload.is_empty());
    assert_eq!(dense::values(parsed("dense", PartForm::Dense).payload).unwrap().collect::<Vec<_>>(), [1.5, -2.0]);
    let hashed = parsed("dense_with_hash", PartForm::Dense);
    assert_eq!(hashed.source_hash.unwrap().as_slice(), (0..16).collect::<Vec<u8>>());
    assert_eq!(dense::values(hashed.payload).unwrap().collect::<Vec<_>>(), [1.5, -2.0]);
    let entries = sparse::entries(parsed("sparse", PartForm::Sparse).payload).unwrap().collect::<Vec<_>>();
    assert_eq!(entries, [(3, 0.5), (9, 0.25)]);
    let set = DenseSet::parse(parsed("dense_set", PartForm::DenseSet).payload).unwrap();
    assert_eq!((set.dimension, set.count(), set.vector(1).collect::<Vec<_>>()), (2, 2, vec![3.0, 4.0]));
    let chunks = read_chunks(parsed("chunk_set", PartForm::ChunkSet).payload).unwrap();
    assert_eq!(chunks, [Chunk { start: 0, end: 4, text: "tea " }, Chunk { start: 4, end: 9, text: "café" }]);
    let sparse_set = sparse_set::vectors(parsed("sparse_set", PartForm::SparseSet).payload).unwrap();
    let sparse_set: Vec<Vec<_>> = sparse_set.iter().map(|one| sparse::entries(one).unwrap().collect()).collect();
    assert_eq!(sparse_set, [vec![(3, 0.5), (9, 0.25)], vec![]]);
    for name in ["asset", "asset_truncated"] {
        let asset = read_asset(parsed(name, PartForm::Asset).payload).unwrap();
        assert_eq!((asset.media_type, asset.value), ("text/plain", &b"amber"[..]));
    }
}

#[test]
fn edges_are_written_as_the_server_writes_them() {
    let bodies = bodies();
    let payload = PartBody::parse(&bodies["edges"]).unwrap().payload;
    let declared = Edge {
        edge_type: "likes",
        target: "café",
        origin: EdgeOrigin::Declared,
        weight: 0.5,
        created_ms: 1_700_000_000_000,
        updated_ms: 1_700_000_000_001,
        since: 0,
        metadata: "{\"note\":\"é\"}",
    };
    let knows = Edge { edge_type: "knows", target: "z", ..declared };
    let derived = Edge { origin: EdgeOrigin::Derived, metadata: "", ..declared };
    assert_eq!(read_edges(payload).unwrap(), [knows, declared, derived]);
    assert_eq!(write_edges(&[derived, declared, knows]).unwrap(), payload);
}
