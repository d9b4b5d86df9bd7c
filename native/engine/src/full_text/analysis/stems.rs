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

const ENTRY_COUNT: usize = 16_384;
const ENTRY_BYTES: usize = 64;

/// One cache line.
#[repr(align(64))]
#[derive(Clone, Copy)]
struct Entry([u8; ENTRY_BYTES]);

/// Longest word and longest stem that fit an entry: two length bytes, then two equal parts.
const WORD_BYTES_MAX: usize = (ENTRY_BYTES - 2) / 2;

/// A direct-mapped cache from word to stem. An entry is: word length (0 when empty), stem length (0 for a stop word),
/// word, stem.
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
        if word.len() > WORD_BYTES_MAX {
            return stem_uncached(&mut self.analyzer, word);
        }
        let entry = &mut self.entries[hash(word.as_bytes()) as usize % ENTRY_COUNT].0;
        let length = word.len();
        if entry[0] as usize == length && &entry[2..2 + length] == word.as_bytes() {
            let stem_length = entry[1] as usize;
            let stem = &entry[2 + WORD_BYTES_MAX..2 + WORD_BYTES_MAX + stem_length];
            if stem != word.as_bytes() {
                word.clear();
                word.push_str(std::str::from_utf8(stem).expect("stems were stored as UTF-8"));
            }
            return stem_length > 0;
        }
        entry[2..2 + length].copy_from_slice(word.as_bytes());
        let kept = stem_uncached(&mut self.analyzer, word);
        let stem = if kept { word.as_bytes() } else { &[] };
        if stem.len() <= WORD_BYTES_MAX {
            entry[0] = length as u8;
            entry[1] = stem.len() as u8;
            entry[2 + WORD_BYTES_MAX..2 + WORD_BYTES_MAX + stem.len()].copy_from_slice(stem);
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

/// The use of one cache for the length of one text. Caches outlive the indexing threads, which come and go with
/// every commit; there are never more of one language than texts analysed at once.
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
