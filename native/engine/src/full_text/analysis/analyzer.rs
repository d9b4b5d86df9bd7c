//! Analyzers by name, and the tokens that each makes of a text.

use serde::{Deserialize, Serialize};
use tantivy::tokenizer::{BoxTokenStream, RawTokenizer, Tokenizer};

use super::html::strip_html;
use super::shingles;
use super::stems::StemLanguage;
use super::words::{TOKEN_BYTES_MAX, WordRules, WordStream, is_paired};

/// `standard`: Unicode words, lowercase, English stop words, Porter2 stems. `simple`: runs of letters, lowercase.
/// `keyword`: the whole text as one token. The languages are `standard` with their own stop words and stems.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Analyzer {
    Standard,
    Simple,
    Keyword,
    Html,
    Language(StemLanguage),
    /// Unicode words in lowercase: the words of a search-as-you-type field before they are joined.
    SearchAsYouType,
    Shingles2,
    Shingles3,
    IndexPrefix,
}

/// Name and analyzer; a code in a slot is a position in this list.
const ANALYZERS: [(&str, Analyzer); 18] = [
    ("standard", Analyzer::Standard),
    ("simple", Analyzer::Simple),
    ("keyword", Analyzer::Keyword),
    ("html", Analyzer::Html),
    ("german", Analyzer::Language(StemLanguage::German)),
    ("french", Analyzer::Language(StemLanguage::French)),
    ("spanish", Analyzer::Language(StemLanguage::Spanish)),
    ("italian", Analyzer::Language(StemLanguage::Italian)),
    ("portuguese", Analyzer::Language(StemLanguage::Portuguese)),
    ("dutch", Analyzer::Language(StemLanguage::Dutch)),
    ("swedish", Analyzer::Language(StemLanguage::Swedish)),
    ("norwegian", Analyzer::Language(StemLanguage::Norwegian)),
    ("danish", Analyzer::Language(StemLanguage::Danish)),
    ("finnish", Analyzer::Language(StemLanguage::Finnish)),
    ("search_as_you_type", Analyzer::SearchAsYouType),
    ("search_as_you_type_2gram", Analyzer::Shingles2),
    ("search_as_you_type_3gram", Analyzer::Shingles3),
    ("search_as_you_type_index_prefix", Analyzer::IndexPrefix),
];

impl Analyzer {
    pub fn named(name: &str) -> Option<Self> {
        let name = match name {
            "default" => "standard",
            "html_analyzer" => "html",
            other => other,
        };
        ANALYZERS.iter().find(|(known, _)| *known == name).map(|(_, analyzer)| *analyzer)
    }

    pub fn name(self) -> &'static str {
        ANALYZERS[self.code() as usize].0
    }

    pub fn code(self) -> u8 {
        let position = ANALYZERS.iter().position(|(_, analyzer)| *analyzer == self);
        position.expect("every analyzer has a name") as u8
    }

    pub fn from_code(code: u8) -> Option<Self> {
        ANALYZERS.get(code as usize).map(|(_, analyzer)| *analyzer)
    }

    /// Whether its tokens are in lowercase.
    pub fn folds_case(self) -> bool {
        self != Self::Keyword
    }

    /// The words of `text` in lowercase, and the language whose stop words are left out and whose stems become the tokens;
    /// none for an analyzer without stems.
    pub fn words_before_stems(self, text: &str) -> Option<(StemLanguage, WordStream<'_>)> {
        match self {
            Self::Standard => Some((StemLanguage::English, WordStream::new(text, WordRules::plain()))),
            Self::Language(language) => Some((language, WordStream::new(text, WordRules::plain()))),
            Self::Html => Some((StemLanguage::English, WordStream::owned(strip_html(text), WordRules::plain()))),
            _ => None,
        }
    }

    pub fn token_stream(self, text: &str) -> BoxTokenStream<'_> {
        match self {
            Self::Standard => BoxTokenStream::new(WordStream::new(text, WordRules::stemmed(StemLanguage::English))),
            Self::Simple => BoxTokenStream::new(WordStream::new(text, WordRules::letters())),
            Self::Language(language) => BoxTokenStream::new(WordStream::new(text, WordRules::stemmed(language))),
            Self::Html => {
                BoxTokenStream::new(WordStream::owned(strip_html(text), WordRules::stemmed(StemLanguage::English)))
            }
            Self::SearchAsYouType => BoxTokenStream::new(WordStream::new(text, WordRules::plain())),
            Self::Shingles2 => BoxTokenStream::new(shingles::shingles(text, 2)),
            Self::Shingles3 => BoxTokenStream::new(shingles::shingles(text, 3)),
            Self::IndexPrefix => BoxTokenStream::new(shingles::edge_prefixes(text)),
            Self::Keyword => keyword_stream(text),
        }
    }
}

fn keyword_stream(text: &str) -> BoxTokenStream<'_> {
    if text.len() > TOKEN_BYTES_MAX {
        return BoxTokenStream::new(shingles::PreparedTokens::default());
    }
    let mut tokenizer = RawTokenizer::default();
    let mut prepared = Vec::new();
    tantivy::tokenizer::TokenStream::process(&mut tokenizer.token_stream(text), &mut |token| {
        prepared.push(token.clone());
    });
    BoxTokenStream::new(shingles::PreparedTokens::new(prepared))
}

impl TryFrom<String> for Analyzer {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        Self::named(&name).ok_or_else(|| format!("unknown analyzer {name}"))
    }
}

impl From<Analyzer> for String {
    fn from(analyzer: Analyzer) -> Self {
        analyzer.name().to_owned()
    }
}

/// The character when the token is one of a script whose texts are indexed by pairs of characters.
pub fn lone_character(analyzer: Analyzer, token: &str) -> Option<char> {
    let mut characters = token.chars();
    let lone = characters.next().filter(|character| is_paired(*character) && analyzer != Analyzer::Keyword);
    lone.filter(|_| characters.next().is_none())
}
