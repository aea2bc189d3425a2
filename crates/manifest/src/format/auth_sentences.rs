//! Sentences and lines that state the credentials of a whole service.

use crate::address;
use crate::auth;
use crate::draft::{DESCRIPTION_CHARS_MAX, NAME_BYTES_MAX, NAME_CHARS_MAX};
use crate::format::lenient::{self, Optional};
use crate::model::{Auth, AuthScheme, CapabilityAuth, Tristate};
use crate::name::URL_BYTES_MAX;
use crate::text::{self, capped};

/// The position of a line in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LinePosition {
    /// Above the first section.
    Intro,
    /// Below a heading about credentials.
    Auth,
    /// In a block of code below a heading about credentials.
    CodeOfAuth,
    Other,
}

/// Maximum number of sentences of one line that are read.
const SENTENCES_MAX: usize = 50;
/// Words that show that a sentence is not about all calls, or not about what they need.
const CONDITIONS: &[&str] = &[
    " if ",
    "when ",
    "unless",
    "except",
    "only ",
    " some ",
    "most ",
    "optional",
    "recommended",
    " may ",
    "higher",
    "premium",
    "pro tier",
    "paid",
    "free tier",
    "private",
    "protected",
    "admin",
    "gated",
    "write",
    "writing",
    "modif",
    "planned",
    "soon",
    "future",
    "sandbox",
    "webhook",
    " not ",
    "n't ",
    "never",
    "until",
    "trial",
    "their ",
    "third",
    " but ",
    "without ",
];
/// Words that restrict a statement to a part of the calls: "for writes". Not if one of [`WHOLES`] follows: "for all".
const PARTS: &[&str] = &[" for ", " to "];
const WHOLES: &[&str] =
    &["all ", "every ", "each ", "any ", "authent", "the api", "be ", "your ", "access the api", "this api"];
/// Beginnings of sentences about every call.
const SUBJECTS: &[&str] = &["all", "every", "each"];
const CALLS: &[&str] =
    &["request", "requests", "endpoint", "endpoints", "call", "calls", "routes", "operations"];
/// Words that show that something is sent or needed.
const NEEDS: &[&str] = &[
    "need",
    "requir",
    "must",
    "use",
    "send",
    "pass",
    "includ",
    "authenticat",
    "provide",
    "via ",
    "with ",
    "add ",
];
/// Beginnings of clauses that say that no credentials are needed; only [`OPEN_ENDS`] may follow.
const OPEN: &[&str] = &[
    "no api key",
    "no api keys",
    "no auth",
    "no authentication",
    "no key",
    "no keys",
    "no token",
    "no api token",
    "no login",
    "without an api key",
    "without authentication",
    "no authorization",
];
const OPEN_ENDS: &[&str] = &[
    "",
    "is",
    "are",
    "required",
    "needed",
    "necessary",
    "or",
    "and",
    "signup",
    "sign",
    "up",
    "registration",
    "account",
    "login",
    "at",
    "all",
];

/// The credentials that a line states for all calls of the text or of its section.
pub(super) fn stated_in(line: &str, place: LinePosition) -> Vec<Auth> {
    if place == LinePosition::CodeOfAuth {
        return header_line(line).into_iter().collect();
    }
    let is_item = line.starts_with(['-', '*', '+']) && !line.starts_with("**");
    // A line of JSON is read with its object.
    if line.starts_with(['|', '"', '{']) || (is_item && place != LinePosition::Auth) {
        return Vec::new();
    }
    let line = line.trim_start_matches(['-', '*', '+', '>', ' ']);
    let sentences = line.split_inclusive(". ").flat_map(|part| part.split("; ")).take(SENTENCES_MAX);
    let mut found: Vec<Auth> = sentences.filter_map(|sentence| in_sentence(sentence.trim(), place)).collect();
    if lenient::is_about_tier(line) {
        found.retain(|auth| auth.scheme != AuthScheme::None);
    }
    for auth in &mut found {
        match auth.scheme {
            AuthScheme::OAuth2 => read_addresses(line, auth),
            AuthScheme::ApiKey | AuthScheme::Bearer => auth.registration_url = registration(line),
            _ => {}
        }
    }
    found
}

/// The address at which keys are issued, as a line states it.
fn registration(line: &str) -> Option<String> {
    let mut sentences = line.split(". ").take(SENTENCES_MAX);
    let issues = |sentence: &&str| {
        ["issued", "Get ", "get your", "btain", "ign up", "reate"].iter().any(|word| sentence.contains(word))
    };
    let word = sentences.find(issues)?.split_whitespace().find(|word| word.contains("://"))?;
    let url = bare(word).filter(|url| url.starts_with("https://"))?;
    Some(capped(url, URL_BYTES_MAX).to_owned())
}

