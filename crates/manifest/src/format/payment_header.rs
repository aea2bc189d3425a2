//! The header in which callers prove that they have paid, in a member of the terms (`"x402": {"header":
//! "X-Payment-Proof"}`) or in a sentence.

use serde_json::{Map, Value};

use crate::cues::Cue;
use crate::draft::Draft;
use crate::format::outbound::Texts;
use crate::format::payments;
use crate::model::{AppliesTo, Auth, AuthScheme, Capability, Payment};
use crate::object::Object;
use crate::text;

/// Members of terms with the header in which callers prove that they have paid.
const HEADER_KEYS: &[&str] = &["header", "payment_header", "paymentHeader", "proof_header", "proofHeader"];

/// Members with sentences about a payment.
const SENTENCE_KEYS: &[&str] = &["description", "instructions", "note", "notes", "usage", "flow"];
/// Maximum number of lines of one text that are searched.
const LINES_MAX: usize = 20_000;
/// Maximum number of words of one sentence that are searched for the header.
const WORDS_MAX: usize = 500;

/// Last words of headers that a server sends.
const RESPONSE_WORDS: &[&str] = &["response", "required"];

/// Last words of headers that select how a caller pays.
const SETTING_WORDS: &[&str] =
    &["-mode", "-network", "-chain", "-asset", "-currency", "-version", "-method", "-scheme", "-amount"];

/// The header of a payment that a text names: "Include the proof in the `PAYMENT-SIGNATURE` header."
fn named_in(text: &str) -> Option<&str> {
    if !text::has_four(text, *b"head") {
        return text::has_three(text, *b"402").then(|| quoted_in(text)).flatten();
    }
    let mut words = text.split(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '-'));
    words.by_ref().take(WORDS_MAX).find(|word| is_header(word))
}

/// Whether a word is the header of a payment that a caller sends.
fn is_header(word: &str) -> bool {
    let folded = word.to_ascii_lowercase();
    word.starts_with(char::is_uppercase)
        && ["x-payment", "payment-"].iter().any(|start| folded.starts_with(start))
        && !RESPONSE_WORDS.iter().chain(SETTING_WORDS).any(|end| folded.ends_with(end))
}

/// Whether a header selects how a caller pays, and proves nothing: `X-Payment-Mode`.
pub(super) fn is_setting(header: &str) -> bool {
    let folded = header.to_ascii_lowercase();
    SETTING_WORDS.iter().any(|end| folded.ends_with(end))
}

/// Whether a header, in any case, holds the proof of a payment.
pub(crate) fn is_proof(header: &str) -> bool {
    let folded = header.to_ascii_lowercase();
    let is_of_payment =
        folded == "x-payment" || ["x-payment-", "payment-"].iter().any(|start| folded.starts_with(start));
    is_of_payment && !RESPONSE_WORDS.iter().any(|end| folded.ends_with(end)) && !is_setting(header)
}

/// The scheme that defines a header of payments.
pub(crate) fn scheme_of(header: &str) -> Option<&'static str> {
    let headers =
        ["x-payment", "x-payment-response", "payment-signature", "payment-required", "payment-response"];
    headers.iter().any(|known| header.eq_ignore_ascii_case(known)).then_some("x402")
}

/// The header in code of a sentence about the status 402: "x402 is available using `payment-signature` request envelopes."
fn quoted_in(text: &str) -> Option<&str> {
    let mut quoted = text.split('`').skip(1).step_by(2).take(WORDS_MAX);
    quoted.find(|code| matches!(code.to_ascii_lowercase().as_str(), "payment-signature" | "x-payment"))
}

