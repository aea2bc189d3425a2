//! `POST /search` with the results of peers (ARD 0.91 §5.4, `federation: "auto"`).
//!
//! The index is searched while the peers are asked, and its results are there whatever the peers do. Only the first page asks along: later
//! pages continue in this index. What peers list about an entry that this index holds is not shown; the entry names them as listings.
//! Sites that the operator blocked or that opted out are not shown through peers either.

use std::collections::HashSet;

use axum::http::{HeaderMap, HeaderValue};
use indexer::{Filters, Hit, SearchRequest, Sort};
use manifest::{CapabilityId, ListedEntry, SiteName};
use runtime::Share;
use serde_json::json;

use super::search::{self, EntryPage, EntrySearch, Federation, PageEntry, Result_, is_matching, score};
use super::{CatalogEntry, of_sites};
use crate::answers::search::search_readable;
use crate::catalog_entry::LISTED_BY;
use crate::client::Client;
use crate::federation::{
    Forwarding, Fused, Outcome, PeerAnswer, Place, Question, Skip, forwarding, fuse, report,
};
use crate::json_text::ObjectText;
use crate::problem::Problem;
use crate::self_description::own_entry;
use crate::state::App;

/// Entries of this index that have the identifiers of a page: each identifier has few.
const HELD_MAX: usize = 100;

/// The results of a search.
pub(super) struct Found {
    pub(super) results: Vec<Result_>,
    pub(super) token: Option<String>,
    pub(super) share: Option<Share>,
    /// What each peer contributed; `None` if no peer was considered.
    pub(super) report: Option<HeaderValue>,
}

/// The results of this index, and of the peers if the search asks for them.
pub(super) async fn results(
    app: &App,
    client: Client,
    headers: &HeaderMap,
    search: EntrySearch,
) -> Result<Found, Problem> {
    let own = Box::pin(search::page(app, client, search.request.clone(), search.terms.clone()));
    let Some(forwarded) = forwarded(app, headers, &search).await? else {
        return Ok(without_peers(app, own.await?, &[]));
    };
    if app.limits.federated(client).is_err() {
        return Ok(without_peers(app, own.await?, &app.federation.skipped(Skip::ClientLimit)));
    }
    let question = Question {
        body: json!({"query": search.query, "federation": "none", "pageSize": search.request.limit})
            .to_string(),
        headers: forwarded,
        results_max: search.request.limit,
    };
    let (own, answers) = futures::join!(own, app.federation.ask(&question));
    fused(app, client, own?, &answers, &search).await
}

/// The headers of the search for peers, if it is passed on.
async fn forwarded(
    app: &App,
    headers: &HeaderMap,
    search: &EntrySearch,
) -> Result<Option<HeaderMap>, Problem> {
    let is_asked = search.federation == Federation::Auto && search.request.cursor.is_none();
    if !is_asked || !app.federation.has_peers() {
        return Ok(None);
    }
    let own_id = app.federation.own_id(&app.store).await.map_err(Problem::from)?;
    match forwarding(headers, own_id) {
        Forwarding::Allowed(headers) => Ok(Some(headers)),
        Forwarding::Refused(refusal) => {
            tracing::debug!(reason = refusal.as_str(), "a search is not passed on to peers");
            Ok(None)
        }
    }
}

fn without_peers(app: &App, page: EntryPage, answers: &[PeerAnswer]) -> Found {
    let source = source(app);
    let results = page.entries.into_iter().map(|entry| own_result(entry, &source)).collect();
    Found { results, token: page.token, share: page.share, report: report(answers) }
}

fn source(app: &App) -> String {
    format!("{}/", app.base_url())
}

fn own_result(entry: PageEntry, source: &str) -> Result_ {
    Result_ { entry: entry.entry, score: score(entry.relevance), source: source.to_owned() }
}

