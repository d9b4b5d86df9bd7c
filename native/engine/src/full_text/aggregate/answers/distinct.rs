//! How many different values there are: counted up to a bound, estimated beyond it.

use std::collections::HashSet;
use std::hash::Hasher;

use serde_json::{Value, json};

use crate::error::EngineError;
use crate::full_text::aggregate::budget::Budget;
use crate::full_text::plan::CardinalityMode;

/// Different values up to which `auto` counts.
pub const EXACT_MAX: usize = 100_000;
/// The same for `approximate`.
const APPROXIMATE_EXACT_MAX: usize = 1_000;

/// Bits of a hash that choose a register: 16,384 registers, a standard error of 0.81 %.
const REGISTER_BITS: u32 = 14;
const REGISTERS: usize = 1 << REGISTER_BITS;
/// Bits of a hash that a register counts leading zeros of.
const COUNTED_BITS: usize = 64 - REGISTER_BITS as usize;
/// The cost of the registers, in entries of the budget.
const REGISTERS_COST: usize = REGISTERS / 32;

/// A value's identity in 128 bits: counting by it is exact for all that matters (two of a million values are the same
/// by chance once in 10^26 times). The lower half is uniform.
pub type ValueHash = u128;

/// `kind` sets values of different types apart.
pub fn hash_of_bits(kind: u8, bits: u64) -> ValueHash {
    u128::from(kind) << 64 | u128::from(mixed(bits ^ u64::from(kind) << 56))
}

pub fn hash_of_text(text: &[u8]) -> ValueHash {
    let half = |salt: u8| {
        let mut hasher = std::hash::DefaultHasher::new();
        hasher.write_u8(salt);
        hasher.write(text);
        hasher.finish()
    };
    u128::from(half(0)) << 64 | u128::from(half(1))
}

