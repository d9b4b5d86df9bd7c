//! Machine code in memory of huge pages. A request runs through code all over the runtime and the addon, some 90 MB of
//! it, after the search before it has pushed that code's translations out of the TLB: with pages of 2 MiB there are few
//! of them. Files are mapped in small pages, so the code is copied to anonymous memory that then takes the place of the
//! mapping. ClickHouse (`remap_executable`), Node.js (`--use-largepages`) and HHVM do the same.

use std::ffi::c_void;
use std::fs::read_to_string;
use std::ops::Range;
use std::ptr;

/// Moves the code of the process. Answers the bytes that lie in huge pages now: none where the system gives no such
/// pages (it is told not to, is older than Linux 6.1, or has no memory in one piece). What cannot be moved stays as it
/// is, which is slower and not wrong. Other threads may run the code meanwhile. Moved memory is the process's own, and
/// no longer shared with the file.
pub fn move_code() -> usize {
    let Some(page) = huge_page_bytes() else { return 0 };
    let Ok(mappings) = read_to_string("/proc/self/maps") else { return 0 };
    mappings
        .lines()
        .filter_map(file_code)
        .map(|range| range.start.next_multiple_of(page)..range.end / page * page)
        .filter(|range| range.start < range.end)
        .filter(|range| move_range(range, page))
        .map(|range| range.len())
        .sum()
}

/// None where transparent huge pages are turned off or unknown.
fn huge_page_bytes() -> Option<usize> {
    let settings = "/sys/kernel/mm/transparent_hugepage";
    let enabled = read_to_string(format!("{settings}/enabled")).ok()?;
    let size = read_to_string(format!("{settings}/hpage_pmd_size")).ok()?;
    if enabled.contains("[never]") { None } else { size.trim().parse().ok() }
}

/// The addresses of a line of `/proc/self/maps` (proc_pid_maps(5)), where they are the code of a file.
fn file_code(line: &str) -> Option<Range<usize>> {
    let mut fields = line.split_ascii_whitespace();
    let (start, end) = fields.next()?.split_once('-')?;
    let is_code = fields.next()? == "r-xp";
    let path = fields.nth(3)?;
    let address = |text| usize::from_str_radix(text, 16).ok();
    if is_code && path.starts_with('/') { Some(address(start)?..address(end)?) } else { None }
}

/// `range` begins and ends at huge pages.
fn move_range(range: &Range<usize>, page: usize) -> bool {
    let Some(copy) = Copy::reserve(range.len(), page) else { return false };
    // SAFETY: code is readable and nobody writes it; `copy` has as many bytes, which nobody else knows. The last call
    // puts the same bytes at the same addresses in one step: a thread that runs there faults and waits for it.
    unsafe {
        ptr::copy_nonoverlapping(range.start as *const u8, copy.start.cast(), copy.len);
        if libc::madvise(copy.start, copy.len, libc::MADV_COLLAPSE) != 0
            || libc::mprotect(copy.start, copy.len, libc::PROT_READ | libc::PROT_EXEC) != 0
        {
            return false;
        }
        let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
        let moved = libc::mremap(copy.start, copy.len, copy.len, flags, range.start as *mut c_void);
        if moved == libc::MAP_FAILED {
            return false;
        }
    }
    std::mem::forget(copy);
    true
}

/// Anonymous memory that begins at a huge page. It is given back unless it has become something else.
struct Copy {
    start: *mut c_void,
    len: usize,
}

impl Copy {
    fn reserve(len: usize, page: usize) -> Option<Self> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: new memory is mapped; what is unmapped lies before and behind the part that is kept.
        unsafe {
            let all = libc::mmap(ptr::null_mut(), len + page, access, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0);
            if all == libc::MAP_FAILED {
                return None;
            }
            let before = all.align_offset(page);
            let start = all.byte_add(before);
            if before > 0 {
                libc::munmap(all, before);
            }
            libc::munmap(start.byte_add(len), page - before);
            // Filled in huge pages from the beginning: `MADV_COLLAPSE` then has nothing to copy.
            libc::madvise(start, len, libc::MADV_HUGEPAGE);
            Some(Self { start, len })
        }
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        // SAFETY: the memory is its own.
        unsafe { libc::munmap(self.start, self.len) };
    }
}
