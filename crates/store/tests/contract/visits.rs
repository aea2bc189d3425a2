//! Saving visits.

use std::collections::BTreeSet;
use std::sync::Arc;

use anyhow::{Context, Result};
use manifest::{CapabilityId, ContentHash, ManifestId, ManifestUrl, READER_VERSION};
use policy::{FetchOutcome, RobotsKind, Status, VisitEnd};
use store::{
    FetchRecord, PathCheck, PathSlots, RobotsRecord, Seed, Store, StoreError, VisitRecord, VisitSaved,
};

use crate::build::{
    body, feed_after, fetch, found, host, later, lease, leased, manifest, says, seed, site, start, url,
    visit, visited,
};
use crate::harness::Db;

const AT: &str = "https://sky.example/agent.json";

fn robots(name: &str) -> RobotsRecord {
    RobotsRecord {
        host: host(name),
        kind: RobotsKind::Rules,
        cause: None,
        status: Some(200),
        body: Some("User-agent: *\nDisallow: /privé\n".as_bytes().repeat(50).into()),
        fetched_at: start(),
        expires_at: later(60),
        failures_in_row: 2,
        etag: Some("W/\"ä\"".into()),
        last_modified: None,
    }
}

pub(crate) async fn saves_a_visit_with_all_its_results(Db { store, .. }: Db) -> Result<()> {
    let token = leased(&store, "sky.example", start()).await?.token;
    let fetches = vec![
        found(AT, "one", &["book", "cancel"], start()),
        fetch("https://sky.example/agents.json", FetchOutcome::NotFound, start()),
    ];
    let seeds = vec![Seed::linked(url("https://other.example/a.json"), url(AT))];
    let record = VisitRecord { new_seeds: seeds, ..visit("sky.example", start(), fetches) };
    let saved = store.visit_save(&token, &record).await?;
    let expected = VisitSaved { manifests_added: 1, capabilities: 2, ..VisitSaved::default() };
    assert_eq!(saved, expected);

    let id = ManifestId::of(&url(AT));
    let stored = store.manifest_find(&id).await?.context("the manifest")?;
    assert_eq!(stored.manifest, manifest(AT, &body("one"), &["book", "cancel"]));
    assert_eq!((stored.status, stored.versions, stored.body_kept), (Status::Fresh, 1, true));
    assert_eq!((stored.first_seen_at, stored.last_seen_at, stored.changed_at), (start(), start(), start()));
    let hash = ContentHash::of(&body("one"));
    assert_eq!(store.document_find(&hash).await?, Some(body("one")));
    let capability = CapabilityId::of_key(&format!("{AT}#awp:cancel"));
    assert_eq!(store.manifest_of_capability(&capability).await?, Some(stored.clone()));
    assert_eq!(store.manifests_of_site(&site("sky.example")).await?, [stored]);
    let hints = lease(&store, "other.example", later(1)).await?.site.hints;
    assert_eq!((hints.len(), &hints[0].url), (1, &url("https://other.example/a.json")));
    assert_eq!(hints[0].linked_from.as_ref().map(ManifestUrl::site), Some(site("sky.example")));

    let report = store.site_report(&site("sky.example"), 10).await?.context("the report of the site")?;
    assert_eq!(report.summary.formats, [manifest::Format::Awp]);
    assert_eq!((report.summary.manifests, report.summary.capabilities), (1, 2));
    assert_eq!(report.summary.next_visit_at, Some(record.next_visit.at));
    assert_eq!(report.summary.next_visit_reason.as_deref(), Some("unchanged for a day"));
    assert_eq!((report.state.visits, report.state.changes), (1, 1));
    let visit = report.visits.first().context("the visit")?;
    assert_eq!((visit.end, visit.requests, visit.phases), (VisitEnd::Completed, 3, record.phases));
    let outcomes: Vec<_> =
        visit.fetches.iter().map(|fetch| (fetch.outcome, fetch.manifest_id.clone())).collect();
    assert_eq!(outcomes, [(FetchOutcome::Found, Some(id)), (FetchOutcome::NotFound, None)]);
    Ok(())
}

