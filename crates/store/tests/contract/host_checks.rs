//! Daily checks of hosts: at most one a day, limits, counts, and deletion.

use anyhow::{Context as _, Result};
use chrono::{DateTime, TimeDelta, Utc};
use manifest::Host;
use policy::liveness::{
    DAYS_COUNTED, HOSTS_NAMED_BY_OTHERS_MAX, HOSTS_OF_SITE_MAX, HostCheckOutcome, Uptime,
};
use store::NamedHost;

use crate::build::{host, later, site, start};
use crate::harness::Db;

fn named(name: &str, is_own: bool) -> NamedHost {
    NamedHost { host: host(name), is_own }
}

/// A host that the site itself names.
fn own(name: &str) -> NamedHost {
    named(name, true)
}

fn hosts_of(named: &[NamedHost]) -> Vec<Host> {
    named.iter().map(|named| named.host.clone()).collect()
}

fn days(count: i64) -> DateTime<Utc> {
    start() + TimeDelta::days(count)
}

pub(crate) async fn a_host_is_checked_at_most_once_on_a_day(Db { store, .. }: Db) -> Result<()> {
    let both = ["shop.example", "api.shop.example", "shop.example"].map(own);
    let (shop, api) = (both[0].host.clone(), both[1].host.clone());
    assert_eq!(store.host_checks_begin(&both, start()).await?, [api.clone(), shop.clone()]);
    assert_eq!(store.host_checks_begin(&both, later(1)).await?, [], "another worker has begun");
    assert_eq!(store.host_check_find(&api).await?, None, "no check has ended");
    store.host_check_end(&api, HostCheckOutcome::Completed, later(1)).await?;
    assert_eq!(store.host_checks_begin(&both, later(2)).await?, []);
    assert_eq!(store.host_checks_begin(&both, days(1)).await?, [api.clone(), shop]);
    store.host_check_end(&api, HostCheckOutcome::TlsFailed, days(1)).await?;
    store.host_check_end(&api, HostCheckOutcome::NotContacted, days(2)).await?;
    let check = store.host_check_find(&api).await?.context("a check")?;
    assert_eq!((check.outcome, check.checked_at), (HostCheckOutcome::NotContacted, days(2)));
    assert_eq!(
        check.history.uptime(days(2)),
        Uptime { checks: 2, succeeded: 1 },
        "the last one does not count"
    );
    assert_eq!(store.host_checks_of_site(&site("shop.example")).await?, [check]);
    assert_eq!(store.host_checks_of_site(&site("other.example")).await?, []);
    assert_eq!(
        store.host_checks_begin(&[own(api.as_str())], start()).await?,
        [],
        "a clock that runs backwards"
    );
    Ok(())
}

pub(crate) async fn an_abandoned_check_begins_again_on_the_same_day(Db { store, .. }: Db) -> Result<()> {
    let (api, shop) = (host("api.shop.example"), host("shop.example"));
    let both = [own(api.as_str()), own(shop.as_str())];
    store.host_checks_begin(&both, start()).await?;
    store.host_check_end(&api, HostCheckOutcome::Completed, start()).await?;
    store.host_check_abandon(&shop, later(1)).await?;
    assert_eq!(store.host_check_find(&shop).await?, None);
    assert_eq!(store.host_checks_begin(&both, later(2)).await?, std::slice::from_ref(&shop), "once");
    assert_eq!(store.host_checks_begin(&both, later(3)).await?, []);
    store.host_checks_begin(&both, days(1)).await?;
    store.host_check_abandon(&api, start()).await?;
    assert_eq!(store.host_checks_begin(&both, days(1)).await?, [], "a check of another day began since");
    Ok(())
}

pub(crate) async fn concurrent_workers_share_the_hosts(Db { store, .. }: Db) -> Result<()> {
    let hosts: Vec<_> = (0..20).map(|number| own(&format!("h{number}.example"))).collect();
    let reversed: Vec<_> = hosts.iter().rev().cloned().collect();
    let (one, other) =
        tokio::join!(store.host_checks_begin(&hosts, start()), store.host_checks_begin(&reversed, start()));
    let mut begun = [one?, other?].concat();
    begun.sort_unstable();
    let mut expected = hosts_of(&hosts);
    expected.sort_unstable();
    assert_eq!(begun, expected, "each host once");
    Ok(())
}

