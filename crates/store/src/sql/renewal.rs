//! URLs without a manifest that a seed names again.
//!
//! The first source of a URL is not final: the URL may have failed at that time, or it may have been fetched only as a part of another
//! document. So it becomes a hint again, within the limits of hints.

use std::collections::{HashMap, HashSet};

use manifest::{Discovery, ManifestUrl};
use policy::schedule::HINT_INTERVAL;
use serde::Serialize;

use super::link::SiteSeed;
use super::{Connection, batch};
use crate::convert::{json, names};
use crate::fault::Outcome;
use crate::model::SeedOrigin;

/// Number of consecutive misses after which the same link causes no further request. The count restarts after a document was received.
const MISSES_MAX: i32 = 3;

/// A row of `resource`.
pub(super) struct KnownUrl {
    discovery: String,
    linked_from: Option<String>,
    state: UrlState,
    fetched_at_ms: i64,
    misses_in_row: i32,
    /// A document was received.
    was_received: bool,
}

enum UrlState {
    /// It was never requested, or its manifest is in the index.
    Current,
    /// Its document completes another one.
    Part,
    /// It yielded no manifest, or one that has left the index.
    Bare,
}

/// The change to a URL that is named again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Renewal {
    id: String,
    discovery: String,
    linked_from: Option<String>,
    misses_in_row: i32,
    #[serde(skip)]
    is_part: bool,
}

impl Renewal {
    /// Whether it becomes a hint. A part stays one until it is read.
    pub(super) const fn is_hint(&self) -> bool {
        !self.is_part
    }
}

impl KnownUrl {
    /// The change to the URL if a seed names it; `None` if the seed adds nothing. A link of another site than the last one that named the
    /// URL takes effect immediately, and so does a list of the operator with a URL that others named. Any other seed takes effect one day
    /// after the last request, and the same link only a few times in a row. A URL that a document of its own site or the operator names
    /// keeps this source.
    pub(super) fn renewed_by(&self, id: &str, (seed, site): SiteSeed<'_>, now_ms: i64) -> Option<Renewal> {
        let site_of = |from: &String| ManifestUrl::parse(from).ok().map(|from| from.site());
        let source = self.linked_from.as_ref().and_then(site_of);
        let is_listed = self.discovery == Discovery::Listed.as_str();
        // every visit requests such a path, whoever names it
        let is_planned =
            [Discovery::WellKnown, Discovery::Root].iter().any(|planned| planned.as_str() == self.discovery);
        let is_of_site = source.as_ref().is_some_and(|source| source.as_str() == site);
        let is_later = now_ms - self.fetched_at_ms >= HINT_INTERVAL.num_milliseconds();
        let renewal = |discovery: &str, linked_from: Option<String>| Renewal {
            id: id.to_owned(),
            discovery: discovery.to_owned(),
            linked_from,
            misses_in_row: 0,
            is_part: false,
        };
        let misses_in_row = if self.was_received { 0 } else { self.misses_in_row };
        let may_be_linked_again = matches!(self.state, UrlState::Bare) && misses_in_row < MISSES_MAX;
        let again = |renewal: Renewal| may_be_linked_again.then_some(Renewal { misses_in_row, ..renewal });
        match self.state {
            UrlState::Current => return None,
            UrlState::Part if is_of_site => {
                let is_named = self.discovery == Discovery::Submitted.as_str();
                let named = renewal(Discovery::Submitted.as_str(), self.linked_from.clone());
                return (!is_named).then_some(Renewal { is_part: true, ..named });
            }
            UrlState::Part | UrlState::Bare => {}
        }
        if is_of_site || is_listed {
            let kept = renewal(&self.discovery, self.linked_from.clone());
            return match seed.origin {
                _ if !is_later => None,
                SeedOrigin::Linked { .. } => again(kept),
                _ => Some(kept),
            };
        }
        match &seed.origin {
            SeedOrigin::Linked { from } => {
                let linked = renewal(Discovery::CatalogEntry.as_str(), Some(from.to_string()));
                if source.as_ref() != Some(&from.site()) {
                    return Some(linked);
                }
                again(linked).filter(|_| is_later)
            }
            SeedOrigin::File => (is_later || !is_planned).then(|| renewal(Discovery::Listed.as_str(), None)),
            SeedOrigin::Submitted | SeedOrigin::Collected => {
                is_later.then(|| renewal(Discovery::Submitted.as_str(), None))
            }
        }
    }
}

