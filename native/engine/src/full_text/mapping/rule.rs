//! The rule by which the values of one path are indexed.

use crate::full_text::analysis::Analyzer;
use crate::full_text::fields::RESERVED;

/// Longer strings have no whole value, neither in a term nor in a column, bytes; where they are declared whole values they
/// may be longer.
pub const WHOLE_BYTES_MAX: usize = 256;
pub const KEYWORD_BYTES_MAX: usize = 8_192;

/// Longer paths are not indexed, bytes.
pub const PATH_BYTES_MAX: usize = 1024;

/// Whether terms and columns can be of the path: it is short enough and has none of the characters that they are told apart by.
pub fn can_be_indexed(path: &str) -> bool {
    path.len() <= PATH_BYTES_MAX && !path.contains(['\0', '\u{1}']) && !path.starts_with(RESERVED)
}

/// Names of the derived fields of a path: the suffix that queries name them by, `""` for the path itself.
pub const TWO_GRAM: &str = "._2gram";
pub const THREE_GRAM: &str = "._3gram";
pub const INDEX_PREFIX: &str = "._index_prefix";
/// The text of an exact-only path that is opted in to queries without a field.
pub const ALL: &str = "._all";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextForm {
    pub suffix: &'static str,
    pub analyzer: Analyzer,
}

/// The form of geo values that a path is declared to hold. Undeclared objects with `lat` and `lon` are geo points by themselves.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum GeoForm {
    #[default]
    None,
    Points,
    Shapes,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FieldRule {
    /// Analysed forms of a string.
    pub texts: Vec<TextForm>,
    /// The whole string as one value, for `term`, sorting and aggregations.
    pub exact: bool,
    /// `exact` is declared.
    pub is_keyword: bool,
    /// A string that is a date becomes one (and nothing else, when the type was only inferred).
    pub date: bool,
    pub number: bool,
    pub boolean: bool,
    pub geo: GeoForm,
    /// Strings have no column either: nothing orders by them.
    pub words_only: bool,
    /// Its words are never taken to be misspelt.
    pub typo_off: bool,
    /// Searched by a query that names no field, when any field of the table says so.
    pub in_all: bool,
}

impl FieldRule {
    /// Not indexed.
    pub fn none() -> Self {
        Self::default()
    }

    /// Whether anything of a value is.
    pub fn is_indexed(&self) -> bool {
        let has_values = self.exact || self.date || self.number || self.boolean;
        has_values || !self.texts.is_empty() || self.geo != GeoForm::None
    }

    /// Whether strings are indexed, and the literals of what is no string where that has no value of its own.
    pub fn holds_text(&self) -> bool {
        self.exact || !self.texts.is_empty()
    }

    /// Of strings with a whole value.
    pub fn whole_bytes_max(&self) -> usize {
        if self.is_keyword { KEYWORD_BYTES_MAX } else { WHOLE_BYTES_MAX }
    }

    /// A value whose type nobody declared.
    pub fn inferred() -> Self {
        Self {
            texts: vec![TextForm { suffix: "", analyzer: Analyzer::Standard }],
            exact: true,
            is_keyword: false,
            date: true,
            number: true,
            boolean: true,
            geo: GeoForm::None,
            in_all: false,
            words_only: false,
            typo_off: false,
        }
    }

    /// The words of strings, and nothing else of any value.
    pub fn without_values(self) -> Self {
        Self { words_only: true, exact: false, is_keyword: false, date: false, number: false, boolean: false, ..self }
    }

    /// By the values of `x-service-types` (or one `mapping.type` of a dynamic template). Unknown and impossible
    /// combinations are passed over: the schema was checked when it was created.
    pub fn typed<'a>(types: impl Iterator<Item = &'a str>, analyzer: Option<Analyzer>) -> Self {
        let mut rule = Self::none();
        let mut primary = None;
        let mut as_you_type = false;
        for name in types {
            match name {
                "text" => primary = primary.or(Some(analyzer.unwrap_or(Analyzer::Standard))),
                "html" => primary = primary.or(Some(Analyzer::Html)),
                "keyword" | "link" => (rule.exact, rule.is_keyword) = (true, true),
                "search_as_you_type" => as_you_type = true,
                "numeric" => rule.number = true,
                "boolean" => rule.boolean = true,
                "datetime" => rule.date = true,
                "geopoint" => rule.geo = GeoForm::Points,
                "geoshape" => rule.geo = GeoForm::Shapes,
                _ => {}
            }
        }
        if as_you_type {
            primary = primary.or(Some(analyzer.unwrap_or(Analyzer::Standard)));
        }
        rule.texts.extend(primary.map(|analyzer| TextForm { suffix: "", analyzer }));
        if as_you_type {
            rule.texts.extend([
                TextForm { suffix: TWO_GRAM, analyzer: Analyzer::Shingles2 },
                TextForm { suffix: THREE_GRAM, analyzer: Analyzer::Shingles3 },
                TextForm { suffix: INDEX_PREFIX, analyzer: Analyzer::IndexPrefix },
            ]);
        }
        rule
    }

    pub fn opted_in_to_all(mut self, in_all: bool) -> Self {
        self.in_all = in_all;
        if in_all && self.texts.is_empty() && self.exact {
            self.texts.push(TextForm { suffix: ALL, analyzer: Analyzer::Standard });
        }
        self
    }
}

/// `title.keyword` names the whole strings of `title`.
pub const KEYWORD_SUFFIX: &str = ".keyword";

pub const DERIVED_SUFFIXES: [&str; 4] = [TWO_GRAM, THREE_GRAM, INDEX_PREFIX, ALL];
