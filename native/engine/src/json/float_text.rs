//! Reads float32s out of JSON text that a scan has accepted. What vectors are made of is mostly digits, so this is where
//! their time goes; the general parser of the standard library takes what is not plain.

use super::numbers::skip_digits;

/// Powers of ten that a double holds exactly.
const POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20,
    1e21, 1e22,
];
/// Decimal digits that always fit 64 bits.
const DIGITS_MAX: usize = 19;

/// The number at `at` and the position behind it; `None` when no number stands there. An overflow becomes an infinity.
///
/// With up to 19 digits and a small exponent, one multiplication or division of doubles is within two units of the last
/// place of the true value; rounding that to a float32 is right unless it lies as near to the middle of two of them,
/// which is left to the standard library.
pub(crate) fn float_at(text: &[u8], at: usize) -> Option<(f32, usize)> {
    let is_negative = text.get(at) == Some(&b'-');
    let whole = at + usize::from(is_negative);
    let whole_end = skip_digits(text, whole);
    if whole_end == whole {
        return None;
    }
    let mut mantissa = read_digits(&text[whole..whole_end], 0);
    let mut digits = if text[whole] == b'0' { 0 } else { whole_end - whole };
    let mut exponent = 0;
    let mut end = whole_end;
    if text.get(end) == Some(&b'.') {
        let fraction = end + 1;
        end = skip_digits(text, fraction);
        let mut significant = &text[fraction..end];
        if digits == 0 {
            let zeros = significant.iter().take_while(|&&digit| digit == b'0').count();
            significant = &significant[zeros..];
            exponent -= zeros as i32;
        }
        // Further digits are beyond what a double tells apart.
        let kept = significant.len().min(DIGITS_MAX.saturating_sub(digits));
        mantissa = read_digits(&significant[..kept], mantissa);
        exponent -= kept as i32;
        digits += kept;
    }
    if let Some(b'e' | b'E') = text.get(end) {
        let sign = end + 1;
        let start = sign + usize::from(matches!(text.get(sign), Some(b'+' | b'-')));
        end = skip_digits(text, start);
        let power = if end - start <= 4 { read_digits(&text[start..end], 0) as i32 } else { i32::from(u16::MAX) };
        exponent += if text.get(sign) == Some(&b'-') { -power } else { power };
    }
    let value = if digits <= DIGITS_MAX { plain(mantissa, exponent) } else { None };
    let value = match value {
        Some(value) if is_negative => -value,
        Some(value) => value,
        None => std::str::from_utf8(&text[at..end]).ok()?.parse().ok()?,
    };
    Some((value, end))
}

/// `mantissa * 10^exponent`, when that is certain to be rounded right.
fn plain(mantissa: u64, exponent: i32) -> Option<f32> {
    /// Bits of a double's significand below those of a float32, and their middle.
    const LOW_BITS: u64 = (1 << 29) - 1;
    const MIDDLE: u64 = 1 << 28;
    let power = *POWERS.get(exponent.unsigned_abs() as usize)?;
    let value = if exponent < 0 { mantissa as f64 / power } else { mantissa as f64 * power };
    let is_normal = value >= f64::from(f32::MIN_POSITIVE) && value < f64::from(f32::MAX);
    let is_clear = (value.to_bits() & LOW_BITS).abs_diff(MIDDLE) > 4;
    ((is_normal && is_clear) || mantissa == 0).then_some(value as f32)
}

/// Reads on in decimal; eight digits a step, as simdjson does (D. Lemire, "Number parsing at a gigabyte per second").
fn read_digits(mut digits: &[u8], mut number: u64) -> u64 {
    while let Some((chunk, rest)) = digits.split_first_chunk::<8>() {
        let word = u64::from_le_bytes(*chunk).wrapping_sub(0x3030_3030_3030_3030);
        let pairs = word.wrapping_mul(10).wrapping_add(word >> 8);
        let high = (pairs & 0x0000_00FF_0000_00FF).wrapping_mul(100 + (1_000_000 << 32));
        let low = (pairs >> 16 & 0x0000_00FF_0000_00FF).wrapping_mul(1 + (10_000 << 32));
        number = number.wrapping_mul(100_000_000).wrapping_add(high.wrapping_add(low) >> 32);
        digits = rest;
    }
    for &digit in digits {
        number = number.wrapping_mul(10).wrapping_add(u64::from(digit.wrapping_sub(b'0')));
    }
    number
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> f32 {
        let (value, end) = float_at(text.as_bytes(), 0).unwrap();
        assert_eq!(end, text.len(), "{text}");
        value
    }

    fn check(text: &str) {
        let expected: f32 = text.parse().unwrap();
        assert_eq!(read(text).to_bits(), expected.to_bits(), "{text}");
    }

    #[test]
    fn numbers_are_those_of_the_standard_library() {
        for text in [
            "0",
            "-0",
            "0.0",
            "-0.0e5",
            "1",
            "-1.5",
            "0.1",
            "123456789012345678901234567890",
            "1e38",
            "3.4028235e38",
            "3.4028236e38",
            "1e39",
            "-1e400",
            "1e-38",
            "1.1754943e-38",
            "1e-45",
            "7e-46",
            "1e-400",
            "16777217",
            "16777217.000000000000000001",
            "0.000000000000000000000001234567890123456789",
            "9007199254740993",
            "18446744073709551615",
            "18446744073709551616",
            "99999999999999999999.5",
            "1E+2",
            "1e0000000000000000005",
            "0.33333334326744079589843750000001",
            "0.3333333432674407958984375",
            "8388608.5",
            "8388609.5",
        ] {
            check(text);
        }
    }

    #[test]
    fn random_numbers_are_those_of_the_standard_library() {
        let mut state = 0x5EED_u64;
        let mut next = move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        for _ in 0..200_000 {
            let float = f32::from_bits(next() as u32);
            if float.is_finite() {
                check(&format!("{float}"));
                check(&format!("{float:e}"));
                check(&f64::from(float).to_string());
                // The middle between two neighbours, and its sides.
                let middle = (f64::from(float) + f64::from(f32::from_bits(float.to_bits() ^ 1))) / 2.0;
                check(&middle.to_string());
                check(&format!("{middle}{}", if middle.fract() == 0.0 { ".00000000000001" } else { "1" }));
            }
            let unit = (next() >> 11) as f64 / (1u64 << 53) as f64;
            check(&unit.to_string());
            check(&format!("-{unit:.8}"));
            check(&format!("{}.{}e{}", next() % 1000, next(), (next() % 90) as i64 - 45));
        }
    }

    #[test]
    fn what_is_no_number_is_none() {
        for text in ["", "-", "x", "\"1\"", "null", "[1]"] {
            assert!(float_at(text.as_bytes(), 0).is_none(), "{text}");
        }
        assert_eq!(float_at(b"[1.5,2]", 1), Some((1.5, 4)));
    }
}
