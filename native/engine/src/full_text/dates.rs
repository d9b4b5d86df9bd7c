//! Dates in documents and queries.

use tantivy::DateTime;
use time::format_description::well_known::Rfc3339;
use time::{Date, Month, OffsetDateTime, PrimitiveDateTime, Time};

const DAY_BYTES: usize = 10;

/// An RFC 3339 time, or `YYYY-MM-DD` for its first moment in UTC. Years that nanoseconds in 64 bits cannot reach
/// (before 1678, after 2261) are not dates.
pub fn parse_date(text: &str) -> Option<DateTime> {
    let nanoseconds = i64::try_from(parse_time(text)?.unix_timestamp_nanos()).ok()?;
    Some(DateTime::from_timestamp_nanos(nanoseconds))
}

/// The bound of a range: what lies beyond all dates is the last of them on that side, so that `9999-12-31` bounds
/// nothing.
pub fn parse_date_bound(text: &str) -> Option<DateTime> {
    let nanoseconds = parse_time(text)?.unix_timestamp_nanos().clamp(i64::MIN.into(), i64::MAX.into());
    Some(DateTime::from_timestamp_nanos(nanoseconds as i64))
}

fn parse_time(text: &str) -> Option<OffsetDateTime> {
    let bytes = text.as_bytes();
    if bytes.len() < DAY_BYTES || bytes[4] != b'-' || bytes[7] != b'-' || !bytes[0].is_ascii_digit() {
        return None;
    }
    if bytes.len() == DAY_BYTES {
        let number = |range: std::ops::Range<usize>| -> Option<u16> {
            let digits = text.get(range)?;
            digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
        };
        let month = Month::try_from(u8::try_from(number(5..7)?).ok()?).ok()?;
        let day = u8::try_from(number(8..10)?).ok()?;
        let date = Date::from_calendar_date(i32::from(number(0..4)?), month, day).ok()?;
        Some(PrimitiveDateTime::new(date, Time::MIDNIGHT).assume_utc())
    } else {
        OffsetDateTime::parse(text, &Rfc3339).ok()
    }
}

/// RFC 3339 in UTC, as many fraction digits as it takes.
pub fn format_date(date: DateTime) -> String {
    let nanoseconds = i128::from(date.into_timestamp_nanos());
    let time = OffsetDateTime::from_unix_timestamp_nanos(nanoseconds).ok();
    time.and_then(|time| time.format(&Rfc3339).ok()).unwrap_or_default()
}
