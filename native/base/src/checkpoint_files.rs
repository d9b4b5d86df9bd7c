//! The files of an index on disk: immutable files, and `checkpoint.json`, which names those of one commit.
//!
//! A checkpoint writes and syncs new files first and then renames `checkpoint.json` into place; files that it does not
//! name are removed afterwards, or by the next `open`. So a crash at any point leaves the older or the newer checkpoint.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use memmap2::Mmap;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::disk::{Disk, EachFile, directories_of_checkpoint};
use crate::error::{EngineError, damaged, io_failed};
use crate::failpoint;

const CHECKPOINT: &str = "checkpoint.json";
const CHECKPOINT_DRAFT: &str = "checkpoint.json.draft";
const CHECKPOINT_FORMAT: u32 = 1;
const READ_BYTES: usize = 256 * 1024;

/// One file of an index, immutable as far as a checkpoint knows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedFile {
    pub name: String,
    pub bytes: u64,
    /// CRC-32 (IEEE) of these bytes.
    pub crc: u32,
    /// What came after the checkpoint may lie behind these bytes.
    #[serde(default)]
    pub grows: bool,
}

/// What is durable: the files of a commit, and what else the index has to know of it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Checkpoint<State> {
    pub sequence: u64,
    pub files: Vec<NamedFile>,
    pub state: State,
}

#[derive(Serialize, Deserialize)]
struct CheckpointText {
    format: u32,
    fingerprint: String,
    /// CRC-32 of `checkpoint`.
    crc: u32,
    /// A `Checkpoint` as JSON.
    checkpoint: String,
}

pub struct CheckpointFiles {
    root: PathBuf,
    fingerprint: String,
}

