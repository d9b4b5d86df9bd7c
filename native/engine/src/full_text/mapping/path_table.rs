//! The paths that documents of one type have shown so far, each with what was decided for it.
//!
//! A document's member is found by comparing its name with the member that followed the last time; that is nearly
//! always the one.

use std::collections::HashMap;
use std::sync::Arc;

use super::cursor::SchemaCursor;
use super::rule::{FieldRule, GeoForm, can_be_indexed};
use super::table_mapping::TableMapping;
use super::templates::DetectedType;
use crate::full_text::analysis::Analyzer;
use crate::full_text::fields::Fields;
use crate::full_text::slots::{Slot, SlotTable};

use tantivy::schema::Field;

/// Above this many paths the table is cleared.
const PATHS_MAX: usize = 100_000;

/// Children above which a parent looks names up by hash.
const SCANNED_CHILDREN_MAX: usize = 12;

/// Where one analysed form of a path's text goes.
#[derive(Debug, Clone)]
pub struct TextTarget {
    pub field: Field,
    pub analyzer: Analyzer,
    pub path: Arc<str>,
    /// Whether a query without a field finds it.
    pub in_all: bool,
    pub is_overflow: bool,
}

/// The forms in which the strings of one path are indexed.
#[derive(Debug, Clone, Default)]
pub struct StringPlan {
    pub texts: Vec<TextTarget>,
    pub exact: bool,
    /// Of strings that have a column as a whole; none has where it is 0.
    pub kept_bytes_max: usize,
}

pub struct Node {
    pub path: Arc<str>,
    cursor: SchemaCursor,
    children: Vec<(Box<str>, u32)>,
    by_name: HashMap<Box<str>, u32>,
    /// The child that is expected next.
    hint: usize,
    /// Nothing at or below this path is indexed.
    pub is_closed: bool,
    pub geo: GeoForm,
    /// Decided at the first string.
    string_plan: Option<Arc<StringPlan>>,
    date_rule: Option<Arc<FieldRule>>,
    pub number_rule: Option<Arc<FieldRule>>,
    pub boolean_rule: Option<Arc<FieldRule>>,
}

impl Node {
    fn new(path: &str, cursor: SchemaCursor) -> Self {
        let is_closed = matches!(cursor, SchemaCursor::Closed) || !can_be_indexed(path);
        Self {
            path: Arc::from(path),
            cursor,
            children: Vec::new(),
            by_name: HashMap::new(),
            hint: 0,
            is_closed,
            geo: GeoForm::None,
            string_plan: None,
            date_rule: None,
            number_rule: None,
            boolean_rule: None,
        }
    }
}

pub const ROOT: u32 = 0;

pub struct PathTable {
    mapping: Arc<TableMapping>,
    document_type: usize,
    nodes: Vec<Node>,
}

impl PathTable {
    pub fn new(mapping: Arc<TableMapping>, document_type: usize) -> Self {
        let root = Node::new("", mapping.root_of(document_type));
        Self { mapping, document_type, nodes: vec![root] }
    }

    /// To be called between two documents.
    pub fn bound(&mut self) {
        if self.nodes.len() > PATHS_MAX {
            *self = Self::new(Arc::clone(&self.mapping), self.document_type);
        }
    }

    pub fn node(&self, node: u32) -> &Node {
        &self.nodes[node as usize]
    }

    /// The node of the member `name` below `parent`.
    pub fn child(&mut self, parent: u32, name: &str) -> u32 {
        let node = &mut self.nodes[parent as usize];
        if let Some((expected, child)) = node.children.get(node.hint)
            && **expected == *name
        {
            node.hint += 1;
            return *child;
        }
        if let Some(at) = find_child(node, name) {
            node.hint = at + 1;
            return node.children[at].1;
        }
        self.add_child(parent, name)
    }

