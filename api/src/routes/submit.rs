//! `POST /sites`: a client asks for a domain to be visited. `POST /sites/{domain}/recheck`: its owner changed something.
//!
//! Nothing is fetched here: a seed is put into the queue, and the crawler visits it as politely as any other. A name that
//! may not be a site ([`SiteScope`]) is refused, whichever way it comes.

use axum::Extension;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use chrono::{DateTime, TimeDelta, Utc};
use manifest::{Host, ManifestUrl, SiteName, SiteScope};
use serde::{Deserialize, Serialize};
use store::{Seed, SeedOrigin};
use utoipa::ToSchema;

use super::site::{site_of, unknown};
use crate::answer::Asked;
use crate::app::App;
use crate::client::Client;
use crate::clock;
use crate::limits::{Exhausted, Left};
use crate::parameters::QueryPairs;
use crate::problem::Problem;

/// Largest body: a domain or an address.
const BODY_BYTES_MAX: usize = 4 * 1024;
/// Hosts that are asked for again, those first that were asked before: the visit of a site comes to fewer.
const HOSTS_MAX: u32 = 50;
/// Least time between a visit and the next that is asked for.
const RECHECK_EVERY: TimeDelta = TimeDelta::minutes(10);

/// What is submitted: one of the two.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Submission {
    /// A domain name, as in `skyhop.example`.
    #[schema(max_length = 253)]
    domain: Option<String>,
    /// An https address of a manifest.
    #[schema(max_length = 2048)]
    url: Option<String>,
}

/// What becomes of it.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SubmissionAnswer {
    #[schema(value_type = String)]
    site: SiteName,
    /// `added` where it was not known before, else `known`.
    outcome: &'static str,
    /// Where the story of the site can be followed.
    status_url: String,
    message: String,
}

/// Submits a domain.
#[utoipa::path(
    post,
    path = "/sites",
    tag = "site owners",
    request_body = Submission,
    responses((status = 202, description = "It is in the queue", body = SubmissionAnswer,
        headers(("location" = String, description = "The story of the site")))),
)]
pub(crate) async fn submit(
    State(app): State<App>,
    Extension(client): Extension<Client>,
    query: QueryPairs,
    body: Bytes,
) -> Result<Response, Problem> {
    query.only(&[])?;
    let (host, url) = read(&body)?;
    let (answer, left) = enqueue(&app, client, host, url).await?;
    accepted(answer, left)
}

/// Puts a host into the queue: the one way in, whichever door it comes through, under the same limits.
pub(crate) async fn enqueue(
    app: &App,
    client: Client,
    host: Host,
    url: Option<ManifestUrl>,
) -> Result<(SubmissionAnswer, Left), Problem> {
    let checked = match &url {
        Some(url) => SiteScope::Public.check_url(url).map_err(|error| (error, "url")),
        None => SiteScope::Public.check_host(&host).map_err(|error| (error, "domain")),
    };
    checked
        .map_err(|(error, parameter)| Problem::bad_request(error.to_string()).with_parameter(parameter))?;
    let site = host.site();
    let left = app.limits().submission(client).map_err(|exhausted| {
        exhausted.problem("this address has submitted as many domains as it may for now")
    })?;
    refuse_blocked(app, &site).await?;
    app.limits().visit(&site).map_err(|exhausted| just_asked(&site, exhausted))?;
    let has_url = url.is_some();
    let seed = Seed { host, url, rank: None, origin: SeedOrigin::Submitted, revisit_now: false };
    let added = app.store().seeds_add(&[seed], clock::now()).await?;
    if added.refused > 0 {
        let detail = format!("{site} has as many hosts or URLs that wait for a visit as one site may have");
        return Err(Problem::bad_request(detail).with_parameter(if has_url { "url" } else { "domain" }));
    }
    let (outcome, message) = if added.added > 0 {
        ("added", format!("{site} is in the queue and will be visited soon"))
    } else {
        ("known", format!("{site} was known already; its story says when it is visited next"))
    };
    Ok((answer(app, site, outcome, message), left))
}

/// Asks for a visit out of turn.
#[utoipa::path(
    post,
    path = "/sites/{domain}/recheck",
    tag = "site owners",
    params(("domain" = String, Path, description = "A domain name")),
    responses((status = 202, description = "It is visited soon", body = SubmissionAnswer,
        headers(("location" = String, description = "The story of the site")))),
)]
pub(crate) async fn recheck(
    State(app): State<App>,
    asked: Asked,
    Extension(client): Extension<Client>,
    Path(domain): Path<String>,
    query: QueryPairs,
) -> Result<Response, Problem> {
    query.only(&[])?;
    let site = site_of(&domain)?;
    let story = app.manifests(client).story(&site, 0, HOSTS_MAX).await?;
    let (story, _permit) = story.ok_or_else(|| unknown(&site))?.into_parts();
    refuse_blocked(&app, &site).await?;
    let now = clock::now();
    if let Some(wait_s) = wait_after(story.summary.last_visit_at, now) {
        let detail = format!("{site} was visited less than ten minutes ago; try again in {wait_s} s");
        return Err(Problem::too_many(detail, wait_s));
    }
    let left = app.limits().submission(client).map_err(|exhausted| {
        exhausted.problem("this address has asked for as many visits as it may for now")
    })?;
    app.limits().visit(&site).map_err(|exhausted| just_asked(&site, exhausted))?;
    let hosts = story.state.hosts.into_iter().filter(store::HostState::is_seeded).map(|host| host.host);
    let mut hosts: Vec<Host> = hosts.collect();
    if hosts.is_empty() {
        hosts.push(site.apex());
    }
    let again = |host| Seed { origin: SeedOrigin::Submitted, revisit_now: true, ..Seed::of_host(host) };
    let seeds: Vec<Seed> = hosts.into_iter().map(again).collect();
    app.store().seeds_add(&seeds, now).await?;
    if asked.wants_page() {
        return Ok(Redirect::to(&format!("/sites/{site}")).into_response());
    }
    let message = format!("{site} is visited as soon as its robots.txt and its own wishes allow");
    accepted(answer(&app, site, "known", message), left)
}

