//! Address groups: each has one owner, and each clock is written under the owner's membership.

use std::collections::HashSet;
use std::time::Duration;

use anyhow::{Context, Result};
use chrono::{DateTime, TimeDelta, Utc};
use serde_json::json;
use store::{
    ClockOutcome, ClockWrite, GroupSet, HandOver, LeaseRequest, LeaseToken, MemberId, Membership, Share,
    SiteGroup, Store, WorkerLoad,
};

use crate::build::{host, later, leased, request, seed, site, slot_until, start, visit, worker};
use crate::harness::Db;

const LIFE: Duration = Duration::from_mins(1);
const ADDRESS: [u8; 4] = [192, 0, 2, 7];

async fn join(store: &Store, name: &str, now: DateTime<Utc>) -> Result<MemberId> {
    Ok(store.worker_join(&worker(name), Share::Full, LIFE, now).await?)
}

fn clock(member: MemberId, at: DateTime<Utc>) -> ClockWrite {
    ClockWrite {
        host: host("shop.example"),
        address: Some(slot_until(ADDRESS.into(), at)),
        next_ok_at: at,
        not_before: None,
        requests_add: 1,
        day: 1,
        progress: None,
        member: Some(Membership { member, alive_until: at + TimeDelta::minutes(1) }),
        lease: None,
    }
}

fn only(group: u16) -> GroupSet {
    GroupSet::of(|other| other == group)
}

async fn owned(store: &Store, member: MemberId) -> Result<Vec<u16>> {
    let mut owned = store.groups_settle(member, &[], &[]).await?;
    owned.sort_unstable();
    Ok(owned)
}

pub(crate) async fn group_has_one_owner(Db { store, .. }: Db) -> Result<()> {
    let mut members = Vec::new();
    for number in 0..6 {
        members.push(join(&store, &format!("w{number}"), start()).await?);
    }
    let wanted: Vec<u16> = (0..4_096).collect();
    let races = members.iter().map(|member| store.groups_settle(*member, &[], &wanted));
    let won = futures::future::try_join_all(races).await?;
    let all: HashSet<u16> = won.iter().flatten().copied().collect();
    assert_eq!((won.iter().map(Vec::len).sum::<usize>(), all.len()), (4_096, 4_096), "each group once");
    let first = members.first().copied().context("a member")?;
    let second = members.get(1).copied().context("another")?;
    let mine = owned(&store, first).await?;
    let given_up: Vec<u16> = mine.iter().copied().take(2).collect();
    store.groups_settle(second, &mine, &[]).await?;
    assert_eq!(owned(&store, first).await?, mine, "a worker cannot release a group of another");
    store.groups_settle(first, &given_up, &[]).await?;
    let taken = store.groups_settle(second, &[], &wanted).await?;
    assert!(given_up.iter().all(|group| taken.contains(group)), "released groups are free");
    Ok(())
}

pub(crate) async fn worker_without_heartbeat_loses_its_groups(Db { store, .. }: Db) -> Result<()> {
    let (silent, alive) = (join(&store, "silent", start()).await?, join(&store, "alive", start()).await?);
    store.groups_settle(silent, &[], &[1, 2, 3]).await?;
    let late = start() + TimeDelta::seconds(50);
    let members = store.member_beat(alive, LIFE, late).await?.context("a membership")?;
    assert_eq!(members.iter().map(|member| member.name.as_str()).collect::<Vec<_>>(), ["alive", "silent"]);
    assert_eq!(store.groups_settle(alive, &[], &[1, 4]).await?, [4]);
    let members = store.member_beat(alive, LIFE, later(1) + TimeDelta::seconds(1)).await?.context("still")?;
    assert_eq!(members.iter().map(|member| member.id).collect::<Vec<_>>(), [alive]);
    assert_eq!(store.groups_settle(alive, &[], &[1, 2, 3]).await?.len(), 4);
    assert_eq!(store.member_beat(silent, LIFE, later(2)).await?, None, "the worker must join again");
    assert_eq!(store.groups_settle(silent, &[], &[9]).await?, Vec::<u16>::new());
    let back = join(&store, "silent", later(2)).await?;
    assert!(back > silent);
    let again = join(&store, "silent", later(2)).await?;
    assert_eq!(store.member_beat(back, LIFE, later(2)).await?, None, "a name has one membership");
    let guest = store.worker_join(&worker("guest"), Share::None, LIFE, later(2)).await?;
    let members = store.member_beat(guest, LIFE, later(2)).await?.context("a guest")?;
    assert!(members.iter().all(|member| member.id != guest), "a guest owns no groups");
    store.worker_forget(&worker("alive")).await?;
    assert_eq!(store.groups_settle(again, &[], &[1]).await?, [1], "a departing worker releases its groups");
    Ok(())
}

