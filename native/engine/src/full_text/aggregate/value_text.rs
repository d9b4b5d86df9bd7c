//! Numbers and dates as answers show them.

use serde_json::Value;

use crate::full_text::dates::{date_text_of_nanoseconds, nanoseconds_of};
use crate::json::INTEGER_MAX;

const MILLISECOND: i128 = 1_000_000;

/// Milliseconds since 1970 of a date, given as its bits, exact to the microsecond for dates near today: as a double,
/// nanoseconds are not.
pub fn milliseconds_of(date: i64) -> f64 {
    let nanoseconds = nanoseconds_of(date);
    let below = nanoseconds.rem_euclid(MILLISECOND) as f64 / MILLISECOND as f64;
    nanoseconds.div_euclid(MILLISECOND) as f64 + below
}

/// Integers are written without a fraction; what JSON has no number for is null.
pub fn number_json(number: f64) -> Value {
    if number.fract() == 0.0 && number.abs() <= INTEGER_MAX as f64 {
        Value::from(number as i64)
    } else {
        Value::from(number)
    }
}

/// RFC 3339 in UTC of milliseconds since 1970.
pub fn date_text_of_milliseconds(milliseconds: f64) -> String {
    let whole = milliseconds.floor();
    let microseconds = ((milliseconds - whole) * 1e3).round();
    date_text_of_nanoseconds(whole as i128 * MILLISECOND + microseconds as i128 * 1_000)
}
