//! Which declarations of a site are one capability, and which ids answer for it.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use manifest::declaration::{Before, Declared, Member, Moves, Named, SiteManifest, group, name};
use manifest::{CapabilityId, ManifestId, SiteName};
use serde::Serialize;

use super::manifest::manifest_find;
use super::rows::decode;
use super::{Connection, batch};
use crate::convert::{RowRef, intact, json, log_damaged, names, to_i32};
use crate::fault::{Fault, Outcome};
use crate::model::{FeedChange, SharedCapability};
use crate::plan::Change;
use crate::prepare::CapabilityKeys;

/// Declarations of one site that are grouped, the first by manifest and id. The others stay capabilities of their own.
const DECLARATIONS_MAX: i64 = 20_000;
/// Declarations that are read at once; those after them are left out.
const READ_MAX: i64 = 50_000;
/// Manifests of one visit whose declarations get the keys that a program of an earlier schema did not write.
const MANIFESTS_KEYED_MAX: i64 = 16;

/// The decision about a site before its manifests change.
pub(crate) async fn declarations_before(connection: &mut Connection, site: &SiteName) -> Outcome<Before> {
    let known: Vec<String> = sqlx::query_scalar(
        "SELECT id FROM capability WHERE manifest_id IN (SELECT id FROM manifest WHERE site = $1)
         ORDER BY id LIMIT $2",
    )
    .bind(site.as_str())
    .bind(DECLARATIONS_MAX)
    .fetch_all(&mut *connection)
    .await?;
    let known = intact(known.into_iter().map(Ok), |id| RowRef::new("capability", &id).parse("id", &id));
    let rows = sqlx::query("SELECT id, capability_id FROM declaration WHERE site = $1")
        .bind(site.as_str())
        .fetch_all(&mut *connection)
        .await?;
    let rows = decode(&["declaration"], &rows);
    let capabilities = intact(rows, |(id, capability): (String, String)| {
        let at = RowRef::new("declaration", &id);
        Ok((at.parse("id", &id)?, at.parse("capability_id", &capability)?))
    });
    Ok(Before { known: known.into_iter().collect(), capabilities: capabilities.into_iter().collect() })
}

/// Decides again, after the manifests of the site changed. Returns what the feed tells.
pub(crate) async fn declarations_regroup(
    connection: &mut Connection,
    site: &SiteName,
    before: &Before,
    at: DateTime<Utc>,
) -> Outcome<Vec<Change>> {
    keys_complete(connection, site).await?;
    let groups = group(&manifests_declared(connection, site).await?);
    let (named, regrouped) = name(groups, before);
    sqlx::query("DELETE FROM declaration WHERE site = $1")
        .bind(site.as_str())
        .execute(&mut *connection)
        .await?;
    let rows: Vec<DeclarationRow<'_>> =
        named.iter().filter(|named| !named.is_plain()).flat_map(DeclarationRow::of).collect();
    if !rows.is_empty() {
        sqlx::query(concat!(
            "INSERT INTO declaration (id, capability_id, site, manifest_id, place)
             SELECT id, capability_id, $2, manifest_id, place FROM ",
            batch!(id TEXT, capability_id TEXT, manifest_id TEXT, place INTEGER),
            " WHERE true ON CONFLICT (id) DO NOTHING"
        ))
        .bind(json(&rows, "batch of declarations")?)
        .bind(site.as_str())
        .execute(&mut *connection)
        .await?;
    }
    let change = |what| {
        move |(manifest_id, moves): (ManifestId, Moves)| {
            let reason =
                Some(moves_in_words(&moves, if what == FeedChange::Merged { "into" } else { "out of" }));
            Change { what, manifest_id, at, reason }
        }
    };
    let split = regrouped.split.into_iter().map(change(FeedChange::Split));
    Ok(split.chain(regrouped.merged.into_iter().map(change(FeedChange::Merged))).collect())
}

/// `c1 into c2, c3 into c4 and 5 more`
fn moves_in_words(moves: &Moves, preposition: &str) -> String {
    let listed = moves.listed.iter();
    let listed: Vec<String> =
        listed.map(|(declaration, capability)| format!("{declaration} {preposition} {capability}")).collect();
    let more = moves.count - listed.len();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", listed.join(", "))
}

#[derive(Serialize)]
struct DeclarationRow<'a> {
    id: &'a str,
    capability_id: &'a str,
    manifest_id: Option<&'a str>,
    place: i32,
}

impl<'a> DeclarationRow<'a> {
    fn of(named: &'a Named) -> impl Iterator<Item = Self> {
        let row = |id: &'a CapabilityId, manifest_id, place: usize| Self {
            id: id.as_str(),
            capability_id: named.id.as_str(),
            manifest_id,
            place: to_i32(place),
        };
        let members = named.members.iter().enumerate();
        let members =
            members.map(move |(place, member)| row(&member.id, Some(member.manifest.as_str()), place));
        let last = named.members.len();
        members.chain(named.former.iter().map(move |id| row(id, None, last)))
    }
}

type DeclaredRow = (String, String, String, String, String, String, Option<String>, Option<i32>);