fn bare(word: &str) -> Option<&str> {
    let start = word.find("http")?;
    Some(word.get(start..)?.trim_end_matches(|letter: char| "`*()<>,.;".contains(letter)))
}

/// Whether a line states conditionally what calls need, or links to the metadata of a server.
pub(super) fn has_condition(line: &str) -> bool {
    let folded = capped(line, DESCRIPTION_CHARS_MAX).to_ascii_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| folded.contains(word));
    let names = has(&["auth", "key", "token", "signature", "header"]);
    let names_method = || line.split_whitespace().take(SENTENCES_MAX).any(address::is_method);
    let is_about_needs = has(NEEDS) && (is_limited(&folded) || names_method());
    // "API key not required." is not a condition.
    names && (is_about_needs && !says_calls_are_open(line) || has(&["/.well-known/oauth-"]))
}

/// The credentials that a labelled line states for its section: `Auth: API key`.
pub(super) fn labelled(line: &str) -> CapabilityAuth {
    let value = label_of_auth(line).map(|value| capped(value, NAME_CHARS_MAX));
    let mut needed = lenient::required_by(&lenient::auth_in_words(value));
    needed.schemes.retain(|scheme| *scheme != AuthScheme::None);
    match value.and_then(lenient::optional_in) {
        Some(Optional::All) => needed.required = Tristate::No,
        Some(Optional::Part) => needed = CapabilityAuth::default(),
        None => {}
    }
    needed
}

/// The value of a line with a label for credentials: `- **Auth:** API key`.
pub(super) fn label_of_auth(line: &str) -> Option<&str> {
    let (label, value) = line.trim_start_matches(['-', '*', '+', ' ']).split_once(':')?;
    let label = label.trim_matches(['*', ' ']);
    let is_known =
        ["auth", "authentication", "authorization"].iter().any(|known| label.eq_ignore_ascii_case(known));
    is_known.then_some(value)
}

/// Words about who authenticates callers in place of the service: "Authentication is handled by the ingress".
pub(super) const HANDLED: &str = " handled by ";

/// Whether a line below a heading begins with a sentence that only says that no credentials are needed: "No auth required.", `- Free, no
/// API key needed`.
pub(super) fn says_calls_are_open(line: &str) -> bool {
    const BESIDE: &[&str] = &["", "free", "public", "open", "open access", "free and open"];
    let words = line.trim_start_matches(['-', '*', '+', '>', ' ']);
    if words.len() > NAME_BYTES_MAX {
        return false;
    }
    let folded = words.to_ascii_lowercase();
    let sentence = folded.split(". ").next().unwrap_or_default();
    let clauses = || {
        sentence
            .split([',', ';', '(', ')', '\u{2014}'])
            .map(|clause| clause.trim_matches(['.', '*', ' ', '!']))
    };
    let is_beside = |clause: &str| {
        BESIDE.contains(&clause)
            || clause.starts_with("no ")
            || clause.starts_with("authentication") && clause.contains(HANDLED)
            || lenient::is_open_clause(clause)
    };
    clauses().any(lenient::is_open_clause) && clauses().all(is_beside)
}

/// The credentials that the calls of a section need, according to a sentence above them: "Requires a bearer token.", "Send `X-Api-Key:
/// KEY`."
pub(super) fn required_in(line: &str) -> CapabilityAuth {
    const BEGINNINGS: &[&str] =
        &["requires ", "require ", "send ", "pass ", "authenticate with ", "use a bearer ", "use an api key"];
    let folded = capped(line, NAME_CHARS_MAX).to_ascii_lowercase();
    if !BEGINNINGS.iter().any(|start| folded.starts_with(start)) {
        return CapabilityAuth::default();
    }
    let stated = in_sentence(capped(line, NAME_CHARS_MAX), LinePosition::Auth);
    let stated = stated.filter(|auth| !matches!(auth.scheme, AuthScheme::None | AuthScheme::Payment));
    lenient::required_by(&Vec::from_iter(stated))
}

/// Whether a line names a credential.
pub(super) fn names_credential(line: &str) -> bool {
    let folded = capped(line, DESCRIPTION_CHARS_MAX).to_ascii_lowercase();
    ["api key", "api-key", "bearer", "authorization", "oauth"].iter().any(|name| folded.contains(name))
}

