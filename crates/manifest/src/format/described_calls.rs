//! Calls that appear in a JSON document only in sentences, such as descriptions, steps and notes: `then POST /holds with {room, date}`.
//!
//! A call that the document lists is not repeated: the same method at a path that fits, on any host. A path is resolved to the address in
//! the document that ends with it, or else against the base URL. Calls in sentences about responses, and calls after words such as "e.g."
//! or "never", are ignored.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::HashMap;
use std::ops::Range;

use serde_json::{Map, Value};
use url::Url;

use super::call_paths::CallPaths;
use super::listed_calls::{self, Call, path_of};
use crate::address;
use crate::draft::{self, Draft};
use crate::format::outbound::Sentence;
use crate::format::{auth_sentences, described_prices, endpoint, generic, lenient, link_class};
use crate::identity::host_of;
use crate::model::{AppliesTo, Auth, AuthScheme, CapabilityAuth, CapabilityKind, Protocol, Tristate};
use crate::object::Object;
use crate::text;

/// Maximum number of words of one document that are searched for calls, and calls that are compared with the listed ones.
const WORDS_MAX: usize = 10_000;
const TRIES_MAX: usize = 100;
/// Maximum number of characters after a call that are searched for its credential.
const REST_CHARS_MAX: usize = draft::DESCRIPTION_CHARS_MAX;
/// Words before a call that is an example or must not be made.
const DENYING_WORDS: &[&str] =
    &["e.g.", "(e.g.", "example", "example:", "not", "don't", "never", "avoid", "was", "replaces"];

/// Words that may stand between a denying word and its call.
const CALLING_WORDS: &[&str] = &["use", "call", "send", "make", "via"];

/// What the calls of sentences are compared with.
struct Known<'u> {
    /// The base URL of paths.
    base: Option<&'u Url>,
    paths: CallPaths,
    /// The links by their paths, and whether the address of an interface has another protocol than HTTP.
    links: OnceCell<HashMap<String, usize>>,
    interfaces: OnceCell<HashMap<String, bool>>,
}

impl Known<'_> {
    /// The first link with this path.
    fn link_at<'m>(&self, path: &str, draft: &'m Draft<'_>) -> Option<&'m str> {
        let of_links = || {
            let mut positions = HashMap::new();
            for (position, link) in draft.manifest.links.iter().enumerate() {
                positions.entry(path_of(&link.url).to_owned()).or_insert(position);
            }
            positions
        };
        let position = *self.links.get_or_init(of_links).get(path)?;
        draft.manifest.links.get(position).map(|link| link.url.as_str())
    }

    /// Whether the address of an interface has another protocol than HTTP; `None` if no interface has this address.
    fn interface_at(&self, url: &str, draft: &Draft<'_>) -> Option<bool> {
        let of_interfaces = || {
            let mut servers = HashMap::new();
            for interface in &draft.manifest.interfaces {
                let Some(url) = interface.url.clone() else { continue };
                *servers.entry(url).or_insert(false) |= interface.protocol != Protocol::Http;
            }
            servers
        };
        self.interfaces.get_or_init(of_interfaces).get(url).copied()
    }
}

