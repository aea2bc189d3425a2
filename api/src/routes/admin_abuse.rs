//! Abuse, for operators: the reports of clients, and the suspension of sites.

use axum::body::Bytes;
use axum::extract::Path;
use manifest::SiteName;
use policy::AbuseReason;
use policy::abuse::{OBJECTION_CHARS_MAX, PLACE_CHARS_MAX, check_places};
use serde::{Deserialize, Serialize};
use store::{
    DatedText, ReportFilter, ReportLine, ReportedSite, SuspendedSite, SuspensionOutcome, SuspensionRecord,
};
use utoipa::ToSchema;

use super::admin::{end_suppression, suppress};
use crate::admin::Admin;
use crate::answers::site::site_of;
use crate::clock;
use crate::parameters::QueryPairs;
use crate::problem::Problem;
use crate::request::Request;
use crate::response::{Caching, HttpResult};
use crate::text::one_line;

const NOTE_CHARS_MAX: usize = 500;
const LIMIT_DEFAULT: u32 = 50;
const LIMIT_MAX: u32 = 500;
/// Maximum number of sites that are listed with the number of their reports.
const SITES_MAX: u32 = 50;

/// Why a site is suspended.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SuspendRequest {
    #[schema(inline, value_type = crate::openapi::schemas::AbuseReasonWord)]
    reason: AbuseReason,
    /// Shown with the reason; required with `other`.
    #[serde(default)]
    #[schema(max_length = 500)]
    note: String,
    /// The documents and capabilities that it is about, as URLs and ids, at most 20; shown to the owner of the site.
    #[serde(default)]
    #[schema(max_items = 20)]
    places: Vec<String>,
}

/// The answer to the objection of an owner.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ObjectionReply {
    #[schema(max_length = 1000)]
    text: String,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SuspendAnswer {
    #[schema(value_type = String)]
    site: SiteName,
    suspended: bool,
    /// False if the site was already in this state.
    changed: bool,
    manifests_removed: u32,
    documents_removed: u32,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ReportsPage {
    /// At most 50 sites, the one with the most reports first.
    #[schema(value_type = Vec<crate::openapi::reports::ReportedSite>)]
    sites: Vec<ReportedSite>,
    /// The newest first.
    #[schema(value_type = Vec<crate::openapi::reports::ReportLine>)]
    reports: Vec<ReportLine>,
    /// At most 50 suspended sites whose owners object, those without an answer first; only on the first page without `id`.
    #[schema(value_type = Vec<crate::openapi::reports::ObjectionLine>)]
    objections: Vec<SuspendedSite>,
    /// `before` of the next page; null on the last one.
    next_before: Option<i64>,
    text_is: &'static str,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ReportsDismissed {
    dismissed: u64,
}

/// Suspends a site for abuse, and purges its fetched data.
#[utoipa::path(
    post,
    path = "/admin/sites/{domain}/suspend",
    tag = "admin",
    params(("domain" = String, Path, description = "A domain name")),
    request_body = SuspendRequest,
    responses((status = 200, description = "It is suspended", body = SuspendAnswer)),
    security(("admin" = [])),
)]
pub(crate) async fn suspend(
    Request { app, context, query, .. }: Request,
    admin: Admin,
    Path(domain): Path<String>,
    body: Bytes,
) -> HttpResult {
    query.only(&[])?;
    let site = site_of(&domain)?;
    let suspension = suspension(&body)?;
    let outcome = app.store.site_suspend(&site, &suspension).await?;
    suppress(&app, &site).await;
    tracing::info!(admin.name = admin.name, site.name = %site, reason = %suspension.reason, "site suspended");
    let (changed, manifests_removed, documents_removed) = match outcome {
        SuspensionOutcome::AlreadySuspended => (false, 0, 0),
        SuspensionOutcome::Suspended { manifests_removed, documents_removed } => {
            (true, manifests_removed, documents_removed)
        }
    };
    let answer = SuspendAnswer { site, suspended: true, changed, manifests_removed, documents_removed };
    context.json(&answer, Caching::Never)
}

/// Lifts a suspension; the site is visited soon, unless its owner opted out.
#[utoipa::path(
    post,
    path = "/admin/sites/{domain}/unsuspend",
    tag = "admin",
    params(("domain" = String, Path, description = "A domain name")),
    responses((status = 200, description = "It is not suspended", body = SuspendAnswer)),
    security(("admin" = [])),
)]
pub(crate) async fn unsuspend(
    Request { app, context, query, .. }: Request,
    admin: Admin,
    Path(domain): Path<String>,
) -> HttpResult {
    query.only(&[])?;
    let site = site_of(&domain)?;
    let changed = app.store.site_unsuspend(&site, clock::now()).await?;
    end_suppression(&app, &site).await?;
    tracing::info!(admin.name = admin.name, site.name = %site, "suspension lifted");
    let answer =
        SuspendAnswer { site, suspended: false, changed, manifests_removed: 0, documents_removed: 0 };
    context.json(&answer, Caching::Never)
}

/// Answers the objection of an owner; the owner sees the answer.
#[utoipa::path(
    post,
    path = "/admin/sites/{domain}/answer",
    tag = "admin",
    params(("domain" = String, Path, description = "A domain name")),
    request_body = ObjectionReply,
    responses((status = 200, description = "The suspended site with both texts", body = crate::openapi::reports::ObjectionLine)),
    security(("admin" = [])),
)]
pub(crate) async fn answer(
    Request { app, context, query, .. }: Request,
    admin: Admin,
    Path(domain): Path<String>,
    body: Bytes,
) -> HttpResult {
    query.only(&[])?;
    let site = site_of(&domain)?;
    let text = objection_text(&body)?;
    let unknown =
        || Problem::not_found(format!("{site} is not suspended, or its owner has sent no objection"));
    let found = app.store.suspended_site_find(&site).await?.ok_or_else(unknown)?;
    let now = clock::now();
    if !app.store.objection_answer(&site, &text, now).await? {
        return Err(unknown());
    }
    tracing::info!(admin.name = admin.name, site.name = %site, "objection answered");
    let answer = Some(DatedText { text, at: now });
    context.json(&SuspendedSite { answer, ..found }, Caching::Never)
}

