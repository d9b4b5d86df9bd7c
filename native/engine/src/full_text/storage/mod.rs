//! Where an index's files live: in memory while they are young, on disk once a checkpoint or their size asks for it.

mod checkpoint;
mod directory;
mod file_writer;
mod locks;

pub use checkpoint::{
    TextFiles, accept_checkpoint, files_of_commit, files_of_segment, open_directory, write_checkpoint,
};
pub use directory::{IndexDirectory, META_FILE};
