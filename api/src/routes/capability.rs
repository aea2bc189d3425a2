//! `GET /capabilities/{id}`: one thing an agent can do, with everything that its declaration says.

use axum::extract::{Path, State};
use axum::response::Response;
use manifest::CapabilityId;
use serde_json::{Map, Value};
use store::StoredManifest;

use super::search::object_of;
use super::{TEXT_IS, record};
use crate::answer::{Asked, Caching};
use crate::app::App;
use crate::parameters::QueryPairs;
use crate::problem::Problem;
use crate::{clock, dashboard};

pub(super) async fn show(
    State(app): State<App>,
    asked: Asked,
    Path(id): Path<String>,
    query: QueryPairs,
) -> Result<Response, Problem> {
    query.only(&[])?;
    let id = parse_id(&id)?;
    let gone = || Problem::not_found(format!("there is no capability {id}; it may have left the index"));
    let stored = app.store().manifest_of_capability(&id).await?.ok_or_else(gone)?;
    let capability = record::capability_in(&stored, &id).ok_or_else(gone)?;
    if asked.wants_page() {
        let page = dashboard::capability::page(&stored, capability, clock::now());
        return asked.page(&page, Caching::Record);
    }
    asked.json(&answer(&stored, capability)?, Caching::Record)
}

fn parse_id(text: &str) -> Result<CapabilityId, Problem> {
    CapabilityId::parse(text).map_err(|_| {
        Problem::bad_request("the id of a capability is \"c\" and 16 characters, as in id of a result")
    })
}

/// The row of a search without what only a search knows, and every detail.
fn answer(stored: &StoredManifest, capability: &manifest::Capability) -> Result<Map<String, Value>, Problem> {
    let mut answer = object_of(&record::hit(stored, capability))?;
    answer.retain(|name, _| name != "score" && name != "snippet");
    answer.insert("title".to_owned(), capability.title.clone().into());
    answer.insert("tags".to_owned(), capability.tags.clone().into());
    answer.insert("deprecation_message".to_owned(), capability.deprecation_message.clone().into());
    answer.insert("text_is".to_owned(), TEXT_IS.into());
    answer.extend(object_of(&record::detail(stored, capability))?);
    Ok(answer)
}
