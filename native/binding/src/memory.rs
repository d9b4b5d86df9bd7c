//! The allocator of the addon. The JavaScript runtime has one of its own.

use std::ffi::{c_int, c_long};

// The commit of one document maps and unmaps the index writer's arena; with this allocator it keeps its pages.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

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
