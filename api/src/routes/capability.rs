//! `GET /capabilities/{id}`: one thing an agent can do, with everything that its declaration says.

use axum::Extension;
use axum::extract::{Path, State};
use axum::response::Response;
use indexer::Hit;
use manifest::CapabilityId;
use serde_json::{Map, Value};
use store::StoredManifest;

use super::search::object_of;
use super::{TEXT_IS, record};
use crate::answer::{Asked, Caching};
use crate::app::App;
use crate::client::Client;
use crate::manifests::Permitted;
use crate::parameters::QueryPairs;
use crate::problem::Problem;
use crate::{clock, dashboard};

/// Similar capabilities shown on a page.
const ALIKE_MAX: usize = 5;

/// A capability with everything that its declaration says.
#[utoipa::path(
    get,
    path = "/capabilities/{id}",
    tag = "capabilities",
    params(("id" = inline(crate::openapi::schemas::CapabilityId), Path, description = "Id of a capability")),
    responses((status = 200, description = "The capability", body = crate::openapi::schemas::CapabilityRow)),
)]
pub(crate) async fn show(
    State(app): State<App>,
    asked: Asked,
    Extension(client): Extension<Client>,
    Path(id): Path<String>,
    query: QueryPairs,
) -> Result<Response, Problem> {
    query.only(&[])?;
    // The search comes first: a permit for the manifest is not held while it waits for a slot.
    let similar = if asked.wants_page() { alike(&app, client, &parse_id(&id)?).await } else { Vec::new() };
    let answered = find(&app, client, &id).await?.work(move |stored, capability| {
        if asked.wants_page() {
            let page = dashboard::capability::page(stored, capability, &similar, clock::now());
            return asked.page(&page, Caching::Record);
        }
        asked.json(&answer(stored, capability)?, Caching::Record)
    });
    answered.await
}

/// A capability with the manifest that declares it.
pub(super) struct FoundCapability {
    id: CapabilityId,
    stored: Permitted<StoredManifest>,
}

impl FoundCapability {
    /// Works on it on the blocking pool.
    pub(super) async fn work<R: Send + 'static>(
        self,
        work: impl FnOnce(&StoredManifest, &manifest::Capability) -> Result<R, Problem> + Send + 'static,
    ) -> Result<R, Problem> {
        let Self { id, stored } = self;
        let worked = stored.work(move |stored| {
            let capability = record::capability_in(&stored, &id).ok_or_else(|| gone(&id))?;
            work(&stored, capability)
        });
        worked.await?
    }
}

/// Others that are described like it; a page without them is better than none where there is no index.
async fn alike(app: &App, client: Client, id: &CapabilityId) -> Vec<Hit> {
    let wanted = id.clone();
    match app.index().run(client, move |searcher| searcher.similar(&wanted, ALIKE_MAX)).await {
        Ok(Ok(found)) => found.unwrap_or_default(),
        Ok(Err(error)) => {
            tracing::warn!(%error, "similar capabilities cannot be found");
            Vec::new()
        }
        Err(_) => Vec::new(),
    }
}

/// The capability of an id from a path.
pub(super) async fn find(app: &App, client: Client, id: &str) -> Result<FoundCapability, Problem> {
    let id = parse_id(id)?;
    let stored = app.manifests(client).of_capability(&id).await?.ok_or_else(|| gone(&id))?;
    Ok(FoundCapability { id, stored })
}

fn gone(id: &CapabilityId) -> Problem {
    Problem::not_found(format!("there is no capability {id}; it may have left the index"))
}

pub(super) fn parse_id(text: &str) -> Result<CapabilityId, Problem> {
    CapabilityId::parse(text).map_err(|_| {
        Problem::bad_request("the id of a capability is \"c\" and 16 characters, as in id of a result")
    })
}

/// The row of a search without what only a search knows, and every detail.
fn answer(stored: &StoredManifest, capability: &manifest::Capability) -> Result<Map<String, Value>, Problem> {
    let mut answer = object_of(&Hit::of(stored, capability))?;
    answer.retain(|name, _| name != "score" && name != "snippet");
    answer.insert("title".to_owned(), capability.title.clone().into());
    answer.insert("tags".to_owned(), capability.tags.clone().into());
    answer.insert("deprecation_message".to_owned(), capability.deprecation_message.clone().into());
    answer.insert("text_is".to_owned(), TEXT_IS.into());
    answer.extend(object_of(&record::detail(stored, capability))?);
    Ok(answer)
}
