//! Checks whether a request was sent by a page of this server, or by a program.
//!
//! Browsers send the origin of the page that makes a request (`Origin`, `Sec-Fetch-Site`). Programs send neither header, and their requests
//! are accepted.

use axum::http::{HeaderMap, header};
use url::{Host, Url};

use crate::config::ApiConfig;
use crate::problem::Problem;
use crate::server_names::{LOOPBACK, authority, comparable, is_of_own_page};

/// Maximum number of characters of a foreign origin that an error message repeats.
const SHOWN_CHARS_MAX: usize = 100;

/// Whether a request comes from a program or from a page of this server. Clients send one `Origin` (RFC 6454 section 7.3), so a request
/// with several is refused.
pub(crate) fn check(config: &ApiConfig, headers: &HeaderMap) -> Result<(), Problem> {
    let origins: Vec<&str> =
        headers.get_all(header::ORIGIN).iter().map(|origin| origin.to_str().unwrap_or_default()).collect();
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    match origins.as_slice() {
        [] => {}
        [origin] if is_own(config, origin, host) => return Ok(()),
        _ => return Err(refused(config, &origins.join(", "))),
    }
    if is_of_own_page(headers) { Ok(()) } else { Err(refused(config, "")) }
}

fn refused(config: &ApiConfig, origin: &str) -> Problem {
    let origin: String = origin.chars().take(SHOWN_CHARS_MAX).collect();
    let from = if origin.is_empty() { "another site".to_owned() } else { format!("\"{origin}\"") };
    let own = config.own_origins().pop().and_then(|own| Url::parse(&own).ok());
    let own = own.map(|own| own.origin().ascii_serialization()).unwrap_or_default();
    let detail = format!(
        "this server accepts changes only under {own}, and this request was sent by a page of {from}: send it from there, or \
         from a program; the operator sets the public address with --public-url"
    );
    Problem::forbidden(detail).with_own_origin(own)
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
        Some(Host::Domain(name)) => LOOPBACK.contains(&comparable(name).as_str()),
        None => false,
    };
    let is_asked = authority(&origin)
        .zip(asked_host)
        .is_some_and(|(authority, requested)| authority.eq_ignore_ascii_case(requested));
    matches!(origin.scheme(), "http" | "https") && (is_listed || (is_fixed && is_asked))
}
