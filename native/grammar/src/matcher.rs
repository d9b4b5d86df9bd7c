//! One output, held to a grammar.

use std::sync::Arc;

use llguidance::TokenParser;
use llguidance::api::{StopReason, TopLevelGrammar};
use sundew_base::error::EngineError;

use crate::gbnf::{read_gbnf, refusal};
use crate::lark::{LARK_RULES_MAX, lark_of};
use crate::vocabulary::Vocabulary;

/// About twice what grammars of the most rules were seen to take.
const STACK_BYTES: usize = LARK_RULES_MAX * 6 * 1024;

/// Follows one output token by token. Every call does a bounded amount of work.
pub struct Matcher {
    vocabulary: Arc<Vocabulary>,
    parser: TokenParser,
    /// Control tokens that count as their text.
    shown: Vec<u32>,
}

impl Matcher {
    /// Errors: `unsupported_response_format` where the grammar cannot be read, nothing satisfies it, or it is too
    /// ambiguous to be followed.
    pub fn new(vocabulary: Arc<Vocabulary>, gbnf: &str, shown: Vec<u32>) -> Result<Self, EngineError> {
        let grammar = TopLevelGrammar::from_lark(lark_of(&read_gbnf(gbnf)?)?);
        let parser = on_deep_stack(|| {
            let mut parser = vocabulary.factory.create_parser(grammar).ok()?;
            parser.start_without_prompt();
            Some(parser)
        });
        let parser = parser.ok_or_else(|| refusal("it is too large, or no text satisfies it".to_owned()))?;
        let mut matcher = Self { vocabulary, parser, shown };
        // A grammar that is too ambiguous is found out before anything is generated.
        matcher.refused()?;
        Ok(matcher)
    }

    /// Whether the token may come next.
    ///
    /// Errors: `unsupported_response_format` where finding out takes too much work.
    pub fn accepts(&mut self, token: u32) -> Result<bool, EngineError> {
        if self.vocabulary.ends.contains(&token) {
            return Ok(self.parser.stopped() || self.parser.is_accepting());
        }
        if self.parser.stopped() || !self.is_text(token) {
            return Ok(false);
        }
        let valid = self.parser.validate_tokens_raw(&[token]).map_err(|_| too_ambiguous())?;
        Ok(valid == 1)
    }

    /// Goes on behind a token that `accepts` has allowed; ends change nothing.
    ///
    /// Errors: as `accepts`.
    pub fn commit(&mut self, token: u32) -> Result<(), EngineError> {
        if self.vocabulary.ends.contains(&token) {
            return Ok(());
        }
        self.parser.consume_token(token).and_then(|_| self.parser.check_stop()).map_err(|_| too_ambiguous())?;
        Ok(())
    }

    /// Goes on behind a text; false where the grammar does not allow it, after which nothing more may be asked.
    ///
    /// Errors: as `accepts`.
    pub fn commit_text(&mut self, text: &str) -> Result<bool, EngineError> {
        for token in self.vocabulary.env.tokenize_bytes(text.as_bytes()) {
            if !self.accepts(token)? {
                return Ok(false);
            }
            self.commit(token)?;
        }
        Ok(true)
    }

    /// All tokens that may not come next, ascending.
    ///
    /// Errors: as `accepts`.
    pub fn refused(&mut self) -> Result<Vec<u32>, EngineError> {
        let size = self.vocabulary.env.tok_trie().vocab_size() as u32;
        if self.parser.stopped() {
            return Ok((0..size).filter(|token| !self.vocabulary.ends.contains(token)).collect());
        }
        let Ok(mask) = self.parser.compute_mask() else {
            // No token spells what the grammar wants here.
            let stuck = self.parser.stop_reason() == StopReason::NoExtensionBias;
            return if stuck { Ok((0..size).collect()) } else { Err(too_ambiguous()) };
        };
        Ok((0..size).filter(|&token| !mask.is_allowed(token) || !self.is_text(token)).collect())
    }

    fn is_text(&self, token: u32) -> bool {
        self.vocabulary.control.binary_search(&token).is_err()
            || self.shown.contains(&token)
            || self.vocabulary.ends.contains(&token)
    }
}