pub(crate) async fn saves_a_visit_completely_or_not_at_all(db: Db) -> Result<()> {
    let store = &db.store;
    let token = leased(store, "sky.example", start()).await?.token;
    let record = VisitRecord {
        robots: vec![robots("sky.example")],
        new_seeds: vec![Seed::linked(url("https://other.example/a.json"), url(AT))],
        ..visit("sky.example", start(), vec![found(AT, "one", &["book"], start())])
    };
    // The last statements of the transaction fail.
    db.execute("ALTER TABLE visit RENAME TO visit_away").await?;
    let error = store.visit_save(&token, &record).await.err().context("the visit cannot be saved")?;
    assert!(matches!(error, StoreError::Refused { operation: "visit_save", .. }), "{error:?}");
    db.execute("ALTER TABLE visit_away RENAME TO visit").await?;
    let counts = store.stats(start()).await?;
    assert_eq!((counts.manifests, counts.documents, counts.capabilities, counts.feed_head.0), (0, 0, 0, 0));
    assert_eq!((counts.sites, counts.sites_leased, counts.visits), (1, 1, 0));
    let report = store.site_report(&site("sky.example"), 1).await?.context("the report of the site")?;
    assert!(report.state.resources.is_empty() && report.state.hosts.iter().all(|host| host.robots.is_none()));
    store.visit_save(&token, &record).await?;
    assert_eq!(store.stats(start()).await?.manifests, 1);
    Ok(())
}

pub(crate) async fn saves_each_visit_of_a_batch_independently(Db { store, .. }: Db) -> Result<()> {
    let mut tokens = Vec::new();
    for name in ["sky.example", "lost.example", "out.example", "none.example"] {
        tokens.push(leased(&store, name, start()).await?.token);
    }
    // One lease was taken over by another worker, and the owner of another site opted out.
    let again = lease(&store, "lost.example", later(60)).await?.token;
    store.site_block(&site("out.example"), "asked", start()).await?;
    let mut visits: Vec<VisitRecord> =
        tokens.iter().map(|token| visit(token.site.as_str(), start(), Vec::new())).collect();
    visits[0].fetches = vec![found(AT, "one", &["book"], start())];
    visits[3].robots = vec![robots("none.example"), robots("www.none.example")];
    let mut batch: Vec<_> = tokens.iter().zip(&visits).collect();
    // The first visit a second time, and the visit of the worker that now holds the lease.
    batch.extend([(&tokens[0], &visits[0]), (&again, &visits[1])]);
    let saved = store.visits_save(&batch).await?;
    let expected = VisitSaved { manifests_added: 1, capabilities: 1, ..VisitSaved::default() };
    assert_eq!(saved[0].as_ref().ok(), Some(&expected));
    assert!(
        matches!(&saved[1], Err(StoreError::LeaseLost { site }) if site.as_str() == "lost.example"),
        "{saved:?}"
    );
    assert!(matches!(&saved[2], Err(StoreError::Blocked { .. })), "{saved:?}");
    assert_eq!(saved[3].as_ref().ok(), Some(&VisitSaved::default()));
    assert!(matches!(&saved[4], Err(StoreError::LeaseLost { .. })), "{saved:?}");
    assert_eq!(saved[5].as_ref().ok(), Some(&VisitSaved::default()));
    assert_eq!(feed_after(&store, 0).await?, says(&[("added", "")]));
    let counts = store.stats(start()).await?;
    assert_eq!((counts.visits, counts.manifests, counts.sites_leased), (3, 1, 0));
    let report = store.site_report(&site("none.example"), 2).await?.context("the report of the site")?;
    let hosts: Vec<_> =
        report.state.hosts.iter().map(|host| (host.is_seeded(), host.robots.is_some())).collect();
    assert_eq!((hosts, report.visits.len()), (vec![(true, true), (false, true)], 1));
    Ok(())
}

