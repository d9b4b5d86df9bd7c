//! Unions and intersections of words of all frequencies, over several segments and under filters of all sizes, beside
//! BM25 computed by hand.

use std::ops::Range;
use std::sync::Arc;

use super::support::*;
use serde_json::{Value, json};
use sundew_engine::full_text::{DerivedIndex, TextIndex};

const SEED: u64 = 20_261_121;

/// Words, and the documents of 10,000 that have each, where it occurs at all.
type Shares = &'static [(&'static str, usize)];

const WORDS: Shares = &[
    ("alder", 6_000),
    ("birch", 3_000),
    ("cedar", 1_000),
    ("elm", 400),
    ("fir", 350),
    ("hazel", 60),
    ("larch", 8),
    ("maple", 0),
];

/// Of which each has hundreds of blocks, or tens, in a segment of 100,000.
const WORDS_OF_MANY_BLOCKS: Shares =
    &[("ash", 2_500), ("beech", 1_500), ("cherry", 700), ("dogwood", 400), ("ebony", 350), ("fig", 90), ("gum", 80)];

struct Document {
    /// How often each word occurs.
    counts: Vec<u32>,
    length: u32,
    group: usize,
    is_deleted: bool,
}

struct Corpus {
    words: Shares,
    documents: Vec<Document>,
    index: Arc<TextIndex>,
}

/// Texts have `shortest` words or up to fourteen more. `parts` are committed one by one. One document in twenty is
/// deleted, or none.
fn corpus(words: Shares, shortest: u32, parts: &[Range<usize>], deletes: bool) -> Corpus {
    println!("seed {SEED}");
    let count = parts.last().expect("parts").end;
    let mut random = Random::new(SEED);
    // The postings of these two end and begin in the middle of a segment.
    let occurs = |word: &str, at: usize| match word {
        "birch" => at < 7_000,
        "cedar" => at >= 5_000,
        _ => true,
    };
    let documents: Vec<Document> = (0..count)
        .map(|at| {
            let mut count_of = |(word, share): &(&str, usize)| {
                let has = random.below(10_000) < *share && occurs(word, at);
                // Once, seldom twice, hardly ever four times: few documents are far better than the others.
                let more =
                    if has { [3, 5, 8].iter().take_while(|one_in| random.below(**one_in) == 0).count() } else { 0 };
                u32::from(has) + more as u32
            };
            let counts: Vec<u32> = words.iter().map(&mut count_of).collect();
            // Lengths up to 39 are kept as they are.
            let length = shortest.max(counts.iter().sum::<u32>() + 1) + random.below(15) as u32;
            Document { counts, length, group: random.below(1_000), is_deleted: random.below(20) == 0 && deletes }
        })
        .collect();
    let row = |at: usize| {
        let document = &documents[at];
        let mut text: Vec<&str> = vec!["filler"; (document.length - document.counts.iter().sum::<u32>()) as usize];
        for ((word, _), count) in words.iter().zip(&document.counts) {
            text.extend(vec![*word; *count as usize]);
        }
        put(&format!("k{at:05}"), at as u32, json!({"text": text.join(" "), "group": document.group}))
    };
    let index = TextIndex::open(std::path::Path::new("unused"), memory_options(json!(null))).expect("an index");
    for part in parts {
        let rows: Vec<Row> = part.clone().map(row).collect();
        index.apply(&frame(&rows, part.start as u64 + 1)).expect("applied");
        index.commit(part.end as u64).expect("a commit");
    }
    let deleted = documents.iter().enumerate().filter(|(_, document)| document.is_deleted);
    let deleted: Vec<Row> = deleted.map(|(at, _)| delete(&format!("k{at:05}"), at as u32)).collect();
    if deletes {
        index.apply(&frame(&deleted, count as u64 + 1)).expect("applied");
        index.commit((count + deleted.len()) as u64).expect("a commit");
    }
    assert!(index.stats().segment_count >= parts.len());
    Corpus { words, documents, index }
}

