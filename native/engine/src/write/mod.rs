//! From the bytes of a write request to a document frame: the scan says where documents, keys and transforms lie, and
//! the frame is built from that, with the vectors and edges of documents as rows of their own.

mod document_key;
mod edges;
mod index_member;
mod server_members;
mod transform_scan;
mod vectors;
mod write_frame;
mod write_scan;

pub use edges::{EdgeRules, GraphTarget};
pub use vectors::{SPARSE_ENTRIES_MAX, SQUARES_MAX, VectorTarget, VectorsTaken, render_vector};
pub use write_frame::{FrameOptions, build_frame};
pub use write_scan::{ENTRY_WORDS, ScannedWrite, WriteKind, scan_write};
