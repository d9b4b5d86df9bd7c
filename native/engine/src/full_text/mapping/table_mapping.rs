//! The mapping of one table: its document types and dynamic templates.

use std::sync::Arc;

use serde_json::Value;

use super::cursor::SchemaCursor;
use super::exact_types::ExactTypes;
use super::path_facts::{ExactPath, HeldKinds, KnownPaths, PathFacts};
use super::property::any_in_all;
use super::rule::{ALL, DERIVED_SUFFIXES, FieldRule, GeoForm, KEYWORD_SUFFIX, WHOLE_BYTES_MAX, can_be_indexed};
use super::templates::{DetectedType, Template};
use crate::full_text::analysis::Analyzer;
use crate::full_text::fields::KEY;

/// The member that says when a document was written.
pub const TIMESTAMP: &str = "_timestamp";
/// The member that names a document's type.
pub const TYPE: &str = "_type";
/// The member that holds the texts of a document's artifacts, by their names; only the server adds it.
const ARTIFACTS: &str = "_artifacts";
const ARTIFACT_PATHS: &str = "_artifacts.";

#[derive(Debug)]
struct DocumentType {
    name: String,
    root: SchemaCursor,
}

#[derive(Debug)]
pub struct TableMapping {
    types: Vec<DocumentType>,
    default_type: Option<usize>,
    templates: Vec<Template>,
    enforced: bool,
    /// Some field is opted in, so a query without a field searches only such.
    pub any_in_all: bool,
    /// Strings are kept whole, and none is cut into words: the table's text index was dropped, but its filters are not.
    pub values_only: bool,
    /// A query without a field searches the texts of artifacts alone; what a document says itself is found by its fields.
    searches_artifacts: bool,
    known_paths: KnownPaths,
}

impl TableMapping {
    /// From the wire form of a table's schema; anything but an object means no schema.
    pub fn from_schema(schema: &Value) -> Self {
        let types: Vec<DocumentType> = schema["document_schemas"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(name, entry)| DocumentType { name: name.clone(), root: SchemaCursor::root(&entry["schema"]) })
            .collect();
        let templates = Template::list(&schema["dynamic_templates"]);
        let named_default = schema["default_type"].as_str();
        let default_type = match named_default {
            Some(name) => types.iter().position(|document_type| document_type.name == name),
            None if types.len() == 1 => Some(0),
            None => None,
        };
        let searches_artifacts = schema["searches_artifacts"] == Value::Bool(true);
        let opts_in = || any_in_all(&schema["document_schemas"]) || templates.iter().any(Template::in_all);
        Self {
            any_in_all: searches_artifacts || opts_in(),
            types,
            default_type,
            templates,
            enforced: schema["enforce_types"] == Value::Bool(true),
            values_only: schema["values_only"] == Value::Bool(true),
            searches_artifacts,
            known_paths: KnownPaths::default(),
        }
    }

