//! Lists, counts and look-ups.

use std::time::Duration;

use anyhow::{Context, Result};
use chrono::TimeDelta;
use manifest::{CapabilityId, ContentHash, Format, Manifest, ManifestId};
use policy::{FetchOutcome, Status, VisitEnd};
use sqlx::Connection as _;
use store::{
    Backend, DatabaseUrl, FeedPosition, FetchRecord, PackedManifest, PathCheck, PathSlots, SemanticTypeCount,
    SitesRequest, Store, StoreError, StoredManifest, VisitRecord, VisitsOfInterval, WorkerLoad,
};

use crate::build::{
    body, fetch, found, later, lease, leased, seed, site, start, url, visit, visited, worker,
};
use crate::declarations::cpu_ticks;
use crate::harness::Db;

pub(crate) async fn pages_manifests_by_id(Db { store, .. }: Db) -> Result<()> {
    for number in 0..7 {
        let (name, at) = (format!("s{number}.example"), format!("https://s{number}.example/agent.json"));
        visited(&store, &name, start(), vec![found(&at, &name, &["book"], start())]).await?;
    }
    let mut ids: Vec<ManifestId> = Vec::new();
    loop {
        let page = store.manifests_page(ids.last(), 3).await?;
        if page.is_empty() {
            break;
        }
        ids.extend(page.into_iter().map(|stored| stored.manifest.id));
    }
    assert_eq!(ids.len(), 7);
    assert!(ids.is_sorted());
    let mut loaded: Vec<ManifestId> =
        store.manifests_load(&ids).await?.into_iter().map(|stored| stored.manifest.id).collect();
    loaded.sort_unstable();
    assert_eq!(loaded, ids);
    Ok(())
}

/// A manifest of this many bytes.
fn of_bytes(name: &str, bytes: usize) -> FetchRecord {
    let mut fetch = found(&format!("https://{name}/agent.json"), name, &["book"], start());
    if let Some(manifest) = &mut fetch.manifest {
        manifest.description = Some("x".repeat(bytes));
    }
    fetch
}

pub(crate) async fn bounds_pages_of_manifests_by_bytes(Db { store, .. }: Db) -> Result<()> {
    for (number, bytes) in [400_000, 400_000, 400_000, 3_000_000, 400_000, 1_000].into_iter().enumerate() {
        let name = format!("s{number}.example");
        visited(&store, &name, start(), vec![of_bytes(&name, bytes)]).await?;
    }
    let mut ids: Vec<ManifestId> = Vec::new();
    loop {
        let page = store.manifests_page(ids.last(), 100).await?;
        if page.is_empty() {
            break;
        }
        let bytes: usize =
            page.iter().map(|stored| json(&stored.manifest).map(|json| json.len())).sum::<Result<_>>()?;
        assert!(page.len() == 1 || bytes <= 1024 * 1024, "{} manifests of {bytes} bytes", page.len());
        ids.extend(page.into_iter().map(|stored| stored.manifest.id));
    }
    assert_eq!(ids.len(), 6);
    let sizes = store.manifest_sizes_after(None, 100).await?;
    assert_eq!(sizes.len(), 6);
    let formats = [Format::McpCard, Format::Awp];
    assert_eq!(store.manifest_sizes_of_formats_after(&formats, None, 100).await?, sizes);
    let rest = store.manifest_sizes_of_formats_after(&formats, Some(&ids[1]), 3).await?;
    assert_eq!(rest, sizes[2..5]);
    assert_eq!(store.manifest_sizes_of_formats_after(&formats[..1], None, 100).await?, []);
    for size in sizes {
        let stored = store.manifest_find(&size.id).await?.context("a manifest")?;
        assert_eq!(size.bytes, json(&stored.manifest)?.len() as u64, "known before it is read");
    }
    Ok(())
}

fn json(manifest: &Manifest) -> Result<Vec<u8>> {
    Ok(serde_json::to_vec(manifest)?)
}

pub(crate) async fn loads_manifests_in_the_requested_order(Db { store, .. }: Db) -> Result<()> {
    let mut ids = Vec::new();
    for number in 0..6 {
        let name = format!("s{number}.example");
        visited(&store, &name, start(), vec![of_bytes(&name, 400_000)]).await?;
        ids.push(ManifestId::of(&url(&format!("https://{name}/agent.json"))));
    }
    ids.sort();
    ids.reverse();
    let unknown = ManifestId::of(&url("https://none.example/agent.json"));
    let wanted: Vec<ManifestId> = ids.iter().chain([&unknown, &ids[0]]).cloned().collect();
    let batches = store.manifest_batches(&wanted).await?;
    assert_eq!(batches.iter().map(|batch| batch.ids.len()).collect::<Vec<_>>(), [2, 2, 2]);
    assert_eq!(batches.iter().flat_map(|batch| batch.ids.clone()).collect::<Vec<_>>(), ids);
    let loaded = store.manifests_load(&ids).await?;
    let of = |stored: &StoredManifest| stored.manifest.id.clone();
    assert_eq!(loaded.iter().map(of).collect::<Vec<_>>(), ids);
    let packed = store.manifests_packed(&ids).await?;
    assert!(packed.iter().all(|packed| (400_000..500_000).contains(&packed.json_bytes())));
    let unpacked: Vec<StoredManifest> = packed.iter().filter_map(PackedManifest::unpacked).collect();
    assert_eq!(unpacked, loaded);
    Ok(())
}

