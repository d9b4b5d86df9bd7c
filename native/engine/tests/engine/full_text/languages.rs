//! Texts of many languages are found by their words.

use super::support::*;
use serde_json::{Value, json};

/// Analyzer, a text, words that are to find it, words that are not.
const TEXTS: [(&str, &str, &[&str], &[&str]); 13] = [
    ("standard", "The runners were running quickly", &["run", "runner", "quick"], &["sprint", "the"]),
    ("german", "Die alten Häuser am Fluss wurden verkauft", &["haus", "verkauft", "alt"], &["die", "boot"]),
    ("french", "Les chevaux couraient dans les montagnes", &["cheval", "montagne", "courait"], &["les", "bateau"]),
    ("spanish", "Los gatos negros corrían por las calles", &["gato", "negra", "calle"], &["los", "barco"]),
    ("italian", "I ragazzi mangiavano le mele rosse", &["ragazzo", "mangiare", "rosso"], &["le", "barca"]),
    ("portuguese", "As meninas cantavam nas igrejas antigas", &["menina", "cantar", "igreja"], &["as", "barco"]),
    ("dutch", "De kinderen speelden in de oude huizen", &["kinderen", "spelen", "oude"], &["de", "boot"]),
    ("swedish", "Flickorna sjöng i kyrkorna på kvällarna", &["flicka", "kyrka", "kväll"], &["på", "båt"]),
    ("norwegian", "Jentene sang i kirkene om kvelden", &["jente", "kirke", "kveld"], &["om", "båt"]),
    ("danish", "Pigerne sang i kirkerne om aftenen", &["pige", "kirke", "aftenen"], &["om", "båd"]),
    ("finnish", "Lapset leikkivät taloissa iltaisin", &["talo", "talossa", "lapset"], &["vene"]),
    (
        "html",
        "<p title='hidden'>Old&nbsp;boats <!-- sails --> &amp; <b>houses</b></p>",
        &["boat", "house", "old"],
        &["hidden", "sails", "nbsp"],
    ),
    ("simple", "The runners' 42 boats", &["runners", "the", "boats"], &["42", "boat"]),
];

fn is_found(index: &std::sync::Arc<sundew_engine::full_text::TextIndex>, word: &str) -> bool {
    let with = |kind: &str| matching(index, json!({"kind": kind, "field": "t", "text": word})) == [0];
    assert_eq!(with("match"), with("phrase"), "{word}");
    with("match")
}

#[test]
fn words_of_each_analyzer() {
    for (analyzer, text, words, others) in TEXTS {
        let property = json!({"type": "string", "x-service-types": ["text"], "x-service-analyzer": analyzer});
        let schema =
            json!({"document_schemas": {"doc": {"schema": {"type": "object", "properties": {"t": property}}}}});
        let index = index_of(schema, &[json!({"t": text}), json!({"t": "xyz"})]);
        for word in words {
            assert!(is_found(&index, word), "{analyzer}: {word}");
        }
        for word in others {
            assert!(!is_found(&index, word), "{analyzer}: {word}");
        }
    }
}

#[test]
fn chinese_japanese_and_korean_without_configuration() {
    for (text, words, others) in [
        ("我们在北京的图书馆里读书。", ["北京", "图书馆", "书", "我们在北京", "读"], ["上海", "京北", "猫"]),
        (
            "黒い猫が東京タワーの上で寝ている。",
            ["猫", "東京", "タワー", "東京タワー", "寝ている"],
            ["犬", "京都", "京東"],
        ),
        (
            "고양이가 도서관에서 책을 읽는다.",
            ["고양이", "도서관", "책", "읽는다", "도서관에서"],
            ["강아지", "서도", "물"],
        ),
    ] {
        let index = index_of(Value::Null, &[json!({"t": text}), json!({"t": "nothing of it"})]);
        for word in words {
            assert!(is_found(&index, word), "{text}: {word}");
            assert_eq!(
                matching(&index, json!({"kind": "match", "text": word, "operator": "and"})),
                [0],
                "{text}: {word}"
            );
        }
        for word in others {
            let query = json!({"kind": "match", "text": word, "operator": "and"});
            assert_eq!(matching(&index, query), Vec::<u32>::new(), "{text}: {word}");
        }
        let mixed = json!({"kind": "match", "text": format!("{} nowhere", words[0]), "operator": "and"});
        assert_eq!(matching(&index, mixed), Vec::<u32>::new());
    }
}

#[test]
fn whatever_has_a_value_exists() {
    let typed = |name: &str| json!({"x-service-types": [name]});
    let schema = json!({"document_schemas": {"doc": {"schema": {"type": "object", "properties": {
        "text": typed("text"), "html": typed("html"), "word": typed("keyword"), "typing": typed("search_as_you_type"),
        "at": typed("geopoint"), "area": typed("geoshape")}}}}});
    let documents = [
        json!({"text": "the", "html": "<p>", "word": "", "typing": "a", "at": "1,2", "long": "x".repeat(300),
            "area": {"type": "Point", "coordinates": [1, 2]}, "deep": {"er": [{"n": 1}]}, "no": false}),
        json!({"other": null, "empty": [], "text": null}),
    ];
    let index = index_of(schema, &documents);
    for path in ["text", "html", "word", "typing", "at", "area", "long", "deep", "deep.er", "deep.er.n", "no"] {
        assert_eq!(matching(&index, json!({"kind": "exists", "field": path})), [0], "{path}");
    }
    for path in ["other", "empty", "nowhere", "dee"] {
        assert_eq!(matching(&index, json!({"kind": "exists", "field": path})), Vec::<u32>::new(), "{path}");
    }
}
