//! Tests plans with tables of cases, and invariants with random histories.

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

fn never(_slot: u8) -> Option<LastCheck> {
    None
}

#[test]
fn a_first_visit_requests_nine_paths_and_leaves_the_others() {
    let plan = paths(HostKnowledge::Unknown, None, &Priors::default(), never);
    assert_eq!(
        names(&plan.requested),
        [
            "/.well-known/agent.json",
            "/.well-known/agents.json",
            "/.well-known/mcp/server-card.json",
            "/.well-known/agent-manifest.json",
            "/agents.txt",
            "/agent.json",
            "/.well-known/mcp.json",
            "/.well-known/api-catalog",
            "/.well-known/agent-card.json",
        ]
    );
    assert_eq!(plan.requested.len() + plan.left.len(), PATHS.len());
    assert_eq!(plan.remaining, Remaining::Unlikely { chance_ppm: 765 });
}

#[test]
fn a_visit_with_a_reason_requests_every_path_with_the_homepage_last() {
    for reason in FullTableReason::ALL {
        let plan = paths(HostKnowledge::Unknown, Some(*reason), &Priors::default(), never);
        assert_eq!((plan.requested.len(), plan.left.len()), (PATHS.len(), 0));
        assert_eq!(names(&plan.requested).first(), Some(&"/.well-known/agent.json"));
        assert_eq!(names(&plan.requested).last(), Some(&"/"));
        assert_eq!(plan.remaining, Remaining::Requested(*reason));
    }
}

#[test]
fn three_visits_cover_the_table_and_seven_more_cover_it_again() {
    let mut days: HashMap<u8, LastCheck> = HashMap::new();
    let mut visit = |number: u32| {
        let knowledge = match number {
            0 => HostKnowledge::Unknown,
            visits => HostKnowledge::Negative { visits },
        };
        let plan = paths(knowledge, None, &Priors::default(), |slot| days.get(&slot).copied());
        for row in &plan.requested {
            let day = 20_000 + u16::try_from(number).unwrap();
            days.insert(row.slot, LastCheck { class: PathClass::Absent, day, turn: 0 });
        }
        names(&plan.requested)
    };
    let first: Vec<usize> = (0..3).map(|number| visit(number).len()).collect();
    assert_eq!(first, [9, 3, 7]);
    let again: Vec<Vec<&str>> = (3..10).map(&mut visit).collect();
    assert!(again.iter().all(|requested| requested.len() == PROBES_OF_NEGATIVE));
    assert_eq!(again.iter().flatten().collect::<HashSet<_>>().len(), PATHS.len());
    assert_eq!(days.len(), PATHS.len());
}

#[test]
fn the_second_visit_requests_the_homepage() {
    let first = paths(HostKnowledge::Unknown, None, &Priors::default(), never).requested;
    let last = |slot: u8| {
        let was_requested = first.iter().any(|row| row.slot == slot);
        was_requested.then_some(LastCheck { class: PathClass::Absent, day: 20_000, turn: 0 })
    };
    let plan = paths(HostKnowledge::Negative { visits: 1 }, None, &Priors::default(), last);
    assert_eq!(names(&plan.requested), ["/agents.json", "/.well-known/ai-plugin.json", "/"]);
    assert_eq!(plan.left.len(), 7);
}

#[test]
fn a_visit_requests_at_most_nine_paths_without_a_reason() {
    // earlier visits have checked only the first two paths
    for (visits, requested) in [(0, 9), (1, 3), (2, 9), (u32::MAX, 9)] {
        let last = |slot| (slot < 2).then_some(LastCheck { class: PathClass::Refused, day: 20_000, turn: 0 });
        let plan = paths(HostKnowledge::Negative { visits }, None, &Priors::default(), last);
        assert_eq!(plan.requested.len(), requested, "{visits}");
    }
}

#[test]
fn paths_that_were_checked_on_one_day_get_equal_turns() {
    let mut requested = HashMap::new();
    for visit in 0..19_u64 {
        let last = |slot: u8| {
            let turn = u8::try_from((u64::from(slot) + 3 * visit) % 19).unwrap();
            Some(LastCheck { class: PathClass::Absent, day: 20_000, turn })
        };
        let plan = paths(HostKnowledge::Negative { visits: 3 }, None, &Priors::default(), last);
        plan.requested.iter().for_each(|row| *requested.entry(row.path).or_insert(0) += 1);
    }
    assert_eq!(requested.len(), PATHS.len());
    assert!(requested.values().all(|count| *count == 3), "{requested:?}");
}