pub(crate) async fn interrupts_lists_of_sites_after_their_deadline(db: Db) -> Result<()> {
    let store = &db.store;
    let names: Vec<String> = (0..5_000).map(|number| format!("s{number:04}.example")).collect();
    store.seeds_add(&names.iter().map(|name| seed(name)).collect::<Vec<_>>(), start()).await?;
    let list = SitesRequest { max: 5_000, ..SitesRequest::default() };
    if store.backend() == Backend::Sqlite {
        let hasty = SitesRequest { time_max: Some(Duration::ZERO), ..list.clone() };
        let (page, count) = (store.sites_page(&hasty).await, store.sites_count(&hasty).await);
        assert!(matches!(page, Err(StoreError::Interrupted { .. })), "{page:?}");
        assert!(matches!(count, Err(StoreError::Interrupted { .. })), "{count:?}");
        // Dropping the caller interrupts its statement, and the connection can be used again.
        for _ in 0..10 {
            drop(tokio::time::timeout(Duration::from_micros(200), store.sites_page(&list)).await);
        }
    }
    if let DatabaseUrl::Postgres(url) = &db.config.url {
        let mut other = sqlx::PgConnection::connect(url).await?;
        let mut transaction = other.begin().await?;
        let lock = "LOCK TABLE site, site_state IN ACCESS EXCLUSIVE MODE";
        sqlx::raw_sql(lock).execute(&mut *transaction).await?;
        let hasty = SitesRequest { time_max: Some(Duration::from_millis(50)), ..list.clone() };
        let (page, count) = (store.sites_page(&hasty).await, store.sites_count(&hasty).await);
        assert!(matches!(page, Err(StoreError::Interrupted { .. })), "{page:?}");
        assert!(matches!(count, Err(StoreError::Interrupted { .. })), "{count:?}");
        transaction.rollback().await?;
    }
    let patient = SitesRequest { time_max: Some(Duration::from_mins(1)), ..list };
    assert_eq!((store.sites_page(&patient).await?.len(), store.sites_count(&patient).await?), (5_000, 5_000));
    Ok(())
}

pub(crate) async fn pages_and_filters_sites(Db { store, .. }: Db) -> Result<()> {
    let names: Vec<String> = (0..25).map(|number| format!("s{number:02}.example")).collect();
    store.seeds_add(&names.iter().map(|name| seed(name)).collect::<Vec<_>>(), start()).await?;
    for name in ["s03.example", "s17.example"] {
        let at = format!("https://{name}/agent.json");
        visited(&store, name, start(), vec![found(&at, name, &["book"], start())]).await?;
    }
    let mut listed: Vec<String> = Vec::new();
    let mut request = SitesRequest { max: 10, ..SitesRequest::default() };
    loop {
        let page = store.sites_page(&request).await?;
        let Some(last) = page.last() else { break };
        request.after = Some(last.name.clone());
        listed.extend(page.iter().map(|summary| summary.name.to_string()));
    }
    assert_eq!(listed, names);
    assert_eq!(store.sites_count(&request).await?, 25, "the count covers all pages");
    let found_by = async |request: SitesRequest| -> Result<(Vec<String>, u64)> {
        let request = SitesRequest { max: 100, ..request };
        let (page, total) = (store.sites_page(&request).await?, store.sites_count(&request).await?);
        Ok((page.iter().map(|summary| summary.name.to_string()).collect(), total))
    };
    let any = SitesRequest::default();
    let with = SitesRequest { with_manifests: Some(true), ..any.clone() };
    assert_eq!(found_by(with).await?, (vec!["s03.example".into(), "s17.example".into()], 2));
    let without = SitesRequest { with_manifests: Some(false), ..any.clone() };
    assert_eq!(found_by(without).await?.1, 23);
    let prefixed = SitesRequest { prefix: Some("s1".into()), ..any.clone() };
    assert_eq!(found_by(prefixed).await?.1, 10);
    let wild = SitesRequest { prefix: Some("%".into()), ..any.clone() };
    assert_eq!(found_by(wild).await?.1, 0, "a prefix is not a pattern");
    let part = |text: &str| SitesRequest { contains: Some(text.into()), ..any.clone() };
    assert_eq!(found_by(part("7.ex")).await?, (vec!["s07.example".into(), "s17.example".into()], 2));
    for wild in ["%7", "s_7", "\\"] {
        assert_eq!(found_by(part(wild)).await?.1, 0, "a part is not a pattern");
    }
    let unreadable = SitesRequest { readable: Some(false), ..any.clone() };
    assert_eq!(found_by(unreadable.clone()).await?.1, 0);
    let at = "https://s05.example/agent.json";
    let mut broken = found(at, "s05.example", &[], start());
    if let Some(manifest) = &mut broken.manifest {
        manifest.detection.format = Format::Malformed;
    }
    visited(&store, "s05.example", start(), vec![broken]).await?;
    assert_eq!(found_by(unreadable).await?, (vec!["s05.example".into()], 1));
    let others = SitesRequest { readable: Some(true), ..any.clone() };
    assert_eq!(found_by(others).await?.1, 24);
    let both = SitesRequest { status: Some(Status::Fresh), prefix: Some("s1".into()), ..any };
    assert_eq!(found_by(both).await?, (vec!["s17.example".into()], 1));
    Ok(())
}