async fn fused(
    app: &App,
    client: Client,
    page: EntryPage,
    answers: &[PeerAnswer],
    search: &EntrySearch,
) -> Result<Found, Problem> {
    let listed: Vec<&[ListedEntry]> = answers.iter().map(listed).collect();
    if listed.iter().all(|entries| entries.is_empty()) {
        return Ok(without_peers(app, page, answers));
    }
    let identifiers = page.entries.iter().map(|entry| entry.entry.text("identifier"));
    let identifiers: Vec<String> =
        identifiers.map(|text| text.map(Option::unwrap_or_default)).collect::<Result<_, _>>()?;
    let limit = search.request.limit;
    let shown = fuse(&identifiers, &listed, limit);
    let foreign: Vec<&ListedEntry> = shown.iter().filter_map(|result| entry_at(result, &listed)).collect();
    let known = Known::find(app, client, &foreign, search).await?;
    let token = token(app, client, &page, &shown).await?;
    let EntryPage { entries, share, .. } = page;
    let mut own: Vec<Option<PageEntry>> = entries.into_iter().map(Some).collect();
    let source = source(app);
    let mut results = Vec::with_capacity(shown.len());
    for result in &shown {
        let listed_by = listed_by(result, answers);
        let own_entry = match result.place {
            Place::Own(position) => own.get_mut(position).and_then(Option::take),
            Place::Listed { .. } => None,
        };
        if let Some(own_entry) = own_entry {
            let own = own_result(own_entry, &source);
            results.push(Result_ { entry: with_listings(own.entry, &listed_by)?, ..own });
        } else if let Some(entry) = entry_at(result, &listed) {
            results.extend(known.result_of(entry, &listed_by, &source)?);
        }
    }
    Ok(Found { results, token, share, report: report(answers) })
}

fn listed(answer: &PeerAnswer) -> &[ListedEntry] {
    match &answer.outcome {
        Outcome::Answered(entries) => entries,
        Outcome::Late | Outcome::Failed(_) | Outcome::Skipped(_) => &[],
    }
}

fn entry_at<'l>(result: &Fused, listed: &[&'l [ListedEntry]]) -> Option<&'l ListedEntry> {
    let Place::Listed { peer, position } = result.place else { return None };
    listed.get(peer)?.get(position)
}

/// The addresses of the peers that list a result, that of the shown entry first.
fn listed_by<'a>(result: &Fused, answers: &'a [PeerAnswer]) -> Vec<&'a str> {
    let leading = match result.place {
        Place::Listed { peer, .. } => Some(peer),
        Place::Own(_) => None,
    };
    let others = result.listed_by.iter().copied().filter(|peer| Some(*peer) != leading);
    let in_order = leading.into_iter().chain(others);
    in_order.filter_map(|peer| answers.get(peer)).map(|answer| answer.source.as_str()).collect()
}

fn with_listings(entry: ObjectText, listed_by: &[&str]) -> Result<ObjectText, Problem> {
    if listed_by.is_empty() {
        return Ok(entry);
    }
    entry.with_text_in("metadata", LISTED_BY, &listed_by.join(", "))
}

/// The next page begins after the last result of this index before the first one that is not shown. Results of this index that peers
/// raised may appear again there, and none is lost.
async fn token(
    app: &App,
    client: Client,
    page: &EntryPage,
    shown: &[Fused],
) -> Result<Option<String>, Problem> {
    let is_shown = |position: usize| shown.iter().any(|result| result.place == Place::Own(position));
    let leading = (0..page.entries.len()).take_while(|position| is_shown(*position)).count();
    match page.entries.get(leading.wrapping_sub(1)) {
        Some(last) if leading < page.entries.len() => search::token_after(app, client, page, last).await,
        _ => Ok(page.token.clone()),
    }
}

/// What this instance knows about entries that peers list.
struct Known {
    /// Its own entries with an identifier of theirs that match the filter of the search.
    held: Vec<(String, ObjectText)>,
    /// Identifiers that it holds, whether or not they match.
    identifiers: HashSet<String>,
    blocked: Vec<SiteName>,
}

