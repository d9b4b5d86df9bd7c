//! JSON as bytes: one pass that checks the policy for request bodies and answers where things lie. It builds no values.

mod float_text;
mod scanner;

pub(crate) use float_text::float_at;
pub use scanner::{INTEGER_MAX, ScanLimits, scan_json};
pub(crate) use scanner::{RawString, Scanner, decode_string, find_member, shorten};