/// The text of an objection or of the answer to one.
pub(super) fn objection_text(body: &[u8]) -> Result<String, Problem> {
    let request: ObjectionReply = manifest::budget::parse_within_budget(body, &manifest::budget::REQUEST)
        .map_err(|error| {
            let detail =
                format!("the body does not have the expected format ({error}): send {{\"text\": \"…\"}}");
            Problem::bad_request(detail)
        })?;
    let is_long = request.text.chars().count() > OBJECTION_CHARS_MAX;
    let text = one_line(&request.text, OBJECTION_CHARS_MAX);
    if is_long || text.is_empty() {
        let detail = format!("\"text\" has to have 1 to {OBJECTION_CHARS_MAX} characters");
        return Err(Problem::bad_request(detail).with_parameter("text"));
    }
    Ok(text)
}

fn suspension(body: &[u8]) -> Result<SuspensionRecord, Problem> {
    let request: SuspendRequest = manifest::budget::parse_within_budget(body, &manifest::budget::REQUEST)
        .map_err(|error| {
            Problem::bad_request(format!(
                "the body does not have the expected format ({error}): send {{\"reason\": \"spam\", \"note\": \"…\"}}"
            ))
        })?;
    let note = one_line(&request.note, NOTE_CHARS_MAX);
    if request.reason.needs_explanation() && note.is_empty() {
        let detail = format!("the reason \"{}\" requires a \"note\" that explains it", request.reason);
        return Err(Problem::bad_request(detail).with_parameter("note"));
    }
    let places: Vec<String> =
        request.places.iter().map(|place| one_line(place, PLACE_CHARS_MAX + 1)).collect();
    check_places(&places).map_err(|detail| Problem::bad_request(detail).with_parameter("places"))?;
    Ok(SuspensionRecord { reason: request.reason, note, places, at: clock::now() })
}

/// What clients report, the newest first, with the number of reports of each site.
#[utoipa::path(
    get,
    path = "/admin/reports",
    tag = "admin",
    params(
        ("id" = Option<i64>, Query, description = "One report"),
        ("site" = Option<String>, Query, description = "Only about this site", max_length = 253),
        ("before" = Option<i64>, Query, description = "next_before of the previous page"),
        ("limit" = Option<u32>, Query, description = "Maximum number of results; the default is 50", minimum = 1, maximum = 500),
    ),
    responses((status = 200, description = "A page of reports", body = ReportsPage)),
    security(("admin" = [])),
)]
pub(crate) async fn reports(Request { app, context, query, .. }: Request, admin: Admin) -> HttpResult {
    query.only(&["id", "site", "before", "limit"])?;
    let max = query.limit(LIMIT_DEFAULT, LIMIT_MAX)?;
    let before = query.one_parsed("before")?;
    let filter = filter(&query)?;
    let reports = app.store.reports_page(&filter, before, max).await?;
    tracing::debug!(admin.name = admin.name, "reports read");
    let is_full = u32::try_from(reports.len()).is_ok_and(|found| found == max);
    let next_before = reports.last().filter(|_| is_full).map(|line| line.id);
    let sites = app.store.reports_by_site(SITES_MAX).await?;
    let objections = match (before, &filter) {
        (None, ReportFilter { id: None, site }) => {
            let mut objections = app.store.objections_list(SITES_MAX).await?;
            objections.retain(|of| site.as_ref().is_none_or(|site| *site == of.site));
            objections
        }
        _ => Vec::new(),
    };
    let text_is = "what clients and owners sent, untrusted";
    context.json(&ReportsPage { sites, reports, objections, next_before, text_is }, Caching::Never)
}

/// Dismisses reports: deletes those that need no action, or on which the operator acted.
#[utoipa::path(
    delete,
    path = "/admin/reports",
    tag = "admin",
    params(
        ("id" = Option<i64>, Query, description = "One report"),
        ("site" = Option<String>, Query, description = "About this site", max_length = 253),
        ("all" = Option<bool>, Query, description = "Everything: true"),
    ),
    responses((status = 200, description = "How many reports there were", body = ReportsDismissed)),
    security(("admin" = [])),
)]
pub(crate) async fn dismiss(Request { app, context, query, .. }: Request, admin: Admin) -> HttpResult {
    query.only(&["id", "site", "all"])?;
    let filter = filter(&query)?;
    let is_everything = query.one_parsed::<bool>("all")? == Some(true);
    if (filter == ReportFilter::default()) != is_everything {
        return Err(Problem::bad_request("specify what to dismiss: id, site or both, or only all=true"));
    }
    let dismissed = app.store.reports_dismiss(&filter).await?;
    tracing::info!(admin.name = admin.name, dismissed, filter = ?filter, "reports dismissed");
    context.json(&ReportsDismissed { dismissed }, Caching::Never)
}

fn filter(query: &QueryPairs) -> Result<ReportFilter, Problem> {
    let site: Option<SiteName> = query.one("site")?.map(site_of).transpose()?;
    Ok(ReportFilter { id: query.one_parsed("id")?, site })
}
