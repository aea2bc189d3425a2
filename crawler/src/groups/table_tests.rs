//! Tests of the table of address groups: when groups change owners, and that no group does while it is in use.

use std::time::Duration;

use store::WorkerId;

use super::*;

fn member(id: i64) -> Member {
    Member { id: MemberId(id), name: WorkerId::new(&format!("worker{id}")) }
}

/// The table of worker 1, the only member of the fleet, which owns all groups.
fn owner_of_all() -> GroupTable {
    let mut table = GroupTable::new(Share::Full);
    table.join(MemberId(1));
    let plan = table.plan(&[member(1)], Instant::now()).unwrap();
    assert_eq!((plan.given_up.len(), plan.wanted.len()), (0, usize::from(ADDRESS_GROUPS)));
    assert_eq!(table.set_owned(&plan.wanted), usize::from(ADDRESS_GROUPS));
    assert!(table.is_settled());
    table
}

fn owned(table: &GroupTable) -> Vec<u16> {
    table.numbers(|group_state| group_state.since.is_some())
}

#[test]
fn releases_a_group_after_its_request_and_the_gap_of_its_address() {
    let mut table = owner_of_all();
    let both = [member(1), member(2)];
    let moving = table.plan(&both, Instant::now()).unwrap().given_up;
    assert!((1_500..2_500).contains(&moving.len()), "half of the groups: {}", moving.len());
    let group = moving[0];

    let mut table = owner_of_all();
    let epoch = table.ownership(group).unwrap();
    assert_eq!(table.enter(group, epoch), Some(MemberId(1)));
    assert!(!table.plan(&both, Instant::now()).unwrap().given_up.contains(&group), "a request is in flight");
    assert_eq!(table.ownership(group), None, "no new request begins");
    assert_eq!(table.enter(group, epoch), None);
    let ended = Instant::now();
    table.exit(group, ended);
    assert!(
        !table.plan(&both, ended).unwrap().given_up.contains(&group),
        "the gap of its address has not passed"
    );
    let plan = table.plan(&both, ended + Duration::from_millis(500)).unwrap();
    assert_eq!(plan, Plan { given_up: moving, wanted: Vec::new() });
    let kept: Vec<u16> = owned(&table).into_iter().filter(|group| !plan.given_up.contains(group)).collect();
    assert_eq!(table.set_owned(&kept), 0);
    assert_eq!((owned(&table), table.is_settled()), (kept, true));
}

#[test]
fn gives_a_group_that_is_taken_again_a_new_ownership() {
    let mut table = owner_of_all();
    let (alone, both) = ([member(1)], [member(1), member(2)]);
    let moving = table.plan(&both, Instant::now()).unwrap().given_up;
    let epoch = table.ownership(0).or(table.groups[0].since).unwrap();
    // the response of the store is lost, so the owner of the groups is unknown and no group is used
    let again = table.plan(&alone, Instant::now());
    assert!(moving.iter().all(|group| table.ownership(*group).is_none()));
    assert!(again.is_some(), "the owned groups are read from the store");
    let all: Vec<u16> = (0..ADDRESS_GROUPS).collect();
    assert_eq!(table.set_owned(&all), moving.len());
    assert!(moving.iter().all(|group| table.ownership(*group).is_some_and(|since| since != epoch)));
    assert_eq!(table.enter(moving[0], epoch), None, "the old ownership has ended");
    assert!(table.is_settled());
}

#[test]
fn a_worker_declared_dead_owns_nothing() {
    let mut table = owner_of_all();
    let epoch = table.ownership(7).unwrap();
    table.forget();
    assert_eq!((table.ownership(7), table.enter(7, epoch), owned(&table).len()), (None, None, 0));
    assert!(!table.is_settled(), "the worker must join again");
    table.join(MemberId(5));
    let plan = table.plan(&[member(5)], Instant::now()).unwrap();
    table.set_owned(&plan.wanted[..10]);
    assert_eq!((owned(&table).len(), table.is_settled()), (10, false), "other workers still own the rest");
}

#[test]
fn a_worker_without_a_share_keeps_only_claimed_groups() {
    let mut table = GroupTable::new(Share::None);
    table.join(MemberId(1));
    assert_eq!(table.plan(&[member(2)], Instant::now()), None);
    assert_eq!(table.set_owned(&[42]), 1);
    assert!(table.ownership(42).is_some() && table.ownership(43).is_none());
    assert_eq!(table.plan(&[member(2), member(3)], Instant::now()), None);
}