pub(crate) async fn failed_visit_does_not_block_others_of_its_batch(Db { store, .. }: Db) -> Result<()> {
    let mut tokens = Vec::new();
    for name in ["one.example", "sky.example", "two.example"] {
        tokens.push(leased(&store, name, start()).await?.token);
    }
    let mut visits: Vec<VisitRecord> =
        tokens.iter().map(|token| visit(token.site.as_str(), start(), Vec::new())).collect();
    let mut wrong = found(AT, "one", &["book"], start());
    wrong.manifest = Some(Box::new(manifest("https://sky.example/other.json", &body("one"), &["book"])));
    visits[1].fetches = vec![wrong];
    let saved = store.visits_save(&tokens.iter().zip(&visits).collect::<Vec<_>>()).await?;
    let results: Vec<bool> = saved.iter().map(Result::is_ok).collect();
    assert_eq!(results, [true, false, true], "{saved:?}");
    assert!(matches!(saved[1], Err(StoreError::Unstorable { what: "manifest", .. })), "{saved:?}");
    let counts = store.stats(start()).await?;
    assert_eq!((counts.visits, counts.manifests, counts.sites_leased), (2, 0, 1));
    Ok(())
}

pub(crate) async fn damaged_manifest_writes_nothing(Db { store, .. }: Db) -> Result<()> {
    let token = leased(&store, "sky.example", start()).await?.token;
    let mut wrong = found(AT, "one", &["book"], start());
    wrong.manifest = Some(Box::new(manifest("https://sky.example/other.json", &body("one"), &["book"])));
    let record =
        VisitRecord { robots: vec![robots("sky.example")], ..visit("sky.example", start(), vec![wrong]) };
    let error = store.visit_save(&token, &record).await.err();
    assert!(matches!(error, Some(StoreError::Unstorable { what: "manifest", .. })), "{error:?}");
    let elsewhere = visit("other.example", start(), Vec::new());
    let error = store.visit_save(&token, &elsewhere).await.err();
    assert!(matches!(error, Some(StoreError::Unstorable { what: "visit", .. })), "{error:?}");
    assert_eq!(store.stats(start()).await?.sites_leased, 1, "the lease is still held");
    Ok(())
}

pub(crate) async fn unchanged_manifest_adds_no_feed_row(Db { store, .. }: Db) -> Result<()> {
    visited(&store, "sky.example", start(), vec![found(AT, "one", &["book"], start())]).await?;
    assert_eq!(feed_after(&store, 0).await?, says(&[("added", "")]));
    let same =
        visited(&store, "sky.example", later(10), vec![found(AT, "one", &["book"], later(10))]).await?;
    assert_eq!(same, VisitSaved { capabilities: 1, ..VisitSaved::default() });
    let not_modified = fetch(AT, FetchOutcome::NotModified, later(20));
    visited(&store, "sky.example", later(20), vec![not_modified]).await?;
    visited(&store, "sky.example", later(30), vec![fetch(AT, FetchOutcome::Fresh, later(30))]).await?;
    assert_eq!(feed_after(&store, 1).await?, says(&[]));
    let stored = store.manifest_find(&ManifestId::of(&url(AT))).await?.context("the manifest")?;
    assert_eq!((stored.versions, stored.last_seen_at, stored.changed_at), (1, later(20), start()));
    let versions = store.manifest_versions(&ManifestId::of(&url(AT)), 100).await?;
    let times: Vec<_> =
        versions.iter().map(|version| (version.first_seen_at, version.last_seen_at)).collect();
    assert_eq!(times, [(start(), later(20))]);
    let state = lease(&store, "sky.example", later(40)).await?.site;
    let resource = state.resources.first().context("the resource")?;
    assert_eq!((resource.outcome, resource.fetched_at), (FetchOutcome::NotModified, later(20)));
    assert_eq!(resource.etag.as_deref(), Some("\"one\""));
    Ok(())
}