fn in_sentence(sentence: &str, place: LinePosition) -> Option<Auth> {
    let folded = sentence.to_ascii_lowercase();
    if says_open(&folded, place) {
        return Some(Auth::new(AuthScheme::None));
    }
    if requires_payment(&folded) {
        return Some(Auth::new(AuthScheme::Payment));
    }
    let names_method = || sentence.split_whitespace().take(SENTENCES_MAX).any(address::is_method);
    if is_limited(&folded)
        || names_method()
        || names_part(sentence)
        || (place != LinePosition::Auth && !is_about_all(&folded))
    {
        return None;
    }
    let has = |words: &[&str]| words.iter().any(|word| folded.contains(word));
    if has(&["authorization: bearer"]) {
        return Some(in_header(AuthScheme::Bearer, "Authorization"));
    }
    if !has(NEEDS) && !folded.starts_with("oauth") {
        return None;
    }
    if has(&["bearer token", "bearer auth"]) {
        let is_in_header = has(&["authorization header", "authorization` header"]);
        let named = is_in_header.then(|| in_header(AuthScheme::Bearer, "Authorization"));
        return Some(named.unwrap_or_else(|| Auth::new(AuthScheme::Bearer)));
    }
    if let Some(name) = parameter(sentence) {
        let (location, name) = (Some("query".to_owned()), Some(name.to_owned()));
        return Some(Auth { location, name, ..Auth::new(AuthScheme::ApiKey) });
    }
    if let Some(shown) = sentence.split('`').skip(1).step_by(2).take(SENTENCES_MAX).find_map(header_line) {
        return Some(shown);
    }
    if let Some(at) = folded.find("api key").filter(|at| !is_of_another(sentence, *at)) {
        let header = lenient::header_in(sentence).map(|name| in_header(AuthScheme::ApiKey, name));
        return Some(header.unwrap_or_else(|| Auth::new(AuthScheme::ApiKey))).filter(|_| at < NAME_BYTES_MAX);
    }
    let at = folded.find("oauth 2").or_else(|| folded.find("oauth2"))?;
    (!is_of_another(sentence, at)).then(|| Auth::new(AuthScheme::OAuth2))
}

/// The scheme whose name is the first cell of a row: `` | `api_key` | API key in `X-Shop-Key` header | ``.
pub(super) fn scheme_of_row(line: &str) -> Option<Auth> {
    let mut cells = line.strip_prefix('|')?.split('|').map(|cell| cell.trim_matches([' ', '*']));
    let name = cells.next()?.strip_prefix('`')?.strip_suffix('`')?;
    let remark = capped(cells.next()?, DESCRIPTION_CHARS_MAX);
    let is_word =
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
    let is_signed = || remark.contains("HMAC") || remark.contains("signed") || remark.contains("signature");
    let scheme = match auth::scheme(name) {
        AuthScheme::Other if is_signed() => AuthScheme::HttpSignature,
        AuthScheme::Other => return None,
        known => known,
    };
    let header = match scheme {
        AuthScheme::Bearer => remark.contains("Authorization").then_some("Authorization"),
        AuthScheme::ApiKey | AuthScheme::HttpSignature => lenient::header_in(remark),
        _ => None,
    };
    is_word.then(|| header.map_or_else(|| Auth::new(scheme), |header| in_header(scheme, header)))
}

pub(super) fn in_header(scheme: AuthScheme, name: &str) -> Auth {
    let (location, name) = (Some("header".to_owned()), Some(capped(name, NAME_CHARS_MAX).to_owned()));
    Auth { location, name, ..Auth::new(scheme) }
}

/// The credential of a header in a block of code: `Authorization: Bearer sk_live_…`, `X-Api-Key: …`, with `-H "…"` too.
fn header_line(line: &str) -> Option<Auth> {
    let line = line.trim_start_matches(|letter: char| letter.is_whitespace() || "\"'".contains(letter));
    let header = line.split_once("-H ").map_or(line, |(_, header)| header).trim_start_matches(['"', '\'']);
    let (name, value) = header.split_once(':')?;
    let name = name.trim_matches(['"', '\'']);
    let value = value.trim_start_matches([' ', '"', '\'']);
    if name.eq_ignore_ascii_case("authorization") {
        return value.starts_with("Bearer ").then(|| in_header(AuthScheme::Bearer, "Authorization"));
    }
    let folded = name.to_ascii_lowercase();
    let is_key =
        ["api-key", "apikey", "x-key", "x-auth-token", "x-api-token"].iter().any(|end| folded.ends_with(end));
    let is_plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    (is_key && is_plain).then(|| in_header(AuthScheme::ApiKey, name))
}