impl Corpus {
    /// The scores of all matches, best first. Deleted documents count among all.
    fn expected(&self, words: &[usize], every: bool, groups: usize) -> Vec<(u32, f64)> {
        let all = self.documents.len() as f64;
        let average = self.documents.iter().map(|document| f64::from(document.length)).sum::<f64>() / all;
        let idf = |word: &usize| {
            let containing = self.documents.iter().filter(|document| document.counts[*word] > 0).count() as f64;
            (1.0 + (all - containing + 0.5) / (containing + 0.5)).ln()
        };
        let idfs: Vec<f64> = words.iter().map(idf).collect();
        let score = |document: &Document| {
            let norm = 1.2 * (0.25 + 0.75 * f64::from(document.length) / average);
            let of_word = |(word, idf): (&usize, &f64)| {
                let count = f64::from(document.counts[*word]);
                2.2 * idf * count / (count + norm)
            };
            words.iter().zip(&idfs).map(of_word).sum::<f64>()
        };
        let has = |document: &Document, word: &usize| document.counts[*word] > 0;
        let matches = self.documents.iter().enumerate().filter(|(_, document)| {
            let mut found = words.iter().map(|word| has(document, word));
            let is_match = if every { found.all(|found| found) } else { found.any(|found| found) };
            is_match && !document.is_deleted && document.group < groups
        });
        let mut scored: Vec<(u32, f64)> = matches.map(|(at, document)| (at as u32, score(document))).collect();
        scored.sort_by(|a, b| b.1.total_cmp(&a.1));
        scored
    }

    fn check(&self, words: &[usize], every: bool, groups: usize, settings: Value) {
        let text: Vec<&str> = words.iter().map(|word| self.words[*word].0).collect();
        let operator = if every { "and" } else { "or" };
        let query = json!({"kind": "match", "field": "text", "text": text.join(" "), "operator": operator});
        let mut asked = json!({"query": query});
        let members = settings.as_object().expect("settings");
        asked.as_object_mut().expect("a plan").extend(members.clone());
        if groups < 1_000 {
            asked["filter"] = json!([{"kind": "range", "field": "group", "lt": groups}]);
        }
        let what = asked.to_string();
        let plan = serde_json::from_value(asked).expect("a plan");
        let expected = self.expected(words, every, groups);
        let found = run(&self.index, &plan);
        assert_eq!(found.hits.len(), plan.limit.min(expected.len()), "{what}");
        let is_near = |a: f32, b: f64| (f64::from(a) - b).abs() < 2e-5 * b.max(1.0);
        for (hit, (_, score)) in found.hits.iter().zip(&expected) {
            assert!(is_near(hit.score, *score), "{what}: {} instead of {score}", hit.score);
            let of_hit = expected.iter().find(|(ordinal, _)| *ordinal == hit.ordinal);
            assert!(of_hit.is_some_and(|(_, score)| is_near(hit.score, *score)), "{what}: {hit:?} for {of_hit:?}");
        }
        let mut ordinals: Vec<u32> = found.hits.iter().map(|hit| hit.ordinal).collect();
        ordinals.sort_unstable();
        ordinals.dedup();
        assert_eq!(ordinals.len(), found.hits.len(), "{what}: a document twice");
        let total = expected.len() as u64;
        if found.total_is_exact {
            assert_eq!(found.total, total, "{what}");
        } else {
            let may_end_early = plan.total_exact_up_to == 0 || total > plan.total_exact_up_to;
            assert!(found.total <= total && may_end_early, "{what}: {} of {total}", found.total);
        }
        assert!(found.total_is_exact || !plan.exact_total, "{what}");
    }
}

#[test]
fn words_of_all_frequencies_score_as_bm25_says() {
    let corpus = corpus(WORDS, 1, &[0..9_000, 9_000..11_700, 11_700..12_000], true);
    let mut sets: Vec<Vec<usize>> = (0..WORDS.len()).map(|word| vec![word]).collect();
    for a in 0..WORDS.len() {
        sets.extend((0..a).map(|b| vec![a, b]));
    }
    sets.extend([vec![0, 1, 2], vec![4, 1, 3], vec![5, 0, 2], vec![0, 1, 2, 3], vec![6, 5, 4, 3, 0]]);
    for words in &sets {
        for every in [true, false] {
            for groups in [1_000, 400, 20, 1] {
                corpus.check(words, every, groups, json!({"limit": 10}));
                corpus.check(words, every, groups, json!({"limit": 3, "total_exact_up_to": 0}));
                corpus.check(words, every, groups, json!({"limit": 1, "total_exact_up_to": 40}));
                corpus.check(words, every, groups, json!({"limit": 25, "exact_total": true}));
            }
        }
    }
}

