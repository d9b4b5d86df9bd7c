//! Turns panics and engine errors into JavaScript errors with a code. Without the guard a panic in an export or in a
//! task would abort the whole process.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use napi::bindgen_prelude::{AsyncTask, JsObjectValue, JsValue, ToNapiValue, TypeName};
use napi::{Env, Status, Task, sys};
use sundew_base::failpoint;
use sundew_base::thread_priority::yield_to_event_loop;
use sundew_engine::error::EngineError;

/// Runs `work`; a panic becomes an error with the code `engine_panic`.
pub fn guard<T>(work: impl FnOnce() -> Result<T, EngineError>) -> Result<T, EngineError> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|payload| {
        Err(EngineError::new("engine_panic", format!("the engine panicked: {}", panic_text(&*payload))))
    })
}

/// A guarded call on the JavaScript thread.
pub fn call<T>(env: &Env, work: impl FnOnce() -> Result<T, EngineError>) -> napi::Result<T> {
    let guarded = guard(|| {
        failpoint::hit_panic("engine.call");
        work()
    });
    guarded.map_err(|error| js_error(env, error))
}

/// The JavaScript error with `message` and `code`. napi's own status is a closed list, so the code is set here.
fn js_error(env: &Env, error: EngineError) -> napi::Error {
    let build = || -> napi::Result<napi::Error> {
        let mut object = env.create_error(napi::Error::new(Status::GenericFailure, error.message.clone()))?;
        object.set_named_property("code", error.code)?;
        Ok(napi::Error::from(object.to_unknown()))
    };
    build().unwrap_or_else(|failure| failure)
}

/// Guarded work on the thread pool. The input lives until the promise has settled and is dropped on the JavaScript
/// thread, where references to typed arrays belong; its bytes must neither change nor be transferred before.
pub struct EngineTask<I, T> {
    input: I,
    work: fn(&mut I) -> Result<T, EngineError>,
}

/// An `EngineTask` on its way: a promise of `T` for JavaScript.
pub type Started<I, T> = AsyncTask<EngineTask<I, T>>;

impl<I, T> EngineTask<I, T>
where
    I: Send,
    T: ToNapiValue + TypeName + Send + 'static,
{
    pub fn start(input: I, work: fn(&mut I) -> Result<T, EngineError>) -> Started<I, T> {
        AsyncTask::new(Self { input, work })
    }
}

impl<I, T> Task for EngineTask<I, T>
where
    I: Send,
    T: ToNapiValue + TypeName + Send + 'static,
{
    /// An engine error is an output: an error of `compute` could not carry its code.
    type Output = Result<T, EngineError>;
    type JsValue = T;

    fn compute(&mut self) -> napi::Result<Self::Output> {
        yield_to_event_loop();
        Ok(guard(|| {
            failpoint::hit_panic("engine.task");
            (self.work)(&mut self.input)
        }))
    }

    fn resolve(&mut self, env: Env, output: Self::Output) -> napi::Result<Self::JsValue> {
        output.map_err(|error| js_error(&env, error))
    }
}

/// An answer that is there already, or a promise of it.
pub enum Answered<I, T>
where
    I: Send + 'static,
    T: ToNapiValue + TypeName + Send + 'static,
{
    Inline(T),
    Later(Started<I, T>),
}

impl<I, T> ToNapiValue for Answered<I, T>
where
    I: Send + 'static,
    T: ToNapiValue + TypeName + Send + 'static,
{
    unsafe fn to_napi_value(env: sys::napi_env, value: Self) -> napi::Result<sys::napi_value> {
        // SAFETY: `env` is valid by the contract of this function.
        unsafe {
            match value {
                Self::Inline(answer) => ToNapiValue::to_napi_value(env, answer),
                Self::Later(task) => ToNapiValue::to_napi_value(env, task),
            }
        }
    }
}

fn panic_text(payload: &(dyn Any + Send)) -> &str {
    payload
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("without a message")
}
