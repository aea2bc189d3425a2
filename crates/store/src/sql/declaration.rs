//! Stores which declarations of a site belong to the same capability, and the ids under which it is served.

use std::collections::{BTreeMap, HashSet};

use chrono::{DateTime, Utc};
use manifest::declaration::{Before, Declared, Excerpt, Member, Moves, Named, SiteManifest, group, name};
use manifest::{Capability, CapabilityId, Manifest, ManifestId, ManifestUrl, SiteName};
use policy::naming::SiteNaming;
use serde::Serialize;

use super::manifest::manifest_find;
use super::rows::decode;
use super::{Connection, batch};
use crate::convert::{RowRef, intact, json, log_damaged, names, to_i32};
use crate::fault::{Fault, Outcome};
use crate::model::{FeedChange, SharedCapability};
use crate::packed::{Packed as _, PackedDeclaration};
use crate::plan::Change;
use crate::prepare::CapabilityKeys;

/// Maximum number of declarations of one site that are grouped: the first ones by manifest and id. The others remain separate capabilities.
const DECLARATIONS_MAX: i64 = 20_000;
/// Maximum number of declarations read with one statement; the rest is left out. A page of manifests has at most 5,000 capabilities, or
/// slightly more than fit into a MiB of JSON, and at most 16 declarations of each are read.
const READ_MAX: i64 = 100_000;
/// Maximum number of manifests of one visit whose declarations get the keys and statements that they lack.
const MANIFESTS_COMPLETED_MAX: i64 = 16;
/// Maximum number of statements per write.
const STATEMENTS_WRITTEN_MAX: usize = 200;

/// The grouping of a site before its manifests change.
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

