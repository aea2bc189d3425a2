//! Prices of plans in a text: `Basic: $29/month, 10,000 requests/day` below `## Pricing`, `- Pro (£79/mo): unlimited`, a row of a table,
//! and the price of the whole service, `Prices: $0.01 per call`.
//!
//! Lines with an address, names of tools and several lines `Price: …` are about goods and calls.

use serde_json::{Map, Value};

use crate::draft::Draft;
use crate::format::lenient;
use crate::model::Payment;
use crate::text;

/// Maximum number of plans of one text that are read.
const PLANS_MAX: usize = 50;
/// Maximum number of characters of the name of a plan, and of its price.
const NAME_CHARS_MAX: usize = 40;
const PRICE_CHARS_MAX: usize = 60;
/// Maximum number of words of the name of a plan, and of its price.
const NAME_WORDS_MAX: usize = 4;
const PRICE_WORDS_MAX: usize = 6;
/// Maximum number of parts of one line that are read.
const PARTS_MAX: usize = 8;
/// Words of headings above plans.
const HEADING_WORDS: &[&str] = &["pricing", "prices", "plans", "tiers", "subscription", "subscriptions"];
/// Labels of the price of the whole service.
const PRICE_LABELS: &[&str] = &["price", "prices", "pricing", "cost", "\u{4ef7}\u{683c}"];
const SIGNS: [char; 4] = ['$', '\u{20ac}', '\u{a3}', '\u{a5}'];
/// Marks of a price that is due again.
const PERIODS: &[&str] =
    &["/mo", "/yr", "/year", "/week", "per month", "per year", "monthly", "/\u{5e74}", "/\u{6708}"];
/// What a plan may limit.
const LIMITED: &[&str] = &["request", "call", "quer"];

/// Collects the plans of a text, line by line.
#[derive(Debug, Default)]
pub(crate) struct PlanLines {
    /// Whether the line is below a heading that announces prices.
    is_of_prices: bool,
    /// The number of calls above the last heading. Below the heading of a call, a price is that of the call.
    calls: usize,
    plans: Vec<Payment>,
    limits: Map<String, Value>,
    /// The prices of lines `Price: …`.
    prices: Vec<String>,
}

impl PlanLines {
    /// Keeps the plan or the price that one line states.
    pub(crate) fn read_line(&mut self, line: &str, draft: &Draft<'_>) {
        let is_heading = line.starts_with('#') || (line.ends_with(':') && !line.starts_with(['-', '*', '+']));
        if is_heading {
            self.calls = draft.manifest.capabilities.len();
            self.is_of_prices = false;
            text::each_word(text::capped(line, NAME_CHARS_MAX), |word| {
                self.is_of_prices |= HEADING_WORDS.contains(&word);
            });
            return;
        }
        if self.is_of_prices
            && self.plans.len() < PLANS_MAX
            && !line.starts_with('|')
            && !may_state_price(line)
        {
            return self.read_without_amount(line);
        }
        if !may_state_price(line) || line.contains("://") || self.plans.len() >= PLANS_MAX {
            return;
        }
        if line.starts_with('|') {
            return self.read_row(line);
        }
        let item = line.trim_start_matches(['-', '*', '+', ' ']);
        let separators = [":", "\u{ff1a}", " \u{2014} ", " \u{2013} ", " - "];
        let parts = separators.iter().filter_map(|separator| item.split_once(separator));
        let Some((label, value)) = parts.min_by_key(|(label, _)| label.len()) else { return };
        let label = label.trim_matches(['*', ' ', '_']);
        if let Some((name, price)) = label.strip_suffix(')').and_then(|label| label.rsplit_once('(')) {
            let is_due_again = PERIODS.iter().any(|period| price.contains(period));
            if let Some(price) = price_in(price).filter(|_| self.is_of_prices || is_due_again) {
                self.add(name, price, value);
            }
            return;
        }
        let Some(price) = price_in(value) else { return };
        if PRICE_LABELS.iter().any(|known| label.eq_ignore_ascii_case(known)) {
            if draft.manifest.capabilities.len() == self.calls && self.prices.len() < PLANS_MAX {
                self.prices.push(price.to_owned());
            }
        } else if self.is_of_prices {
            self.add(label, price, value);
        }
    }

