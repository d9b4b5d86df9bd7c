//! Zeroed blocks of a MiB that are mostly not written. An allocator that takes them out of its own memory clears them
//! whole, whatever is written; here the system gives the pages that are written, and takes them back at once.

use std::alloc::Layout;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// Of each block. Tantivy's writer of columns takes seven, of which one or two pages are written for a few documents.
pub const BLOCK_BYTES: usize = 1 << 20;

/// Blocks for two such writers at once.
const COUNT: usize = 16;

const ALIGN_MAX: usize = 4096;

/// All of them are zero where they are free.
pub struct ZeroedBlocks {
    /// The address of the first one, or 0 where the system has none to give.
    start: OnceLock<usize>,
    /// A bit for each block that is in use.
    used: AtomicU32,
}

impl ZeroedBlocks {
    pub const fn new() -> Self {
        Self { start: OnceLock::new(), used: AtomicU32::new(0) }
    }

    /// None where the layout is another, or all blocks are in use.
    pub fn take(&self, layout: Layout) -> Option<*mut u8> {
        if layout.size() != BLOCK_BYTES || layout.align() > ALIGN_MAX {
            return None;
        }
        let start = *self.start.get_or_init(reserve);
        let first_free = |used: u32| (start > 0).then(|| used.trailing_ones()).filter(|free| *free < COUNT as u32);
        let take = |used| first_free(used).map(|free| used | 1 << free);
        let before = self.used.fetch_update(Ordering::Acquire, Ordering::Relaxed, take).ok()?;
        Some((start + before.trailing_ones() as usize * BLOCK_BYTES) as *mut u8)
    }

    /// Whether `block` was taken from here.
    pub fn has(&self, block: *mut u8) -> bool {
        self.start.get().is_some_and(|start| (*start..start + COUNT * BLOCK_BYTES).contains(&(block as usize)))
    }

    /// # Safety
    ///
    /// `block` was taken from here, and nobody uses it any more.
    pub unsafe fn give_back(&self, block: *mut u8) {
        // SAFETY: the caller's; private anonymous memory that is advised so is zero when it is touched again (madvise(2)).
        let advised = unsafe { libc::madvise(block.cast(), BLOCK_BYTES, libc::MADV_DONTNEED) };
        if advised != 0 {
            // SAFETY: as above.
            unsafe { ptr::write_bytes(block, 0, BLOCK_BYTES) };
        }
        let number = (block as usize - self.start.get().copied().unwrap_or(0)) / BLOCK_BYTES;
        self.used.fetch_and(!(1 << number), Ordering::Release);
    }
}

impl Default for ZeroedBlocks {
    fn default() -> Self {
        Self::new()
    }
}

/// Addresses only; a page takes memory when it is touched.
#[cfg(target_os = "linux")]
fn reserve() -> usize {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: new memory is mapped, and the advice is about this memory only.
    unsafe {
        let start = libc::mmap(ptr::null_mut(), COUNT * BLOCK_BYTES, access, flags, -1, 0);
        if start == libc::MAP_FAILED {
            return 0;
        }
        libc::madvise(start, COUNT * BLOCK_BYTES, libc::MADV_NOHUGEPAGE);
        start as usize
    }
}

/// Elsewhere pages that are given back need not be zero.
#[cfg(not(target_os = "linux"))]
fn reserve() -> usize {
    0
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::slice;
    use std::thread;

    use super::*;

    const LAYOUT: Layout = Layout::new::<[u8; BLOCK_BYTES]>();

    fn bytes<'a>(block: *mut u8) -> &'a mut [u8] {
        // SAFETY: the tests below look at blocks that they have taken.
        unsafe { slice::from_raw_parts_mut(block, BLOCK_BYTES) }
    }

    #[test]
    fn blocks_are_zero_whatever_was_written_before() {
        let blocks = ZeroedBlocks::new();
        for _ in 0..3 {
            let block = blocks.take(LAYOUT).expect("a free block");
            assert!(bytes(block).iter().all(|byte| *byte == 0));
            bytes(block).fill(7);
            assert!(blocks.has(block));
            // SAFETY: it was taken above.
            unsafe { blocks.give_back(block) };
        }
    }

    #[test]
    fn other_layouts_and_blocks_beyond_the_last_are_left_to_the_allocator() {
        let blocks = ZeroedBlocks::new();
        let mut other = [0u8; 8];
        assert!(!blocks.has(other.as_mut_ptr()));
        let layout = |bytes, align| Layout::from_size_align(bytes, align).expect("a layout");
        assert!(blocks.take(layout(BLOCK_BYTES - 1, 1)).is_none());
        assert!(blocks.take(layout(BLOCK_BYTES, ALIGN_MAX * 2)).is_none());
        let taken: Vec<_> = (0..COUNT).map(|_| blocks.take(LAYOUT).expect("a free block")).collect();
        assert!(blocks.take(LAYOUT).is_none());
        assert!(!blocks.has(other.as_mut_ptr()));
        // SAFETY: it was taken above.
        unsafe { blocks.give_back(taken[5]) };
        assert_eq!(blocks.take(LAYOUT), Some(taken[5]));
    }

    #[test]
    fn threads_never_have_the_same_block() {
        let blocks = &ZeroedBlocks::new();
        thread::scope(|threads| {
            for mark in 1..=8 {
                threads.spawn(move || {
                    for _ in 0..500 {
                        let Some(block) = blocks.take(LAYOUT) else { continue };
                        let bytes = bytes(block);
                        assert!(bytes[..64].iter().all(|byte| *byte == 0));
                        bytes[..64].fill(mark);
                        thread::yield_now();
                        assert!(bytes[..64].iter().all(|byte| *byte == mark));
                        // SAFETY: it was taken above.
                        unsafe { blocks.give_back(block) };
                    }
                });
            }
        });
    }
}
