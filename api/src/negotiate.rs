//! Decides between JSON and a page (RFC 9110 §12.5.1).
//!
//! A page is served only if the client prefers `text/html` over `application/json`; a client that accepts any type, such as curl, gets
//! JSON.

use axum::http::{HeaderMap, header};

/// Maximum length of an Accept header; a longer one counts as "anything". Browsers send about 150 bytes.
const ACCEPT_BYTES_MAX: usize = 1_024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Representation {
    Json,
    Html,
}

impl Representation {
    pub(crate) fn preferred(headers: &HeaderMap) -> Self {
        let accept = headers
            .get(header::ACCEPT)
            .and_then(|value| value.to_str().ok())
            .filter(|text| text.len() <= ACCEPT_BYTES_MAX)
            .unwrap_or("*/*");
        if quality(accept, "text", "html") > quality(accept, "application", "json") {
            Self::Html
        } else {
            Self::Json
        }
    }
}

/// The weight of a media type in an Accept header, in thousandths. The most specific range applies.
fn quality(accept: &str, kind: &str, subtype: &str) -> u16 {
    let mut best = (0_u8, 0_u16);
    for range in accept.split(',') {
        let mut parts = range.split(';').map(str::trim);
        let name = parts.next().unwrap_or_default().to_ascii_lowercase();
        let specificity = match name.split_once('/') {
            Some((k, s)) if k == kind && s == subtype => 3,
            Some((k, "*")) if k == kind => 2,
            Some(("*", "*")) => 1,
            _ => continue,
        };
        if specificity > best.0 {
            best = (specificity, weight(parts));
        }
    }
    best.1
}

fn weight<'a>(mut parameters: impl Iterator<Item = &'a str>) -> u16 {
    let Some(text) = parameters.find_map(|p| p.strip_prefix("q=").or_else(|| p.strip_prefix("Q="))) else {
        return 1_000;
    };
    let thousandths = text.parse::<f32>().unwrap_or(0.0).clamp(0.0, 1.0) * 1_000.0;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to 0..=1000 above")]
    let weight = thousandths as u16;
    weight
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn serves_pages_only_where_html_is_preferred() {
        for (accept, expected) in [
            ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", Representation::Html),
            ("text/html", Representation::Html),
            ("text/*;q=0.5", Representation::Html),
            ("*/*", Representation::Json),
            ("application/json, text/html", Representation::Json),
            ("application/json;q=0.5, text/html", Representation::Html),
            ("text/html;q=0.2, */*", Representation::Json),
            ("text/html;q=0", Representation::Json),
            ("text/html;q=nonsense", Representation::Json),
            ("", Representation::Json),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT, accept.parse().unwrap());
            assert_eq!(Representation::preferred(&headers), expected, "{accept}");
        }
        assert_eq!(Representation::preferred(&HeaderMap::new()), Representation::Json);
    }
}