/// The manifests of a site in the index with their declarations.
async fn manifests_declared(connection: &mut Connection, site: &SiteName) -> Outcome<Vec<SiteManifest>> {
    let rows = sqlx::query(
        "SELECT manifest.id, url, format, content_hash, capability.id, native_id, operation, fullness
         FROM manifest JOIN capability ON capability.manifest_id = manifest.id
         WHERE manifest.site = $1 AND removed_at_ms IS NULL ORDER BY manifest.id, capability.id LIMIT $2",
    )
    .bind(site.as_str())
    .bind(DECLARATIONS_MAX)
    .fetch_all(&mut *connection)
    .await?;
    let mut manifests: Vec<SiteManifest> = Vec::new();
    for row in intact(decode::<DeclaredRow>(&["manifest", "capability"], &rows), Ok) {
        let (manifest, url, format, hash, id, native_id, operation, fullness) = row;
        if manifests.last().is_none_or(|last| last.id.as_str() != manifest) {
            let at = RowRef::new("manifest", &manifest);
            let parse = || {
                Ok(SiteManifest {
                    id: at.parse("id", &manifest)?,
                    host: at.parse::<manifest::ManifestUrl>("url", &url)?.host(),
                    format: at.parse("format", &format)?,
                    content_hash: at.parse("content_hash", &hash)?,
                    declarations: Vec::new(),
                })
            };
            let Some(parsed) = log_damaged(parse()) else { continue };
            manifests.push(parsed);
        }
        let Some(id) = log_damaged(RowRef::new("capability", &id).parse("id", &id)) else { continue };
        let fullness = u32::try_from(fullness.unwrap_or_default()).unwrap_or_default();
        if let Some(last) = manifests.last_mut() {
            last.declarations.push(Declared { id, native_id, operation, fullness });
        }
    }
    Ok(manifests)
}

/// Writes the keys that a program of an earlier schema did not write, for a bounded number of manifests.
async fn keys_complete(connection: &mut Connection, site: &SiteName) -> Outcome<()> {
    let unkeyed: Vec<String> = sqlx::query_scalar(
        "SELECT id FROM manifest WHERE site = $1 AND removed_at_ms IS NULL
         AND EXISTS (SELECT 1 FROM capability WHERE manifest_id = manifest.id AND fullness IS NULL)
         ORDER BY id LIMIT $2",
    )
    .bind(site.as_str())
    .bind(MANIFESTS_KEYED_MAX)
    .fetch_all(&mut *connection)
    .await?;
    for id in unkeyed {
        let Some(id) = log_damaged(RowRef::new("manifest", &id).parse::<ManifestId>("id", &id)) else {
            continue;
        };
        // A damaged manifest keeps capabilities of their own.
        let stored = match manifest_find(connection, &id).await {
            Err(Fault::Store(error)) => log_damaged(Err(error)).flatten(),
            found => found?,
        };
        if let Some(stored) = stored {
            let rows: Vec<CapabilityKeys<'_>> = stored
                .manifest
                .capabilities
                .iter()
                .map(|capability| CapabilityKeys::of(&stored.manifest, capability))
                .collect();
            sqlx::query(concat!(
                "UPDATE capability SET operation = batch.operation, fullness = batch.fullness FROM ",
                batch!(id TEXT, operation TEXT, fullness INTEGER),
                " WHERE capability.id = batch.id AND capability.manifest_id = $2"
            ))
            .bind(json(&rows, "batch of keys")?)
            .bind(id.as_str())
            .execute(&mut *connection)
            .await?;
        }
        sqlx::query("UPDATE capability SET fullness = 0 WHERE manifest_id = $1 AND fullness IS NULL")
            .bind(id.as_str())
            .execute(&mut *connection)
            .await?;
    }
    Ok(())
}

type SharedRow = (String, String, String);

/// Selects declarations in the index by a condition, those of one capability together and in their order.
macro_rules! select_declarations {
    ($condition:expr) => {
        concat!(
            "SELECT d.id, d.capability_id, d.manifest_id FROM declaration d
             JOIN manifest m ON m.id = d.manifest_id AND m.removed_at_ms IS NULL
             WHERE ",
            $condition,
            " ORDER BY d.capability_id, d.place, d.id LIMIT $2"
        )
    };
}

/// The capability that an id is answered with, where it has several declarations or the id of another one.
pub(crate) async fn capability_shared(
    connection: &mut Connection,
    id: &CapabilityId,
) -> Outcome<Option<SharedCapability>> {
    let statement =
        select_declarations!("d.capability_id = (SELECT capability_id FROM declaration WHERE id = $1)");
    Ok(shared(connection, statement, id.as_str()).await?.pop())
}

/// The capabilities of the listed manifests that have several declarations or the id of another one.
pub(crate) async fn capabilities_shared_by(
    connection: &mut Connection,
    manifests: &[ManifestId],
) -> Outcome<Vec<SharedCapability>> {
    let statement = select_declarations!(concat!(
        "d.capability_id IN (SELECT capability_id FROM declaration WHERE manifest_id IN ",
        list!(),
        ")"
    ));
    shared(connection, statement, &names(manifests.iter().map(ManifestId::as_str))?).await
}

/// The capabilities of a site that have several declarations or the id of another one.
pub(crate) async fn capabilities_shared_of_site(
    connection: &mut Connection,
    site: &SiteName,
) -> Outcome<Vec<SharedCapability>> {
    shared(connection, select_declarations!("d.site = $1"), site.as_str()).await
}

async fn shared(
    connection: &mut Connection,
    statement: &'static str,
    parameter: &str,
) -> Outcome<Vec<SharedCapability>> {
    let rows = sqlx::query(statement).bind(parameter).bind(READ_MAX).fetch_all(&mut *connection).await?;
    let rows = intact(decode(&["declaration"], &rows), |(id, capability, manifest): SharedRow| {
        let at = RowRef::new("declaration", &id);
        let member = Member { id: at.parse("id", &id)?, manifest: at.parse("manifest_id", &manifest)? };
        Ok((at.parse::<CapabilityId>("capability_id", &capability)?, member))
    });
    let mut shared: BTreeMap<CapabilityId, Vec<Member>> = BTreeMap::new();
    for (capability, member) in rows {
        shared.entry(capability).or_default().push(member);
    }
    Ok(shared.into_iter().map(|(id, members)| SharedCapability { id, members }).collect())
}
