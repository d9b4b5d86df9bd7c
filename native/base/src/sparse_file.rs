//! Files whose blocks of zeros take no room on disk.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};

/// A block of the common file systems.
const BLOCK_BYTES: usize = 4_096;
const ZEROS: [u8; BLOCK_BYTES] = [0; BLOCK_BYTES];

/// Writes a new file from its beginning. Whole blocks of zeros are left out: the file reads as if they were there. The
/// file is complete after `finish`.
pub struct SparseFile {
    file: File,
    leaves_holes: bool,
    /// The beginning of a block.
    pending: Vec<u8>,
    bytes: u64,
    /// The last block was left out.
    ends_in_zeros: bool,
}

impl SparseFile {
    /// `file` is empty.
    pub fn new(file: File) -> Self {
        let leaves_holes = !lies_in_memory(&file);
        Self { file, leaves_holes, pending: Vec::with_capacity(BLOCK_BYTES), bytes: 0, ends_in_zeros: false }
    }

    pub fn write_all(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        self.bytes += bytes.len() as u64;
        if !self.pending.is_empty() {
            let (first, others) = bytes.split_at(bytes.len().min(BLOCK_BYTES - self.pending.len()));
            self.pending.extend_from_slice(first);
            bytes = others;
            if self.pending.len() < BLOCK_BYTES {
                return Ok(());
            }
            let block = std::mem::take(&mut self.pending);
            let outcome = self.write_blocks(&block);
            self.pending = block;
            outcome?;
            self.pending.clear();
        }
        let (blocks, rest) = bytes.split_at(bytes.len() - bytes.len() % BLOCK_BYTES);
        self.write_blocks(blocks)?;
        self.pending.extend_from_slice(rest);
        Ok(())
    }

    fn write_blocks(&mut self, bytes: &[u8]) -> io::Result<()> {
        let blocks = bytes.chunks(BLOCK_BYTES).collect::<Vec<_>>();
        let mut from = 0;
        let is_left_out = |block: &[u8]| self.leaves_holes && *block == ZEROS;
        for alike in blocks.chunk_by(|a, b| is_left_out(a) == is_left_out(b)) {
            let run = &bytes[from..from + alike.len() * BLOCK_BYTES];
            from += run.len();
            self.ends_in_zeros = is_left_out(alike[0]);
            if self.ends_in_zeros {
                self.file.seek(SeekFrom::Current(run.len() as i64))?;
            } else {
                self.file.write_all(run)?;
            }
        }
        Ok(())
    }

    /// Writes what is left, and gives the file its length. Nothing is synced.
    pub fn finish(&mut self) -> io::Result<()> {
        self.file.write_all(&self.pending)?;
        // To set the length that a file has already costs a change of its inode.
        if self.ends_in_zeros && self.pending.is_empty() {
            self.file.set_len(self.bytes)?;
        }
        Ok(())
    }

    /// The first `bytes` that it was given, all by calls before one that has failed. The file has to be readable, and is not
    /// to be written any more.
    pub fn read_back(&mut self, bytes: usize) -> io::Result<Vec<u8>> {
        let in_blocks = bytes - bytes % BLOCK_BYTES;
        let mut read = Vec::with_capacity(bytes);
        self.file.rewind()?;
        (&self.file).take(in_blocks as u64).read_to_end(&mut read)?;
        // The length of a file that ends in zeros is given by `finish`.
        read.resize(in_blocks, 0);
        read.extend_from_slice(&self.pending[..bytes - in_blocks]);
        Ok(read)
    }
}

/// Whether a file is on a `tmpfs`. A page of a hole is asked from that when a map first reads it, and where there is no room for
/// one the process dies of SIGBUS.
#[cfg(target_os = "linux")]
fn lies_in_memory(file: &File) -> bool {
    use std::os::fd::AsRawFd;
    // SAFETY: a structure of numbers, which the call fills.
    let mut about: libc::statfs = unsafe { std::mem::zeroed() };
    // SAFETY: the descriptor is open, and the structure outlives the call.
    let outcome = unsafe { libc::fstatfs(file.as_raw_fd(), &mut about) };
    outcome == 0 && about.f_type == libc::TMPFS_MAGIC
}

#[cfg(not(target_os = "linux"))]
fn lies_in_memory(_: &File) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// Pieces of odd lengths, some of them zeros over many blocks.
    fn pieces() -> Vec<Vec<u8>> {
        let lengths = [0, 1, 4_095, 4_096, 4_097, 10_000, 65_536, 3, 40_960, 12_288];
        let fill = |at: usize| if at % 3 == 2 { 7 } else { 0 };
        (0..60).map(|at| vec![fill(at); lengths[at * 7 % lengths.len()]]).collect()
    }

    #[test]
    fn a_file_reads_as_it_was_written() {
        let path = std::env::temp_dir().join(format!("sundew-sparse-{}", std::process::id()));
        for end in [&b""[..], b"x", &[0; 5_000]] {
            let mut pieces = pieces();
            pieces.push(end.to_vec());
            let mut file = SparseFile::new(File::create(&path).expect("a file"));
            for piece in &pieces {
                file.write_all(piece).expect("written");
            }
            file.finish().expect("finished");
            assert!(fs::read(&path).expect("read") == pieces.concat());
        }
        fs::remove_file(&path).expect("removed");
    }

    #[test]
    fn what_was_written_before_a_call_that_failed_is_read_back() {
        let path = std::env::temp_dir().join(format!("sundew-sparse-back-{}", std::process::id()));
        for end in [&b""[..], b"x", &[0; 5_000], &[7; 3_000]] {
            for refused in [100, 4_096, 50_000] {
                let opened = File::options().read(true).write(true).create(true).truncate(true).open(&path);
                let mut file = SparseFile::new(opened.expect("a file"));
                let written = [pieces().concat(), end.to_vec()].concat();
                file.write_all(&written).expect("written");
                file.file = File::open(&path).expect("the file, which takes no bytes");
                let _ = file.write_all(&vec![9; refused]);
                assert!(file.read_back(written.len()).expect("read") == written);
            }
        }
        fs::remove_file(&path).expect("removed");
    }

    /// Linux has a `tmpfs` at this place.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_file_in_memory_has_no_holes() {
        use std::os::unix::fs::MetadataExt;
        let path = std::path::Path::new("/dev/shm").join(format!("sundew-sparse-{}", std::process::id()));
        let mut file = SparseFile::new(File::create(&path).expect("a file"));
        for piece in pieces() {
            file.write_all(&piece).expect("written");
        }
        file.finish().expect("finished");
        let written = fs::metadata(&path).expect("its numbers");
        assert!(fs::read(&path).expect("read") == pieces().concat());
        fs::remove_file(&path).expect("removed");
        assert!(written.blocks() * 512 >= written.len(), "{} blocks for {} bytes", written.blocks(), written.len());
    }
}
