//! Reads and writes `registry_entry` and `registry_position`.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use manifest::{EntryPlace, ListingRank, RegistryEntry, SiteName};
use serde::Serialize;

use super::rows::{decode, decode_row};
use super::{Connection, batch, block};
use crate::StoreError;
use crate::convert::{RowRef, intact, json, millis, names, text, to_i32, to_u32};
use crate::fault::Outcome;
use crate::from_row::from_row;
use crate::model::{
    REGISTRY_ROWS_MAX, RegistryPosition, RowsLeftOut, SITE_ROWS_MAX, SiteListing, UnfinishedReading,
};

#[derive(Serialize)]
struct NewRow<'a> {
    identifier: &'a str,
    site: &'a str,
    name: Option<&'a str>,
    url: Option<&'a str>,
    version: Option<&'a str>,
    updated_at_ms: Option<i64>,
    publisher: Option<String>,
    rank: i32,
}

impl<'a> NewRow<'a> {
    fn of(entry: &'a RegistryEntry) -> impl Iterator<Item = Self> {
        let host = entry.publisher();
        let publisher = host.as_ref().map(|host| host.site().to_string());
        entry.sites.iter().map(move |site| NewRow {
            rank: ListingRank::of(host.as_ref(), site).number(),
            identifier: &entry.identifier,
            site: site.as_str(),
            name: entry.name.as_deref(),
            url: entry.url.as_deref(),
            version: entry.version.as_deref(),
            updated_at_ms: entry.updated_at.map(millis),
            publisher: publisher.clone(),
        })
    }
}

/// Saves a page and the position after it.
pub(crate) async fn registry_page_save(
    connection: &mut Connection,
    registry: &str,
    entries: &[RegistryEntry],
    position: Option<&RegistryPosition>,
    now_ms: i64,
) -> Outcome<RowsLeftOut> {
    let left_out = entries_save(connection, registry, entries, now_ms).await?;
    if let Some(position) = position {
        position_set(connection, registry, position).await?;
    }
    Ok(left_out)
}

/// The entries of a page by what becomes of the stored rows. Sorted, so that concurrent transactions lock rows in one order.
#[derive(Default)]
struct PageEntries<'a> {
    /// The entry of each identifier whose rows replace the stored ones. Of several, the last one counts of those that are closest to the
    /// publisher.
    kept: BTreeMap<&'a str, &'a RegistryEntry>,
    /// Identifiers that the registry has deleted.
    deleted: BTreeSet<&'a str>,
    /// Entries that may not be kept, by identifier and URL.
    withdrawn: BTreeSet<(&'a str, &'a str)>,
}

impl<'a> PageEntries<'a> {
    fn of(entries: &'a [RegistryEntry]) -> Self {
        let mut page = Self::default();
        for entry in entries {
            let identifier = entry.identifier.as_str();
            let before = page.kept.get(identifier);
            if entry.is_deleted {
                page.kept.remove(identifier);
                page.deleted.insert(identifier);
            } else if entry.sites.is_empty() {
                if before.is_some_and(|before| before.url == entry.url) {
                    page.kept.remove(identifier);
                }
                page.withdrawn.extend(entry.url.as_deref().map(|url| (identifier, url)));
            } else if before.is_none_or(|before| before.place() <= entry.place()) {
                page.kept.insert(identifier, entry);
            }
        }
        page
    }
}

/// Replaces the rows of these identifiers by a row for each site. A row is not replaced by an entry that is less close to the publisher. An
/// entry that may not be kept removes the rows with its URL. Returns how many rows are left out.
async fn entries_save(
    connection: &mut Connection,
    registry: &str,
    entries: &[RegistryEntry],
    now_ms: i64,
) -> Outcome<RowsLeftOut> {
    let PageEntries { mut kept, deleted, withdrawn } = PageEntries::of(entries);
    let gone: Vec<Withdrawn<'_>> =
        withdrawn.into_iter().map(|(identifier, url)| Withdrawn { identifier, url }).collect();
    sqlx::query(concat!(
        "DELETE FROM registry_entry WHERE registry = $2 AND (identifier, url) IN (SELECT identifier, url FROM ",
        batch!(identifier TEXT, url TEXT),
        ")"
    ))
    .bind(json(&gone, "batch of withdrawn entries")?)
    .bind(registry)
    .execute(&mut *connection)
    .await?;
    let others = kept.iter().filter(|(_, entry)| entry.place() < EntryPlace::Publisher);
    let others: Vec<&str> = others.map(|(identifier, _)| *identifier).collect();
    let stored = stored_places(connection, registry, &others).await?;
    kept.retain(|identifier, entry| {
        let is_closest = stored.get(*identifier).is_none_or(|place| *place <= entry.place());
        is_closest || deleted.contains(identifier)
    });
    sqlx::query(concat!("DELETE FROM registry_entry WHERE registry = $2 AND identifier IN ", list!()))
        .bind(names(deleted.iter().chain(kept.keys()).copied())?)
        .bind(registry)
        .execute(&mut *connection)
        .await?;
    let mut rows: Vec<NewRow<'_>> = kept.into_values().flat_map(NewRow::of).collect();
    let blocked = block::blocked_among(connection, &names(rows.iter().map(|row| row.site))?).await?;
    rows.retain(|row| !blocked.contains(row.site));
    let stored: i64 = sqlx::query_scalar("SELECT COUNT(*) FROM registry_entry WHERE registry = $1")
        .bind(registry)
        .fetch_one(&mut *connection)
        .await?;
    let room = usize::try_from(i64::from(REGISTRY_ROWS_MAX) - stored).unwrap_or_default();
    let of_registry = rows.len().saturating_sub(room) as u64;
    rows.truncate(room);
    sqlx::query(concat!(
        "INSERT INTO registry_entry
             (registry, identifier, site, name, url, version, updated_at_ms, seen_at_ms, publisher, rank)
         SELECT $2, identifier, site, name, url, version, updated_at_ms, $3, publisher, rank FROM ",
        batch!(
            identifier TEXT, site TEXT, name TEXT, url TEXT, version TEXT, updated_at_ms BIGINT, publisher TEXT,
            rank INTEGER
        ),
        " WHERE true ON CONFLICT (registry, identifier, site) DO NOTHING"
    ))
    .bind(json(&rows, "batch of registry entries")?)
    .bind(registry)
    .bind(now_ms)
    .execute(&mut *connection)
    .await?;
    let sites = names(rows.iter().map(|row| row.site))?;
    Ok(RowsLeftOut { of_registry, of_sites: rows_trim(connection, registry, &sites).await? })
}

