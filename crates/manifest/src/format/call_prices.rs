//! Prices of calls in texts: after a call, at the end of its description, and in its heading.

use super::listed_calls::{REMARK_MARKS, is_mark, is_price};
use crate::draft;
use crate::format::lenient;
use crate::model::Payment;
use crate::text;

/// Words after the amount of a price.
const PRICE_WORDS: &[&str] =
    &["per", "call", "request", "query", "each", "to", "-", "\u{2013}", "/", "/call", "/request", "/query"];
/// Maximum number of words of one price.
const PRICE_WORDS_MAX: usize = 8;

/// The price at the start of the remark after a call: `($0.01) — pairs of a token`, `— 0.02 USDC — signals`, `(free)`, `(x402, $1)`.
pub(super) fn price_behind(rest: &str) -> Option<Payment> {
    let rest = rest.trim_start_matches(|letter| REMARK_MARKS.contains(&letter));
    match rest.strip_prefix('(') {
        Some(inner) => price_in_brackets(inner.split(')').next()?),
        None => single_price(rest.split([')', '\u{2014}', ',', ';', ':']).next()?),
    }
}

/// The price among the parts of the words in brackets, with the scheme that another part names.
fn price_in_brackets(inner: &str) -> Option<Payment> {
    let parts = || inner.split([',', ';', '\u{2014}']).take(PRICE_WORDS_MAX);
    let price = parts().find_map(single_price)?;
    let scheme = || parts().find_map(|part| scheme_at_start(part).filter(|(_, rest)| rest.is_empty()));
    Some(Payment {
        scheme: price.scheme.clone().or_else(|| scheme().map(|(name, _)| name.to_owned())),
        ..price
    })
}

/// A price that applies to one call. A range applies to a list.
pub(crate) fn single_price(piece: &str) -> Option<Payment> {
    let price = price_of_piece(piece)?;
    let is_range = price.price.as_deref().is_some_and(|price| price.contains(['-', '\u{2013}']));
    (!is_range).then_some(price)
}

/// The price at the end of the description of a call: `All rooms ($0.01)`, `Rooms \u{2014} x402 ~$0.01.`, `All rooms. 0.10 USDC.`
pub(crate) fn price_at_end(description: &str) -> Option<Payment> {
    let text = description.trim_end_matches(['.', ' ']);
    if let Some((_, inner)) = text.strip_suffix(')').and_then(|text| text.rsplit_once('(')) {
        return price_in_brackets(inner);
    }
    let leads = [" \u{2014} ", " \u{2013} ", ", ", "; ", ". "];
    let last = leads.iter().filter_map(|lead| text.rsplit_once(lead)).map(|(_, last)| last);
    single_price(last.min_by_key(|last| last.len())?)
}

/// The price in the heading of calls: `### Rooms ($0.01 - $0.05 USDC)`, `### Book — $2`. A price with further words is kept as text: `###
/// Card — $0.20 to book / $0.10 to renew`.
pub(crate) fn price_of_heading(heading: &str) -> Option<Payment> {
    let pieces = || heading.split(['(', ')', '\u{2014}', '\u{2013}', ':']).skip(1).take(PRICE_WORDS_MAX);
    pieces().find_map(price_of_piece).or_else(|| pieces().find_map(several_prices))
}

/// Prices that are each followed by words, separated by slashes: `$0.20 to book / $0.10 to renew`.
fn several_prices(piece: &str) -> Option<Payment> {
    let piece = piece.trim_matches(is_mark);
    let mut prices = piece.split(" / ").take(PRICE_WORDS_MAX);
    let has_sign = |price: &str| price.starts_with(CURRENCY_SIGNS) && begins_as_price(price);
    let is_short = piece.split_whitespace().nth(PRICES_WORDS_MAX).is_none();
    let is_list = piece.contains(" / ") && prices.all(has_sign) && is_short;
    lenient::price(&piece.into()).filter(|_| is_list)
}

/// Words of several prices together.
const PRICES_WORDS_MAX: usize = 12;