pub(crate) async fn keeps_the_last_50_visits(Db { store, .. }: Db) -> Result<()> {
    for number in 0..60 {
        visited(&store, "sky.example", later(number), Vec::new()).await?;
    }
    visited(&store, "other.example", start(), Vec::new()).await?;
    let report = store.site_report(&site("sky.example"), 1_000).await?.context("the report of the site")?;
    assert_eq!(report.visits.len(), 50);
    assert_eq!(report.visits.first().map(|visit| visit.started_at), Some(later(59)));
    assert_eq!(report.state.visits, 60);
    assert_eq!(store.stats(later(60)).await?.visits, 61);
    Ok(())
}

pub(crate) async fn unicode_and_control_characters_survive(Db { store, .. }: Db) -> Result<()> {
    let at = "https://xn--bcher-kva.example/агент.json?q=%F0%9F%9B%AB";
    let mut read = found(at, "Ünïcödé 日本語 🛫 \u{202e}", &["予約する", "nul\u{0}inside"], start());
    read.etag = Some("\"é\u{0}\"".into());
    read.reason = Some("naïve\u{0}".into());
    let document = read.body.clone();
    let expected = read.manifest.clone().context("a manifest")?;
    visited(&store, "bücher.example", start(), vec![read]).await?;
    let stored = store.manifest_find(&expected.id).await?.context("the manifest")?;
    assert_eq!(stored.manifest, *expected);
    assert_eq!(store.document_find(&expected.content_hash).await?, document);
    let state = lease(&store, "bücher.example", later(1)).await?.site;
    let resource = state.resources.first().context("the resource")?;
    assert_eq!(resource.etag.as_deref(), Some("\"é\""), "PostgreSQL cannot store NUL in TEXT");
    let types = store.semantic_types().await?;
    assert!(types.iter().any(|count| count.name == "travel:予約する"), "{types:?}");
    Ok(())
}