pub(crate) async fn stats_count_all_rows(Db { store, .. }: Db) -> Result<()> {
    let empty = store.stats(start()).await?;
    assert_eq!(empty, store::Stats::default());
    let day_ago = start() - TimeDelta::days(2);
    visited(
        &store,
        "old.example",
        day_ago,
        vec![fetch("https://old.example/a", FetchOutcome::NotFound, day_ago)],
    )
    .await?;
    for name in ["a", "b"] {
        let (name, at) = (format!("{name}.example"), format!("https://{name}.example/agent.json"));
        let missing = fetch(&format!("https://{name}/x"), FetchOutcome::NotFound, start());
        let fetches = vec![missing.clone(), found(&at, &name, &["book", "cancel"], start()), missing];
        visited(&store, &name, start(), fetches).await?;
    }
    leased(&store, "held.example", start()).await?;
    store.seeds_add(&[seed("due.example")], start()).await?;
    let stats = store.stats(later(1)).await?;
    assert_eq!((stats.sites, stats.sites_due, stats.sites_leased, stats.visits), (5, 2, 1, 3));
    assert_eq!((stats.manifests, stats.capabilities, stats.documents), (2, 4, 2));
    assert_eq!(stats.document_bytes, (body("a.example").len() + body("b.example").len()) as u64);
    assert_eq!(stats.manifests_by_format, [(Format::Awp, 2)]);
    assert_eq!(stats.sites_by_status, [(Status::Fresh, 3), (Status::Pending, 2)]);
    assert_eq!(stats.ends_last_day, [(VisitEnd::Completed, 2)]);
    assert_eq!(stats.outcomes_last_day, [(FetchOutcome::NotFound, 4), (FetchOutcome::Found, 2)]);
    assert_eq!(stats.oldest_due_at, Some(day_ago + TimeDelta::days(1)));
    assert_eq!(stats.last_visit_at, Some(start() + TimeDelta::seconds(30)));
    assert_eq!(store.feed_head().await?, FeedPosition(2));
    Ok(())
}

pub(crate) async fn lists_dialect_usage_and_newest_sites(Db { store, .. }: Db) -> Result<()> {
    let later = |index: i64| start() + TimeDelta::hours(index);
    for (index, (name, paths)) in
        [("a.example", &["agent.json"][..]), ("b.example", &["agent.json", "more.json"])]
            .into_iter()
            .enumerate()
    {
        let at = later(i64::try_from(index)?);
        let found = paths.iter().map(|path| found(&format!("https://{name}/{path}"), name, &["book"], at));
        visited(&store, name, at, found.collect()).await?;
    }
    visited(&store, "nothing.example", later(2), Vec::new()).await?;
    let adoption = store.dialect_usage().await?;
    let listed: Vec<_> =
        adoption.iter().map(|dialect| (dialect.format, dialect.sites, dialect.manifests)).collect();
    assert_eq!(listed, [(Format::Awp, 2, 3)]);
    let judged: u64 = adoption.iter().map(|dialect| dialect.conforms + dialect.minor + dialect.major).sum();
    assert_eq!(judged, 3, "every manifest has its verdict");

    let newest = store.sites_newest(10).await?;
    let listed: Vec<_> = newest.iter().map(|new| (new.site.as_str(), new.since, new.capabilities)).collect();
    assert_eq!(
        listed,
        [("b.example", later(1), 1), ("a.example", later(0), 1)],
        "equal documents declare one capability"
    );
    assert_eq!(store.sites_newest(1).await?.len(), 1);
    Ok(())
}