pub(crate) async fn does_not_save_clocks_of_an_expired_membership(Db { store, .. }: Db) -> Result<()> {
    let (old, new) = (join(&store, "old", start()).await?, join(&store, "new", start()).await?);
    assert_eq!(store.clocks_save(&[clock(old, later(0))]).await?, [ClockOutcome::Saved]);
    store.member_beat(new, LIFE, later(5)).await?.context("a membership")?;
    let outcomes = store.clocks_save(&[clock(old, later(9)), clock(new, later(6))]).await?;
    assert_eq!(outcomes, [ClockOutcome::MembershipEnded, ClockOutcome::Saved]);
    let clocks = store.address_clocks(&[ADDRESS.into()]).await?;
    assert_eq!(clocks.get(&ADDRESS.into()), Some(&later(6)), "the valid clocks of the batch are written");
    let without = ClockWrite { member: None, ..clock(old, later(7)) };
    assert_eq!(
        store.clocks_save(&[without]).await?,
        [ClockOutcome::Saved],
        "the only worker of a database needs no membership"
    );
    Ok(())
}

pub(crate) async fn saved_clocks_renew_a_membership(Db { store, .. }: Db) -> Result<()> {
    let (busy, other) = (join(&store, "busy", start()).await?, join(&store, "other", start()).await?);
    store.groups_settle(busy, &[], &[7]).await?;
    store.clocks_save(&[clock(busy, later(3))]).await?;
    store.member_beat(other, LIFE, later(3) + TimeDelta::seconds(59)).await?.context("a membership")?;
    assert_eq!(owned(&store, busy).await?, [7], "the clock renewed the membership");
    store.clocks_save(&[clock(busy, later(1))]).await?;
    store.member_beat(other, LIFE, later(3) + TimeDelta::seconds(59)).await?.context("a membership")?;
    assert_eq!(owned(&store, busy).await?, [7], "an older clock does not shorten the membership");
    Ok(())
}

/// When a takeover races with a clock, either the clock is refused or the new owner reads it.
pub(crate) async fn concurrent_takeover_refuses_or_reads_a_clock(Db { store, .. }: Db) -> Result<()> {
    let new = join(&store, "new", start()).await?;
    let mut found = 0;
    for round in 1..=40 {
        let now = later(10 * round);
        let old = join(&store, "old", now - TimeDelta::minutes(5)).await?;
        store.groups_settle(old, &[], &[7]).await?;
        let late = ClockWrite {
            member: Some(Membership { member: old, alive_until: now + TimeDelta::minutes(1) }),
            ..clock(old, now)
        };
        let take_over = async {
            store.member_beat(new, LIFE, now).await?;
            let taken = store.groups_settle(new, &[], &[7]).await?;
            Ok::<_, anyhow::Error>((taken, store.address_clocks(&[ADDRESS.into()]).await?))
        };
        let write = async { Ok::<_, anyhow::Error>(store.clocks_save(&[late]).await?) };
        let ((taken, clocks), outcomes) = tokio::try_join!(take_over, write)?;
        let is_written = outcomes == [ClockOutcome::Saved];
        found += u32::from(is_written);
        if taken.contains(&7) && is_written {
            assert_eq!(
                clocks.get(&ADDRESS.into()),
                Some(&now),
                "round {round}: a clock that the new owner did not read"
            );
        }
        store.groups_settle(new, &[7], &[]).await?;
        store.worker_forget(&worker("old")).await?;
    }
    assert!(found <= 40);
    Ok(())
}

