//! The conditions of a plan.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Operator {
    #[default]
    Or,
    And,
}

/// Edits that a word may be away: given, or by its length (none up to 2 characters, one up to 5, else two).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Fuzziness {
    Edits(u8),
    Auto(Automatic),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Automatic {
    Auto,
    /// For slips of who types: none up to 4 characters, one up to 8, else two; none in fields that are switched off.
    Typo,
}

impl Default for Fuzziness {
    fn default() -> Self {
        Self::Edits(0)
    }
}

/// How a document's shape stands to the query's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ShapeRelation {
    Intersects,
    Contains,
    Within,
}

/// How the bounds of a range are read. `auto`: as numbers when they are numbers, as dates when they parse as such,
/// else as strings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RangeKind {
    #[default]
    Auto,
    Number,
    Date,
    Term,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum TermValue {
    Boolean(bool),
    Number(f64),
    Text(String),
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WeightedField {
    pub field: String,
    #[serde(default = "default_boost")]
    pub boost: f32,
}

fn default_boost() -> f32 {
    1.0
}

/// The field that a condition without one searches, where it is named all the same.
pub const ALL_FIELDS: &str = "_all";

/// A field by its name; `None` for the one of all fields.
fn named_field<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let field = Option::<String>::deserialize(deserializer)?;
    Ok(field.filter(|name| name != ALL_FIELDS))
}

/// A condition. Without `field`: all opted-in fields, or all text fields when none is opted in.
#[expect(clippy::large_enum_variant, reason = "a plan has few conditions")]
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Node {
    MatchAll {
        #[serde(default = "default_boost")]
        boost: f32,
    },
    MatchNone {},
    Match {
        #[serde(default, deserialize_with = "named_field")]
        field: Option<String>,
        text: String,
        #[serde(default)]
        operator: Operator,
        #[serde(default)]
        analyzer: Option<String>,
        #[serde(default)]
        fuzziness: Fuzziness,
        /// Characters that a near word must begin with unchanged.
        #[serde(default)]
        prefix_length: usize,
        #[serde(default = "default_boost")]
        boost: f32,
    },
    Phrase {
        #[serde(default, deserialize_with = "named_field")]
        field: Option<String>,
        text: String,
        #[serde(default)]
        slop: u32,
        #[serde(default)]
        analyzer: Option<String>,
        #[serde(default)]
        fuzziness: Fuzziness,
        /// Characters that a near word must begin with unchanged.
        #[serde(default)]
        prefix_length: usize,
        #[serde(default = "default_boost")]
        boost: f32,
    },
    Term {
        #[serde(default, deserialize_with = "named_field")]
        field: Option<String>,
        value: TermValue,
        #[serde(default = "default_boost")]
        boost: f32,
    },
    Prefix {
        #[serde(default, deserialize_with = "named_field")]
        field: Option<String>,
        value: String,
        #[serde(default = "default_boost")]
        boost: f32,
    },
    /// Tokens and whole strings near `value`.
    Fuzzy {
        #[serde(default, deserialize_with = "named_field")]
        field: Option<String>,
        value: String,
        fuzziness: Fuzziness,
        #[serde(default)]
        prefix_length: usize,
        #[serde(default = "default_boost")]
        boost: f32,
    },
    /// `*` any characters, `?` one, `\` before an ordinary one; the pattern is all of a token or whole string.
    Wildcard {
        #[serde(default, deserialize_with = "named_field")]
        field: Option<String>,
        pattern: String,
        #[serde(default = "default_boost")]
        boost: f32,
    },
    /// The expression is all of a token or whole string.
    Regexp {
        #[serde(default, deserialize_with = "named_field")]
        field: Option<String>,
        pattern: String,
        #[serde(default = "default_boost")]
        boost: f32,
    },
    /// Tokens as they are in the index, one of each position.
    TermsPhrase {
        #[serde(default, deserialize_with = "named_field")]
        field: Option<String>,
        terms: Vec<Vec<String>>,
        #[serde(default)]
        slop: u32,
        #[serde(default)]
        fuzziness: Fuzziness,
        #[serde(default = "default_boost")]
        boost: f32,
    },
    /// Whole strings that are addresses of the network.
    IpRange {
        field: String,
        cidr: String,
        #[serde(default = "default_boost")]
        boost: f32,
    },
    /// Corners are longitude and latitude, in degrees.
    GeoBox {
        field: String,
        top_left: [f64; 2],
        bottom_right: [f64; 2],
        #[serde(default = "default_boost")]
        boost: f32,
    },
    GeoDistance {
        field: String,
        center: [f64; 2],
        meters: f64,
        #[serde(default = "default_boost")]
        boost: f32,
    },
    GeoPolygon {
        field: String,
        points: Vec<[f64; 2]>,
        #[serde(default = "default_boost")]
        boost: f32,
    },
    GeoShape {
        field: String,
        geometry: Value,
        relation: ShapeRelation,
        #[serde(default = "default_boost")]
        boost: f32,
    },
    Range {
        field: String,
        #[serde(default)]
        gt: Option<Value>,
        #[serde(default)]
        gte: Option<Value>,
        #[serde(default)]
        lt: Option<Value>,
        #[serde(default)]
        lte: Option<Value>,
        #[serde(default)]
        of: RangeKind,
        #[serde(default = "default_boost")]
        boost: f32,
    },
    Ids {
        ids: Vec<String>,
        #[serde(default = "default_boost")]
        boost: f32,
    },
    BoolField {
        field: String,
        value: bool,
        #[serde(default = "default_boost")]
        boost: f32,
    },
    Bool {
        #[serde(default)]
        must: Vec<Node>,
        #[serde(default)]
        should: Vec<Node>,
        #[serde(default)]
        must_not: Vec<Node>,
        #[serde(default)]
        filter: Vec<Node>,
        /// How many of `should` must match; by default one when nothing else is required, else none.
        #[serde(default)]
        min_should: Option<usize>,
        #[serde(default = "default_boost")]
        boost: f32,
    },
    BoolPrefix {
        fields: Vec<WeightedField>,
        text: String,
        #[serde(default = "default_boost")]
        boost: f32,
    },
    Exists {
        field: String,
        #[serde(default = "default_boost")]
        boost: f32,
    },
}
