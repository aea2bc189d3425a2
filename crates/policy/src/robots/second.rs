//! The second opinion on a file: its rules, in normal form, as `texting_robots` reads them.
//!
//! It is made once for all sites that say the same and are visited at the same time. Platforms serve one file for all of
//! their shops, and a file with a few rules that end with `$` costs more to read than all the rest of a visit.

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::sync::{Arc, LazyLock, Mutex, PoisonError, Weak};

use texting_robots::Robot;

use super::file::{Rule, RuleKind};

/// Rules that the second parser is asked about. It makes a regular expression of every rule that ends with `$`, a third
/// of a millisecond and 10 KiB each: a file of 28,000 such rules would cost ten seconds and 300 MB.
const SECOND_RULES_MAX: usize = 500;
/// Rules ending with `$` that it is asked about.
const SECOND_ANCHORED_MAX: usize = 50;
/// Octets of the longest pattern that it is asked about.
const SECOND_OCTETS_MAX: usize = 1_024;

/// Entries from which on those are dropped that no visit holds any more.
const ENTRIES_KEPT_MIN: usize = 1_024;

/// Opinions that some visit holds, by a hash that nobody outside can aim at.
static SHARED: LazyLock<Mutex<Opinions>> = LazyLock::new(Mutex::default);

#[derive(Default)]
struct Opinions {
    by_text: HashMap<(u64, usize), Weak<Robot>>,
    hasher: RandomState,
    /// How many were left after the last clearing.
    kept: usize,
}

/// The rules that apply, in normal form, read by the other parser. `None` when there is nothing to ask it, or when the
/// rules are more than it can bear; our own answer stands then.
pub(super) fn second_opinion(rules: &[Rule], token: &str) -> Option<Arc<Robot>> {
    let anchored = rules.iter().filter(|rule| rule.pattern.as_str().ends_with('$')).count();
    let is_bearable = (1..=SECOND_RULES_MAX).contains(&rules.len())
        && anchored <= SECOND_ANCHORED_MAX
        && rules.iter().all(|rule| rule.pattern.octets() <= SECOND_OCTETS_MAX);
    if !is_bearable {
        return None;
    }
    let mut text = format!("User-agent: {token}\n");
    for rule in rules {
        let field = match rule.kind {
            RuleKind::Allow => "Allow: ",
            RuleKind::Disallow => "Disallow: ",
        };
        text.push_str(field);
        text.push_str(rule.pattern.as_str());
        text.push('\n');
    }
    shared(&text, token)
}

fn shared(text: &str, token: &str) -> Option<Arc<Robot>> {
    let lock = || SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    let key = {
        let opinions = lock();
        let key = (opinions.hasher.hash_one(text), text.len());
        if let Some(known) = opinions.by_text.get(&key).and_then(Weak::upgrade) {
            return Some(known);
        }
        key
    };
    let made = Arc::new(Robot::new(token, text.as_bytes()).ok()?);
    let mut opinions = lock();
    opinions.by_text.insert(key, Arc::downgrade(&made));
    if opinions.by_text.len() >= ENTRIES_KEPT_MIN.max(2 * opinions.kept) {
        opinions.by_text.retain(|_, opinion| opinion.strong_count() > 0);
        opinions.kept = opinions.by_text.len();
    }
    Some(made)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_rules_share_one_opinion_while_somebody_holds_it() {
        let text = |site: usize| format!("User-agent: agentdex\nDisallow: /{site}$\n");
        let rules = |site: usize| shared(&text(site), "agentdex").unwrap();
        let (one, same, other) = (rules(1), rules(1), rules(2));
        assert!(Arc::ptr_eq(&one, &same) && !Arc::ptr_eq(&one, &other));
        assert!(!one.allowed("/1") && other.allowed("/1"));
        for site in 3..10 * ENTRIES_KEPT_MIN {
            drop(rules(site));
        }
        let opinions = SHARED.lock().unwrap();
        assert!(opinions.by_text.len() <= 2 * ENTRIES_KEPT_MIN, "what nobody holds is forgotten");
    }
}
