//! Cuts the best parts out of a text.

use super::plan::HighlightPlan;
use super::spans::Span;

/// How far a fragment reaches out for the boundary of a word, bytes.
const WORD_REACH: usize = 24;

struct Fragment {
    from: usize,
    to: usize,
    /// Positions in the list of spans, from and to.
    spans: (usize, usize),
}

/// At most `count` fragments with the most marks, in the order of the text. Nothing of the text is escaped.
pub fn fragments_of(text: &str, spans: &[Span], plan: &HighlightPlan, count: usize) -> Vec<String> {
    let mut fragments = Vec::new();
    let mut at = 0;
    while at < spans.len() {
        let fragment =
            fragment_at(text, spans, at, plan.fragment_chars, fragments.last().map_or(0, |last: &Fragment| last.to));
        at = fragment.spans.1;
        fragments.push(fragment);
    }
    fragments.sort_by_key(|fragment| std::cmp::Reverse(fragment.spans.1 - fragment.spans.0));
    fragments.truncate(count);
    fragments.sort_by_key(|fragment| fragment.from);
    fragments.iter().map(|fragment| marked(text, spans, fragment, plan)).collect()
}

/// The fragment whose first mark is `spans[first]`: a quarter of its room lies before that mark.
fn fragment_at(text: &str, spans: &[Span], first: usize, chars: usize, after: usize) -> Fragment {
    let before: usize = text[after..spans[first].from].chars().rev().take(chars / 4).map(char::len_utf8).sum();
    let from = word_start(text, spans[first].from - before, spans[first].from);
    let room: usize = text[from..].chars().take(chars).map(char::len_utf8).sum();
    let end = (from + room).max(spans[first].to);
    let mut last = first + 1;
    while last < spans.len() && spans[last].to <= end {
        last += 1;
    }
    let to = word_end(text, end, spans[last - 1].to);
    // Words that the cut would halve go to the next fragment.
    let to = spans.get(last).map_or(to, |next| to.min(next.from));
    Fragment { from, to, spans: (first, last) }
}

/// The first beginning of a word from `from` on, but not far.
fn word_start(text: &str, from: usize, latest: usize) -> usize {
    if from == 0 || text[..from].ends_with(char::is_whitespace) {
        return from;
    }
    let space = text[from..latest].char_indices().take(WORD_REACH).find(|(_, character)| character.is_whitespace());
    space.map_or(from, |(at, character)| from + at + character.len_utf8())
}

/// The last end of a word up to `end`, but not far.
fn word_end(text: &str, end: usize, earliest: usize) -> usize {
    if end == text.len() || text[end..].starts_with(char::is_whitespace) {
        return end;
    }
    let space =
        text[earliest..end].char_indices().rev().take(WORD_REACH).find(|(_, character)| character.is_whitespace());
    space.map_or(end, |(at, _)| earliest + at)
}

fn marked(text: &str, spans: &[Span], fragment: &Fragment, plan: &HighlightPlan) -> String {
    let mut out = String::new();
    let mut at = fragment.from;
    for span in &spans[fragment.spans.0..fragment.spans.1] {
        out.push_str(&text[at..span.from]);
        out.push_str(&plan.pre_tag);
        out.push_str(&text[span.from..span.to]);
        out.push_str(&plan.post_tag);
        at = span.to;
    }
    out.push_str(&text[at..fragment.to.max(at)]);
    out.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(fragment_chars: usize) -> HighlightPlan {
        HighlightPlan {
            fields: Vec::new(),
            fragment_chars,
            fragments: 3,
            pre_tag: "[".to_owned(),
            post_tag: "]".to_owned(),
        }
    }

    fn spans(text: &str, word: &str) -> Vec<Span> {
        text.match_indices(word).map(|(from, found)| Span { from, to: from + found.len() }).collect()
    }

    #[test]
    fn a_short_text_is_one_fragment() {
        let text = "Leek soup and potato soup";
        assert_eq!(fragments_of(text, &spans(text, "soup"), &plan(100), 3), ["Leek [soup] and potato [soup]"]);
    }

    #[test]
    fn the_fragments_with_the_most_marks_stay_in_the_order_of_the_text() {
        let filler = "word ".repeat(30);
        let text = format!("soup {filler}soup soup {filler}soup soup soup {filler}");
        let found = fragments_of(&text, &spans(&text, "soup"), &plan(40), 2);
        assert_eq!(found.iter().map(|part| part.matches("[soup]").count()).collect::<Vec<_>>(), [2, 3]);
        assert!(found.iter().all(|part| part.replace(['[', ']'], "").chars().count() <= 40), "{found:?}");
    }

    #[test]
    fn characters_of_several_bytes_are_not_cut() {
        let text = "é".repeat(300) + " soup " + &"日".repeat(300);
        let found = fragments_of(&text, &spans(&text, "soup"), &plan(21), 1);
        assert_eq!(found.len(), 1);
        assert!(found[0].contains("[soup]"));
    }

    #[test]
    fn a_mark_longer_than_a_fragment_is_shown_whole() {
        let text = "x".repeat(200);
        let found = fragments_of(&text, &[Span { from: 0, to: 200 }], &plan(20), 1);
        assert_eq!(found, [format!("[{text}]")]);
    }
}
