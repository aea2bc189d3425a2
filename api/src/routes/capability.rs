//! `GET /capabilities/{id}`: one capability with every member of its declaration.

use axum::extract::Path;
use manifest::{CapabilityId, Publisher};
use serde_json::json;
use store::StoredManifest;

use crate::answers::TEXT_IS;
use crate::answers::capability::{details, find, parse_id, row, similar};
use crate::answers::claim::OwnerMark;
use crate::answers::listed_by::{listings, of_manifest};
use crate::answers::liveness::Liveness;
use crate::catalog_entry::CatalogEntry;
use crate::client::Client;
use crate::dashboard;
use crate::dashboard::capability::CapabilityRequest;
use crate::parameters::QueryPairs;
use crate::problem::Problem;
use crate::request::Request;
use crate::response::{Caching, HttpResult, RequestContext};
use crate::state::App;

/// Maximum number of similar capabilities from which a page selects.
const SIMILAR_MAX: usize = 40;

/// A capability with all members of its declarations.
#[utoipa::path(
    get,
    path = "/capabilities/{id}",
    tag = "capabilities",
    params(("id" = inline(crate::openapi::schemas::CapabilityId), Path, description = "Id of a capability")),
    responses((status = 200, description = "The capability", body = crate::openapi::schemas::CapabilityRow)),
)]
pub(crate) async fn show(
    Request { app, client, context, query }: Request,
    Path(id): Path<String>,
) -> HttpResult {
    let query = query.known(&context, &[])?;
    let id = parse_id(&id)?;
    if context.wants_page() {
        return page(&app, client, context, id, query).await;
    }
    let found = find(app.manifests(client), id).await?;
    let liveness = found.liveness.clone();
    let listings = listings(&app.store, &found.site()).await?;
    let response = found.work(move |stored, merged| {
        let capability = &merged.capability;
        let mut answer = row(stored, merged)?;
        answer.insert("title".to_owned(), capability.title.clone().into());
        answer.insert("tags".to_owned(), capability.tags.clone().into());
        answer.insert("deprecation_message".to_owned(), capability.deprecation_message.clone().into());
        answer.insert("text_is".to_owned(), TEXT_IS.into());
        let owner = serde_json::to_value(owner_of(&app, stored));
        answer.insert("owner".to_owned(), owner.map_err(|error| Problem::internal(&error))?);
        answer.extend(details(stored, merged)?);
        if let Some(liveness) = &liveness {
            answer.insert("liveness".to_owned(), json!(liveness));
        }
        let listed_by = serde_json::to_value(of_manifest(listings, stored));
        answer.insert("listed_by".to_owned(), listed_by.map_err(|error| Problem::internal(&error))?);
        context.json(&answer, Caching::Record)
    });
    response.await
}

/// The owner of the site that publishes a manifest. `None` for other manifests, even if the site links to them, because hosts and files of
/// the site's users have other owners.
fn owner_of(app: &App, stored: &StoredManifest) -> Option<OwnerMark> {
    let is_own = stored.is_of_site() && stored.publisher == Publisher::Site;
    app.owner_of(&stored.manifest.url.site()).filter(|_| is_own)
}

/// The page with a request that is built from the values of the form: parameters that begin with `v.`. Nothing is sent to the
/// site.
pub(crate) async fn build_request(
    Request { app, client, context, query }: Request,
    Path(id): Path<String>,
) -> HttpResult {
    page(&app, client, context, parse_id(&id)?, query).await
}

async fn page(
    app: &App,
    client: Client,
    context: RequestContext,
    id: CapabilityId,
    typed: QueryPairs,
) -> HttpResult {
    // Searches first, so that no permit for a manifest is held while the search waits. The page is also shown without similar capabilities.
    let similar =
        similar(&app.store, &app.index, client, &id, SIMILAR_MAX).await.ok().flatten().unwrap_or_default();
    let (here, reader) = (app.page_context(), app.clone());
    let found = find(app.manifests(client), id).await?;
    let liveness = found.liveness.as_ref().map(Liveness::in_words);
    let listings = listings(&app.store, &found.site()).await?;
    let response = found.work(move |stored, merged| {
        let listed_by = of_manifest(listings, stored);
        let entry = json!(CatalogEntry::of_capability(stored, &merged.capability, &here.base));
        let owner = owner_of(&reader, stored);
        let owner = owner.as_ref();
        let request =
            CapabilityRequest { typed: &typed, entry: &entry, owner, liveness, listed_by: &listed_by };
        context.page(&dashboard::capability::page(stored, merged, &similar, request, &here), Caching::Record)
    });
    response.await
}
