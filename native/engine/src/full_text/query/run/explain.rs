//! How the scores of a page come about.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use serde::Serialize;
use serde_json::Value;
use tantivy::query::{EnableScoring, Explanation, Weight};

use crate::error::EngineError;
use crate::full_text::errors::tantivy_failed;
use crate::full_text::plan::QueryPlan;
use crate::full_text::query::compile::compile_plan::compile_plan;
use crate::full_text::query::compile::index_fields::IndexFields;
use crate::full_text::query::run::hits::Hit;
use crate::full_text::query::run::range_view::RangeView;
use crate::full_text::query::run::statistics::GlobalStatistics;

/// A score and the parts that it is made of.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Explained {
    pub value: f64,
    pub description: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<Explained>,
}

/// For each hit the tree of its score, in the order of the page.
pub fn explain_hits(views: &[RangeView], plan: &QueryPlan, hits: &[Hit]) -> Result<Vec<Explained>, EngineError> {
    let statistics = GlobalStatistics::new(views.iter().map(|view| (&view.searcher, &view.index)).collect());
    let mut weights: BTreeMap<usize, Box<dyn Weight>> = BTreeMap::new();
    let mut explained = Vec::with_capacity(hits.len());
    for hit in hits {
        let range = hit.range as usize;
        if let Entry::Vacant(entry) = weights.entry(range) {
            let for_range = statistics.for_range(range);
            let scoring = EnableScoring::enabled_from_statistics_provider(&for_range, &views[range].searcher);
            entry.insert(compile_plan(&views[range].compiling(plan), plan)?.weight(scoring).map_err(tantivy_failed)?);
        }
        let view = &views[range];
        let (segment, doc) = hit.location;
        let explanation =
            weights[&range].explain(&view.searcher.segment_readers()[segment as usize], doc).map_err(tantivy_failed)?;
        explained.push(readable(&view.index, &explanation)?);
    }
    Ok(explained)
}

fn readable(index: &IndexFields, explanation: &Explanation) -> Result<Explained, EngineError> {
    let tree = serde_json::to_value(explanation);
    Ok(from_tree(index, &tree.map_err(|error| EngineError::internal(format!("explanation: {error}")))?))
}

fn from_tree(index: &IndexFields, tree: &Value) -> Explained {
    let details = tree["details"].as_array().into_iter().flatten().map(|detail| from_tree(index, detail));
    let details: Vec<Explained> = details.collect();
    let value = tree["value"].as_f64().unwrap_or(0.0);
    let term = tree["context"].as_array().and_then(|context| term_of(index, context.first()?.as_str()?));
    let description = match tree["description"].as_str().unwrap_or_default() {
        SUM if is_greatest_of(value, &details) => "the greatest of".to_owned(),
        other => described(other, term),
    };
    Explained { value, description, details }
}

/// Tantivy says it of the greatest score of several, too.
const SUM: &str = "BooleanClause. sum of ...";

fn is_greatest_of(value: f64, details: &[Explained]) -> bool {
    let adding = details.iter().filter(|detail| detail.value > 0.0);
    adding.clone().count() > 1 && adding.map(|detail| detail.value).fold(0.0, f64::max) == value
}

fn described(description: &str, term: Option<String>) -> String {
    let words = match description {
        "TermQuery, product of..." => "product of",
        SUM => "sum of",
        "BooleanQuery with no scoring" => "matches, without a score",
        "Phrase Scorer" => "phrase",
        "Const" => "constant",
        "AllQuery" => "every document",
        "ExistsQuery" => "has a value",
        "RangeQuery" => "in the range",
        other => match other.strip_prefix("Boost x") {
            Some(boosted) => return format!("{} times", boosted.trim_end_matches(" of ...")),
            None => other,
        },
    };
    match term {
        Some(term) => format!("{term}: {words}"),
        None => words.to_owned(),
    }
}

/// `Term=Term(field=5, type=Str, "soup")` as `title:"soup"`.
fn term_of(index: &IndexFields, context: &str) -> Option<String> {
    let inner = context.strip_prefix("Term=Term(field=")?.strip_suffix(')')?;
    let (field, value) = inner.split_once(", ")?;
    let field = tantivy::schema::Field::from_field_id(field.parse().ok()?);
    if let Some(slot) = index.fields.slot_of(field).and_then(|slot| index.slots.slots.get(slot)) {
        return Some(format!("{}:{}", slot.path, value.strip_prefix("type=Str, ")?));
    }
    if field == index.fields.overflow {
        let text: String = value.strip_prefix("type=Str, ")?.to_owned();
        let (path, token) = text.trim_start_matches('"').split_once("\\0")?;
        let (_, token) = token.split_once("\\0")?;
        return Some(format!("{path}:\"{token}"));
    }
    let (path, value) = value.strip_prefix("type=Json, path=")?.split_once(", type=")?;
    Some(format!("{path}:{}", value.split_once(", ")?.1))
}

#[cfg(test)]
mod tests {
    use super::{Explained, described, is_greatest_of};

    #[test]
    fn descriptions_are_plain() {
        assert_eq!(
            described("TermQuery, product of...", Some("title:\"soup\"".to_owned())),
            "title:\"soup\": product of"
        );
        assert_eq!(described("Boost x2.5 of ...", None), "2.5 times");
        assert_eq!(described("idf", None), "idf");
    }

    #[test]
    fn the_greatest_of_several_scores_is_no_sum() {
        let scored = |value| Explained { value, description: String::new(), details: Vec::new() };
        assert!(is_greatest_of(1.0, &[scored(1.0), scored(1.0)]));
        assert!(!is_greatest_of(2.0, &[scored(1.0), scored(1.0)]));
        assert!(!is_greatest_of(1.0, &[scored(1.0), scored(0.0)]));
    }
}
