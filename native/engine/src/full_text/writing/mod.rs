//! How rows become segments: the writer of an index, its commits, and merges while nothing is written.

mod commit_payload;
mod idle_merger;
mod merge_choice;
mod pending_documents;
mod text_writer;

pub use commit_payload::{CommitPayload, sequence_of};
pub use idle_merger::IdleMerger;
pub use merge_choice::segments_to_merge;
pub use text_writer::TextWriter;