pub(crate) async fn counts_visits_by_interval_and_lists_workers(Db { store, .. }: Db) -> Result<()> {
    let hour = |index: i64| start() + TimeDelta::hours(index);
    for (name, at) in
        [("old.example", hour(-3)), ("a.example", hour(0)), ("b.example", hour(0)), ("c.example", hour(1))]
    {
        visited(&store, name, at, Vec::new()).await?;
    }
    let listed = store.visits_by_interval(hour(-1), TimeDelta::hours(1)).await?;
    let requests = u64::from(visit("a.example", hour(0), Vec::new()).requests);
    let of = |begins_at, count| VisitsOfInterval {
        begins_at,
        end: VisitEnd::Completed,
        count,
        requests: count * requests,
    };
    assert_eq!(listed, [of(hour(0), 2), of(hour(1), 1)]);
    let by_minute = store.visits_by_interval(hour(1), TimeDelta::minutes(1)).await?;
    assert_eq!(by_minute, [of(hour(1), 1)]);

    let latest = store.visits_latest(3).await?;
    let listed: Vec<_> =
        latest.iter().map(|visit| (visit.site.as_str(), visit.ended_at, visit.end)).collect();
    let end = |index| hour(index) + TimeDelta::seconds(30);
    let expected = [("c.example", end(1)), ("b.example", end(0)), ("a.example", end(0))];
    assert_eq!(listed, expected.map(|(site, at)| (site, at, VisitEnd::Completed)), "newest first");
    store.site_block(&site("c.example"), "asked by mail", hour(1)).await?;
    assert!(store.visits_latest(9).await?.iter().all(|visit| visit.site.as_str() != "c.example"));

    assert_eq!(store.workers_list(hour(2), 10).await?, [], "saved visits hold no lease");
    leased(&store, "held.example", hour(2)).await?;
    let busy = WorkerLoad { worker: worker("w"), sites: 1, groups: 0 };
    assert_eq!(store.workers_list(hour(2), 10).await?, [busy]);
    assert_eq!(store.workers_list(hour(3), 10).await?, [], "an expired lease is not counted");
    Ok(())
}

pub(crate) async fn counts_a_semantic_type_once_per_capability(Db { store, .. }: Db) -> Result<()> {
    for (name, capabilities) in [("a", &["book", "book", "cancel"][..]), ("b", &["book"][..])] {
        let (name, at) = (format!("{name}.example"), format!("https://{name}.example/agent.json"));
        visited(&store, &name, start(), vec![found(&at, &name, capabilities, start())]).await?;
    }
    let counts = store.semantic_types().await?;
    let listed: Vec<_> = counts
        .iter()
        .map(|count| {
            (count.name.as_str(), count.namespace.as_str(), count.capabilities, count.declared, count.sites)
        })
        .collect();
    assert_eq!(listed, [("travel:book", "travel", 2, 2, 2), ("travel:cancel", "travel", 1, 1, 1)]);
    let namespaces = store.semantic_namespaces(&counts).await?;
    let listed: Vec<_> =
        namespaces.iter().map(|count| (count.namespace.as_str(), count.capabilities, count.sites)).collect();
    assert_eq!(listed, [("travel", 3, 2)]);
    Ok(())
}

pub(crate) async fn a_namespace_of_a_site_is_separate_from_the_standard_ones(
    Db { store, .. }: Db,
) -> Result<()> {
    let own = ["https://acme.example/travel:book", "https://acme.example/travel#cancel", "book"];
    visited(
        &store,
        "acme.example",
        start(),
        vec![found("https://acme.example/agent.json", "acme", &own, start())],
    )
    .await?;
    let counts = store.semantic_types().await?;
    let mut namespaces: Vec<_> = counts.iter().map(|count| count.namespace.as_str()).collect();
    namespaces.sort_unstable();
    assert_eq!(namespaces, ["https://acme.example/travel", "https://acme.example/travel", "travel"]);
    let counted = store.semantic_namespaces(&counts).await?;
    let counted: Vec<_> =
        counted.iter().map(|count| (count.namespace.as_str(), count.capabilities, count.sites)).collect();
    assert_eq!(counted, [("https://acme.example/travel", 2, 1), ("travel", 1, 1)]);
    Ok(())
}

/// Regression test: when a row counted in every namespace that contains its own, the work grew quadratically with the table.
pub(crate) async fn a_type_counts_in_its_own_namespace_only(Db { store, .. }: Db) -> Result<()> {
    let nested =
        ["https://a.example/b", "https://a.example/b/c", "https://a.example/b/c/d", "a:////x", "a://///x"];
    let at = "https://a.example/agent.json";
    visited(&store, "a.example", start(), vec![found(at, "nested", &nested, start())]).await?;
    let counts = store.semantic_types().await?;
    assert_eq!(counts.len(), nested.len());
    let namespaces = store.semantic_namespaces(&counts).await?;
    let listed: Vec<_> =
        namespaces.iter().map(|count| (count.namespace.as_str(), count.capabilities, count.sites)).collect();
    let once = ["a:///", "a:////", "https://a.example", "https://a.example/b", "https://a.example/b/c"];
    assert_eq!(listed, once.map(|namespace| (namespace, 1, 1)));
    Ok(())
}

