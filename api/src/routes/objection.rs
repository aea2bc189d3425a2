//! `/sites/{domain}/objection`: why a site is suspended, for its owner, who may object, and the answer of the operator.
//!
//! A suspended site is not visited, so the objection is also the request for a new check after a change: the operator lifts the suspension,
//! and the site is due at once.

use axum::body::Bytes;
use axum::extract::Path;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::IntoResponse;
use manifest::SiteName;
use serde::Serialize;
use store::{DatedText, SuspendedSite};
use utoipa::ToSchema;

use super::admin_abuse::{ObjectionReply, objection_text};
use crate::answers::site::{Suspension, site_of};
use crate::clock;
use crate::owner::OwnerCredentials;
use crate::problem::Problem;
use crate::request::Request;
use crate::response::{Caching, HttpResult};
use crate::state::App;

/// Maximum size of a body: the longest text, with escapes.
const BODY_BYTES_MAX: usize = 16 * 1024;

/// Why the site is suspended, what its owner answered, and the answer of the operator.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ObjectionAnswer {
    #[schema(value_type = String)]
    site: SiteName,
    suspended: Suspension,
    /// The documents and capabilities that the operator named: URLs and ids.
    places: Vec<String>,
    /// The objection of the owner; null until there is one.
    #[schema(value_type = Option<crate::openapi::reports::DatedText>)]
    objection: Option<DatedText>,
    /// The answer of the operator to this objection; null until there is one.
    #[schema(value_type = Option<crate::openapi::reports::DatedText>)]
    answer: Option<DatedText>,
}

impl ObjectionAnswer {
    fn of(found: SuspendedSite, contact: Option<String>) -> Self {
        let SuspendedSite { site, suspension, objection, answer } = found;
        let places = suspension.places.clone();
        Self { site, suspended: Suspension::of(suspension, contact), places, objection, answer }
    }
}

/// Why the site is suspended, and the answer of the operator to an objection.
#[utoipa::path(
    get,
    path = "/sites/{domain}/objection",
    tag = "site owners",
    params(("domain" = String, Path, description = "A domain name")),
    responses((status = 200, description = "The suspension and the objection", body = ObjectionAnswer)),
    security(("owner" = [])),
)]
pub(crate) async fn show(
    Request { app, context, query, .. }: Request,
    credentials: OwnerCredentials,
    Path(domain): Path<String>,
) -> HttpResult {
    query.only(&[])?;
    let site = site_of(&domain)?;
    credentials.admit(&app.store, &site).await?;
    context.json(&suspended(&app, &site).await?, Caching::Never)
}

/// Objects to the suspension, or asks for a new check after a change; replaces an earlier objection and its answer.
#[utoipa::path(
    post,
    path = "/sites/{domain}/objection",
    tag = "site owners",
    params(("domain" = String, Path, description = "A domain name")),
    request_body = ObjectionReply,
    responses((status = 202, description = "The operator sees it", body = ObjectionAnswer)),
    security(("owner" = [])),
)]
pub(crate) async fn send(
    Request { app, query, .. }: Request,
    credentials: OwnerCredentials,
    Path(domain): Path<String>,
    body: Bytes,
) -> HttpResult {
    query.only(&[])?;
    let site = site_of(&domain)?;
    if body.len() > BODY_BYTES_MAX {
        let detail = format!("the body is larger than {BODY_BYTES_MAX} bytes");
        return Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, detail));
    }
    credentials.admit(&app.store, &site).await?;
    let text = objection_text(&body)?;
    let quota = app.limits.owner_visit(&site).map_err(|exhausted| {
        exhausted.problem(&format!("the key of the owner of {site} has sent too many requests"))
    })?;
    let before = suspended(&app, &site).await?;
    let now = clock::now();
    if !app.store.objection_save(&site, &text, now).await? {
        return Err(not_suspended(&site));
    }
    tracing::info!(site.name = %site, "the owner objects to the suspension");
    let answer = ObjectionAnswer { objection: Some(DatedText { text, at: now }), answer: None, ..before };
    let mut response = (StatusCode::ACCEPTED, axum::Json(answer)).into_response();
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    quota.write_headers(response.headers_mut());
    Ok(response)
}

async fn suspended(app: &App, site: &SiteName) -> Result<ObjectionAnswer, Problem> {
    let found = app.store.suspended_site_find(site).await?.ok_or_else(|| not_suspended(site))?;
    Ok(ObjectionAnswer::of(found, app.config.contact.clone()))
}

fn not_suspended(site: &SiteName) -> Problem {
    Problem::not_found(format!("{site} is not suspended; POST /sites/{site}/recheck requests a visit"))
}
