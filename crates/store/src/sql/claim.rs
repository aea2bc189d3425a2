//! Claims to sites and their owners, and the secret of this instance's tokens.

use manifest::SiteName;
use policy::claim::{Claim, Owner, Proof};
use policy::key::KeyHash;

use super::Connection;
use super::rows::{decode, decode_by};
use crate::StoreError;
use crate::convert::{RowRef, intact, log_damaged, millis, millis_of, names, text_of};
use crate::fault::Outcome;
use crate::from_row::from_row;

struct ClaimRow {
    site: String,
    asked_at_ms: Option<i64>,
    key_hash: Option<String>,
    proof: Option<String>,
    since_ms: Option<i64>,
    proven_at_ms: Option<i64>,
    missing_since_ms: Option<i64>,
    checked_at_ms: Option<i64>,
    finding: Option<String>,
}

from_row!(ClaimRow {
    site,
    asked_at_ms,
    key_hash,
    proof,
    since_ms,
    proven_at_ms,
    missing_since_ms,
    checked_at_ms,
    finding
});

impl TryFrom<ClaimRow> for Claim {
    type Error = StoreError;

    fn try_from(row: ClaimRow) -> Result<Self, StoreError> {
        let at = RowRef::new("site_claim", &row.site);
        let missing = |column| at.damaged(column, "is null although the site has an owner");
        let owner = match at.parse_of::<KeyHash>("key_hash", row.key_hash.as_ref())? {
            None => None,
            Some(key_hash) => Some(Owner {
                key_hash,
                proof: at.parse_of::<Proof>("proof", row.proof.as_ref())?.ok_or_else(|| missing("proof"))?,
                since: at.time_of("since_ms", row.since_ms)?.ok_or_else(|| missing("since_ms"))?,
                proven_at: at
                    .time_of("proven_at_ms", row.proven_at_ms)?
                    .ok_or_else(|| missing("proven_at_ms"))?,
                missing_since: at.time_of("missing_since_ms", row.missing_since_ms)?,
            }),
        };
        Ok(Self {
            asked_at: at.time_of("asked_at_ms", row.asked_at_ms)?,
            owner,
            checked_at: at.time_of("checked_at_ms", row.checked_at_ms)?,
            finding: row.finding,
        })
    }
}

/// The claims of the listed sites. A damaged claim counts as absent, so that its site is still visited.
pub(crate) async fn claims_of(connection: &mut Connection, sites: &str) -> Outcome<Vec<(String, Claim)>> {
    let rows = sqlx::query(concat!(
        "SELECT site, asked_at_ms, key_hash, proof, since_ms, proven_at_ms, missing_since_ms, checked_at_ms, finding
         FROM site_claim WHERE site IN ",
        list!()
    ))
    .bind(sites)
    .fetch_all(&mut *connection)
    .await?;
    let rows = decode_by::<ClaimRow>(&["site_claim"], "site", &rows).into_iter();
    let claim = |(site, row): (String, Result<ClaimRow, StoreError>)| {
        Some((site, log_damaged(row.and_then(Claim::try_from))?))
    };
    Ok(rows.filter_map(claim).collect())
}

/// The claim to a site, if there is one.
pub(crate) async fn claim_find(connection: &mut Connection, site: &str) -> Outcome<Option<Claim>> {
    let mut claims = claims_of(connection, &names([site])?).await?;
    Ok(claims.pop().map(|(_, claim)| claim))
}

/// Up to `max` sites that have owners.
pub(crate) async fn sites_owned(connection: &mut Connection, max: i64) -> Outcome<Vec<(SiteName, Owner)>> {
    let rows = sqlx::query(
        "SELECT site, asked_at_ms, key_hash, proof, since_ms, proven_at_ms, missing_since_ms, checked_at_ms, finding
         FROM site_claim WHERE key_hash IS NOT NULL ORDER BY site LIMIT $1",
    )
    .bind(max)
    .fetch_all(&mut *connection)
    .await?;
    let owned = intact(decode(&["site_claim"], &rows), |row: ClaimRow| {
        let site = RowRef::new("site_claim", &row.site).parse("site", &row.site)?;
        Ok((site, Claim::try_from(row)?.owner))
    });
    Ok(owned.into_iter().filter_map(|(site, owner)| Some((site, owner?))).collect())
}

/// Stores that a check was requested, unless one was requested after `earlier_max_ms`. Returns whether it was stored.
pub(crate) async fn claim_ask(
    connection: &mut Connection,
    site: &str,
    now_ms: i64,
    earlier_max_ms: i64,
) -> Outcome<bool> {
    let stored = sqlx::query(
        "INSERT INTO site_claim (site, asked_at_ms) VALUES ($1, $2)
         ON CONFLICT (site) DO UPDATE SET asked_at_ms = excluded.asked_at_ms
         WHERE site_claim.asked_at_ms IS NULL OR site_claim.asked_at_ms <= $3",
    )
    .bind(site)
    .bind(now_ms)
    .bind(earlier_max_ms)
    .execute(&mut *connection)
    .await?;
    Ok(stored.rows_affected() > 0)
}

/// Stores the result of a check. The time of the last request does not change.
pub(super) async fn claim_save(connection: &mut Connection, site: &str, claim: &Claim) -> Outcome<()> {
    let owner = claim.owner.as_ref();
    sqlx::query(
        "INSERT INTO site_claim (site, key_hash, proof, since_ms, proven_at_ms, missing_since_ms, checked_at_ms, finding)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
         ON CONFLICT (site) DO UPDATE SET
             key_hash = excluded.key_hash, proof = excluded.proof, since_ms = excluded.since_ms,
             proven_at_ms = excluded.proven_at_ms, missing_since_ms = excluded.missing_since_ms,
             checked_at_ms = excluded.checked_at_ms, finding = excluded.finding",
    )
    .bind(site)
    .bind(owner.map(|owner| owner.key_hash.as_str()))
    .bind(owner.map(|owner| owner.proof.as_str()))
    .bind(owner.map(|owner| millis(owner.since)))
    .bind(owner.map(|owner| millis(owner.proven_at)))
    .bind(owner.and_then(|owner| millis_of(owner.missing_since)))
    .bind(millis_of(claim.checked_at))
    .bind(text_of(claim.finding.as_ref()))
    .execute(&mut *connection)
    .await?;
    Ok(())
}

/// The secret of this instance's tokens; `None` before the first one was issued.
pub(crate) async fn claim_secret_find(connection: &mut Connection) -> Outcome<Option<String>> {
    Ok(sqlx::query_scalar("SELECT secret FROM claim_secret WHERE id = 1")
        .fetch_optional(&mut *connection)
        .await?)
}

/// The stored secret. Stores the candidate if there is none.
pub(crate) async fn claim_secret_keep(connection: &mut Connection, candidate: &str) -> Outcome<String> {
    sqlx::query("INSERT INTO claim_secret (id, secret) VALUES (1, $1) ON CONFLICT (id) DO NOTHING")
        .bind(candidate)
        .execute(&mut *connection)
        .await?;
    Ok(sqlx::query_scalar("SELECT secret FROM claim_secret WHERE id = 1").fetch_one(&mut *connection).await?)
}