/// Semantic types in namespaces that are nested up to thirty levels, as far as the length of a name permits, with ten capabilities each.
fn nested_types(types: usize) -> String {
    let nested = "b/".repeat(30);
    format!(
        "DELETE FROM capability_type;
         WITH RECURSIVE type (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM type WHERE i + 1 < {types}),
                        capability (k) AS (SELECT 0 UNION ALL SELECT k + 1 FROM capability WHERE k < 9)
         INSERT INTO capability_type (name, capability_id, manifest_id, site, declared)
             SELECT printf('https://a.example/%d/%st', i / 30, substr('{nested}', 1, 2 * (i % 30))),
                    printf('c%d', k), 'm', 'a.example', 1 FROM type, capability;"
    )
}

/// On SQLite, the statements run in this process. Eight times as many types may take twenty times as long, plus two seconds of tolerance;
/// in quadratic time, they would take 64 times as long.
pub(crate) async fn semantic_types_are_counted_in_linear_time(db: Db) -> Result<()> {
    let mut ticks = Vec::new();
    for types in [600, 4_800] {
        db.execute(&nested_types(types)).await?;
        let before = cpu_ticks();
        let counts = db.store.semantic_types().await?;
        let namespaces = db.store.semantic_namespaces(&counts).await?;
        ticks.push(cpu_ticks() - before);
        assert_eq!((counts.len(), namespaces.len()), (types, types));
        assert!(namespaces.iter().all(|count| count.capabilities == 10));
    }
    let [few, many] = ticks.as_slice() else { anyhow::bail!("two times") };
    assert!(*many <= 20 * few + 200, "{few} become {many} hundredths of a second");
    Ok(())
}

/// Number of rows of each table that operations scan.
const SCANNED_ROWS: u32 = 3_000;

pub(crate) async fn interrupts_operations_that_read_whole_tables_after_their_deadline(db: Db) -> Result<()> {
    let store = &db.store;
    let at = "https://a.example/agent.json";
    visited(store, "a.example", start(), vec![found(at, "a", &["book"], start())]).await?;
    let types = match &db.config.url {
        DatabaseUrl::Sqlite(_) => {
            db.execute(&fill_scanned_tables()).await?;
            scan_everything(
                &store.clone().with_scan_time_max(Duration::ZERO),
                &store.semantic_types().await?,
            )
            .await;
            store.semantic_types().await?
        }
        DatabaseUrl::Postgres(url) => {
            let types = store.semantic_types().await?;
            let mut other = sqlx::PgConnection::connect(url).await?;
            let mut transaction = other.begin().await?;
            let lock =
                "LOCK TABLE site, site_state, manifest, visit, capability_type IN ACCESS EXCLUSIVE MODE";
            sqlx::raw_sql(lock).execute(&mut *transaction).await?;
            scan_everything(&store.clone().with_scan_time_max(Duration::from_millis(50)), &types).await;
            transaction.rollback().await?;
            types
        }
    };
    let patient = store.clone().with_scan_time_max(Duration::from_mins(1));
    assert!(
        !patient.semantic_namespaces(&types).await?.is_empty() && patient.stats(start()).await?.sites > 0
    );
    Ok(())
}

/// Runs every operation that reads whole tables and that the API calls for clients.
async fn scan_everything(hasty: &Store, types: &[SemanticTypeCount]) {
    let ends = [
        ("stats", hasty.stats(start()).await.err()),
        ("dialect_usage", hasty.dialect_usage().await.err()),
        ("sites_newest", hasty.sites_newest(SCANNED_ROWS).await.err()),
        ("visits_by_interval", hasty.visits_by_interval(start(), TimeDelta::hours(1)).await.err()),
        ("workers_list", hasty.workers_list(start(), 100).await.err()),
        ("sites_slowest", hasty.sites_slowest(start(), 10).await.err()),
        ("sites_failing", hasty.sites_failing(10).await.err()),
        ("semantic_types", hasty.semantic_types().await.err()),
        ("semantic_namespaces", hasty.semantic_namespaces(types).await.err()),
    ];
    for (operation, end) in ends {
        assert!(matches!(end, Some(StoreError::Interrupted { .. })), "{operation}: {end:?}");
    }
}

/// Fills the tables of a SQLite database with rows that no operation can skip.
fn fill_scanned_tables() -> String {
    let (now, soon) = (start().timestamp_millis() + 1, start().timestamp_millis() + 60_000);
    let rows = format!(
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT {SCANNED_ROWS})
         SELECT printf('s%05d.example', i) AS name, i FROM n"
    );
    format!(
        "CREATE TEMPORARY TABLE filled AS {rows};
         INSERT INTO site (name, priority, next_visit_at_ms, lease_owner, lease_until_ms)
             SELECT name, 2, {now}, 'w', {soon} FROM filled;
         INSERT INTO site_state (name, status, first_seen_at_ms, failures_in_row)
             SELECT name, 'fresh', {now}, 1 FROM filled;
         INSERT INTO manifest (id, site, url, format, status, version, content_hash, capabilities, first_seen_at_ms,
                               last_seen_at_ms, changed_at_ms)
             SELECT printf('m%05d', i), name, 'https://' || name || '/a', 'awp', 'fresh', 1, '', 1, {now}, {now}, {now}
             FROM filled;
         INSERT INTO visit (site, started_at_ms, ended_at_ms, visit_end, status, next_visit_at_ms, next_visit_reason,
                            requests, bytes_in, dns_ms, connect_ms, tls_ms, ttfb_ms, body_ms, outcomes,
                            crawler_version, fetches)
             SELECT name, {now}, {now}, 'completed', 'fresh', {soon}, '', 1, 1, 1, 1, 1, 1, 1, '', '', x'' FROM filled;
         INSERT INTO capability_type (name, capability_id, manifest_id, site, declared)
             SELECT printf('n%d:t', i), printf('c%05d', i), printf('m%05d', i), name, 1 FROM filled;"
    )
}

