//! The kept corpus of the fuzz targets (`native/fuzz`), run by the stable toolchain.

use std::fs;
use std::path::Path;

use crate::fuzz_entries;

fn replay(target: &str, run: fn(&[u8])) {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus").join(target);
    let mut inputs = 0;
    for entry in fs::read_dir(&directory).expect("a corpus") {
        let path = entry.expect("a file of the corpus").path();
        println!("{}", path.display());
        run(&fs::read(path).expect("an input"));
        inputs += 1;
    }
    assert!(inputs >= 10, "the corpus of {target} has {inputs} inputs");
}

#[test]
fn write_requests() {
    replay("write_request", fuzz_entries::write_request);
}

#[test]
fn document_frames() {
    replay("document_frame", fuzz_entries::document_frame);
}

#[test]
fn query_plans() {
    replay("query_plan", fuzz_entries::query_plan);
}