    /// The member whose texts alone are searched by a query without a field; `None` for those of the whole document.
    pub fn searched_member(&self) -> Option<&'static str> {
        self.searches_artifacts.then_some(ARTIFACTS)
    }

    /// Number of document types; documents of none of them are counted as one more.
    pub fn type_count(&self) -> usize {
        self.types.len()
    }

    /// The type of a document by its `_type` member: a position, `type_count` for none.
    pub fn type_of(&self, named: Option<&str>) -> usize {
        let chosen = match named {
            Some(name) => self.types.iter().position(|document_type| document_type.name == name),
            None => self.default_type,
        };
        chosen.unwrap_or(self.types.len())
    }

    pub fn root_of(&self, document_type: usize) -> SchemaCursor {
        self.types.get(document_type).map_or(SchemaCursor::Dynamic, |document_type| document_type.root.clone())
    }

    pub fn child_of(&self, parent: &SchemaCursor, is_root: bool, name: &str) -> SchemaCursor {
        if is_root && name.starts_with('_') {
            return if is_of_server(name) { SchemaCursor::Dynamic } else { SchemaCursor::Closed };
        }
        parent.child(name, self.enforced)
    }

    pub fn rule_of(&self, cursor: &SchemaCursor, path: &str, detected: DetectedType) -> FieldRule {
        match path {
            TIMESTAMP => return FieldRule { date: true, ..FieldRule::none() },
            TYPE => return FieldRule { exact: true, ..FieldRule::none() },
            // Their names are the server's: no template of a user's is for them.
            _ if path.starts_with(ARTIFACT_PATHS) => {
                return if self.values_only {
                    FieldRule::none()
                } else {
                    FieldRule::inferred().opted_in_to_all(self.any_in_all)
                };
            }
            _ => {}
        }
        let rule = cursor.rule().unwrap_or_else(|| {
            let template = self.templates.iter().find(|template| template.applies(path, detected));
            template.map_or_else(FieldRule::inferred, |template| template.rule().clone())
        });
        FieldRule { in_all: rule.in_all && !self.searches_artifacts, ..rule }
    }

    /// Members that the server adds are never declared.
    fn is_left_out(&self, path: &str) -> bool {
        let is_left_out = |document_type: usize| {
            let (mut cursor, mut rest) = (self.root_of(document_type), Some(path));
            while let Some(names) = rest {
                if cursor.is_switched_off() {
                    return true;
                }
                let name = first_name(&cursor, names);
                cursor = self.child_of(&cursor, names.len() == path.len(), name);
                rest = names.get(name.len() + 1..);
            }
            cursor.is_left_out()
        };
        !path.starts_with('_') && !self.types.is_empty() && (0..self.types.len()).all(is_left_out)
    }

    /// The rules of strings at `path` in documents of each type, and whether the type declares the path. Documents of
    /// no type exist only where types are not enforced.
    fn rules_by_type(&self, path: &str) -> Vec<(FieldRule, bool)> {
        let untyped = if self.enforced && !self.types.is_empty() { 0 } else { 1 };
        let rule = |document_type| self.rule_of_type(document_type, path, DetectedType::String);
        (0..self.types.len() + untyped).map(rule).collect()
    }

    fn rule_of_type(&self, document_type: usize, path: &str, detected: DetectedType) -> (FieldRule, bool) {
        let mut cursor = self.root_of(document_type);
        let mut rest = Some(path);
        while let Some(names) = rest {
            let name = first_name(&cursor, names);
            cursor = self.child_of(&cursor, names.len() == path.len(), name);
            rest = names.get(name.len() + 1..);
        }
        let is_declared = matches!(cursor, SchemaCursor::Declared { .. });
        (self.rule_of(&cursor, path, detected), is_declared)
    }

    /// The facts about `path`, which may name a derived field.
    pub fn facts_of(&self, path: &str) -> Arc<PathFacts> {
        self.known_paths.of(path, || self.find_facts(path))
    }

    fn find_facts(&self, path: &str) -> PathFacts {
        let rules = self.exact_rules(path);
        let is_exact = |path: &str| self.exact_rules(path).iter().any(|rule| rule.exact);
        let base = path.strip_suffix(KEYWORD_SUFFIX);
        let exact_paths = [Some(path), base].into_iter().flatten().filter(|path| is_exact(path));
        let exact_paths: Vec<ExactPath> = exact_paths
            .filter_map(|path| self.exact_path(path, |document_type| self.has_whole(document_type, path)))
            .collect();
        let keeps_dates = |path: &str, document_type| {
            self.has_whole(document_type, path) && !self.rule_of_type(document_type, path, DetectedType::Date).0.date
        };
        let date_texts = exact_paths
            .iter()
            .filter_map(|exact| self.exact_path(&exact.path, |document_type| keeps_dates(&exact.path, document_type)));
        let date_texts = date_texts.collect();
        let whole = exact_paths.iter().flat_map(|exact| self.exact_rules(&exact.path)).filter(|rule| rule.exact);
        let whole_bytes_max = whole.map(|rule| rule.whole_bytes_max()).min().unwrap_or(WHOLE_BYTES_MAX);
        let has_words = rules.iter().any(|rule| !rule.texts.is_empty());
        let analyzers = self.analyzers_of(path);
        let has_own_words = |rule: &FieldRule| rule.texts.iter().any(|form| form.suffix.is_empty());
        let is_exact_only = !self.is_derived(path)
            && self.rules_by_type(path).iter().any(|(rule, _)| rule.exact && !has_own_words(rule));
        let has_values = rules.iter().any(|rule| rule.number || rule.date || rule.boolean);
        let are_texts = |detected, is_value: fn(&FieldRule) -> bool| {
            let rule = |document_type| self.rule_of_type(document_type, path, detected).0;
            !rules.is_empty() && (0..rules.len()).map(rule).all(|rule| rule.holds_text() && !is_value(&rule))
        };
        PathFacts {
            numbers_are_texts: are_texts(DetectedType::Number, |rule| rule.number),
            booleans_are_texts: are_texts(DetectedType::Boolean, |rule| rule.boolean),
            whole_bytes_max,
            may_lack_words: self.values_only || analyzers.is_empty() || is_exact_only,
            analyzers,
            is_searched: self.is_searched(path),
            is_left_out: self.is_left_out(path),
            is_never_indexed: is_never_indexed(path),
            has_only_text: has_words && !has_values && exact_paths.is_empty(),
            holds: self.held_kinds(path, &rules),
            may_lack_values: rules.iter().any(|rule| rule.words_only),
            may_have_words: has_words || rules.is_empty(),
            allows_typo: self.allows_typo(path),
            exact_paths,
            date_texts,
        }
    }

    /// The rules of the whole strings of `path`. A declaration stands for documents of no type too: what
    /// one type declares to be text only has no exact form, unless another type gives it one.
    fn exact_rules(&self, path: &str) -> Vec<FieldRule> {
        if self.is_derived(path) {
            return Vec::new();
        }
        let mut rules = self.rules_by_type(path);
        if rules.iter().any(|(_, is_declared)| *is_declared) {
            rules.truncate(self.types.len());
        }
        rules.into_iter().map(|(rule, _)| rule).collect()
    }

    /// `rules`: those of its whole strings. Of the values of an object, a derived path and the key they say nothing.
    fn held_kinds(&self, path: &str, rules: &[FieldRule]) -> HeldKinds {
        if !rules.iter().any(FieldRule::is_indexed) {
            return HeldKinds::ALL;
        }
        let some_type = |detected, is_held: fn(&FieldRule) -> bool| {
            (0..rules.len()).any(|document_type| is_held(&self.rule_of_type(document_type, path, detected).0))
        };
        // Undeclared points are objects, of which no rule speaks: where no types are named they may be there.
        let may_be_point = |document_type| {
            let (rule, is_declared) = self.rule_of_type(document_type, path, DetectedType::String);
            let is_inferred = rule.exact && rule.number && rule.date && rule.boolean;
            rule.geo == GeoForm::Points || !is_declared || is_inferred || !rule.is_indexed()
        };
        HeldKinds {
            strings: some_type(DetectedType::String, |rule| rule.exact),
            numbers: some_type(DetectedType::Number, |rule| rule.number),
            dates: some_type(DetectedType::Date, |rule| rule.date),
            booleans: some_type(DetectedType::Boolean, |rule| rule.boolean),
            points: (0..rules.len()).any(may_be_point),
        }
    }

    fn has_whole(&self, document_type: usize, path: &str) -> bool {
        self.rule_of_type(document_type, path, DetectedType::String).0.exact
    }

    /// `path` as the whole strings of the types that `is_exact` says; `None` where that is none of them.
    fn exact_path(&self, path: &str, is_exact: impl Fn(usize) -> bool) -> Option<ExactPath> {
        let declared = self.types.iter().enumerate();
        let types = ExactTypes {
            by_name: declared.map(|(at, document_type)| (document_type.name.clone(), is_exact(at))).collect(),
            of_others: is_exact(self.types.len()),
            of_unnamed: is_exact(self.type_of(None)),
        };
        let path = path.to_owned();
        match types.agreed() {
            Some(false) => None,
            Some(true) => Some(ExactPath { path, types: None }),
            None => Some(ExactPath { path, types: Some(Arc::new(types)) }),
        }
    }

    /// `path` may name the text of a path of whole strings that is opted in.
    fn is_searched(&self, path: &str) -> bool {
        let opts_in = |base: &str, suffix: &str| {
            let rules = self.rules_by_type(base);
            rules.iter().any(|(rule, _)| rule.in_all && rule.texts.iter().any(|form| form.suffix == suffix))
        };
        if self.any_in_all {
            return opts_in(path, "") || path.strip_suffix(ALL).is_some_and(|base| opts_in(base, ALL));
        }
        DERIVED_SUFFIXES.iter().all(|suffix| !path.ends_with(suffix))
    }

    fn allows_typo(&self, path: &str) -> bool {
        let base = DERIVED_SUFFIXES.iter().find_map(|suffix| path.strip_suffix(suffix)).unwrap_or(path);
        self.rules_by_type(base).iter().all(|(rule, _)| !rule.typo_off)
    }

    /// Whether `path` names a derived field that its base has, such as `title._2gram`.
    fn is_derived(&self, path: &str) -> bool {
        DERIVED_SUFFIXES.iter().any(|suffix| {
            let rules = path.strip_suffix(suffix).map(|base| self.rules_by_type(base)).unwrap_or_default();
            rules.iter().any(|(rule, _)| rule.texts.iter().any(|form| form.suffix == *suffix))
        })
    }

    fn analyzers_of(&self, path: &str) -> Vec<Analyzer> {
        let mut analyzers = Vec::new();
        let mut collect = |base: &str, suffix: &str| {
            for (rule, _) in self.rules_by_type(base) {
                for form in rule.texts.iter().filter(|form| form.suffix == suffix) {
                    if !analyzers.contains(&form.analyzer) {
                        analyzers.push(form.analyzer);
                    }
                }
            }
        };
        collect(path, "");
        for suffix in DERIVED_SUFFIXES {
            if let Some(base) = path.strip_suffix(suffix) {
                collect(base, suffix);
            }
        }
        analyzers
    }
}

/// The first of the names that a path is made of: the longest that is declared with dots of its own, or what stands
/// before the first dot.
fn first_name<'p>(parent: &SchemaCursor, names: &'p str) -> &'p str {
    let Some(first_dot) = names.find('.') else { return names };
    let later_dots = names.rmatch_indices('.').map(|(at, _)| at).take_while(|at| *at > first_dot);
    let ends = std::iter::once(names.len()).chain(later_dots);
    ends.map(|end| &names[..end]).find(|name| parent.declares(name)).unwrap_or(&names[..first_dot])
}

/// Top members beginning with an underscore are left to the server; these are the ones that documents are indexed by.
fn is_of_server(name: &str) -> bool {
    matches!(name, TIMESTAMP | TYPE | ARTIFACTS)
}

fn is_never_indexed(path: &str) -> bool {
    let first = path.split('.').next().unwrap_or(path);
    let is_known = path == KEY || is_of_server(first) || !path.starts_with('_');
    !is_known || !can_be_indexed(path)
}
