//! Protection against cross-site request forgery: only pages of this server may send requests that change state.
//!
//! Browsers name the page that a request comes from (`Origin`, `Sec-Fetch-Site`). Programs send neither header and pass.
//! Reads are open to every page (CORS).

use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use url::{Host, Url};

use crate::config::ApiConfig;
use crate::problem::Problem;
use crate::server_names::{LOOPBACK, authority, plain};
use crate::state::App;
use crate::tools::Tool;

/// Requests with a body that do not change state. `/mcp` checks hosts and origins itself.
const READS: [&str; 5] = ["/search", "/explore", "/validate", "/mcp", "/a2a"];
/// Routes whose last segment is a tool, which decides whether they change state.
const TOOLS: [&str; 2] = ["/tools/{name}", "/woa/{agent}"];
/// Browsers send it even with requests that have no `Origin`.
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
/// Characters of a foreign origin that an error repeats.
const SHOWN_CHARS_MAX: usize = 100;

/// Refuses requests of other origins that change state.
pub(crate) async fn check_origin_of_changes(
    State(app): State<App>,
    request: Request,
    next: Next,
) -> Response {
    let route = request.extensions().get::<MatchedPath>().map(MatchedPath::as_str);
    let is_guarded = may_change_state(request.method(), route, request.uri().path())
        // `/mcp`, which checks itself, reads the first of several origins.
        || (!request.method().is_safe() && request.headers().get_all(header::ORIGIN).iter().nth(1).is_some());
    if is_guarded && let Err(problem) = check(&app.config, request.headers()) {
        return problem.into_response();
    }
    next.run(request).await
}

fn may_change_state(method: &Method, route: Option<&str>, path: &str) -> bool {
    if method.is_safe() {
        return false;
    }
    match route {
        Some(route) if READS.contains(&route) => false,
        Some(route) if TOOLS.contains(&route) => {
            let tool = path.rsplit('/').next().and_then(|name| name.parse::<Tool>().ok());
            !tool.is_some_and(Tool::is_read_only)
        }
        _ => true,
    }
}

/// Whether a request comes from a program or from a page of this server. Clients send one `Origin` (RFC 6454 section 7.3), so
/// several are refused, whichever they are.
fn check(config: &ApiConfig, headers: &HeaderMap) -> Result<(), Problem> {
    let origins: Vec<&str> =
        headers.get_all(header::ORIGIN).iter().map(|origin| origin.to_str().unwrap_or_default()).collect();
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    match origins.as_slice() {
        [] => {}
        [origin] if is_own(config, origin, host) => return Ok(()),
        _ => return Err(refused(config, &origins.join(", "))),
    }
    let is_own_page = |site: &HeaderValue| matches!(site.as_bytes(), b"same-origin" | b"none");
    if headers.get_all(SEC_FETCH_SITE).iter().all(is_own_page) { Ok(()) } else { Err(refused(config, "")) }
}

fn refused(config: &ApiConfig, origin: &str) -> Problem {
    let origin: String = origin.chars().take(SHOWN_CHARS_MAX).collect();
    let from = if origin.is_empty() { "another site".to_owned() } else { format!("\"{origin}\"") };
    let own = config.own_origins().pop().unwrap_or_default();
    Problem::forbidden(format!(
        "this request was sent by a page of {from}, and only pages of {own} may change something here: send it from there, or \
         from a program; the operator names the public address with --public-url"
    ))
}

/// Whether an origin is of this server. An IP address or a loopback name equal to the `Host` cannot result from DNS
/// rebinding, so it is accepted for any listen address.
fn is_own(config: &ApiConfig, origin: &str, asked_host: Option<&str>) -> bool {
    let Ok(origin) = Url::parse(origin) else { return false };
    let is_listed = config
        .own_origins()
        .iter()
        .any(|own| Url::parse(own).is_ok_and(|own| own.origin() == origin.origin()));
    let is_fixed = match origin.host() {
        Some(Host::Ipv4(_) | Host::Ipv6(_)) => true,
        Some(Host::Domain(name)) => LOOPBACK.contains(&plain(name).as_str()),
        None => false,
    };
    let is_asked = authority(&origin)
        .zip(asked_host)
        .is_some_and(|(authority, requested)| authority.eq_ignore_ascii_case(requested));
    matches!(origin.scheme(), "http" | "https") && (is_listed || (is_fixed && is_asked))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_request_but_known_reads_counts_as_a_change() {
        let changes = |method: Method, route, path| may_change_state(&method, Some(route), path);
        assert!(!changes(Method::GET, "/sites", "/sites"));
        assert!(!changes(Method::HEAD, "/sites", "/sites"));
        assert!(changes(Method::POST, "/sites", "/sites"));
        assert!(changes(Method::DELETE, "/admin/feedback", "/admin/feedback"));
        assert!(!changes(Method::POST, "/search", "/search"));
        assert!(!changes(Method::POST, "/a2a", "/a2a"), "its agent only finds");
        assert!(!changes(Method::POST, "/tools/{name}", "/tools/find_capability"));
        for path in ["/tools/submit_site", "/tools/submit%5Fsite", "/tools/another"] {
            assert!(changes(Method::POST, "/tools/{name}", path), "{path}");
        }
        assert!(changes(Method::POST, "/woa/{agent}", "/woa/submit_site"));
        assert!(may_change_state(&Method::POST, None, "/new"), "an unknown route is protected by default");
    }
}