/// A permutation of 64 bits in which every bit depends on every other (the finaliser of MurmurHash3).
pub fn mixed(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    bits = (bits ^ (bits >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    bits ^ (bits >> 33)
}

/// A set of values. Whether it counts or estimates depends on how many there are, not on how they came together.
#[derive(Debug, Clone)]
pub struct Distinct {
    exact_max: usize,
    values: HashSet<ValueHash>,
    /// Once there are more than `exact_max`.
    registers: Option<Box<[u8]>>,
}

impl Distinct {
    pub fn new(mode: CardinalityMode) -> Self {
        let exact_max = match mode {
            CardinalityMode::Auto => EXACT_MAX,
            CardinalityMode::Approximate => APPROXIMATE_EXACT_MAX,
            CardinalityMode::Exact => usize::MAX,
        };
        Self { exact_max, values: HashSet::new(), registers: None }
    }

    pub fn add(&mut self, value: ValueHash, budget: &Budget) -> Result<(), EngineError> {
        if let Some(registers) = &mut self.registers {
            observe(registers, value);
            return Ok(());
        }
        if self.values.insert(value) {
            budget.charge(1)?;
        }
        if self.values.len() > self.exact_max {
            budget.charge(REGISTERS_COST)?;
            self.estimate();
        }
        Ok(())
    }

    fn estimate(&mut self) -> &mut [u8] {
        let values = std::mem::take(&mut self.values);
        let registers = self.registers.get_or_insert_with(|| vec![0; REGISTERS].into_boxed_slice());
        values.iter().for_each(|value| observe(registers, *value));
        registers
    }

    pub fn merge(&mut self, other: Self) {
        if let Some(theirs) = &other.registers {
            for (ours, theirs) in self.estimate().iter_mut().zip(theirs) {
                *ours = (*ours).max(*theirs);
            }
        }
        match &mut self.registers {
            Some(registers) => other.values.iter().for_each(|value| observe(registers, *value)),
            None => self.values.extend(other.values),
        }
        if self.values.len() > self.exact_max {
            self.estimate();
        }
    }

    pub fn to_json(&self) -> Value {
        match &self.registers {
            Some(registers) => json!({ "value": estimated_count(registers).round() as u64, "approximate": true }),
            None => json!({ "value": self.values.len(), "approximate": false }),
        }
    }
}

fn observe(registers: &mut [u8], value: ValueHash) {
    let bits = value as u64;
    let register = (bits >> COUNTED_BITS) as usize;
    let rank = ((bits << REGISTER_BITS).leading_zeros() as usize).min(COUNTED_BITS) + 1;
    registers[register] = registers[register].max(rank as u8);
}

/// Unbiased over the whole range (O. Ertl, "New cardinality estimation algorithms for HyperLogLog sketches", 2017,
/// algorithm 6).
fn estimated_count(registers: &[u8]) -> f64 {
    let mut counts = [0u32; COUNTED_BITS + 2];
    for rank in registers {
        counts[usize::from(*rank)] += 1;
    }
    let size = REGISTERS as f64;
    let mut sum = size * tau(1.0 - f64::from(counts[COUNTED_BITS + 1]) / size);
    for count in counts[1..=COUNTED_BITS].iter().rev() {
        sum = 0.5 * (sum + f64::from(*count));
    }
    sum += size * sigma(f64::from(counts[0]) / size);
    size * size / (2.0 * std::f64::consts::LN_2 * sum)
}

fn sigma(mut share: f64) -> f64 {
    if share == 1.0 {
        return f64::INFINITY;
    }
    let (mut weight, mut sum) = (1.0, share);
    loop {
        share *= share;
        let before = sum;
        sum += share * weight;
        weight += weight;
        if sum == before {
            return sum;
        }
    }
}

fn tau(mut share: f64) -> f64 {
    if share == 0.0 || share == 1.0 {
        return 0.0;
    }
    let (mut weight, mut sum) = (1.0, 1.0 - share);
    loop {
        share = share.sqrt();
        let before = sum;
        weight *= 0.5;
        sum -= (1.0 - share).powi(2) * weight;
        if sum == before {
            return sum / 3.0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn distinct(mode: CardinalityMode, range: std::ops::Range<u64>) -> Distinct {
        let (budget, mut distinct) = (Budget::new(), Distinct::new(mode));
        for number in range {
            distinct.add(hash_of_text(number.to_string().as_bytes()), &budget).expect("within the budget");
        }
        distinct
    }

    #[test]
    fn exact_up_to_the_bound_and_near_beyond_it() {
        assert_eq!(
            distinct(CardinalityMode::Auto, 0..100_000).to_json(),
            json!({"value": 100_000, "approximate": false})
        );
        for (mode, count) in [
            (CardinalityMode::Auto, 100_001),
            (CardinalityMode::Approximate, 5_000),
            (CardinalityMode::Approximate, 60_000),
        ] {
            let answer = distinct(mode, 0..count).to_json();
            assert_eq!(answer["approximate"], true);
            let value = answer["value"].as_f64().expect("a number");
            assert!((value / count as f64 - 1.0).abs() < 0.03, "{value} for {count}");
        }
        assert_eq!(distinct(CardinalityMode::Exact, 0..100_001).to_json()["value"], 100_001);
    }

    #[test]
    fn parts_merge_to_what_the_whole_would_be() {
        for (mode, count) in [
            (CardinalityMode::Auto, 3_000),
            (CardinalityMode::Approximate, 1_500),
            (CardinalityMode::Approximate, 9_000),
        ] {
            let whole = distinct(mode, 0..count).to_json();
            let (small, large) = (count / 4, count / 2);
            let mut merged = distinct(mode, 0..small);
            merged.merge(distinct(mode, large - 10..count));
            merged.merge(distinct(mode, small - 10..large));
            assert_eq!(merged.to_json(), whole);
        }
    }

    #[test]
    fn numbers_and_texts_are_different_values() {
        assert_ne!(hash_of_bits(0, 1), hash_of_bits(1, 1));
        assert_ne!(hash_of_bits(0, 1), hash_of_text(b"1"));
    }
}