/// Removes the last rows about sites ([`names`]) of which a registry has more than [`SITE_ROWS_MAX`]. Returns their number. The expression
/// `registry || ''` keeps the databases from reading all rows of the registry by its primary key.
async fn rows_trim(connection: &mut Connection, registry: &str, sites: &str) -> Outcome<u64> {
    let mut full: Vec<String> = sqlx::query_scalar(
        "SELECT asked.site FROM (SELECT DISTINCT value ->> 0 AS site FROM json_each($1)) AS asked
         WHERE EXISTS (SELECT 1 FROM registry_entry WHERE registry_entry.site = asked.site AND registry || '' = $2
                       LIMIT 1 OFFSET $3)",
    )
    .bind(sites)
    .bind(registry)
    .bind(i64::from(SITE_ROWS_MAX))
    .fetch_all(&mut *connection)
    .await?;
    // concurrent transactions lock rows in one order
    full.sort_unstable();
    let mut removed = 0;
    for site in full {
        let rows = sqlx::query(
            "DELETE FROM registry_entry WHERE registry = $1 AND site = $2 AND (rank, identifier) >= (
                 SELECT rank, identifier FROM registry_entry WHERE registry = $1 AND site = $2
                 ORDER BY rank, identifier LIMIT 1 OFFSET $3)",
        )
        .bind(registry)
        .bind(site)
        .bind(i64::from(SITE_ROWS_MAX))
        .execute(&mut *connection)
        .await?;
        removed += rows.rows_affected();
    }
    Ok(removed)
}

#[derive(Serialize)]
struct Withdrawn<'a> {
    identifier: &'a str,
    url: &'a str,
}

/// The places of the stored entries of these identifiers.
async fn stored_places(
    connection: &mut Connection,
    registry: &str,
    identifiers: &[&str],
) -> Outcome<HashMap<String, EntryPlace>> {
    if identifiers.is_empty() {
        return Ok(HashMap::new());
    }
    let rows: Vec<(String, Option<String>)> = sqlx::query_as(concat!(
        "SELECT identifier, url FROM registry_entry WHERE registry = $2 AND publisher = site AND identifier IN ",
        list!()
    ))
    .bind(names(identifiers.iter().copied())?)
    .bind(registry)
    .fetch_all(&mut *connection)
    .await?;
    let place = |(identifier, url): (String, Option<String>)| {
        let place = EntryPlace::of(&identifier, url.as_deref()?);
        Some((identifier, place))
    };
    Ok(rows.into_iter().filter_map(place).collect())
}

struct PositionRow {
    changed_until_ms: Option<i64>,
    read_whole_at_ms: Option<i64>,
    began_at_ms: Option<i64>,
    next_page: Option<String>,
    latest_ms: Option<i64>,
    failures: Option<i32>,
    page_entries: Option<i32>,
}

from_row!(PositionRow {
    changed_until_ms,
    read_whole_at_ms,
    began_at_ms,
    next_page,
    latest_ms,
    failures,
    page_entries
});