pub(crate) async fn returns_the_due_time_of_the_next_site(Db { store, .. }: Db) -> Result<()> {
    assert_eq!(store.next_due_at().await?, None);
    visited(&store, "later.example", start(), Vec::new()).await?;
    assert_eq!(store.next_due_at().await?, Some(start() + TimeDelta::days(1)));
    let held = leased(&store, "now.example", later(2)).await?;
    assert_eq!(store.next_due_at().await?, Some(start() + TimeDelta::days(1)), "a leased site is not due");
    store.standalone_end(&held.token, &[]).await?;
    assert_eq!(store.next_due_at().await?, Some(held.token.due_at));
    Ok(())
}

pub(crate) async fn lookups_of_missing_rows_return_none(Db { store, .. }: Db) -> Result<()> {
    let id = ManifestId::of(&url("https://none.example/agent.json"));
    assert!(store.manifest_find(&id).await?.is_none());
    assert!(store.manifest_versions(&id, 100).await?.is_empty());
    assert!(store.manifests_load(std::slice::from_ref(&id)).await?.is_empty());
    assert!(store.manifests_load(&[]).await?.is_empty());
    assert!(store.manifest_of_capability(&CapabilityId::of_key("none")).await?.is_none());
    assert!(store.document_find(&ContentHash::of(b"none")).await?.is_none());
    assert!(store.version_find(&id, &ContentHash::of(b"none")).await?.is_none());
    assert!(store.site_report(&site("none.example"), 5).await?.is_none());
    assert!(store.manifests_of_site(&site("none.example")).await?.is_empty());
    assert!(store.address_clocks(&[]).await?.is_empty());
    store.ping().await?;
    Ok(())
}

pub(crate) async fn error_names_the_damaged_row(db: Db) -> Result<()> {
    let with_url = store::Seed { url: Some(url("https://shop.example/a.json")), ..seed("shop.example") };
    db.store.seeds_add(&[with_url], start()).await?;
    db.execute("UPDATE site_state SET status = 'nonsense' WHERE name = 'shop.example'").await?;
    let error = db.store.site_report(&site("shop.example"), 1).await.err().context("a damaged row")?;
    let StoreError::BadRow { table: "site_state", column, id, .. } = &error else {
        anyhow::bail!("{error:?}")
    };
    assert_eq!((id.as_str(), column.as_str()), ("shop.example", "status"));
    assert!(error.to_string().contains("nonsense"), "{error}");
    assert!(lease(&db.store, "shop.example", start()).await.is_err());
    assert!(db.store.stats(start()).await?.sites_by_status.is_empty(), "a list omits it");
    db.execute("UPDATE site_state SET status = 'pending' WHERE name = 'shop.example'").await?;
    // a pooled connection rolls the failed lease back after the call returns; until then the row is locked and skipped
    let leased = async {
        while lease(&db.store, "shop.example", start()).await.is_err() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), leased).await.context("the site can be leased again")
}

pub(crate) async fn refuses_a_document_that_does_not_match_its_hash(db: Db) -> Result<()> {
    const AT: &str = "https://sky.example/agent.json";
    let token = leased(&db.store, "sky.example", start()).await?.token;
    let record = visit("sky.example", start(), vec![found(AT, "one", &["book"], start())]);
    db.store.visit_save(&token, &record).await?;
    let hash = ContentHash::of(&body("one"));
    assert_eq!(db.store.document_find(&hash).await?, Some(body("one")));

    // another valid document, and bytes that are not a document
    let other = zstd::stream::encode_all(body("two").as_slice(), 3)?;
    for damaged in [other, b"not compressed".to_vec()] {
        let digits = data_encoding::HEXLOWER.encode(&damaged);
        let bytes = match db.store.backend() {
            Backend::Postgres => format!("decode('{digits}', 'hex')"),
            Backend::Sqlite => format!("x'{digits}'"),
        };
        db.execute(&format!("UPDATE document SET body = {bytes}")).await?;
        let error = db.store.document_find(&hash).await.err().context("a damaged document")?;
        let StoreError::BadRow { table: "document", column, id, .. } = &error else {
            anyhow::bail!("{error:?}")
        };
        assert_eq!((id.as_str(), column.as_str()), (hash.as_str(), "body"));
        assert!(!error.is_transient());
    }
    Ok(())
}

