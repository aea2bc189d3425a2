//! Limits on the unfetched URLs of a site: URLs from links and submissions that no visit has requested yet.
//!
//! Each linking site has a share. A link that is refused now may be within the limits later, even if its document never changes. So the
//! links of this document are read again when it is requested next.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use manifest::{ManifestId, ManifestUrl, SiteName};
use policy::freshness::CacheRecord;
use serde::Serialize;

use super::link::{LinkedHint, SiteSeed, counts, hints_linked, is_listed};
use super::renewal::{Renewal, urls_known};
use super::{Connection, batch};
use crate::convert::{RowRef, intact, json, names};
use crate::fault::Outcome;
use crate::model::Seed;

/// Maximum number of unfetched URLs of a site that come from links. A visit requests up to a hundred of them. When the maximum is reached,
/// a link from a site that has named few URLs replaces one from the site that has named most.
const HINTS_LINKED_MAX: u64 = 900;
/// Maximum number of these that one site may name, so that it cannot crowd out the links of other sites.
const HINTS_OF_ONE_SITE_MAX: u64 = 300;
const HINTS_MAX: u64 = 1_000;

/// Seeds within the limits.
#[derive(Default)]
pub(super) struct AdmittedHints<'a> {
    pub(super) seeds: Vec<SiteSeed<'a>>,
    /// URLs of the seeds that exceed a limit.
    pub(super) refused: HashSet<&'a str>,
    /// The changes to known URLs that these seeds name.
    pub(super) renewals: Vec<Renewal>,
    /// Unfetched URLs that are replaced by links of other sites.
    pub(super) replaced: Vec<LinkedHint>,
}

/// The unfetched URLs that one site has named at another one.
#[derive(Default)]
struct OfSource {
    count: u64,
    /// URLs that links of other sites may replace.
    replaceable: Vec<LinkedHint>,
}

/// By linked site and linking site.
type BySource = HashMap<String, BTreeMap<SiteName, OfSource>>;

/// Refuses seeds whose URLs exceed the limit of their site or of the linking site. Seeds of the operator's lists are not limited.
pub(super) async fn hints_admit<'a>(
    connection: &mut Connection,
    seeds: Vec<SiteSeed<'a>>,
    now_ms: i64,
) -> Outcome<AdmittedHints<'a>> {
    let sites: BTreeSet<&str> =
        seeds.iter().filter(|(seed, _)| seed.url.is_some()).map(|(_, site)| *site).collect();
    if sites.is_empty() {
        return Ok(AdmittedHints { seeds, ..AdmittedHints::default() });
    }
    let statement = concat!(
        "SELECT site, COUNT(*) FROM resource WHERE outcome IS NULL AND site IN ",
        list!(),
        " GROUP BY site"
    );
    let mut counts = counts(connection, statement, &names(sites)?).await?;
    let ids: BTreeSet<ManifestId> =
        seeds.iter().filter_map(|(seed, _)| seed.url.as_ref()).map(ManifestId::of).collect();
    let mut by_source = hints_by_source(connection, &seeds, &counts, &ids).await?;
    let known = urls_known(connection, &names(ids.iter().map(ManifestId::as_str))?).await?;
    let mut admitted = AdmittedHints { seeds: Vec::with_capacity(seeds.len()), ..AdmittedHints::default() };
    // of several seeds with the same URL, the first one that adds or renews it is used
    let mut named = HashSet::new();
    for (seed, site) in seeds {
        if let Some(url) = &seed.url {
            let id = ManifestId::of(url);
            let known = known.get(id.as_str());
            let renewal = known.and_then(|known| known.renewed_by(id.as_str(), (seed, site), now_ms));
            let is_hint = known.is_none() || renewal.as_ref().is_some_and(Renewal::is_hint);
            let is_first = !named.contains(id.as_str());
            if is_first && is_hint && !is_listed(seed) {
                let count = counts.entry(site.to_owned()).or_default();
                if !reserve_slot(count, &mut by_source, (seed, site), &mut admitted.replaced) {
                    admitted.refused.insert(url.as_str());
                    continue;
                }
            }
            if is_first && (is_hint || renewal.is_some()) {
                named.insert(id.as_str().to_owned());
                admitted.renewals.extend(renewal);
            }
        }
        admitted.seeds.push((seed, site));
    }
    Ok(admitted)
}

/// Reserves one of the slots of a site with this many unfetched URLs; returns whether that was possible. Adds the replaced URL, if any.
fn reserve_slot(
    count: &mut u64,
    by_source: &mut BySource,
    (seed, site): SiteSeed<'_>,
    replaced: &mut Vec<LinkedHint>,
) -> bool {
    let Some(source) = seed.origin.source().map(|from| from.site()) else {
        let has_room = *count < HINTS_MAX;
        *count += u64::from(has_room);
        return has_room;
    };
    let of_site = by_source.entry(site.to_owned()).or_default();
    let own = of_site.get(&source).map_or(0, |of_source| of_source.count);
    if own >= HINTS_OF_ONE_SITE_MAX {
        return false;
    }
    if *count < HINTS_LINKED_MAX {
        *count += 1;
    } else {
        let Some(hint) = replace(of_site, own) else { return false };
        replaced.push(hint);
    }
    of_site.entry(source).or_default().count += 1;
    true
}

/// Removes a URL of the site that has named the most, unless that site would then have fewer URLs than the replacing site, which has `own`
/// URLs so far.
fn replace(of_site: &mut BTreeMap<SiteName, OfSource>, own: u64) -> Option<LinkedHint> {
    let others = of_site.values_mut().filter(|of_source| !of_source.replaceable.is_empty());
    let most = others.max_by_key(|of_source| of_source.count).filter(|most| most.count > own + 1)?;
    most.count -= 1;
    most.replaceable.pop()
}

