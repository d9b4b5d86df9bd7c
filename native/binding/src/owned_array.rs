//! Numbers that leave the engine as a typed array over a buffer that JavaScript owns.

use std::ptr;

use napi::bindgen_prelude::{ToNapiValue, TypeName};
use napi::{Error, Result, Status, ValueType, sys};

/// Converts by copying once: a buffer that wraps native memory cannot be transferred to a Worker (Bun refuses with
/// `DataCloneError`), and frames go to the storage worker. For the short arrays of a query's answer the copy is also
/// cheaper than a finaliser.
pub struct OwnedArray<T>(pub Vec<T>);

/// A number that a typed array can hold.
pub trait Element: Copy {
    const KIND: sys::napi_typedarray_type;
}

impl Element for u8 {
    const KIND: sys::napi_typedarray_type = sys::TypedarrayType::uint8_array;
}

impl Element for u32 {
    const KIND: sys::napi_typedarray_type = sys::TypedarrayType::uint32_array;
}

impl Element for f64 {
    const KIND: sys::napi_typedarray_type = sys::TypedarrayType::float64_array;
}

impl<T> TypeName for OwnedArray<T> {
    fn type_name() -> &'static str {
        "TypedArray"
    }

    fn value_type() -> ValueType {
        ValueType::Object
    }
}

impl<T: Element> ToNapiValue for OwnedArray<T> {
    unsafe fn to_napi_value(env: sys::napi_env, value: Self) -> Result<sys::napi_value> {
        let length = value.0.len();
        let byte_length = size_of_val(value.0.as_slice());
        let mut data = ptr::null_mut();
        let mut buffer = ptr::null_mut();
        let mut array = ptr::null_mut();
        // SAFETY: `env` is valid by the contract of this function; `data` points to `byte_length` fresh bytes that no
        // script has seen yet.
        unsafe {
            check(sys::napi_create_arraybuffer(env, byte_length, &mut data, &mut buffer))?;
            if length > 0 {
                ptr::copy_nonoverlapping(value.0.as_ptr().cast::<u8>(), data.cast::<u8>(), byte_length);
            }
            check(sys::napi_create_typedarray(env, T::KIND, length, buffer, 0, &mut array))?;
        }
        Ok(array)
    }
}

fn check(status: sys::napi_status) -> Result<()> {
    match Status::from(status) {
        Status::Ok => Ok(()),
        failure => Err(Error::new(failure, "a typed array cannot be created")),
    }
}
