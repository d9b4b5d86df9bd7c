//! Words as they stand in texts, with the token that each becomes: one look-up takes the place of the stemmer and of the
//! vocabulary.

use std::ops::Range;

use super::vocabulary::{Vocabulary, fold, mix, seed};
use crate::full_text::analysis::{StemLanguage, Stems};

/// Longer words are stemmed each time, bytes.
const WORD_BYTES_MAX: usize = 24;
const SLOTS_MIN: usize = 64;

/// A slot has one more than the place of a word, 0 when it is free, and above it bits of the word's hash, so that other
/// words are told apart without being looked at.
const PLACE_BITS: u32 = 25;
const PLACE_MASK: u32 = (1 << PLACE_BITS) - 1;

/// `Word::token` of a word that is dropped.
const DROPPED: u32 = u32::MAX;

/// Half a cache line.
#[repr(align(32))]
struct Word {
    /// Filled up with zeros, which no word contains.
    bytes: [u64; WORD_BYTES_MAX / 8],
    hash: u32,
    token: u32,
}

/// The words of one language.
pub struct KnownWords {
    pub language: StemLanguage,
    seed: u64,
    /// A power of two, at most half of them taken.
    slots: Vec<u32>,
    /// As they came: the most frequent mostly lie together.
    words: Vec<Word>,
    stem: String,
}

impl KnownWords {
    pub fn new(language: StemLanguage) -> Self {
        Self { language, seed: seed(), slots: vec![0; SLOTS_MIN], words: Vec::new(), stem: String::new() }
    }

    pub fn len(&self) -> usize {
        self.words.len()
    }

    pub fn memory_bytes(&self) -> usize {
        self.slots.len() * size_of::<u32>() + self.words.capacity() * size_of::<Word>()
    }

    /// The number that the stem of a word of `text` has in `tokens`; none for a stop word. Only what is ASCII in the word
    /// may be in uppercase.
    pub fn token_of(&mut self, text: &str, word: Range<usize>, tokens: &mut Vocabulary) -> Option<u32> {
        if word.len() > WORD_BYTES_MAX {
            return self.stemmed(&text[word], tokens);
        }
        let bytes = padded(text.as_bytes(), &word);
        let hash = fold(bytes.into_iter().fold(self.seed, mix));
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            let slot = self.slots[at];
            if slot == 0 {
                break;
            }
            if (slot ^ hash) & !PLACE_MASK == 0 {
                let known = &self.words[(slot & PLACE_MASK) as usize - 1];
                if known.bytes == bytes {
                    return (known.token != DROPPED).then_some(known.token);
                }
            }
            at = (at + 1) & mask;
        }
        let token = self.stemmed(&text[word], tokens);
        self.words.push(Word { bytes, hash, token: token.unwrap_or(DROPPED) });
        self.slots[at] = slot_of(hash, self.words.len());
        if self.words.len() * 2 >= self.slots.len() {
            self.grow();
        }
        token
    }

    fn stemmed(&mut self, word: &str, tokens: &mut Vocabulary) -> Option<u32> {
        self.stem.clear();
        self.stem.push_str(word);
        self.stem.make_ascii_lowercase();
        Stems::of(self.language).stem(&mut self.stem).then(|| tokens.number_of(self.stem.as_bytes()))
    }

    fn grow(&mut self) {
        let length = self.slots.len() * 2;
        self.slots = vec![0; length];
        for (before, word) in self.words.iter().enumerate() {
            let mut at = word.hash as usize & (length - 1);
            while self.slots[at] != 0 {
                at = (at + 1) & (length - 1);
            }
            self.slots[at] = slot_of(word.hash, before + 1);
        }
    }
}

fn slot_of(hash: u32, after_place: usize) -> u32 {
    (hash & !PLACE_MASK) | after_place as u32
}

/// A word in lowercase, filled up with zeros.
fn padded(text: &[u8], word: &Range<usize>) -> [u64; WORD_BYTES_MAX / 8] {
    let mut bytes = [0; WORD_BYTES_MAX];
    if let Some(with_what_follows) = text.get(word.start..word.start + WORD_BYTES_MAX) {
        bytes.copy_from_slice(with_what_follows);
    } else {
        bytes[..word.len()].copy_from_slice(&text[word.clone()]);
    }
    std::array::from_fn(|at| {
        let chunk = u64::from_le_bytes(bytes[at * 8..at * 8 + 8].try_into().expect("eight bytes"));
        lowercase(chunk & low_bytes(word.len().saturating_sub(at * 8)))
    })
}

/// A mask of the first `count` bytes of eight.
fn low_bytes(count: usize) -> u64 {
    if count >= 8 { u64::MAX } else { (1 << (count * 8)) - 1 }
}

/// Eight bytes, of which A to Z become a to z.
fn lowercase(bytes: u64) -> u64 {
    const EACH: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = EACH * 0x80;
    let low = bytes & !HIGH;
    let from_a = low + EACH * u64::from(0x80 - b'A');
    let above_z = low + EACH * u64::from(0x7f - b'Z');
    bytes | ((from_a & !above_z & !bytes & HIGH) >> 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_that_was_met_before_becomes_the_same_token() {
        let mut tokens = Vocabulary::default();
        let mut known = KnownWords::new(StemLanguage::English);
        let long = "internationalisation".repeat(2);
        let mut words: Vec<String> = ["the", "running", "runs", "ski", "x", &long].map(str::to_owned).into();
        words.extend((0..500).map(|at| format!("word{at}")));
        let mut token = |word: &str| known.token_of(word, 0..word.len(), &mut tokens);
        let first: Vec<Option<u32>> = words.iter().map(|word| token(word)).collect();
        assert_eq!(words.iter().map(|word| token(word)).collect::<Vec<_>>(), first);
        assert_eq!(words.iter().map(|word| token(&word.to_uppercase())).collect::<Vec<_>>(), first);
        let within = words.join(" and what follows it ");
        for (word, token) in words.iter().zip(&first) {
            let start = within.find(word.as_str()).expect("the word");
            assert_eq!(known.token_of(&within, start..start + word.len(), &mut tokens), *token, "{word}");
        }
        assert_eq!(first[0], None);
        let texts: Vec<&[u8]> = first[1..5].iter().map(|token| tokens.get(token.expect("a token"))).collect();
        assert_eq!(texts, [&b"run"[..], b"run", b"ski", b"x"]);
        assert_eq!(first[1], first[2]);
    }

    #[test]
    fn only_letters_from_a_to_z_are_changed() {
        for byte in 0..=u8::MAX {
            let expected = [byte, b'Z', byte, 0, b'a', byte, 0xc3, byte].map(|byte| byte.to_ascii_lowercase());
            let bytes = u64::from_le_bytes([byte, b'Z', byte, 0, b'a', byte, 0xc3, byte]);
            assert_eq!(lowercase(bytes).to_le_bytes(), expected, "{byte}");
        }
    }
}
