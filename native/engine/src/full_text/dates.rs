//! Dates in documents and queries.
//!
//! An index holds a date as 64 bits that are ordered as dates are: nanoseconds since 1970 in the years from 1700 to 2249, and
//! microseconds before and behind, where nanoseconds would not reach from the year 1 to the year 9999.

use tantivy::DateTime;
use time::format_description::well_known::Rfc3339;
use time::{Date, Month, OffsetDateTime, PrimitiveDateTime, Time};

const DAY_BYTES: usize = 10;

const SECOND: i128 = 1_000_000_000;
/// Nanoseconds since 1970 of the year 1, which begins on a Monday as weeks do, and of the end of the year 9999.
const FIRST: i128 = -62_135_596_800 * SECOND;
const LAST: i128 = 253_402_300_800 * SECOND - 1;
/// 1700 and 2250.
const NEAR_FIRST: i128 = -8_520_336_000 * SECOND;
const NEAR_END: i128 = 8_835_955_200 * SECOND;
/// Nanoseconds between two dates that follow each other before 1700, or from 2250 on.
const FAR_STEP: i128 = 1_000;

/// An RFC 3339 time of the years from 1 to 9999, or `YYYY-MM-DD` for its first moment in UTC.
pub fn parse_date(text: &str) -> Option<DateTime> {
    let nanoseconds = parse_time(text)?.unix_timestamp_nanos();
    (FIRST..=LAST).contains(&nanoseconds).then(|| date_of(nanoseconds))
}

/// The bound of a range: what lies beyond all dates is the last of them on that side.
pub fn parse_date_bound(text: &str) -> Option<DateTime> {
    Some(date_of(parse_time(text)?.unix_timestamp_nanos().clamp(FIRST, LAST)))
}

/// The date of a moment in nanoseconds since 1970, or the last one that it has passed.
pub fn date_of(nanoseconds: i128) -> DateTime {
    let near = nanoseconds.clamp(NEAR_FIRST, NEAR_END);
    let bits = near + (nanoseconds - near).div_euclid(FAR_STEP);
    DateTime::from_timestamp_nanos(bits.clamp(i64::MIN.into(), i64::MAX.into()) as i64)
}

/// Nanoseconds since 1970 of a date, given as its bits: those of `DateTime::into_timestamp_nanos`.
pub fn nanoseconds_of(bits: i64) -> i128 {
    let bits = i128::from(bits);
    let near = bits.clamp(NEAR_FIRST, NEAR_END);
    near + (bits - near) * FAR_STEP
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

/// Whole seconds since 1970 of a date, given as its bits.
pub fn seconds_of(bits: i64) -> i64 {
    nanoseconds_of(bits).div_euclid(SECOND) as i64
}

/// RFC 3339 in UTC, as many fraction digits as it takes; `bits` as in `nanoseconds_of`.
pub fn date_text(bits: i64) -> String {
    date_text_of_nanoseconds(nanoseconds_of(bits))
}

pub fn date_text_of_nanoseconds(nanoseconds: i128) -> String {
    let time = OffsetDateTime::from_unix_timestamp_nanos(nanoseconds).ok();
    time.and_then(|time| time.format(&Rfc3339).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bits(text: &str) -> i64 {
        parse_date(text).expect("a date").into_timestamp_nanos()
    }

    #[test]
    fn dates_of_all_years_are_in_order_and_shown_as_they_were_written() {
        let dates = [
            "0001-01-01T00:00:00Z",
            "0001-01-01T00:00:00.000001Z",
            "1066-10-14T09:00:00Z",
            "1677-09-21T00:12:43.145224Z",
            "1699-12-31T23:59:59.999999Z",
            "1700-01-01T00:00:00Z",
            "1700-01-01T00:00:00.000000001Z",
            "1969-12-31T23:59:59.999999999Z",
            "1970-01-01T00:00:00Z",
            "2249-12-31T23:59:59.999999999Z",
            "2250-01-01T00:00:00Z",
            "2250-01-01T00:00:00.000001Z",
            "2262-04-11T23:47:16.854775Z",
            "9999-12-31T00:00:00Z",
            "9999-12-31T23:59:59.999999Z",
        ];
        assert!(dates.is_sorted_by(|a, b| bits(a) < bits(b)));
        for date in dates {
            assert_eq!(date_text(bits(date)), date);
        }
        assert_eq!(bits("9999-12-31T23:59:59.999999999Z"), bits("9999-12-31T23:59:59.999999Z"));
        assert_eq!(bits("1699-12-31T23:59:59.999999999Z"), bits("1699-12-31T23:59:59.999999Z"));
    }

    #[test]
    fn what_lies_beyond_the_years_is_no_date_and_bounds_nothing() {
        for (text, last) in [
            ("0000-12-31", "0001-01-01"),
            ("9999-12-31T23:59:59-01:00", "9999-12-31T23:59:59.999999Z"),
            ("0001-01-01T00:00:00+01:00", "0001-01-01"),
        ] {
            assert_eq!(parse_date(text), None);
            assert_eq!(parse_date_bound(text), parse_date(last));
        }
    }
}
