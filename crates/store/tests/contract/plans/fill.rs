//! Fills a database: the store writes a few rows, and one SQL statement copies them many times.

use anyhow::{Context as _, Result};
use chrono::{DateTime, Utc};
use manifest::{CapabilityId, ContentHash, ManifestId};
use policy::{FetchOutcome, RobotsKind};
use store::{PathCheck, PathSlots, RobotsRecord, VisitRecord};

use crate::build::{fetch, found, host, later, leased, seed, start, url, visit};
use crate::harness::Db;

/// Compacted sites, most of them visited without content.
pub(crate) const COMPACTED: u32 = 220_000;
/// Number of expanded sites, and number of those with a manifest.
pub(crate) const EXPANDED: u32 = 30_000;
pub(crate) const WITH_MANIFESTS: u32 = 20_000;
/// Entries of the feed.
pub(crate) const FEED: u32 = 60_000;
/// One in this many sites is due.
const DUE_ONE_IN: u32 = 10;
/// Site that the store writes and the server copies.
const TEMPLATE: &str = "template.example";

/// Current time for queries about due sites; all copied visits are earlier.
pub(crate) fn now() -> DateTime<Utc> {
    later(60)
}

/// The prefix interleaves the names of expanded and compacted sites.
pub(crate) fn expanded(number: u32) -> String {
    format!("{}s{number}.example", number % 97)
}

pub(crate) fn compacted(number: u32) -> String {
    format!("{}r{number}.example", number % 97)
}

/// The id that the SQL statement generates: letters replace the digits that base32 does not contain.
fn short_id(letter: char, number: u32) -> String {
    let digits = format!("{number:016}");
    let digits = digits.chars().map(|digit| match digit {
        '0' => 'a',
        '1' => 'b',
        '8' => 'c',
        '9' => 'd',
        digit => digit,
    });
    std::iter::once(letter).chain(digits).collect()
}

pub(crate) fn manifest_id(number: u32) -> ManifestId {
    ManifestId::parse(&short_id('m', number)).expect("an id")
}

pub(crate) fn capability_id(number: u32) -> CapabilityId {
    CapabilityId::parse(&short_id('c', number)).expect("an id")
}

pub(crate) fn document(number: u32) -> ContentHash {
    ContentHash::parse(&format!("{number:064}")).expect("a hash")
}

/// A visit that requested twenty paths and found nothing.
pub(crate) fn visit_without_content(name: &str, at: DateTime<Utc>) -> VisitRecord {
    let mut paths_checked = PathSlots::new();
    (0..20).for_each(|slot| paths_checked.set(slot, PathCheck { class: 4, day: 20_000 }));
    let paths = (0..20).map(|path| fetch(&format!("https://{name}/{path}"), FetchOutcome::NotFound, at));
    let robots = RobotsRecord {
        host: host(name),
        kind: RobotsKind::Rules,
        cause: None,
        status: Some(200),
        body: Some(b"User-agent: *\nDisallow: /cart\n".as_slice().into()),
        fetched_at: at,
        expires_at: at + chrono::TimeDelta::days(1),
        failures_in_row: 0,
        etag: None,
        last_modified: None,
    };
    VisitRecord {
        robots: vec![robots],
        paths_checked,
        negatives_in_row: 1,
        ..visit(name, at, paths.collect())
    }
}

pub(crate) async fn fill(db: &Db) -> Result<()> {
    let token = leased(&db.store, TEMPLATE, start()).await?.token;
    let at = format!("https://{TEMPLATE}/agent.json");
    let manifest = found(&at, "one", &["book", "cancel", "pay"], start());
    db.store
        .visit_save(
            &token,
            &VisitRecord { fetches: vec![manifest], ..visit_without_content(TEMPLATE, start()) },
        )
        .await?;
    let template = db.store.manifest_find(&ManifestId::of(&url(&at))).await?.context("the template")?;
    let model = data_encoding::HEXLOWER.encode(&uncompressed(&serde_json::to_vec(&template.manifest)?)?);
    db.execute(&format!("UPDATE manifest_version SET model = decode('{model}', 'hex')")).await?;
    db.store.feed_head().await?;
    db.store.seeds_add(&[seed("compacted.example")], start()).await?;
    assert!(url(&at).as_str().contains(TEMPLATE));
    let numbers = [
        ("COMPACTED", COMPACTED),
        ("EXPANDED", EXPANDED),
        ("WITH_MANIFESTS", WITH_MANIFESTS),
        ("FEED", FEED),
        ("DUE_ONE_IN", DUE_ONE_IN),
    ];
    let mut sql = MULTIPLY
        .replace("NOW_MS", &now().timestamp_millis().to_string())
        .replace("TEMPLATE_ID", template.manifest.id.as_str());
    for (name, number) in numbers {
        sql = sql.replace(name, &number.to_string());
    }
    db.execute(&sql).await?;
    db.execute("VACUUM (ANALYZE)").await
}

