//! All operations of the store during crawling, indexing and serving.
//!
//! Operations that are documented to read whole tables are left out; their callers cache the result or are interactive:
//! `stats`, `dialect_usage`, `sites_failing`, `sites_slowest`, `semantic_types`, `semantic_namespaces`, `sites_revisit`, `export`.

use anyhow::{Context as _, Result};
use chrono::TimeDelta;
use policy::webhook::Message;
use policy::{AbuseReason, FetchOutcome};
use store::{
    AddressSlot, ClockWrite, DeliveryEnd, FeedPosition, HandOver, LeaseRequest, LeaseToken, ParkedVisit,
    Report, ReportCaps, Retention, Seed, Share, SitesRequest, SlotClaim, Store, SuspensionRecord,
    VisitProgress, VisitRecord, WatchOutcome,
};

use super::fill::{
    EXPANDED, FEED, WITH_MANIFESTS, capability_id, compacted, document, expanded, manifest_id, now,
    visit_without_content,
};
use super::judge::Judge;
use crate::build::{fetch, found, host, lease, random, seed, site, url, visit, worker};

/// After five runs the server may switch to a generic plan.
const TIMES: u32 = 7;
const LEASED: u32 = 200;

pub(crate) async fn run_all(store: &Store, judge: &Judge) -> Result<()> {
    leases(store, judge).await?;
    visits(store, judge).await?;
    clocks(store, judge).await?;
    groups(store, judge).await?;
    seeds(store, judge).await?;
    feed(store, judge).await?;
    watches(store, judge).await?;
    sites(store, judge).await?;
    manifests(store, judge).await?;
    health(store, judge).await?;
    maintenance(store, judge).await
}

async fn leases(store: &Store, judge: &Judge) -> Result<()> {
    let asked = LeaseRequest::due_now(worker("w"), LEASED, now());
    for time in 0..TIMES {
        let leased = store.sites_lease(&asked, now()).await?;
        assert_eq!(leased.len(), LEASED as usize);
        judge.judge("sites_lease", 20 * LEASED);
        let tokens: Vec<_> = leased.into_iter().map(|leased| leased.token).collect();
        assert_eq!(store.leases_renew(&tokens, asked.duration, now()).await?.len(), tokens.len());
        judge.judge("leases_renew", 2 * LEASED);
        store.standalone_end(tokens.first().context("a lease")?, &[]).await?;
        judge.judge("standalone_end", 1);
        store.worker_forget(&worker("w")).await?;
        judge.judge("worker_forget", LEASED);
        let some =
            [expanded(time + 1), expanded(time + 7_001), compacted(time + 7), compacted(time + 90_000)];
        let only = Some(some.iter().map(|name| site(name)).collect());
        let far = LeaseRequest { only, due_before: now() + TimeDelta::days(9_000), ..asked.clone() };
        assert_eq!(store.sites_lease(&far, now()).await?.len(), 4);
        judge.judge("sites_lease of listed sites", 100);
    }
    Ok(())
}

