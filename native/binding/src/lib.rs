//! The N-API surface of Sundew's engine. Everything here converts arguments, hands work to the thread pool and turns
//! errors into JavaScript errors that carry a `code`; what the calls do is `native/engine`.
//!
//! Rules of every export: no panic leaves it (`guard`), anything that may take longer than about 200 microseconds is
//! an async task, large payloads are typed arrays, handles are numbers with an explicit close.

#![deny(clippy::all)]

#[cfg(target_os = "linux")]
mod bus_error;
mod full_text;
mod grammar;
mod graph;
mod guard;
#[cfg(target_os = "linux")]
mod huge_pages;
mod indexes;
mod json;
mod memory;
mod operations;
mod owned_array;
mod query;
mod registry;
mod write;

use napi::Env;
use napi_derive::napi;

use crate::guard::{EngineTask, Started, call};

/// Whether each name has a match of a user's regular expression in it; linear in their length.
/// Throws `invalid_request` when the pattern cannot be compiled.
#[napi]
pub fn match_names(env: Env, pattern: String, names: Vec<String>) -> napi::Result<Vec<bool>> {
    call(&env, || sundew_engine::name_pattern::match_names(&pattern, &names))
}

/// Moves the machine code of the process to huge pages of memory. Answers the bytes that lie there now: 0 where the
/// system has no such pages.
#[napi]
pub fn move_code_to_huge_pages() -> Started<(), f64> {
    EngineTask::start((), |()| {
        #[cfg(target_os = "linux")]
        let bytes = huge_pages::move_code();
        #[cfg(not(target_os = "linux"))]
        let bytes = 0;
        Ok(bytes as f64)
    })
}
