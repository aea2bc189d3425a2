//! `GET /sites/{domain}/ai-catalog.json` (ARD 0.9) and `/ard.json` (0.91): the declarations of a site, in any dialect, as one catalog: an
//! entry for each manifest, followed by one for each of its capabilities.

use std::ops::ControlFlow;
use std::sync::Arc;

use axum::extract::Path;
use manifest::{NamedBy, SiteName};
use serde::Serialize;
use store::{SiteManifestSize, StoredManifest};
use utoipa::ToSchema;

use super::{CatalogEntry, PageEntries};
use crate::answers::declarations::SharedDeclarations;
use crate::buffers::Reserved;
use crate::client::Client;
use crate::json_text::ObjectText;
use crate::manifests::Kept;
use crate::problem::Problem;
use crate::request::Request;
use crate::response::{Caching, HttpResult};
use crate::state::App;
use runtime::Share;

/// Maximum number of entries of one catalog: about a megabyte of JSON. `GET /agents` lists the remaining entries and manifests that are too
/// large for one page.
const ENTRIES_MAX: usize = 1_000;

/// A catalog, as defined by the schema of the standard.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ArdCatalog)]
pub(crate) struct Catalog {
    pub(crate) spec_version: &'static str,
    pub(crate) host: CatalogHost,
    #[schema(value_type = Vec<CatalogEntry>)]
    pub(crate) entries: Vec<ObjectText>,
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

/// What a site declares, as a catalog of ARD 0.9 under its name there.
#[utoipa::path(
    get,
    path = "/sites/{domain}/ai-catalog.json",
    tag = "ARD registry",
    params(("domain" = String, Path, description = "A domain name")),
    responses((status = 200, description = "The catalog", body = Catalog)),
)]
pub(crate) async fn show(request: Request, domain: Path<String>) -> HttpResult {
    answer(request, &domain).await
}

/// The catalog of a site under the file name of ARD 0.91.
#[utoipa::path(
    get,
    path = "/sites/{domain}/ard.json",
    tag = "ARD registry",
    params(("domain" = String, Path, description = "A domain name")),
    responses((status = 200, description = "The catalog", body = Catalog)),
)]
pub(crate) async fn show_by_new_name(request: Request, domain: Path<String>) -> HttpResult {
    answer(request, &domain).await
}

async fn answer(Request { app, client, context, query }: Request, domain: &str) -> HttpResult {
    query.only(&[])?;
    let site = SiteName::parse(domain).map_err(|error| Problem::bad_request(error.to_string()))?;
    let base = app.base_url();
    let (entries, share) = entries_of_site(&app, client, &site, (|_| true, |_| true)).await?;
    if entries.is_empty() {
        return Err(Problem::not_found(format!("the index has no declarations of {site}")));
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
    let mut response = context.json(&catalog, Caching::Record)?;
    Reserved::attach(&mut response, share);
    Ok(response)
}

/// The entries of a catalog so far.
#[derive(Default)]
struct SiteEntries {
    /// Number of entries of the catalog, including those that are not kept.
    listed: usize,
    kept: PageEntries,
}

impl Kept for SiteEntries {
    fn bytes(&self) -> usize {
        self.kept.bytes()
    }
}

/// The entries of a site: each manifest that the site names and that `may_count`, what the site publishes first, followed by the
/// capabilities whose leading declaration it contains. Only the requested entries are kept, with the share that counts their bytes towards
/// the limit of the client.
pub(super) async fn entries_of_site(
    app: &App,
    client: Client,
    site: &SiteName,
    (may_count, is_wanted): (
        impl Fn(&SiteManifestSize) -> bool,
        impl Fn(&CatalogEntry) -> bool + Clone + Send + 'static,
    ),
) -> Result<(Vec<ObjectText>, Option<Share>), Problem> {
    let base = app.base_url();
    let manifests = app.manifests(client);
    let shared = app.store.capabilities_shared_of_site(site).await?;
    let shared = SharedDeclarations::following(manifests, shared).await?;
    let manifests = shared.beside(manifests);
    let shared = Arc::new(shared);
    let add = move |entries: &mut SiteEntries, stored: StoredManifest| {
        if !stored.is_of_site() {
            return ControlFlow::Continue(());
        }
        let room = ENTRIES_MAX.saturating_sub(entries.listed);
        let capabilities = stored.manifest.capabilities.iter();
        let led = capabilities.filter_map(|capability| shared.merged(&stored, capability));
        let capabilities = led.map(|merged| CatalogEntry::of_capability(&stored, &merged.capability, &base));
        let all = std::iter::once(CatalogEntry::of_manifest(&stored, &base)).chain(capabilities);
        for entry in all.take(room) {
            entries.listed += 1;
            if is_wanted(&entry) {
                entries.kept.add(&entry);
            }
        }
        if entries.listed < ENTRIES_MAX { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    };
    let may_count = |of: &SiteManifestSize| of.named_by == NamedBy::Site && may_count(of);
    let batches = manifests.batches_of_site(site, may_count).await?;
    let state = manifests.counted(SiteEntries::default())?;
    let (entries, share) = manifests.each_in(batches, state, add).await?.into_parts();
    Ok((entries.kept.into_entries()?, share))
}