/// How far a registry has been read.
pub(crate) async fn registry_position(
    connection: &mut Connection,
    registry: &str,
) -> Outcome<Option<RegistryPosition>> {
    let row = sqlx::query(
        "SELECT changed_until_ms, read_whole_at_ms, began_at_ms, next_page, latest_ms, failures, page_entries
         FROM registry_position WHERE registry = $1",
    )
    .bind(registry)
    .fetch_optional(&mut *connection)
    .await?;
    let Some(row) = row else { return Ok(None) };
    let row: PositionRow = decode_row(&["registry_position"], &row)?;
    let at = RowRef::new("registry_position", registry);
    let time = |column, at_ms: Option<i64>| at_ms.map(|at_ms| at.time(column, at_ms)).transpose();
    let unfinished = match (time("began_at_ms", row.began_at_ms)?, row.next_page) {
        (Some(began_at), Some(next_page)) => {
            let failures = u32::try_from(row.failures.unwrap_or_default()).unwrap_or_default();
            Some(UnfinishedReading {
                began_at,
                next_page,
                latest: time("latest_ms", row.latest_ms)?,
                failures,
                page_entries: row.page_entries.map(to_u32),
            })
        }
        _ => None,
    };
    Ok(Some(RegistryPosition {
        changed_until: time("changed_until_ms", row.changed_until_ms)?,
        read_whole_at: time("read_whole_at_ms", row.read_whole_at_ms)?,
        unfinished,
    }))
}

/// Stores the position. After the last page, removes the entries that the last reading of all entries did not find. If one of them was at a
/// site of its publisher, the next reading is of all entries again, because this one left out others with its identifier.
async fn position_set(
    connection: &mut Connection,
    registry: &str,
    position: &RegistryPosition,
) -> Outcome<()> {
    let unfinished = position.unfinished.as_ref();
    sqlx::query(
        "INSERT INTO registry_position (registry, changed_until_ms, read_whole_at_ms, began_at_ms, next_page, latest_ms, failures,
                                        page_entries)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
         ON CONFLICT (registry) DO UPDATE SET changed_until_ms = excluded.changed_until_ms,
             read_whole_at_ms = excluded.read_whole_at_ms, began_at_ms = excluded.began_at_ms,
             next_page = excluded.next_page, latest_ms = excluded.latest_ms, failures = excluded.failures,
             page_entries = excluded.page_entries",
    )
    .bind(registry)
    .bind(position.changed_until.map(millis))
    .bind(position.read_whole_at.map(millis))
    .bind(unfinished.map(|reading| millis(reading.began_at)))
    .bind(unfinished.map(|reading| text(&reading.next_page).into_owned()))
    .bind(unfinished.and_then(|reading| reading.latest).map(millis))
    .bind(unfinished.map(|reading| to_i32(reading.failures)))
    .bind(unfinished.and_then(|reading| reading.page_entries).map(to_i32))
    .execute(&mut *connection)
    .await?;
    if let (Some(read_whole_at), None) = (position.read_whole_at, unfinished) {
        sqlx::query(
            "UPDATE registry_position SET read_whole_at_ms = NULL WHERE registry = $1 AND EXISTS (
                 SELECT 1 FROM registry_entry WHERE registry = $1 AND seen_at_ms < $2 AND publisher = site)",
        )
        .bind(registry)
        .bind(millis(read_whole_at))
        .execute(&mut *connection)
        .await?;
        sqlx::query("DELETE FROM registry_entry WHERE registry = $1 AND seen_at_ms < $2")
            .bind(registry)
            .bind(millis(read_whole_at))
            .execute(&mut *connection)
            .await?;
    }
    Ok(())
}

struct ListingRow {
    site: String,
    registry: String,
    identifier: String,
    name: Option<String>,
    url: Option<String>,
    version: Option<String>,
    updated_at_ms: Option<i64>,
    seen_at_ms: i64,
    publisher: Option<String>,
}

from_row!(ListingRow {
    site,
    registry,
    identifier,
    name,
    url,
    version,
    updated_at_ms,
    seen_at_ms,
    publisher
});

impl TryFrom<ListingRow> for SiteListing {
    type Error = StoreError;

    fn try_from(row: ListingRow) -> Result<Self, StoreError> {
        let at = RowRef::new("registry_entry", &row.identifier);
        Ok(Self {
            site: at.parse("site", &row.site)?,
            updated_at: row.updated_at_ms.map(|at_ms| at.time("updated_at_ms", at_ms)).transpose()?,
            seen_at: at.time("seen_at_ms", row.seen_at_ms)?,
            publisher: row.publisher.map(|site| at.parse("publisher", &site)).transpose()?,
            registry: row.registry,
            identifier: row.identifier,
            name: row.name,
            url: row.url,
            version: row.version,
        })
    }
}

/// The first entries about a site. The index `registry_entry_order` has them in this order.
pub(crate) const SITE_LISTINGS: &str = "
    SELECT site, registry, identifier, name, url, version, updated_at_ms, seen_at_ms, publisher
    FROM registry_entry WHERE site = $1 ORDER BY rank, registry, identifier LIMIT $2";

/// The first entries about each site. Each site takes one statement that reads the returned rows alone.
pub(crate) async fn site_listings(
    connection: &mut Connection,
    sites: &[SiteName],
    max_of_site: i64,
) -> Outcome<Vec<SiteListing>> {
    let mut listings = Vec::new();
    for site in sites.iter().collect::<BTreeSet<_>>() {
        let found = sqlx::query(SITE_LISTINGS).bind(site.as_str()).bind(max_of_site);
        let rows = found.fetch_all(&mut *connection).await?;
        listings.extend(intact(decode::<ListingRow>(&["registry_entry"], &rows), SiteListing::try_from));
    }
    Ok(listings)
}
