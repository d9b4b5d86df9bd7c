//! Count, sum, least, greatest and sum of squares of numbers.

use serde_json::{Map, Value, json};

use crate::full_text::aggregate::answers::exact_sum::ExactSum;
use crate::full_text::aggregate::value_text::{date_text_of_milliseconds, number_json};
use crate::full_text::plan::NumberMetric;

#[derive(Debug, Clone)]
pub struct NumberSummary {
    count: u64,
    dates: u64,
    least: f64,
    greatest: f64,
    sum: ExactSum,
    squares: ExactSum,
}

impl Default for NumberSummary {
    fn default() -> Self {
        Self {
            count: 0,
            dates: 0,
            least: f64::INFINITY,
            greatest: f64::NEG_INFINITY,
            sum: ExactSum::default(),
            squares: ExactSum::default(),
        }
    }
}

impl NumberSummary {
    /// Of as many numbers, and dates among them, with their least and greatest and all of their sums.
    pub fn of_sums(
        (count, dates): (u64, u64),
        (least, greatest): (f64, f64),
        sum: &ExactSum,
        squares: &ExactSum,
    ) -> Self {
        Self { count, dates, least, greatest, sum: sum.clone(), squares: squares.clone() }
    }

    /// Whether the sums that `metric` shows are numbers.
    pub fn is_finite(&self, metric: NumberMetric) -> bool {
        let sum = || self.sum.value().is_some();
        let squares = || self.squares.value().is_some();
        match metric {
            NumberMetric::Min | NumberMetric::Max => true,
            NumberMetric::Sum | NumberMetric::Avg => sum(),
            NumberMetric::Sumsquares => squares(),
            NumberMetric::Stats => sum() && squares(),
        }
    }

    /// Takes what `metric` needs of `number`.
    pub fn add(&mut self, metric: NumberMetric, number: f64) {
        self.count += 1;
        self.least = self.least.min(number);
        self.greatest = self.greatest.max(number);
        if matches!(metric, NumberMetric::Sum | NumberMetric::Avg | NumberMetric::Stats) {
            self.sum.add(number);
        }
        if matches!(metric, NumberMetric::Sumsquares | NumberMetric::Stats) {
            self.squares.add_square(number);
        }
    }

    /// Takes a date, in milliseconds since 1970.
    pub fn add_date(&mut self, metric: NumberMetric, milliseconds: f64) {
        self.dates += 1;
        self.add(metric, milliseconds);
    }

    pub fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.dates += other.dates;
        self.least = self.least.min(other.least);
        self.greatest = self.greatest.max(other.greatest);
        self.sum.merge(&other.sum);
        self.squares.merge(&other.squares);
    }

    fn average(&self) -> Option<f64> {
        if self.count == 0 { None } else { self.sum.value().map(|sum| sum / self.count as f64) }
    }

    /// Of all numbers, not of a sample: the mean square less the square of the mean.
    fn variance(&self) -> Option<f64> {
        if self.count == 0 {
            return None;
        }
        let count = self.count as f64;
        let difference = self.squares.times_less_square(self.count, &self.sum)?;
        Some((difference / count / count).max(0.0))
    }

    fn extreme(&self, number: f64) -> Value {
        let mut members = Map::new();
        members.insert("value".to_owned(), if self.count == 0 { Value::Null } else { number_json(number) });
        if self.count > 0 && self.dates == self.count {
            members.insert("value_as_string".to_owned(), Value::from(date_text_of_milliseconds(number)));
        }
        Value::Object(members)
    }

    pub fn to_json(&self, metric: NumberMetric) -> Value {
        let sum = self.sum.value().map_or(Value::Null, number_json);
        let squares = self.squares.value().map_or(Value::Null, number_json);
        let average = self.average().map_or(Value::Null, number_json);
        match metric {
            NumberMetric::Sum => json!({ "value": sum }),
            NumberMetric::Sumsquares => json!({ "value": squares }),
            NumberMetric::Avg => json!({ "count": self.count, "sum": sum, "avg": average, "value": average }),
            NumberMetric::Min => self.extreme(self.least),
            NumberMetric::Max => self.extreme(self.greatest),
            NumberMetric::Stats => {
                let shown = |number: f64| if self.count == 0 { Value::Null } else { number_json(number) };
                let variance = self.variance();
                json!({
                    "count": self.count,
                    "min": shown(self.least),
                    "max": shown(self.greatest),
                    "sum": sum,
                    "sum_of_squares": squares,
                    "avg": average,
                    "std_deviation": variance.map_or(Value::Null, |variance| number_json(variance.sqrt())),
                    "variance": variance.map_or(Value::Null, number_json),
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{NumberMetric, NumberSummary};

    #[test]
    fn the_variance_of_large_numbers_close_together_is_not_lost() {
        let mut summary = NumberSummary::default();
        for number in [1e9 + 4.0, 1e9 + 7.0, 1e9 + 13.0, 1e9 + 16.0] {
            summary.add(NumberMetric::Stats, number);
        }
        assert_eq!(summary.to_json(NumberMetric::Stats)["variance"], 22.5);
        let mut halves = NumberSummary::default();
        for number in [1e8 + 0.25, 1e8 + 0.75] {
            halves.add(NumberMetric::Stats, number);
        }
        assert_eq!(halves.to_json(NumberMetric::Stats)["variance"], 0.0625);
        let mut microseconds = NumberSummary::default();
        for number in [1_792_345_678_901_234.0, 1_792_345_678_901_235.0, 1_792_345_678_901_235.0] {
            microseconds.add(NumberMetric::Stats, number);
        }
        assert_eq!(microseconds.to_json(NumberMetric::Stats)["variance"], 2.0 / 9.0);
        let mut largest = NumberSummary::default();
        for below in [0.0, 1.0, 0.0, 1.0, 1.0] {
            largest.add(NumberMetric::Stats, 9_007_199_254_740_992.0 - below);
        }
        assert_eq!(largest.to_json(NumberMetric::Stats)["variance"], 0.24);
    }

    #[test]
    fn nothing_has_no_average() {
        let none = NumberSummary::default();
        let stats = none.to_json(NumberMetric::Stats);
        assert_eq!((stats["count"].as_u64(), stats["sum"].as_f64()), (Some(0), Some(0.0)));
        assert!(stats["min"].is_null() && stats["avg"].is_null() && stats["variance"].is_null());
    }
}
