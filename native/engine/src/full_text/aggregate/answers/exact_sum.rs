//! Sums whose value does not depend on the order of what is added.

/// Beyond this the integer part moves into the sums of doubles, long before it could overflow.
const INTEGER_MAX: u128 = 1 << 120;

/// Integers up to here have squares that fit many times into `INTEGER_MAX`.
const SQUARED_MAX: u64 = 1 << 53;

/// Doubles from here on are kept apart, and smaller: two of them can leave the range of doubles, and a third come back.
const LARGE_MIN: f64 = power_of_two(900);

/// The factor by which large doubles are made smaller. Exact: their last bit stays far from the smallest double.
const LARGE_UNIT: f64 = power_of_two(200);

const fn power_of_two(exponent: u64) -> f64 {
    f64::from_bits((1023 + exponent) << 52)
}

/// The exact sum of doubles, rounded once when it is read: integers in 128 bits, the others as sums of doubles that do
/// not overlap.
#[derive(Debug, Clone, Default)]
pub struct ExactSum {
    integer: i128,
    small: Expansion,
    /// In `LARGE_UNIT`s.
    large: Expansion,
    /// A square was beyond the range of doubles.
    overflowed: bool,
}

impl ExactSum {
    pub fn add(&mut self, number: f64) {
        let integer = number as i64;
        if integer as f64 == number && integer != i64::MAX {
            self.add_integer(i128::from(integer));
        } else {
            self.add_float(number);
        }
    }

    pub fn add_square(&mut self, number: f64) {
        let integer = number as i64;
        if integer as f64 == number && integer.unsigned_abs() <= SQUARED_MAX {
            self.add_integer(i128::from(integer) * i128::from(integer));
            return;
        }
        let square = number * number;
        self.add_float(square);
        // The part of the square that rounding took.
        let rest = number.mul_add(number, -square);
        if square.is_finite() && rest != 0.0 {
            self.add_float(rest);
        }
    }

    /// Adds `number` as often as `times` says, or takes it away that often. Exact for up to 2^53 times.
    pub fn add_times(&mut self, number: f64, times: i64) {
        let integer = number as i64;
        if integer as f64 == number && integer != i64::MAX {
            self.add_integer(i128::from(integer) * i128::from(times));
            return;
        }
        if number.abs() >= LARGE_MIN && number.is_finite() {
            self.large.add_product(number / LARGE_UNIT, times as f64);
        } else if number.is_finite() {
            self.small.add_product(number, times as f64);
        } else {
            self.overflowed = true;
        }
    }

    /// As `add_times`, of the square of `number` as `add_square` takes it.
    pub fn add_square_times(&mut self, number: f64, times: i64) {
        let integer = number as i64;
        if integer as f64 == number && integer.unsigned_abs() <= SQUARED_MAX {
            let square = i128::from(integer) * i128::from(integer);
            let high = square as f64;
            // Squares of 106 bits are two doubles.
            self.add_times(high, times);
            self.add_times((square - high as i128) as f64, times);
            return;
        }
        let square = number * number;
        self.add_times(square, times);
        let rest = number.mul_add(number, -square);
        if square.is_finite() && rest != 0.0 {
            self.add_times(rest, times);
        }
    }

    pub fn merge(&mut self, other: &Self) {
        self.overflowed |= other.overflowed;
        self.add_integer(other.integer);
        other.small.partials.iter().for_each(|partial| self.small.add(*partial));
        other.large.partials.iter().for_each(|partial| self.large.add(*partial));
    }

    fn add_integer(&mut self, integer: i128) {
        self.integer += integer;
        if self.integer.unsigned_abs() > INTEGER_MAX {
            let rest = std::mem::take(&mut self.integer);
            self.add_pieces(rest);
        }
    }

    fn add_pieces(&mut self, mut rest: i128) {
        while rest != 0 {
            let piece = rest as f64;
            self.add_float(piece);
            rest -= piece as i128;
        }
    }

