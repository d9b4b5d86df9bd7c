//! Reads a stored body once, member by member, into a segment that is being built; nothing in between is made of it.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::frame::Row;
use crate::full_text::analysis::Analyzer;
use crate::full_text::dates::{date_of, parse_date};
use crate::full_text::documents::geo_values::{points_of, shape_of};
use crate::full_text::fields::Fields;
use crate::full_text::mapping::{GeoForm, PathTable, TIMESTAMP, TableMapping, TextTarget};
use crate::full_text::segments::{DocumentHead, Scalar, SegmentBuilder};
use crate::full_text::slots::SlotTable;

/// Turns rows into documents, and remembers the paths that it met.
pub struct DocumentReader {
    mapping: Arc<TableMapping>,
    fields: Arc<Fields>,
    slots: Arc<SlotTable>,
    /// One for each document type, and one for documents of none.
    tables: Vec<PathTable>,
}

impl DocumentReader {
    pub fn new(mapping: Arc<TableMapping>, fields: Arc<Fields>, slots: Arc<SlotTable>) -> Self {
        let tables = (0..=mapping.type_count()).map(|at| PathTable::new(Arc::clone(&mapping), at)).collect();
        Self { mapping, fields, slots, tables }
    }

    /// Adds a document to `segment`, or leaves it out; the reason is one sentence, for the report.
    pub fn read(&mut self, row: &Row<'_>, segment: &mut SegmentBuilder) -> Result<(), String> {
        let body = std::str::from_utf8(row.body).map_err(|error| format!("the body is not UTF-8: {error}"))?;
        let document_type = self.type_of(body);
        let table = &mut self.tables[document_type];
        table.bound();
        let head = DocumentHead { ordinal: row.ordinal, sequence: row.sequence, ttl_base_ms: row.ttl_base_ms };
        segment.begin_document(head, row.key);
        let mut target = Target { table, slots: &self.slots, fields: &self.fields, segment };
        let mut json = serde_json::Deserializer::from_str(body);
        let root = Member { target: &mut target, node: crate::full_text::mapping::ROOT };
        let outcome = root.deserialize(&mut json).and_then(|()| json.end());
        if row.written_ms > 0 {
            target.take_written(row.written_ms);
        }
        outcome.map_err(|error| {
            segment.forget_document();
            error.to_string()
        })
    }

    fn type_of(&self, body: &str) -> usize {
        if self.mapping.type_count() == 0 {
            return 0;
        }
        if !body.contains("\"_type\"") {
            return self.mapping.type_of(None);
        }
        let mut json = serde_json::Deserializer::from_str(body);
        let named = json.deserialize_map(TypeMember).unwrap_or(None);
        self.mapping.type_of(named.as_deref())
    }
}

/// Finds the string member `_type` at the top level.
struct TypeMember;

impl<'de> Visitor<'de> for TypeMember {
    type Value = Option<Cow<'de, str>>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a document")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
        let mut found = None;
        while let Some(name) = members.next_key::<Name<'de>>()? {
            if name.0 == "_type" {
                found = members.next_value::<serde_json::Value>()?.as_str().map(|name| Cow::Owned(name.to_owned()));
            } else {
                members.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }
}

/// A member's name, borrowed from the body where it has no escapes.
struct Name<'de>(Cow<'de, str>);

impl<'de> serde::Deserialize<'de> for Name<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NameVisitor;
        impl<'de> Visitor<'de> for NameVisitor {
            type Value = Name<'de>;
            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a member name")
            }
            fn visit_borrowed_str<E>(self, name: &'de str) -> Result<Self::Value, E> {
                Ok(Name(Cow::Borrowed(name)))
            }
            fn visit_str<E>(self, name: &str) -> Result<Self::Value, E> {
                Ok(Name(Cow::Owned(name.to_owned())))
            }
        }
        deserializer.deserialize_str(NameVisitor)
    }
}

struct Target<'t> {
    table: &'t mut PathTable,
    slots: &'t SlotTable,
    fields: &'t Fields,
    segment: &'t mut SegmentBuilder,
}