/// Recomputes the grouping after the manifests of the site have changed. Returns the entries for the feed.
pub(crate) async fn declarations_regroup(
    connection: &mut Connection,
    site: &SiteName,
    (before, naming): (&Before, &SiteNaming),
    at: DateTime<Utc>,
) -> Outcome<Vec<Change>> {
    statements_complete(connection, site).await?;
    let groups = group(&manifests_declared(connection, site, naming).await?);
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
async fn manifests_declared(
    connection: &mut Connection,
    site: &SiteName,
    naming: &SiteNaming,
) -> Outcome<Vec<SiteManifest>> {
    let rows = sqlx::query(concat!(
        "SELECT manifest.id, url, format, content_hash, capability.id, native_id, operation, fullness
         FROM manifest JOIN capability ON capability.manifest_id = manifest.id
         WHERE manifest.site = $1 AND removed_at_ms IS NULL ORDER BY ",
        trust_rank!(),
        ", manifest.id, capability.id LIMIT $2"
    ))
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
                let url: ManifestUrl = at.parse("url", &url)?;
                Ok(SiteManifest {
                    id: at.parse("id", &manifest)?,
                    host: url.host(),
                    format: at.parse("format", &format)?,
                    content_hash: at.parse("content_hash", &hash)?,
                    publisher: naming.publisher(&url),
                    links_away: naming.links_away(&url).unwrap_or_default(),
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

/// Writes the statements of the declarations in manifests that this visit has read.
pub(crate) async fn statements_add<'m>(
    connection: &mut Connection,
    manifests: impl IntoIterator<Item = &'m Manifest>,
) -> Outcome<()> {
    for manifest in manifests {
        statements_write(connection, manifest).await?;
    }
    Ok(())
}

/// The keys by which a declaration is grouped with others, and its statement.
#[derive(Serialize)]
struct StatementRow<'a> {
    #[serde(flatten)]
    keys: CapabilityKeys<'a>,
    statement: String,
}

async fn statements_write(connection: &mut Connection, manifest: &Manifest) -> Outcome<()> {
    // If a document declares a capability twice, the first declaration counts.
    let mut seen = HashSet::new();
    let capabilities: Vec<&Capability> =
        manifest.capabilities.iter().filter(|capability| seen.insert(&capability.id)).collect();
    for capabilities in capabilities.chunks(STATEMENTS_WRITTEN_MAX) {
        let mut rows = Vec::with_capacity(capabilities.len());
        for capability in capabilities {
            let statement = json(&Excerpt::of(manifest, capability), "statement of a declaration")?;
            rows.push(StatementRow { keys: CapabilityKeys::of(manifest, capability), statement });
        }
        sqlx::query(concat!(
            "UPDATE capability SET operation = batch.operation, fullness = batch.fullness, statement = batch.statement FROM ",
            batch!(id TEXT, operation TEXT, fullness INTEGER, statement TEXT),
            // The expression prevents SQLite from using the index on manifest_id, with which it would read all rows of the manifest for
            // each row of the batch.
            " WHERE capability.id = batch.id AND capability.manifest_id || '' = $2"
        ))
        .bind(json(&rows, "batch of statements")?)
        .bind(manifest.id.as_str())
        .execute(&mut *connection)
        .await?;
    }
    Ok(())
}

/// Writes the keys and statements that are missing, for a bounded number of manifests: those of a site's first manifest when a second one
/// is added, and those that a program of an earlier schema did not write.
async fn statements_complete(connection: &mut Connection, site: &SiteName) -> Outcome<()> {
    let without: Vec<String> = sqlx::query_scalar(
        "SELECT id FROM manifest WHERE site = $1 AND removed_at_ms IS NULL
         AND EXISTS (SELECT 1 FROM capability
                     WHERE manifest_id = manifest.id AND (fullness IS NULL OR statement IS NULL))
         ORDER BY id LIMIT $2",
    )
    .bind(site.as_str())
    .bind(MANIFESTS_COMPLETED_MAX)
    .fetch_all(&mut *connection)
    .await?;
    for id in without {
        let Some(id) = log_damaged(RowRef::new("manifest", &id).parse::<ManifestId>("id", &id)) else {
            continue;
        };
        // the capabilities of a damaged manifest stay separate
        let stored = match manifest_find(connection, &id).await {
            Err(Fault::Store(error)) => log_damaged(Err(error)).flatten(),
            found => found?,
        };
        if let Some(stored) = stored.and_then(|packed| log_damaged(packed.unpack())) {
            statements_write(connection, &stored.manifest).await?;
        }
        sqlx::query(
            "UPDATE capability SET fullness = COALESCE(fullness, 0), statement = COALESCE(statement, '')
             WHERE manifest_id = $1 AND (fullness IS NULL OR statement IS NULL)",
        )
        .bind(id.as_str())
        .execute(&mut *connection)
        .await?;
    }
    Ok(())
}

/// Selects columns of the listed declarations in the index whose statements are stored.
macro_rules! select_statements {
    ($columns:expr) => {
        concat!(
            "SELECT ",
            $columns,
            " FROM capability c JOIN manifest m ON m.id = c.manifest_id AND m.removed_at_ms IS NULL
             WHERE octet_length(c.statement) > 0 AND c.id IN ",
            list!()
        )
    };
}

/// The bytes of the statements of the listed declarations in the index that have one, in no order.
pub(crate) async fn declaration_sizes(
    connection: &mut Connection,
    ids: &[CapabilityId],
) -> Outcome<Vec<(CapabilityId, u64)>> {
    let rows = sqlx::query(select_statements!("c.id, CAST(octet_length(c.statement) AS BIGINT)"))
        .bind(names(ids.iter().map(CapabilityId::as_str))?)
        .fetch_all(&mut *connection)
        .await?;
    Ok(intact(decode(&["capability"], &rows), |(id, bytes): (String, i64)| {
        let id = RowRef::new("capability", &id).parse("id", &id)?;
        Ok((id, u64::try_from(bytes).unwrap_or_default()))
    }))
}

/// The listed declarations in the index whose statements are stored, in no order.
pub(crate) async fn declarations_load(
    connection: &mut Connection,
    ids: &[CapabilityId],
) -> Outcome<Vec<PackedDeclaration>> {
    let rows = sqlx::query(select_statements!(
        "c.id, c.statement, m.status, m.training, m.named_by, m.publisher, m.first_seen_at_ms,
         m.last_seen_at_ms, m.changed_at_ms"
    ))
    .bind(names(ids.iter().map(CapabilityId::as_str))?)
    .fetch_all(&mut *connection)
    .await?;
    Ok(intact(decode(&["capability", "manifest"], &rows), Ok))
}

type SharedRow = (String, String, String);

/// Whether a declaration is compared and listed: one of the first [`manifest::declaration::DECLARATIONS_MAX`] of its capability.
macro_rules! is_listed {
    () => {
        "d.place < 16"
    };
}

const _: () = assert!(manifest::declaration::DECLARATIONS_MAX == 16, "the number in is_listed!");

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

/// The capability under which an id is served, if it has several declarations or the id belonged to another one, with the declarations that
/// are listed.
pub(crate) async fn capability_shared(
    connection: &mut Connection,
    id: &CapabilityId,
) -> Outcome<Option<SharedCapability>> {
    let statement = select_declarations!(concat!(
        "d.capability_id = (SELECT capability_id FROM declaration WHERE id = $1) AND ",
        is_listed!()
    ));
    Ok(shared(connection, statement, id.as_str()).await?.pop())
}

/// The capabilities of the listed manifests that have several declarations or the id of another one, with the declarations that
/// are listed and those of these manifests.
pub(crate) async fn capabilities_shared_by(
    connection: &mut Connection,
    manifests: &[ManifestId],
) -> Outcome<Vec<SharedCapability>> {
    let statement = select_declarations!(concat!(
        "d.capability_id IN (SELECT capability_id FROM declaration WHERE manifest_id IN ",
        list!(),
        ") AND (",
        is_listed!(),
        " OR d.manifest_id IN ",
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
