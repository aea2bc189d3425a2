//! `GET /agents/{identifier}`: one entry by its whole identifier (ARD 0.91 §5.3.4).
//!
//! Exact and case-sensitive, in this index only: no other registry is queried, and nothing is redirected. Several catalogs may name the
//! same artefact. Of entries with the same identifier, the one from the publisher's own host or site is returned. A document that only
//! other sites name has no identifier here.

use std::ops::ControlFlow;

use axum::extract::Path;
use indexer::{FacetKey, Filters, Hit, SearchRequest, Sort};
use manifest::entry::{is_identifier, publisher_of};
use manifest::{Host, ManifestId, registry_publisher};
use store::{SiteManifestSize, StoredManifest};

use super::{CatalogEntry, PageEntries, catalog, of_sites, search};
use crate::answers::listed_by::{listings, registries_with};
use crate::answers::search::search_readable;
use crate::catalog_entry::LISTED_BY;
use crate::client::Client;
use crate::json_text::ObjectText;
use crate::problem::Problem;
use crate::request::Request;
use crate::response::{Caching, HttpResult};
use crate::self_description::own_entry;
use crate::state::App;

/// Maximum identifier length in bytes: identifiers of this index contain a host name of up to 253 bytes and a native id of up to 200.
const IDENTIFIER_BYTES_MAX: usize = 512;
/// Maximum number of entries that are compared with the identifier. The others differ in case only, or have the identifier as a name.
const CANDIDATES_MAX: usize = 100;

/// The entry with an identifier, as ARD 0.91 defines it.
#[utoipa::path(
    get,
    path = "/agents/{identifier}",
    tag = "ARD registry",
    params(("identifier" = String, Path, description = "A urn:air identifier, encoded as one segment", max_length = 512)),
    responses((status = 200, description = "The entry", body = CatalogEntry)),
)]
pub(crate) async fn show(
    Request { app, client, context, query }: Request,
    Path(identifier): Path<String>,
) -> HttpResult {
    query.only(&[])?;
    if identifier.len() > IDENTIFIER_BYTES_MAX || !is_identifier(&identifier) {
        let detail = format!(
            "the identifier is not of the form urn:air:<publisher domain>:<namespace>:<name>, of at most \
             {IDENTIFIER_BYTES_MAX} bytes; encode it as one segment of the path, as in /agents/urn%3Aair%3Ashop.example%3Aawp%3Abook"
        );
        return Err(Problem::bad_request(detail).with_parameter("identifier"));
    }
    if let Some(own) = own_entry(&app.base_url(), &identifier) {
        return context.json(&own, Caching::Record);
    }
    let mut entry = of_manifest(&app, client, &identifier).await?;
    if entry.is_none() {
        entry = of_capability(&app, client, &identifier).await?;
    }
    if entry.is_none() {
        entry = of_site(&app, client, &identifier).await?;
    }
    let unknown = || Problem::not_found(format!("no entry of this registry has the identifier {identifier}"));
    let entry = entry.ok_or_else(unknown)?;
    context.json(&with_listings(&app, &identifier, entry).await?, Caching::Record)
}

/// The entry with the registries that list its identifier, in `metadata.listedBy`.
async fn with_listings(app: &App, identifier: &str, entry: ObjectText) -> Result<ObjectText, Problem> {
    let Some(publisher) = registry_publisher(identifier) else { return Ok(entry) };
    let listings = listings(&app.store, &publisher.site()).await?;
    match registries_with(&listings, identifier).as_slice() {
        [] => Ok(entry),
        registries => entry.with_text_in("metadata", LISTED_BY, &registries.join(", ")),
    }
}

/// The entry of a whole manifest, whose identifier ends with its id.
async fn of_manifest(app: &App, client: Client, identifier: &str) -> Result<Option<ObjectText>, Problem> {
    let last = identifier.rsplit(':').next().unwrap_or_default();
    let Ok(id) = ManifestId::parse(last) else { return Ok(None) };
    let base = app.base_url();
    let wanted = identifier.to_owned();
    let add = move |entries: &mut PageEntries, stored: StoredManifest| {
        if stored.is_of_site() {
            let entry = CatalogEntry::of_manifest(&stored, &base);
            if entry.identifier == wanted {
                entries.add(&entry);
            }
        }
        ControlFlow::Break(())
    };
    let state = app.manifests(client).counted(PageEntries::default())?;
    let (entry, _) = app.manifests(client).each_of(&[id], state, add).await?.into_parts();
    Ok(entry.into_entries()?.pop())
}

async fn of_capability(app: &App, client: Client, identifier: &str) -> Result<Option<ObjectText>, Problem> {
    let publisher = publisher_of(identifier);
    let of_publisher = Filters { names: vec![identifier.to_owned()], ..Filters::default() }
        .with(FacetKey::Publisher, [publisher])
        .map_err(|error| Problem::internal(&error))?;
    let of_publisher = of_sites(of_publisher)?;
    if let Ok(host) = Host::parse(publisher) {
        let own = of_publisher.clone().with(FacetKey::Site, [host.site().as_str()]);
        let own = own.map_err(|error| Problem::internal(&error))?;
        if let Some(entry) = among(app, client, own, identifier).await? {
            return Ok(Some(entry));
        }
    }
    among(app, client, of_publisher, identifier).await
}

/// The entry in the catalog of the publisher's site. The index may not have it: the minted identifier of a capability with several
/// declarations has another suffix there, and the index may lag behind the store.
async fn of_site(app: &App, client: Client, identifier: &str) -> Result<Option<ObjectText>, Problem> {
    let Ok(host) = Host::parse(publisher_of(identifier)) else { return Ok(None) };
    let wanted = identifier.to_owned();
    let is_wanted = move |entry: &CatalogEntry| entry.identifier == wanted;
    let may_count = |of: &SiteManifestSize| may_have_entry(of, &host);
    let (entries, _) = catalog::entries_of_site(app, client, &host.site(), (may_count, is_wanted)).await?;
    Ok(entries.into_iter().next())
}

/// Whether a manifest may have an entry with an identifier of a publisher: a generated one contains the host of the manifest.
fn may_have_entry(of: &SiteManifestSize, publisher: &Host) -> bool {
    let host = of.url.host();
    host.as_str().replace('_', "-") == publisher.as_str() || of.publisher.may_use_name_of(&host, publisher)
}

async fn among(
    app: &App,
    client: Client,
    filters: Filters,
    identifier: &str,
) -> Result<Option<ObjectText>, Problem> {
    let request =
        SearchRequest { filters, sort: Sort::Name, limit: CANDIDATES_MAX, ..SearchRequest::default() };
    let found = search_readable(&app.index, app.manifests(client), request).await?.answer;
    let wanted = identifier.to_owned();
    let with_identifier = move |entry: CatalogEntry| Some(entry).filter(|entry| entry.identifier == wanted);
    let (mut entries, _) = search::entries(app, client, &found.hits, with_identifier).await?;
    // another host of the site may belong to one of its users
    let publisher = Host::parse(publisher_of(identifier)).ok();
    let is_of_publisher = |hit: &Hit| publisher.as_ref().is_some_and(|host| hit.host.is_main_of(host));
    let best = entries.iter().position(|(_, hit)| is_of_publisher(hit)).unwrap_or(0);
    Ok((best < entries.len()).then(|| entries.swap_remove(best).0))
}