async fn visits(store: &Store, judge: &Judge) -> Result<()> {
    for time in 0..TIMES {
        let name = expanded(301 + time);
        let at = format!("https://{name}/agent.json");
        let leased = lease(store, &name, now()).await?;
        judge.forget();
        let linked = Seed::linked(url(&format!("https://{}/agent.json", compacted(500 + time))), url(&at));
        let changed = found(&at, &format!("changed {time}"), &["book", "pay"], now());
        let record = VisitRecord {
            new_seeds: vec![linked],
            fetches: vec![changed],
            ..visit_without_content(&name, now())
        };
        store.visit_save(&leased.token, &record).await?;
        judge.judge("visit_save of a changed manifest", 300);

        let leased = lease(store, &name, now()).await?;
        judge.forget();
        let mut large = found(&at, &format!("large {time}"), &["book"], now());
        if let Some(manifest) = &mut large.manifest {
            manifest.description = Some(random(u64::from(time), 400 * 1024));
        }
        store.visit_save(&leased.token, &visit(&name, now(), vec![large])).await?;
        judge.judge("visit_save of a large manifest", 300);

        let leased = lease(store, &name, now()).await?;
        judge.forget();
        let twice = [at.clone(), format!("https://{name}/.well-known/agent.json")];
        let twice = twice.map(|at| found(&at, &format!("twice {time}"), &["book", "pay"], now()));
        store.visit_save(&leased.token, &visit(&name, now(), twice.into())).await?;
        judge.judge("visit_save of one document at two paths", 300);

        let leased = lease(store, &name, now()).await?;
        judge.forget();
        store
            .visit_save(&leased.token, &visit(&name, now(), vec![fetch(&at, FetchOutcome::Gone, now())]))
            .await?;
        judge.judge("visit_save of a removed manifest", 300);

        let name = compacted(301 + time);
        let leased = lease(store, &name, now()).await?;
        judge.forget();
        store.visit_save(&leased.token, &visit_without_content(&name, now())).await?;
        judge.judge("visit_save of a compacted site", 300);

        store.robots_body(&host(&expanded(301 + time))).await?;
        judge.judge("robots_body", 1);

        let names =
            [expanded(421 + time), expanded(441 + time), compacted(421 + time), compacted(441 + time)];
        let mut tokens = Vec::new();
        for name in &names {
            tokens.push(lease(store, name, now()).await?.token);
        }
        let visits = names.each_ref().map(|name| visit_without_content(name, now()));
        judge.forget();
        for saved in store.visits_save(&tokens.iter().zip(&visits).collect::<Vec<_>>()).await? {
            saved?;
        }
        judge.judge("visits_save", 300);

        let name = expanded(401 + time);
        let token = lease(store, &name, now()).await?.token;
        judge.forget();
        let resume_at = now() + TimeDelta::hours(1);
        let parked = ParkedVisit { resume_at, reason: "asked for".into(), progress: "x".into(), claim: None };
        store.visit_park(&token, &parked, now()).await?;
        judge.judge("visit_park", 100);
    }
    Ok(())
}

async fn clocks(store: &Store, judge: &Judge) -> Result<()> {
    for time in 0..TIMES {
        let mut writes = Vec::new();
        for number in (1 + time..EXPANDED).step_by(600).take(50) {
            let name = expanded(number);
            writes.push(ClockWrite {
                host: host(&name),
                address: Some(AddressSlot {
                    address: [10, 0, 1, u8::try_from(time)?].into(),
                    claim: if number % 2 == 0 { SlotClaim::Owner } else { SlotClaim::PlatformOwner },
                    from: now(),
                    hold: std::time::Duration::from_millis(500),
                    latest: now(),
                }),
                next_ok_at: now(),
                not_before: None,
                requests_add: 1,
                day: 20_000,
                progress: Some(VisitProgress { site: site(&name), fence: 1, state: "{}".into() }),
                member: None,
                lease: None,
            });
        }
        store.clocks_save(&writes).await?;
        judge.judge("clocks_save", 500);
        let name = expanded(501 + time);
        let token = lease(store, &name, now()).await?.token;
        judge.forget();
        let under_lease =
            ClockWrite { host: host(&name), lease: Some(token.clone()), ..writes.swap_remove(0) };
        store.clocks_save(&[ClockWrite { progress: None, ..under_lease }]).await?;
        judge.judge("clocks_save under a lease", 50);
        let guest = writes.swap_remove(0);
        let address = guest.address.map(|slot| AddressSlot { claim: SlotClaim::Guest, ..slot });
        store.clocks_save(&[ClockWrite { address, ..guest }]).await?;
        judge.judge("clocks_save of a guest", 50);
        store.standalone_end(&token, &[]).await?;
        judge.forget();
        store.address_clocks(&[[10, 0, 0, 7].into(), [10, 0, 1, 7].into()]).await?;
        judge.judge("address_clocks", 10);
    }
    Ok(())
}

