//! Which pages of a browser may change something here: our own.
//!
//! A browser says which page a request comes from (`Origin`, `Sec-Fetch-Site`), and a page of somebody else could send a
//! form or a fetch in the name of whoever looks at it. Programs send neither header and pass. What only reads is open to
//! every page (CORS).

use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use url::{Host, Url};

use crate::app::App;
use crate::config::ApiConfig;
use crate::names::{LOOPBACK, authority, plain};
use crate::offer::Offer;
use crate::problem::Problem;

/// Requests with a body that change nothing. `/mcp` judges names and origins by itself, with the lists below.
const READS: [&str; 5] = ["/search", "/explore", "/validate", "/mcp", "/a2a"];
/// Requests that change something or not, by the tool in their last segment.
const TOOLS: [&str; 2] = ["/tools/{name}", "/woa/{agent}"];
/// What a browser says about where a request comes from, for those without `Origin`.
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
/// Characters of a foreign origin that are repeated.
const SHOWN_CHARS_MAX: usize = 100;

/// Refuses what pages of others want to change.
pub(crate) async fn guard_changes(State(app): State<App>, request: Request, next: Next) -> Response {
    let route = request.extensions().get::<MatchedPath>().map(MatchedPath::as_str);
    if changes_state(request.method(), route, request.uri().path())
        && let Err(problem) = check(app.config(), request.headers())
    {
        return problem.into_response();
    }
    next.run(request).await
}

fn changes_state(method: &Method, route: Option<&str>, path: &str) -> bool {
    if method.is_safe() {
        return false;
    }
    match route {
        Some(route) if READS.contains(&route) => false,
        Some(route) if TOOLS.contains(&route) => {
            let tool = path.rsplit('/').next().and_then(|name| name.parse::<Offer>().ok());
            !tool.is_some_and(Offer::is_read_only)
        }
        _ => true,
    }
}

/// Whether a request comes from no page, or from one of ours.
fn check(config: &ApiConfig, headers: &HeaderMap) -> Result<(), Problem> {
    if let Some(origin) = headers.get(header::ORIGIN) {
        let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
        let origin = origin.to_str().unwrap_or_default();
        return if is_own(config, origin, host) { Ok(()) } else { Err(refused(config, origin)) };
    }
    match headers.get(SEC_FETCH_SITE).map(HeaderValue::as_bytes) {
        None | Some(b"same-origin" | b"none") => Ok(()),
        Some(_) => Err(refused(config, "")),
    }
}

fn refused(config: &ApiConfig, origin: &str) -> Problem {
    let origin: String = origin.chars().take(SHOWN_CHARS_MAX).collect();
    let from = if origin.is_empty() { "another site".to_owned() } else { format!("\"{origin}\"") };
    let own = origins(config).pop().unwrap_or_default();
    Problem::forbidden(format!(
        "this request was sent by a page of {from}, and only pages of {own} may change something here: send it from there, or \
         from a program; the operator names the public address with --public-url"
    ))
}

/// Whether an origin is one of ours. A number or a loopback name that is asked for by the same name cannot have been led
/// here by a name server (DNS rebinding), so that it is ours whatever we listen on.
fn is_own(config: &ApiConfig, origin: &str, asked_host: Option<&str>) -> bool {
    let Ok(origin) = Url::parse(origin) else { return false };
    let is_listed =
        origins(config).iter().any(|own| Url::parse(own).is_ok_and(|own| own.origin() == origin.origin()));
    let is_fixed = match origin.host() {
        Some(Host::Ipv4(_) | Host::Ipv6(_)) => true,
        Some(Host::Domain(name)) => LOOPBACK.contains(&plain(name).as_str()),
        None => false,
    };
    let is_asked = authority(&origin)
        .zip(asked_host)
        .is_some_and(|(authority, asked)| authority.eq_ignore_ascii_case(asked));
    matches!(origin.scheme(), "http" | "https") && (is_listed || (is_fixed && is_asked))
}

/// Pages that we serve ourselves, the public one last; clients that are no browsers send no Origin.
pub(crate) fn origins(config: &ApiConfig) -> Vec<String> {
    let port = config.listen.port();
    let mut own: Vec<String> = LOOPBACK.iter().map(|host| format!("http://{host}:{port}")).collect();
    if !config.listen.ip().is_unspecified() {
        own.push(format!("http://{}", config.listen));
    }
    let public = config.public_url.as_ref().and_then(|url| {
        let port = url.port_or_known_default()?;
        Some(format!("{}://{}:{port}", url.scheme(), url.host_str()?))
    });
    own.extend(public);
    own
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_known_to_read_is_open_to_every_page() {
        let changes = |method: Method, route, path| changes_state(&method, Some(route), path);
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
        assert!(changes_state(&Method::POST, None, "/new"), "what nobody thought of is guarded");
    }
}
