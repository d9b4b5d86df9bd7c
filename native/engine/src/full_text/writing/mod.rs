//! How rows become segments: the writer of an index, its commits, and merges while nothing is written.

mod commit_payload;
mod lazy_writer;
mod merge_choice;
mod merge_queue;
mod pending_documents;
mod small_commit;
mod text_writer;

pub use commit_payload::{CommitPayload, sequence_of};
pub use merge_choice::segments_to_merge;
pub use merge_queue::IdleMerger;
pub use small_commit::commit_one_segment;
pub use text_writer::TextWriter;
