//! Random numbers for tests, the same for the same seed.

/// Xorshift of 64 bits (Marsaglia, "Xorshift RNGs", 2003). The seed must not be 0.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }
}