    fn add_float(&mut self, number: f64) {
        if !number.is_finite() {
            self.overflowed = true;
        } else if number.abs() < LARGE_MIN {
            self.small.add(number);
        } else {
            self.large.add(number / LARGE_UNIT);
        }
    }

    /// The nearest double; `None` when the sum is beyond the range of doubles.
    pub fn value(&self) -> Option<f64> {
        let mut all = self.clone();
        let integer = std::mem::take(&mut all.integer);
        all.add_pieces(integer);
        if all.overflowed {
            return None;
        }
        if all.large.partials.is_empty() {
            return Some(all.small.value());
        }
        // The rest of large ones is at least 2^848: of a small one that is too small for the unit only the sign counts.
        for partial in all.small.partials {
            let scaled = partial / LARGE_UNIT;
            all.large.add(if scaled == 0.0 { f64::from_bits(1).copysign(partial) } else { scaled });
        }
        Some(all.large.value() * LARGE_UNIT).filter(|value| value.is_finite())
    }

    /// `times` this sum less the square of `other`, rounded once; `None` when one of these is beyond the range of doubles.
    pub fn times_less_square(&self, times: u64, other: &Self) -> Option<f64> {
        self.value().zip(other.value())?;
        let mut difference = Self::default();
        for piece in self.pieces() {
            difference.add_times(piece, times as i64);
        }
        let pieces = other.pieces();
        for left in &pieces {
            for right in &pieces {
                let product = left * right;
                difference.add_float(-product);
                difference.add_float(-left.mul_add(*right, -product));
            }
        }
        difference.value()
    }

    /// Doubles that are this sum together.
    fn pieces(&self) -> Vec<f64> {
        let mut all = self.clone();
        let integer = std::mem::take(&mut all.integer);
        all.add_pieces(integer);
        let large = all.large.partials.iter().map(|partial| partial * LARGE_UNIT);
        all.small.partials.iter().copied().chain(large).collect()
    }
}

/// A sum of doubles none of which overlap (J. R. Shewchuk, "Adaptive Precision Floating-Point Arithmetic", 1997). It stays
/// in the range of doubles: what is added is below 2^960.
#[derive(Debug, Clone, Default)]
struct Expansion {
    /// Of growing size.
    partials: Vec<f64>,
}

impl Expansion {
    fn add(&mut self, mut number: f64) {
        let mut kept = 0;
        for at in 0..self.partials.len() {
            let mut partial = self.partials[at];
            if number.abs() < partial.abs() {
                std::mem::swap(&mut number, &mut partial);
            }
            let high = number + partial;
            let low = partial - (high - number);
            if low != 0.0 {
                self.partials[kept] = low;
                kept += 1;
            }
            number = high;
        }
        self.partials.truncate(kept);
        if number != 0.0 {
            self.partials.push(number);
        }
    }

    fn add_product(&mut self, left: f64, right: f64) {
        let product = left * right;
        self.add(product);
        self.add(left.mul_add(right, -product));
    }

    /// The nearest double.
    fn value(mut self) -> f64 {
        let Some(mut high) = self.partials.pop() else { return 0.0 };
        let mut low = 0.0;
        while let Some(partial) = self.partials.pop() {
            let sum = high + partial;
            low = partial - (sum - high);
            high = sum;
            if low != 0.0 {
                break;
            }
        }
        // A tie is decided by what lies below it.
        let below = self.partials.last().copied().unwrap_or(0.0);
        if low != 0.0 && below != 0.0 && (low < 0.0) == (below < 0.0) {
            let doubled = low * 2.0;
            let next = high + doubled;
            if next - high == doubled {
                high = next;
            }
        }
        high
    }
}

#[cfg(test)]
mod tests {
    use super::ExactSum;

    fn sum(numbers: &[f64]) -> Option<f64> {
        let mut sum = ExactSum::default();
        numbers.iter().for_each(|number| sum.add(*number));
        sum.value()
    }

