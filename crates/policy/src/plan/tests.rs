//! Plans in tables of cases, and invariants over random histories.

use std::collections::{HashMap, HashSet};

use proptest::prelude::*;

use super::*;

fn names(rows: &[&'static PlannedPath]) -> Vec<&'static str> {
    rows.iter().map(|row| row.path).collect()
}

#[test]
fn requests_accept_the_media_types_of_cards() {
    for media_type in ["a2a-agent-card+json", "mcp-server-card+json", "ai-catalog+json"] {
        assert!(ACCEPT.contains(&format!("application/{media_type},")), "{media_type}");
    }
}

#[test]
fn slots_are_table_positions_and_paths_are_distinct() {
    for (index, row) in PATHS.iter().enumerate() {
        assert_eq!(usize::from(row.slot), index);
        assert!(row.path.starts_with('/'));
        assert_eq!(find(row.path), Some(row));
    }
    assert_eq!(PATHS.iter().map(|row| row.path).collect::<HashSet<_>>().len(), PATHS.len());
}

#[test]
fn a_first_visit_requests_every_path_with_the_homepage_last() {
    let requested = names(&paths(HostKnowledge::Unknown, &Priors::default(), |_| None));
    assert_eq!(requested.len(), PATHS.len());
    assert_eq!(requested.first(), Some(&"/.well-known/agent-card.json"));
    assert_eq!(requested.last(), Some(&"/"));
}

#[test]
fn seven_visits_cover_the_table_of_a_site_without_manifests() {
    let mut days: HashMap<u8, LastCheck> = HashMap::new();
    let mut requested = HashSet::new();
    for visit in 0..7 {
        let rows = paths(HostKnowledge::Negative, &Priors::default(), |slot| days.get(&slot).copied());
        assert_eq!(rows.len(), PROBES_OF_NEGATIVE);
        for row in rows {
            requested.insert(row.path);
            days.insert(row.slot, LastCheck { class: PathClass::Absent, day: 20_000 + visit });
        }
    }
    assert_eq!(requested.len(), PATHS.len());
}

#[test]
fn a_site_with_manifests_is_probed_at_one_other_path() {
    let last = |slot| (slot == 0).then_some(LastCheck { class: PathClass::Present, day: 1 });
    assert_eq!(names(&paths(HostKnowledge::Positive, &Priors::default(), last)), ["/.well-known/agent.json"]);
}

#[test]
fn a_catch_all_host_is_probed_at_one_path_and_the_homepage() {
    let requested = names(&paths(HostKnowledge::CatchAll, &Priors::default(), |_| None));
    assert_eq!(requested, ["/.well-known/agent-card.json", "/"]);
}

#[test]
fn counts_change_priors() {
    let count = |slot| match slot {
        17 => PathCount { requested: 10_000, found: 9_000 },
        0 => PathCount { requested: 10_000, found: 10 },
        _ => PathCount::default(),
    };
    let priors = Priors::estimated(count);
    let requested = names(&paths(HostKnowledge::Unknown, &priors, |_| None));
    assert_eq!(requested.first(), Some(&"/llms.txt"));
    assert_eq!(requested.last(), Some(&"/"));
    assert_eq!(Priors::estimated(|_| PathCount::default()), Priors::default());
}

#[test]
fn path_classes_survive_encoding() {
    for class in PathClass::ALL {
        assert_eq!(PathClass::from_code(class.code()), Some(*class));
    }
    assert_eq!(PathClass::from_code(0), None);
    assert_eq!(PathClass::of(FetchOutcome::NotReached), None);
}

#[test]
fn canaries_differ_by_host_and_day_numbers_saturate() {
    assert_ne!(canary_path(Seed::of("a.example")), canary_path(Seed::of("b.example")));
    assert!(find(&canary_path(Seed::of("a.example"))).is_none());
    assert_eq!(day_number(DateTime::<Utc>::UNIX_EPOCH), 0);
    assert_eq!(day_number(DateTime::<Utc>::MIN_UTC), 0);
    assert_eq!(day_number(DateTime::<Utc>::MAX_UTC), u16::MAX);
}

proptest! {
    /// For any history, no path is requested twice and the homepage comes last.
    #[test]
    fn plans_have_distinct_paths_with_the_homepage_last(days in proptest::collection::vec(proptest::option::of(0_u16..50), PATHS.len())) {
        let last = |slot: u8| {
            days.get(usize::from(slot)).copied().flatten().map(|day| LastCheck { class: PathClass::Absent, day })
        };
        for knowledge in [HostKnowledge::Unknown, HostKnowledge::Negative, HostKnowledge::CatchAll, HostKnowledge::Positive] {
            let rows = paths(knowledge, &Priors::default(), last);
            let distinct: HashSet<_> = rows.iter().map(|row| row.slot).collect();
            prop_assert_eq!(distinct.len(), rows.len());
            let homepage = rows.iter().position(|row| row.path == "/");
            prop_assert!(homepage.is_none_or(|position| position + 1 == rows.len()));
        }
    }
}
