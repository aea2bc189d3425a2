//! Damages one cell in each column of the database. Every statement for several sites must still work for the others.

use std::collections::BTreeSet;

use anyhow::{Result, ensure};
use chrono::TimeDelta;
use manifest::ManifestId;
use policy::RobotsKind;
use store::{
    Backend, FeedPosition, FeedbackFilter, LeaseRequest, RobotsRecord, SitesRequest, Store, VisitRecord,
};

use crate::build::{found, host, lease, leased, request, seed, site, start, url, visit, visited};
use crate::claims::owned;
use crate::harness::{Column, Db};

/// Tables with rows for each site, and the column that contains the site or its manifest.
const DAMAGED: [(&str, &str); 12] = [
    ("site", "name"),
    ("site_state", "name"),
    ("host", "site"),
    ("robots", "site"),
    ("resource", "site"),
    ("manifest", "site"),
    ("manifest_version", "manifest_id"),
    ("capability", "site"),
    ("capability_type", "site"),
    ("visit", "site"),
    ("feed", "site"),
    ("site_claim", "site"),
];
/// Tables whose rows are read one by one, or belong to no site.
const OTHERS: [&str; 29] = [
    "_sqlx_migrations",
    "address_clock",
    "block",
    "capability_search_count",
    "claim_secret",
    "declaration",
    "delivery",
    "document",
    "feed_pending",
    "feed_reader",
    "feed_state",
    "feedback",
    "feedback_salt",
    "group_owner",
    "host_check",
    "read_attempt",
    "reader_key",
    "receiver_day",
    "registry_entry",
    "registry_position",
    "report",
    "search_count",
    "site_link",
    "suffix_clock",
    "suffix_turn",
    "suspension",
    "task_failure",
    "watch",
    "worker",
];
const WHOLE: [&str; 3] = ["whole0.example", "whole1.example", "whole2.example"];

/// Values that no program writes to this column. SQLite accepts all of them; PostgreSQL accepts values of the column's type.
fn damages(backend: Backend, column: &Column) -> &'static [&'static str] {
    match (backend, column.kind.as_str()) {
        // The number of a row is always an integer, and after the largest there is no next visit.
        (Backend::Sqlite, "INTEGER") if column.name == "id" => &["-9223372036854775808"],
        (Backend::Sqlite, "INTEGER") if column.name == "position" => {
            &["9223372036854775807", "-9223372036854775808"]
        }
        (Backend::Sqlite, _) => {
            &["'zzz'", "x'c328ff'", "CAST(x'c328ff' AS TEXT)", "9223372036854775807", "-9e999"]
        }
        (Backend::Postgres, "bigint") => &["9223372036854775807", "-9223372036854775808"],
        (Backend::Postgres, "integer") => &["2147483647", "-2147483648"],
        (Backend::Postgres, "smallint") => &["32767", "-32768"],
        (Backend::Postgres, "bytea") => &["decode('c328ff', 'hex')"],
        (Backend::Postgres, _) => &["'zzz'"],
    }
}

/// Saves a visit with a manifest and a robots.txt.
async fn fill(store: &Store, name: &str) -> Result<()> {
    let token = leased(store, name, start()).await?.token;
    let robots = RobotsRecord {
        host: host(name),
        kind: RobotsKind::Rules,
        cause: Some("told".into()),
        status: Some(200),
        body: Some(b"User-agent: *".as_slice().into()),
        fetched_at: start(),
        expires_at: start() + TimeDelta::days(1),
        failures_in_row: 0,
        etag: Some("\"a\"".into()),
        last_modified: None,
    };
    let manifest = found(&agent(name), name, &["book"], start());
    let claim = Some(owned(1, start()));
    let record = VisitRecord { robots: vec![robots], claim, ..visit(name, start(), vec![manifest]) };
    store.visit_save(&token, &record).await?;
    Ok(())
}

fn agent(name: &str) -> String {
    format!("https://{name}/agent.json")
}