impl Target<'_> {
    fn push(&mut self, node: u32, scalar: Scalar) {
        self.segment.values.push(&self.table.node(node).path, scalar);
    }

    /// The time of the write is a member of every document; it stands beside the bodies that do not say it.
    fn take_written(&mut self, milliseconds: u64) {
        let node = self.table.child(crate::full_text::mapping::ROOT, TIMESTAMP);
        self.push(node, Scalar::Date(date_of(i128::from(milliseconds) * 1_000_000)));
    }

    fn take_string(&mut self, node: u32, text: &str) {
        if self.table.node(node).is_closed {
            return;
        }
        if let Some(date) = parse_date(text)
            && self.table.date_rule(node).date
        {
            return self.push(node, Scalar::Date(date));
        }
        self.take_text(node, text);
    }

    /// A string that is not a date, or the literal of a number or boolean whose path is declared to hold text.
    fn take_text(&mut self, node: u32, text: &str) {
        let plan = self.table.string_plan(node, self.slots, self.fields);
        let is_kept = plan.kept_bytes_max > 0;
        if plan.texts.is_empty() && !is_kept {
            return;
        }
        for target in &plan.texts {
            if target.is_overflow {
                self.take_overflow(target, text);
            } else {
                self.segment.add_text(target.field, target.analyzer, text);
            }
        }
        if is_kept && text.len() <= plan.kept_bytes_max {
            let span = self.segment.values.keep(text);
            self.push(node, if plan.exact { Scalar::Text(span) } else { Scalar::ColumnOnly(span) });
        } else {
            self.segment.values.push_present(&self.table.node(node).path);
        }
    }

    /// Tokens of a path beyond the slots: once under the path, once for queries without a field.
    fn take_overflow(&mut self, target: &TextTarget, text: &str) {
        self.segment.add_overflow(&overflow_prefix(&target.path, target.analyzer), target.analyzer, text);
        if target.in_all {
            self.segment.add_overflow(&overflow_all_prefix(target.analyzer), target.analyzer, text);
        }
    }

    fn take_number(&mut self, node: u32, scalar: Scalar, literal: impl FnOnce() -> String) {
        if self.table.node(node).is_closed {
            return;
        }
        let rule = self.table.number_rule(node);
        if rule.number {
            self.push(node, scalar);
        } else if rule.holds_text() {
            self.take_text(node, &literal());
        }
    }

    fn take_boolean(&mut self, node: u32, boolean: bool) {
        if self.table.node(node).is_closed {
            return;
        }
        let rule = self.table.boolean_rule(node);
        if rule.boolean {
            self.push(node, Scalar::Boolean(boolean));
        } else if rule.holds_text() {
            self.take_text(node, if boolean { "true" } else { "false" });
        }
    }

    /// A value that is declared to hold points or shapes. What is neither is passed over.
    fn take_geo(&mut self, node: u32, value: &serde_json::Value) {
        if self.table.node(node).geo == GeoForm::Points {
            let (lat, lon) = (self.table.child(node, "lat"), self.table.child(node, "lon"));
            for point in points_of(value) {
                self.push(lat, Scalar::Float(point.lat));
                self.push(lon, Scalar::Float(point.lon));
            }
            return;
        }
        let shapes = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
        for shape in shapes.iter().filter(|shape| shape_of(shape).is_some()) {
            let span = self.segment.values.keep(&shape.to_string());
            self.push(node, Scalar::ColumnOnly(span));
        }
    }
}

/// The beginning of the tokens of `path` by one analyzer in the overflow field.
pub fn overflow_prefix(path: &str, analyzer: Analyzer) -> String {
    format!("{path}\0{}\0", analyzer.name())
}

/// The beginning of the tokens of all overflow paths of one analyzer. No path begins with a zero character.
pub fn overflow_all_prefix(analyzer: Analyzer) -> String {
    format!("\0{}\0", analyzer.name())
}

/// The value of one member, or of one element of an array at that member.
struct Member<'a, 't> {
    target: &'a mut Target<'t>,
    node: u32,
}

impl<'de> DeserializeSeed<'de> for Member<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        if self.target.table.node(self.node).is_closed {
            return serde::Deserialize::deserialize(deserializer).map(|IgnoredAny| ());
        }
        if self.target.table.node(self.node).geo != GeoForm::None {
            let value: serde_json::Value = serde::Deserialize::deserialize(deserializer)?;
            self.target.take_geo(self.node, &value);
            return Ok(());
        }
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Member<'_, '_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, boolean: bool) -> Result<(), E> {
        self.target.take_boolean(self.node, boolean);
        Ok(())
    }

    fn visit_i64<E>(self, number: i64) -> Result<(), E> {
        self.target.take_number(self.node, Scalar::Integer(number), || number.to_string());
        Ok(())
    }

    fn visit_u64<E>(self, number: u64) -> Result<(), E> {
        let scalar = i64::try_from(number).map_or(Scalar::Float(number as f64), Scalar::Integer);
        self.target.take_number(self.node, scalar, || number.to_string());
        Ok(())
    }

    fn visit_f64<E>(self, number: f64) -> Result<(), E> {
        // A zero with a sign is the same number as the other one, but columns would hold it below.
        let number = number + 0.0;
        self.target.take_number(self.node, Scalar::Float(number), || number.to_string());
        Ok(())
    }

    fn visit_str<E>(self, text: &str) -> Result<(), E> {
        self.target.take_string(self.node, text);
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<(), A::Error> {
        while elements.next_element_seed(Member { target: self.target, node: self.node })?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        self.target.table.begin_object(self.node);
        while let Some(name) = members.next_key::<Name<'de>>()? {
            let node = self.target.table.child(self.node, &name.0);
            members.next_value_seed(Member { target: self.target, node })?;
        }
        Ok(())
    }
}
