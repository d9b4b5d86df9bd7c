//! A page of a mapped file that its disk does not give, or that is behind the file's end since somebody cut it, cannot
//! be answered with an error: the thread that reads it gets SIGBUS. The process then ends with a sentence and the exit
//! code of a data directory that failed, and finds at its next start which file it is.

use std::ffi::{c_int, c_void};

/// As `storageFailed` of `src/cli/verb.ts`.
const EXIT_CODE: c_int = 74;

const MESSAGE: &[u8] =
    b"sundew: a mapped file was cut, or its disk failed (SIGBUS); the process stops and recovers at its next start\n";

#[napi_derive::module_init]
fn end_on_bus_errors() {
    // SAFETY: a zeroed `sigaction` is one without flags; all pointers are to what lives until the call returns.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_bus_error as *const () as usize;
        // Afterwards the signal has its default action again.
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESETHAND;
        libc::sigemptyset(&raw mut action.sa_mask);
        libc::sigaction(libc::SIGBUS, &raw const action, std::ptr::null_mut());
    }
}

/// Calls nothing but what a signal handler may call.
extern "C" fn on_bus_error(_: c_int, info: *mut libc::siginfo_t, _: *mut c_void) {
    // SAFETY: the system gives a valid `siginfo_t`, and `MESSAGE` has as many bytes.
    unsafe {
        // Any other code is a fault of the program: the instruction is tried again, and ends it.
        if matches!((*info).si_code, libc::BUS_ADRERR | libc::BUS_MCEERR_AR) {
            libc::write(libc::STDERR_FILENO, MESSAGE.as_ptr().cast(), MESSAGE.len());
            libc::_exit(EXIT_CODE);
        }
    }
}
