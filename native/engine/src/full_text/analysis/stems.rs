//! Stop words and stems, remembered: natural text repeats its words, and a look-up is much cheaper than the stemmer.

use std::sync::Mutex;

use tantivy::tokenizer::{Language, RawTokenizer, Stemmer, StopWordFilter, TextAnalyzer, TokenStream};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StemLanguage {
    English,
    German,
    French,
    Spanish,
    Italian,
    Portuguese,
    Dutch,
    Swedish,
    Norwegian,
    Danish,
    Finnish,
}

const LANGUAGE_COUNT: usize = 11;

impl StemLanguage {
    fn tantivy_language(self) -> Language {
        match self {
            Self::English => Language::English,
            Self::German => Language::German,
            Self::French => Language::French,
            Self::Spanish => Language::Spanish,
            Self::Italian => Language::Italian,
            Self::Portuguese => Language::Portuguese,
            Self::Dutch => Language::Dutch,
            Self::Swedish => Language::Swedish,
            Self::Norwegian => Language::Norwegian,
            Self::Danish => Language::Danish,
            Self::Finnish => Language::Finnish,
        }
    }
}

const ENTRY_COUNT: usize = 32_768;
const ENTRY_BYTES: usize = 32;

/// Half a cache line.
#[repr(align(32))]
#[derive(Clone, Copy)]
struct Entry([u8; ENTRY_BYTES]);

/// Bytes of a word and the end of its stem that fit an entry.
const KEPT_BYTES_MAX: usize = ENTRY_BYTES - 3;

/// A direct-mapped cache from word to stem. An entry is: word length (0 when empty), how many bytes of the word its stem
/// begins with, how many other bytes follow those (both 0 for a stop word), word, other bytes.
struct StemCache {
    entries: Box<[Entry]>,
    analyzer: TextAnalyzer,
}

impl StemCache {
    fn new(language: StemLanguage) -> Self {
        let language = language.tantivy_language();
        let raw = TextAnalyzer::builder(RawTokenizer::default()).dynamic();
        let stopped = match StopWordFilter::new(language) {
            Some(stop_words) => raw.filter_dynamic(stop_words),
            None => raw,
        };
        let analyzer = stopped.filter(Stemmer::new(language)).build();
        Self { entries: vec![Entry([0; ENTRY_BYTES]); ENTRY_COUNT].into_boxed_slice(), analyzer }
    }

    /// Replaces a lowercase word by its stem; false when it is a stop word.
    fn stem(&mut self, word: &mut String) -> bool {
        let length = word.len();
        if length > KEPT_BYTES_MAX {
            return stem_uncached(&mut self.analyzer, word);
        }
        let entry = &mut self.entries[hash(word.as_bytes()) as usize % ENTRY_COUNT].0;
        let ([held, same, other], bytes) = (entry.first_chunk().copied().unwrap_or_default(), &mut entry[3..]);
        let (same, other) = (usize::from(same), usize::from(other));
        if usize::from(held) == length && &bytes[..length] == word.as_bytes() {
            if same < length || other > 0 {
                word.truncate(same);
                word.push_str(std::str::from_utf8(&bytes[length..length + other]).expect("stems were stored as UTF-8"));
            }
            return same + other > 0;
        }
        bytes[..length].copy_from_slice(word.as_bytes());
        let kept = stem_uncached(&mut self.analyzer, word);
        let stem = if kept { word.as_str() } else { "" };
        let same = stem.char_indices().map(|(at, character)| at + character.len_utf8());
        let same = same.take_while(|&end| bytes[..length].starts_with(&stem.as_bytes()[..end])).last().unwrap_or(0);
        let other = &stem.as_bytes()[same..];
        if length + other.len() <= KEPT_BYTES_MAX {
            bytes[length..length + other.len()].copy_from_slice(other);
            entry[..3].copy_from_slice(&[length as u8, same as u8, other.len() as u8]);
        } else {
            entry[0] = 0;
        }
        kept
    }
}

fn stem_uncached(analyzer: &mut TextAnalyzer, word: &mut String) -> bool {
    let text = std::mem::take(word);
    let mut stream = analyzer.token_stream(&text);
    if !stream.advance() {
        return false;
    }
    word.push_str(&stream.token().text);
    !word.is_empty()
}

/// FNV-1a over eight bytes at a time; only the spread over the cache's entries matters.
fn hash(bytes: &[u8]) -> u64 {
    let mut state = 0xcbf2_9ce4_8422_2325_u64;
    let mut chunks = bytes.chunks_exact(8);
    let mix = |state: u64, chunk: u64| (state ^ chunk).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    for chunk in &mut chunks {
        state = mix(state, u64::from_le_bytes(chunk.try_into().expect("eight bytes")));
    }
    let mut last = [0u8; 8];
    last[..chunks.remainder().len()].copy_from_slice(chunks.remainder());
    state = mix(state, u64::from_le_bytes(last));
    state ^ (state >> 32)
}

static IDLE: [Mutex<Vec<StemCache>>; LANGUAGE_COUNT] = [const { Mutex::new(Vec::new()) }; LANGUAGE_COUNT];

/// The use of one cache for the length of one text. There are never more caches of one language than texts analysed at
/// once.
pub struct Stems {
    language: StemLanguage,
    cache: Option<StemCache>,
}

impl Stems {
    pub fn of(language: StemLanguage) -> Self {
        let idle = IDLE[language as usize].lock().unwrap_or_else(|poisoned| poisoned.into_inner()).pop();
        Self { language, cache: Some(idle.unwrap_or_else(|| StemCache::new(language))) }
    }

    /// Replaces a lowercase word by its stem; false when it is a stop word.
    pub fn stem(&mut self, word: &mut String) -> bool {
        self.cache.as_mut().expect("the cache is given back on drop").stem(word)
    }
}

impl Drop for Stems {
    fn drop(&mut self) {
        if let Some(cache) = self.cache.take() {
            IDLE[self.language as usize].lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push(cache);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_remembered_stem_is_the_stemmers() {
        let long = "internationalisation".repeat(3);
        let words = ["running", "happy", "the", "ski", "généralement", "bücher", "überraschungen", "日本", "a", &long];
        for language in [StemLanguage::English, StemLanguage::French, StemLanguage::German, StemLanguage::Finnish] {
            let mut cache = StemCache::new(language);
            for word in words {
                let mut expected = word.to_owned();
                let kept = stem_uncached(&mut cache.analyzer, &mut expected);
                for _ in 0..2 {
                    let mut found = word.to_owned();
                    assert_eq!(cache.stem(&mut found), kept, "{word}");
                    assert!(!kept || found == expected, "{found} for {word}");
                }
            }
        }
    }
}