/// Records the header in which callers prove that they have paid, for the calls that must be paid.
pub(crate) fn read(root: &Object<'_>, texts: &Texts<'_>, draft: &mut Draft<'_>) {
    let stated = ["payment", "payments"].iter().filter_map(|key| root.object(key));
    let blocks: Vec<Object<'_>> =
        payments::blocks_of_schemes(root).map(|(_, block)| block).chain(stated).collect();
    let is_name = |name: &&str| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    let in_member = blocks.iter().find_map(|block| block.text_of(HEADER_KEYS).filter(is_name));
    let in_words = || {
        let described = Some(root).filter(|_| !draft.manifest.payments.is_empty());
        let mut holders = blocks.iter().chain(described);
        holders.find_map(|holder| SENTENCE_KEYS.iter().find_map(|key| named_in(holder.text(key)?)))
    };
    let in_texts = || in_any_text(texts, draft);
    if let Some(name) = in_member.or_else(in_words).or_else(in_texts).map(str::to_owned) {
        keep(&name, draft);
    }
}

/// The header that any text of a document with paid calls names, such as the steps of a flow or the description of a tool.
fn in_any_text<'v>(texts: &Texts<'v>, draft: &Draft<'_>) -> Option<&'v str> {
    let pays = |call: &Capability| call.auth.schemes.contains(&AuthScheme::Payment);
    if !draft.manifest.capabilities.iter().any(pays) {
        return None;
    }
    texts.with(Cue::PaymentHeader).find_map(named_in)
}

/// Keeps the header that a line names, in a text that states how calls are paid, or in code of a line that names x402.
pub(crate) fn read_text(text: &str, draft: &mut Draft<'_>) {
    let is_paid = !draft.manifest.payments.is_empty();
    let in_line = |line| named_in(line).filter(|_| is_paid).or_else(|| offered_in(line));
    let named = text.lines().take(LINES_MAX).find_map(|line| Some((line, in_line(line)?)));
    if let Some((line, name)) = named {
        if !is_paid {
            draft.keep(Payment { scheme: Some("x402".to_owned()), ..Payment::default() });
        }
        keep(name, draft);
        keep_others(line, name, draft);
    }
}

/// Keeps the other headers of a payment that a line names: "retry with `X-PAYMENT` or `X-PAYMENT-TX`".
fn keep_others(line: &str, name: &str, draft: &mut Draft<'_>) {
    let words = line.split(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '-')).take(WORDS_MAX);
    let mut others: Vec<Value> = Vec::new();
    for other in words.filter(|word| !word.eq_ignore_ascii_case(name) && is_header(word)) {
        let other = Value::from(text::capped(other, 100));
        if others.len() < OTHERS_MAX && !others.contains(&other) {
            others.push(other);
        }
    }
    if !others.is_empty() {
        let headers = draft.manifest.features.other.entry("headers".to_owned());
        if let Value::Object(headers) = headers.or_insert_with(|| Value::Object(Map::new())) {
            headers.insert("payment".to_owned(), Value::Array(others));
        }
    }
}

/// Maximum number of further headers of a payment that are kept.
const OTHERS_MAX: usize = 4;

/// The header in code of a line that offers x402. It may be the only way in which the text states a payment.
fn offered_in(line: &str) -> Option<&str> {
    let has = |words: &[&str]| words.iter().any(|word| line.contains(word));
    let is_offer = text::has_four(line, *b"x402") && has(&["ptional", "vailable", "upport", "ccept"]);
    quoted_in(line).filter(|_| is_offer && !has(&["not supported", "not available", "no longer", "lanned"]))
}

/// Records the name of the header for the calls that must be paid.
fn keep(name: &str, draft: &mut Draft<'_>) {
    let manifest = &mut draft.manifest;
    let known = manifest.auth.iter_mut().find(|auth| auth.scheme == AuthScheme::Payment);
    let (location, name) = (Some("header".to_owned()), Some(text::capped(name, 100).to_owned()));
    if let Some(known) = known {
        if known.name.is_none() {
            (known.location, known.name) = (location, name);
        }
        return;
    }
    let is_paid = |call: &&Capability| call.auth.schemes.contains(&AuthScheme::Payment);
    let ids: Vec<String> =
        manifest.capabilities.iter().filter(is_paid).map(|call| call.native_id.clone()).collect();
    let applies_to = if ids.is_empty() { AppliesTo::OptionalIds { ids } } else { AppliesTo::Ids { ids } };
    draft.keep(Auth { location, name, applies_to, ..Auth::new(AuthScheme::Payment) });
}