/// Adds one site for each kind of damage, and damages it; returns the number of sites.
async fn damage_every_column(db: &Db) -> Result<usize> {
    let backend = db.store.backend();
    // another program may not check constraints
    let mut statements = match backend {
        Backend::Postgres => "SET session_replication_role = replica;".to_owned(),
        Backend::Sqlite => "PRAGMA foreign_keys = off; PRAGMA ignore_check_constraints = on;".to_owned(),
    };
    let update = if matches!(backend, Backend::Sqlite) { "UPDATE OR IGNORE" } else { "UPDATE" };
    let mut sites = 0;
    for column in db.columns().await? {
        let Column { table, name: column_name, .. } = &column;
        let Some((_, key)) = DAMAGED.iter().find(|(damaged, _)| damaged == table) else {
            ensure!(OTHERS.contains(&table.as_str()), "the new table {table} is in none of the lists");
            continue;
        };
        for value in damages(backend, &column) {
            // Sites that were never visited are compacted.
            for is_compacted in [false, true] {
                let name = format!("d{sites}.example");
                if is_compacted && table != "site" {
                    continue;
                }
                if is_compacted {
                    db.store.seeds_add(&[seed(&name)], start()).await?;
                } else {
                    fill(&db.store, &name).await?;
                }
                let id = ManifestId::of(&url(&agent(&name))).to_string();
                let row = if *key == "manifest_id" { &id } else { &name };
                // Names are unique.
                let value = value.replace("zzz", &format!("zzz{sites}"));
                let statement =
                    format!("{update} {table} SET {column_name} = {value} WHERE {key} = '{row}';");
                statements.extend(["\n", &statement]);
                sites += 1;
            }
        }
    }
    db.execute(&statements).await?;
    Ok(sites)
}

/// Names of all pages of sites.
async fn sites_listed(store: &Store) -> Result<BTreeSet<String>> {
    let (mut names, mut after) = (BTreeSet::new(), None);
    loop {
        let request = SitesRequest { after, max: 7, ..SitesRequest::default() };
        let page = store.sites_page(&request).await?;
        let Some(last) = page.last() else { return Ok(names) };
        after = Some(last.name.clone());
        names.extend(page.into_iter().map(|site| site.name.to_string()));
    }
}

/// Ids of all pages of manifests.
async fn manifests_listed(store: &Store) -> Result<BTreeSet<ManifestId>> {
    let (mut ids, mut after) = (BTreeSet::new(), None);
    loop {
        let page = store.manifests_page(after.as_ref(), 7).await?;
        let Some(last) = page.last() else { return Ok(ids) };
        after = Some(last.manifest.id.clone());
        ids.extend(page.into_iter().map(|stored| stored.manifest.id));
    }
}

/// Manifests of all feed entries, and the position up to which the feed was read.
async fn manifests_changed(store: &Store) -> Result<(BTreeSet<ManifestId>, FeedPosition)> {
    let mut ids = BTreeSet::new();
    let mut read_to = store.feed_position_at(start()).await?;
    loop {
        let page = store.feed_page(read_to, 50).await?;
        ids.extend(page.entries.into_iter().map(|entry| entry.manifest_id));
        if page.read_to == read_to {
            return Ok((ids, read_to));
        }
        read_to = page.read_to;
    }
}

