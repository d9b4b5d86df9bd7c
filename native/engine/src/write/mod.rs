//! From the bytes of a write request to a document frame: the scan says where documents, keys and transforms lie, and
//! the frame is built from that, with the vectors and edges of documents as rows of their own.

mod document_key;
mod edge_scan;
mod server_members;
mod transform_scan;
mod vector_scan;
mod write_frame;
mod write_scan;

pub use edge_scan::{EdgeRules, GraphTarget};
pub use vector_scan::{SPARSE_ENTRIES_MAX, SQUARES_MAX, VectorTarget, VectorsTaken, render_vector};
pub use write_frame::{FrameOptions, build_frame};
pub use write_scan::{ENTRY_WORDS, ScannedWrite, WriteKind, scan_write};
