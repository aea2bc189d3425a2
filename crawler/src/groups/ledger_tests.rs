//! The ledger of address groups: what moves when, and what never moves while it is used.

use std::time::Duration;

use store::WorkerId;

use super::*;

fn member(id: i64) -> Member {
    Member { id: MemberId(id), name: WorkerId::new(&format!("worker{id}")) }
}

/// A ledger of worker 1, alone in the fleet, that owns everything.
fn owner_of_all() -> Ledger {
    let mut ledger = Ledger::new(Share::Full);
    ledger.join(MemberId(1));
    let plan = ledger.plan(&[member(1)], Instant::now()).unwrap();
    assert_eq!((plan.given_up.len(), plan.wanted.len()), (0, usize::from(ADDRESS_GROUPS)));
    assert_eq!(ledger.settled(&plan.wanted), usize::from(ADDRESS_GROUPS));
    assert!(ledger.is_settled());
    ledger
}

fn owned(ledger: &Ledger) -> Vec<u16> {
    ledger.numbers(|slot| slot.since.is_some())
}

#[test]
fn a_group_in_use_stays_until_its_request_has_ended_and_its_address_has_rested() {
    let mut ledger = owner_of_all();
    let both = [member(1), member(2)];
    let moving = ledger.plan(&both, Instant::now()).unwrap().given_up;
    assert!((1_500..2_500).contains(&moving.len()), "half of the groups: {}", moving.len());
    let group = moving[0];

    let mut ledger = owner_of_all();
    let epoch = ledger.tenure(group).unwrap();
    assert_eq!(ledger.enter(group, epoch), Some(MemberId(1)));
    assert!(!ledger.plan(&both, Instant::now()).unwrap().given_up.contains(&group), "a request is under way");
    assert_eq!(ledger.tenure(group), None, "nothing new begins");
    assert_eq!(ledger.enter(group, epoch), None);
    let ended = Instant::now();
    ledger.exit(group, ended);
    assert!(!ledger.plan(&both, ended).unwrap().given_up.contains(&group), "its address rests");
    let plan = ledger.plan(&both, ended + Duration::from_millis(500)).unwrap();
    assert_eq!(plan, Plan { given_up: moving, wanted: Vec::new() });
    let kept: Vec<u16> = owned(&ledger).into_iter().filter(|group| !plan.given_up.contains(group)).collect();
    assert_eq!(ledger.settled(&kept), 0);
    assert_eq!((owned(&ledger), ledger.is_settled()), (kept, true));
}

#[test]
fn a_group_that_was_away_is_another_tenure() {
    let mut ledger = owner_of_all();
    let (alone, both) = ([member(1)], [member(1), member(2)]);
    let moving = ledger.plan(&both, Instant::now()).unwrap().given_up;
    let epoch = ledger.tenure(0).or(ledger.slots[0].since).unwrap();
    // the answer of the store is lost: whether the groups are still ours is not known, so none of them is used
    let again = ledger.plan(&alone, Instant::now());
    assert!(moving.iter().all(|group| ledger.tenure(*group).is_none()));
    assert!(again.is_some(), "the store is asked what is owned");
    let all: Vec<u16> = (0..ADDRESS_GROUPS).collect();
    assert_eq!(ledger.settled(&all), moving.len());
    assert!(moving.iter().all(|group| ledger.tenure(*group).is_some_and(|since| since != epoch)));
    assert_eq!(ledger.enter(moving[0], epoch), None, "a visit that knew it before asks anew");
    assert!(ledger.is_settled());
}

#[test]
fn a_worker_taken_for_dead_owns_nothing() {
    let mut ledger = owner_of_all();
    let epoch = ledger.tenure(7).unwrap();
    ledger.forget();
    assert_eq!((ledger.tenure(7), ledger.enter(7, epoch), owned(&ledger).len()), (None, None, 0));
    assert!(!ledger.is_settled(), "it has to join again");
    ledger.join(MemberId(5));
    let plan = ledger.plan(&[member(5)], Instant::now()).unwrap();
    ledger.settled(&plan.wanted[..10]);
    assert_eq!((owned(&ledger).len(), ledger.is_settled()), (10, false), "the others hold the rest still");
}

#[test]
fn a_worker_without_a_share_keeps_what_it_claimed_and_wants_nothing() {
    let mut ledger = Ledger::new(Share::None);
    ledger.join(MemberId(1));
    assert_eq!(ledger.plan(&[member(2)], Instant::now()), None);
    assert_eq!(ledger.settled(&[42]), 1);
    assert!(ledger.tenure(42).is_some() && ledger.tenure(43).is_none());
    assert_eq!(ledger.plan(&[member(2), member(3)], Instant::now()), None);
}
