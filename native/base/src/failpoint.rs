//! Named points at which a test can make the process die, to see what a crash there leaves behind, or a call panic.
//!
//! `SUNDEW_FAILPOINT=name` aborts at the first hit of `name`, `SUNDEW_FAILPOINT=name:3` at the third. Without the
//! variable a hit costs one relaxed load.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

struct ArmedFailpoint {
    name: String,
    hits_left: AtomicU64,
}

const UNKNOWN: u8 = 0;
const DISARMED: u8 = 1;
const ARMED: u8 = 2;

static STATE: AtomicU8 = AtomicU8::new(UNKNOWN);
static ARMED_FAILPOINT: OnceLock<Option<ArmedFailpoint>> = OnceLock::new();

/// Aborts the process when the failpoint `name` is armed and this is the hit that was asked for.
pub fn hit(name: &str) {
    if is_due(name) {
        std::process::abort();
    }
}

/// Panics where `hit` aborts, without the hook that prints: a trace in the log of a run that passed misleads its reader.
pub fn hit_panic(name: &str) {
    if is_due(name) {
        std::panic::resume_unwind(Box::new("provoked by a test"));
    }
}

fn is_due(name: &str) -> bool {
    if STATE.load(Ordering::Relaxed) == DISARMED {
        return false;
    }
    let armed = ARMED_FAILPOINT.get_or_init(|| {
        let parsed = std::env::var("SUNDEW_FAILPOINT").ok().and_then(|text| parse(&text));
        STATE.store(if parsed.is_some() { ARMED } else { DISARMED }, Ordering::Relaxed);
        parsed
    });
    armed
        .as_ref()
        .is_some_and(|failpoint| failpoint.name == name && failpoint.hits_left.fetch_sub(1, Ordering::Relaxed) == 1)
}

fn parse(text: &str) -> Option<ArmedFailpoint> {
    let (name, hits) = match text.rsplit_once(':') {
        Some((name, hits)) => (name, hits.parse().ok().filter(|&hits| hits > 0)?),
        None => (text, 1),
    };
    (!name.is_empty()).then(|| ArmedFailpoint { name: name.to_owned(), hits_left: AtomicU64::new(hits) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failpoint_names_a_point_and_perhaps_a_count() {
        let at_once = parse("checkpoint-files.before-rename").expect("a name alone");
        assert_eq!((at_once.name.as_str(), at_once.hits_left.into_inner()), ("checkpoint-files.before-rename", 1));
        let third = parse("a.b:3").expect("a name with a count");
        assert_eq!((third.name.as_str(), third.hits_left.into_inner()), ("a.b", 3));
        assert!(parse("").is_none());
        assert!(parse("a:0").is_none());
        assert!(parse("a:x").is_none());
    }
}