pub(crate) async fn stores_large_bodies_and_many_capabilities(Db { store, .. }: Db) -> Result<()> {
    // Bytes that do not compress, at the size limit of a manifest.
    let mut state = 0x2545_F491_4F6C_DD1D_u64;
    let noise: Vec<u8> = (0..4 * 1024 * 1024)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state.to_le_bytes()[0]
        })
        .collect();
    let names: Vec<String> = (0..3_000).map(|number| format!("tool_{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).chain(["tool_1"]).collect();
    let read = manifest(AT, &noise, &names);
    let fetched = FetchRecord {
        content_hash: Some(read.content_hash.clone()),
        body: Some(noise.clone()),
        manifest: Some(Box::new(read.clone())),
        ..fetch(AT, FetchOutcome::Found, start())
    };
    visited(&store, "sky.example", start(), vec![fetched]).await?;
    assert_eq!(store.document_find(&read.content_hash).await?, Some(noise));
    let stored = store.manifest_find(&read.id).await?.context("the manifest")?;
    assert_eq!(stored.manifest.capabilities.len(), 3_001);
    let counts = store.stats(start()).await?;
    assert_eq!((counts.capabilities, counts.document_bytes), (3_000, 4 * 1024 * 1024));
    Ok(())
}

pub(crate) async fn keeps_validators_when_the_server_fails(Db { store, .. }: Db) -> Result<()> {
    visited(&store, "sky.example", start(), vec![found(AT, "one", &["book"], start())]).await?;
    visited(&store, "sky.example", later(5), vec![fetch(AT, FetchOutcome::ServerError, later(5))]).await?;
    let state = lease(&store, "sky.example", later(6)).await?.site;
    let resource = state.resources.first().context("the resource")?;
    assert_eq!(resource.etag.as_deref(), Some("\"one\""));
    assert_eq!(resource.last_modified.as_deref(), Some("Sat, 21 Nov 2026 08:00:00 GMT"));
    assert_eq!(resource.cache, Some(serde_json::json!({ "max_age": 60 })));
    assert_eq!(resource.content_hash, Some(ContentHash::of(&body("one"))));
    assert_eq!((resource.outcome, resource.fetched_at), (FetchOutcome::ServerError, later(5)));
    assert_eq!((resource.changed_at, resource.misses_in_row), (Some(start()), 0));
    assert_eq!(resource.manifest_id, Some(ManifestId::of(&url(AT))));
    Ok(())
}

pub(crate) async fn stores_no_row_for_paths_without_content(db: Db) -> Result<()> {
    let paths: Vec<FetchRecord> = (0..20)
        .map(|number| fetch(&format!("https://none.example/{number}"), FetchOutcome::NotFound, start()))
        .collect();
    let hinted = Seed { url: Some(url("https://none.example/3")), ..seed("none.example") };
    db.store.seeds_add(&[hinted], start()).await?;
    visited(&db.store, "none.example", start(), paths).await?;
    assert_eq!(db.number("SELECT COUNT(*) FROM resource").await?, 1, "only the hinted one");
    let state = lease(&db.store, "none.example", later(1)).await?.site;
    assert!(state.hints.is_empty(), "it was fetched");
    let known: Vec<_> =
        state.resources.iter().map(|known| (known.url.as_str(), known.misses_in_row)).collect();
    assert_eq!(known, [("https://none.example/3", 1)]);
    let report = db.store.site_report(&site("none.example"), 1).await?.context("the report of the site")?;
    assert_eq!(report.visits.first().map(|visit| visit.fetches.len()), Some(20));
    Ok(())
}

pub(crate) async fn robots_and_path_slots_survive_a_round_trip(Db { store, .. }: Db) -> Result<()> {
    let token = leased(&store, "sky.example", start()).await?.token;
    let mut slots = PathSlots::new();
    slots.set(2, PathCheck { class: 4, day: 20_000 });
    let (apex, www) = (robots("sky.example"), robots("www.sky.example"));
    let unreachable =
        RobotsRecord { kind: RobotsKind::Unreachable, cause: Some("503".into()), body: None, ..www.clone() };
    let record = VisitRecord {
        robots: vec![apex.clone(), www],
        paths_checked: slots.clone(),
        failures_in_row: 3,
        negatives_in_row: 4,
        ..visit("sky.example", start(), Vec::new())
    };
    store.visit_save(&token, &record).await?;
    let token = lease(&store, "sky.example", later(1)).await?.token;
    let record = VisitRecord { robots: vec![unreachable.clone()], ..record };
    store.visit_save(&token, &record).await?;
    let state = lease(&store, "sky.example", later(2)).await?.site;
    let known: Vec<_> = state.hosts.iter().map(|host| (host.is_seeded(), host.robots.clone())).collect();
    assert_eq!(known, [(true, Some(apex)), (false, Some(unreachable))]);
    assert_eq!(state.paths_checked, slots);
    assert_eq!((state.failures_in_row, state.negatives_in_row, state.visits), (3, 4, 2));
    assert_eq!((state.status, state.last_end), (Status::Fresh, Some(VisitEnd::Completed)));
    Ok(())
}

pub(crate) async fn only_short_robots_of_main_hosts_are_read_with_a_site(Db { store, .. }: Db) -> Result<()> {
    let token = leased(&store, "sky.example", start()).await?.token;
    let hosts: Vec<String> = (0..8).map(|number| format!("h{number}.sky.example")).collect();
    let names = ["sky.example", "www.sky.example"].into_iter().chain(hosts.iter().map(String::as_str));
    let long: Arc<[u8]> = b"User-agent: *\nDisallow: /a\n".repeat(4_000).into();
    let written = |name: &str| {
        let short = robots(name);
        if name == "sky.example" { short } else { RobotsRecord { body: Some(Arc::clone(&long)), ..short } }
    };
    let records: Vec<_> = names.map(written).collect();
    let record = VisitRecord { robots: records.clone(), ..visit("sky.example", start(), Vec::new()) };
    store.visit_save(&token, &record).await?;
    for host in lease(&store, "sky.example", later(1)).await?.site.hosts {
        let known = host.robots.context("a known robots.txt")?;
        let written = records.iter().find(|record| record.host == host.host).context("it was written")?;
        let expected = written.body.clone().filter(|_| host.host.as_str() == "sky.example");
        assert_eq!((known.body, known.kind), (expected, written.kind), "{}", host.host);
        assert_eq!(store.robots_body(&host.host).await?.as_deref(), written.body.as_deref());
    }
    assert_eq!(store.robots_body(&host("none.example")).await?, None);
    let brief = store.site_report_brief(&site("sky.example"), 1, 200).await?.context("a report")?;
    let starts: Vec<_> =
        brief.state.hosts.iter().filter_map(|host| host.robots.as_ref()?.body.clone()).collect();
    assert_eq!(starts.len(), 4);
    assert!(starts.iter().all(|start| start.len() <= 16 * 1024));
    assert!(starts.iter().any(|start| long.starts_with(start) && start.len() == 16 * 1024));
    Ok(())
}

/// Anybody can submit and link to any number of hosts below a domain, and visits request some of them.
pub(crate) async fn a_brief_report_has_the_hosts_of_the_site_before_those_that_others_name(
    db: Db,
) -> Result<()> {
    let store = &db.store;
    let with_manifest = found("https://x.shop.example/agent.json", "x", &["book"], start());
    visited(store, "shop.example", start(), vec![with_manifest]).await?;
    store.seeds_add(&[seed("y.shop.example"), seed("www.shop.example")], start()).await?;
    db.execute(
        "INSERT INTO host (host, site, seeded) VALUES ('x.shop.example', 'shop.example', 0) ON CONFLICT (host) DO NOTHING",
    )
    .await?;
    db.execute(
        "INSERT INTO host (host, site, seeded, next_ok_at_ms)
         WITH RECURSIVE number (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < 300)
         SELECT 'a' || n || '.shop.example', 'shop.example', 1, n FROM number",
    )
    .await?;
    let report = store.site_report_brief(&site("shop.example"), 1, 9).await?.context("a report")?;
    let hosts: Vec<&str> = report.state.hosts.iter().map(|host| host.host.as_str()).collect();
    let own = ["www.shop.example", "x.shop.example", "y.shop.example"];
    assert!(hosts.len() == 9 && own.iter().all(|host| hosts.contains(host)), "{hosts:?}");
    Ok(())
}

pub(crate) async fn hosts_that_visits_discovered_are_bounded(db: Db) -> Result<()> {
    let store = &db.store;
    visited(store, "sky.example", start(), Vec::new()).await?;
    db.execute(
        "INSERT INTO host (host, site, seeded, next_ok_at_ms)
         WITH RECURSIVE number (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < 1200)
         SELECT 'h' || n || '.sky.example', 'sky.example', 0, n FROM number",
    )
    .await?;
    let now = later(60);
    let ms = visit("sky.example", now, Vec::new()).ended_at.timestamp_millis();
    let day = ms / 86_400_000;
    for statement in [
        format!("UPDATE host SET next_ok_at_ms = {ms} + 1 WHERE host = 'h1.sky.example'"),
        format!("UPDATE host SET not_before_ms = {ms} + 1 WHERE host = 'h2.sky.example'"),
        format!("UPDATE host SET requests_today = 1, requests_day = {day} WHERE host = 'h3.sky.example'"),
        "UPDATE host SET seeded = 1 WHERE host = 'h4.sky.example'".to_owned(),
        format!(
            "INSERT INTO robots (host, site, kind, fetched_at_ms, expires_at_ms, failures_in_row)
             VALUES ('h5.sky.example', 'sky.example', 'denied', 1, {ms} + 1, 0),
                    ('h6.sky.example', 'sky.example', 'denied', 1, {ms} - 1, 0)"
        ),
    ] {
        db.execute(&statement).await?;
    }
    let token = lease(store, "sky.example", later(1)).await?.token;
    let robots = ["b", "c", "d", "e", "f"].map(|name| robots(&format!("{name}.sky.example"))).to_vec();
    let robots = robots.into_iter().map(|record| RobotsRecord { expires_at: later(90), ..record }).collect();
    let seen = found("https://h7.sky.example/agent.json", "one", &["book"], now);
    let record = VisitRecord { robots, ..visit("sky.example", now, vec![seen]) };
    store.visit_save(&token, &record).await?;
    let kept = lease(store, "sky.example", later(120)).await?.site.hosts;
    let met = kept.iter().filter(|host| !host.is_seeded()).count();
    assert_eq!(met, 1_000);
    let has = |name: &str| kept.iter().any(|host| host.host.as_str() == name);
    for name in ["b", "f", "h1", "h2", "h3", "h4", "h5", "h7", "h1200"] {
        assert!(has(&format!("{name}.sky.example")), "{name}");
    }
    assert!(!has("h6.sky.example") && !has("h8.sky.example"), "the longest unused ones are removed");
    Ok(())
}

/// These bytes were received only as a part of another manifest. With their validators, the next response would confirm a version that was
/// not read.
pub(crate) async fn validators_move_only_with_what_was_read(Db { store, .. }: Db) -> Result<()> {
    visited(&store, "sky.example", start(), vec![found(AT, "one", &["book"], start())]).await?;
    let as_part =
        |text: &str, minutes| FetchRecord { manifest: None, ..found(AT, text, &["book"], later(minutes)) };
    visited(&store, "sky.example", later(5), vec![as_part("one", 5)]).await?;
    let known = lease(&store, "sky.example", later(6)).await?.site.resources;
    assert_eq!(known.first().context("the resource")?.etag.as_deref(), Some("\"one\""), "the same bytes");
    visited(&store, "sky.example", later(10), vec![as_part("two", 10)]).await?;
    let known = lease(&store, "sky.example", later(11)).await?.site.resources;
    let known = known.first().context("the resource")?;
    assert_eq!((&known.etag, &known.last_modified, &known.cache), (&None, &None, &None));
    let saved =
        visited(&store, "sky.example", later(20), vec![found(AT, "two", &["book"], later(20))]).await?;
    assert_eq!(saved.manifests_changed, 1, "the manifest is read when it is received in full");
    Ok(())
}

/// The bytes are the same, and a later version of the program reads something else in them.
pub(crate) async fn a_later_reader_replaces_what_an_earlier_one_read(db: Db) -> Result<()> {
    const SHOP: &str = "shop.example";
    const AT: &str = "https://shop.example/agent.json";
    let store = &db.store;
    let id = ManifestId::of(&url(AT));
    visited(store, SHOP, later(0), vec![found(AT, "1", &["book"], later(0))]).await?;
    let current = [READER_VERSION.to_string()];
    for (round, earlier) in ["1", "NULL"].into_iter().enumerate() {
        db.execute(&format!("UPDATE manifest SET reader_version = {earlier}")).await?;
        let now = later(9 + 20 * i64::try_from(round)?);
        let leased = leased(store, SHOP, now).await?;
        assert_eq!(leased.site.outdated, BTreeSet::from([id.clone()]));
        let name = format!("pay{round}");
        let read = FetchRecord { outcome: FetchOutcome::NotModified, ..found(AT, "1", &[&name], now) };
        let head = store.feed_head().await?.0;
        store.visit_save(&leased.token, &visit(SHOP, now, vec![read])).await?;
        assert_eq!(feed_after(store, head).await?, says(&[("status_changed", "read_again")]));
        let stored = store.manifest_find(&id).await?.context("a manifest")?;
        let names: Vec<&str> =
            stored.manifest.capabilities.iter().map(|capability| capability.native_id.as_str()).collect();
        assert_eq!((names, stored.versions), (vec![name.as_str()], 1));
        assert_eq!(db.texts("SELECT native_id FROM capability").await?, [name]);
        assert_eq!(db.texts("SELECT CAST(reader_version AS TEXT) FROM manifest").await?, current);
    }
    let leased = leased(store, SHOP, later(90)).await?;
    assert!(leased.site.outdated.is_empty());
    Ok(())
}

const SHOP: &str = "shop.example";
const SHOP_AT: &str = "https://shop.example/agent.json";

/// A shop whose manifest an earlier version of the reader read.
async fn shop_of_an_earlier_reader(db: &Db) -> Result<()> {
    visited(&db.store, SHOP, later(0), vec![found(SHOP_AT, "1", &["book"], later(0))]).await?;
    db.execute("UPDATE manifest SET reader_version = 1").await
}

/// The native ids of the shop's capabilities, according to its manifest.
async fn capabilities_of_shop(store: &Store) -> Result<Vec<String>> {
    let stored = store.manifest_find(&ManifestId::of(&url(SHOP_AT))).await?.context("a manifest")?;
    Ok(stored.manifest.capabilities.into_iter().map(|capability| capability.native_id).collect())
}

pub(crate) async fn a_later_reader_with_an_equal_reading_writes_its_version(db: Db) -> Result<()> {
    shop_of_an_earlier_reader(&db).await?;
    let head = db.store.feed_head().await?.0;
    for (minutes, outcome) in [(9, FetchOutcome::NotModified), (20, FetchOutcome::Found)] {
        db.execute("UPDATE manifest SET reader_version = 1").await?;
        let read = found(SHOP_AT, "1", &["other"], later(minutes));
        let read = FetchRecord { outcome, is_stored_reading: true, ..read };
        visited(&db.store, SHOP, later(minutes), vec![read]).await?;
        assert_eq!(feed_after(&db.store, head).await?, says(&[]));
        assert_eq!(capabilities_of_shop(&db.store).await?, ["book"], "it is not written again");
        let current = db.number("SELECT reader_version FROM manifest").await?;
        assert_eq!(current, i64::from(READER_VERSION));
    }
    Ok(())
}

pub(crate) async fn a_document_that_was_not_requested_is_not_confirmed(db: Db) -> Result<()> {
    shop_of_an_earlier_reader(&db).await?;
    db.execute("UPDATE manifest SET status = 'stale'").await?;
    let seen = "SELECT CAST(MIN(last_seen_at_ms) AS TEXT) FROM (SELECT last_seen_at_ms FROM manifest
                UNION ALL SELECT last_seen_at_ms FROM manifest_version) AS seen";
    let before = db.texts(seen).await?;
    let fresh = FetchRecord { outcome: FetchOutcome::Fresh, ..found(SHOP_AT, "1", &["pay"], later(9)) };
    visited(&db.store, SHOP, later(9), vec![fresh]).await?;
    assert_eq!(capabilities_of_shop(&db.store).await?, ["pay"]);
    assert_eq!(db.texts("SELECT status FROM manifest").await?, ["stale"]);
    assert_eq!(db.texts(&seen.replace("MIN", "MAX")).await?, before);
    Ok(())
}

