//! `GET /sites/{domain}/ai-catalog.json` (ARD 0.9) and `/ard.json` (0.91): what a site declares, in whatever dialect, as
//! one catalog: an entry for each manifest, followed by one for each of its capabilities.

use std::ops::ControlFlow;

use axum::Extension;
use axum::extract::{Path, State};
use axum::response::Response;
use manifest::SiteName;
use serde::Serialize;
use store::StoredManifest;
use utoipa::ToSchema;

use super::CatalogEntry;
use crate::answer::{Asked, Caching};
use crate::app::App;
use crate::client::Client;
use crate::parameters::QueryPairs;
use crate::problem::Problem;

/// Entries of one catalog: about a megabyte of JSON. The rest is browsed with `GET /agents`.
const ENTRIES_MAX: usize = 1_000;

/// A catalog, as the standard's schema has it.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ArdCatalog)]
pub(crate) struct Catalog {
    pub(crate) spec_version: &'static str,
    pub(crate) host: CatalogHost,
    pub(crate) entries: Vec<CatalogEntry>,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ArdHost)]
pub(crate) struct CatalogHost {
    pub(crate) display_name: String,
    pub(crate) identifier: String,
    pub(crate) documentation_url: String,
}

/// The version of the catalog's own format.
pub(crate) const SPEC_VERSION: &str = "1.0";

/// What a site declares, as a catalog of ARD 0.9.
#[utoipa::path(
    get,
    path = "/sites/{domain}/ai-catalog.json",
    tag = "ARD registry",
    params(("domain" = String, Path, description = "A domain name")),
    responses((status = 200, description = "The catalog", body = Catalog)),
)]
pub(crate) async fn show(
    app: State<App>,
    asked: Asked,
    Extension(client): Extension<Client>,
    domain: Path<String>,
    query: QueryPairs,
) -> Result<Response, Problem> {
    answer(app, asked, client, domain, query).await
}

/// The same under the name of ARD 0.91.
#[utoipa::path(
    get,
    path = "/sites/{domain}/ard.json",
    tag = "ARD registry",
    params(("domain" = String, Path, description = "A domain name")),
    responses((status = 200, description = "The catalog", body = Catalog)),
)]
pub(crate) async fn show_by_new_name(
    app: State<App>,
    asked: Asked,
    Extension(client): Extension<Client>,
    domain: Path<String>,
    query: QueryPairs,
) -> Result<Response, Problem> {
    answer(app, asked, client, domain, query).await
}

async fn answer(
    State(app): State<App>,
    asked: Asked,
    client: Client,
    Path(domain): Path<String>,
    query: QueryPairs,
) -> Result<Response, Problem> {
    query.only(&[])?;
    let site = SiteName::parse(&domain).map_err(|error| Problem::bad_request(error.to_string()))?;
    let base = app.base_url();
    let of_site = base.clone();
    let add = move |entries: &mut Vec<CatalogEntry>, stored: StoredManifest| {
        let room = ENTRIES_MAX.saturating_sub(entries.len());
        let capabilities = stored.manifest.capabilities.iter();
        let capabilities =
            capabilities.map(|capability| CatalogEntry::of_capability(&stored, capability, &of_site));
        let all = std::iter::once(CatalogEntry::of_manifest(&stored, &of_site)).chain(capabilities);
        entries.extend(all.take(room));
        if entries.len() < ENTRIES_MAX { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    };
    let entries = app.manifests(client).each_of_site(&site, Vec::new(), add).await?;
    if entries.is_empty() {
        return Err(Problem::not_found(format!("nothing that {site} declares is in the index")));
    }
    let catalog = Catalog {
        spec_version: SPEC_VERSION,
        host: CatalogHost {
            display_name: site.to_string(),
            identifier: site.to_string(),
            documentation_url: format!("{base}/sites/{site}"),
        },
        entries,
    };
    asked.json(&catalog, Caching::Record)
}