    #[test]
    fn nothing_is_lost_between_large_and_small() {
        assert_eq!(sum(&[]), Some(0.0));
        assert_eq!(sum(&[0.1; 10]), Some(1.0));
        assert_eq!(sum(&[1e16, 1.0, -1e16]), Some(1.0));
        assert_eq!(sum(&[1e100, 0.5, -1e100, 0.25]), Some(0.75));
        assert_eq!(sum(&[9_007_199_254_740_991.0, 9_007_199_254_740_991.0, 1.0]), Some(18_014_398_509_481_983.0));
        assert_eq!(sum(&[1e308, 1e308]), None);
    }

    #[test]
    fn a_sum_may_leave_the_range_of_doubles_and_come_back() {
        assert_eq!(sum(&[1e308, 1e308, -1e308]), Some(1e308));
        assert_eq!(sum(&[1e308, 1e308, 0.25, -1e308, 1e-300, -1e308]), Some(0.25));
        assert_eq!(sum(&[f64::MAX, f64::MAX, -f64::MAX, 1e-320]), Some(f64::MAX));
        assert_eq!(sum(&[-1e308, -1e308]), None);
        // Half a unit in the last place of 2^1000 is a tie, which the smallest double decides.
        let (high, half) = (2f64.powi(1000), 2f64.powi(947));
        assert_eq!(sum(&[high, half]), Some(high));
        assert_eq!(sum(&[high, half, 5e-324]), Some(high + 2.0 * half));
        assert_eq!(sum(&[high, half, -5e-324]), Some(high));
        let mut often = ExactSum::default();
        often.add_times(1e308, 1000);
        often.add_times(1.1, 3);
        assert_eq!(often.value(), None);
        often.add_times(1e308, -1000);
        assert_eq!(often.value(), Some(1.1 * 3.0));
    }

    #[test]
    fn order_and_grouping_do_not_matter() {
        let numbers: Vec<f64> = (1..2000).map(|at| f64::from(at) * 0.1 * 10f64.powi(at % 30 - 15)).collect();
        let forward = sum(&numbers);
        let backward: Vec<f64> = numbers.iter().rev().copied().collect();
        assert_eq!(forward, sum(&backward));
        let (mut left, mut right) = (ExactSum::default(), ExactSum::default());
        for (at, number) in numbers.iter().enumerate() {
            if at % 3 == 0 { left.add(*number) } else { right.add(*number) }
        }
        left.merge(&right);
        assert_eq!(left.value(), forward);
    }

    #[test]
    fn what_is_taken_away_again_leaves_nothing() {
        let numbers = [0.1, -2.5, 9_007_199_254_740_991.0, 1e-300, -7.0, 1e120, 4.0 / 3.0];
        let (mut one_by_one, mut at_once) = (ExactSum::default(), ExactSum::default());
        for number in numbers {
            for _ in 0..1000 {
                one_by_one.add(number);
                one_by_one.add_square(number);
            }
            at_once.add_times(number, 1000);
            at_once.add_square_times(number, 1000);
        }
        assert_eq!(at_once.value(), one_by_one.value());
        for number in &numbers[1..] {
            at_once.add_times(*number, -1000);
            at_once.add_square_times(*number, -1000);
        }
        let mut left = ExactSum::default();
        left.add_times(numbers[0], 1000);
        left.add_square_times(numbers[0], 1000);
        assert_eq!(at_once.value(), left.value());
        assert_eq!(at_once.times_less_square(3, &left), left.times_less_square(3, &at_once));
    }

    #[test]
    fn squares_are_exact_before_they_are_rounded() {
        let mut squares = ExactSum::default();
        squares.add_square(0.1);
        squares.add_square(1e9);
        squares.add(-1e18);
        // The nearest double to the square of the double nearest to a tenth.
        assert_eq!(squares.value(), Some(0.1 * 0.1));
        for _ in 0..40_000 {
            squares.add_square(9_007_199_254_740_991.0);
        }
        let square = 9_007_199_254_740_991u128.pow(2);
        assert_eq!(squares.value(), Some((40_000 * square) as f64));
    }
}
