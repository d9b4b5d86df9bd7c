//! Numbers and dates as answers show them.

use serde_json::Value;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::json::INTEGER_MAX;

const MILLISECOND: i64 = 1_000_000;

/// Milliseconds of a time in nanoseconds, exact to the microsecond: as a double, nanoseconds of today are not.
pub fn milliseconds_of(nanoseconds: i64) -> f64 {
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
pub fn date_text(milliseconds: f64) -> String {
    let whole = milliseconds.floor();
    let microseconds = ((milliseconds - whole) * 1e3).round();
    date_text_of_nanoseconds(whole as i128 * i128::from(MILLISECOND) + microseconds as i128 * 1_000)
}

pub fn date_text_of_nanoseconds(nanoseconds: i128) -> String {
    let time = OffsetDateTime::from_unix_timestamp_nanos(nanoseconds).ok();
    time.and_then(|time| time.format(&Rfc3339).ok()).unwrap_or_default()
}
