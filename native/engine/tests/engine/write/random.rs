//! Random write requests against an independent reading of them, and damaged ones against crashes.

use serde_json::{Map, Value, json};
use sundew_engine::frame::{Frame, RowKind};
use sundew_engine::json::ScanLimits;
use sundew_engine::write::{FrameOptions, WriteKind, build_frame, scan_write};

/// A small deterministic generator, so that failures repeat.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % bound
    }

    fn text(&mut self) -> String {
        let parts = ["a", "key", "é", "😀", "\"", "\\", "/", " ", "\u{2028}", "_type2", "long enough for words"];
        (0..=self.below(4)).map(|_| parts[self.below(parts.len())]).collect()
    }

    fn value(&mut self, depth: usize) -> Value {
        match self.below(if depth == 0 { 4 } else { 6 }) {
            0 => json!(self.below(1 << 40)),
            1 => json!(-0.25 * self.below(1000) as f64),
            2 => json!(self.text()),
            3 => [Value::Null, Value::Bool(true), Value::Bool(false)][self.below(3)].clone(),
            4 => (0..self.below(4)).map(|_| self.value(depth - 1)).collect(),
            _ => Value::Object(self.object(depth - 1)),
        }
    }

    fn object(&mut self, depth: usize) -> Map<String, Value> {
        (0..self.below(20)).map(|_| (self.text(), self.value(depth))).collect()
    }
}

fn options() -> FrameOptions {
    FrameOptions {
        timestamp_ms: 5,
        ttl_field: Some("a.key".into()),
        key_bytes_max: 1024,
        puts_deleted: false,
        vector_indexes: Vec::new(),
        graph_indexes: Vec::new(),
    }
}

/// JSON with some characters escaped that need not be, and spaced in different ways.
fn write_json(value: &Value, random: &mut Random) -> String {
    let text = if random.below(2) == 0 { value.to_string() } else { serde_json::to_string_pretty(value).unwrap() };
    match random.below(3) {
        0 => text.replace('é', "\\u00e9").replace('😀', "\\ud83d\\ude00").replace('k', "\\u006B"),
        1 => text.replace('/', "\\/"),
        _ => text,
    }
}

#[test]
fn frames_hold_what_an_independent_parser_reads() {
    let mut random = Random(0xDA7A);
    let mut puts = 0;
    for _ in 0..2_000 {
        let inserts: Map<String, Value> = (0..random.below(6))
            .map(|_| {
                let mut document = random.object(3);
                document.remove("a");
                (random.text(), Value::Object(document))
            })
            .collect();
        let deletes: Vec<String> = (0..random.below(3)).map(|index| format!("gone {index}")).collect();
        let body = write_json(&json!({"deletes": deletes, "inserts": inserts, "extra": random.value(2)}), &mut random);
        let scanned = scan_write(body.as_bytes(), WriteKind::Batch, &ScanLimits::default()).expect(&body);
        let sent: Value = serde_json::from_str(&body).unwrap();
        let envelope: Value = serde_json::from_str(&scanned.envelope_json).unwrap();
        assert_eq!(envelope, json!({"extra": sent["extra"]}), "{body}");
        let bytes = build_frame(body.as_bytes(), &scanned.entries, &options(), None).expect(&body);
        let frame = Frame::parse(&bytes).unwrap();
        assert_eq!(frame.row_count(), inserts.len() + deletes.len());
        let mut expected = inserts.iter();
        for row in frame.rows() {
            let row = row.unwrap();
            if row.kind == RowKind::Delete {
                assert!(deletes.iter().any(|key| key == row.key));
                continue;
            }
            let (key, document) = expected.next().unwrap();
            let stored: Value = serde_json::from_slice(row.body).unwrap();
            assert_eq!((row.key, &stored), (key.as_str(), document));
            assert_eq!((row.ttl_base_ms, row.written_ms), (5, 5));
            puts += 1;
        }
    }
    assert!(puts > 3_000, "{puts}");
}

#[test]
fn damaged_requests_are_answered() {
    let mut random = Random(0xBAD);
    let sound = json!({
        "inserts": {"k\u{e9}": {"_timestamp": "2026-01-01T00:00:00Z", "a": {"key": 5}, "_type": "x"}, "b": {}},
        "deletes": ["c"], "sync_level": "write",
        "transforms": [{"key": "t", "upsert": true, "operations": [
            {"op": "$rename", "path": "$.a.b", "value": "c.d"}, {"op": "$pop", "path": "x", "value": -1}]}],
    });
    let text = sound.to_string().replace('é', "\\u00e9");
    let alphabet = b"{}[]\",:\\u0e+-.19 tn$_\x00\x80\xc3";
    let mut framed = 0;
    for _ in 0..30_000 {
        let mut bytes = text.clone().into_bytes();
        for _ in 0..=random.below(3) {
            let at = random.below(bytes.len());
            match random.below(3) {
                0 => bytes[at] = alphabet[random.below(alphabet.len())],
                1 => bytes.insert(at, alphabet[random.below(alphabet.len())]),
                _ => drop(bytes.remove(at)),
            }
        }
        for kind in [WriteKind::Batch, WriteKind::Tables, WriteKind::Merge] {
            let Ok(scanned) = scan_write(&bytes, kind, &ScanLimits::default()) else { continue };
            let shown = String::from_utf8_lossy(&bytes);
            assert!(serde_json::from_slice::<Value>(&bytes).is_ok(), "{shown}");
            match build_frame(&bytes, &scanned.entries, &options(), None) {
                Ok(frame) => {
                    for row in Frame::parse(&frame).unwrap().rows() {
                        let row = row.unwrap();
                        let is_object = serde_json::from_slice::<Map<String, Value>>(row.body).is_ok();
                        assert!(is_object || row.kind == RowKind::Delete, "{shown}");
                    }
                    framed += 1;
                }
                Err(error) => assert_ne!(error.code, "internal", "{shown}: {}", error.message),
            }
        }
    }
    assert!(framed > 1_000, "{framed}");
}

#[test]
fn entries_that_do_not_belong_to_the_bytes_are_refused() {
    let mut random = Random(7);
    for _ in 0..20_000 {
        let entries: Vec<u32> = (0..7 * random.below(4)).map(|_| random.below(40) as u32).collect();
        let built = build_frame(b"{\"inserts\":{\"k\":{\"_type\":\"x\"}}}", &entries, &options(), None);
        if let Ok(frame) = built {
            assert_eq!(Frame::parse(&frame).unwrap().row_count(), entries.len() / 7);
        }
    }
}