/// Adds the calls that the sentences name.
pub(crate) fn read(sentences: &[Sentence<'_>], root: &Object<'_>, draft: &mut Draft<'_>) {
    if sentences.is_empty() {
        return;
    }
    let described = draft.manifest.links.iter().find(|link| link.rel == "service-desc");
    let host_of_description = described.and_then(|link| Url::parse(&link.url).ok()?.join("/").ok());
    let base = generic::base_of(root, draft).or(host_of_description).or_else(|| home_of_calls(root, draft));
    let mut known = Known {
        base: base.as_ref(),
        paths: CallPaths::default(),
        links: OnceCell::new(),
        interfaces: OnceCell::new(),
    };
    let mut words_left = WORDS_MAX;
    let mut tries_left = TRIES_MAX;
    for (sentence, owner) in sentences {
        let (mut rest, mut before, mut earlier) = (*sentence, "", "");
        // Whether the word continues the list of paths after "Free endpoints:".
        let mut lists_free = false;
        let price = OnceCell::new();
        while let Some((word, after)) = rest.split_once(char::is_whitespace) {
            if word.is_empty() {
                rest = after;
                continue;
            }
            if words_left == 0 || tries_left == 0 || known.paths.is_spent() {
                return;
            }
            words_left -= 1;
            // "never use POST /rooms"
            let denying = if CALLING_WORDS.contains(&before) { earlier } else { before };
            let is_denied = DENYING_WORDS.iter().any(|known| denying.eq_ignore_ascii_case(known));
            let marked = rest.trim_start_matches(['(', '[', '"', '\'']);
            if word.starts_with('/') && !is_denied && !address::is_method(before) {
                lists_free =
                    add_path(word, after, lists_free && before.ends_with([':', ',']), &mut known, draft);
                tries_left -= 1;
            } else {
                lists_free = word.eq_ignore_ascii_case("endpoints:") && before.eq_ignore_ascii_case("free")
                    || (lists_free && word == "and");
            }
            for call in std::iter::successors(
                Call::of(marked).filter(|_| !is_denied && !is_pattern(marked)),
                Call::next,
            )
            .take(tries_left)
            {
                tries_left -= 1;
                let first = draft.manifest.capabilities.len();
                add(&call, &mut known, draft);
                require_shown(&call, first, &mut known, draft);
                if draft.manifest.capabilities.len() > first && is_whole_sentence(before, marked) {
                    inherit(*owner, first, draft);
                }
                for added in draft.manifest.capabilities.iter_mut().skip(first) {
                    let price = || price.get_or_init(|| described_prices::price_after_scheme(sentence));
                    added.price = added.price.take().or_else(|| price().clone());
                }
            }
            (rest, before, earlier) = (after, word, before);
        }
    }
}

/// Maximum number of credentials of one document that are assigned to the calls of texts.
const CREDENTIALS_MAX: usize = 16;
/// Members with the id of an element.
const ID_KEYS: &[&str] = &["id", "name", "tool", "operation", "action"];

/// Whether a call is a sentence of its own in the text of an element, `GET /rooms on api.shop.example.`, and is therefore its call. Other
/// sentences name calls to make before or after it, or free ones.
fn is_whole_sentence(before: &str, call: &str) -> bool {
    let mut words = call.split_whitespace().skip(1);
    let Some(address) = words.next() else { return false };
    let ends = |word: &str| word.ends_with(['.', ';', ')']);
    let begins = before.is_empty() || before.ends_with(['.', ':', ';', ')', '\u{2014}']);
    let rest: Vec<&str> = words.take(3).collect();
    let is_host = |word: &str| word.contains('.') && !word.contains('/');
    begins
        && (ends(address)
            || match rest.as_slice() {
                [] => true,
                ["on" | "at", host] => is_host(host),
                ["on" | "at", host, ..] => is_host(host) && ends(host),
                _ => false,
            })
}

/// Sets the credentials and the price of the calls from `first` on to those of the element whose text names them.
fn inherit(owner: Option<&Map<String, Value>>, first: usize, draft: &mut Draft<'_>) {
    let manifest = &mut draft.manifest;
    let first = first.min(manifest.capabilities.len());
    let (listed, named) = manifest.capabilities.split_at_mut(first);
    let ids = || ID_KEYS.iter().filter_map(|key| owner?.get(*key)?.as_str());
    let Some(element) = listed.iter().find(|known| ids().any(|id| id == known.native_id)) else { return };
    let mut covered: Vec<String> = Vec::new();
    for call in named {
        if call.auth == CapabilityAuth::default() && element.auth.required == Tristate::Yes {
            call.auth.clone_from(&element.auth);
            covered.push(call.native_id.clone());
        }
        if call.price.is_none() {
            call.price.clone_from(&element.price);
            call.other_prices.clone_from(&element.other_prices);
        }
    }
    for auth in manifest.auth.iter_mut().take(CREDENTIALS_MAX) {
        if let AppliesTo::Ids { ids } = &mut auth.applies_to
            && ids.contains(&element.native_id)
        {
            ids.extend(covered.iter().cloned());
        }
    }
}

/// Requires the credential that the words behind a call name: `POST /rooms with 'Authorization: Bearer <key>'`.
fn require_shown(call: &Call<'_>, first: usize, known: &mut Known<'_>, draft: &mut Draft<'_>) {
    let sentence = text::capped(call.rest, REST_CHARS_MAX).split(". ").next().unwrap_or_default();
    let shown = sentence.contains("Authorization: Bearer") && !sentence.contains("ptional");
    if shown && !auth_sentences::is_conditional(&sentence.to_ascii_lowercase()) {
        let added = first..draft.manifest.capabilities.len();
        let named = if added.is_empty() { listed(call, known, draft) } else { added };
        require_bearer(named, draft);
    }
}

/// The capability that is this call, with the same method and a path that fits; an empty range if there is none.
fn listed(call: &Call<'_>, known: &mut Known<'_>, draft: &Draft<'_>) -> Range<usize> {
    let url = address_of(call.address, call, known, draft);
    let position = url.zip(call.methods.first()).and_then(|(url, method)| {
        known.paths.first(path_of(url.as_str()), &draft.manifest.capabilities, is_same, |listed| {
            listed.invocation.method.as_deref() == Some(*method)
        })
    });
    position.map_or(0..0, |position| position..position + 1)
}

/// Last segments of addresses that receive messages and have no paths below them.
const RECEIVING: &[&str] = &[
    "a2a", "mcp", "rpc", "jsonrpc", "api", "agent", "agents", "message", "messages", "tasks", "chat",
    "graphql", "webhook", "invoke",
];

/// The base path that a document names on its own host. An address that receives messages is not a base, and neither is the home page in
/// one language.
fn home_of_calls(root: &Object<'_>, draft: &Draft<'_>) -> Option<Url> {
    let url = Url::parse(root.text("url")?).ok().filter(Url::has_host)?;
    let mut segments = url.path().split('/').filter(|segment| !segment.is_empty()).peekable();
    segments.peek()?;
    let is_folder = segments.all(|segment| {
        let is_version = segment.strip_prefix('v').is_some_and(|rest| rest.parse::<u16>().is_ok());
        !is_version && segment.len() > 1 && !segment.contains('.') && !RECEIVING.contains(&segment)
    });
    let is_language = url.path().trim_matches('/').len() == 2;
    let is_own = url.origin() == draft.base().as_url().origin();
    (is_folder && is_own && !is_language && url.query().is_none()).then_some(url)
}

fn add(call: &Call<'_>, known: &mut Known<'_>, draft: &mut Draft<'_>) {
    for published in alternatives(call.address) {
        add_at(&published, call, known, draft);
    }
}

/// Adds a path that is a call because its price follows in brackets, or because it is in a list of free endpoints. Returns whether the list
/// continues.
fn add_path(word: &str, after: &str, is_free: bool, known: &mut Known<'_>, draft: &mut Draft<'_>) -> bool {
    let path = word.trim_end_matches([',', '.', ';', ':', ')']);
    let remark = listed_calls::remark(after).filter(|_| path.len() == word.len());
    // Paths with other prices may be product pages.
    let in_dollars = remark.as_deref().filter(|remark| remark.starts_with('$'));
    let price = in_dollars.and_then(listed_calls::price_in).filter(|_| path.matches('/').count() > 1);
    let price = price.or_else(|| is_free.then(|| lenient::price(&"free".into())).flatten());
    let class = link_class::classify(path);
    let is_call = price.is_some() && path.len() > 1 && class.rel == "page" && class.follow.is_none();
    let address = listed_calls::resolve(path, known.base, draft).filter(|_| is_call && !draft.is_full());
    let new = address.filter(|address| {
        let listed =
            known.paths.first(path_of(address.as_str()), &draft.manifest.capabilities, is_same, |_| true);
        listed.is_none() && !known.paths.is_spent()
    });
    if let Some(address) = new {
        let mut capability = draft.capability(CapabilityKind::Operation, path, path, String::new());
        endpoint::set(&mut capability, address);
        capability.price = price;
        draft.push(capability);
    }
    is_free && word.ends_with(',')
}

/// Whether the address after a method is an address pattern: `GET /oauth/*`.
fn is_pattern(call: &str) -> bool {
    let address = call.split_whitespace().nth(1).unwrap_or_default();
    address::is_pattern(address.trim_end_matches(['`', '"', '\'', ',', '.', ';', ')', ']']))
}

/// Maximum number of addresses into which one text is expanded; published texts have up to three.
const ALTERNATIVES_MAX: usize = 8;
/// Names of variables that may share one path segment (RFC 6570): `/points/{lat,lon}`.
const COORDINATES: &[&str] = &["lat", "latitude", "lon", "lng", "long", "longitude", "x", "y", "z"];

/// The addresses of a text whose segment lists several words: `/api/{security,yield}` is `/api/security` and `/api/yield`.
fn alternatives(address: &str) -> Vec<Cow<'_, str>> {
    let listed = || {
        let (before, rest) = address.split_once('{')?;
        let (words, after) = rest.split_once('}')?;
        let is_segment = before.ends_with('/') && (after.is_empty() || after.starts_with('/'));
        let words: Vec<&str> = words.split(',').collect();
        let is_word = |word: &&str| {
            let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
            !word.is_empty() && word.bytes().all(is_plain) && !COORDINATES.contains(word)
        };
        let is_list =
            is_segment && (2..=ALTERNATIVES_MAX).contains(&words.len()) && words.iter().all(is_word);
        is_list.then(|| words.iter().map(|word| Cow::Owned([before, word, after].concat())).collect())
    };
    listed().unwrap_or_else(|| vec![Cow::Borrowed(address)])
}

