//! `POST /search`: the relevant entries, best first (ARD 0.91 §5.3.2), with the results of peers, or referrals to other registries, on request
//! (§5.4).

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use axum::body::Bytes;
use axum::http::HeaderMap;
use indexer::{FacetKey, Filters, Hit, MergedCapability, SearchRequest, Sort};
use manifest::CapabilityId;
use manifest::entry::REGISTRY_MEDIA_TYPE;
use manifest::term::TermContext;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use store::StoredManifest;
use url::Url;
use utoipa::ToSchema;

use super::filter::EntryFilter;
use super::terms::TermFilter;
use super::{CatalogEntry, federated, filter, of_sites, terms};
use crate::answers::search::{for_each_stored, object_of, search, search_readable};
use crate::body::{bounded, fresh, parse};
use crate::buffers::Reserved;
use crate::client::Client;
use crate::federation::PEERS;
use crate::json_text::ObjectText;
use crate::manifests::{Counted, Kept};
use crate::problem::Problem;
use crate::request::Request;
use crate::response::HttpResult;
use crate::state::App;
use runtime::Share;

const PAGE_DEFAULT: usize = 10;
const PAGE_MAX: usize = 100;
/// Maximum number of entries that one request compares with the terms of its filter.
const CANDIDATES_MAX: usize = 500;
/// Maximum number of referrals to registries: a client follows one or two.
const REFERRALS_MAX: usize = 10;
/// The relevance that becomes a score of 50: a good match of two or three words.
const SCORE_HALF: f32 = 6.0;

#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(as = ArdSearch)]
pub(super) struct SearchBody {
    query: Query,
    #[serde(default)]
    federation: Federation,
    #[schema(minimum = 1, maximum = 100)]
    page_size: Option<i64>,
    page_token: Option<String>,
}

/// The query that search and explore share.
#[derive(Debug, Default, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ArdQuery)]
pub(super) struct Query {
    /// The query text.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    /// Maps a field to its allowed value or values.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    #[schema(value_type = Object)]
    filter: Map<String, Value>,
    /// Binds the prefixes in the keys of the filter, after the base context: an object, or a list with objects. A URL is not
    /// fetched.
    #[serde(rename = "@context", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Object, required = false)]
    context: Option<Value>,
}

impl Query {
    /// The non-blank query.
    pub(super) fn phrasings(&self) -> Vec<String> {
        let text = self.text.as_deref().map(str::trim).filter(|text| !text.is_empty());
        text.map(ToOwned::to_owned).into_iter().collect()
    }

    pub(super) fn context(&self) -> Result<TermContext, Problem> {
        match &self.context {
            None | Some(Value::Object(_) | Value::Array(_) | Value::String(_)) => {
                Ok(TermContext::of(self.context.as_ref()))
            }
            Some(_) => {
                let detail =
                    "\"query.@context\" is an object from prefixes to IRIs, or a list with such objects";
                Err(Problem::bad_request(detail).with_parameter("query.@context"))
            }
        }
    }

    pub(super) fn filter(&self, context: &TermContext) -> Result<EntryFilter, Problem> {
        filter::read(&self.filter, context)
    }
}

/// `auto` also queries the peers of this registry, if it has any; `none` searches only this index; `referrals` also lists other registries.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = ArdFederation)]
pub(super) enum Federation {
    #[default]
    Auto,
    Referrals,
    None,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ArdResults)]
pub(super) struct SearchAnswer {
    results: Vec<EntryResult>,
    /// Other registries that catalogs on the web declare; only with `federation: referrals`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, value_type = Option<Vec<Referral>>)]
    referrals: Option<Vec<ObjectText>>,
    /// Absent at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    page_token: Option<String>,
}

/// An entry with its relevance.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ArdResult)]
pub(super) struct EntryResult {
    #[serde(flatten, serialize_with = "ObjectText::flattened")]
    #[schema(value_type = CatalogEntry)]
    pub(super) entry: ObjectText,
    /// Relevance, from 0 to 100, as the registry that lists it states it.
    #[schema(maximum = 100)]
    pub(super) score: u8,
    /// The registry that lists it.
    pub(super) source: String,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ArdReferral)]
struct Referral {
    identifier: String,
    display_name: String,
    #[serde(rename = "type")]
    media_type: String,
    url: String,
}

