//! The patterns of dynamic templates.

/// Whether `name` matches `pattern`; `*` stands for any characters.
pub fn matches_name(pattern: &str, name: &str) -> bool {
    matches_characters(pattern.as_bytes(), name.as_bytes())
}

/// Whether a dotted path matches: `*` stays within one segment, `**` stands for any number of segments.
pub fn matches_path(pattern: &str, path: &str) -> bool {
    let pattern: Vec<&str> = pattern.split('.').collect();
    let path: Vec<&str> = path.split('.').collect();
    // reached[i]: the pattern up to here matches the first i segments.
    let mut reached = vec![false; path.len() + 1];
    reached[0] = true;
    for part in pattern {
        let mut next = vec![false; path.len() + 1];
        if part == "**" {
            let mut any = false;
            for (at, slot) in next.iter_mut().enumerate() {
                any |= reached[at];
                *slot = any;
            }
        } else {
            for at in 0..path.len() {
                next[at + 1] = reached[at] && matches_name(part, path[at]);
            }
        }
        reached = next;
    }
    reached[path.len()]
}

/// Linear with one step back to the last star.
fn matches_characters(pattern: &[u8], text: &[u8]) -> bool {
    let (mut at_pattern, mut at_text) = (0, 0);
    let mut last_star: Option<(usize, usize)> = None;
    while at_text < text.len() {
        match pattern.get(at_pattern) {
            Some(b'*') => {
                last_star = Some((at_pattern, at_text));
                at_pattern += 1;
            }
            Some(byte) if *byte == text[at_text] => {
                at_pattern += 1;
                at_text += 1;
            }
            _ => {
                let Some((star, from)) = last_star else { return false };
                last_star = Some((star, from + 1));
                at_pattern = star + 1;
                at_text = from + 1;
            }
        }
    }
    pattern[at_pattern..].iter().all(|&byte| byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        for (pattern, name, expected) in [
            ("*_id", "user_id", true),
            ("*_id", "user_ids", false),
            ("*", "", true),
            ("**", "anything", true),
            ("a*b*c", "aXbYbZc", true),
            ("a*b*c", "aXbYbZ", false),
            ("abc", "abc", true),
        ] {
            assert_eq!(matches_name(pattern, name), expected, "{pattern} on {name}");
        }
        for (pattern, path, expected) in [
            ("meta.**", "meta.a.b", true),
            ("meta.**", "meta", true),
            ("meta.*", "meta.a", true),
            ("meta.*", "meta.a.b", false),
            ("**.id", "a.b.id", true),
            ("**.id", "id", true),
            ("a.**.z", "a.z", true),
            ("a.**.z", "b.z", false),
        ] {
            assert_eq!(matches_path(pattern, path), expected, "{pattern} on {path}");
        }
    }
}
