//! URLs without a manifest that a seed names once more.
//!
//! The first source of a URL does not decide about it forever: the URL may have failed then, or have been received only as a part of
//! another document. It becomes a hint once more, within the limits of other hints.

use std::collections::{HashMap, HashSet};

use manifest::{Discovery, ManifestUrl};
use policy::schedule::HINT_INTERVAL;
use serde::Serialize;

use super::link::SiteSeed;
use super::{Connection, batch};
use crate::convert::{json, names};
use crate::fault::Outcome;
use crate::model::SeedOrigin;

/// A row of `resource`.
pub(super) struct KnownUrl {
    discovery: String,
    linked_from: Option<String>,
    state: UrlState,
    fetched_at_ms: i64,
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
    /// The change to the URL if a seed names it. Nothing changes if the stored source is at least as good. A link of a site other than the
    /// last one that named the URL counts at once, anything else a day after the last request. A URL that a document of its own site or the
    /// operator names keeps this source.
    pub(super) fn renewed_by(&self, id: &str, (seed, site): SiteSeed<'_>, now_ms: i64) -> Option<Renewal> {
        let site_of = |from: &String| ManifestUrl::parse(from).ok().map(|from| from.site());
        let source = self.linked_from.as_ref().and_then(site_of);
        let is_listed = self.discovery == Discovery::Listed.as_str();
        let is_of_site = source.as_ref().is_some_and(|source| source.as_str() == site);
        let is_later = now_ms - self.fetched_at_ms >= HINT_INTERVAL.num_milliseconds();
        let renewal = |discovery: Discovery, linked_from: Option<String>, is_part| {
            let discovery = discovery.as_str().to_owned();
            Some(Renewal { id: id.to_owned(), discovery, linked_from, is_part })
        };
        match self.state {
            UrlState::Current => return None,
            UrlState::Part if is_of_site => {
                let is_named = self.discovery == Discovery::Submitted.as_str();
                return renewal(Discovery::Submitted, self.linked_from.clone(), true).filter(|_| !is_named);
            }
            UrlState::Part | UrlState::Bare => {}
        }
        if is_of_site || is_listed {
            let (discovery, linked_from) = (self.discovery.clone(), self.linked_from.clone());
            let kept = Renewal { id: id.to_owned(), discovery, linked_from, is_part: false };
            return is_later.then_some(kept);
        }
        match &seed.origin {
            SeedOrigin::Linked { from } if source.as_ref() != Some(&from.site()) => {
                renewal(Discovery::CatalogEntry, Some(from.to_string()), false)
            }
            SeedOrigin::File => renewal(Discovery::Listed, None, false),
            SeedOrigin::Submitted | SeedOrigin::Collected if is_later => {
                renewal(Discovery::Submitted, None, false)
            }
            _ => None,
        }
    }
}

/// Id, discovery, source, 1 if it has a manifest or no outcome, 1 if its bytes were read, and the time of its last request.
type KnownRow = (String, String, Option<String>, i32, i32, Option<i64>);

/// The rows of these URLs, by id.
pub(super) async fn urls_known(connection: &mut Connection, ids: &str) -> Outcome<HashMap<String, KnownUrl>> {
    let rows: Vec<KnownRow> = sqlx::query_as(concat!(
        "SELECT resource.id, discovery, linked_from,
                CASE WHEN outcome IS NULL OR manifest.id IS NOT NULL THEN 1 ELSE 0 END,
                CASE WHEN resource.content_hash IS NOT NULL AND outcome IN ('found', 'not_modified', 'fresh')
                     THEN 1 ELSE 0 END,
                fetched_at_ms
         FROM resource LEFT JOIN manifest ON manifest.id = resource.id AND manifest.removed_at_ms IS NULL
         WHERE resource.id IN ",
        list!()
    ))
    .bind(ids)
    .fetch_all(&mut *connection)
    .await?;
    let known =
        |(id, discovery, linked_from, is_current, is_part, fetched_at_ms): (_, _, _, _, _, Option<i64>)| {
            let state = match (is_current, is_part) {
                (1, _) => UrlState::Current,
                (_, 1) => UrlState::Part,
                _ => UrlState::Bare,
            };
            (id, KnownUrl { discovery, linked_from, state, fetched_at_ms: fetched_at_ms.unwrap_or_default() })
        };
    Ok(rows.into_iter().map(known).collect())
}

/// Writes what becomes of URLs; returns their ids.
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
                 fetched_at_ms = NULL, misses_in_row = 0 FROM ",
            batch!(id TEXT, discovery TEXT, linked_from TEXT),
            " WHERE resource.id = batch.id RETURNING resource.id"
        ))
        .bind(json(&hints, "batch of hints")?)
        .fetch_all(&mut *connection)
        .await?;
        renewed.extend(ids);
    }
    Ok(renewed)
}
