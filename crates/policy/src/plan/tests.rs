//! Plans by situation, and the laws of planning over random histories.

use std::collections::{HashMap, HashSet};

use proptest::prelude::*;

use super::*;

fn names(rows: &[&'static PlannedPath]) -> Vec<&'static str> {
    rows.iter().map(|row| row.path).collect()
}

#[test]
fn slots_are_places_in_the_table_and_paths_are_distinct() {
    for (index, row) in PATHS.iter().enumerate() {
        assert_eq!(usize::from(row.slot), index);
        assert!(row.path.starts_with('/'));
        assert_eq!(find(row.path), Some(row));
    }
    assert_eq!(PATHS.iter().map(|row| row.path).collect::<HashSet<_>>().len(), PATHS.len());
}

#[test]
fn a_first_visit_requests_every_path_and_the_homepage_last() {
    let asked = names(&paths(Standing::Unknown, &Priors::default(), |_| None));
    assert_eq!(asked.len(), PATHS.len());
    assert_eq!(asked.first(), Some(&"/.well-known/agent-card.json"));
    assert_eq!(asked.last(), Some(&"/"));
}

#[test]
fn a_negative_site_is_covered_every_seven_visits() {
    let mut days: HashMap<u8, LastCheck> = HashMap::new();
    let mut asked = HashSet::new();
    for visit in 0..7 {
        let rows = paths(Standing::Negative, &Priors::default(), |slot| days.get(&slot).copied());
        assert_eq!(rows.len(), PROBES_OF_NEGATIVE);
        for row in rows {
            asked.insert(row.path);
            days.insert(row.slot, LastCheck { class: PathClass::Absent, day: 20_000 + visit });
        }
    }
    assert_eq!(asked.len(), PATHS.len());
}

#[test]
fn a_site_with_manifests_is_probed_at_one_other_path() {
    let last = |slot| (slot == 0).then_some(LastCheck { class: PathClass::Present, day: 1 });
    assert_eq!(names(&paths(Standing::Positive, &Priors::default(), last)), ["/.well-known/agent.json"]);
}

#[test]
fn a_catch_all_host_is_probed_at_one_path_and_the_homepage() {
    let asked = names(&paths(Standing::CatchAll, &Priors::default(), |_| None));
    assert_eq!(asked, ["/.well-known/agent-card.json", "/"]);
}

#[test]
fn counts_move_priors() {
    let count = |slot| match slot {
        17 => PathCount { asked: 10_000, found: 9_000 },
        0 => PathCount { asked: 10_000, found: 10 },
        _ => PathCount::default(),
    };
    let priors = Priors::re_estimated(count);
    let asked = names(&paths(Standing::Unknown, &priors, |_| None));
    assert_eq!(asked.first(), Some(&"/llms.txt"));
    assert_eq!(asked.last(), Some(&"/"));
    assert_eq!(Priors::re_estimated(|_| PathCount::default()), Priors::default());
}

#[test]
fn classes_keep_their_numbers() {
    for class in PathClass::ALL {
        assert_eq!(PathClass::from_code(class.code()), Some(*class));
    }
    assert_eq!(PathClass::from_code(0), None);
    assert_eq!(PathClass::of(FetchOutcome::NotReached), None);
}

#[test]
fn canaries_differ_by_host_and_days_are_counted() {
    assert_ne!(canary_path(Seed::of("a.example")), canary_path(Seed::of("b.example")));
    assert!(find(&canary_path(Seed::of("a.example"))).is_none());
    assert_eq!(day_number(DateTime::<Utc>::UNIX_EPOCH), 0);
    assert_eq!(day_number(DateTime::<Utc>::MIN_UTC), 0);
    assert_eq!(day_number(DateTime::<Utc>::MAX_UTC), u16::MAX);
}

proptest! {
    /// Whatever was asked before, no path is asked twice and the homepage comes last.
    #[test]
    fn plans_are_distinct_and_ordered(days in proptest::collection::vec(proptest::option::of(0_u16..50), PATHS.len())) {
        let last = |slot: u8| {
            days.get(usize::from(slot)).copied().flatten().map(|day| LastCheck { class: PathClass::Absent, day })
        };
        for standing in [Standing::Unknown, Standing::Negative, Standing::CatchAll, Standing::Positive] {
            let rows = paths(standing, &Priors::default(), last);
            let distinct: HashSet<_> = rows.iter().map(|row| row.slot).collect();
            prop_assert_eq!(distinct.len(), rows.len());
            let homepage = rows.iter().position(|row| row.path == "/");
            prop_assert!(homepage.is_none_or(|place| place + 1 == rows.len()));
        }
    }
}