pub(crate) async fn a_domain_has_a_limited_number_of_checked_hosts(Db { store, .. }: Db) -> Result<()> {
    let hosts: Vec<_> =
        (0..=HOSTS_OF_SITE_MAX).map(|number| own(&format!("h{number}.many.example"))).collect();
    let begun = store.host_checks_begin(&hosts, start()).await?;
    assert_eq!(begun.len(), usize::try_from(HOSTS_OF_SITE_MAX - HOSTS_NAMED_BY_OTHERS_MAX)?);
    assert_eq!(store.host_checks_begin(&hosts, days(1)).await?, begun, "the same hosts");
    Ok(())
}

/// Anybody can publish a document whose endpoints are at hosts of another site.
pub(crate) async fn hosts_that_others_name_take_no_place_of_those_that_the_site_names(
    Db { store, .. }: Db,
) -> Result<()> {
    let of_others: Vec<_> =
        (0..=HOSTS_OF_SITE_MAX).map(|number| named(&format!("a{number}.shop.example"), false)).collect();
    let (api, shop, victim) = (own("api.shop.example"), site("shop.example"), named("a0.shop.example", true));
    let begun = store.host_checks_begin(&of_others, start()).await?;
    assert_eq!(begun.len(), usize::try_from(HOSTS_NAMED_BY_OTHERS_MAX)?, "they have a part of the limit");
    let both = [api.clone(), victim.clone()];
    assert_eq!(
        store.host_checks_begin(&both, start()).await?,
        std::slice::from_ref(&api.host),
        "a0 was begun on this day"
    );
    for host in begun.iter().chain([&api.host]) {
        store.host_check_end(host, HostCheckOutcome::NameUnknown, start()).await?;
    }
    let shown = async || -> Result<Vec<Host>> {
        Ok(store.host_checks_of_site(&shop).await?.into_iter().map(|check| check.host).collect())
    };
    assert_eq!(shown().await?, [victim.host.clone(), api.host.clone()], "only what the site names");
    for day in 1..4 {
        store.host_checks_begin(&of_others, days(day)).await?;
        store.host_checks_begin(std::slice::from_ref(&api), days(day)).await?;
    }
    assert_eq!(shown().await?, [api.host], "the site no longer names a0");
    Ok(())
}

pub(crate) async fn hosts_of_blocked_sites_are_not_checked(db: Db) -> Result<()> {
    let store = &db.store;
    let named = own("api.shop.example");
    let api = named.host.clone();
    assert_eq!(store.host_checks_begin(std::slice::from_ref(&named), start()).await?.len(), 1);
    store.host_check_end(&api, HostCheckOutcome::Completed, start()).await?;
    store.site_block(&site("shop.example"), "asked", later(1)).await?;
    assert_eq!(db.number("SELECT COUNT(*) FROM host_check").await?, 0, "a block deletes the checks");
    assert_eq!(store.host_checks_begin(std::slice::from_ref(&named), days(1)).await?, []);
    store.host_check_end(&api, HostCheckOutcome::Completed, days(1)).await?;
    assert_eq!(store.host_check_find(&api).await?, None, "a check that was in progress is not stored");
    Ok(())
}

pub(crate) async fn checks_are_deleted_by_age(db: Db) -> Result<()> {
    let store = &db.store;
    assert_eq!(store.host_checks_begin(&[own("shop.example")], start()).await?.len(), 1);
    store.housekeeping(days(i64::from(DAYS_COUNTED))).await?;
    assert_eq!(db.number("SELECT COUNT(*) FROM host_check").await?, 1);
    store.housekeeping(days(i64::from(DAYS_COUNTED) + 1)).await?;
    assert_eq!(db.number("SELECT COUNT(*) FROM host_check").await?, 0);
    Ok(())
}