/// A zstd frame with one uncompressed block (RFC 8878, section 3.1.1), in which the server can replace an id.
fn uncompressed(bytes: &[u8]) -> Result<Vec<u8>> {
    let size = u32::try_from(bytes.len())?;
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0xa0];
    frame.extend(size.to_le_bytes());
    frame.extend(&(size << 3 | 1).to_le_bytes()[..3]);
    frame.extend(bytes);
    Ok(frame)
}

/// `jsonb_populate_record` copies a row and replaces the values of the named columns.
const MULTIPLY: &str = "
CREATE FUNCTION pg_temp.short(letter text, number int) RETURNS text LANGUAGE sql IMMUTABLE AS
$$ SELECT letter || translate(lpad(number::text, 16, '0'), '0189', 'abcd') $$;
CREATE FUNCTION pg_temp.expanded(number int) RETURNS text LANGUAGE sql IMMUTABLE AS
$$ SELECT number % 97 || 's' || number || '.example' $$;
CREATE FUNCTION pg_temp.compacted(number int) RETURNS text LANGUAGE sql IMMUTABLE AS
$$ SELECT number % 97 || 'r' || number || '.example' $$;
CREATE FUNCTION pg_temp.hash(number int) RETURNS text LANGUAGE sql IMMUTABLE AS
$$ SELECT lpad(number::text, 64, '0') $$;

INSERT INTO site (name, priority, next_visit_at_ms, packed, visits_at_rest, compacted_status, compacted_failures,
                  compacted_last_visit_at_ms)
SELECT pg_temp.compacted(n), n % 6,
       NOW_MS + CASE WHEN n % DUE_ONE_IN = 0 THEN -n ELSE n * 1000 END,
       t.packed, n % 4, CASE n % 3 WHEN 0 THEN 'pending' WHEN 1 THEN 'fresh' ELSE 'unreachable' END,
       CASE WHEN n % 50 = 0 THEN 1 END, CASE WHEN n % 4 > 0 THEN NOW_MS - n * 1000::bigint END
FROM generate_series(1, COMPACTED) n, site t WHERE t.name = 'compacted.example';
INSERT INTO site (name, priority, next_visit_at_ms, lease_owner, lease_until_ms, fence)
SELECT pg_temp.expanded(n), n % 6,
       NOW_MS + CASE WHEN n % DUE_ONE_IN = 0 THEN -n ELSE n * 1000 END,
       CASE WHEN n % 100 = 0 THEN 'other' END, CASE WHEN n % 100 = 0 THEN NOW_MS + 60000 ELSE 0 END, 1
FROM generate_series(1, EXPANDED) n;
INSERT INTO site_state
SELECT made.*
FROM generate_series(1, EXPANDED) n, site_state t,
     jsonb_populate_record(t, jsonb_build_object('name', pg_temp.expanded(n),
    'manifests', CASE WHEN n <= WITH_MANIFESTS THEN 1 ELSE 0 END, 'failures_in_row', n % 3,
    'last_visit_at_ms', NOW_MS - n * 1000::bigint,
    'parked_until_ms', CASE WHEN n % 200 = 0 THEN NOW_MS + n END)) made
WHERE t.name = 'template.example';
INSERT INTO host
SELECT made.*
FROM generate_series(1, EXPANDED) n, unnest(ARRAY['', 'www.']) h, host t,
     jsonb_populate_record(t, jsonb_build_object('host', h || pg_temp.expanded(n), 'site', pg_temp.expanded(n))) made
WHERE t.host = 'template.example';
INSERT INTO robots
SELECT made.*
FROM generate_series(1, EXPANDED) n, unnest(ARRAY['', 'www.']) h, robots t,
     jsonb_populate_record(t, jsonb_build_object('host', h || pg_temp.expanded(n), 'site', pg_temp.expanded(n))) made
WHERE t.host = 'template.example';
INSERT INTO address_clock (address, next_ok_at_ms)
SELECT '10.' || n / 65536 || '.' || n / 256 % 256 || '.' || n % 256, NOW_MS - n * 3000::bigint
FROM generate_series(1, EXPANDED) n;
INSERT INTO document
SELECT made.*
FROM generate_series(1, 2 * WITH_MANIFESTS) n, document t,
     jsonb_populate_record(t, jsonb_build_object('hash', pg_temp.hash(n))) made
