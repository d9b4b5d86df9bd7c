//! The hash of a key, as segments on disk use it: it must never change under one format of the index.

use std::hash::{BuildHasherDefault, Hasher};

const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;

/// Eight bytes at a time by multiplication and rotation, mixed at the end as in SplitMix64.
pub fn hash_key(key: &[u8]) -> u64 {
    let mut hash = key.len() as u64;
    let (words, rest) = key.as_chunks::<8>();
    for word in words {
        hash = (hash.rotate_left(25) ^ u64::from_le_bytes(*word)).wrapping_mul(FACTOR);
    }
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    hash = (hash.rotate_left(25) ^ u64::from_le_bytes(last)).wrapping_mul(FACTOR);
    hash ^= hash >> 30;
    hash = hash.wrapping_mul(0xBF58_476D_1CE4_E5B9);
    hash ^ (hash >> 27)
}

/// For hash maps of keys that last as long as one call.
#[derive(Default)]
pub struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = self.0.rotate_left(5) ^ hash_key(bytes);
    }

    fn write_u8(&mut self, _: u8) {
        // Only ends a string, whose length is hashed already.
    }
}

pub type BuildKeyHasher = BuildHasherDefault<KeyHasher>;
