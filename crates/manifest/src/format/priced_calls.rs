//! Calls in texts that are paid per call: items with an API address, a price and a payment scheme.
//!
//! Items with only a price are goods, whose addresses are pages.

use super::addresses;
use super::listed_calls::resolve;
use crate::draft::{self, Draft};
use crate::format::link_class;
use crate::format::{endpoint, lenient};
use crate::model::{AuthScheme, CapabilityKind, Payment, Tristate};
use crate::text;

/// Maximum number of calls of one text that are read; the longest published list has 7.
const CALLS_MAX: usize = 200;
/// Maximum number of words of one line that are searched for a price and a scheme.
const WORDS_MAX: usize = 200;

/// Finds the paid calls of a text, line by line.
#[derive(Debug, Default)]
pub(crate) struct PricedCalls {
    /// Whether a sentence below the last heading says that calls respond with 402.
    is_paid_section: bool,
    count: usize,
}

impl PricedCalls {
    /// Reads a line, and returns whether it is a paid call: `- Rooms: https://shop.example/api/rooms (x402, 1 USDC)`.
    pub(crate) fn read_line(&mut self, line: &str, draft: &mut Draft<'_>) -> bool {
        if line.starts_with('#') {
            self.is_paid_section = false;
            return false;
        }
        if !line.starts_with(['-', '*', '+']) {
            self.is_paid_section |= line.contains("402");
            return false;
        }
        if !line.contains('/') || self.count >= CALLS_MAX {
            return false;
        }
        let Some((label, published)) = addresses::labelled(line) else { return false };
        let scheme = line.split(published).find_map(scheme_in);
        if !self.is_paid_section && scheme.is_none() {
            return false;
        }
        let Some(price) = price_in(line).filter(|_| is_of_api(published)) else { return false };
        let url = with_variable(published, line);
        if link_class::classify(&url).rel != "page" {
            return false;
        }
        let Some(address) = resolve(&url, None, draft) else { return false };
        let is_described = line.find(published) < line.find(label);
        let name = if is_described { published } else { label };
        let mut capability = draft.capability(CapabilityKind::Operation, name, name, String::new());
        endpoint::set(&mut capability, address);
        let remark = if is_described { label } else { remark(line, label, published) };
        capability.description = draft::description(Some(remark));
        capability.auth.required = Tristate::Yes;
        capability.auth.schemes.push(AuthScheme::Payment);
        capability.price = Some(Payment { scheme: scheme.map(str::to_owned), ..price });
        draft.push(capability);
        self.count += 1;
        true
    }
}

/// The text of a line after its label, or after its address if the address comes later.
fn remark<'t>(line: &'t str, label: &str, published: &str) -> &'t str {
    let behind = line.split_once(label).map_or(line, |(_, behind)| behind);
    let marks = |letter: char| letter.is_whitespace() || ":*`-.\u{2013}\u{2014}\u{2192}".contains(letter);
    let remark = match behind.split_once(published) {
        Some((before, after)) if before.trim_matches(marks).is_empty() => after,
        Some((before, _)) => before,
        None => behind,
    };
    remark.trim_matches(marks)
}

/// The scheme of payment that a line names.
fn scheme_in(line: &str) -> Option<&'static str> {
    let mut words = line.split(|letter: char| !letter.is_ascii_alphanumeric()).take(WORDS_MAX);
    words.find_map(|word| ["x402", "l402", "mpp"].into_iter().find(|known| word.eq_ignore_ascii_case(known)))
}

/// The first price of a line: an amount after a currency sign, or before a currency code.
fn price_in(line: &str) -> Option<Payment> {
    let mut words = line.split_whitespace().take(WORDS_MAX).peekable();
    while let Some(word) = words.next() {
        let word = word.trim_matches(['(', ')', ',', ';', '.', '*', '`', '~']);
        let digits = word.trim_start_matches(['$', '\u{20ac}', '\u{a3}']);
        if !digits.starts_with(|letter: char| letter.is_ascii_digit()) {
            continue;
        }
        let unit = words.peek().map(|next| next.trim_matches(|letter: char| !letter.is_ascii_alphanumeric()));
        let unit = unit.filter(|unit| lenient::is_currency(unit));
        let has_sign = digits.len() < word.len();
        if has_sign || unit.is_some() {
            let price =
                unit.filter(|_| !has_sign).map_or_else(|| word.to_owned(), |unit| [word, unit].join(" "));
            return lenient::price(&text::capped(&price, draft::NAME_CHARS_MAX).into());
        }
    }
    None
}

/// Whether an address is one of an API by its path.
fn is_of_api(published: &str) -> bool {
    published.split(['?', '#']).next().is_some_and(|path| path.split('/').any(|part| part == "api"))
}

/// The address, with a variable in place of its last value if the line truncates that value (`?city=ber...`).
fn with_variable(published: &str, line: &str) -> String {
    let is_cut = line.contains(&[published, "..."].concat());
    match published.rsplit_once('=').filter(|(before, _)| is_cut && before.contains('?')) {
        Some((before, _)) => [before, "="].concat(),
        None => published.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_prices_and_truncated_values() {
        let price = |line| price_in(line).and_then(|price| price.price);
        assert_eq!(remark("- A: /api/a (1 USDC)", "A", "/api/a"), "(1 USDC)");
        assert_eq!(remark("- A \u{2014} rooms, $2 \u{2014} /api/a", "A", "/api/a"), "rooms, $2");
        assert_eq!(price("- /api/a \u{2014} $0.25 rooms of 2026.").as_deref(), Some("$0.25"));
        assert_eq!(price("- A: /api/a (x402, 1 USDC)").as_deref(), Some("1 USDC"));
        assert_eq!(price("- A: /api/a for 2 guests"), None);
        assert_eq!(with_variable("/api/a?b=1&c=0x", "- A: /api/a?b=1&c=0x... (1 USDC)"), "/api/a?b=1&c=");
        assert_eq!(with_variable("/api/a?b=1", "- A: /api/a?b=1 (1 USDC)"), "/api/a?b=1");
        assert!(is_of_api("https://shop.example/api/rooms?x=1"));
        assert!(!is_of_api("https://shop.example/apis/rooms?x=/api/"));
    }
}