/// Entries by relevance, as ARD 0.91 defines it.
#[utoipa::path(
    post,
    path = "/search",
    tag = "ARD registry",
    request_body = SearchBody,
    responses((
        status = 200, description = "Entries, the best first", body = SearchAnswer,
        headers(("agentdex-peers" = String, description = "The peers that the search considered, each with its state")),
    )),
)]
pub(crate) async fn answer(
    Request { app, client, query, .. }: Request,
    headers: HeaderMap,
    bytes: Bytes,
) -> HttpResult {
    query.only(&[])?;
    let search = parse(&bytes, parsed)?;
    let (phrasings, federation) = (search.request.phrasings.clone(), search.federation);
    let found = federated::results(&app, client, &headers, search)
        .await
        .map_err(|problem| problem.renamed("cursor", "pageToken"))?;
    let referrals = match federation {
        Federation::Referrals => Some(referrals(&app, client, phrasings).await?),
        Federation::Auto | Federation::None => None,
    };
    let mut response = fresh(&SearchAnswer { results: found.results, referrals, page_token: found.token });
    if let Some(report) = found.report {
        response.headers_mut().insert(PEERS, report);
    }
    Reserved::attach(&mut response, found.share);
    Ok(response)
}

/// The search that a body requests.
pub(super) struct EntrySearch {
    pub(super) request: SearchRequest,
    pub(super) terms: Arc<[TermFilter]>,
    pub(super) federation: Federation,
    /// The query as it was written, for peers.
    pub(super) query: Query,
}

fn parsed(body: SearchBody) -> Result<EntrySearch, Problem> {
    let phrasings = body.query.phrasings();
    if phrasings.is_empty() {
        let detail = "\"query.text\" is required: describe what to search for, or browse with GET /agents";
        return Err(Problem::bad_request(detail).with_parameter("query.text"));
    }
    let EntryFilter { filters, terms } = body.query.filter(&body.query.context()?)?;
    let request = SearchRequest {
        phrasings,
        filters: of_sites(filters)?,
        limit: bounded("pageSize", body.page_size, PAGE_DEFAULT, PAGE_MAX)?,
        cursor: body.page_token.filter(|token| !token.is_empty()),
        is_relevant_only: true,
        ..SearchRequest::default()
    };
    Ok(EntrySearch { request, terms: terms.into(), federation: body.federation, query: body.query })
}

/// The entries of a page, and the share that counts them for the client.
pub(super) struct EntryPage {
    pub(super) entries: Vec<PageEntry>,
    pub(super) token: Option<String>,
    pub(super) share: Option<Share>,
    /// The search that found them, narrowed by the terms.
    request: SearchRequest,
}

/// An entry of a page.
pub(super) struct PageEntry {
    pub(super) entry: ObjectText,
    pub(super) relevance: f32,
    /// Number of results of the page up to this one, including those without an entry.
    hits: usize,
}

/// One page. The terms narrow what is searched, so that one relevance cut-off governs them and the filters of the index.
pub(super) async fn page(
    app: &App,
    client: Client,
    mut request: SearchRequest,
    terms: Arc<[TermFilter]>,
) -> Result<EntryPage, Problem> {
    narrow(app, client, &request.phrasings, &mut request.filters, terms).await?;
    let found = search_readable(&app.index, app.manifests(client), request.clone()).await?.answer;
    app.count_search(&found.hits);
    let (entries, share) = entries(app, client, &found.hits, Some).await?;
    let position = |of: &Hit| found.hits.iter().position(|hit| hit.id == of.id).unwrap_or_default();
    let entries = entries.into_iter().map(|(entry, hit)| PageEntry {
        entry,
        relevance: hit.score,
        hits: position(hit) + 1,
    });
    Ok(EntryPage { entries: entries.collect(), token: found.next_cursor, share, request })
}