/// Runs work that calls itself for each rule within another. Pages of the stack that it does not reach take no memory.
fn on_deep_stack<T: Send>(work: impl FnOnce() -> Option<T> + Send) -> Option<T> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, work).ok()?;
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn too_ambiguous() -> EngineError {
    refusal("it is too ambiguous: following it takes too much work for each token".to_owned())
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::Matcher;
    use crate::vocabulary::{Vocabulary, VocabularyParts};

    const END: u32 = 256;

    /// A token for each byte, an end, a control token `<call>`, and longer tokens.
    fn vocabulary(longer: &[&str]) -> std::sync::Arc<Vocabulary> {
        let mut words: Vec<Vec<u8>> = (0..=255).map(|byte| vec![byte]).collect();
        words.push(Vec::new());
        words.push(b"<call>".to_vec());
        words.extend(longer.iter().map(|word| word.as_bytes().to_vec()));
        let lengths: Vec<u32> = words.iter().map(|word| word.len() as u32).collect();
        let parts =
            VocabularyParts { bytes: &words.concat(), lengths: &lengths, ends: vec![END], control: vec![END + 1] };
        Vocabulary::new(parts).unwrap()
    }

    fn accepts(gbnf: &str, text: &str) -> bool {
        let mut matcher = Matcher::new(vocabulary(&[]), gbnf, Vec::new()).unwrap();
        matcher.commit_text(text).unwrap() && matcher.accepts(END).unwrap()
    }

    fn refusal(gbnf: &str) -> String {
        Matcher::new(vocabulary(&[]), gbnf, Vec::new()).err().expect("a refusal").message
    }

    #[test]
    fn texts_of_a_grammar_are_accepted_and_no_others() {
        let cases: &[(&str, &[&str], &[&str])] = &[
            ("root ::= \"a\" [b-d]+ | \"x\"?", &["ab", "abcd", "x", ""], &["a", "ae", "xx"]),
            ("root ::= (\"a\" | \"ab\") \"b\"", &["ab", "abb"], &["a", "abbb"]),
            ("root ::= [a-z]* \"foo\"", &["foo", "foofoo", "xfoo"], &["fo", "foox"]),
            ("root ::= root \"a\" | \"b\"", &["b", "baa"], &["", "a"]),
            ("root ::= \"(\" root? \")\"", &["()", "((()))"], &["(", "())"]),
            ("root ::= [^\"\\\\]{2,3}", &["ab", "\u{e9}\u{1f33b}", "ab\n"], &["a", "a\"", "abcd"]),
            ("root ::= \"a\"{2} | \"b\"{0,0} \"c\"{2,}", &["aa", "cc", "cccc"], &["a", "c", "bcc"]),
            ("root ::= . # any\n  | a\n\na ::= \"\\x41\\u00e9\\U0001F33B\"", &["q", "A\u{e9}\u{1f33b}"], &["qq"]),
            ("root ::= a\na ::= b\nb ::= \"x\" | a \"y\"", &["x", "xyy"], &["y"]),
        ];
        for (gbnf, good, bad) in cases {
            for text in *good {
                assert!(accepts(gbnf, text), "{gbnf} accepts {text:?}");
            }
            for text in *bad {
                assert!(!accepts(gbnf, text), "{gbnf} does not accept {text:?}");
            }
        }
    }

    #[test]
    fn a_token_counts_with_all_its_bytes_and_a_control_token_only_where_it_is_shown() {
        let known = vocabulary(&["ab", "abc", "\u{e9}"]);
        let mut matcher = Matcher::new(known.clone(), "root ::= \"ab\" \"\u{e9}\"? | \"<call>\"", vec![]).unwrap();
        assert!(matcher.accepts(END + 2).unwrap());
        assert!(!matcher.accepts(END + 3).unwrap());
        assert!(!matcher.accepts(END + 1).unwrap());
        let refused = matcher.refused().unwrap();
        assert!(!refused.contains(&(END + 2)) && refused.contains(&(END + 1)) && refused.contains(&END));
        matcher.commit(END + 2).unwrap();
        assert!(matcher.accepts(END).unwrap() && matcher.accepts(END + 4).unwrap());
        let mut shown = Matcher::new(known, "root ::= \"<call>\"", vec![END + 1]).unwrap();
        assert!(shown.accepts(END + 1).unwrap());
        shown.commit(END + 1).unwrap();
        assert_eq!(shown.refused().unwrap().len(), END as usize + 4);
    }

    #[test]
    fn ambiguity_costs_little_or_is_refused_by_name() {
        let names: Vec<String> = (0..40).map(|at| format!("r{at}")).collect();
        let rules: Vec<String> = names.iter().map(|name| format!("{name} ::= [a-z]")).collect();
        let alike = format!("root ::= {}?\n{}", names.join("? "), rules.join("\n"));
        let nested = "root ::= a{0,200}\na ::= b{0,200}\nb ::= [a-z]";
        let thrice = "root ::= x*\nx ::= [a-z] | [a-y] | [a-x]";
        for gbnf in [alike.as_str(), nested, thrice] {
            let long = "a".repeat(24);
            let known = vocabulary(&[&long, &long[..16], &long[..8]]);
            let start = Instant::now();
            let outcome = Matcher::new(known, gbnf, Vec::new()).and_then(|mut matcher| {
                matcher.commit_text(&long)?;
                matcher.refused()
            });
            // Parsers that do not merge equal parses need hours.
            assert!(start.elapsed() < Duration::from_secs(20), "{gbnf}");
            if let Err(error) = outcome {
                assert!(error.message.contains("too ambiguous"), "{}", error.message);
            }
        }
    }

    #[test]
    fn what_cannot_be_read_is_refused_with_its_position() {
        for (gbnf, reason) in [
            ("root ::= \"a\" b", "uses the rule \"b\""),
            ("a ::= \"x\"", "no rule \"root\""),
            ("", "no rule \"root\""),
            ("root ::= \"a", "a text is not closed at line 1, column 10"),
            ("root ::= (\"a\"", "a parenthesis is not closed"),
            ("root ::= \"a\")", "closed that is not open"),
            ("root ::= [a-z", "class of characters is not closed"),
            ("root ::= [z-a]", "a range of characters ends before it begins"),
            ("root ::= \"\\q\"", "unknown escape"),
            ("root ::= \"a\"{5,2}", "a repetition ends before it begins"),
            ("root ::= \"a\"{99999999999999999999}", "a repetition is longer than 2000"),
            ("root ::= \"a\"{x}", "repetition is not"),
            ("root ::= *", "nothing to repeat"),
            ("root ::= \"a\"\n\n  <[5]>", "unexpected '<' at line 3, column 3"),
            ("root ::= \"\0\"", "not closed"),
            ("root", "unexpected 'r'"),
        ] {
            assert!(refusal(gbnf).contains(reason), "{gbnf}: {}", refusal(gbnf));
        }
        assert!(refusal(&format!("root ::= {}", "(".repeat(100_000))).contains("more than 200 parentheses"));
        for repetition in ["*", "{2}"] {
            let stacked = format!("root ::= \"a\"{}", repetition.repeat(80_000));
            assert!(refusal(&stacked).contains("more than 2 repetitions of one another"));
        }
    }

    #[test]
    fn rules_within_rules_fit_the_stack_however_many() {
        let within = |name: &str, end: &str, count: usize| {
            let rules: Vec<String> = (1..count).map(|at| format!("r{at} ::= {name} r{}{end}", at + 1)).collect();
            format!("root ::= r1\n{}\nr{count} ::= \"b\"", rules.join("\n"))
        };
        assert!(accepts(&within("\"a\"", "", 4_990), &format!("{}b", "a".repeat(4_989))));
        let nested = |count: usize| within("\"a\" (\"a\" (\"a\" (\"a\" (\"a\"", ")?)?)?)?", count);
        assert!(accepts(&nested(3_990), "aaa"));
        assert!(refusal(&nested(4_990)).contains("more than 20000 rules and groups"));
    }

    #[test]
    fn what_may_begin_at_one_place_is_bounded() {
        let ways = |count: usize| -> String {
            (0..count).map(|at| format!("\"{}\"", char::from(b'a' + (at % 26) as u8))).collect::<Vec<_>>().join("|")
        };
        assert!(accepts(&format!("root ::= {}", ways(8_000)), "x"));
        let apart: Vec<String> = (0..30).map(|at| format!("r{at} ::= {}", ways(2_000))).collect();
        let names: Vec<String> = (0..30).map(|at| format!("r{at}")).collect();
        for gbnf in [
            format!("root ::= {}", ways(60_000)),
            format!("root ::= \"x\" ({})", ways(60_000)),
            format!("root ::= \"x\" ({}{})", "\"a\"? ".repeat(20_000), ways(4)),
            format!("root ::= {}\n{}", names.join("|"), apart.join("\n")),
            format!("root ::= ({})?\n{}", names.join("? "), apart.join("\n")),
        ] {
            let start = Instant::now();
            assert!(refusal(&gbnf).contains("may begin at one place"), "{}", refusal(&gbnf));
            assert!(start.elapsed() < Duration::from_secs(5));
        }
    }

    #[test]
    fn an_enumeration_of_the_most_values_is_followed_though_all_begin_alike() {
        let values: Vec<String> = (0..2_048).map(|at| format!("\"\\\"v{at}\\\"\"")).collect();
        let enumeration = format!("root ::= \"[\" v (\",\" v)* \"]\"\nv ::= {}", values.join(" | "));
        assert!(accepts(&enumeration, "[\"v17\",\"v2047\"]"));
        assert!(!accepts(&enumeration, "[\"v2048\"]"));
    }

    #[test]
    fn the_deepest_grammar_fits_the_stack_of_a_thread() {
        let deepest = format!("root ::= {}\"a\"{}", "(".repeat(200), "??)".repeat(200));
        let outcome = Matcher::new(vocabulary(&[]), &deepest, Vec::new()).map(|_| ()).map_err(|error| error.code);
        assert!(matches!(outcome, Ok(()) | Err("unsupported_response_format")), "{outcome:?}");
    }
}