pub(crate) async fn leases_sites_by_the_group_of_their_address(Db { store, .. }: Db) -> Result<()> {
    store.seeds_add(&[seed("a.example"), seed("b.example"), seed("new.example")], start()).await?;
    for (name, group) in [("a.example", 5), ("b.example", 4_095)] {
        let token = leased_again(&store, name).await?;
        let record = visit(name, start(), Vec::new());
        let token = LeaseToken { address_group: Some(group), ..token };
        store.visit_save(&token, &record).await?;
        assert_eq!(
            store.site_group(&site(name)).await?,
            Some(SiteGroup { group, owner: None }),
            "the site keeps its group"
        );
    }
    let due = later(60 * 24 * 365);
    let names = async |groups: GroupSet, only: Option<&str>| -> Result<Vec<String>> {
        let only = only.map(|name| vec![site(name)]);
        let request = LeaseRequest { groups, only, ..request("w", 9, due) };
        let leased = store.sites_lease(&request, due).await?;
        let mut names = Vec::new();
        for leased in leased {
            store.standalone_end(&leased.token, &[]).await?;
            names.push(leased.token.site.to_string());
        }
        names.sort_unstable();
        Ok(names)
    };
    assert_eq!(names(only(5), None).await?, ["a.example", "new.example"]);
    assert_eq!(names(only(4_095), None).await?, ["b.example", "new.example"]);
    assert_eq!(
        names(only(6), None).await?,
        ["new.example"],
        "any worker may lease a site of an unknown group"
    );
    assert_eq!(names(GroupSet::all(), None).await?.len(), 3);
    assert_eq!(names(only(6), Some("a.example")).await?, Vec::<String>::new());
    assert_eq!(names(only(5), Some("a.example")).await?, ["a.example"]);
    let member = join(&store, "owner", due).await?;
    store.groups_settle(member, &[], &[5]).await?;
    let owner = Some(worker("owner"));
    assert_eq!(store.site_group(&site("a.example")).await?, Some(SiteGroup { group: 5, owner }));
    assert_eq!(store.site_group(&site("new.example")).await?, None);
    Ok(())
}

async fn leased_again(store: &Store, name: &str) -> Result<LeaseToken> {
    let request = LeaseRequest { only: Some(vec![site(name)]), ..request("w", 1, start()) };
    Ok(store.sites_lease(&request, start()).await?.pop().context("a lease")?.token)
}

pub(crate) async fn hands_over_a_visit_with_its_progress(Db { store, .. }: Db) -> Result<()> {
    let first = leased(&store, "shop.example", start()).await?;
    assert_eq!(first.token.address_group, None);
    let due_at = first.token.due_at;
    let token = LeaseToken { address_group: Some(9), ..first.token };
    let merely_found = HandOver { due_at, progress: None };
    let handed = [(token, merely_found)];
    assert_eq!(store.visits_hand_over(&handed).await?, HashSet::from([site("shop.example")]));
    assert_eq!(store.visits_hand_over(&handed).await?, HashSet::new(), "the lease was released");
    let next = LeaseRequest { groups: only(9), ..request("owner", 1, later(1)) };
    let second = store.sites_lease(&next, later(1)).await?.pop().context("due as before")?;
    assert_eq!((second.token.due_at, second.token.address_group), (due_at, Some(9)));
    assert_eq!((second.site.interrupted, second.site.parked), (None, None));
    let token = LeaseToken { address_group: Some(10), ..second.token };
    let progress = Some(json!({ "asked": ["/robots.txt"] }));
    let handed = [(token, HandOver { due_at, progress: progress.clone() })];
    assert_eq!(store.visits_hand_over(&handed).await?.len(), 1);
    assert!(store.sites_lease(&next, later(2)).await?.is_empty(), "another worker owns its group");
    let third = LeaseRequest { groups: only(10), ..request("third", 1, start()) };
    let third = store
        .sites_lease(&third, later(2))
        .await?
        .pop()
        .context("the site is still due in the pass in which its visit began")?;
    assert_eq!((third.site.interrupted, third.site.parked), (progress, None));
    Ok(())
}

