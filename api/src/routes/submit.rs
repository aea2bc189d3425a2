//! `POST /sites`: submits a domain. `POST /sites/{domain}/recheck`: requests another visit of a known site.
//!
//! Nothing is fetched here: a seed is added to the queue, and the crawler visits it under the same rules as any other. A name that must not
//! be a site ([`manifest::SiteScope`]) is refused.

use axum::body::Bytes;
use axum::extract::Path;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Redirect};
use manifest::{Host, ManifestUrl, SiteName};
use serde::Deserialize;
use store::LINK_BYTES_MAX;
use url::Url;
use utoipa::ToSchema;

use crate::answers::site::site_of;
use crate::answers::submit::{RequestedBy, SubmissionAnswer};
use crate::owner::OwnerCredentials;
use crate::parameters::QueryPairs;
use crate::problem::Problem;
use crate::quota::RemainingQuota;
use crate::request::Request;
use crate::response::HttpResult;
use crate::state::App;

const BODY_BYTES_MAX: usize = 4 * 1024;
/// A submission: either a domain or a URL.
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

/// Submits a domain.
#[utoipa::path(
    post,
    path = "/sites",
    tag = "site owners",
    request_body = Submission,
    responses((status = 202, description = "It is in the queue", body = SubmissionAnswer,
        headers(("location" = String, description = "The record of the site")))),
    security((), ("owner" = [])),
)]
pub(crate) async fn submit(
    Request { app, client, context, query }: Request,
    credentials: OwnerCredentials,
    body: Bytes,
) -> HttpResult {
    query.only(&[])?;
    let (host, url) = read(&body)?;
    let site = host.site();
    let requested_by = requested_by(&app, &credentials, &site).await?;
    let (answer, quota) = app.submissions(client).submit(host, url, requested_by).await?;
    if context.wants_page() {
        return Ok(Redirect::to(&format!("/sites/{site}")).into_response());
    }
    accepted(answer, quota)
}

/// Requests a visit before the next one is due. The owner of the site, identified by its key, has a separate limit.
#[utoipa::path(
    post,
    path = "/sites/{domain}/recheck",
    tag = "site owners",
    params(("domain" = String, Path, description = "A domain name")),
    responses((status = 202, description = "It is visited soon", body = SubmissionAnswer,
        headers(("location" = String, description = "The record of the site")))),
    security((), ("owner" = [])),
)]
pub(crate) async fn recheck(
    Request { app, client, context, query }: Request,
    credentials: OwnerCredentials,
    Path(domain): Path<String>,
) -> HttpResult {
    query.only(&[])?;
    let site = site_of(&domain)?;
    let requested_by = requested_by(&app, &credentials, &site).await?;
    let (submissions, manifests) = (app.submissions(client), app.manifests(client));
    let (answer, quota) = submissions.recheck(manifests, site.clone(), requested_by).await?;
    if context.wants_page() {
        return Ok(Redirect::to(&format!("/sites/{site}")).into_response());
    }
    accepted(answer, quota)
}

async fn requested_by(
    app: &App,
    credentials: &OwnerCredentials,
    site: &SiteName,
) -> Result<RequestedBy, Problem> {
    if !credentials.are_given() {
        return Ok(RequestedBy::Anybody);
    }
    credentials.admit(&app.store, site).await?;
    Ok(RequestedBy::Owner)
}

/// Parses a submission. Rejects everything except exactly one domain or URL.
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
            if url.as_str().len() > LINK_BYTES_MAX {
                let detail = format!("the URL is longer than {LINK_BYTES_MAX} bytes");
                return Err(Problem::bad_request(detail).with_parameter("url"));
            }
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
        return manifest::budget::parse_within_budget(body, &manifest::budget::REQUEST).map_err(|error| {
            let error = crate::body::expected(&error.to_string());
            let detail = format!(
                "the body does not have the expected format ({error}): send {{\"domain\": \"skyhop.example\"}}"
            );
            Problem::bad_request(detail)
        });
    }
    let text = std::str::from_utf8(body)
        .map_err(|_| Problem::bad_request("the body is not UTF-8: send {\"domain\": \"skyhop.example\"}"))?;
    let fields = QueryPairs::parse(text.trim())?;
    fields.only(&["domain", "url"])?;
    let field = |name: &str| Ok::<_, Problem>(fields.one(name)?.map(ToOwned::to_owned));
    Ok(typed(Submission { domain: field("domain")?, url: field("url")? }))
}

/// The field for a domain may contain a URL copied from the browser. The URL of a document is submitted as a URL, the URL of a home page as
/// its host.
fn typed(submission: Submission) -> Submission {
    let address = submission.domain.as_deref().filter(|_| submission.url.is_none());
    let Some(address) = address.and_then(|typed| Url::parse(typed.trim()).ok()) else { return submission };
    let is_home = matches!(address.path(), "/" | "") && address.query().is_none();
    match (address.scheme(), is_home) {
        ("https", false) => Submission { domain: None, url: Some(address.into()) },
        ("https" | "http", _) => {
            Submission { domain: address.host_str().map(ToOwned::to_owned), ..submission }
        }
        _ => submission,
    }
}

pub(super) fn accepted(answer: SubmissionAnswer, quota: RemainingQuota) -> HttpResult {
    let location = HeaderValue::from_str(&answer.status_url).map_err(|error| Problem::internal(&error))?;
    let mut response = (StatusCode::ACCEPTED, axum::Json(answer)).into_response();
    response.headers_mut().insert(header::LOCATION, location);
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    quota.write_headers(response.headers_mut());
    Ok(response)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_takes_a_copied_address_for_a_domain() {
        let sent = |typed: &str| {
            let body =
                url::form_urlencoded::Serializer::new(String::new()).append_pair("domain", typed).finish();
            read(body.as_bytes()).map(|(host, url)| (host.to_string(), url.map(|url| url.to_string())))
        };
        let host = |host: &str, url: Option<&str>| (host.to_owned(), url.map(ToOwned::to_owned));
        assert_eq!(sent(" https://skyhop.example/ ").unwrap(), host("skyhop.example", None));
        assert_eq!(sent("http://skyhop.example/about").unwrap(), host("skyhop.example", None));
        assert_eq!(
            sent("https://skyhop.example/agent.json").unwrap(),
            host("skyhop.example", Some("https://skyhop.example/agent.json"))
        );
        for wrong in ["https://10.0.0.1/", "https://localhost/x", "ftp://skyhop.example/", "my site"] {
            assert_eq!(sent(wrong).unwrap_err().body().status, StatusCode::BAD_REQUEST, "{wrong}");
        }
        assert!(
            read(br#"{"domain": "https://skyhop.example/"}"#).is_err(),
            "JSON has a separate member for URLs"
        );
    }

    #[test]
    fn accepts_one_domain_or_one_url() {
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
        let of_length = |bytes: usize| {
            let begin = "https://skyhop.example/";
            let url = format!("{begin}{}", "x".repeat(bytes - begin.len()));
            read(format!(r#"{{"url": "{url}"}}"#).as_bytes()).is_ok()
        };
        assert!(of_length(LINK_BYTES_MAX) && !of_length(LINK_BYTES_MAX + 1));
        // Percent-encoding makes a short text long.
        let spaces = format!(r#"{{"url": "https://skyhop.example/{}"}}"#, "é".repeat(600));
        assert!(spaces.len() < LINK_BYTES_MAX && read(spaces.as_bytes()).is_err());
        assert_eq!(read(&[b' '; 5_000]).unwrap_err().body().status, StatusCode::PAYLOAD_TOO_LARGE);
    }
}
