//! `GET /capabilities/{id}`: one thing an agent can do, with everything that its declaration says.

use axum::extract::Path;

use crate::answers::TEXT_IS;
use crate::answers::capability::{details, find, parse_id, row, similar};
use crate::request::Request;
use crate::response::{Caching, HttpResult};
use crate::{clock, dashboard};

/// Similar capabilities shown on a page.
const SIMILAR_MAX: usize = 5;

/// A capability with everything that its declarations say.
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
    query.only(&[])?;
    let id = parse_id(&id)?;
    if context.wants_page() {
        // The search comes first, so that no permit for a manifest is held while it waits. The page works without it.
        let similar = similar(&app.store, &app.index, client, &id, SIMILAR_MAX)
            .await
            .ok()
            .flatten()
            .unwrap_or_default();
        let found = find(app.manifests(client), id).await?;
        let response = found.work(move |stored, merged| {
            let page = dashboard::capability::page(stored, merged, &similar, clock::now());
            context.page(&page, Caching::Record)
        });
        return response.await;
    }
    let found = find(app.manifests(client), id).await?;
    let response = found.work(move |stored, merged| {
        let capability = &merged.capability;
        let mut answer = row(stored, merged)?;
        answer.insert("title".to_owned(), capability.title.clone().into());
        answer.insert("tags".to_owned(), capability.tags.clone().into());
        answer.insert("deprecation_message".to_owned(), capability.deprecation_message.clone().into());
        answer.insert("text_is".to_owned(), TEXT_IS.into());
        answer.extend(details(stored, merged)?);
        context.json(&answer, Caching::Record)
    });
    response.await
}