pub(crate) async fn a_damaged_cell_does_not_hide_other_rows_or_stop_leases(db: Db) -> Result<()> {
    let store = &db.store;
    fill(store, WHOLE[0]).await?;
    let damaged = damage_every_column(&db).await?;
    ensure!(damaged > 100, "only {damaged} cells are damaged");
    for name in &WHOLE[1..] {
        fill(store, name).await?;
    }
    let now = start() + TimeDelta::days(2);
    let names: BTreeSet<String> = WHOLE.into_iter().map(str::to_owned).collect();
    let ids: BTreeSet<ManifestId> = WHOLE.iter().map(|name| ManifestId::of(&url(&agent(name)))).collect();

    let listed = sites_listed(store).await?;
    assert!(listed.is_superset(&names), "{listed:?}");
    let listed = manifests_listed(store).await?;
    assert!(listed.is_superset(&ids), "{listed:?}");
    let (changed, read_to) = manifests_changed(store).await?;
    assert!(changed.is_superset(&ids), "{changed:?}");
    assert_eq!(read_to, store.feed_head().await?, "a damaged position does not move readers beyond the feed");
    read_everything_else(store, damaged).await?;

    let leases = store.sites_lease(&request("w", 2_000, now), now).await?;
    let sites: BTreeSet<String> = leases.iter().map(|lease| lease.token.site.to_string()).collect();
    assert!(sites.is_superset(&names), "{sites:?}");
    assert!(store.stats(now).await?.sites_leased >= sites.len() as u64);
    for lease in leases.iter().filter(|lease| names.contains(lease.token.site.as_str())) {
        let name = lease.token.site.as_str();
        let record = visit(name, now, vec![found(&agent(name), "two", &["book"], now)]);
        assert_eq!(store.visit_save(&lease.token, &record).await?.manifests_changed, 1);
    }
    // A list of seeds that names all of them is added.
    let seeds: Vec<_> = (0..damaged).map(|number| seed(&format!("d{number}.example"))).collect();
    store.seeds_add(&seeds, now).await?;
    Ok(())
}

/// Runs every other statement that reads rows of several sites.
async fn read_everything_else(store: &Store, damaged: usize) -> Result<()> {
    let now = start() + TimeDelta::days(2);
    let stats = store.stats(start() + TimeDelta::hours(1)).await?;
    assert_eq!(stats.sites, (damaged + WHOLE.len()) as u64);
    assert_eq!(stats.last_visit_at, Some(start() + TimeDelta::seconds(30)));
    assert!(!stats.manifests_by_format.is_empty() && !stats.ends_last_day.is_empty());
    store.next_due_at().await?;
    store.sites_failing(100).await?;
    store.sites_slowest(start(), 100).await?;
    store.paths_of_positives(1_000).await?;
    store.parked_list(1_000).await?;
    store.sites_listed(None, 1_000).await?;
    store.workers_list(now, 100).await?;
    store.feedback_page(&FeedbackFilter::default(), None, 100).await?;
    assert!(!store.visits_by_interval(start(), TimeDelta::hours(1)).await?.is_empty());
    assert!(!store.visits_latest(1_000).await?.is_empty());
    assert!(!store.dialect_usage().await?.is_empty());
    assert!(!store.sites_newest(1_000).await?.is_empty());
    let types = store.semantic_types().await?;
    assert!(!types.is_empty() && !store.semantic_namespaces(&types).await?.is_empty());
    assert!(!store.feed_of_site(&site(WHOLE[0]), FeedPosition(i64::MAX), 9).await?.is_empty());
    store.housekeeping(now).await?;
    Ok(())
}

pub(crate) async fn a_lease_that_ends_later_than_any_lease_counts_as_expired(db: Db) -> Result<()> {
    let store = &db.store;
    visited(store, "a.example", start(), Vec::new()).await?;
    let ends: &[&str] = match store.backend() {
        Backend::Postgres => &["9223372036854775807"],
        Backend::Sqlite => &["9223372036854775807", "'zzz'", "x'00'"],
    };
    let mut now = start() + TimeDelta::days(2);
    for end in ends {
        lease(store, "a.example", now).await?;
        let named = LeaseRequest { only: Some(vec![site("a.example")]), ..request("other", 1, now) };
        assert!(store.sites_lease(&named, now).await?.is_empty(), "a leased site must not be leased again");
        db.execute(&format!("UPDATE site SET lease_until_ms = {end} WHERE name = 'a.example'")).await?;
        let stats = store.stats(now).await?;
        assert_eq!(
            (stats.sites_leased, stats.sites_due),
            (0, 1),
            "{end}: the site counts as due, not as leased"
        );
        assert_eq!(store.sites_lease(&named, now).await?.len(), 1, "{end}");
        now += TimeDelta::days(1);
    }
    Ok(())
}
