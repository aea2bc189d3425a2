//! `GET /agents`: every entry in a fixed order, filtered and never ranked (ARD 0.91 §5.3.5).
//!
//! Capabilities are listed by name, by last change or by the time when they were first seen. The manifests that declare them are entries
//! too and are listed by `filter=metadata.entry = 'manifest'`; manifests that only other sites name are left out, so a page may be shorter
//! than its limit.

use std::ops::ControlFlow;

use indexer::{SearchRequest, Sort};
use manifest::ManifestId;
use serde::Serialize;
use store::StoredManifest;
use utoipa::ToSchema;

use super::expression::{self, Entries, Expression};
use super::{CatalogEntry, PageEntries, of_sites, search};
use crate::answers::search::search_readable;
use crate::buffers::Reserved;
use crate::client::Client;
use crate::cursor;
use crate::json_text::ObjectText;
use crate::parameters::QueryPairs;
use crate::problem::Problem;
use crate::request::Request;
use crate::response::{Caching, HttpResult};
use crate::state::App;
use runtime::Share;

const PAGE_DEFAULT: usize = 20;
const PAGE_MAX: usize = 100;
/// The listing that cursors over manifests are bound to.
const MANIFESTS: &str = "agents?manifests";

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ArdList)]
pub(super) struct ListAnswer {
    #[schema(value_type = Vec<CatalogEntry>)]
    items: Vec<ObjectText>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    total: Option<u64>,
    /// Absent at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    page_token: Option<String>,
}

/// Entries in a fixed order, filtered and never ranked, as ARD 0.91 defines it.
#[utoipa::path(
    get,
    path = "/agents",
    tag = "ARD registry",
    params(
        ("filter" = Option<String>, Query, description = "Comparisons joined by AND, as in metadata.format = 'awp'", max_length = 1024),
        ("orderBy" = Option<String>, Query, description = "displayName, updatedAt DESC, or createdAt DESC", max_length = 64),
        ("pageSize" = Option<u32>, Query, description = "Maximum number of results; the default is 20", minimum = 1, maximum = 100),
        ("pageToken" = Option<String>, Query, description = "pageToken of the previous page", max_length = 10240, pattern = "^[A-Za-z0-9_-]*$"),
    ),
    responses((status = 200, description = "A page of entries", body = ListAnswer)),
)]
pub(crate) async fn list(Request { app, client, context, query }: Request) -> HttpResult {
    query.only(&["filter", "orderBy", "pageSize", "pageToken"])?;
    let expression = query.one("filter")?.map(expression::read).transpose()?.unwrap_or_default();
    let page_size = crate::body::bounded("pageSize", page_size(&query)?, PAGE_DEFAULT, PAGE_MAX)?;
    let token = query.one("pageToken")?.map(ToOwned::to_owned);
    let (answer, share) = match expression.entries.unwrap_or(Entries::Capabilities) {
        Entries::Capabilities => {
            capabilities(&app, client, expression, order(&query)?, page_size, token).await?
        }
        Entries::Manifests => manifests(&app, client, &expression, &query, page_size, token).await?,
    };
    let mut response = context.json(&answer, Caching::Search)?;
    Reserved::attach(&mut response, share);
    Ok(response)
}

fn page_size(query: &QueryPairs) -> Result<Option<i64>, Problem> {
    query.one("pageSize")?.map(|text| Ok(text.parse().unwrap_or(-1))).transpose()
}

/// The sort order; the index supports three.
fn order(query: &QueryPairs) -> Result<Sort, Problem> {
    let Some(text) = query.one("orderBy")? else { return Ok(Sort::Name) };
    let words: Vec<String> = text.split_whitespace().map(str::to_lowercase).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["displayname" | "name"] | ["displayname" | "name", "asc"] => Ok(Sort::Name),
        ["updatedat" | "updated_at", "desc"] => Ok(Sort::Updated),
        ["createdat" | "created_at", "desc"] => Ok(Sort::FirstSeen),
        _ => {
            let known = ["displayName", "updatedAt DESC", "createdAt DESC"];
            Err(Problem::bad_request("the value of \"orderBy\" is not a known order")
                .with_parameter("orderBy")
                .with_known(known))
        }
    }
}

async fn capabilities(
    app: &App,
    client: Client,
    expression: Expression,
    sort: Sort,
    page_size: usize,
    token: Option<String>,
) -> Result<(ListAnswer, Option<Share>), Problem> {
    let request = SearchRequest {
        filters: of_sites(expression.filters)?,
        sort,
        limit: page_size,
        cursor: token,
        ..SearchRequest::default()
    };
    let found = search_readable(&app.index, app.manifests(client), request)
        .await
        .map_err(|problem| problem.renamed("cursor", "pageToken"))?
        .answer;
    let (entries, share) = search::entries(app, client, &found.hits, Some).await?;
    let items = entries.into_iter().map(|(entry, _)| entry).collect();
    Ok((ListAnswer { items, total: Some(found.total), page_token: found.next_cursor }, share))
}

async fn manifests(
    app: &App,
    client: Client,
    expression: &Expression,
    query: &QueryPairs,
    page_size: usize,
    token: Option<String>,
) -> Result<(ListAnswer, Option<Share>), Problem> {
    if !expression.filters.is_empty() || query.one("orderBy")?.is_some() {
        let detail = "all manifests are listed, sorted by id: leave out \"orderBy\" and every filter but metadata.entry";
        return Err(Problem::bad_request(detail).with_parameter("filter"));
    }
    let unreadable = || {
        Problem::bad_request("\"pageToken\" was not issued by this server: pass it on unchanged")
            .with_parameter("pageToken")
    };
    let after = match token {
        None => None,
        Some(token) => {
            let position = cursor::decode(MANIFESTS, &token).map_err(|_| unreadable())?;
            Some(ManifestId::parse(&position).map_err(|_| unreadable())?)
        }
    };
    // One more than the page shows whether there is another page.
    let wanted = u32::try_from(page_size + 1).unwrap_or(u32::MAX);
    let sizes = app.manifests(client).sizes_after(after.as_ref(), wanted).await?;
    let ids: Vec<&ManifestId> = sizes.iter().take(page_size).map(|size| &size.id).collect();
    let readable = app.manifests(client).readable(&ids).await?;
    let ids: Vec<ManifestId> = ids.into_iter().take(readable).cloned().collect();
    let has_more = sizes.len() > ids.len();
    let last = ids.last().filter(|_| has_more);
    let page_token = last.map(|last| cursor::encode(MANIFESTS, last.as_str()));
    let base = app.base_url();
    let add = move |items: &mut PageEntries, stored: StoredManifest| {
        if stored.is_of_site() {
            items.add(&CatalogEntry::of_manifest(&stored, &base));
        }
        ControlFlow::Continue(())
    };
    let state = app.manifests(client).counted(PageEntries::default())?;
    let (items, share) = app.manifests(client).each_of(&ids, state, add).await?.into_parts();
    Ok((ListAnswer { items: items.into_entries()?, total: None, page_token }, share))
}
