//! A position in a sorted answer, between two of its documents: where a page by cursor begins.

use crate::error::EngineError;
use crate::full_text::plan::PageCursor;
use crate::full_text::query::run::ordered::sort_values::SortValue;

/// The sort values of a document, exact: `_sort` shows them rounded to what JSON can say.
#[derive(Debug, Clone, PartialEq)]
pub struct Position {
    pub values: Vec<SortValue>,
    pub key: String,
}

/// One text for each value: its type's letter, and numbers as their bits.
pub fn encoded(values: &[SortValue]) -> String {
    let texts: Vec<String> = values.iter().map(encoded_value).collect();
    serde_json::to_string(&texts).expect("texts are JSON")
}

fn encoded_value(value: &SortValue) -> String {
    match value {
        SortValue::Number(number) => format!("n{:016x}", number.to_bits()),
        SortValue::Date(bits) => format!("d{bits}"),
        SortValue::Text(text) => format!("t{text}"),
        SortValue::Boolean(boolean) => format!("b{}", u8::from(*boolean)),
        SortValue::Missing => "m".to_owned(),
    }
}

fn decoded_value(text: &str) -> Option<SortValue> {
    let rest = text.get(1..)?;
    match text.as_bytes().first()? {
        b'n' => u64::from_str_radix(rest, 16).ok().map(|bits| SortValue::Number(f64::from_bits(bits))),
        b'd' => rest.parse().ok().map(SortValue::Date),
        b't' => Some(SortValue::Text(rest.to_owned())),
        b'b' => Some(SortValue::Boolean(rest == "1")),
        b'm' => Some(SortValue::Missing),
        _ => None,
    }
}

impl Position {
    /// Errors: `invalid_query` when the cursor is not one of `fields` values.
    pub fn parse(cursor: &PageCursor, fields: usize) -> Result<Self, EngineError> {
        let refused = || EngineError::new("invalid_query", "the cursor does not fit the sort fields");
        let texts: Vec<String> = serde_json::from_str(&cursor.position).map_err(|_| refused())?;
        let values: Option<Vec<SortValue>> = texts.iter().map(|text| decoded_value(text)).collect();
        match values {
            Some(values) if values.len() == fields => Ok(Self { values, key: cursor.key.clone() }),
            _ => Err(refused()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_survive_exactly() {
        let values = vec![
            SortValue::Number(-0.0),
            SortValue::Number(0.1 + 0.2),
            SortValue::Date(-1_234_567_890_123_456_789),
            SortValue::Text("m\"é".to_owned()),
            SortValue::Text(String::new()),
            SortValue::Boolean(true),
            SortValue::Boolean(false),
            SortValue::Missing,
        ];
        let cursor = PageCursor { position: encoded(&values), key: "k".to_owned(), before: false };
        let position = Position::parse(&cursor, values.len()).expect("a position");
        assert_eq!(format!("{:?}", position.values), format!("{values:?}"));
        assert_eq!(position.key, "k");
        assert_eq!(Position::parse(&cursor, 2).expect_err("refused").code, "invalid_query");
    }

    #[test]
    fn what_is_no_position_is_refused() {
        for text in ["", "{}", "[\"\"]", "[\"x1\"]", "[\"nzz\"]", "[1]", "[\"é\"]"] {
            let cursor = PageCursor { position: text.to_owned(), key: String::new(), before: false };
            assert!(Position::parse(&cursor, 1).is_err(), "{text}");
        }
    }
}