/// The unfetched URLs by linked site and linking site, for sites where a share could be exceeded. URLs with these ids belong to the seeds
/// and are not replaced.
async fn hints_by_source(
    connection: &mut Connection,
    seeds: &[SiteSeed<'_>],
    counts: &HashMap<String, u64>,
    ids: &BTreeSet<ManifestId>,
) -> Outcome<BySource> {
    let mut linked: BTreeMap<&str, u64> = BTreeMap::new();
    for (seed, site) in seeds {
        if seed.url.is_some() && seed.origin.source().is_some() {
            *linked.entry(site).or_default() += 1;
        }
    }
    let known = |site: &str| counts.get(site).copied().unwrap_or_default();
    linked.retain(|site, new| known(site) + *new > HINTS_OF_ONE_SITE_MAX);
    let mut by_source = BySource::new();
    if linked.is_empty() {
        return Ok(by_source);
    }
    for hint in hints_linked(connection, linked.into_keys()).await? {
        let source = hint.from.site();
        let is_of_other = source.as_str() != hint.site;
        let of_source = by_source.entry(hint.site.clone()).or_default().entry(source).or_default();
        of_source.count += 1;
        if hint.is_new && is_of_other && !ids.contains(&ManifestId::of(&hint.url)) {
            of_source.replaceable.push(hint);
        }
    }
    Ok(by_source)
}

/// Deletes replaced unfetched URLs.
pub(super) async fn hints_replace(connection: &mut Connection, replaced: &[LinkedHint]) -> Outcome<()> {
    if replaced.is_empty() {
        return Ok(());
    }
    let ids: Vec<ManifestId> = replaced.iter().map(|hint| ManifestId::of(&hint.url)).collect();
    sqlx::query(concat!(
        "DELETE FROM resource WHERE outcome IS NULL AND content_hash IS NULL AND document_hash IS NULL AND id IN ",
        list!()
    ))
    .bind(names(ids.iter().map(ManifestId::as_str))?)
    .execute(&mut *connection)
    .await?;
    Ok(())
}

/// Number of links of each document that have not been stored so far.
#[derive(Default)]
pub(super) struct Unstored<'a>(BTreeMap<&'a ManifestUrl, u64>);

impl<'a> Unstored<'a> {
    pub(super) fn of(seeds: &[SiteSeed<'a>]) -> Self {
        let mut links = BTreeMap::new();
        for from in seeds.iter().filter_map(|(seed, _)| seed.origin.source()) {
            *links.entry(&**from).or_default() += 1;
        }
        Self(links)
    }

    /// Removes a link that is now stored, or already was.
    pub(super) fn remove(&mut self, seed: &Seed) {
        if let Some(count) = seed.origin.source().and_then(|from| self.0.get_mut(&**from)) {
            *count = count.saturating_sub(1);
        }
    }

    /// Marks documents with a refused or replaced link, so that their links are read again. Those of a stored manifest are read from it
    /// after the next 304. Other documents, such as home pages, lose their validators, so that the next request downloads them in full.
    pub(super) async fn mark_links_left(
        self,
        connection: &mut Connection,
        replaced: &[LinkedHint],
    ) -> Outcome<()> {
        let refused = self.0.into_iter().filter(|(_, links)| *links > 0).map(|(from, _)| from);
        let documents: BTreeSet<ManifestId> =
            refused.chain(replaced.iter().map(|hint| &hint.from)).map(ManifestId::of).collect();
        if documents.is_empty() {
            return Ok(());
        }
        let marked = links_left(connection, &documents).await?;
        let is_marked = |id: &&ManifestId| marked.iter().any(|row| row.id == id.as_str());
        let unmarked = documents.iter().filter(|id| !is_marked(id));
        sqlx::query(concat!(
            "UPDATE resource SET etag = NULL, last_modified = NULL, cache = NULL
             WHERE (cache IS NOT NULL OR etag IS NOT NULL OR last_modified IS NOT NULL) AND id IN ",
            list!()
        ))
        .bind(names(unmarked.map(ManifestId::as_str))?)
        .execute(&mut *connection)
        .await?;
        sqlx::query(concat!(
            "UPDATE resource SET cache = batch.cache FROM ",
            batch!(id TEXT, cache TEXT),
            " WHERE resource.id = batch.id"
        ))
        .bind(json(&marked, "batch of responses")?)
        .execute(&mut *connection)
        .await?;
        Ok(())
    }
}

/// The stored response to the request for a document.
#[derive(Serialize)]
struct CacheRow {
    id: String,
    cache: String,
}

/// The stored responses with the manifests among the documents, marked as documents with links left.
async fn links_left(connection: &mut Connection, documents: &BTreeSet<ManifestId>) -> Outcome<Vec<CacheRow>> {
    let rows: Vec<(String, String)> = sqlx::query_as(concat!(
        "SELECT resource.id, resource.cache FROM resource
         JOIN manifest ON manifest.id = resource.id AND manifest.removed_at_ms IS NULL
         WHERE resource.cache IS NOT NULL AND resource.id IN ",
        list!()
    ))
    .bind(names(documents.iter().map(ManifestId::as_str))?)
    .fetch_all(&mut *connection)
    .await?;
    Ok(intact(rows.into_iter().map(Ok), |(id, cache)| {
        let at = RowRef::new("resource", &id);
        let mut cache: CacheRecord = at.json("cache", cache.as_bytes())?;
        cache.links_left = true;
        let cache = json(&cache, "freshness policy")?;
        Ok(CacheRow { id, cache })
    }))
}