async fn groups(store: &Store, judge: &Judge) -> Result<()> {
    let life = std::time::Duration::from_mins(1);
    for time in 0..TIMES {
        let member = store.worker_join(&worker("owner"), Share::Full, life, now()).await?;
        judge.judge("worker_join", 100);
        let wanted: Vec<u16> = (0..policy::address::ADDRESS_GROUPS).collect();
        assert_eq!(store.groups_settle(member, &[], &wanted).await?.len(), wanted.len());
        judge.judge("groups_settle", 20_000);
        assert_eq!(store.groups_settle(member, &[1, 2], &[3]).await?.len(), wanted.len() - 2);
        judge.judge("groups_settle of a few", 5_000);
        assert_eq!(store.member_beat(member, life, now()).await?.context("the membership")?.len(), 1);
        judge.judge("member_beat", 100);
        let name = site(&expanded(461 + time));
        let leased = lease(store, name.as_str(), now()).await?;
        let token = LeaseToken { address_group: Some(7), ..leased.token };
        judge.forget();
        let hand_over = HandOver { due_at: now(), progress: None };
        store.visits_hand_over(&[(token, hand_over)]).await?;
        judge.judge("visits_hand_over", 10);
        let group = store.site_group(&name).await?.context("a group")?;
        assert_eq!((group.group, group.owner), (7, Some(worker("owner"))));
        judge.judge("site_group", 10);
    }
    store.worker_forget(&worker("owner")).await?;
    Ok(())
}

async fn seeds(store: &Store, judge: &Judge) -> Result<()> {
    for time in 0..TIMES {
        let known = [expanded(time + 1), compacted(time + 1), format!("new{time}.example")];
        let mut some: Vec<Seed> = known.iter().map(|name| seed(name)).collect();
        some.push(Seed {
            url: Some(url(&format!("https://{}/a.json", expanded(time + 50)))),
            ..seed(&expanded(time + 50))
        });
        store.seeds_add(&some, now()).await?;
        judge.judge("seeds_add", 200);
        let many: Vec<Seed> = (0..2_000).map(|number| seed(&compacted(number * 100 + time + 1))).collect();
        store.seeds_relist(&many, now()).await?;
        judge.judge("seeds_relist of a file", 12_000);
        let after = site(&compacted(time * 30_000 + 9));
        assert_eq!(store.sites_listed(Some(&after), 100).await?.len(), 100);
        judge.judge("sites_listed", 1_000);
        let gone = [expanded(601 + time), compacted(601 + time)].map(|name| site(&name));
        assert_eq!(store.sites_unlist(&gone, now()).await?, 2);
        judge.judge("sites_unlist", 300);
    }
    Ok(())
}

async fn feed(store: &Store, judge: &Judge) -> Result<()> {
    for time in 0..TIMES {
        store.feed_head().await?;
        judge.judge("feed_head", 12_000);
        let after = FeedPosition(i64::from(FEED / TIMES * time));
        assert_eq!(store.feed_read(after, 1_000).await?.len(), 1_000);
        judge.judge("feed_read", 1_000);
        store.feed_of_site(&site(&expanded(77 + time)), FeedPosition::END, 50).await?;
        judge.judge("feed_of_site", 50);
        for (minutes, rows) in [(0, 10), (60, 4_000), (1_000_000, 10)] {
            store.feed_position_at(now() - TimeDelta::minutes(minutes)).await?;
            judge.judge("feed_position_at", rows);
        }
    }
    Ok(())
}

