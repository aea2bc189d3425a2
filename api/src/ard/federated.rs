//! `POST /search` with the results of peers (ARD 0.91 §5.4, `federation: "auto"`).
//!
//! The index is searched while the peers are queried. Its results do not depend on their answers. Only the first page queries peers: later
//! pages continue in this index. Of an entry that this index holds, no text of a peer is shown; an own result names the peers that list it.
//! Entries that do not satisfy the filter are left out, and so are sites that the operator blocked or that opted out.

use std::collections::HashSet;

use axum::http::{HeaderMap, HeaderValue};
use indexer::{FacetKey, Filters};
use manifest::entry::publisher_of;
use manifest::{ListedEntry, SiteName};
use runtime::Share;
use serde_json::{Map, Value, json};

use super::CatalogEntry;
use super::search::{
    EntryPage, EntryResult, EntrySearch, Federation, PageEntry, is_matching, page, score, token_after,
};
use crate::answers::search::object_of;
use crate::catalog_entry::LISTED_BY;
use crate::client::Client;
use crate::federation::{
    Forwarding, Fused, Outcome, PeerAnswer, Place, Question, Skip, forwarding, fuse, report,
};
use crate::json_text::ObjectText;
use crate::problem::Problem;
use crate::self_description::own_identifiers;
use crate::state::App;

/// The results of a search.
pub(super) struct Found {
    pub(super) results: Vec<EntryResult>,
    pub(super) token: Option<String>,
    pub(super) share: Option<Share>,
    /// What each peer contributed; `None` if no peer was considered.
    pub(super) report: Option<HeaderValue>,
}

/// The results of this index, and of the peers if the search requests them.
pub(super) async fn results(
    app: &App,
    client: Client,
    headers: &HeaderMap,
    search: EntrySearch,
) -> Result<Found, Problem> {
    let own = Box::pin(page(app, client, search.request.clone(), search.terms.clone()));
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

fn own_result(entry: PageEntry, source: &str) -> EntryResult {
    EntryResult { entry: entry.entry, score: score(entry.relevance), source: source.to_owned() }
}

async fn fused(
    app: &App,
    client: Client,
    page: EntryPage,
    answers: &[PeerAnswer],
    search: &EntrySearch,
) -> Result<Found, Problem> {
    let mut matching: Vec<Vec<ListedEntry>> =
        answers.iter().map(|answer| matching(answer, search)).collect::<Result<_, _>>()?;
    let identifiers = page.entries.iter().map(|entry| entry.entry.text("identifier"));
    let identifiers: Vec<String> =
        identifiers.map(|text| text.map(Option::unwrap_or_default)).collect::<Result<_, _>>()?;
    // before the results are merged, so that what is not shown takes no place on the page
    Known::find(app, client, &matching, &identifiers).await?.leave_out_others(&mut matching);
    let listed: Vec<&[ListedEntry]> = matching.iter().map(Vec::as_slice).collect();
    if listed.iter().all(|entries| entries.is_empty()) {
        return Ok(without_peers(app, page, answers));
    }
    let shown = fuse(&identifiers, &listed, search.request.limit);
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
            results.push(EntryResult { entry: with_listings(own.entry, &listed_by)?, ..own });
        } else if let Some(entry) = entry_at(result, &listed) {
            results.push(foreign_result(entry, &listed_by)?);
        }
    }
    Ok(Found { results, token, share, report: report(answers) })
}

fn foreign_result(entry: &ListedEntry, listed_by: &[&str]) -> Result<EntryResult, Problem> {
    let source = listed_by.first().copied().unwrap_or_default().to_owned();
    let shown = CatalogEntry::of_listing(entry, &listed_by.join(", "));
    Ok(EntryResult { entry: ObjectText::of(&shown)?, score: entry.score, source })
}

