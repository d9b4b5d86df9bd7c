//! Phrases of words of all frequencies, over several segments and under filters, beside a search of every text by hand.

use std::sync::Arc;

use super::support::*;
use serde_json::{Value, json};
use sundew_engine::full_text::{DerivedIndex, Hits, TextIndex};

const SEED: u64 = 20_261_123;
const DOCUMENTS: usize = 9_000;
/// Of a hundred places in a text, how many begin with the word; `larch` stands in every two hundredth text, beside others.
const WORDS: [(&str, usize); 6] = [("alder", 40), ("birch", 25), ("cedar", 20), ("elm", 10), ("fir", 5), ("larch", 0)];
const LARCH: usize = 5;

struct Document {
    words: Vec<usize>,
    group: usize,
    is_deleted: bool,
}

struct Corpus {
    documents: Vec<Document>,
    index: Arc<TextIndex>,
}

fn random_word(random: &mut Random) -> usize {
    let mut at = random.below(100);
    let found = WORDS.iter().position(|(_, share)| {
        let is_it = at < *share;
        at = at.saturating_sub(*share);
        is_it
    });
    found.unwrap_or(0)
}

fn corpus() -> Corpus {
    println!("seed {SEED}");
    let mut random = Random::new(SEED);
    let document = |at: usize| {
        // Lengths up to 39 are kept as they are; some texts are long enough for positions of many bits.
        let length = if at.is_multiple_of(500) { 39 } else { 1 + random.below(12) };
        let mut words: Vec<usize> = (0..length).map(|_| random_word(&mut random)).collect();
        if at.is_multiple_of(200) {
            words[0] = LARCH;
        }
        Document { words, group: random.below(1_000), is_deleted: random.below(20) == 0 }
    };
    let documents: Vec<Document> = (0..DOCUMENTS).map(document).collect();
    let row = |at: usize| {
        let text: Vec<&str> = documents[at].words.iter().map(|word| WORDS[*word].0).collect();
        put(&format!("k{at:05}"), at as u32, json!({"text": text.join(" "), "group": documents[at].group}))
    };
    let index = TextIndex::open(std::path::Path::new("unused"), memory_options(json!(null))).expect("an index");
    for part in [0..6_000, 6_000..8_900, 8_900..DOCUMENTS] {
        let rows: Vec<Row> = part.clone().map(row).collect();
        index.apply(&frame(&rows, part.start as u64 + 1)).expect("applied");
        index.commit(part.end as u64).expect("a commit");
    }
    let deleted = documents.iter().enumerate().filter(|(_, document)| document.is_deleted);
    let deleted: Vec<Row> = deleted.map(|(at, _)| delete(&format!("k{at:05}"), at as u32)).collect();
    index.apply(&frame(&deleted, DOCUMENTS as u64 + 1)).expect("applied");
    index.commit((DOCUMENTS + deleted.len()) as u64).expect("a commit");
    Corpus { documents, index }
}

impl Corpus {
    /// The scores of all matches, best first. Deleted documents count among all.
    fn expected(&self, phrase: &[usize], groups: usize) -> Vec<(u32, f64)> {
        let all = self.documents.len() as f64;
        let average = self.documents.iter().map(|document| document.words.len() as f64).sum::<f64>() / all;
        let idf = |word: &usize| {
            let containing = self.documents.iter().filter(|document| document.words.contains(word)).count() as f64;
            (1.0 + (all - containing + 0.5) / (containing + 0.5)).ln()
        };
        let idf: f64 = phrase.iter().map(idf).sum();
        let score = |document: &Document| {
            let count = document.words.windows(phrase.len()).filter(|window| *window == phrase).count() as f64;
            let norm = 1.2 * (0.25 + 0.75 * document.words.len() as f64 / average);
            (count > 0.0).then(|| 2.2 * idf * count / (count + norm))
        };
        let shown = |document: &&Document| !document.is_deleted && document.group < groups;
        let scored = self.documents.iter().enumerate().filter(|(_, document)| shown(document));
        let mut scored: Vec<(u32, f64)> =
            scored.filter_map(|(at, document)| Some((at as u32, score(document)?))).collect();
        scored.sort_by(|a, b| b.1.total_cmp(&a.1));
        scored
    }

