//! The documented policy for JSON in requests, row by row, and agreement with an independent parser.

use sundew_engine::json::{ScanLimits, scan_json};

fn code_of(text: impl AsRef<[u8]>) -> &'static str {
    scan_json(text.as_ref(), &ScanLimits::default()).map_or_else(|error| error.code, |()| "accepted")
}

#[test]
fn policy_table() {
    let rows: &[(&str, &str)] = &[
        (r#"{"a":1,"b":[true,false,null],"c":{"d":"e"}}"#, "accepted"),
        (" \n\t[1 , 2.50 , -0 , -0.0 , 1e3 , 1E-400 ] \r\n", "accepted"),
        ("\"text\"", "accepted"),
        ("9007199254740992", "accepted"),
        ("-9007199254740992", "accepted"),
        ("9007199254740993", "number_out_of_range"),
        ("-9007199254740993", "number_out_of_range"),
        ("123456789012345678901234567890", "number_out_of_range"),
        ("123456789012345678901234567890.0", "accepted"),
        ("1e400", "number_out_of_range"),
        ("-1.5E+999", "number_out_of_range"),
        ("1e308", "accepted"),
        ("01", "invalid_json"),
        ("-", "invalid_json"),
        ("1.", "invalid_json"),
        (".5", "invalid_json"),
        ("1e", "invalid_json"),
        ("+1", "invalid_json"),
        ("NaN", "invalid_json"),
        ("Infinity", "invalid_json"),
        (r#"{"a":1,"a":2}"#, "invalid_json"),
        (r#"{"a":1,"\u0061":2}"#, "invalid_json"),
        (r#"{"\u00e9":1,"é":2}"#, "invalid_json"),
        (r#"{"a":{"a":1},"b":{"a":1}}"#, "accepted"),
        (r#"[{"a":1},{"a":1}]"#, "accepted"),
        (r#"{"__proto__":1,"constructor":2}"#, "accepted"),
        (r#"{"a":"\u0000"}"#, "accepted"),
        (r#"{"a\u0000":1}"#, "invalid_json"),
        (r#"["\ud83d\ude00"]"#, "accepted"),
        (r#"["\ud83d"]"#, "invalid_json"),
        (r#"["\ude00"]"#, "invalid_json"),
        (r#"["\ud83d\u0041"]"#, "invalid_json"),
        (r#"["\ud83dx"]"#, "invalid_json"),
        (r#"["\x41"]"#, "invalid_json"),
        (r#"["\u12g4"]"#, "invalid_json"),
        ("[\"line\nbreak\"]", "invalid_json"),
        ("[\"\u{7f}\"]", "accepted"),
        ("", "invalid_json"),
        ("  ", "invalid_json"),
        ("{", "invalid_json"),
        ("[1", "invalid_json"),
        ("[1,]", "invalid_json"),
        ("[,1]", "invalid_json"),
        (r#"{"a":1,}"#, "invalid_json"),
        (r#"{"a"}"#, "invalid_json"),
        (r#"{a:1}"#, "invalid_json"),
        (r#"{"a":1 "b":2}"#, "invalid_json"),
        ("[1 2]", "invalid_json"),
        ("\"open", "invalid_json"),
        ("\"open\\", "invalid_json"),
        ("tru", "invalid_json"),
        ("truex", "invalid_json"),
        ("{} {}", "invalid_json"),
        ("\u{feff}{}", "invalid_json"),
    ];
    for (text, expected) in rows {
        assert_eq!(&code_of(text), expected, "{text}");
    }
    assert_eq!(code_of(b"[\"\xff\"]"), "invalid_json");
    assert_eq!(code_of(b"[\"\xed\xa0\x80\"]"), "invalid_json", "a surrogate in UTF-8");
}

#[test]
fn depth_is_bounded() {
    let nested = |depth: usize| format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
    assert_eq!(code_of(nested(64)), "accepted");
    assert_eq!(code_of(nested(65)), "json_too_deep");
    assert_eq!(code_of("[".repeat(5_000_000)), "json_too_deep");
    let objects = format!("{}1{}", r#"{"a":"#.repeat(65), "}".repeat(65));
    assert_eq!(code_of(objects), "json_too_deep");
}

#[test]
fn large_objects_are_checked_for_duplicates_in_reasonable_time() {
    let object = |names: &mut dyn Iterator<Item = String>| {
        format!("{{{}}}", names.map(|name| format!("\"{name}\":0")).collect::<Vec<_>>().join(","))
    };
    let started = std::time::Instant::now();
    // Same length, same first and last bytes: every digest is equal.
    let alike = |index: u32| format!("prefix--{index:08}--suffix");
    assert_eq!(code_of(object(&mut (0..100_000).map(alike))), "accepted");
    assert_eq!(code_of(object(&mut (0..100_000).chain([77_777]).map(alike))), "invalid_json");
    assert!(started.elapsed().as_secs() < 5, "duplicate detection is quadratic: {:?}", started.elapsed());
}

#[test]
fn member_names_are_bounded() {
    let name = "n".repeat(65_536);
    assert_eq!(code_of(format!("{{\"{name}\":1}}")), "limit_exceeded");
    assert_eq!(code_of(format!("{{\"{}\":1}}", &name[1..])), "accepted");
}

#[test]
fn messages_name_the_place() {
    let message = |text: &str| scan_json(text.as_bytes(), &ScanLimits::default()).unwrap_err().message;
    assert_eq!(message(r#"{"a":tru}"#), "in \"a\": invalid JSON at byte 5: a value is expected");
    assert_eq!(message(r#"{"a":1,"a":2}"#), "invalid JSON at byte 13: an object has two members named \"a\"");
}

/// A small deterministic generator, so that failures repeat.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % bound
    }
}

fn random_json(random: &mut Random, depth: usize, out: &mut String) {
    let scalars = [
        "0",
        "-1",
        "2.5",
        "1e3",
        "-0",
        "true",
        "false",
        "null",
        "\"\"",
        "\"a\\n\\u00e9\\ud83d\\ude00é😀\"",
        "\"long enough for the word loop\"",
    ];
    match random.below(if depth == 0 { 1 } else { 3 }) {
        0 => out.push_str(scalars[random.below(scalars.len())]),
        1 => {
            out.push('[');
            for index in 0..random.below(4) {
                out.push_str(if index == 0 { "" } else { " , " });
                random_json(random, depth - 1, out);
            }
            out.push(']');
        }
        _ => {
            out.push('{');
            for index in 0..random.below(25) {
                out.push_str(if index == 0 { "" } else { "," });
                out.push_str(&format!("\"m{index}\\t\" : "));
                random_json(random, if index > 3 { 0 } else { depth - 1 }, out);
            }
            out.push('}');
        }
    }
}

#[test]
fn agrees_with_an_independent_parser_on_random_and_damaged_text() {
    let mut random = Random(0x5EED);
    let (mut accepted, mut refused) = (0, 0);
    for _ in 0..20_000 {
        let mut text = String::new();
        random_json(&mut random, 4, &mut text);
        let mut bytes = text.into_bytes();
        for _ in 0..random.below(3) {
            let at = random.below(bytes.len());
            let alphabet = b"{}[]\",:\\u0eE+-.19 tnf\x00\x80\xc3m";
            match random.below(3) {
                0 => bytes[at] = alphabet[random.below(alphabet.len())],
                1 => bytes.insert(at, alphabet[random.below(alphabet.len())]),
                _ if bytes.len() > 1 => drop(bytes.remove(at)),
                _ => {}
            }
        }
        let reference = serde_json::from_slice::<serde_json::Value>(&bytes).is_ok();
        let shown = String::from_utf8_lossy(&bytes);
        match code_of(&bytes) {
            "accepted" => {
                assert!(reference, "accepted, but not JSON: {shown}");
                accepted += 1;
            }
            // Where we are stricter: duplicates, NUL in names, integers beyond 2^53.
            "invalid_json" if reference => assert!(
                is_stricter_on_purpose(&bytes),
                "refused, but JSON: {shown}: {:?}",
                scan_json(&bytes, &ScanLimits::default())
            ),
            "number_out_of_range" => {}
            _ => refused += 1,
        }
    }
    assert!(accepted > 5_000 && refused > 2_000, "{accepted} accepted, {refused} refused");
}

fn is_stricter_on_purpose(bytes: &[u8]) -> bool {
    let message = scan_json(bytes, &ScanLimits::default()).unwrap_err().message;
    message.contains("two members") || message.contains("member name contains")
}