#[test]
fn words_of_many_blocks_score_as_bm25_says() {
    let corpus = corpus(WORDS_OF_MANY_BLOCKS, 25, std::slice::from_ref(&(0..100_000)), true);
    let count = WORDS_OF_MANY_BLOCKS.len();
    for a in 0..count {
        for b in 0..a {
            let third = (0..count).rev().find(|word| ![a, b].contains(word)).expect("a third word");
            for every in [true, false] {
                for groups in [1_000, 20] {
                    for limit in [1, 2, 10] {
                        corpus.check(&[a, b], every, groups, json!({"limit": limit, "total_exact_up_to": 0}));
                    }
                    corpus.check(&[b, a, third], every, groups, json!({"limit": 10}));
                }
            }
        }
    }
}

#[test]
fn words_and_unions_score_as_bm25_says_where_nothing_is_deleted() {
    let corpora = [
        corpus(WORDS, 1, &[0..9_000, 9_000..11_700, 11_700..12_000], false),
        corpus(WORDS_OF_MANY_BLOCKS, 25, std::slice::from_ref(&(0..100_000)), false),
    ];
    for corpus in &corpora {
        for word in 0..corpus.words.len() {
            for (limit, exact) in [(1, false), (10, false), (10, true), (500, false)] {
                corpus.check(&[word], false, 1_000, json!({"limit": limit, "exact_total": exact}));
            }
            for other in 0..word {
                corpus.check(&[word, other], false, 1_000, json!({"limit": 10, "total_exact_up_to": 0}));
            }
        }
    }
}

#[test]
fn the_best_documents_of_blocks_count_only_where_they_are_shown() {
    // In every block of postings one document has the word often: those of the first segment are deleted.
    let text =
        |at: usize| json!({"text": format!("{}filler filler", "tea ".repeat(if at % 100 == 7 { 6 } else { 1 }))});
    let index = TextIndex::open(std::path::Path::new("unused"), memory_options(json!(null))).expect("an index");
    for part in [0..4_000, 4_000..4_900] {
        let rows: Vec<Row> = part.clone().map(|at| put(&format!("k{at:05}"), at as u32, text(at))).collect();
        index.apply(&frame(&rows, part.start as u64 + 1)).expect("applied");
        index.commit(part.end as u64).expect("a commit");
    }
    let deleted: Vec<Row> = (7..4_000).step_by(100).map(|at| delete(&format!("k{at:05}"), at as u32)).collect();
    index.apply(&frame(&deleted, 4_901)).expect("applied");
    index.commit(4_940).expect("a commit");
    assert_eq!(index.stats().segment_count, 2);
    let best = (4_007..4_900).step_by(100);
    let expected: Vec<u32> = best.chain(0..1).collect();
    for text in ["tea", "tea none"] {
        let query = json!({"kind": "match", "field": "text", "text": text, "operator": "or"});
        assert_eq!(page(&index, &query), expected, "{query}");
    }
}

#[test]
fn a_word_that_a_text_asks_for_twice_counts_once() {
    let documents: Vec<Value> = (0..50).map(|at| json!({"text": format!("tea{}", " milk".repeat(at))})).collect();
    let index = index_of(Value::Null, &documents);
    let scores = |text: &str| -> Vec<(u32, f32)> {
        let query = json!({"kind": "match", "field": "text", "text": text});
        let plan = serde_json::from_value(json!({"query": query, "limit": 10})).expect("a plan");
        run(&index, &plan).hits.iter().map(|hit| (hit.ordinal, hit.score)).collect()
    };
    assert_eq!(scores("tea").len(), 10);
    assert_eq!(scores("tea tea"), scores("tea"));
    assert_eq!(scores("milk tea milk"), scores("milk tea"));
}

/// The ordinals of the page.
fn page(index: &Arc<TextIndex>, query: &Value) -> Vec<u32> {
    let plan = serde_json::from_value(json!({"query": query, "limit": 10, "total_exact_up_to": 0})).expect("a plan");
    run(index, &plan).hits.iter().map(|hit| hit.ordinal).collect()
}

#[test]
fn a_union_ends_where_a_word_that_only_adds_ends_early() {
    // Behind the frequent word's last document the bound of the rare one's long texts is below the most that it adds.
    let documents: Vec<Value> = (0..10_000)
        .map(|at| {
            let frequent = if at < 2_500 { "basil" } else { "filler" };
            let rare = if at % 20 == 0 { "dill" } else { "filler" };
            let fillers = "filler ".repeat(if at < 2_500 { 98 } else { 198 });
            json!({"text": format!("{frequent} {rare} {fillers}")})
        })
        .collect();
    let index = index_of(Value::Null, &documents);
    let query = json!({"kind": "match", "field": "text", "text": "basil dill", "operator": "or"});
    let plan = json!({"query": query, "limit": 10, "total_exact_up_to": 0, "timeout_ms": 10_000});
    let found = run(&index, &serde_json::from_value(plan).expect("a plan"));
    let ordinals: Vec<u32> = found.hits.iter().map(|hit| hit.ordinal).collect();
    assert_eq!(ordinals.len(), 10);
    assert!(ordinals.iter().all(|ordinal| *ordinal < 2_500 && ordinal % 20 == 0), "{ordinals:?}");
}

