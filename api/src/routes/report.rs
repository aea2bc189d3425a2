//! `POST /reports`: a client reports a site or a capability to the operator, as JSON or with the form of a page.
//!
//! A report alone changes nothing: an operator reads it and decides. Nothing about the client is stored; its reports are counted in memory,
//! and each site has a limit over all processes.

use axum::body::Bytes;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::IntoResponse;
use manifest::{CapabilityId, SiteName};
use policy::AbuseReason;
use serde::{Deserialize, Serialize};
use store::{Report, ReportCap, ReportCaps, ReportOutcome};
use url::form_urlencoded;
use utoipa::ToSchema;

use crate::answers::capability::{find, parse_id};
use crate::answers::site::{site_of, unknown};
use crate::client::Client;
use crate::clock;
use crate::dashboard;
use crate::problem::Problem;
use crate::request::Request;
use crate::response::{Caching, HttpResult, RequestContext};
use crate::state::App;
use crate::text::one_line;

/// Maximum size of a body: the longest text in form encoding has three characters per byte, and up to four bytes per character.
const BODY_BYTES_MAX: usize = 16 * 1024;
/// Maximum length of the text: a few paragraphs that an operator reads in a minute.
const TEXT_CHARS_MAX: usize = 1_000;
/// After a hundred reports, an operator knows about a site. All reports together take a few megabytes.
const CAPS: ReportCaps = ReportCaps { of_site: 100, of_all: 10_000 };
/// Fields of the form.
const FIELDS: [&str; 4] = ["site", "capability", "reason", "text"];

/// A report about a site or about a capability.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ReportRequest {
    /// A domain name, as in `skyhop.example`; `site` or `capability` is required.
    #[schema(max_length = 253)]
    site: Option<String>,
    /// The id of a capability.
    #[schema(max_length = 32)]
    capability: Option<String>,
    /// `spam`, `impersonation`, `malware`, `illegal`, `privacy` or `other`.
    reason: String,
    /// What is wrong; required with the reason `other`.
    #[schema(max_length = 1000)]
    text: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ReportAnswer {
    #[schema(value_type = String)]
    site: SiteName,
    /// False if the same report is already stored.
    kept: bool,
}

/// The subject of a report.
#[derive(Debug, PartialEq)]
enum Subject {
    Site(SiteName),
    Capability(CapabilityId),
}

/// Reports a site or a capability to the operator.
#[utoipa::path(
    post,
    path = "/reports",
    tag = "search",
    request_body = ReportRequest,
    responses((status = 202, description = "The report was accepted", body = ReportAnswer)),
)]
pub(crate) async fn submit(Request { app, client, context, query }: Request, body: Bytes) -> HttpResult {
    query.only(&[])?;
    let (subject, reason, note) = read(&body)?;
    let quota = app
        .limits
        .report(client)
        .map_err(|exhausted| exhausted.problem("this address has sent too many reports"))?;
    let (site, capability) = subject_of(&app, client, subject).await?;
    let report = Report { at: clock::now(), site, capability, reason, note };
    let kept = match app.store.report_save(&report, CAPS).await? {
        ReportOutcome::Saved => true,
        ReportOutcome::Duplicate => false,
        ReportOutcome::Full(cap) => return Err(full(cap, &report.site)),
    };
    let answer = ReportAnswer { site: report.site, kept };
    let mut response = if context.wants_page() {
        let render = move |context: &RequestContext| {
            context.page(&dashboard::reported::page(&answer.site, answer.kept), Caching::Never)
        };
        app.rendered(client, &context, render).await?
    } else {
        axum::Json(answer).into_response()
    };
    *response.status_mut() = StatusCode::ACCEPTED;
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    quota.write_headers(response.headers_mut());
    Ok(response)
}

fn read(body: &[u8]) -> Result<(Subject, AbuseReason, String), Problem> {
    if body.len() > BODY_BYTES_MAX {
        let detail = format!("the body is larger than {BODY_BYTES_MAX} bytes");
        return Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, detail));
    }
    let request = request(body)?;
    let subject = match (request.site.as_deref(), request.capability.as_deref()) {
        (Some(site), None) => {
            Subject::Site(site_of(site.trim()).map_err(|problem| problem.with_parameter("site"))?)
        }
        (None, Some(id)) => {
            Subject::Capability(parse_id(id).map_err(|problem| problem.with_parameter("capability"))?)
        }
        _ => return Err(Problem::bad_request("send either \"site\" or \"capability\"")),
    };
    let is_missing = request.reason.trim().is_empty();
    let known: Vec<&str> = AbuseReason::ALL.iter().map(|reason| reason.as_str()).collect();
    let reason: AbuseReason = request.reason.parse().map_err(|_| {
        let detail = if is_missing {
            "\"reason\" is missing"
        } else {
            "the value of \"reason\" is not a known reason"
        };
        Problem::bad_request(detail).with_parameter("reason").with_known(&known)
    })?;
    let text = request.text.unwrap_or_default();
    if text.chars().count() > TEXT_CHARS_MAX {
        let detail = format!("\"text\" is longer than {TEXT_CHARS_MAX} characters");
        return Err(Problem::bad_request(detail).with_parameter("text"));
    }
    let note = one_line(&text, TEXT_CHARS_MAX);
    if reason.needs_explanation() && note.is_empty() {
        let detail = format!("the reason \"{reason}\" requires a \"text\" that describes the problem");
        return Err(Problem::bad_request(detail).with_parameter("text"));
    }
    Ok((subject, reason, note))
}