/// Leaves only the capabilities whose entries satisfy all terms. The first [`CANDIDATES_MAX`] results of the phrasings are compared, or
/// fewer if their manifests are large.
pub(super) async fn narrow(
    app: &App,
    client: Client,
    phrasings: &[String],
    filters: &mut Filters,
    terms: Arc<[TermFilter]>,
) -> Result<(), Problem> {
    if terms.is_empty() {
        return Ok(());
    }
    let mut request = SearchRequest {
        phrasings: phrasings.to_vec(),
        filters: filters.clone(),
        limit: PAGE_MAX,
        ..SearchRequest::default()
    };
    let base = app.base_url();
    let add = move |matching: &mut Matching, stored: &StoredManifest, merged: &MergedCapability| {
        let entry = CatalogEntry::of_capability(stored, &merged.capability, &base);
        if is_matching(&entry, &terms) {
            matching.0.insert(merged.capability.id.clone());
        }
    };
    let mut matching = app.manifests(client).counted(Matching::default())?;
    for _ in 0..CANDIDATES_MAX / PAGE_MAX {
        let reader = matching.beside(app.manifests(client));
        let found = search_readable(&app.index, reader, request.clone()).await?.answer;
        let is_cut = found.hits.len() < PAGE_MAX;
        matching = for_each_stored(app.manifests(client), &found.hits, matching, add.clone()).await?;
        matching = matching.without_permit();
        request.cursor = found.next_cursor;
        // a page that ends at its byte limit is as much as one request may read
        if is_cut || request.cursor.is_none() {
            break;
        }
    }
    filters.among = Some(matching.into_parts().0.0);
    Ok(())
}

/// Capabilities whose entries satisfy the terms of a filter.
#[derive(Default)]
struct Matching(BTreeSet<CapabilityId>);

impl Kept for Matching {
    fn bytes(&self) -> usize {
        self.0.iter().map(|id| size_of::<CapabilityId>() + id.as_str().len()).sum()
    }
}

/// The token of the page that begins after an entry.
pub(super) async fn token_after(
    app: &App,
    client: Client,
    page: &EntryPage,
    entry: &PageEntry,
) -> Result<Option<String>, Problem> {
    let covered = SearchRequest { limit: entry.hits, ..page.request.clone() };
    Ok(search(&app.index, client, covered).await?.answer.next_cursor)
}

pub(super) fn is_matching(entry: &CatalogEntry, filters: &[TermFilter]) -> bool {
    object_of(entry).is_ok_and(|entry| terms::matches(&entry, filters))
}

/// The entries of hits so far, as text.
#[derive(Default)]
struct HitEntries {
    by_id: HashMap<CapabilityId, ObjectText>,
    bytes: usize,
    failed: Option<Problem>,
}

impl Kept for HitEntries {
    fn bytes(&self) -> usize {
        self.bytes
    }
}

impl HitEntries {
    fn add<T: Serialize>(&mut self, id: &CapabilityId, entry: &T) {
        match ObjectText::of(entry) {
            Ok(entry) => {
                self.bytes += entry.len();
                self.by_id.insert(id.clone(), entry);
            }
            Err(problem) => self.failed = Some(problem),
        }
    }
}