WHERE t.ctid = (SELECT ctid FROM document LIMIT 1);
INSERT INTO resource
SELECT made.*
FROM generate_series(1, WITH_MANIFESTS) n, resource t,
     jsonb_populate_record(t, jsonb_build_object('id', pg_temp.short('m', n), 'site', pg_temp.expanded(n),
    'url', 'https://' || pg_temp.expanded(n) || '/agent.json')) made
WHERE t.ctid = (SELECT ctid FROM resource LIMIT 1);
INSERT INTO manifest
SELECT made.*
FROM generate_series(1, WITH_MANIFESTS) n, manifest t,
     jsonb_populate_record(t, jsonb_build_object('id', pg_temp.short('m', n), 'site', pg_temp.expanded(n),
    'url', 'https://' || pg_temp.expanded(n) || '/agent.json', 'version', 2, 'content_hash', pg_temp.hash(n),
    'first_seen_at_ms', NOW_MS - n * 60000::bigint,
    'removed_at_ms', CASE WHEN n % 20 = 0 THEN NOW_MS END)) made
WHERE t.ctid = (SELECT ctid FROM manifest LIMIT 1);
INSERT INTO manifest_version
SELECT made.*
FROM generate_series(1, WITH_MANIFESTS) n, generate_series(1, 2) v, manifest_version t,
     jsonb_populate_record(t, jsonb_build_object('manifest_id', pg_temp.short('m', n), 'version', v,
    'content_hash', pg_temp.hash(n + (2 - v) * WITH_MANIFESTS), 'document_hash', pg_temp.hash(n + (2 - v) * WITH_MANIFESTS),
    'last_seen_at_ms', NOW_MS - CASE v WHEN 1 THEN n * 60000::bigint ELSE 0 END)) made
WHERE t.ctid = (SELECT ctid FROM manifest_version LIMIT 1);
UPDATE manifest_version SET model = overlay(
    model placing convert_to(manifest_id, 'UTF8') from position(convert_to('TEMPLATE_ID', 'UTF8') in model));
INSERT INTO capability
SELECT made.*
FROM generate_series(1, 3 * WITH_MANIFESTS) n, capability t,
     jsonb_populate_record(t, jsonb_build_object('id', pg_temp.short('c', n), 'site', pg_temp.expanded(1 + n / 3),
    'manifest_id', pg_temp.short('m', 1 + n / 3))) made
WHERE t.ctid = (SELECT ctid FROM capability LIMIT 1);
INSERT INTO capability_type
SELECT made.*
FROM generate_series(1, 3 * WITH_MANIFESTS) n, capability_type t,
     jsonb_populate_record(t, jsonb_build_object('capability_id', pg_temp.short('c', n), 'site', pg_temp.expanded(1 + n / 3),
    'manifest_id', pg_temp.short('m', 1 + n / 3), 'name', 'travel:t' || n % 500)) made
WHERE t.ctid = (SELECT ctid FROM capability_type LIMIT 1);
INSERT INTO declaration (id, capability_id, site, manifest_id, place)
SELECT pg_temp.short('c', n), pg_temp.short('c', n - n % 3), pg_temp.expanded(1 + n / 3), pg_temp.short('m', 1 + n / 3), n % 3
FROM generate_series(1, 3 * WITH_MANIFESTS) n;
INSERT INTO visit
SELECT made.*
FROM generate_series(1, 3 * EXPANDED) n, visit t,
     jsonb_populate_record(t, jsonb_build_object('id', 1000 + n, 'site', pg_temp.expanded(1 + n % EXPANDED),
    'ended_at_ms', NOW_MS - (3 * EXPANDED - n) * 2000::bigint)) made
WHERE t.ctid = (SELECT ctid FROM visit LIMIT 1);
SELECT setval(pg_get_serial_sequence('visit', 'id'), 1000000);
INSERT INTO block (site, reason, blocked_at_ms)
SELECT 'b' || n || '.example', 'asked', NOW_MS FROM generate_series(1, 5000) n;
INSERT INTO feed (position, at_ms, change, site, manifest_id)
SELECT 1 + n, NOW_MS - (FEED - n) * 1000::bigint, 'changed', pg_temp.expanded(1 + n % WITH_MANIFESTS),
       pg_temp.short('m', 1 + n % WITH_MANIFESTS)
FROM generate_series(1, FEED) n;
UPDATE feed_state SET last_position = FEED + 1;
INSERT INTO registry_entry (registry, identifier, site, seen_at_ms, rank)
SELECT 'https://registry.example/', 'example.stranger/' || n, pg_temp.expanded(1 + n % 4), NOW_MS, 2
FROM generate_series(1, 20000) n;
INSERT INTO feed_pending (at_ms, change, site, manifest_id)
SELECT NOW_MS - 9000000::bigint, 'changed', pg_temp.expanded(1), pg_temp.short('m', 1) FROM generate_series(1, 20000) n;
";
