//! Code that the native crates share: the error, sets of numbers, the document frame, failpoints, and what every index of a
//! range promises, its files on disk, and memory for its writer.

pub mod bit_set;
pub mod checkpoint_files;
pub mod derived_index;
pub mod disk;
pub mod error;
pub mod failpoint;
pub mod frame;
pub mod joint_checkpoint;
pub mod part;
pub mod plain_bytes;
pub mod report;
pub mod segment_files;
pub mod sparse_file;
pub mod thread_priority;
pub mod written_checkpoint;
pub mod zeroed_blocks;