/// Id, discovery, source, 1 if it has a manifest or no outcome, 1 if its bytes were read and the last visit confirmed them, 1 if any bytes
/// were ever read, the time of its last request, and its misses in a row.
type KnownRow = (String, String, Option<String>, i32, i32, i32, Option<i64>, i32);

/// The rows of these URLs, by id.
pub(super) async fn urls_known(connection: &mut Connection, ids: &str) -> Outcome<HashMap<String, KnownUrl>> {
    let rows: Vec<KnownRow> = sqlx::query_as(concat!(
        "SELECT resource.id, discovery, linked_from,
                CASE WHEN outcome IS NULL OR manifest.id IS NOT NULL THEN 1 ELSE 0 END,
                CASE WHEN resource.content_hash IS NOT NULL AND outcome IN ('found', 'not_modified', 'fresh')
                     THEN 1 ELSE 0 END,
                CASE WHEN resource.content_hash IS NOT NULL THEN 1 ELSE 0 END,
                fetched_at_ms, misses_in_row
         FROM resource LEFT JOIN manifest ON manifest.id = resource.id AND manifest.removed_at_ms IS NULL
         WHERE resource.id IN ",
        list!()
    ))
    .bind(ids)
    .fetch_all(&mut *connection)
    .await?;
    let known = |row: KnownRow| {
        let (id, discovery, linked_from, is_current, is_part, was_received, fetched_at_ms, misses_in_row) =
            row;
        let state = match (is_current, is_part) {
            (1, _) => UrlState::Current,
            (_, 1) => UrlState::Part,
            _ => UrlState::Bare,
        };
        let (fetched_at_ms, was_received) = (fetched_at_ms.unwrap_or_default(), was_received == 1);
        (id, KnownUrl { discovery, linked_from, state, fetched_at_ms, misses_in_row, was_received })
    };
    Ok(rows.into_iter().map(known).collect())
}

/// Writes the changes to URLs; returns their ids.
pub(super) async fn urls_renew(
    connection: &mut Connection,
    renewals: Vec<Renewal>,
) -> Outcome<HashSet<String>> {
    let (parts, hints): (Vec<Renewal>, Vec<Renewal>) =
        renewals.into_iter().partition(|renewal| renewal.is_part);
    let mut renewed = HashSet::new();
    if !parts.is_empty() {
        let statement = concat!(
            "UPDATE resource SET discovery = 'submitted', status = NULL WHERE id IN ",
            list!(),
            " RETURNING id"
        );
        let ids = names(parts.iter().map(|part| part.id.as_str()))?;
        let named: Vec<String> = sqlx::query_scalar(statement).bind(ids).fetch_all(&mut *connection).await?;
        renewed.extend(named);
    }
    if !hints.is_empty() {
        let ids: Vec<String> = sqlx::query_scalar(concat!(
            "UPDATE resource SET discovery = batch.discovery, linked_from = batch.linked_from, outcome = NULL,
                 status = NULL, etag = NULL, last_modified = NULL, cache = NULL, fresh_until_ms = NULL,
                 fetched_at_ms = NULL, misses_in_row = batch.misses_in_row FROM ",
            batch!(id TEXT, discovery TEXT, linked_from TEXT, misses_in_row INTEGER),
            " WHERE resource.id = batch.id RETURNING resource.id"
        ))
        .bind(json(&hints, "batch of hints")?)
        .fetch_all(&mut *connection)
        .await?;
        renewed.extend(ids);
    }
    Ok(renewed)
}