#[test]
fn several_visits_of_the_first_day_request_every_path() {
    let mut checked = HashSet::new();
    let counts = [
        HostKnowledge::Unknown,
        HostKnowledge::Negative { visits: 1 },
        HostKnowledge::Negative { visits: 1 },
    ]
    .map(|knowledge| {
        let last = |slot: u8| {
            checked.contains(&slot).then_some(LastCheck { class: PathClass::Absent, day: 20_000, turn: 0 })
        };
        let requested = paths(knowledge, None, &Priors::default(), last).requested;
        checked.extend(requested.iter().map(|row| row.slot));
        requested.len()
    });
    assert_eq!((counts, checked.len()), ([9, 3, 7], PATHS.len()));
}

#[test]
fn a_site_with_manifests_is_probed_at_one_other_path() {
    let last = |slot| {
        let class = if slot == 1 { PathClass::Present } else { PathClass::Absent };
        Some(LastCheck { class, day: if slot == 1 { 1 } else { 2 }, turn: 0 })
    };
    let known = Some(FullTableReason::ManifestKnown);
    let plan = paths(HostKnowledge::Positive, known, &Priors::default(), last);
    assert_eq!(names(&plan.requested), ["/.well-known/agents.json"]);
}

#[test]
fn a_catch_all_host_is_probed_at_one_path_and_the_homepage() {
    let plan = paths(HostKnowledge::CatchAll, None, &Priors::default(), never);
    assert_eq!(names(&plan.requested), ["/.well-known/agent.json", "/"]);
    assert_eq!(plan.left.len(), PATHS.len() - 2);
}

/// A site with manifests at some paths, where every path was requested.
fn site(published: &[&str]) -> SitePaths {
    let mut site = SitePaths::default();
    for row in PATHS {
        let is_published = published.contains(&row.path);
        site.add(row, if is_published { PathClass::Present } else { PathClass::Absent });
    }
    site
}

#[test]
fn findings_of_a_crawl_change_the_order_and_number_of_paths() {
    let dozen = [site(&["/llms.txt"]); 12];
    let changed = Priors::estimated(&dozen);
    assert_eq!(
        names(&changed.order().take(2).collect::<Vec<_>>()),
        ["/.well-known/agent.json", "/.well-known/agents.json"]
    );
    let mut many = vec![site(&["/llms.txt"]); 9_000];
    many.extend([site(&["/agents.json", "/llms.txt"]); 900]);
    let priors = Priors::estimated(&many);
    let requested = paths(HostKnowledge::Unknown, None, &priors, never).requested;
    // the sites with the second file were all found by the first path
    assert_eq!(names(&requested), ["/llms.txt"]);
    assert!(priors.of(find("/agents.json").unwrap()) > 800);
    let even: Vec<SitePaths> = PATHS.iter().flat_map(|row| [site(&[row.path]); 500]).collect();
    let plan = paths(HostKnowledge::Unknown, None, &Priors::estimated(&even), never);
    assert_eq!(plan.requested.len(), PATHS_SPECULATIVE_MAX);
    assert!(matches!(plan.remaining, Remaining::Enough { chance_ppm: 4_000.. }), "{:?}", plan.remaining);
}

#[test]
fn failures_do_not_change_priors() {
    let mut failed = SitePaths::default();
    for row in PATHS {
        failed.add(row, PathClass::Failed);
        failed.add(row, PathClass::Refused);
    }
    assert_eq!(Priors::estimated(&[failed; 1_000]), Priors::default());
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
    /// For any history, no path is requested twice, the homepage comes last, and no path is both requested and left.
    #[test]
    fn plans_have_distinct_paths_with_the_homepage_last(
        days in proptest::collection::vec(proptest::option::of(0_u16..50), PATHS.len()),
        visits in 0_u32..5,
    ) {
        let last = |slot: u8| {
            days.get(usize::from(slot)).copied().flatten().map(|day| LastCheck { class: PathClass::Absent, day, turn: 0 })
        };
        let all_knowledge =
            [HostKnowledge::Unknown, HostKnowledge::Negative { visits }, HostKnowledge::CatchAll, HostKnowledge::Positive];
        for knowledge in all_knowledge {
            for reason in [None, Some(FullTableReason::Submitted)] {
                let PathPlan { requested, left, .. } = paths(knowledge, reason, &Priors::default(), last);
                let distinct: HashSet<_> = requested.iter().chain(&left).map(|row| row.slot).collect();
                prop_assert_eq!(distinct.len(), requested.len() + left.len());
                prop_assert!(left.iter().all(|row| last(row.slot).is_none()));
                let homepage = requested.iter().position(|row| row.path == "/");
                prop_assert!(homepage.is_none_or(|position| position + 1 == requested.len()));
                prop_assert!(reason.is_some() || requested.len() <= PATHS_SPECULATIVE_MAX);
            }
        }
    }
}