/// The entries of a peer that satisfy the filter of the search: peers may not know all of its terms.
fn matching(answer: &PeerAnswer, search: &EntrySearch) -> Result<Vec<ListedEntry>, Problem> {
    let filters = &search.request.filters;
    let mut matching = Vec::new();
    for listed in listed(answer) {
        let entry = CatalogEntry::of_listing(listed, "");
        if is_matching(&entry, &search.terms) && satisfies(&object_of(&entry)?, &listed.identifier, filters) {
            matching.push(listed.clone());
        }
    }
    Ok(matching)
}

/// Whether an entry has one of the values of each filter of the index. A member that it lacks satisfies no filter.
fn satisfies(entry: &Map<String, Value>, identifier: &str, filters: &Filters) -> bool {
    let has = |path: &str, value: &str| {
        let mut steps = path.split('.');
        let member = steps.next().and_then(|first| entry.get(first));
        let found = steps.try_fold(member, |member, step| Some(member?.get(step)));
        match found.flatten() {
            Some(Value::Array(texts)) => texts.iter().any(|text| is_text(text, value)),
            Some(text) => is_text(text, value),
            None => false,
        }
    };
    let has_value = |key: FacetKey, value: &str| match key.filter().entry_path {
        "publisher" => publisher_of(identifier).eq_ignore_ascii_case(value),
        path => has(path, value),
    };
    // The filter without a path leaves out what only other sites name; entries of peers say so in their binding.
    let filtered = filters.iter().filter(|(key, _)| !key.filter().entry_path.is_empty());
    let names = &filters.names;
    let has_name = names.iter().any(|name| super::filter::NAMES.iter().any(|path| has(path, name)));
    filters.invocable.is_none()
        && (names.is_empty() || has_name)
        && filtered.into_iter().all(|(key, values)| values.iter().any(|value| has_value(key, value)))
}

fn is_text(value: &Value, text: &str) -> bool {
    value.as_str().is_some_and(|value| value.to_lowercase() == text.to_lowercase())
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
        Some(last) if leading < page.entries.len() => token_after(app, client, page, last).await,
        _ => Ok(page.token.clone()),
    }
}

/// What this instance knows about entries that peers list.
struct Known {
    /// Identifiers of its results on this page, in lower case: the peers are named as listings of these.
    shown: HashSet<String>,
    /// Identifiers of its other entries, in lower case. They are not results of the search here, or come on a later page.
    held: HashSet<String>,
    blocked: HashSet<SiteName>,
}

impl Known {
    async fn find(
        app: &App,
        client: Client,
        listed: &[Vec<ListedEntry>],
        shown: &[String],
    ) -> Result<Self, Problem> {
        let entries = || listed.iter().flatten();
        let sites: HashSet<SiteName> = entries().flat_map(|entry| entry.sites.iter().cloned()).collect();
        let sites: Vec<SiteName> = sites.into_iter().collect();
        let blocked = app.store.blocked_among(&sites).await.map_err(Problem::from)?;
        let mut blocked: HashSet<SiteName> = blocked.into_iter().collect();
        blocked.extend(sites.into_iter().filter(|site| app.index.suppressed().has(site)));
        let names: HashSet<String> = entries().map(|entry| entry.identifier.to_lowercase()).collect();
        let own = own_identifiers(&app.base_url());
        let mut held: HashSet<String> = own.into_iter().map(|name| name.to_lowercase()).collect();
        let names: Vec<String> = names.into_iter().collect();
        if !names.is_empty() {
            let found = app.index.run(client, move |searcher| searcher.held_among(&names)).await?;
            held.extend(found.map_err(|error| Problem::internal(&error))?);
        }
        Ok(Self { shown: shown.iter().map(|name| name.to_lowercase()).collect(), held, blocked })
    }

    /// Removes the entries of peers that are no results.
    fn leave_out_others(&self, matching: &mut [Vec<ListedEntry>]) {
        for entries in matching.iter_mut() {
            entries.retain(|entry| self.permits(entry));
        }
    }

