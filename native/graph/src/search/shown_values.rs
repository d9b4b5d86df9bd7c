//! How values of edges stand in answers: as a client of the interface sees them, so that an answer leaves as it was written.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde::ser::Error;
use serde::{Serialize, Serializer};
use serde_json::Value;

/// A whole number without a fraction, as JavaScript writes it.
pub fn short_float<S: Serializer>(
    value: &(impl Copy + Into<f64> + Serialize),
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let float: f64 = (*value).into();
    let is_whole = float.fract() == 0.0 && float.abs() < 1e15 && !(float == 0.0 && float.is_sign_negative());
    if is_whole { serializer.serialize_i64(float as i64) } else { value.serialize(serializer) }
}

/// The decimal number with six digits behind the point that a weight of 32 bits stands for; the weight itself where it
/// stands for none. Sums of weights are then those of what was written, not of what 32 bits keep of it.
pub fn decimal(weight: f32) -> f64 {
    let exact = f64::from(weight);
    let rounded = (exact * 1e6).round() / 1e6;
    if exact.fract() != 0.0 && rounded as f32 == weight { rounded } else { exact }
}

/// Text that is JSON.
pub fn as_json<S: Serializer>(text: &str, serializer: S) -> Result<S::Ok, S::Error> {
    serde_json::from_str::<Value>(text).map_err(S::Error::custom)?.serialize(serializer)
}

/// JSON as one word that an URL can hold.
pub fn as_text<S: Serializer>(value: &impl Serialize, serializer: S) -> Result<S::Ok, S::Error> {
    let json = serde_json::to_vec(value).map_err(S::Error::custom)?;
    serializer.serialize_str(&BASE64_URL_SAFE_NO_PAD.encode(json))
}

/// Milliseconds since 1970 as a date and a time in UTC.
pub fn as_time<S: Serializer>(ms: &i64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&iso_time(*ms))
}

/// `2026-11-23T07:00:00.000Z`, with six digits and a sign for years beyond four digits. The days are counted as in Howard
/// Hinnant's "chrono-compatible low-level date algorithms".
fn iso_time(ms: i64) -> String {
    let (days, ms_of_day) = (ms.div_euclid(86_400_000), ms.rem_euclid(86_400_000));
    let from_march_0 = days + 719_468;
    let (era, day_of_era) = (from_march_0.div_euclid(146_097), from_march_0.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    let (hour, minute) = (ms_of_day / 3_600_000, ms_of_day / 60_000 % 60);
    let (second, ms) = (ms_of_day / 1_000 % 60, ms_of_day % 1_000);
    let mut text = String::with_capacity(28);
    if (0..10_000).contains(&year) {
        push_digits(&mut text, year, 4);
    } else {
        text.push_str(&format!("{year:+07}"));
    }
    for (mark, number, width) in
        [("-", month, 2), ("-", day, 2), ("T", hour, 2), (":", minute, 2), (":", second, 2), (".", ms, 3)]
    {
        text.push_str(mark);
        push_digits(&mut text, number, width);
    }
    text.push('Z');
    text
}

/// The last digits of a number. An answer has two times an edge, and a formatter takes longer than the search.
fn push_digits(text: &mut String, number: i64, width: u32) {
    for power in (0..width).rev() {
        text.push(char::from(b'0' + (number / 10i64.pow(power) % 10) as u8));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Beside what `Date.prototype.toISOString` says.
    #[test]
    fn times_are_written_as_javascript_writes_them() {
        let known = [
            (0, "1970-01-01T00:00:00.000Z"),
            (-1, "1969-12-31T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_700_000_000_123, "2023-11-14T22:13:20.123Z"),
            (4_107_542_399_999, "2100-02-28T23:59:59.999Z"),
            (253_402_300_800_000, "+010000-01-01T00:00:00.000Z"),
            (-62_198_755_200_000, "-000001-01-01T00:00:00.000Z"),
        ];
        for (ms, text) in known {
            assert_eq!(iso_time(ms), text);
        }
    }

    #[test]
    fn numbers_are_written_as_javascript_writes_them() {
        let written = |value: f64| {
            let mut bytes = Vec::new();
            short_float(&value, &mut serde_json::Serializer::new(&mut bytes)).unwrap();
            String::from_utf8(bytes).unwrap()
        };
        assert_eq!([1.0, -3.0, 0.5, 0.0].map(written), ["1", "-3", "0.5", "0"]);
    }

    #[test]
    fn a_weight_is_the_decimal_that_was_written() {
        for written in [0.9, 0.2, -0.3, 12.345678, 1e-6, 0.125, 0.341796875, 16_777_216.0, 0.0] {
            assert_eq!(decimal(written as f32), written);
        }
        assert_eq!(decimal(0.9) + decimal(0.2), 1.1);
    }
}
