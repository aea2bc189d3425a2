//! Capabilities in the index and their semantic types.

use manifest::ManifestId;

use super::rows::decode;
use super::{Connection, batch};
use crate::convert::{intact, json, to_u64};
use crate::fault::Outcome;
use crate::model::{NamespaceCount, SemanticTypeCount};
use crate::prepare::CapabilityBatch;

/// Types of one answer: publishers invent names freely.
const TYPES_MAX: i64 = 5_000;

/// Adds a manifest's capabilities to the index.
pub(crate) async fn capabilities_add(
    connection: &mut Connection,
    manifest: &ManifestId,
    site: &str,
    batch: &CapabilityBatch,
) -> Outcome<()> {
    for (statement, rows) in [
        (
            concat!(
                "INSERT INTO capability (id, manifest_id, site, native_id, name, kind)
                 SELECT id, $2, $3, native_id, name, kind FROM ",
                batch!(id TEXT, native_id TEXT, name TEXT, kind TEXT),
                " WHERE true ON CONFLICT (id) DO NOTHING"
            ),
            &batch.capabilities,
        ),
        (
            concat!(
                "INSERT INTO capability_type (name, capability_id, manifest_id, site, declared)
                 SELECT name, capability_id, $2, $3, declared FROM ",
                batch!(name TEXT, capability_id TEXT, declared INTEGER),
                " WHERE true ON CONFLICT (name, capability_id) DO NOTHING"
            ),
            &batch.types,
        ),
    ] {
        if let Some(rows) = rows {
            sqlx::query(statement)
                .bind(rows)
                .bind(manifest.as_str())
                .bind(site)
                .execute(&mut *connection)
                .await?;
        }
    }
    Ok(())
}

/// Removes a manifest's capabilities from the index.
pub(crate) async fn capabilities_remove(connection: &mut Connection, manifest: &ManifestId) -> Outcome<()> {
    for statement in [
        "DELETE FROM capability_type WHERE manifest_id = $1",
        "DELETE FROM capability WHERE manifest_id = $1",
    ] {
        sqlx::query(statement).bind(manifest.as_str()).execute(&mut *connection).await?;
    }
    Ok(())
}

/// The semantic types in the index, most frequent first.
pub(crate) async fn semantic_types(connection: &mut Connection) -> Outcome<Vec<SemanticTypeCount>> {
    let rows = sqlx::query(
        "SELECT name, COUNT(*) AS capabilities, COUNT(CASE WHEN declared = 1 THEN 1 END), COUNT(DISTINCT site)
         FROM capability_type GROUP BY name ORDER BY capabilities DESC, name LIMIT $1",
    )
    .bind(TYPES_MAX)
    .fetch_all(&mut *connection)
    .await?;
    let rows = decode(&["capability_type"], &rows);
    Ok(intact(rows, |(name, capabilities, declared, sites): (String, i64, i64, i64)| {
        Ok(SemanticTypeCount {
            namespace: manifest::semantic_namespace(&name).unwrap_or_default().to_owned(),
            name,
            capabilities: to_u64(capabilities),
            declared: to_u64(declared),
            sites: to_u64(sites),
        })
    }))
}

/// Namespaces with their capabilities and sites; each counts once however many of its types it has.
pub(crate) async fn semantic_namespaces(
    connection: &mut Connection,
    namespaces: &[&str],
) -> Outcome<Vec<NamespaceCount>> {
    // All names of a namespace lie between `travel:` and `travel;`, the next character, so an index serves. Of an IRI the
    // separator may be another one.
    let ranges = namespaces.iter().flat_map(|namespace| {
        let separators =
            if namespace.contains(':') { &[(':', ';'), ('#', '$'), ('/', '0')][..] } else { &[(':', ';')] };
        separators.iter().map(move |(first, end)| {
            [(*namespace).to_owned(), format!("{namespace}{first}"), format!("{namespace}{end}")]
        })
    });
    let ranges = json(&ranges.collect::<Vec<_>>(), "ranges of semantic types")?;
    let rows: Vec<(String, i64, i64)> = sqlx::query_as(
        "SELECT namespace, COUNT(DISTINCT capability_id), COUNT(DISTINCT site)
         FROM (SELECT value ->> 0 AS namespace, value ->> 1 AS first, value ->> 2 AS past FROM json_each($1)) AS wanted
         JOIN capability_type ON name >= wanted.first AND name < past
         GROUP BY namespace ORDER BY COUNT(DISTINCT capability_id) DESC, namespace",
    )
    .bind(ranges)
    .fetch_all(&mut *connection)
    .await?;
    let counts = rows.into_iter().map(|(namespace, capabilities, sites)| NamespaceCount {
        namespace,
        capabilities: to_u64(capabilities),
        sites: to_u64(sites),
    });
    Ok(counts.collect())
}