    fn add_child(&mut self, parent: u32, name: &str) -> u32 {
        let child = self.nodes.len() as u32;
        let node = &mut self.nodes[parent as usize];
        let path = if parent == ROOT { name.to_owned() } else { format!("{}.{name}", node.path) };
        let cursor = if node.is_closed {
            SchemaCursor::Closed
        } else {
            self.mapping.child_of(&node.cursor, parent == ROOT, name)
        };
        let at = node.children.len();
        node.children.push((Box::from(name), child));
        if at >= SCANNED_CHILDREN_MAX {
            if node.by_name.is_empty() {
                node.by_name =
                    node.children.iter().enumerate().map(|(at, (name, _))| (name.clone(), at as u32)).collect();
            } else {
                node.by_name.insert(Box::from(name), at as u32);
            }
        }
        node.hint = at + 1;
        let mut added = Node::new(&path, cursor);
        if !added.is_closed {
            added.geo = self.mapping.rule_of(&added.cursor, &path, DetectedType::String).geo;
        }
        self.nodes.push(added);
        child
    }

    /// A new object begins at `node`: its first member is expected first.
    pub fn begin_object(&mut self, node: u32) {
        self.nodes[node as usize].hint = 0;
    }

    fn rule(&self, node: u32, detected: DetectedType) -> FieldRule {
        let node = &self.nodes[node as usize];
        self.mapping.rule_of(&node.cursor, &node.path, detected)
    }

    /// The rule of a string that is a date. Templates may tell such strings apart.
    pub fn date_rule(&mut self, node: u32) -> Arc<FieldRule> {
        if let Some(rule) = &self.nodes[node as usize].date_rule {
            return Arc::clone(rule);
        }
        let rule = Arc::new(self.rule(node, DetectedType::Date));
        self.nodes[node as usize].date_rule = Some(Arc::clone(&rule));
        rule
    }

    pub fn number_rule(&mut self, node: u32) -> Arc<FieldRule> {
        if let Some(rule) = &self.nodes[node as usize].number_rule {
            return Arc::clone(rule);
        }
        let rule = Arc::new(self.rule(node, DetectedType::Number));
        self.nodes[node as usize].number_rule = Some(Arc::clone(&rule));
        rule
    }

    pub fn boolean_rule(&mut self, node: u32) -> Arc<FieldRule> {
        if let Some(rule) = &self.nodes[node as usize].boolean_rule {
            return Arc::clone(rule);
        }
        let rule = Arc::new(self.rule(node, DetectedType::Boolean));
        self.nodes[node as usize].boolean_rule = Some(Arc::clone(&rule));
        rule
    }

    /// The plan of the strings of a path; takes slots for its text when it is the first of its path.
    pub fn string_plan(&mut self, node: u32, slots: &SlotTable, fields: &Fields) -> Arc<StringPlan> {
        if let Some(plan) = &self.nodes[node as usize].string_plan {
            return Arc::clone(plan);
        }
        let rule = self.rule(node, DetectedType::String);
        let path = Arc::clone(&self.nodes[node as usize].path);
        let any_in_all = self.mapping.any_in_all;
        let forms = if self.mapping.values_only { &[] } else { rule.texts.as_slice() };
        let texts = forms.iter().map(|form| {
            let primary = form.suffix.is_empty();
            let slot = Slot {
                path: format!("{path}{}", form.suffix),
                analyzer: form.analyzer,
                in_all: rule.in_all && (primary || form.suffix == super::rule::ALL),
                primary,
            };
            let is_searched = || self.mapping.facts_of(&slot.path).is_searched;
            let in_all = if any_in_all { slot.in_all || is_searched() } else { primary };
            let taken = slots.slot_for(&slot, in_all);
            TextTarget {
                field: taken.map_or(fields.overflow, |taken| fields.slots[taken]),
                analyzer: form.analyzer,
                in_all,
                path: Arc::from(slot.path),
                is_overflow: taken.is_none(),
            }
        });
        let is_kept = rule.exact || !(rule.texts.is_empty() || rule.words_only);
        let kept_bytes_max = if is_kept { rule.whole_bytes_max() } else { 0 };
        let plan = Arc::new(StringPlan { texts: texts.collect(), exact: rule.exact, kept_bytes_max });
        self.nodes[node as usize].string_plan = Some(Arc::clone(&plan));
        plan
    }
}

fn find_child(node: &Node, name: &str) -> Option<usize> {
    if node.by_name.is_empty() {
        return node.children.iter().position(|(known, _)| **known == *name);
    }
    node.by_name.get(name).map(|at| *at as usize)
}
