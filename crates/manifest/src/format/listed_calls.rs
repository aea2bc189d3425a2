//! Calls in texts: in lists (`- GET /api/jobs — browse jobs`, `- Jobs: GET /api/jobs`) and in sentences (`POST /agents (5 USDC)`).

use url::Url;

use crate::address::{self, Address};
use crate::draft::{self, Draft};
use crate::format::{addresses, endpoint, lenient};
use crate::model::{Capability, CapabilityKind};
use crate::text;

/// Calls of one text that are read.
const CALLS_MAX: usize = 500;
/// Words of one description that are searched for calls, and words of the remark behind a call.
const WORDS_MAX: usize = 2_000;
const REMARK_WORDS_MAX: usize = 20;
/// Characters of the label of a call.
const LABEL_CHARS_MAX: usize = 100;

/// A call as published.
struct Call<'t> {
    methods: Vec<&'t str>,
    address: &'t str,
    /// What follows the address.
    rest: &'t str,
}

impl<'t> Call<'t> {
    /// The call that a text begins with: one method or several, then an address.
    fn of(text: &'t str) -> Option<Self> {
        let (methods, rest) = text.trim_start_matches(is_mark).split_once(char::is_whitespace)?;
        let methods: Vec<&str> = methods.trim_matches(is_mark).split(['/', '|']).collect();
        let rest = rest.trim_start();
        let word = rest.split_whitespace().next()?;
        let address =
            word.trim_matches(is_mark).trim_end_matches([':', ',', '.', ';', ')']).trim_end_matches(is_mark);
        let is_address = address.starts_with('/') || address.starts_with("https://");
        let is_call = is_address && methods.iter().all(|method| address::is_method(method));
        is_call.then(|| Self { methods, address, rest: rest.get(word.len()..).unwrap_or_default() })
    }

    fn push(
        &self,
        name: Option<&str>,
        base: Option<&Url>,
        set: impl Fn(&mut Capability),
        draft: &mut Draft<'_>,
    ) {
        let Some(address) = resolve(self.address, base, draft) else { return };
        for method in &self.methods {
            if draft.manifest.capabilities.len() >= CALLS_MAX {
                return;
            }
            let call = [method, self.address].join(" ");
            let mut capability =
                draft.capability(CapabilityKind::Operation, &call, name.unwrap_or(&call), String::new());
            endpoint::set_call(&mut capability, method, address.clone());
            set(&mut capability);
            draft.push(capability);
        }
    }
}

fn is_mark(letter: char) -> bool {
    letter.is_whitespace() || "*`".contains(letter)
}

/// Reads a line that is a call, an item of a list or a row of a table, and tells whether it is one. A path is one below the
/// base of the text, else on the origin. The addresses of MCP servers and of manifests are left to the reader of links.
pub(crate) fn read(line: &str, base: Option<&Url>, draft: &mut Draft<'_>) -> bool {
    if !line.contains('/') {
        return false;
    }
    let row = line.starts_with('|').then(|| call_of_row(line));
    if line.starts_with('|') && row.as_ref().is_none_or(Option::is_none) {
        return false;
    }
    let row = row.flatten();
    let item = row.as_deref().unwrap_or_else(|| item_of(line));
    let labelled = || {
        let (label, call) = item.split_once(':').filter(|(label, _)| label.len() <= LABEL_CHARS_MAX)?;
        Some((Some(label.trim_matches(is_mark)).filter(|label| !label.is_empty()), Call::of(call)?))
    };
    let is_item = item.len() < line.len() && row.is_none();
    let call = Call::of(item).map(|call| (None, call)).or_else(|| labelled().filter(|_| is_item));
    let Some((label, call)) = call else { return false };
    // A line of its own without a remark is the first line of an example request.
    let remark = call.rest.trim();
    if !is_item && row.is_none() && (remark.is_empty() || remark.starts_with("HTTP/")) {
        return false;
    }
    let class = addresses::classify(call.address);
    if class.rel == "mcp" || class.follow.is_some() {
        return false;
    }
    let described = call.rest.trim_start_matches(REMARK_MARKS);
    let described = draft::description(Some(described)).filter(|text| !text.starts_with("HTTP/"));
    call.push(label, base, |capability| capability.description.clone_from(&described), draft);
    true
}

/// What separates a call from the remark behind it.
const REMARK_MARKS: [char; 8] = [' ', '-', '\u{2014}', '\u{2013}', ':', '*', '`', '\u{2192}'];

/// A line without the mark or the number of its item.
fn item_of(line: &str) -> &str {
    let numbered = || {
        let (number, item) = line.split_once(". ")?;
        (number.len() <= 3 && number.bytes().all(|byte| byte.is_ascii_digit())).then_some(item)
    };
    line.strip_prefix(['-', '*', '+']).or_else(numbered).unwrap_or(line)
}

/// The call in the first cells of a row, and the text of the next: `| GET | /rooms | Lists rooms |`.
fn call_of_row(row: &str) -> Option<String> {
    let mut cells = row.trim_matches('|').split('|').map(|cell| cell.trim_matches(is_mark));
    let mut call = cells.next()?.to_owned();
    if address::is_method(&call) {
        call = [&call, cells.next()?].join(" ");
    }
    let is_call = Call::of(&call).is_some();
    is_call.then(|| [&call, " ", cells.next().unwrap_or_default()].concat())
}

/// Reads the calls that sentences name, each with the remark behind it: a price, or what it does.
pub(crate) fn read_sentences(sentences: &str, base: Option<&Url>, draft: &mut Draft<'_>) {
    // Every address of a call has a slash.
    let mut rest = if sentences.contains('/') { sentences } else { "" };
    for _ in 0..WORDS_MAX {
        let Some((_, after)) = rest.split_once(char::is_whitespace) else { return };
        if let Some(call) = Call::of(rest) {
            let remark = remark(call.rest);
            let described = draft::description(remark.as_deref());
            let price =
                remark.as_deref().and_then(|remark| remark.split(',').next()).filter(|word| is_price(word));
            let price = price.and_then(|price| lenient::price(&price.into()));
            let set = |capability: &mut Capability| {
                capability.description.clone_from(&described);
                capability.price.clone_from(&price);
            };
            call.push(None, base, set, draft);
        }
        rest = after;
    }
}

/// The words in brackets at the start of a text.
fn remark(text: &str) -> Option<String> {
    let inner = text.trim_start().strip_prefix('(')?;
    let (remark, _) = inner.split_once(')')?;
    let is_short = remark.split_whitespace().count() <= REMARK_WORDS_MAX;
    is_short.then(|| text::capped(remark, draft::NAME_CHARS_MAX).to_owned())
}

fn is_price(words: &str) -> bool {
    let words = words.trim();
    words.starts_with(['$', '\u{20ac}', '\u{a3}'])
        || (words.starts_with(|letter: char| letter.is_ascii_digit())
            && words
                .split_whitespace()
                .nth(1)
                .is_some_and(|unit| unit.bytes().all(|b| b.is_ascii_uppercase())))
}

fn resolve(published: &str, base: Option<&Url>, draft: &Draft<'_>) -> Option<Address> {
    match base.filter(|_| published.starts_with('/')) {
        Some(base) => {
            let below = base.as_str().trim_end_matches('/');
            address::resolve(base, &[below, published].concat())
        }
        None => address::on_origin(draft.base(), published),
    }
}