async fn watches(store: &Store, judge: &Judge) -> Result<()> {
    for time in 0..TIMES {
        let name = site(&expanded(77 + time));
        let watch = crate::watches::watch_of(&format!("w{time}"), name.clone(), now());
        assert_eq!(store.watch_add(&watch, crate::watches::MANY).await?, WatchOutcome::Added);
        judge.judge("watch_add", 10);
        let due =
            store.deliveries_claim(Message::Challenge, now(), now() + TimeDelta::minutes(10), 9).await?;
        judge.judge("deliveries_claim", 10);
        store.delivery_end(due.first().context("a challenge")?, &DeliveryEnd::Accepted, now()).await?;
        judge.judge("delivery_end", 10);
        store.watches_behind(100).await?;
        judge.judge("watches_behind", 10 * TIMES);
        store.watches_of_searches(FeedPosition::END, 100).await?;
        judge.judge("watches_of_searches", 10 * TIMES);
        store.watch_advance(&format!("w{time}"), FeedPosition(1), FeedPosition(1)).await?;
        judge.judge("watch_advance", 10);
        store.watches_ended(100).await?;
        judge.judge("watches_ended", 10 * TIMES);
        assert_eq!(store.feed_of_site_after(&name, FeedPosition(0), 2).await?.len(), 2);
        judge.judge("feed_of_site_after", 10);
    }
    Ok(())
}

async fn sites(store: &Store, judge: &Judge) -> Result<()> {
    for time in 0..TIMES {
        for name in [expanded(1_000 + time), compacted(1_000 + time)] {
            store.site_report(&site(&name), 10).await?.context("the report of the site")?;
            judge.judge("site_report", 100);
        }
        let page = SitesRequest { max: 50, ..SitesRequest::default() };
        let after = SitesRequest { after: Some(site(&expanded(time + 5))), ..page.clone() };
        let with = SitesRequest { with_manifests: Some(true), ..after.clone() };
        let without = SitesRequest { with_manifests: Some(false), ..after.clone() };
        let gone = SitesRequest { status: Some(policy::Status::Unreachable), ..after.clone() };
        let begins = SitesRequest { prefix: Some(format!("{time}s1")), ..page.clone() };
        let compacted_prefix = SitesRequest { prefix: Some(format!("{time}r1")), ..page.clone() };
        for (name, request) in [
            ("sites_page", page),
            ("sites_page after a name", after),
            ("sites_page with manifests", with),
            ("sites_page without manifests", without),
            ("sites_page by status", gone),
            ("sites_page by prefix", begins),
            ("sites_page by prefix of compacted sites", compacted_prefix),
        ] {
            store.sites_page(&request).await?;
            judge.judge(name, 500);
        }
        let listed: Vec<_> = (1..=4).map(|number| site(&expanded(number))).collect();
        assert_eq!(store.site_listings(&listed, 50).await?.len(), 200);
        judge.judge("site_listings", 50);
        store.next_due_at().await?;
        judge.judge("next_due_at", 100);
        store.parked_list(50).await?;
        judge.judge("parked_list", 50);
        store.parked_idle_list(now(), 50).await?;
        judge.judge("parked_idle_list", 50);
        store.blocked_among(&[site("b7.example"), site(&expanded(7))]).await?;
        judge.judge("blocked_among", 10);
        store.paths_of_positives(500).await?;
        judge.judge("paths_of_positives", 500);
        let opted_out = site(&expanded(2_000 + time));
        store.site_block(&opted_out, "asked", now()).await?;
        judge.judge("site_block", 300);
        assert!(store.site_unblock(&opted_out, now()).await?);
        judge.judge("site_unblock", 10);
        let suspension = SuspensionRecord {
            reason: AbuseReason::Spam,
            note: String::new(),
            places: Vec::new(),
            at: now(),
        };
        store.site_suspend(&opted_out, &suspension).await?;
        judge.judge("site_suspend", 300);
        let report = Report {
            at: now(),
            site: opted_out.clone(),
            capability: None,
            reason: AbuseReason::Spam,
            note: String::new(),
        };
        store.report_save(&report, ReportCaps { of_site: 9, of_all: 999 }).await?;
        judge.judge("report_save", 100);
        assert!(store.objection_save(&opted_out, "why?", now()).await?);
        judge.judge("objection_save", 10);
        store.suspended_site_find(&opted_out).await?.context("a suspension")?;
        judge.judge("suspended_site_find", 10);
        assert!(store.site_unsuspend(&opted_out, now()).await?);
        judge.judge("site_unsuspend", 10);
    }
    Ok(())
}

