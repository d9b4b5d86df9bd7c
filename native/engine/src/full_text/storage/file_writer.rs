//! The writer of one index file: a buffer in memory that goes over to disk when it grows too large.

use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;

use tantivy::directory::{AntiCallToken, TerminatingWrite};

use super::directory::IndexDirectory;

pub struct FileWriter {
    directory: IndexDirectory,
    name: PathBuf,
    buffer: Vec<u8>,
    /// Set once the file has gone over to disk; never synced here.
    file: Option<File>,
}

impl FileWriter {
    pub fn new(directory: IndexDirectory, name: PathBuf) -> Self {
        Self { directory, name, buffer: Vec::new(), file: None }
    }
}

impl Write for FileWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(file) = &mut self.file {
            file.write_all(bytes)?;
            return Ok(bytes.len());
        }
        self.buffer.extend_from_slice(bytes);
        if !self.directory.may_stay_in_memory(self.buffer.len()) {
            let mut file = self.directory.create_on_disk(&self.name)?;
            file.write_all(&self.buffer)?;
            self.buffer = Vec::new();
            self.file = Some(file);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl TerminatingWrite for FileWriter {
    fn terminate_ref(&mut self, _: AntiCallToken) -> io::Result<()> {
        match self.file.take() {
            Some(_) => self.directory.finish_on_disk(&self.name),
            None => self.directory.finish_in_memory(&self.name, std::mem::take(&mut self.buffer)),
        }
        Ok(())
    }
}