/// A damaged document that is fetched again with the same bytes is replaced, for every damaged column.
pub(crate) async fn fetching_a_damaged_document_again_replaces_it(db: Db) -> Result<()> {
    const AT: &str = "https://sky.example/agent.json";
    let hash = ContentHash::of(&body("one"));
    let save = async |at| {
        let token = leased(&db.store, "sky.example", at).await?.token;
        let record = visit("sky.example", at, vec![found(AT, "one", &["book"], at)]);
        anyhow::Ok(db.store.visit_save(&token, &record).await?)
    };
    save(start()).await?;
    let bytes = match db.store.backend() {
        Backend::Postgres => "decode('00', 'hex')",
        Backend::Sqlite => "x'00'",
    };
    let damages = [format!("body = {bytes}"), "body_hash = 'ffff'".to_owned()];
    for (day, damage) in (1..).zip(damages) {
        db.execute(&format!("UPDATE document SET {damage}")).await?;
        assert!(db.store.document_find(&hash).await.is_err(), "{damage}");
        save(start() + TimeDelta::days(day)).await?;
        assert_eq!(db.store.document_find(&hash).await?, Some(body("one")), "{damage}");
    }
    Ok(())
}

pub(crate) async fn lists_checked_paths_of_sites_with_manifests(Db { store, .. }: Db) -> Result<()> {
    let slots = |class| {
        let mut slots = PathSlots::new();
        slots.set(3, PathCheck { class, day: 20_000 });
        slots
    };
    for (name, class) in [("one.example", 1), ("two.example", 2), ("unchecked.example", 0)] {
        let token = leased(&store, name, start()).await?.token;
        let paths_checked = if class == 0 { PathSlots::new() } else { slots(class) };
        let fetches = vec![found(&format!("https://{name}/agent.json"), name, &["book"], start())];
        store.visit_save(&token, &VisitRecord { paths_checked, ..visit(name, start(), fetches) }).await?;
    }
    let token = leased(&store, "none.example", start()).await?.token;
    let nothing = vec![fetch("https://none.example/agent.json", FetchOutcome::NotFound, start())];
    let record = VisitRecord { paths_checked: slots(4), ..visit("none.example", start(), nothing) };
    store.visit_save(&token, &record).await?;
    let listed = store.paths_of_positives(10).await?;
    let checked: Vec<_> = listed.iter().filter(|slots| !slots.is_empty()).cloned().collect();
    assert_eq!(checked, [slots(1), slots(2)], "sites without manifests are not counted");
    assert_eq!(store.paths_of_positives(1).await?, [slots(1)]);
    Ok(())
}

pub(crate) async fn damaged_planned_time_does_not_block_the_queue_or_its_statistics(db: Db) -> Result<()> {
    let store = &db.store;
    for name in ["past.example", "future.example", "whole.example"] {
        visited(store, name, start(), vec![found(&format!("https://{name}/a.json"), name, &[], start())])
            .await?;
    }
    store.seeds_add(&[seed("small.example")], later(5)).await?;
    for damage in [
        "UPDATE site SET next_visit_at_ms = -9223372036854775808 WHERE name IN ('past.example', 'small.example')",
        "UPDATE site SET next_visit_at_ms = 9223372036854775807 WHERE name = 'future.example'",
        "UPDATE site_state SET last_visit_at_ms = 9223372036854775807 WHERE name = 'future.example'",
        "UPDATE document SET bytes = 9223372036854775807",
    ] {
        db.execute(damage).await?;
    }
    let now = start() + TimeDelta::days(2);
    let epoch = chrono::DateTime::UNIX_EPOCH;
    assert_eq!(store.next_due_at().await?, Some(epoch), "leasing postpones the damaged site");
    let stats = store.stats(now).await?;
    assert_eq!((stats.sites, stats.sites_due, stats.oldest_due_at), (4, 3, Some(epoch)));
    let sites = store.sites_page(&SitesRequest { max: 9, ..SitesRequest::default() }).await?;
    let planned: Vec<_> = sites.iter().map(|site| (site.name.as_str(), site.next_visit_at)).collect();
    let tomorrow = start() + TimeDelta::days(1);
    let expected =
        [("past.example", Some(epoch)), ("small.example", Some(epoch)), ("whole.example", Some(tomorrow))];
    assert_eq!(planned, expected, "a site with another damaged value is omitted");
    assert!(store.site_report(&site("past.example"), 1).await?.is_some());
    let leased = store.sites_lease(&crate::build::request("w", 9, now), now).await?;
    let leased: Vec<_> = leased.iter().map(|leased| leased.token.site.as_str()).collect();
    assert_eq!(leased, ["whole.example"]);
    assert_eq!(store.next_due_at().await?, Some(now + TimeDelta::days(1)), "they are postponed");
    Ok(())
}

