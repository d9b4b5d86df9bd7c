//! The shape of one transform of a write request: `{key, operations: [{op, path, value}], upsert}`.

use std::ops::Range;

use super::server_members::{is_kept_by_server, kept_by_server, shape};
use crate::error::EngineError;
use crate::json::{RawString, ScanLimits, Scanner, decode_string, shorten};

pub(crate) struct ScannedTransform {
    pub key: RawString,
    /// Where the `operations` array lies.
    pub operations: Range<usize>,
    pub upsert: bool,
}

/// Reads the transform at the cursor. `index` is its position in the request, for messages.
pub(crate) fn scan_transform(
    scanner: &mut Scanner<'_>,
    limits: &ScanLimits,
    index: usize,
) -> Result<ScannedTransform, EngineError> {
    let refuse = |what: &str| shape(format!("\"transforms[{index}]\"{what}"));
    if scanner.peek() != Some(b'{') {
        scanner.value(0)?;
        return Err(refuse(" must be an object"));
    }
    let mut key = None;
    let mut operations = None;
    let mut upsert = false;
    scanner.restart_member_count(limits.members_max);
    let mut object = scanner.open_object(0)?;
    while let Some(name) = scanner.next_member(&mut object)? {
        match &*scanner.decode(name) {
            "key" if scanner.peek() == Some(b'"') => key = Some(scanner.string()?),
            "key" => return Err(refuse(": \"key\" must be a string")),
            "operations" if scanner.peek() == Some(b'[') => {
                let start = scanner.position();
                scan_operations(scanner, limits, index)?;
                operations = Some(start..scanner.position());
            }
            "operations" => return Err(refuse(": \"operations\" must be an array")),
            "upsert" => {
                upsert = match scanner.peek() {
                    Some(b't') => true,
                    Some(b'f' | b'n') => false,
                    _ => return Err(refuse(": \"upsert\" must be a boolean")),
                };
                scanner.value(0)?;
            }
            _ => scanner.value(0)?,
        }
    }
    scanner.restart_member_count(u32::MAX);
    let key = key.ok_or_else(|| refuse(" has no \"key\""))?;
    let operations = operations.ok_or_else(|| refuse(" has no \"operations\""))?;
    if operations.len() > limits.document_bytes_max as usize {
        let message = format!(
            "\"transforms[{index}].operations\" has {} bytes; the limit is {}",
            operations.len(),
            limits.document_bytes_max
        );
        return Err(EngineError::new("limit_exceeded", message));
    }
    Ok(ScannedTransform { key, operations, upsert })
}

fn scan_operations(scanner: &mut Scanner<'_>, limits: &ScanLimits, index: usize) -> Result<(), EngineError> {
    let mut is_first = scanner.open_array(0)?;
    let mut number = 0;
    while scanner.next_element(&mut is_first)? {
        scan_operation(scanner, limits, &format!("transforms[{index}].operations[{number}]"))?;
        number += 1;
    }
    Ok(())
}

fn scan_operation(scanner: &mut Scanner<'_>, limits: &ScanLimits, at: &str) -> Result<(), EngineError> {
    if scanner.peek() != Some(b'{') {
        scanner.value(0)?;
        return Err(shape(format!("\"{at}\" must be an object")));
    }
    let mut op = None;
    let mut path = None;
    let mut value = None;
    let mut object = scanner.open_object(0)?;
    while let Some(name) = scanner.next_member(&mut object)? {
        match &*scanner.decode(name) {
            member @ ("op" | "path") => {
                if scanner.peek() != Some(b'"') {
                    scanner.value(0)?;
                    return Err(shape(format!("\"{at}.{member}\" must be a string")));
                }
                let text = scanner.string()?;
                let text = scanner.decode(text).into_owned();
                *(if member == "op" { &mut op } else { &mut path }) = Some(text);
            }
            "value" => {
                let start = scanner.position();
                // The value becomes part of a document, at least one level below its top.
                scanner.value(1)?;
                value = Some(start..scanner.position());
            }
            _ => scanner.value(0)?,
        }
    }
    let op = op.ok_or_else(|| shape(format!("\"{at}\" has no \"op\"")))?;
    let path = path.ok_or_else(|| shape(format!("\"{at}\" has no \"path\"")))?;
    check_path(&path, limits, &format!("{at}.path"))?;
    check_value(scanner, &op, value, limits, at)
}

fn check_value(
    scanner: &Scanner<'_>,
    op: &str,
    value: Option<Range<usize>>,
    limits: &ScanLimits,
    at: &str,
) -> Result<(), EngineError> {
    let text = value.map(|range| &scanner.text()[range]);
    let first = text.and_then(|text| text.first()).copied();
    match op {
        "$unset" | "$currentDate" => Ok(()),
        "$set" | "$push" | "$addToSet" | "$pull" => {
            first.map(drop).ok_or_else(|| shape(format!("\"{at}\": {op} needs a \"value\"")))
        }
        "$inc" | "$mul" | "$min" | "$max" => match first {
            Some(b'-' | b'0'..=b'9') => Ok(()),
            _ => Err(shape(format!("\"{at}.value\": {op} needs a number"))),
        },
        "$pop" => match text {
            Some(b"1" | b"-1") => Ok(()),
            _ => Err(shape(format!("\"{at}.value\": $pop needs 1 (the last element) or -1 (the first)"))),
        },
        "$rename" => {
            let Some(text) = text.filter(|_| first == Some(b'"')) else {
                return Err(shape(format!("\"{at}.value\": $rename needs a string")));
            };
            let target = decode_string(&text[1..text.len() - 1], true);
            check_path(&target, limits, &format!("{at}.value"))
        }
        _ => Err(shape(format!(
            "\"{at}.op\": {:?} is not one of $set, $unset, $inc, $mul, $min, $max, $push, $addToSet, $pull, $pop, \
             $currentDate, $rename",
            shorten(op)
        ))),
    }
}

/// `$.a.b` or `a.b`.
fn check_path(path: &str, limits: &ScanLimits, at: &str) -> Result<(), EngineError> {
    let segments = path.strip_prefix("$.").unwrap_or(path);
    let mut count = 0;
    for segment in segments.split('.') {
        count += 1;
        if segment.is_empty() || segment.contains('\0') || (count == 1 && segment == "$") {
            return Err(shape(format!("\"{at}\" must be a path such as \"$.a.b\" or \"a.b\"")));
        }
        if count == 1 && segment == "_embeddings" {
            return Err(shape(format!("\"{at}\": transforms leave vectors alone; write them with \"inserts\"")));
        }
        if count == 1 && is_kept_by_server(segment) {
            return Err(shape(format!("\"{at}\": {}", kept_by_server(segment))));
        }
        if count == 1 && segment == "_edges" {
            return Err(shape(format!("\"{at}\": transforms leave edges alone; write them with \"inserts\"")));
        }
    }
    if count > limits.path_segments_max {
        let message = format!("\"{at}\" has {count} segments; the limit is {}", limits.path_segments_max);
        return Err(shape(message));
    }
    Ok(())
}