    fn ask(&self, phrase: &[usize], groups: usize, settings: Value) -> (String, Hits, usize, u64) {
        let text: Vec<&str> = phrase.iter().map(|word| WORDS[*word].0).collect();
        let mut asked = json!({"query": {"kind": "phrase", "field": "text", "text": text.join(" ")}});
        asked.as_object_mut().expect("a plan").extend(settings.as_object().expect("settings").clone());
        if groups < 1_000 {
            asked["filter"] = json!([{"kind": "range", "field": "group", "lt": groups}]);
        }
        let what = asked.to_string();
        let plan = serde_json::from_value(asked).expect("a plan");
        let found = run(&self.index, &plan);
        assert!(found.total_is_exact || !plan.exact_total, "{what}");
        (what, found, plan.limit, plan.total_exact_up_to)
    }

    fn check(&self, phrase: &[usize], groups: usize, settings: Value) {
        let (what, found, limit, exact_up_to) = self.ask(phrase, groups, settings);
        let expected = self.expected(phrase, groups);
        assert_eq!(found.hits.len(), limit.min(expected.len()), "{what}");
        let is_near = |a: f32, b: f64| (f64::from(a) - b).abs() < 2e-5 * b.max(1.0);
        for (hit, (_, score)) in found.hits.iter().zip(&expected) {
            assert!(is_near(hit.score, *score), "{what}: {} instead of {score}", hit.score);
            let of_hit = expected.iter().find(|(ordinal, _)| *ordinal == hit.ordinal);
            assert!(of_hit.is_some_and(|(_, score)| is_near(hit.score, *score)), "{what}: {hit:?} for {of_hit:?}");
        }
        let total = expected.len() as u64;
        if found.total_is_exact {
            assert_eq!(found.total, total, "{what}");
        } else {
            assert!(
                found.total <= total && (exact_up_to == 0 || total > exact_up_to),
                "{what}: {} of {total}",
                found.total
            );
        }
    }
}

#[test]
fn phrases_of_words_of_all_frequencies_are_found_and_score_as_bm25_says() {
    let corpus = corpus();
    let mut phrases: Vec<Vec<usize>> = Vec::new();
    for a in 0..WORDS.len() {
        // Also a word that follows itself.
        phrases.extend((0..WORDS.len()).map(|b| vec![a, b]));
        phrases.extend((0..WORDS.len()).map(|b| vec![a, b, (a + 2 * b) % WORDS.len()]));
    }
    phrases.extend([vec![0, 1, 0, 1], vec![0, 0, 0, 0], vec![LARCH, 0, 1, 2]]);
    for phrase in &phrases {
        // Each filter is asked several times: from the second on its bits are known.
        for groups in [1_000, 400, 20] {
            corpus.check(phrase, groups, json!({"limit": 10}));
            corpus.check(phrase, groups, json!({"limit": 3, "total_exact_up_to": 0}));
            corpus.check(phrase, groups, json!({"limit": 1, "total_exact_up_to": 40}));
            corpus.check(phrase, groups, json!({"limit": 25, "exact_total": true}));
        }
    }
}

#[test]
fn a_union_of_words_in_the_order_of_a_field_shows_every_match() {
    let corpus = corpus();
    for words in [vec![0, 1], vec![3, LARCH], vec![LARCH, 4, 2]] {
        let text: Vec<&str> = words.iter().map(|word| WORDS[*word].0).collect();
        let query = json!({"kind": "match", "field": "text", "text": text.join(" ")});
        let sort = json!([{"field": "group", "desc": true}]);
        let plan = serde_json::from_value(json!({"query": query, "sort": sort, "limit": 10_000})).expect("a plan");
        let found = run(&corpus.index, &plan);
        let documents = corpus.documents.iter().enumerate();
        let matching = documents
            .filter(|(_, document)| !document.is_deleted && words.iter().any(|word| document.words.contains(word)));
        let mut expected: Vec<(usize, u32)> = matching.map(|(at, document)| (document.group, at as u32)).collect();
        // Keys ascend with ordinals.
        expected.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
        let ordinals: Vec<u32> = found.hits.iter().map(|hit| hit.ordinal).collect();
        assert_eq!(ordinals, expected.iter().map(|(_, ordinal)| *ordinal).collect::<Vec<_>>(), "{text:?}");
        assert_eq!((found.total, found.total_is_exact), (expected.len() as u64, true), "{text:?}");
        let counted = serde_json::from_value(json!({"query": query, "limit": 0, "count_only": true})).expect("a plan");
        assert_eq!(run(&corpus.index, &counted).total, expected.len() as u64, "{text:?}");
    }
}