/// Such a program updates neither the version of the reader nor the publisher.
pub(crate) async fn an_earlier_program_leaves_outdated_manifests(db: Db) -> Result<()> {
    let store = &db.store;
    visited(store, SHOP, later(0), vec![found(SHOP_AT, "1", &["book"], later(0))]).await?;
    db.execute("UPDATE manifest SET version = version + 1").await?;
    db.execute("UPDATE manifest_version SET version = version + 1").await?;
    let outdated = BTreeSet::from([ManifestId::of(&url(SHOP_AT))]);
    assert_eq!(leased(store, SHOP, later(9)).await?.site.outdated, outdated);
    let unchanged = fetch(SHOP_AT, FetchOutcome::NotModified, later(20));
    visited(store, SHOP, later(20), vec![unchanged]).await?;
    assert_eq!(db.texts("SELECT publisher FROM manifest WHERE read_version = version").await?, ["site"]);
    assert_eq!(leased(store, SHOP, later(30)).await?.site.outdated, outdated, "it was not read");
    let read = FetchRecord { outcome: FetchOutcome::Fresh, ..found(SHOP_AT, "1", &["pay"], later(40)) };
    visited(store, SHOP, later(40), vec![read]).await?;
    assert!(leased(store, SHOP, later(50)).await?.site.outdated.is_empty());
    assert_eq!(capabilities_of_shop(store).await?, ["pay"]);
    Ok(())
}
