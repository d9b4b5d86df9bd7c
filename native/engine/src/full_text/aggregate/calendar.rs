//! Calendar intervals in UTC, numbered from 1970.

use crate::full_text::plan::CalendarInterval;

const DAY_SECONDS: i64 = 86_400;

/// Days since 1970 of the first of a month; months count from January 1970. The proleptic Gregorian calendar, by years
/// that begin in March, so that the leap day is the last.
fn first_day_of_month(month: i64) -> i64 {
    let (year, month) = (1970 + month.div_euclid(12), month.rem_euclid(12));
    let (year, from_march) = if month < 2 { (year - 1, month + 10) } else { (year, month - 2) };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let day_of_year = (153 * from_march + 2) / 5;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + day_of_year - 719_468
}

/// Months since January 1970 of a day since 1970.
fn month_of_day(day: i64) -> i64 {
    // The mean month has 30.436875 days: the estimate is at most one off.
    let mut month = (day * 10_000).div_euclid(304_369);
    while first_day_of_month(month) > day {
        month -= 1;
    }
    while first_day_of_month(month + 1) <= day {
        month += 1;
    }
    month
}

impl CalendarInterval {
    /// The number of the interval that holds a second since 1970.
    pub fn number_of(self, seconds: i64) -> i64 {
        let day = seconds.div_euclid(DAY_SECONDS);
        match self {
            Self::Minute => seconds.div_euclid(60),
            Self::Hour => seconds.div_euclid(3600),
            Self::Day => day,
            // Weeks begin on Monday; 1970 began on a Thursday.
            Self::Week => (day + 3).div_euclid(7),
            Self::Month => month_of_day(day),
            Self::Quarter => month_of_day(day).div_euclid(3),
            Self::Year => month_of_day(day).div_euclid(12),
        }
    }

    /// First second, since 1970, of an interval.
    pub fn start_of(self, number: i64) -> i64 {
        match self {
            Self::Minute => number * 60,
            Self::Hour => number * 3600,
            Self::Day => number * DAY_SECONDS,
            Self::Week => (number * 7 - 3) * DAY_SECONDS,
            Self::Month => first_day_of_month(number) * DAY_SECONDS,
            Self::Quarter => first_day_of_month(number * 3) * DAY_SECONDS,
            Self::Year => first_day_of_month(number * 12) * DAY_SECONDS,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::CalendarInterval;
    use crate::full_text::dates::{parse_date, seconds_of};

    fn seconds(text: &str) -> i64 {
        seconds_of(parse_date(text).expect("a date").into_timestamp_nanos())
    }

    #[test]
    fn a_time_lies_in_its_interval() {
        for (interval, time, start) in [
            (CalendarInterval::Minute, "2024-02-29T23:59:59.9Z", "2024-02-29T23:59:00Z"),
            (CalendarInterval::Hour, "1969-12-31T23:59:59Z", "1969-12-31T23:00:00Z"),
            (CalendarInterval::Day, "2000-02-29T12:00:00Z", "2000-02-29"),
            (CalendarInterval::Week, "2024-03-03T23:00:00Z", "2024-02-26"),
            (CalendarInterval::Week, "2024-03-04", "2024-03-04"),
            (CalendarInterval::Month, "1900-02-28T23:59:59Z", "1900-02-01"),
            (CalendarInterval::Month, "2024-12-31", "2024-12-01"),
            (CalendarInterval::Quarter, "2023-06-30T23:59:59Z", "2023-04-01"),
            (CalendarInterval::Year, "1701-01-01", "1701-01-01"),
            (CalendarInterval::Year, "2261-12-31", "2261-01-01"),
            (CalendarInterval::Week, "0001-01-01", "0001-01-01"),
            (CalendarInterval::Week, "9999-12-31T23:59:59.9Z", "9999-12-27"),
        ] {
            assert_eq!(interval.start_of(interval.number_of(seconds(time))), seconds(start), "{interval:?} of {time}");
        }
    }

    #[test]
    fn intervals_follow_each_other_without_a_gap() {
        for interval in
            [CalendarInterval::Week, CalendarInterval::Month, CalendarInterval::Quarter, CalendarInterval::Year]
        {
            for number in -1200..1200 {
                let (start, next) = (interval.start_of(number), interval.start_of(number + 1));
                assert_eq!(interval.number_of(start), number, "{interval:?}");
                assert_eq!(interval.number_of(start - 1), number - 1, "{interval:?}");
                assert!(next > start);
            }
        }
    }
}