/// A heading without its price, if it is about a single subject: `Book` in `### Book — $2`.
pub(crate) fn title_of_heading(line: &str) -> Option<&str> {
    let heading = line.trim_start_matches('#');
    let level = line.len() - heading.len();
    let heading = text::capped(heading.trim(), draft::NAME_CHARS_MAX);
    let is_numbered = heading.starts_with(|letter: char| letter.is_ascii_digit());
    if level <= 2 || is_numbered || is_heading_of_api(heading) {
        return None;
    }
    let before = heading.split_once(['\u{2014}', '\u{2013}', '(']).map(|(before, _)| before.trim());
    let title = before.filter(|before| !before.is_empty() && price_of_heading(heading).is_some());
    Some(title.unwrap_or(heading))
}

/// Whether a heading names an API or its endpoints.
pub(crate) fn is_heading_of_api(heading: &str) -> bool {
    let mut is_of_api = false;
    text::each_word(text::capped(heading, draft::NAME_CHARS_MAX), |word| {
        is_of_api |= matches!(word, "api" | "apis" | "endpoints");
    });
    is_of_api
}

/// The payment scheme at the start of a text, and the rest of the text: `x402 ~$0.01`, `via x402`.
fn scheme_at_start(text: &str) -> Option<(&str, &str)> {
    let text = text.trim_matches(is_mark);
    let text = text.strip_prefix("via ").unwrap_or(text);
    let end = text.find(|letter: char| !letter.is_ascii_alphanumeric()).unwrap_or(text.len());
    let (word, rest) = (text.get(..end)?, text.get(end..)?);
    let is_scheme = SCHEMES.iter().any(|known| word.eq_ignore_ascii_case(known));
    is_scheme.then(|| (word, rest.trim_matches([' ', ':', ',', '*', '`'])))
}

/// Schemes of payment before a price.
const SCHEMES: &[&str] = &["x402", "l402", "mpp"];
/// Characters and words before an approximate amount.
const ABOUT: &[&str] = &["~", "\u{2248}", "about ", "approx. ", "approx ", "from "];

/// The price that is the whole text, or its start before a dash, with or without its scheme.
fn price_of_piece(piece: &str) -> Option<Payment> {
    let piece = piece.trim_matches(is_mark);
    if piece.eq_ignore_ascii_case("free") {
        return lenient::price(&piece.into());
    }
    let (scheme, amount) = scheme_at_start(piece).map_or((None, piece), |(name, rest)| (Some(name), rest));
    let amount = ABOUT.iter().find_map(|about| amount.strip_prefix(about)).unwrap_or(amount);
    let is_dash = |word: &str| matches!(word, "-" | "\u{2013}");
    let is_part =
        |word: &&str| lenient::is_currency(word) || PRICE_WORDS.contains(word) || begins_as_price(word);
    let words: Vec<&str> = amount.split_whitespace().take(PRICE_WORDS_MAX).take_while(is_part).collect();
    let mut behind = amount.split_whitespace().take(PRICE_WORDS_MAX).skip(words.len());
    let last = behind.next();
    // `$0.02 via x402`, `1 USDC (x402)`
    let named = last.and_then(|word| if word == "via" { behind.next() } else { Some(word) });
    let named = named.map(|word| word.trim_matches(['(', ')'])).filter(|word| SCHEMES.contains(word));
    let ends = last.is_none() || named.is_some() || words.last().is_some_and(|last| is_dash(last));
    let price = words.join(" ");
    let price = price.trim_end_matches([' ', '-', '\u{2013}']);
    let stated = lenient::price(&price.into()).filter(|_| ends && is_price(price))?;
    Some(Payment { scheme: scheme.or(named).map(str::to_owned).or(stated.scheme), ..stated })
}

fn begins_as_price(word: &str) -> bool {
    word.trim_start_matches(CURRENCY_SIGNS).starts_with(|letter: char| letter.is_ascii_digit())
}

pub(super) const CURRENCY_SIGNS: [char; 3] = ['$', '\u{20ac}', '\u{a3}'];