pub(crate) async fn hands_over_hundreds_of_visits_together(Db { store, .. }: Db) -> Result<()> {
    let names: Vec<String> = (0..300).map(|number| format!("s{number:03}.example")).collect();
    store.seeds_add(&names.iter().map(|name| seed(name)).collect::<Vec<_>>(), start()).await?;
    let leased = store.sites_lease(&request("finder", 300, start()), start()).await?;
    assert_eq!(leased.len(), 300);
    let progress = |token: &LeaseToken| Some(json!({ "asked": [format!("a \"quoted\" {}", token.site)] }));
    let number = |token: &LeaseToken| names.iter().position(|name| *name == token.site.as_str());
    let mut handed = Vec::new();
    for leased in leased {
        let number = number(&leased.token).context("a site of this test")?;
        let progress = (number % 2 == 0).then(|| progress(&leased.token)).flatten();
        let group = u16::try_from(number % 3)?;
        let token = LeaseToken { address_group: Some(group), ..leased.token };
        handed.push((token, HandOver { due_at: leased.token.due_at, progress }));
    }
    // a visit that lost its lease writes nothing and does not block the others
    let lost =
        handed.iter().position(|(token, _)| token.site.as_str() == "s000.example").context("the first")?;
    handed[lost].0.fence -= 1;
    let passed = store.visits_hand_over(&handed).await?;
    assert_eq!((passed.len(), passed.contains(&site("s000.example"))), (299, false));
    assert_eq!(store.visits_hand_over(&[]).await?, HashSet::new());
    assert_eq!(store.site_group(&site("s000.example")).await?, None);
    for group in 0..3 {
        let owner = LeaseRequest { groups: only(group), ..request("owner", 300, later(1)) };
        let leased = store.sites_lease(&owner, later(1)).await?;
        assert_eq!(leased.len(), if group == 0 { 99 } else { 100 }, "group {group}");
        for leased in leased {
            let (_, before) =
                handed.iter().find(|(token, _)| token.site == leased.token.site).context("handed")?;
            assert_eq!(leased.site.interrupted, before.progress, "{}", leased.token.site);
            assert_eq!(leased.token.due_at, before.due_at);
        }
    }
    Ok(())
}

pub(crate) async fn compacted_site_keeps_its_group(Db { store, .. }: Db) -> Result<()> {
    let token = leased(&store, "quiet.example", start()).await?.token;
    let record = visit("quiet.example", start(), Vec::new());
    store.visit_save(&LeaseToken { address_group: Some(77), ..token }, &record).await?;
    let kept = store.housekeeping(later(60 * 24 * 5)).await?;
    assert_eq!(kept.sites_compacted, 1);
    let quiet = site("quiet.example");
    assert_eq!(store.site_group(&quiet).await?.map(|group| group.group), Some(77));
    let due = later(60 * 24 * 365);
    let request = LeaseRequest { groups: only(77), ..request("w", 1, due) };
    let leased = store.sites_lease(&request, due).await?.pop().context("leased while compacted")?;
    let merely_found = HandOver { due_at: due, progress: None };
    let token = LeaseToken { address_group: Some(78), ..leased.token };
    assert_eq!(store.visits_hand_over(&[(token, merely_found)]).await?.len(), 1);
    assert_eq!(store.site_group(&quiet).await?.map(|group| group.group), Some(78));
    Ok(())
}

pub(crate) async fn lists_workers_with_their_groups(Db { store, .. }: Db) -> Result<()> {
    leased(&store, "shop.example", start()).await?;
    let (idle, guest) = (join(&store, "idle", start()).await?, worker("guest"));
    store.worker_join(&guest, Share::None, LIFE, start()).await?;
    store.groups_settle(idle, &[], &[1, 2]).await?;
    let load = |name, sites, groups| WorkerLoad { worker: worker(name), sites, groups };
    let loads = [load("w", 1, 0), load("idle", 0, 2), load("guest", 0, 0)];
    assert_eq!(store.workers_list(start(), 10).await?, loads);
    assert_eq!(store.workers_list(later(2), 10).await?, loads[..1], "an expired worker is not listed");
    Ok(())
}