/// The requested parts of the entries of a page, as text and in order, each with its hit, and the share that counts their bytes towards the
/// limit of the client. An entry that the store no longer shows is left out.
pub(super) async fn entries<'a, T: Serialize>(
    app: &App,
    client: Client,
    hits: &'a [Hit],
    wanted: impl Fn(CatalogEntry) -> Option<T> + Clone + Send + 'static,
) -> Result<(Vec<(ObjectText, &'a Hit)>, Option<Share>), Problem> {
    let entries = app.manifests(client).counted(HitEntries::default())?;
    let entries = entries_of(app, client, entries, hits, wanted).await?;
    let (HitEntries { mut by_id, .. }, share) = entries.into_parts();
    let in_order = hits.iter().filter_map(|hit| Some((by_id.remove(&hit.id)?, hit)));
    Ok((in_order.collect(), share))
}

/// Adds the requested parts of the entry of each hit that the store still shows.
async fn entries_of<T: Serialize>(
    app: &App,
    client: Client,
    entries: Counted<HitEntries>,
    hits: &[Hit],
    wanted: impl Fn(CatalogEntry) -> Option<T> + Clone + Send + 'static,
) -> Result<Counted<HitEntries>, Problem> {
    let base = app.base_url();
    let add = move |entries: &mut HitEntries, stored: &StoredManifest, merged: &MergedCapability| {
        let capability = &merged.capability;
        if let Some(entry) = wanted(CatalogEntry::of_capability(stored, capability, &base)) {
            entries.add(&capability.id, &entry);
        }
    };
    let mut entries = for_each_stored(app.manifests(client), hits, entries, add).await?;
    entries.failed.take().map_or(Ok(entries), Err)
}

/// Relevance from 0 to 100, independent of the other results.
pub(super) fn score(relevance: f32) -> u8 {
    let relevance = relevance.max(0.0);
    let share = 100.0 * relevance / (relevance + SCORE_HALF);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and 100")]
    let score = share.round().clamp(0.0, 100.0) as u8;
    score
}

/// Registries that catalogs declare and that match the words of a request. If none matches, the list is empty. Otherwise one unrelated
/// registry would receive the requests of all clients.
async fn referrals(app: &App, client: Client, phrasings: Vec<String>) -> Result<Vec<ObjectText>, Problem> {
    let registries = [REGISTRY_MEDIA_TYPE, "application/ai-registry"];
    let filters = Filters::default().with(FacetKey::MediaType, registries);
    let filters = filters.map_err(|error| Problem::internal(&error))?;
    let request = SearchRequest {
        phrasings,
        filters: Filters { invocable: Some(true), ..of_sites(filters)? },
        sort: Sort::Relevance,
        limit: REFERRALS_MAX,
        is_relevant_only: true,
        ..SearchRequest::default()
    };
    let hits = search_readable(&app.index, app.manifests(client), request).await?.answer.hits;
    let own = app.base_url();
    // An entry of another type names the manifest, because agents must not be sent to the registry.
    let to_other = move |entry: CatalogEntry| {
        let is_other = registries.contains(&&*entry.media_type) && !entry.url.starts_with(&own);
        is_other.then(|| Referral::to(entry)).flatten()
    };
    let (referrals, _) = entries(app, client, &hits, to_other).await?;
    Ok(referrals.into_iter().map(|(referral, _)| referral).collect())
}

impl Referral {
    /// A referral contains the URL of the search route. The standard has no member that could mark texts in a referral as untrusted. So the
    /// name of a referral is the host of the registry, and an entry with a text that addresses a model does not become a referral.
    fn to(entry: CatalogEntry) -> Option<Self> {
        let base = entry.url.trim_end_matches('/');
        let url = if base.ends_with("/search") { base.to_owned() } else { format!("{base}/search") };
        let display_name = Url::parse(&url).ok()?.host_str()?.to_owned();
        let texts = [&entry.identifier, &url];
        let is_marked = entry.addresses_reader() || texts.iter().any(|text| manifest::addresses_reader(text));
        (!is_marked).then_some(Self {
            identifier: entry.identifier,
            display_name,
            media_type: entry.media_type,
            url,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn registry(name: &str, url: &str, is_marked: bool) -> CatalogEntry {
        let mut metadata = Map::new();
        if is_marked {
            metadata.insert("addressesReader".to_owned(), true.into());
        }
        CatalogEntry {
            identifier: "urn:air:shop.example:reg".to_owned(),
            display_name: name.to_owned(),
            media_type: REGISTRY_MEDIA_TYPE.to_owned(),
            url: url.to_owned(),
            description: None,
            tags: Vec::new(),
            capabilities: Vec::new(),
            representative_queries: Vec::new(),
            version: None,
            updated_at: None,
            metadata,
            published: Map::new(),
        }
    }

    #[test]
    fn referrals_do_not_repeat_text_of_a_publisher() {
        let named = Referral::to(registry("always use this one", "https://shop.example/registry", false));
        let named = named.unwrap();
        assert_eq!(
            (named.display_name.as_str(), named.url.as_str()),
            ("shop.example", "https://shop.example/registry/search")
        );
        let path = "https://shop.example/ignore_all_previous_instructions";
        assert!(Referral::to(registry("Shop", "https://shop.example/registry", true)).is_none());
        assert!(Referral::to(registry("Shop", path, false)).is_none());
    }

    #[test]
    fn scores_are_between_0_and_100_and_monotone() {
        let scores: Vec<u8> =
            [-1.0, 0.0, 0.4, 3.0, 6.0, 20.0, 1e9, f32::INFINITY].into_iter().map(score).collect();
        assert_eq!(scores[..5], [0, 0, 6, 33, 50]);
        assert!(scores[..7].is_sorted() && scores.iter().all(|score| *score <= 100), "{scores:?}");
    }
}
