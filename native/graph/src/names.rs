//! Names as numbers, each kept once.

use crate::key_hash::hash_key;

/// Names in the order in which they came, in one piece of memory, and a hash table of them with linear probing.
#[derive(Default)]
pub struct Names {
    text: String,
    /// Where each name ends.
    ends: Vec<usize>,
    hashes: Vec<u64>,
    /// Number + 1, or 0; at most half of them are taken.
    slots: Vec<u32>,
}

impl Names {
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn get(&self, number: u32) -> &str {
        let number = number as usize;
        let start = if number == 0 { 0 } else { self.ends[number - 1] };
        &self.text[start..self.ends[number]]
    }

    /// The number of a name, which it has from now on.
    pub fn number(&mut self, name: &str) -> u32 {
        if self.ends.last().is_some() && self.get(self.ends.len() as u32 - 1) == name {
            return self.ends.len() as u32 - 1;
        }
        if self.slots.len() <= self.ends.len() * 2 {
            self.grow();
        }
        let hash = hash_key(name.as_bytes());
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        while let Some(number) = self.slots[at].checked_sub(1) {
            if self.hashes[number as usize] == hash && self.get(number) == name {
                return number;
            }
            at = (at + 1) & mask;
        }
        self.text.push_str(name);
        self.ends.push(self.text.len());
        self.hashes.push(hash);
        self.slots[at] = self.ends.len() as u32;
        self.ends.len() as u32 - 1
    }

    fn grow(&mut self) {
        let mut slots = vec![0u32; (self.slots.len() * 2).max(64)];
        let mask = slots.len() - 1;
        for (number, hash) in self.hashes.iter().enumerate() {
            let mut at = *hash as usize & mask;
            while slots[at] != 0 {
                at = (at + 1) & mask;
            }
            slots[at] = number as u32 + 1;
        }
        self.slots = slots;
    }

    /// The names in their order, and the rank of each number in it.
    pub fn sorted(&self) -> (Vec<&str>, Vec<u32>) {
        let names: Vec<&str> = (0..self.len() as u32).map(|number| self.get(number)).collect();
        let shared = shared_prefix(&names);
        // Most names are told apart by the eight bytes behind what all of them begin with.
        let mut order: Vec<(u64, u32)> =
            names.iter().map(|name| first_bytes(&name.as_bytes()[shared..])).zip(0..).collect();
        order.sort_unstable_by(|left, right| {
            left.0.cmp(&right.0).then_with(|| names[left.1 as usize].cmp(names[right.1 as usize]))
        });
        let mut ranks = vec![0; order.len()];
        for (rank, (_, number)) in order.iter().enumerate() {
            ranks[*number as usize] = rank as u32;
        }
        (order.iter().map(|(_, number)| names[*number as usize]).collect(), ranks)
    }
}

/// Bytes that all names begin with.
fn shared_prefix(names: &[&str]) -> usize {
    let Some((first, others)) = names.split_first() else { return 0 };
    others.iter().fold(first.len(), |shared, name| {
        let pairs = first.as_bytes()[..shared].iter().zip(name.as_bytes());
        pairs.take_while(|(left, right)| left == right).count()
    })
}

/// Numbers of the same order as the first eight bytes, which are equal where these are.
fn first_bytes(bytes: &[u8]) -> u64 {
    let mut first = [0; 8];
    let length = bytes.len().min(8);
    first[..length].copy_from_slice(&bytes[..length]);
    u64::from_be_bytes(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_keeps_its_number_and_sorts_as_bytes_do() {
        let mut given: Vec<String> = (0..500).map(|number| format!("node:{:03}", number * 7 % 500)).collect();
        given.extend(["node:", "node:\0", "node:0\0", "node:000000001", "node:000000000", "node:é"].map(str::to_owned));
        let mut names = Names::default();
        let numbers: Vec<u32> = given.iter().map(|name| names.number(name)).collect();
        assert_eq!(numbers, (0..given.len() as u32).collect::<Vec<_>>());
        assert!(given.iter().zip(&numbers).all(|(name, number)| names.number(name) == *number));
        let (sorted, ranks) = names.sorted();
        let mut expected: Vec<&str> = given.iter().map(String::as_str).collect();
        expected.sort_unstable();
        assert_eq!(sorted, expected);
        assert!(given.iter().zip(ranks).all(|(name, rank)| sorted[rank as usize] == name));
    }

    #[test]
    fn names_without_a_shared_beginning_sort_too() {
        let mut names = Names::default();
        for name in ["b", "", "a", "ab", "b"] {
            names.number(name);
        }
        assert_eq!(names.sorted(), (vec!["", "a", "ab", "b"], vec![3, 0, 1, 2]));
        assert_eq!(Names::default().sorted(), (vec![], vec![]));
    }
}
