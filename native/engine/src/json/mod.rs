//! JSON as bytes: one pass that checks the policy for request bodies and says where values lie. It builds no values.

mod errors;
mod float_text;
mod member_names;
mod numbers;
mod scan_limits;
mod scanner;
mod strings;

pub(crate) use errors::shorten;
pub(crate) use float_text::float_at;
pub use numbers::INTEGER_MAX;
pub use scan_limits::ScanLimits;
pub use scanner::scan_json;
pub(crate) use scanner::{Scanner, find_member};
pub(crate) use strings::{RawString, decode_string};