/// Reads what was submitted; anything but one domain or one address is refused.
fn read(body: &[u8]) -> Result<(Host, Option<ManifestUrl>), Problem> {
    if body.len() > BODY_BYTES_MAX {
        return Err(Problem::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            format!("the body is larger than {BODY_BYTES_MAX} bytes"),
        ));
    }
    let submission = submission(body)?;
    match (submission.domain.as_deref(), submission.url.as_deref()) {
        (Some(domain), None) => {
            let host = Host::parse(domain.trim());
            host.map(|host| (host, None))
                .map_err(|error| Problem::bad_request(error.to_string()).with_parameter("domain"))
        }
        (None, Some(url)) => {
            let url = ManifestUrl::parse(url.trim())
                .map_err(|error| Problem::bad_request(error.to_string()).with_parameter("url"))?;
            Ok((url.host(), Some(url)))
        }
        _ => Err(Problem::bad_request(
            "send either \"domain\" or \"url\", as in {\"domain\": \"skyhop.example\"}",
        )),
    }
}

/// JSON, or the fields of a form as browsers send them.
fn submission(body: &[u8]) -> Result<Submission, Problem> {
    if body.trim_ascii_start().starts_with(b"{") {
        return manifest::budget::parse_within_budget(body, &manifest::budget::BODY).map_err(|error| {
            let detail = format!(
                "the body is not what was expected ({error}): send {{\"domain\": \"skyhop.example\"}}"
            );
            Problem::bad_request(detail)
        });
    }
    let text = std::str::from_utf8(body)
        .map_err(|_| Problem::bad_request("the body is not UTF-8: send {\"domain\": \"skyhop.example\"}"))?;
    let fields = QueryPairs::parse(text.trim())?;
    fields.only(&["domain", "url"])?;
    let field = |name: &str| Ok::<_, Problem>(fields.one(name)?.map(ToOwned::to_owned));
    Ok(Submission { domain: field("domain")?, url: field("url")? })
}

async fn refuse_blocked(app: &App, site: &SiteName) -> Result<(), Problem> {
    if app.store().blocked_among(std::slice::from_ref(site)).await?.is_empty() {
        return Ok(());
    }
    Err(Problem::forbidden(format!("the owner of {site} opted out; it is not visited")))
}

fn just_asked(site: &SiteName, exhausted: Exhausted) -> Problem {
    exhausted.problem(&format!("a visit to {site} was asked for less than ten minutes ago"))
}

/// Seconds to wait after a visit that has just been.
fn wait_after(last_visit_at: Option<DateTime<Utc>>, now: DateTime<Utc>) -> Option<u32> {
    let wait = last_visit_at? + RECHECK_EVERY - now;
    u32::try_from(wait.num_seconds()).ok().filter(|seconds| *seconds > 0)
}

fn answer(app: &App, site: SiteName, outcome: &'static str, message: String) -> SubmissionAnswer {
    let status_url = format!("{}/sites/{site}", app.base_url());
    SubmissionAnswer { site, outcome, status_url, message }
}

fn accepted(answer: SubmissionAnswer, left: Left) -> Result<Response, Problem> {
    let location = HeaderValue::from_str(&answer.status_url).map_err(|error| Problem::internal(&error))?;
    let mut response = (StatusCode::ACCEPTED, axum::Json(answer)).into_response();
    response.headers_mut().insert(header::LOCATION, location);
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    left.tell(response.headers_mut());
    Ok(response)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_domain_or_one_address_is_read() {
        let domain = read(br#"{"domain": " WWW.Skyhop.example "}"#).unwrap();
        assert_eq!((domain.0.as_str(), domain.1), ("www.skyhop.example", None));
        assert_eq!(read(b"domain=skyhop.example").unwrap().0.as_str(), "skyhop.example");
        let url = read(br#"{"url": "https://skyhop.example/agent.json"}"#).unwrap();
        assert_eq!(url.1.unwrap().as_str(), "https://skyhop.example/agent.json");
        for wrong in [
            "",
            "[]",
            "{}",
            "\"skyhop.example\"",
            r#"{"domain": "10.0.0.1"}"#,
            r#"{"domain": "localhost"}"#,
            r#"{"url": "http://skyhop.example/"}"#,
            r#"{"url": "https://169.254.169.254/"}"#,
            r#"{"domain": "a.example", "url": "https://a.example/"}"#,
            r#"{"domain": "a.example", "now": true}"#,
            r#"{"domain": 7}"#,
            "site=skyhop.example",
        ] {
            assert_eq!(read(wrong.as_bytes()).unwrap_err().body().status, StatusCode::BAD_REQUEST, "{wrong}");
        }
        assert_eq!(read(&[b' '; 5_000]).unwrap_err().body().status, StatusCode::PAYLOAD_TOO_LARGE);
    }

    #[test]
    fn a_visit_just_made_is_waited_for() {
        let now = DateTime::UNIX_EPOCH + TimeDelta::days(1);
        assert_eq!(wait_after(None, now), None);
        assert_eq!(wait_after(Some(now - TimeDelta::minutes(4)), now), Some(360));
        assert_eq!(wait_after(Some(now - TimeDelta::minutes(10)), now), None);
    }
}
