//! The allocator of the addon. The JavaScript runtime has one of its own.

use std::alloc::{GlobalAlloc, Layout};
use std::ffi::{c_int, c_long};
use std::ptr;

use mimalloc::MiMalloc;
use sundew_base::zeroed_blocks::{BLOCK_BYTES, ZeroedBlocks};

/// mimalloc, which keeps the pages that the commit of a document frees for the next one, but for blocks of zeros that
/// are mostly not written.
struct Allocator;

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

static ZEROED: ZeroedBlocks = ZeroedBlocks::new();

// SAFETY: each block goes back to the one of the two that it came from, and a block of zeros has as many bytes as it
// was asked for.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's, as in what follows.
        unsafe { MiMalloc.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        ZEROED.take(layout).unwrap_or_else(|| unsafe { MiMalloc.alloc_zeroed(layout) })
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        unsafe { if is_zeroed(block, layout) { ZEROED.give_back(block) } else { MiMalloc.dealloc(block, layout) } }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        if !is_zeroed(block, layout) {
            return unsafe { MiMalloc.realloc(block, layout, bytes) };
        }
        unsafe {
            let moved = MiMalloc.alloc(Layout::from_size_align_unchecked(bytes, layout.align()));
            if !moved.is_null() {
                ptr::copy_nonoverlapping(block, moved, layout.size().min(bytes));
                ZEROED.give_back(block);
            }
            moved
        }
    }
}

fn is_zeroed(block: *mut u8, layout: Layout) -> bool {
    layout.size() == BLOCK_BYTES && ZEROED.has(block)
}

/// `mi_option_purge_delay` of `mimalloc.h`.
const PURGE_DELAY: c_int = 15;
/// How long freed memory is kept for the next allocation. The allocator's own 1,000 keep what a load frees in a second.
const PURGE_DELAY_MS: c_long = 100;

unsafe extern "C" {
    safe fn mi_option_set_default(option: c_int, value: c_long);
}

/// A delay in the environment (`MIMALLOC_PURGE_DELAY`) goes first.
#[napi_derive::module_init]
fn set_purge_delay() {
    mi_option_set_default(PURGE_DELAY, PURGE_DELAY_MS);
}
