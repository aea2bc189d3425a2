//! `/sites/{domain}/claim`: instructions for proving control of a domain, and whether the proof was found.
//!
//! Nothing is fetched here: the crawler looks for the token in a visit, under the same rules as for all requests.

use axum::extract::Path;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Redirect};

use super::submit::accepted;
use crate::answers::claim::{self, ClaimAnswer, ClaimIssued};
use crate::answers::site::site_of;
use crate::answers::submit::SubmissionAnswer;
use crate::dashboard;
use crate::request::Request;
use crate::response::{Caching, HttpResult, RequestContext};

/// A new owner's key, with the token that proves it.
#[utoipa::path(
    post,
    path = "/sites/{domain}/claim",
    tag = "site owners",
    params(("domain" = String, Path, description = "A domain name")),
    responses((status = 200, description = "The key, and the two places for its token", body = ClaimIssued)),
)]
pub(crate) async fn issue(
    Request { app, client, context, query }: Request,
    Path(domain): Path<String>,
) -> HttpResult {
    query.only(&[])?;
    let site = site_of(&domain)?;
    app.submissions(client).may_be_claimed(&site).await?;
    let issued = claim::issue(&app.store, &app.base_url(), site).await?;
    if context.wants_page() {
        let here = app.page_context();
        let render = move |context: &RequestContext| {
            context.page(&dashboard::claim::issued(&issued, &here), Caching::Never)
        };
        return app.rendered(client, &context, render).await;
    }
    let mut response = axum::Json(issued).into_response();
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

/// Requests a visit that looks for the token.
#[utoipa::path(
    post,
    path = "/sites/{domain}/claim/check",
    tag = "site owners",
    params(("domain" = String, Path, description = "A domain name")),
    responses((status = 202, description = "Visits look for the token", body = SubmissionAnswer,
        headers(("location" = String, description = "The state of the claim")))),
)]
pub(crate) async fn check(
    Request { app, client, context, query }: Request,
    Path(domain): Path<String>,
) -> HttpResult {
    query.only(&[])?;
    let (answer, quota) = app.submissions(client).check_claim(site_of(&domain)?).await?;
    if context.wants_page() {
        return Ok(Redirect::to(&format!("/sites/{}/claim", answer.site)).into_response());
    }
    accepted(answer, quota)
}

/// Who owns the site, and what the last check found.
#[utoipa::path(
    get,
    path = "/sites/{domain}/claim",
    tag = "site owners",
    params(("domain" = String, Path, description = "A domain name")),
    responses((status = 200, description = "The owner, if one has proved control of the domain", body = ClaimAnswer)),
)]
pub(crate) async fn show(
    Request { app, client, context, query }: Request,
    Path(domain): Path<String>,
) -> HttpResult {
    query.known(&context, &[])?;
    let answer: ClaimAnswer = claim::state(&app.store, site_of(&domain)?).await?;
    if context.wants_page() {
        let here = app.page_context();
        let render = move |context: &RequestContext| {
            context.page(&dashboard::claim::state(&answer, &here), Caching::Never)
        };
        return app.rendered(client, &context, render).await;
    }
    context.json(&answer, Caching::Never)
}