/// JSON, or the fields of a form as browsers send them. Empty fields count as not given.
fn request(body: &[u8]) -> Result<ReportRequest, Problem> {
    if body.trim_ascii_start().starts_with(b"{") {
        return manifest::budget::parse_within_budget(body, &manifest::budget::REQUEST).map_err(|error| {
            let error = crate::body::expected(&error.to_string());
            let detail = format!(
                "the body does not have the expected format ({error}): send {{\"site\": \"skyhop.example\", \"reason\": \"spam\"}}"
            );
            Problem::bad_request(detail)
        });
    }
    let mut request = ReportRequest::default();
    for (name, value) in form_urlencoded::parse(body).filter(|(_, value)| !value.is_empty()) {
        let value = value.into_owned();
        match &*name {
            "site" => request.site = Some(value),
            "capability" => request.capability = Some(value),
            "reason" => request.reason = value,
            "text" => request.text = Some(value),
            _ => {
                let detail = format!("unknown field \"{}\"", one_line(&name, 50));
                return Err(Problem::bad_request(detail).with_known(FIELDS));
            }
        }
    }
    Ok(request)
}

/// The site and the capability that a report is about; both have to be known and shown here.
async fn subject_of(
    app: &App,
    client: Client,
    subject: Subject,
) -> Result<(SiteName, Option<CapabilityId>), Problem> {
    let (site, capability) = match subject {
        Subject::Site(site) => (site, None),
        Subject::Capability(id) => {
            let found = find(app.manifests(client), id).await?;
            found
                .work(|stored, merged| Ok((stored.manifest.url.site(), Some(merged.capability.id.clone()))))
                .await?
        }
    };
    if app.store.site_summary(&site).await?.is_none() {
        return Err(unknown(&site));
    }
    if !app.store.blocked_among(std::slice::from_ref(&site)).await?.is_empty() {
        return Err(Problem::forbidden(format!(
            "{site} is blocked or suspended, so it has no entries that could be reported"
        )));
    }
    Ok((site, capability))
}

fn full(cap: ReportCap, site: &SiteName) -> Problem {
    match cap {
        ReportCap::Site => {
            let detail = format!("{} reports about {site} are stored; no more are accepted", CAPS.of_site);
            Problem::forbidden(detail)
        }
        ReportCap::All => Problem::unavailable(
            "no more reports are accepted until the operator dismisses some of the stored ones",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_json_and_forms() {
        let site = Subject::Site(SiteName::parse("skyhop.example").unwrap());
        let (subject, reason, note) =
            read(br#"{"site": " skyhop.example ", "reason": "spam", "text": "copies\n of one text"}"#)
                .unwrap();
        assert_eq!((subject, reason, note.as_str()), (site, AbuseReason::Spam, "copies of one text"));
        let id = "caaaaaaaaaaaaaaaa";
        let form = format!("capability={id}&site=&reason=other&text=d%C3%A9j%C3%A0+vu");
        let (subject, reason, note) = read(form.as_bytes()).unwrap();
        assert_eq!(subject, Subject::Capability(CapabilityId::parse(id).unwrap()));
        assert_eq!((reason, note.as_str()), (AbuseReason::Other, "déjà vu"));
        let longest = format!("site=a.example&reason=spam&text={}", "%F0%9F%9B%AB".repeat(TEXT_CHARS_MAX));
        assert_eq!(read(longest.as_bytes()).unwrap().2.chars().count(), TEXT_CHARS_MAX);
        let long = "x".repeat(TEXT_CHARS_MAX + 1);
        for (wrong, word) in [
            (String::new(), "either"),
            ("{}".into(), "either"),
            (format!("site=a.example&capability={id}&reason=spam"), "either"),
            ("site=a.example&reason=rude".into(), "impersonation"),
            ("site=a.example".into(), "one of"),
            ("site=a.example&reason=other".into(), "requires a \"text\""),
            ("site=10.0.0.1&reason=spam".into(), "10.0.0.1"),
            ("capability=7&reason=spam".into(), "id of a capability"),
            ("site=a.example&reason=spam&mail=x".into(), "mail"),
            (r#"{"site": "a.example", "reason": "spam", "mail": "x"}"#.into(), "mail"),
            (format!("site=a.example&reason=spam&text={long}"), "longer"),
        ] {
            let problem = read(wrong.as_bytes()).unwrap_err();
            assert_eq!(problem.body().status, StatusCode::BAD_REQUEST, "{wrong}");
            assert!(problem.body().in_words().contains(word), "{wrong}: {}", problem.body().in_words());
        }
        let large = vec![b' '; BODY_BYTES_MAX + 1];
        assert_eq!(read(&large).unwrap_err().body().status, StatusCode::PAYLOAD_TOO_LARGE);
    }
}
