//! Feedback from `POST /feedback`, for operators: list it, and remove wrong feedback.

use manifest::{CapabilityId, SiteName};
use serde::Serialize;
use store::{FeedbackFilter, FeedbackLine};
use utoipa::ToSchema;

use super::feedback::CLIENT_BYTES;
use crate::admin::Admin;
use crate::answers::capability::parse_id;
use crate::answers::site::site_of;
use crate::parameters::QueryPairs;
use crate::problem::Problem;
use crate::request::Request;
use crate::response::{Caching, HttpResult};

const FILTERS: [&str; 4] = ["id", "site", "client", "capability"];
/// Hexadecimal digits of a client in a line.
const CLIENT_DIGITS: usize = 2 * CLIENT_BYTES;
const LIMIT_DEFAULT: u32 = 50;
const LIMIT_MAX: u32 = 500;

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FeedbackPage {
    /// The newest first.
    #[schema(value_type = Vec<crate::openapi::schemas::FeedbackLine>)]
    feedback: Vec<FeedbackLine>,
    /// `before` of the next page; null on the last one.
    next_before: Option<i64>,
    text_is: &'static str,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FeedbackRemoved {
    removed: u64,
}

/// What people chose, the newest first.
#[utoipa::path(
    get,
    path = "/admin/feedback",
    tag = "admin",
    params(
        ("id" = Option<i64>, Query, description = "One line"),
        ("site" = Option<String>, Query, description = "Only about this site", max_length = 253),
        ("client" = Option<String>, Query, description = "Only from this client of one day", max_length = 64),
        ("capability" = Option<String>, Query, description = "Only about this capability", max_length = 32),
        ("before" = Option<i64>, Query, description = "next_before of the previous page"),
        ("limit" = Option<u32>, Query, description = "Maximum number of results; the default is 50", minimum = 1, maximum = 500),
    ),
    responses((status = 200, description = "A page of lines", body = FeedbackPage)),
    security(("admin" = [])),
)]
pub(crate) async fn list(Request { app, context, query, .. }: Request, admin: Admin) -> HttpResult {
    let known: Vec<&str> = FILTERS.into_iter().chain(["before", "limit"]).collect();
    query.only(&known)?;
    let max = query.limit(LIMIT_DEFAULT, LIMIT_MAX)?;
    let before = query.one_parsed("before")?;
    let feedback = app.store.feedback_page(&filter(&query)?, before, max).await?;
    tracing::debug!(admin.name = admin.name, "feedback read");
    let is_full = u32::try_from(feedback.len()).is_ok_and(|found| found == max);
    let next_before = feedback.last().filter(|_| is_full).map(|line| line.id);
    let text_is = "what clients sent, untrusted";
    context.json(&FeedbackPage { feedback, next_before, text_is }, Caching::Never)
}

/// Removes feedback.
#[utoipa::path(
    delete,
    path = "/admin/feedback",
    tag = "admin",
    params(
        ("id" = Option<i64>, Query, description = "One line"),
        ("site" = Option<String>, Query, description = "About this site", max_length = 253),
        ("client" = Option<String>, Query, description = "Of this client of one day", max_length = 64),
        ("capability" = Option<String>, Query, description = "About this capability", max_length = 32),
        ("all" = Option<bool>, Query, description = "Everything: true"),
    ),
    responses((status = 200, description = "How many lines there were", body = FeedbackRemoved)),
    security(("admin" = [])),
)]
pub(crate) async fn remove(Request { app, context, query, .. }: Request, admin: Admin) -> HttpResult {
    let known: Vec<&str> = FILTERS.into_iter().chain(["all"]).collect();
    query.only(&known)?;
    let filter = filter(&query)?;
    let is_everything = query.one_parsed::<bool>("all")? == Some(true);
    if (filter == FeedbackFilter::default()) != is_everything {
        return Err(Problem::bad_request(
            "specify what to remove: one or more of id, site, client and capability, or only all=true",
        ));
    }
    let removed = app.store.feedback_remove(&filter).await?;
    tracing::info!(admin.name = admin.name, removed, filter = ?filter, "feedback removed");
    context.json(&FeedbackRemoved { removed }, Caching::Never)
}

fn filter(query: &QueryPairs) -> Result<FeedbackFilter, Problem> {
    let site: Option<SiteName> = query.one("site")?.map(site_of).transpose()?;
    let capability: Option<CapabilityId> = query
        .one("capability")?
        .map(parse_id)
        .transpose()
        .map_err(|problem| problem.with_parameter("capability"))?;
    let client = query.one("client")?;
    if client.is_some_and(|client| !is_client(client)) {
        let detail = format!("\"client\" is {CLIENT_DIGITS} hexadecimal digits, as in the lines of feedback");
        return Err(Problem::bad_request(detail).with_parameter("client"));
    }
    Ok(FeedbackFilter { id: query.one_parsed("id")?, site, client: client.map(str::to_owned), capability })
}

/// Whether a text may be the hash of a client. Checked because PostgreSQL rejects texts with NUL.
fn is_client(text: &str) -> bool {
    text.len() == CLIENT_DIGITS && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}