fn add_at(published: &str, call: &Call<'_>, known: &mut Known<'_>, draft: &mut Draft<'_>) {
    let Some(url) = address_of(published, call, known, draft) else { return };
    let class = link_class::classify(url.as_str());
    // The base URL of an API can be called too.
    let is_interface = known.interface_at(url.as_str(), draft) == Some(true);
    let is_server = is_interface || class.rel == "mcp" || class.follow.is_some();
    if is_server || url.as_str().contains("/.well-known/") {
        return;
    }
    let remark = listed_calls::remark(call.rest);
    for method in &call.methods {
        if draft.is_full() || is_listed(method, url.as_str(), known, draft) {
            continue;
        }
        let name = [method, published].join(" ");
        let mut capability = draft.capability(CapabilityKind::Operation, &name, &name, String::new());
        endpoint::set_call(&mut capability, method, url.clone());
        capability.description = draft::description(remark.as_deref());
        capability.price = remark.as_deref().and_then(listed_calls::price_in);
        capability.parameters = call.body();
        draft.push(capability);
    }
}

/// The address of a call: on the host that the next words name (`GET /rates on api.shop.example`), the address in the document that ends
/// with the path, or below the base.
fn address_of(
    published: &str,
    call: &Call<'_>,
    known: &Known<'_>,
    draft: &Draft<'_>,
) -> Option<address::Address> {
    if !published.starts_with('/') {
        return listed_calls::resolve(published, None, draft);
    }
    let mut words = call.rest.split_whitespace();
    let is_led = matches!(words.next(), Some("on" | "at"));
    let host = words.next().filter(|_| is_led).map(|word| word.trim_matches(['`', '.', ',', ';', ')']));
    let is_host = |word: &&str| word.contains('.') && !word.contains('/') && host_of(word).is_some();
    if let Some(base) = host.filter(is_host).and_then(|host| Url::parse(&["https://", host].concat()).ok()) {
        return listed_calls::resolve(published, Some(&base), draft);
    }
    if let Some(url) = known.link_at(published, draft) {
        return address::on_origin(draft.base(), url);
    }
    let base = known.base;
    // A path may repeat the path of the base.
    let root = base.filter(|base| below(published, base.path())).and_then(|base| base.join("/").ok());
    listed_calls::resolve(published, root.as_ref().or(base), draft)
}