#[test]
fn no_match_is_hidden_by_a_segment_whose_texts_have_another_length() {
    // By the average length of the first segment, 10, five words with the phrase once score more than fourteen with it
    // twice; by that of both, 20, they score less, and a block of the short ones before has better matches than these.
    let text = |phrases: usize, length: usize| json!({"text": "herb tea ".repeat(phrases) + &"filler ".repeat(length - 2 * phrases)});
    let of_length = |at: usize| match at {
        0..128 => text(1, 4),
        128..2_560 if at % 128 == 77 => text(2, 14),
        128..2_560 => text(1, 5),
        2_560..5_120 => text(0, 15),
        _ => text(0, 30),
    };
    let index = TextIndex::open(std::path::Path::new("unused"), memory_options(json!(null))).expect("an index");
    for part in [0..5_120, 5_120..10_240] {
        let rows: Vec<Row> = part.clone().map(|at| put(&format!("k{at:05}"), at as u32, of_length(at))).collect();
        index.apply(&frame(&rows, part.start as u64 + 1)).expect("applied");
        index.commit(part.end as u64).expect("a commit");
    }
    assert_eq!(index.stats().segment_count, 2);
    let twice: Vec<u32> = (128..2_560).filter(|at| at % 128 == 77).take(10).collect();
    let words =
        |text: &str, operator: &str| json!({"kind": "match", "field": "text", "text": text, "operator": operator});
    let string = json!({"kind": "term", "field": "tag", "value": "none"});
    for query in [
        words("herb", "or"),
        words("herb tea", "or"),
        words("herb tea", "and"),
        words("herb none", "or"),
        json!({"kind": "phrase", "field": "text", "text": "herb tea"}),
        json!({"kind": "bool", "should": [words("herb", "or"), string]}),
    ] {
        assert_eq!(page(&index, &query), twice, "{query}");
    }
}

#[test]
fn words_of_a_path_without_norms_are_skipped_by_their_frequencies_alone() {
    let paths: serde_json::Map<String, Value> = (0..80).map(|at| (format!("p{at}"), json!("tofu"))).collect();
    let mut documents = vec![Value::Object(paths)];
    // Those that have the words more often lie behind a block of those that have them once.
    documents.extend((1..600).map(|at| match at {
        300..310 => json!({"p79": "miso miso soup soup soup"}),
        _ => json!({"p79": "miso soup"}),
    }));
    let index = index_of(Value::Null, &documents);
    for (operator, text) in [("or", "miso"), ("or", "miso soup"), ("and", "miso soup")] {
        let query = json!({"kind": "match", "field": "p79", "text": text, "operator": operator});
        assert_eq!(page(&index, &query), (300..310).collect::<Vec<u32>>(), "{query}");
    }
    let words = json!({"kind": "match", "field": "p79", "text": "miso"});
    let with_string =
        json!({"kind": "bool", "should": [words, json!({"kind": "term", "field": "p79", "value": "none"})]});
    assert_eq!(page(&index, &with_string), (300..310).collect::<Vec<u32>>());
}

#[test]
fn whole_strings_that_tie_come_by_key() {
    let rows: Vec<Row> = (0..600)
        .map(|at| put(&format!("k{:03}", 600 - at), at as u32, json!({"tag": "tea", "colour": "green"})))
        .collect();
    let index = TextIndex::open(std::path::Path::new("unused"), memory_options(json!(null))).expect("an index");
    index.apply(&frame(&rows, 1)).expect("applied");
    index.commit(600).expect("a commit");
    let tag = json!({"kind": "term", "field": "tag", "value": "tea"});
    let colour = json!({"kind": "term", "field": "colour", "value": "green"});
    let any = json!({"kind": "bool", "should": [tag, colour]});
    for query in [tag, any] {
        assert_eq!(page(&index, &query), (590..600).rev().collect::<Vec<u32>>(), "{query}");
    }
}
