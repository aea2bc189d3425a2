//! Labelled lines about one product of a site: `Product-auth: …`, `shop-pricing: …`, `Product-free-endpoints: /a /b`.
//!
//! Their labels have the name of the product or the word "product" before a hyphen.

use serde_json::Value;
use url::Url;

use crate::draft::{self, Draft};
use crate::format::{endpoint, generic, lenient, payment_words};
use crate::model::{AuthScheme, CapabilityKind, Payment};
use crate::name::parse_url;
use crate::text;

/// Characters of a label.
const LABEL_CHARS_MAX: usize = 60;
/// Endpoints of one text that are read.
const ENDPOINTS_MAX: usize = 200;
/// Credentials and prices of one text that are read.
const TERMS_MAX: usize = 50;

/// Reads the lines of one text.
#[derive(Debug, Default)]
pub(crate) struct ProductLines {
    /// The base of the paths of the product.
    base: Option<Url>,
    endpoints: usize,
}

impl ProductLines {
    /// Keeps what a line states. Returns whether its addresses are those of calls.
    pub(crate) fn read_line(&mut self, line: &str, draft: &mut Draft<'_>) -> bool {
        let Some((label, value)) = line.split_once(':') else { return false };
        let (label, value) = (label.trim(), value.trim());
        if !label.contains(['-', '_']) || label.len() > LABEL_CHARS_MAX || label.contains(char::is_whitespace)
        {
            return false;
        }
        let words = text::words(label);
        let value = text::capped(value, draft::DESCRIPTION_CHARS_MAX);
        match words.last().map(String::as_str) {
            Some("auth" | "authentication" | "authorization") => read_credentials(value, draft),
            Some("pricing" | "prices" | "price") => keep_payments(lenient::prices_in_text(value), draft),
            Some("description") if !value.contains("://") => {
                let described = || draft::description(Some(value));
                draft.manifest.description = draft.manifest.description.take().or_else(described);
            }
            Some("api") => self.base = self.base.take().or_else(|| parse_url(value).ok()),
            Some("endpoints" | "paths" | "routes") => {
                return self.read_endpoints(value, words.iter().any(|word| word == "free"), draft);
            }
            _ => {}
        }
        false
    }

    /// Paths that are listed without methods.
    fn read_endpoints(&mut self, value: &str, is_free: bool, draft: &mut Draft<'_>) -> bool {
        let paths = value.split(|letter: char| letter.is_whitespace() || letter == ',');
        let paths: Vec<&str> = paths.filter(|path| !path.is_empty()).take(ENDPOINTS_MAX).collect();
        if paths.is_empty() || !paths.iter().all(|path| path.starts_with('/') && path.len() > 1) {
            return false;
        }
        for path in paths {
            let address = generic::address_of(path, self.base.as_ref(), draft.base());
            let Some(address) = address.filter(|_| self.endpoints < ENDPOINTS_MAX) else { continue };
            self.endpoints += 1;
            let mut capability = draft.capability(CapabilityKind::Operation, path, path, String::new());
            endpoint::set(&mut capability, address);
            capability.price =
                is_free.then(|| Payment { price: Some("free".to_owned()), ..Payment::default() });
            draft.push(capability);
        }
        true
    }
}

fn read_credentials(value: &str, draft: &mut Draft<'_>) {
    for auth in lenient::auth(&Value::String(value.to_owned())) {
        let known = &draft.manifest.auth;
        let is_known = known.iter().any(|known| known.scheme == auth.scheme && known.name == auth.name);
        if auth.scheme != AuthScheme::Other && !is_known && known.len() < TERMS_MAX {
            draft.keep(auth);
        }
    }
    keep_payments(payment_words::in_sentence(value), draft);
}

fn keep_payments(stated: Vec<Payment>, draft: &mut Draft<'_>) {
    for payment in stated {
        let known = &draft.manifest.payments;
        if known.len() < TERMS_MAX && !known.contains(&payment) {
            draft.keep(payment);
        }
    }
}