    /// A plan that states no amount: `Free: 100 calls/day`, `Enterprise: Custom pricing, unlimited requests`.
    fn read_without_amount(&mut self, line: &str) {
        let item = line.trim_start_matches(['-', '*', '+', ' ']);
        let Some((name, value)) = item.split_once(':') else { return };
        let (name, value) = (name.trim_matches(['*', ' ', '_']), value.trim_matches(['*', ' ', '_']));
        let is_free = matches!(name.to_ascii_lowercase().as_str(), "free" | "free tier" | "free plan");
        let first = value.split([',', ';', '(']).next().unwrap_or_default().trim_end_matches(['.', ' ']);
        let is_custom = ["custom", "contact us", "contact sales"]
            .iter()
            .any(|start| first.to_ascii_lowercase().starts_with(start));
        if value.contains(" /")
            || value.contains(['`', '@'])
            || value.starts_with('/')
            || value.contains("://")
        {
            return;
        }
        if is_free {
            self.add(name, "free", value);
        } else if is_custom && first.split_whitespace().nth(PRICE_WORDS_MAX).is_none() {
            self.add(name, first, value);
        }
    }

    /// A row of a table with a plan in its first cell: `| Pro | $49/mo | 10,000 calls |`.
    fn read_row(&mut self, line: &str) {
        let mut cells = line.trim_matches('|').split('|').map(str::trim).take(PARTS_MAX);
        let name = cells.next().filter(|_| self.is_of_prices);
        let Some((name, price)) = name.zip(cells.find_map(price_in)) else { return };
        self.add(name.trim_matches('*'), price, "");
    }

    fn add(&mut self, name: &str, price: &str, value: &str) {
        let name = name.trim_matches(['*', ' ', '_']);
        let is_name = name.starts_with(char::is_alphabetic)
            && name.chars().count() <= NAME_CHARS_MAX
            && name.split_whitespace().nth(NAME_WORDS_MAX).is_none()
            && !name.contains(['/', '`', '_', '"', '{', '(']);
        if !is_name {
            return;
        }
        let (plan, price) = (Some(name.to_owned()), Some(price.to_owned()));
        self.plans.push(Payment { price, plan, ..Payment::default() });
        let mut parts = value.split([';', '\u{2014}']).flat_map(|part| part.split(", ")).take(PARTS_MAX);
        let is_limit = |part: &&str| {
            let is_counted = part.bytes().any(|byte| byte.is_ascii_digit())
                || part.to_ascii_lowercase().contains("unlimited");
            is_counted && LIMITED.iter().any(|word| part.contains(word))
        };
        let limit = parts.find(|part| part.chars().count() <= PRICE_CHARS_MAX && is_limit(part));
        self.limits.extend(limit.map(|limit| (name.to_owned(), Value::from(limit.trim()))));
    }

    /// Adds the plans to those that the text states otherwise, and the limits of several plans.
    pub(crate) fn finish(self, draft: &mut Draft<'_>) {
        let whole = match self.prices.as_slice() {
            [only] => Some(Payment { price: Some(only.clone()), ..Payment::default() }),
            _ => None,
        };
        for payment in self.plans.into_iter().chain(whole) {
            if !draft.manifest.payments.contains(&payment) {
                draft.keep(payment);
            }
        }
        if self.limits.len() > 1 {
            draft.manifest.features.other.insert("plan_limits".to_owned(), Value::Object(self.limits));
        }
    }
}

/// Whether a line has an amount with a sign, or a number followed by the code of a currency.
fn may_state_price(line: &str) -> bool {
    line.contains(SIGNS) || line.contains(" USD") || line.contains(" EUR")
}

/// The price that a text begins with, before its further parts: `$29/month` in `$29/month, all data`.
fn price_in(value: &str) -> Option<&str> {
    let value = value.trim_matches(['*', ' ', '`']);
    let ends = [", ", "; ", " (", " \u{2014}", " - ", ". ", " | ", " + "];
    let end = ends.iter().filter_map(|end| value.find(end)).min().unwrap_or(value.len());
    let price = value.get(..end)?.trim_end_matches(['.', '*', ' ']);
    let amount = price.trim_start_matches(SIGNS);
    let has_amount = amount.starts_with(|letter: char| letter.is_ascii_digit());
    let has_currency = || price.split_whitespace().nth(1).is_some_and(lenient::is_currency);
    let is_price = has_amount
        && (amount.len() < price.len() || has_currency())
        && price.chars().count() <= PRICE_CHARS_MAX
        && price.split_whitespace().nth(PRICE_WORDS_MAX).is_none();
    is_price.then_some(price)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_price_that_a_text_begins_with() {
        for (value, expected) in [
            ("$29/month, 10,000 requests/day, US data", Some("$29/month")),
            (" \u{a5}298/\u{5e74}", Some("\u{a5}298/\u{5e74}")),
            ("$0.001\u{2013}$29.99 per call (most $0.01)", Some("$0.001\u{2013}$29.99 per call")),
            ("\u{a3}1,499/mo", Some("\u{a3}1,499/mo")),
            ("49 USD per month", Some("49 USD per month")),
            ("$51B+ of transactions are tracked here and shown", None),
            ("10 calls/day", None),
            ("Custom pricing", None),
        ] {
            assert_eq!(price_in(value), expected, "{value}");
        }
    }
}