/// Whether a path begins with the path of a base that is not `/`.
fn below(path: &str, base: &str) -> bool {
    let base = base.trim_end_matches('/');
    !base.is_empty() && path.strip_prefix(base).is_some_and(|rest| rest.starts_with('/'))
}

/// Whether a capability has the same method, or no method, at a matching path.
fn is_listed(method: &str, url: &str, known: &mut Known<'_>, draft: &Draft<'_>) -> bool {
    // Many APIs have the same base path.
    let (is_base, path) = (known.interface_at(url, draft).is_some(), path_of(url));
    let url = url.trim_end_matches('/');
    let listed = known.paths.first(path, &draft.manifest.capabilities, is_same, |listed| {
        let has_method = listed.invocation.method.as_deref().is_none_or(|listed| listed == method);
        let is_at = |listed: &str| !is_base || listed.trim_end_matches('/') == url;
        has_method && listed.invocation.endpoint().is_some_and(is_at)
    });
    listed.is_some() || known.paths.is_spent()
}

/// Whether a segment of a path matches that of a listed call. Variables match each other.
fn is_same(listed: &str, own: &str) -> bool {
    listed == own || listed.starts_with('{')
}

/// Requires a bearer token for those of these calls that have no other statement.
fn require_bearer(calls: Range<usize>, draft: &mut Draft<'_>) {
    let calls = draft.manifest.capabilities.get_mut(calls).unwrap_or_default();
    let mut ids: Vec<String> = Vec::new();
    for call in calls.iter_mut().filter(|call| call.auth == CapabilityAuth::default()) {
        call.auth.required = Tristate::Yes;
        call.auth.schemes.push(AuthScheme::Bearer);
        ids.push(call.native_id.clone());
    }
    if ids.is_empty() {
        return;
    }
    match draft.manifest.auth.iter_mut().find(|known| known.scheme == AuthScheme::Bearer) {
        Some(known) => known.applies_to.add_ids(ids),
        None => draft.keep(Auth {
            applies_to: AppliesTo::Ids { ids },
            ..auth_sentences::in_header(AuthScheme::Bearer, "Authorization")
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_of_listed_paths_fit_with_their_variables() {
        assert!(is_same("{id}", "7"));
        assert!(is_same("rooms", "rooms"));
        assert!(!is_same("all", "{id}"));
        assert_eq!(path_of("https://a.example/rooms/?n=1"), "/rooms");
        assert_eq!(path_of("https://a.example"), "");
        assert_eq!(path_of("https://a.example/?n=/b"), "");
    }
}
