//! Values that matches are sorted by, comparable across segments and indexes.

use std::cmp::Ordering;

use serde_json::Value;

use crate::full_text::dates::date_text;
use crate::json::INTEGER_MAX;

/// Of different types, the earlier variant comes first; missing values come last in either direction.
#[derive(Debug, Clone, PartialEq)]
pub enum SortValue {
    Number(f64),
    Date(i64),
    Text(String),
    Boolean(bool),
    Missing,
}

impl SortValue {
    fn rank(&self) -> u8 {
        match self {
            Self::Number(_) => 0,
            Self::Date(_) => 1,
            Self::Text(_) => 2,
            Self::Boolean(_) => 3,
            Self::Missing => 4,
        }
    }

    pub fn compare(&self, other: &Self, desc: bool) -> Ordering {
        match (self, other) {
            (Self::Missing, Self::Missing) => Ordering::Equal,
            (Self::Missing, _) => Ordering::Greater,
            (_, Self::Missing) => Ordering::Less,
            _ if desc => other.ascending(self),
            _ => self.ascending(other),
        }
    }

    fn ascending(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Number(a), Self::Number(b)) => a.total_cmp(b),
            (Self::Date(a), Self::Date(b)) => a.cmp(b),
            (Self::Text(a), Self::Text(b)) => a.cmp(b),
            (Self::Boolean(a), Self::Boolean(b)) => a.cmp(b),
            _ => self.rank().cmp(&other.rank()),
        }
    }

    /// As `_sort` shows it, for clients to send back unchanged.
    pub fn to_json(&self) -> Value {
        match self {
            Self::Number(number) => shown_number(*number),
            Self::Date(bits) => Value::from(date_text(*bits)),
            Self::Text(text) => Value::from(text.as_str()),
            Self::Boolean(boolean) => Value::from(*boolean),
            Self::Missing => Value::Null,
        }
    }
}

/// A number beyond the greatest integer of a document is a text, as in `key_as_string`: many clients write such a number
/// with all of its digits, which would be an integer that no document may have.
fn shown_number(number: f64) -> Value {
    match number {
        _ if number.abs() > INTEGER_MAX as f64 => Value::from(Value::from(number).to_string()),
        _ if number.fract() == 0.0 => Value::from(number as i64),
        _ => Value::from(number),
    }
}