impl CheckpointFiles {
    /// The directory of an index and its last checkpoint; none when the directory is missing or holds none. Removes what
    /// the checkpoint does not name. `fingerprint` changes with the format of the files and with options that they
    /// depend on.
    ///
    /// Errors: `index_damaged`, `index_incompatible` (the remedy for both is an empty directory).
    pub fn open<State: DeserializeOwned>(
        root: &Path,
        fingerprint: String,
    ) -> Result<(Self, Option<Checkpoint<State>>), EngineError> {
        let files = Self { root: root.to_owned(), fingerprint };
        let checkpoint = match fs::read(root.join(CHECKPOINT)) {
            Ok(text) => Some(files.read_checkpoint::<State>(&text)?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(io_failed("read checkpoint.json")(error)),
        };
        let named = checkpoint.as_ref().map_or(&[][..], |checkpoint| &checkpoint.files);
        for file in named {
            let length = fs::metadata(root.join(&file.name)).map(|metadata| metadata.len());
            if !length.is_ok_and(|length| length == file.bytes || (file.grows && length > file.bytes)) {
                return Err(damaged(format!("{} is missing or has another length", file.name)));
            }
        }
        files.remove_strays(named, &|_| false)?;
        Ok((files, checkpoint))
    }

    fn read_checkpoint<State: DeserializeOwned>(&self, text: &[u8]) -> Result<Checkpoint<State>, EngineError> {
        let broken = |error: serde_json::Error| damaged(format!("{CHECKPOINT}: {error}"));
        let text: CheckpointText = serde_json::from_slice(text).map_err(broken)?;
        if text.format != CHECKPOINT_FORMAT || text.fingerprint != self.fingerprint {
            return Err(EngineError::new(
                "index_incompatible",
                "the index was made with other options or by another format",
            ));
        }
        if crc32fast::hash(text.checkpoint.as_bytes()) != text.crc {
            return Err(damaged(format!("{CHECKPOINT}: the checksum does not match")));
        }
        serde_json::from_str(&text.checkpoint).map_err(broken)
    }

    /// Writes a new file and syncs it. The name must be new since the last checkpoint. `parts` follow one another.
    pub fn write(&self, name: &str, parts: &[&[u8]]) -> Result<NamedFile, EngineError> {
        let mut crc = crc32fast::Hasher::new();
        let mut bytes = 0;
        let mut write = || -> io::Result<()> {
            fs::create_dir_all(&self.root)?;
            let mut file = File::create(self.root.join(name))?;
            for part in parts {
                file.write_all(part)?;
                crc.update(part);
                bytes += part.len() as u64;
            }
            file.sync_all()
        };
        write().map_err(io_failed("write an index file"))?;
        failpoint::hit("checkpoint-files.after-file");
        Ok(NamedFile { name: name.to_owned(), bytes, crc: crc.finalize(), grows: false })
    }

    /// Makes a file durable that somebody else has written.
    pub fn sync(&self, file: &NamedFile) -> Result<(), EngineError> {
        let sync = || File::open(self.root.join(&file.name))?.sync_all();
        sync().map_err(io_failed("sync an index file"))
    }

    /// Makes `checkpoint` the one that the index opens at. Its files have been written. Removes others, but for those of
    /// which `is_in_use` says that they are. Answers the bytes of `checkpoint.json`.
    pub fn publish<State: Serialize>(
        &self,
        checkpoint: &Checkpoint<State>,
        is_in_use: &dyn Fn(&str) -> bool,
    ) -> Result<u64, EngineError> {
        let internal = |error: serde_json::Error| EngineError::internal(format!("checkpoint: {error}"));
        let text = serde_json::to_string(checkpoint).map_err(internal)?;
        let text = CheckpointText {
            format: CHECKPOINT_FORMAT,
            fingerprint: self.fingerprint.clone(),
            crc: crc32fast::hash(text.as_bytes()),
            checkpoint: text,
        };
        let text = serde_json::to_vec(&text).map_err(internal)?;
        let rename = || -> io::Result<()> {
            fs::create_dir_all(&self.root)?;
            let mut draft = File::create(self.root.join(CHECKPOINT_DRAFT))?;
            draft.write_all(&text)?;
            draft.sync_all()?;
            // The names of the files must be durable before a checkpoint speaks of them.
            let is_first = !self.root.join(CHECKPOINT).exists();
            EachFile.sync(&[], &directories_of_checkpoint(&self.root, is_first))?;
            failpoint::hit("checkpoint-files.before-rename");
            fs::rename(self.root.join(CHECKPOINT_DRAFT), self.root.join(CHECKPOINT))?;
            failpoint::hit("checkpoint-files.after-rename");
            self.sync_directory()
        };
        rename().map_err(io_failed("write a checkpoint"))?;
        self.remove_strays(&checkpoint.files, is_in_use)?;
        failpoint::hit("checkpoint-files.after-removal");
        Ok(text.len() as u64)
    }

    /// The bytes of a file that a checkpoint names. Only its length is checked.
    pub fn map(&self, file: &NamedFile) -> Result<Mmap, EngineError> {
        let open = || -> io::Result<Mmap> {
            let opened = File::open(self.root.join(&file.name))?;
            // SAFETY: files of an index are written once, before they are named, and removed but never changed or
            // shortened; a removed file stays readable through its map.
            unsafe { Mmap::map(&opened) }
        };
        let map = open().map_err(|error| damaged(format!("{}: {error}", file.name)))?;
        if map.len() as u64 != file.bytes {
            return Err(damaged(format!("{} has another length", file.name)));
        }
        Ok(map)
    }

    /// The bytes of a file whose checksum they match. Error: `index_damaged`.
    pub fn read(&self, file: &NamedFile) -> Result<Vec<u8>, EngineError> {
        let bytes = fs::read(self.root.join(&file.name)).map_err(|error| damaged(format!("{}: {error}", file.name)))?;
        if bytes.len() as u64 != file.bytes || crc32fast::hash(&bytes) != file.crc {
            return Err(damaged(format!("{}: the checksum does not match", file.name)));
        }
        Ok(bytes)
    }

    /// Reads a file and compares its checksum. Error: `index_damaged`.
    pub fn verify(&self, file: &NamedFile) -> Result<(), EngineError> {
        let checksum = || -> io::Result<u32> {
            let mut opened = File::open(self.root.join(&file.name))?.take(file.bytes);
            let (mut crc, mut buffer) = (crc32fast::Hasher::new(), vec![0; READ_BYTES]);
            loop {
                match opened.read(&mut buffer)? {
                    0 => return Ok(crc.finalize()),
                    count => crc.update(&buffer[..count]),
                }
            }
        };
        match checksum() {
            Ok(crc) if crc == file.crc => Ok(()),
            Ok(_) => Err(damaged(format!("{}: the checksum does not match", file.name))),
            Err(error) => Err(damaged(format!("{}: {error}", file.name))),
        }
    }

    fn remove_strays(&self, named: &[NamedFile], is_in_use: &dyn Fn(&str) -> bool) -> Result<(), EngineError> {
        let kept: HashSet<&str> = named.iter().map(|file| file.name.as_str()).chain([CHECKPOINT]).collect();
        let remove = || -> io::Result<()> {
            let entries = match fs::read_dir(&self.root) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
                entries => entries?,
            };
            for entry in entries {
                let entry = entry?;
                if !entry.file_name().to_str().is_some_and(|name| kept.contains(name) || is_in_use(name)) {
                    fs::remove_file(entry.path())?;
                }
            }
            Ok(())
        };
        remove().map_err(io_failed("remove an old index file"))
    }

    fn sync_directory(&self) -> io::Result<()> {
        File::open(&self.root)?.sync_all()
    }
}