/// Whether a sentence says that the whole service needs no credentials. After the introduction, only a sentence about every call counts.
fn says_open(folded: &str, place: LinePosition) -> bool {
    const PAID: &[&str] = &["402", "wallet", "usdc", "payment", "pay "];
    let has = |words: &[&str]| words.iter().any(|word| folded.contains(word));
    let others: &[&str] = &["without ", "free tier", " not ", "n't "];
    let is_limited =
        CONDITIONS.iter().filter(|word| !others.contains(word)).any(|word| folded.contains(word));
    if !["no ", "without ", "not ", "n't ", "unauthenticated", " are "]
        .iter()
        .any(|word| folded.contains(word))
        || is_limited
        || has(PAID)
        || has(&["free tier", " for ", "mcp"])
    {
        return false;
    }
    let says = |clause: &str| {
        let clause = clause.trim_matches(|letter: char| !letter.is_alphanumeric());
        let is_open = lenient::is_open_clause(clause);
        is_open
            || OPEN.iter().any(|open| {
                let rest = clause.strip_prefix(open);
                rest.is_some_and(|rest| {
                    rest.split(|letter: char| !letter.is_alphanumeric()).all(|word| OPEN_ENDS.contains(&word))
                })
            })
    };
    let is_place = matches!(place, LinePosition::Auth | LinePosition::Intro);
    (is_place || is_about_all(folded))
        && folded.split([',', ';', '(', ')', '\u{2014}']).take(SENTENCES_MAX).any(says)
}

/// Whether a sentence in lower case is about every call: "All endpoints …"
pub(super) fn is_about_all(folded: &str) -> bool {
    let words: Vec<String> = text::words(capped(folded, NAME_CHARS_MAX));
    let begins = words.first().is_some_and(|word| SUBJECTS.contains(&word.as_str()));
    begins && words.iter().skip(1).take(2).any(|word| CALLS.contains(&word.as_str()))
}

/// Whether a sentence says that every call must be paid: "All endpoints use the x402 protocol."
fn requires_payment(folded: &str) -> bool {
    let is_of_paid_ones = || SUBJECTS.iter().any(|all| folded.starts_with(&[all, " paid"].concat()));
    let names_scheme = ["x402", "l402"].iter().any(|scheme| folded.contains(scheme));
    names_scheme
        && is_about_all(folded)
        && !is_of_paid_ones()
        && NEEDS.iter().any(|word| folded.contains(word))
        && !is_limited(&folded.replace("paid", ""))
}

/// Whether a sentence in lower case states conditionally, or only for a part of the calls, what a call needs.
pub(super) fn is_conditional(folded: &str) -> bool {
    is_limited(folded)
}

fn is_limited(folded: &str) -> bool {
    let is_part = |lead: &str| {
        folded
            .split(lead)
            .skip(1)
            .take(SENTENCES_MAX)
            .any(|rest| !WHOLES.iter().any(|whole| rest.starts_with(whole)))
    };
    CONDITIONS.iter().any(|word| folded.contains(word)) || PARTS.iter().any(|lead| is_part(lead))
}

/// Whether a sentence is about a call or a tool that it names: `` `book_room` needs a key ``.
fn names_part(sentence: &str) -> bool {
    let is_part = |code: &str| {
        code.starts_with('/')
            || (code.contains('_')
                && !["key", "token", "KEY", "TOKEN"].iter().any(|word| code.contains(word)))
    };
    sentence.split('`').skip(1).step_by(2).take(SENTENCES_MAX).any(is_part)
}

/// Whether the words at a position belong to another service: "an OpenAI API key".
pub(super) fn is_of_another(sentence: &str, at: usize) -> bool {
    let before = sentence.get(..at).unwrap_or_default().trim_end();
    let ends_sentence = before.is_empty() || before.ends_with(['.', ':', '`', '*', '(', '-']);
    let word = before.rsplit(' ').next().unwrap_or_default();
    let is_first = word.len() == before.len();
    !ends_sentence && !is_first && word.starts_with(|letter: char| letter.is_uppercase())
}

/// The query parameter for a key: `api_key` in `?api_key=…`.
fn parameter(sentence: &str) -> Option<&str> {
    let (name, _) = sentence.split_once('?')?.1.split_once('=')?;
    let is_plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    let is_key = || text::words(name).iter().any(|word| matches!(word.as_str(), "key" | "token" | "apikey"));
    (is_plain && name.len() <= NAME_BYTES_MAX && is_key()).then_some(name)
}

/// Reads the OAuth addresses in a line.
fn read_addresses(line: &str, oauth: &mut Auth) {
    let urls = line.split_whitespace().filter(|word| word.contains("://")).take(SENTENCES_MAX);
    for url in urls.filter_map(bare) {
        let place = match url.rsplit('/').next() {
            Some("authorize" | "authorization" | "auth") => &mut oauth.authorize_url,
            Some("token" | "tokens") => &mut oauth.token_url,
            _ => continue,
        };
        *place = place.take().or_else(|| Some(capped(url, URL_BYTES_MAX).to_owned()));
    }
}