/// Damages rows of the sites s0 to s4, each in a different way.
async fn damage_rows(db: &Db) -> Result<()> {
    let bytes = match db.store.backend() {
        Backend::Postgres => "decode('28b52ffd00', 'hex')",
        Backend::Sqlite => "x'28b52ffd00'",
    };
    let of = |number| format!("manifest_id = '{}'", id_of_number(number));
    for damage in [
        "UPDATE manifest SET status = 'nonsense' WHERE site = 's0.example'".to_owned(),
        format!("UPDATE manifest_version SET model = {bytes} WHERE {}", of(1)),
        format!(
            "UPDATE manifest_version SET model = (SELECT model FROM manifest_version WHERE {}) WHERE {}",
            of(5),
            of(2)
        ),
        format!("UPDATE manifest_version SET manifest_id = 'zzz' WHERE {}", of(3)),
        "UPDATE manifest SET id = 'zzz', format = 'nonsense' WHERE site = 's3.example'".to_owned(),
        "UPDATE site_state SET status = 'nonsense' WHERE name IN ('s0.example', 's1.example', 's2.example')"
            .to_owned(),
        "UPDATE visit SET visit_end = 'nonsense', outcomes = 'found' WHERE site = 's4.example'".to_owned(),
    ] {
        db.execute(&damage).await?;
    }
    Ok(())
}

fn id_of_number(number: u32) -> ManifestId {
    ManifestId::of(&url(&format!("https://s{number}.example/agent.json")))
}

pub(crate) async fn lists_omit_damaged_rows(db: Db) -> Result<()> {
    let store = &db.store;
    for number in 0..8 {
        let (name, at) = (format!("s{number}.example"), format!("https://s{number}.example/agent.json"));
        visited(store, &name, start(), vec![found(&at, &name, &["book"], start())]).await?;
    }
    let id = id_of_number;
    damage_rows(&db).await?;
    let mut whole: Vec<ManifestId> = (4..8).map(id).collect();
    let ids: Vec<ManifestId> = (0..8).map(id).collect();
    let loaded = store.manifests_load(&ids).await?.into_iter().map(|stored| stored.manifest.id);
    assert_eq!(loaded.collect::<Vec<_>>(), whole);
    whole.sort_unstable();
    for max in [1, 3, 100] {
        let mut paged: Vec<ManifestId> = Vec::new();
        loop {
            let page = store.manifests_page(paged.last(), max).await?;
            if page.is_empty() {
                break;
            }
            paged.extend(page.into_iter().map(|stored| stored.manifest.id));
            anyhow::ensure!(paged.len() <= 8, "the pages end");
        }
        assert_eq!(paged, whole);
    }
    assert_eq!(store.manifest_sizes_after(None, 100).await?.len(), 7, "only a damaged id has no size");
    assert!(store.manifests_of_site(&site("s1.example")).await?.is_empty());
    for number in 0..3 {
        let error = store.manifest_find(&id(number)).await.err().context("a single read names it")?;
        assert!(matches!(error, StoreError::BadRow { .. }), "{error:?}");
    }
    let mut names = Vec::new();
    loop {
        let request = SitesRequest { after: names.last().cloned(), max: 2, ..SitesRequest::default() };
        let page = store.sites_page(&request).await?;
        let is_last = page.len() < 2;
        names.extend(page.into_iter().map(|site| site.name));
        if is_last {
            break;
        }
    }
    assert_eq!(names, (3..8).map(|number| site(&format!("s{number}.example"))).collect::<Vec<_>>());
    let stats = store.stats(later(1)).await?;
    assert_eq!((stats.sites, stats.manifests), (8, 8));
    assert_eq!(stats.sites_by_status, [(Status::Fresh, 5)]);
    assert_eq!(stats.manifests_by_format, [(Format::Awp, 7)]);
    assert_eq!(stats.ends_last_day, [(VisitEnd::Completed, 7)]);
    assert_eq!(stats.outcomes_last_day, [(FetchOutcome::Found, 7)]);
    assert_eq!(store.dialect_usage().await?.len(), 1);
    assert_eq!(store.visits_by_interval(start(), TimeDelta::hours(1)).await?.len(), 1);
    let latest = store.visits_latest(9).await?;
    assert_eq!(latest.len(), 7, "the damaged visit hides no other");
    assert!(latest.iter().all(|visit| visit.outcomes == [(FetchOutcome::Found, 1)]));
    let report = store.site_report(&site("s4.example"), 9).await?.context("the report without the visit")?;
    assert!(report.visits.is_empty());
    // the next visit replaces the damaged values, and a site with a damaged manifest can still be blocked
    let again = found("https://s0.example/agent.json", "s0.example", &["book"], later(9));
    db.execute("UPDATE site_state SET status = 'fresh'").await?;
    visited(store, "s0.example", later(9), vec![again]).await?;
    assert_eq!(store.manifest_find(&id(0)).await?.context("the manifest")?.status, Status::Fresh);
    store.site_block(&site("s3.example"), "asked by mail", later(10)).await?;
    Ok(())
}