async fn manifests(store: &Store, judge: &Judge) -> Result<()> {
    for time in 0..TIMES {
        let number = 3_001 + time;
        store.manifest_find(&manifest_id(number)).await?.context("a manifest")?;
        judge.judge("manifest_find", 10);
        let ids: Vec<_> = (number..WITH_MANIFESTS).step_by(700).map(manifest_id).collect();
        let packed = store.manifests_packed(&ids).await?;
        judge.judge("manifests_packed", 200);
        assert_eq!(packed.len(), store.manifests_load(&ids).await?.len());
        judge.judge("manifests_load", 200);
        let after = manifest_id(number * 5);
        assert_eq!(store.manifests_page(Some(&after), 100).await?.len(), 100);
        judge.judge("manifests_page", 400);
        store.manifests_of_site(&site(&expanded(number))).await?.first().context("a manifest")?;
        judge.judge("manifests_of_site", 10);
        store.manifest_of_capability(&capability_id(3 * number)).await?.context("a manifest")?;
        judge.judge("manifest_of_capability", 10);
        store.manifest_size_of_capability(&capability_id(3 * number)).await?.context("a size")?;
        judge.judge("manifest_size_of_capability", 10);
        let shared =
            store.capability_shared(&capability_id(3 * number + 1)).await?.context("a capability")?;
        assert_eq!(shared.members.len(), 3);
        judge.judge("capability_shared", 10);
        assert!(store.capabilities_shared_by(&ids).await?.len() > 20);
        judge.judge("capabilities_shared_by", 200);
        assert_eq!(store.capabilities_shared_of_site(&site(&expanded(1 + number))).await?.len(), 1);
        judge.judge("capabilities_shared_of_site", 10);
        let declarations: Vec<_> = (0..50).map(|one| capability_id(3 * number + one)).collect();
        store.declaration_sizes(&declarations).await?;
        judge.judge("declaration_sizes", 200);
        store.declarations_load(&declarations).await?;
        judge.judge("declarations_load", 200);
        assert_eq!(store.manifest_versions(&manifest_id(number), 100).await?.len(), 2);
        judge.judge("manifest_versions", 10);
        assert_eq!(store.versions_until(&manifest_id(number), &document(number)).await?.len(), 2);
        judge.judge("versions_until", 10);
        store.version_find(&manifest_id(number), &document(number)).await?.context("a version")?;
        judge.judge("version_find", 10);
        store.document_find(&document(number)).await?.context("a document")?;
        judge.judge("document_find", 10);
        assert_eq!(store.sites_newest(20).await?.len(), 20);
        judge.judge("sites_newest", 1_000);
    }
    Ok(())
}

async fn health(store: &Store, judge: &Judge) -> Result<()> {
    for _ in 0..TIMES {
        store.visits_by_interval(now() - TimeDelta::hours(1), TimeDelta::minutes(1)).await?;
        judge.judge("visits_by_interval", 6_000);
        assert_eq!(store.visits_latest(30).await?.len(), 30);
        judge.judge("visits_latest", 100);
        store.workers_list(now(), 20).await?;
        judge.judge("workers_list", 1_000);
        store.feed_readers().await?;
        store.ping().await?;
    }
    Ok(())
}

async fn maintenance(store: &Store, judge: &Judge) -> Result<()> {
    let compacted_sites = store.housekeeping(now() + TimeDelta::days(3)).await?.sites_compacted;
    assert!(compacted_sites > 2_000, "{compacted_sites}");
    judge.judge("housekeeping", 40_000);
    let days = |count: u64| Some(std::time::Duration::from_hours(24 * count));
    let retention = Retention { feed: days(0), versions: days(7) };
    let retained = store.retain(&retention, now() + TimeDelta::days(1)).await?;
    assert!(retained.feed_entries > u64::from(FEED / 2) && retained.versions > 5_000, "{retained:?}");
    judge.judge("retain", 20_000);
    Ok(())
}
