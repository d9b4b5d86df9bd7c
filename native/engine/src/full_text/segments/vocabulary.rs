//! Strings of bytes by number: each is kept once.

use std::hash::{BuildHasher, RandomState};

/// Slots of the smallest table.
const SLOTS_MIN: usize = 64;

#[derive(Clone, Copy, Default)]
struct Slot {
    hash: u32,
    /// One more than the number; 0 in a free slot.
    after: u32,
}

/// A table of hashes with open addressing, at most half full.
pub struct Vocabulary {
    seed: u64,
    slots: Vec<Slot>,
    /// Where each string ends in `bytes`.
    ends: Vec<u32>,
    bytes: Vec<u8>,
}

impl Default for Vocabulary {
    fn default() -> Self {
        Self { seed: seed(), slots: Vec::new(), ends: Vec::new(), bytes: Vec::new() }
    }
}

impl Vocabulary {
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn memory_bytes(&self) -> usize {
        self.slots.capacity() * size_of::<Slot>() + self.ends.capacity() * size_of::<u32>() + self.bytes.capacity()
    }

    pub fn get(&self, number: u32) -> &[u8] {
        let at = number as usize;
        let start = if at == 0 { 0 } else { self.ends[at - 1] };
        &self.bytes[start as usize..self.ends[at] as usize]
    }

    /// The number of a string, which is the next one for a string that is new.
    pub fn number_of(&mut self, text: &[u8]) -> u32 {
        if self.ends.len() * 2 >= self.slots.len() {
            self.grow();
        }
        let hash = hash(self.seed, text);
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            let slot = self.slots[at];
            if slot.after == 0 {
                break;
            }
            if slot.hash == hash && self.get(slot.after - 1) == text {
                return slot.after - 1;
            }
            at = (at + 1) & mask;
        }
        let number = self.ends.len() as u32;
        self.bytes.extend_from_slice(text);
        self.ends.push(self.bytes.len() as u32);
        self.slots[at] = Slot { hash, after: number + 1 };
        number
    }

    fn grow(&mut self) {
        let length = (self.slots.len() * 2).max(SLOTS_MIN);
        let before = std::mem::replace(&mut self.slots, vec![Slot::default(); length]);
        for slot in before.into_iter().filter(|slot| slot.after > 0) {
            let mut at = slot.hash as usize & (length - 1);
            while self.slots[at].after > 0 {
                at = (at + 1) & (length - 1);
            }
            self.slots[at] = slot;
        }
    }

    /// All numbers in the order of their strings.
    pub fn sorted(&self) -> Vec<u32> {
        let mut order: Vec<(u128, u32)> =
            (0..self.len() as u32).map(|number| (beginning(self.get(number)), number)).collect();
        order.sort_unstable_by(|(left, left_number), (right, right_number)| {
            left.cmp(right).then_with(|| self.get(*left_number).cmp(self.get(*right_number)))
        });
        order.into_iter().map(|(_, number)| number).collect()
    }
}

/// The first sixteen bytes, as a number that is ordered as they are.
fn beginning(text: &[u8]) -> u128 {
    let mut bytes = [0; 16];
    let length = text.len().min(16);
    bytes[..length].copy_from_slice(&text[..length]);
    u128::from_be_bytes(bytes)
}

/// Where the hashes of a table begin: nobody can choose strings that share a slot.
pub fn seed() -> u64 {
    RandomState::new().hash_one(0)
}

/// Eight bytes at a time; only the spread over the slots matters.
fn hash(seed: u64, text: &[u8]) -> u32 {
    let mut chunks = text.chunks_exact(8);
    let mut state = mix(seed, text.len() as u64);
    for chunk in &mut chunks {
        state = mix(state, u64::from_le_bytes(chunk.try_into().expect("eight bytes")));
    }
    let mut last = [0; 8];
    last[..chunks.remainder().len()].copy_from_slice(chunks.remainder());
    fold(mix(state, u64::from_le_bytes(last)))
}

pub fn mix(state: u64, chunk: u64) -> u64 {
    (state.rotate_left(23) ^ chunk).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// The lower half of a mixed state depends on the lower half of its chunks alone.
pub fn fold(state: u64) -> u32 {
    ((state ^ (state >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93) >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_string_has_one_number_and_numbers_are_ordered_by_their_strings() {
        let mut vocabulary = Vocabulary::default();
        let mut texts: Vec<String> = (0..5_000).map(|at| format!("{}{at}", "word".repeat(at % 9))).collect();
        texts.extend(["".to_owned(), "\0".to_owned(), "sixteen bytes ab".to_owned(), "sixteen bytes ab\0".to_owned()]);
        let numbers: Vec<u32> = texts.iter().map(|text| vocabulary.number_of(text.as_bytes())).collect();
        assert_eq!(numbers, (0..texts.len() as u32).collect::<Vec<u32>>());
        for (text, number) in texts.iter().zip(&numbers) {
            assert_eq!(vocabulary.number_of(text.as_bytes()), *number);
            assert_eq!(vocabulary.get(*number), text.as_bytes());
        }
        texts.sort();
        let sorted: Vec<&[u8]> = vocabulary.sorted().into_iter().map(|number| vocabulary.get(number)).collect();
        assert_eq!(sorted, texts.iter().map(String::as_bytes).collect::<Vec<&[u8]>>());
    }
}