    /// Whether an entry is a result: its sites are not blocked, and this index shows it on this page or does not hold it.
    fn permits(&self, listed: &ListedEntry) -> bool {
        let is_blocked = listed.sites.iter().any(|site| self.blocked.contains(site));
        let name = listed.identifier.to_lowercase();
        !is_blocked && (self.shown.contains(&name) || !self.held.contains(&name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ard::filter;
    use manifest::term::TermContext;

    #[test]
    fn a_peer_s_text_about_a_held_entry_is_not_shown() {
        let listed = |identifier: &str| {
            let entry = json!({"identifier": identifier, "url": "https://shop.example/card.json"});
            ListedEntry::read(&entry).unwrap()
        };
        let names = |name: &str| HashSet::from([format!("urn:air:shop.example:cards:{name}")]);
        let held = names("buy").into_iter().chain(names("rent")).collect();
        let mut known = Known { shown: names("rent"), held, blocked: HashSet::new() };
        assert!(!known.permits(&listed("urn:air:Shop.example:cards:Buy")), "in any case");
        assert!(known.permits(&listed("urn:air:shop.example:cards:rent")), "the peer is named as a listing");
        assert!(known.permits(&listed("urn:air:shop.example:cards:sell")));
        known.blocked.insert(SiteName::parse("shop.example").unwrap());
        assert!(!known.permits(&listed("urn:air:shop.example:cards:sell")));
    }

    #[test]
    fn what_is_not_shown_takes_no_place_on_the_page() {
        let named = |name: String| format!("urn:air:shop.example:cards:{name}");
        let own: Vec<String> = (0..10).map(|at| named(format!("own{at}"))).collect();
        let held: HashSet<String> = (0..10).map(|at| named(format!("held{at}"))).collect();
        let entry = |identifier: &String| {
            ListedEntry::read(&json!({"identifier": identifier, "url": "https://shop.example/card.json"}))
                .unwrap()
        };
        let mut matching: Vec<Vec<ListedEntry>> =
            (0..8).map(|_| held.iter().chain(&own[..1]).map(entry).collect()).collect();
        let known = Known { shown: own.iter().cloned().collect(), held, blocked: HashSet::new() };
        known.leave_out_others(&mut matching);
        let listed: Vec<&[ListedEntry]> = matching.iter().map(Vec::as_slice).collect();
        let shown = fuse(&own, &listed, 10);
        let places: Vec<Place> = shown.iter().map(|result| result.place).collect();
        assert_eq!(places, (0..10).map(Place::Own).collect::<Vec<_>>());
        assert_eq!(shown[0].listed_by.len(), 8, "the peers are named as listings");
    }

    #[test]
    fn entries_of_peers_have_to_satisfy_the_filter() {
        let entry = json!({"identifier": "urn:air:Shop.example:cards:buy", "displayName": "Shop", "tags": ["food"],
            "type": "application/a2a-agent-card+json", "url": "https://shop.example/card.json"});
        let listed = ListedEntry::read(&entry).unwrap();
        let shown = object_of(&CatalogEntry::of_listing(&listed, "")).unwrap();
        for (filter, is_satisfied) in [
            (json!({}), true),
            (json!({"type": ["application/json", "application/a2a-agent-card+json"]}), true),
            (json!({"type": "application/json"}), false),
            (json!({"publisher": "shop.example", "tags": "Food"}), true),
            (json!({"publisher": "bank.example"}), false),
            (json!({"displayName": "shop"}), true),
            (json!({"identifier": "urn:air:shop.example:cards:sell"}), false),
            (json!({"metadata.safety": "read"}), false),
            (json!({"metadata.invocable": true}), false),
        ] {
            let filters = filter::read(filter.as_object().unwrap(), &TermContext::default()).unwrap().filters;
            assert_eq!(satisfies(&shown, &listed.identifier, &filters), is_satisfied, "{filter}");
        }
    }
}
