//! Where an index's files live: in memory while they are young, on disk once a checkpoint or their size asks for it.

mod checkpoint;
mod directory;
mod file_writer;
mod locks;

pub use checkpoint::{TextFiles, accept_checkpoint, open_directory, write_checkpoint};
pub use directory::IndexDirectory;
