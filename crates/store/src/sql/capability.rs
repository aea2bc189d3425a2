//! Capabilities in the index and their semantic types.

use manifest::ManifestId;

use super::rows::decode;
use super::{Connection, batch};
use crate::convert::{intact, json, to_u64};
use crate::fault::Outcome;
use crate::model::{NamespaceCount, SemanticTypeCount};
use crate::prepare::CapabilityBatch;

/// Maximum number of types in one answer. Publishers may invent names, so their number is unlimited.
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
                "INSERT INTO capability (id, manifest_id, site, native_id, name, kind, operation, fullness)
                 SELECT id, $2, $3, native_id, name, kind, operation, fullness FROM ",
                batch!(
                    id TEXT, native_id TEXT, name TEXT, kind TEXT, operation TEXT, fullness INTEGER
                ),
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

/// The semantic types in the index, most frequent first. Declarations of one capability count once.
pub(crate) async fn semantic_types(connection: &mut Connection) -> Outcome<Vec<SemanticTypeCount>> {
    let rows = sqlx::query(
        "SELECT name, COUNT(DISTINCT counted) AS capabilities, COUNT(DISTINCT CASE WHEN declared = 1 THEN counted END),
                COUNT(DISTINCT site)
         FROM (SELECT t.name, t.declared, t.site, COALESCE(d.capability_id, t.capability_id) AS counted
               FROM capability_type t LEFT JOIN declaration d ON d.id = t.capability_id) AS typed
         GROUP BY name ORDER BY capabilities DESC, name LIMIT $1",
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

/// The namespaces of the given types, with the capabilities and sites of these types. Each capability counts once in a namespace. Each row
/// is read for one type only, so the time is linear even if names are nested.
pub(crate) async fn semantic_namespaces(
    connection: &mut Connection,
    types: &[SemanticTypeCount],
) -> Outcome<Vec<NamespaceCount>> {
    let with_namespace = types.iter().filter(|counted| !counted.namespace.is_empty());
    let wanted: Vec<_> = with_namespace.map(|counted| [&counted.name, &counted.namespace]).collect();
    let wanted = json(&wanted, "list of semantic types")?;
    let rows: Vec<(String, i64, i64)> = sqlx::query_as(
        "SELECT namespace, COUNT(DISTINCT COALESCE(d.capability_id, t.capability_id)) AS capabilities,
                COUNT(DISTINCT t.site)
         FROM (SELECT value ->> 0 AS type_name, value ->> 1 AS namespace FROM json_each($1)) AS wanted
         JOIN capability_type t ON t.name = wanted.type_name
         LEFT JOIN declaration d ON d.id = t.capability_id
         GROUP BY namespace ORDER BY capabilities DESC, namespace",
    )
    .bind(wanted)
    .fetch_all(&mut *connection)
    .await?;
    let counts = rows.into_iter().map(|(namespace, capabilities, sites)| NamespaceCount {
        namespace,
        capabilities: to_u64(capabilities),
        sites: to_u64(sites),
    });
    Ok(counts.collect())
}
