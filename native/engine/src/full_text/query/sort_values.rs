//! Values that matches are sorted by, comparable across segments and indexes.

use std::cmp::Ordering;

use serde_json::Value;
use tantivy::DateTime;

use crate::full_text::dates::format_date;

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

    pub fn to_json(&self) -> Value {
        match self {
            Self::Number(number) if number.fract() == 0.0 && number.abs() < 9e15 => Value::from(*number as i64),
            Self::Number(number) => Value::from(*number),
            Self::Date(nanoseconds) => Value::from(format_date(DateTime::from_timestamp_nanos(*nanoseconds))),
            Self::Text(text) => Value::from(text.as_str()),
            Self::Boolean(boolean) => Value::from(*boolean),
            Self::Missing => Value::Null,
        }
    }
}
