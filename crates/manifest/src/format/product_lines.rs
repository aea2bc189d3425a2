//! Labelled lines about one product of a site: `Product-auth: …`, `shop-pricing: …`, `Product-free-endpoints: /a /b`.
//!
//! A label is a word with a hyphen or an underscore, such as `shop-pricing`. Its last part decides what the line states. The parts before
//! it, usually the name of the product, are not checked.

use serde_json::Value;
use url::Url;

use crate::draft::{self, Draft};
use crate::format::{lenient, listed_calls, payment_words};
use crate::model::{AuthScheme, Payment};
use crate::name::parse_url;
use crate::text;

/// Maximum length of a label in bytes.
const LABEL_BYTES_MAX: usize = 60;
/// These lines add no credentials to a manifest that has this many, and no payments to one that has this many.
const TERMS_MAX: usize = 50;

/// Reads the lines of one text.
#[derive(Debug, Default)]
pub(crate) struct ProductLines {
    /// The base URL of the paths of the product.
    base: Option<Url>,
}

impl ProductLines {
    /// Reads a line that lists the paths of a product, and returns whether it is one.
    pub(crate) fn read_paths(&self, line: &str, draft: &mut Draft<'_>) -> bool {
        let Some((words, value)) = labelled(line) else { return false };
        let is_free = words.iter().any(|word| word == "free");
        matches!(words.last().map(String::as_str), Some("endpoints" | "paths" | "routes"))
            && listed_calls::read_paths(value, is_free, self.base.as_ref(), draft)
    }

    /// Reads a line that states credentials, prices, a description or the base URL of a product. Ignores all other lines.
    pub(crate) fn read_line(&mut self, line: &str, draft: &mut Draft<'_>) {
        let Some((words, value)) = labelled(line) else { return };
        let value = text::capped(value, draft::DESCRIPTION_CHARS_MAX);
        match words.last().map(String::as_str) {
            Some("auth" | "authentication" | "authorization") => read_credentials(value, draft),
            Some("pricing" | "prices" | "price") => keep_payments(lenient::prices_in_text(value), draft),
            Some("description") if !value.contains("://") => {
                let described = || draft::description(Some(value));
                draft.manifest.description = draft.manifest.description.take().or_else(described);
            }
            Some("api") => self.base = self.base.take().or_else(|| parse_url(value).ok()),
            _ => {}
        }
    }
}

/// The words of the label of a line, and the rest of the line.
fn labelled(line: &str) -> Option<(Vec<String>, &str)> {
    let (label, value) = line.split_once(':')?;
    let label = label.trim();
    let is_label =
        label.contains(['-', '_']) && label.len() <= LABEL_BYTES_MAX && !label.contains(char::is_whitespace);
    is_label.then(|| (text::words(label), value.trim()))
}

fn read_credentials(value: &str, draft: &mut Draft<'_>) {
    for auth in lenient::auth(&Value::String(value.to_owned())) {
        let auths = &draft.manifest.auth;
        let is_known = auths.iter().any(|known| known.scheme == auth.scheme && known.name == auth.name);
        if auth.scheme != AuthScheme::Other && !is_known && auths.len() < TERMS_MAX {
            draft.keep(auth);
        }
    }
    keep_payments(payment_words::in_sentence(value), draft);
}

fn keep_payments(stated: Vec<Payment>, draft: &mut Draft<'_>) {
    for payment in stated {
        let payments = &draft.manifest.payments;
        let repeats = |known: &Payment| {
            *known == payment || (payment_words::is_only_scheme(&payment) && known.scheme == payment.scheme)
        };
        if payments.len() < TERMS_MAX && !payments.iter().any(repeats) {
            draft.keep(payment);
        }
    }
}
