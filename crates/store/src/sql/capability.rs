//! Capabilities in the index: which manifest declares them, and their semantic types for the counts.

use manifest::ManifestId;

use super::Connection;
use crate::fault::Outcome;
use crate::model::{NamespaceCount, SemanticTypeCount};
use crate::pack::{names, sized};
use crate::packed::CapabilityBatch;

/// Puts a manifest's capabilities into the index, where it has none.
pub(crate) async fn capabilities_add(
    connection: &mut Connection,
    manifest: &ManifestId,
    site: &str,
    batch: &CapabilityBatch,
) -> Outcome<()> {
    for (statement, rows) in [
        (
            "INSERT INTO capability (id, manifest_id, site, native_id, name, kind)
             SELECT value ->> 0, $2, $3, value ->> 1, value ->> 2, value ->> 3 FROM json_each($1) WHERE true
             ON CONFLICT (id) DO NOTHING",
            &batch.capabilities,
        ),
        (
            "INSERT INTO capability_type (name, capability_id, manifest_id, site, declared)
             SELECT value ->> 0, value ->> 1, $2, $3, CAST(value ->> 2 AS INTEGER) FROM json_each($1) WHERE true
             ON CONFLICT (name, capability_id) DO NOTHING",
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

/// Takes a manifest's capabilities out of the index.
pub(crate) async fn capabilities_remove(connection: &mut Connection, manifest: &ManifestId) -> Outcome<()> {
    for statement in [
        "DELETE FROM capability_type WHERE manifest_id = $1",
        "DELETE FROM capability WHERE manifest_id = $1",
    ] {
        sqlx::query(statement).bind(manifest.as_str()).execute(&mut *connection).await?;
    }
    Ok(())
}

/// Types told of: publishers invent names freely, and an answer has to end somewhere.
const TYPES_MAX: i64 = 5_000;

/// The semantic types in the index, most frequent first.
pub(crate) async fn semantic_types(connection: &mut Connection) -> Outcome<Vec<SemanticTypeCount>> {
    let rows: Vec<(String, i64, i64, i64)> = sqlx::query_as(
        "SELECT name, COUNT(*) AS capabilities, CAST(SUM(declared) AS BIGINT), COUNT(DISTINCT site)
         FROM capability_type GROUP BY name ORDER BY capabilities DESC, name LIMIT $1",
    )
    .bind(TYPES_MAX)
    .fetch_all(&mut *connection)
    .await?;
    let counts = rows.into_iter().map(|(name, capabilities, declared, sites)| SemanticTypeCount {
        namespace: name.split(':').next().unwrap_or_default().to_owned(),
        name,
        capabilities: sized(capabilities),
        declared: sized(declared),
        sites: sized(sites),
    });
    Ok(counts.collect())
}

/// Namespaces with their capabilities and sites, each counted once however many of its types they have.
pub(crate) async fn semantic_namespaces(
    connection: &mut Connection,
    namespaces: &[&str],
) -> Outcome<Vec<NamespaceCount>> {
    // Between `travel:` and `travel;`, the next character, are all names of the namespace, so an index serves.
    let rows: Vec<(String, i64, i64)> = sqlx::query_as(
        "SELECT asked.value ->> 0, COUNT(DISTINCT capability_id), COUNT(DISTINCT site)
         FROM json_each($1) asked
         JOIN capability_type ON name >= (asked.value ->> 0) || ':' AND name < (asked.value ->> 0) || ';'
         GROUP BY asked.value ->> 0 ORDER BY COUNT(DISTINCT capability_id) DESC, asked.value ->> 0",
    )
    .bind(names(namespaces.iter().copied())?)
    .fetch_all(&mut *connection)
    .await?;
    let counts = rows.into_iter().map(|(namespace, capabilities, sites)| NamespaceCount {
        namespace,
        capabilities: sized(capabilities),
        sites: sized(sites),
    });
    Ok(counts.collect())
}
