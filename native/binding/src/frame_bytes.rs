//! Bytes that leave the engine as a `Uint8Array` over a buffer that JavaScript owns.

use std::ptr;

use napi::bindgen_prelude::{ToNapiValue, TypeName};
use napi::{Error, Result, Status, ValueType, sys};

/// Converts by copying once: a buffer that wraps native memory cannot be transferred to a Worker (Bun refuses with
/// `DataCloneError`), and frames go to the storage worker.
pub struct FrameBytes(pub Vec<u8>);

impl TypeName for FrameBytes {
    fn type_name() -> &'static str {
        "Uint8Array"
    }

    fn value_type() -> ValueType {
        ValueType::Object
    }
}

impl ToNapiValue for FrameBytes {
    unsafe fn to_napi_value(env: sys::napi_env, value: Self) -> Result<sys::napi_value> {
        let length = value.0.len();
        let mut data = ptr::null_mut();
        let mut buffer = ptr::null_mut();
        let mut array = ptr::null_mut();
        // SAFETY: `env` is valid by the contract of this function; `data` points to `length` fresh bytes that no
        // script has seen yet.
        unsafe {
            check(sys::napi_create_arraybuffer(env, length, &mut data, &mut buffer))?;
            if length > 0 {
                ptr::copy_nonoverlapping(value.0.as_ptr(), data.cast::<u8>(), length);
            }
            check(sys::napi_create_typedarray(env, sys::TypedarrayType::uint8_array, length, buffer, 0, &mut array))?;
        }
        Ok(array)
    }
}

fn check(status: sys::napi_status) -> Result<()> {
    match Status::from(status) {
        Status::Ok => Ok(()),
        failure => Err(Error::new(failure, "a Uint8Array cannot be created")),
    }
}