impl Known {
    async fn find(
        app: &App,
        client: Client,
        listed: &[&ListedEntry],
        search: &EntrySearch,
    ) -> Result<Self, Problem> {
        let sites: Vec<SiteName> = listed.iter().flat_map(|entry| entry.sites.iter().cloned()).collect();
        let mut known = Self {
            held: Vec::new(),
            identifiers: HashSet::new(),
            blocked: app.store.blocked_among(&sites).await.map_err(Problem::from)?,
        };
        known.blocked.extend(sites.into_iter().filter(|site| app.index.suppressed().has(site)));
        let names: Vec<String> = listed.iter().map(|entry| entry.identifier.clone()).collect();
        if names.is_empty() {
            return Ok(known);
        }
        let wanted: HashSet<String> = names.iter().cloned().collect();
        let of_any = of_sites(Filters { names: names.clone(), ..Filters::default() })?;
        let is_wanted = move |entry: CatalogEntry| wanted.contains(&entry.identifier).then_some(entry);
        let all = entries_of(app, client, of_any, is_wanted).await?;
        if all.is_empty() {
            return Ok(known);
        }
        let filters = &search.request.filters;
        let names = if filters.names.is_empty() { names } else { filters.names.clone() };
        let terms = search.terms.clone();
        let of_search = Filters { names, ..filters.clone() };
        let matches = move |entry: CatalogEntry| is_matching(&entry, &terms).then_some(entry);
        let matching = entries_of(app, client, of_search, matches).await?;
        let matching: HashSet<CapabilityId> = matching.into_iter().map(|(id, _)| id).collect();
        for (id, entry) in all {
            let identifier = entry.text("identifier")?.unwrap_or_default();
            if matching.contains(&id) {
                known.held.push((identifier.clone(), entry));
            }
            known.identifiers.insert(identifier);
        }
        let base = app.base_url();
        let of_catalog = listed.iter().filter(|entry| own_entry(&base, &entry.identifier).is_some());
        known.identifiers.extend(of_catalog.map(|entry| entry.identifier.clone()));
        Ok(known)
    }

    /// The result for an entry that peers list. `None` if its site is blocked, or if this index holds it and it does not match.
    fn result_of(
        &self,
        listed: &ListedEntry,
        listed_by: &[&str],
        own_source: &str,
    ) -> Result<Option<Result_>, Problem> {
        if listed.sites.iter().any(|site| self.blocked.contains(site)) {
            return Ok(None);
        }
        let score = listed.score;
        if let Some((_, held)) = self.held.iter().find(|(identifier, _)| *identifier == listed.identifier) {
            let entry = with_listings(held.clone(), listed_by)?;
            return Ok(Some(Result_ { entry, score, source: own_source.to_owned() }));
        }
        if self.identifiers.contains(&listed.identifier) {
            return Ok(None);
        }
        let entry = ObjectText::of(&CatalogEntry::of_listing(listed, &listed_by.join(", ")))?;
        let source = listed_by.first().copied().unwrap_or_default().to_owned();
        Ok(Some(Result_ { entry, score, source }))
    }
}

/// The entries of this index that pass filters, by the ids of their capabilities.
async fn entries_of(
    app: &App,
    client: Client,
    filters: Filters,
    wanted: impl Fn(CatalogEntry) -> Option<CatalogEntry> + Clone + Send + 'static,
) -> Result<Vec<(CapabilityId, ObjectText)>, Problem> {
    let request = SearchRequest { filters, sort: Sort::Name, limit: HELD_MAX, ..SearchRequest::default() };
    let found = search_readable(&app.index, app.manifests(client), request).await?.answer;
    let (entries, _) = search::entries(app, client, &found.hits, wanted).await?;
    Ok(entries.into_iter().map(|(entry, hit): (_, &Hit)| (hit.id.clone(), entry)).collect())
}
