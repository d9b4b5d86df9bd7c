//! The N-API surface of Sundew's engine. Everything here converts arguments, hands work to the thread pool and turns
//! errors into JavaScript errors that carry a `code`; what the calls do is `native/engine`.
//!
//! Rules of every export: no panic leaves it (`guard`), anything that may take longer than about 200 microseconds is
//! an async task, large payloads are typed arrays, handles are numbers with an explicit close.

#![deny(clippy::all)]

mod full_text;
mod grammar;
mod guard;
mod indexes;
mod json;
mod operations;
mod owned_array;
mod query;
mod registry;
mod write;

use napi::Env;
use napi_derive::napi;
use sundew_engine::error::EngineError;

use crate::guard::{EngineTask, Started, call};

// The commit of one document maps and unmaps the index writer's arena; with this allocator it keeps its pages.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The version of the engine's crate.
#[napi]
pub fn engine_version() -> String {
    sundew_engine::VERSION.to_owned()
}

/// Whether each name has a match of a user's regular expression in it; linear in their length.
/// Throws `invalid_request` when the pattern cannot be compiled.
#[napi]
pub fn match_names(env: Env, pattern: String, names: Vec<String>) -> napi::Result<Vec<bool>> {
    call(&env, || sundew_engine::name_pattern::match_names(&pattern, &names))
}

/// Panics inside the guard, so that a test can prove that a panic arrives as an error with the code `engine_panic`.
#[napi]
pub fn provoke_panic(env: Env) -> napi::Result<()> {
    call(&env, panic_on_purpose)
}

/// `provokePanic` on the thread pool.
#[napi(ts_return_type = "Promise<void>")]
pub fn provoke_panic_async() -> Started<(), ()> {
    EngineTask::start((), |()| panic_on_purpose())
}

fn panic_on_purpose() -> Result<(), EngineError> {
    // Without the hook that prints: a trace in the log of a run that passed misleads its reader.
    std::panic::resume_unwind(Box::new("provoked by a test"))
}
