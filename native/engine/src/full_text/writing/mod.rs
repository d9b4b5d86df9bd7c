//! How rows become segments: the writer of an index, its commits, and which segments are merged when.

mod commit;
mod commit_payload;
mod merge_queue;
mod merges_at_rest;
mod merges_while_writing;
mod pending_documents;
mod text_writer;

pub use commit::commit_one_segment;
pub use commit_payload::{CommitPayload, sequence_of};
pub use merge_queue::Merger;
pub use merges_at_rest::{large_merges_at_rest, merges_at_rest};
pub use merges_while_writing::merges_while_writing;
#[cfg(test)]
pub use pending_documents::without;
pub use text_writer::TextWriter;
