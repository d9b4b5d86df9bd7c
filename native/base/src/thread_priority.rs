//! Which threads come first where there are more of them than cores.

use std::cell::Cell;

/// Niceness of threads that work beside the event loop: where they compete with it for a core, it gets about three quarters.
#[cfg(target_os = "linux")]
const BESIDE_EVENT_LOOP: libc::c_int = 5;

thread_local! {
    static YIELDS: Cell<bool> = const { Cell::new(false) };
}

/// From now on this thread, and the threads that it starts, leave a core to the event loop where there is no other. Without
/// this a request that takes microseconds waits for several slices of merges and commits. On Linux alone niceness is that of a
/// thread; elsewhere this does nothing.
pub fn yield_to_event_loop() {
    if YIELDS.replace(true) {
        return;
    }
    #[cfg(target_os = "linux")]
    {
        // SAFETY: the calls take and return numbers. A refusal leaves the thread as it is, which is slower and not wrong.
        unsafe {
            let thread = libc::gettid();
            if libc::getpriority(libc::PRIO_PROCESS, thread as libc::id_t) < BESIDE_EVENT_LOOP {
                libc::setpriority(libc::PRIO_PROCESS, thread as libc::id_t, BESIDE_EVENT_LOOP);
            }
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    /// The calling thread keeps its own.
    #[test]
    fn a_thread_that_yields_is_nicer_than_its_process() {
        let niceness = || {
            // SAFETY: as above.
            unsafe { libc::getpriority(libc::PRIO_PROCESS, libc::gettid() as libc::id_t) }
        };
        let before = niceness();
        let yielding = std::thread::spawn(move || {
            yield_to_event_loop();
            let inherited = std::thread::spawn(niceness).join().unwrap();
            (niceness(), inherited)
        });
        let expected = before.max(BESIDE_EVENT_LOOP);
        assert_eq!((yielding.join().unwrap(), niceness()), ((expected, expected), before));
    }
}
