//! Calls in texts: in lists (`- GET /api/jobs — browse jobs`, `- Jobs: GET /api/jobs`, `- [Book](/api/bookings): POST`) and in
//! sentences (`POST /agents (5 USDC)`).

use std::ops::Range;

use serde_json::{Map, Value};
use url::Url;

use super::call_prices::{CURRENCY_SIGNS, price_behind};
use crate::address::{self, Address};
use crate::draft::{self, Draft};
use crate::format::link_class;
use crate::format::{addresses, endpoint, lenient, query_parameters};
use crate::model::{Capability, CapabilityKind, Payment, Tristate};
use crate::schema::{Location, Parameters, Presence};
use crate::text;

/// Maximum number of calls of one text that are read.
const CALLS_MAX: usize = 500;
/// Maximum number of words of the remark after a call, and maximum number of its characters that are searched for its end.
const REMARK_WORDS_MAX: usize = 20;
const REMARK_CHARS_MAX: usize = draft::DESCRIPTION_CHARS_MAX;
/// Maximum number of members of the body that a sentence shows; published ones show up to 6.
const BODY_MEMBERS_MAX: usize = 32;
/// Maximum length in bytes of the label of a call.
const LABEL_BYTES_MAX: usize = 100;

/// A call as published.
pub(crate) struct Call<'t> {
    pub(crate) methods: Vec<&'t str>,
    pub(crate) address: &'t str,
    /// The text after the address.
    pub(crate) rest: &'t str,
    /// A comma follows the address.
    has_comma: bool,
}

impl<'t> Call<'t> {
    /// The call that a text begins with: one method or several, then an address.
    pub(crate) fn of(text: &'t str) -> Option<Self> {
        let (methods, rest) = text.trim_start_matches(is_mark).split_once(char::is_whitespace)?;
        let methods = methods.trim_matches(is_mark).trim_end_matches([':', '*']);
        let methods: Vec<&str> = methods.split(['/', '|']).collect();
        let rest = rest.trim_start();
        let rest = rest.strip_prefix("to ").unwrap_or(rest);
        let word = rest.split_whitespace().next()?;
        let address = call_address(word);
        let is_address =
            address.starts_with('/') || address.starts_with("https://") || address::names_host(address);
        let is_call =
            is_address && !is_wildcard(word) && methods.iter().all(|method| address::is_method(method));
        let has_comma = word.trim_matches(is_mark).ends_with([',', ';']);
        let rest = rest.get(word.len()..).unwrap_or_default();
        is_call.then_some(Self { methods, address, rest, has_comma })
    }

    /// The call in a sentence that names what is sent before the address: `POST your listing to https://shop.example/api/register`.
    fn sending(text: &'t str) -> Option<Self> {
        let (method, sentence) = text.trim_start_matches(is_mark).split_once(char::is_whitespace)?;
        if !matches!(method, "POST" | "PUT" | "PATCH" | "DELETE") {
            return None;
        }
        let mut words = sentence.split_whitespace().take(WORDS_BEFORE_ADDRESS_MAX + 2);
        words.find(|word| *word == "to")?;
        let word = words.next()?;
        let address = call_address(word);
        let is_address = address.starts_with("https://") || (address.len() > 1 && address.starts_with('/'));
        let is_call = is_address && !is_wildcard(word);
        is_call.then(|| Self { methods: vec![method], address, rest: sentence, has_comma: false })
    }

    /// The next call of a list: `POST /a` in `GET /a, POST /a`, or the same methods at the next address: `/rooms` in `GET /halls or
    /// /rooms`, `GET /halls, /rooms`.
    pub(crate) fn next(&self) -> Option<Self> {
        let rest = self.rest.trim_start_matches([' ', '`']);
        let joined = ["or ", "and ", ", ", "; ", "| "].iter().find_map(|word| rest.strip_prefix(word));
        let listed = joined.or_else(|| Some(rest).filter(|_| self.has_comma));
        listed.and_then(Self::of).or_else(|| self.at_next_address())
    }

    /// The call of an address whose remark ends with the method: `https://shop.example/api/rooms — free rooms (GET)`.
    fn with_method_at_end(item: &'t str) -> Option<Self> {
        let (before, method) = item.trim().strip_suffix(')')?.rsplit_once('(')?;
        let (word, rest) = before.split_once(char::is_whitespace)?;
        let address = call_address(word);
        let is_address = address.starts_with('/') || address.starts_with("https://");
        let is_call = is_address && !is_wildcard(word) && address::is_method(method);
        is_call.then(|| Self { methods: vec![method], address, rest, has_comma: false })
    }

    fn at_next_address(&self) -> Option<Self> {
        // After an absolute URL, the next path may be relative to the root of its host or a sibling of its path.
        if !self.address.starts_with('/') {
            return None;
        }
        let rest = self.rest.trim_start();
        let joined = ["or ", "and "].iter().find_map(|word| rest.strip_prefix(word)).map(str::trim_start);
        let rest = joined.or_else(|| Some(rest).filter(|_| self.has_comma))?;
        let word = rest.split_whitespace().next()?;
        let bare = word.trim_matches(is_mark);
        let address = call_address(word);
        (address.len() > 1 && address.starts_with('/')).then(|| Self {
            methods: self.methods.clone(),
            address,
            rest: rest.get(word.len()..).unwrap_or_default(),
            has_comma: bare.ends_with(','),
        })
    }

    /// The call of an item whose method follows the link, at the address of the link: `[Book](/api/bookings): POST with a date`.
    fn after_link(item: &'t str) -> Option<(&'t str, &'t str, Self)> {
        let (title, after) = item.trim_start_matches(is_mark).strip_prefix('[')?.split_once("](")?;
        let (address, behind) = after.split_once(')')?;
        let behind = behind.trim_start_matches(REMARK_MARKS);
        let is_address = address.starts_with('/') || address.starts_with("https://");
        let call = Self::of(behind).or_else(|| {
            let (word, rest) = behind.split_once(char::is_whitespace).unwrap_or((behind, ""));
            let word = word.trim_end_matches([':', ',', '.', ';']).trim_matches(is_mark);
            let methods: Vec<&str> = word.split(['/', '|']).collect();
            let is_call = is_address && methods.iter().all(|method| address::is_method(method));
            is_call.then_some(Self { methods, address, rest, has_comma: false })
        })?;
        (title.len() <= LABEL_BYTES_MAX).then_some((title, address, call))
    }

    /// The call of an item that states its method in brackets after the address: `/rooms/{id} (GET): one room`, `/pay (POST, JSON)`.
    fn before_method(item: &'t str) -> Option<Self> {
        let (word, rest) = item.trim_start_matches(is_mark).split_once(char::is_whitespace)?;
        let address = call_address(word);
        let (methods, rest) = rest.trim_start().strip_prefix('(')?.split_once(')')?;
        let named = methods.split(['/', '|', ',']).map(str::trim);
        let methods: Vec<&str> = named.take_while(|method| address::is_method(method)).collect();
        let is_address = address.starts_with('/') || address.starts_with("https://");
        let is_call = is_address && !methods.is_empty() && !is_wildcard(word);
        is_call.then_some(Self { methods, address, rest, has_comma: false })
    }

    /// The members of the request body after a call that writes: `with JSON {"name", "date"}`.
    pub(crate) fn body(&self) -> Option<Value> {
        let writes = self.methods.iter().any(|method| matches!(*method, "POST" | "PUT" | "PATCH"));
        let rest = self.rest.trim_start().strip_prefix("with ").filter(|_| writes)?;
        let (before, after) = rest.split_once('{')?;
        let (inner, _) = after.split_once('}')?;
        let is_near = before.split_whitespace().all(|word| {
            matches!(word.trim_matches(is_mark), "" | "a" | "JSON" | "json" | "body" | "the" | "payload")
        });
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "_-".contains(letter);
        let name = |member: &'t str| {
            let name = member.split(':').next()?.trim().trim_matches(['"', '\'', '?', '`']);
            (!name.is_empty() && name.chars().all(is_plain)).then_some(name)
        };
        let names: Option<Vec<&str>> = inner.split(',').take(BODY_MEMBERS_MAX).map(name).collect();
        let mut parameters = Parameters::default();
        for name in names.filter(|_| is_near)? {
            let schema = Map::from_iter([("type".to_owned(), Value::from("string"))]);
            parameters.add(name, schema, Location::Body, Presence::Optional);
        }
        parameters.finish()
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

/// Maximum number of words between the method and "to" in a sentence that names a call.
const WORDS_BEFORE_ADDRESS_MAX: usize = 8;

/// The address in a word, without the punctuation around it and without a last value that is truncated: `/tokens?address=` of
/// `/tokens?address=0x...`.
fn call_address(word: &str) -> &str {
    let marked = word.trim_matches(is_mark).trim_end_matches([':', ',', ';', ')']).trim_end_matches(is_mark);
    let is_cut = marked.ends_with("...") || marked.ends_with('\u{2026}');
    let value =
        marked.rfind('=').filter(|at| is_cut && marked.get(..*at).is_some_and(|path| path.contains('?')));
    let whole = value.and_then(|at| marked.get(..=at));
    whole.unwrap_or_else(|| marked.trim_end_matches([':', ',', '.', ';', ')']).trim_end_matches(is_mark))
}

pub(super) fn is_mark(letter: char) -> bool {
    letter.is_whitespace() || "*`".contains(letter)
}

/// Reads a line, an item of a list or a row of a table that is a call, and returns whether it is one. A path is below the base URL of the
/// text, else on the origin. Addresses of MCP servers and of manifests are read as links.
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
        let (label, call) = item.split_once(':').filter(|(label, _)| label.len() <= LABEL_BYTES_MAX)?;
        let in_brackets = || Call::before_method(call).filter(|_| item.len() < line.len());
        let call = Call::of(call).or_else(|| Call::sending(call)).or_else(in_brackets)?;
        Some((Some(label.trim_matches(is_mark)).filter(|label| !label.is_empty()), call))
    };
    // `**Register** — POST /register — an account`, `Rooms → GET /rooms`, `**Rooms** (`GET /rooms`): free ones`.
    let led = || {
        let (label, call) =
            LEADS.iter().filter_map(|lead| item.split_once(lead)).min_by_key(|(label, _)| label.len())?;
        let label = label.trim_matches(is_mark);
        let is_label = !label.is_empty() && label.len() <= LABEL_BYTES_MAX && !label.contains(['/', '[']);
        Some((Some(label), Call::of(call)?)).filter(|_| is_label)
    };
    let is_item = item.len() < line.len() && row.is_none();
    let after_link = || Call::after_link(item).map(|(title, _, call)| (Some(title), call));
    let home = Call::after_link(item).and_then(|(_, address, _)| home_of(address)).filter(|_| is_item);
    let base = home.as_ref().or(base);
    // In a line that is not an item, the text before a call is its label only if a remark follows. The label of a call without a remark
    // announces an example.
    let is_labelled = |call: &Call<'_>| is_item || !call.rest.trim().is_empty();
    let call = Call::of(item)
        .map(|call| (None, call))
        .or_else(|| after_link().filter(|_| is_item))
        .or_else(|| Some((None, Call::before_method(item).filter(|_| is_item)?)))
        .or_else(|| Some((None, Call::with_method_at_end(item).filter(|_| is_item)?)))
        .or_else(|| labelled().filter(|(label, call)| is_labelled(call) && !is_example(*label)))
        .or_else(|| led().filter(|(label, _)| is_item && !is_example(*label)));
    let Some((label, call)) = call else {
        return (is_item && read_pattern(item, base, draft)) || read_endpoints(item, base, draft);
    };
    // A line with only a call is the first line of an example request, unless it is marked as code.
    let remark = call.rest.trim();
    let is_code = line.len() > 2 && line.starts_with('`') && line.ends_with('`');
    if !is_item && row.is_none() && ((remark.is_empty() && !is_code) || remark.starts_with("HTTP/")) {
        return false;
    }
    let class = link_class::classify(call.address);
    if (class.rel == "mcp" && !is_below_another(call.address)) || class.follow.is_some() {
        return false;
    }
    let calls: Vec<Call<'_>> = std::iter::successors(Some(call), Call::next).take(CALLS_MAX).collect();
    let last = calls.last();
    let described = last.map(|call| call.rest.trim_start_matches(REMARK_MARKS));
    let is_remark = |text: &String| !text.starts_with("HTTP/") && text.contains(char::is_alphanumeric);
    let described = draft::description(described).filter(is_remark);
    let body = last.and_then(Call::body);
    let price = last.and_then(|call| price_behind(call.rest));
    let set = |capability: &mut Capability| {
        capability.description.clone_from(&described);
        let is_query = || matches!(capability.invocation.method.as_deref(), Some("GET" | "HEAD" | "DELETE"));
        let query = || described.as_deref().filter(|_| is_query()).and_then(query_parameters::parameters_in);
        capability.parameters = body.clone().or_else(query);
        capability.price.clone_from(&price);
    };
    // The label of several calls belongs to the group.
    let is_open = label.is_some_and(|label| label.eq_ignore_ascii_case("public")) && calls.len() > 1;
    let first = draft.manifest.capabilities.len();
    for call in &calls {
        call.push(label.filter(|_| calls.len() == 1), base, set, draft);
    }
    for call in draft.manifest.capabilities.iter_mut().skip(first).filter(|_| is_open) {
        call.auth.required = Tristate::No;
    }
    true
}

/// Whether the path of a call is a pattern for several: `/api/keys/*`.
fn is_wildcard(word: &str) -> bool {
    let path = word.trim_matches(['`', ',', ';', '.', ':', ')']);
    path.ends_with("/*") || path.contains("/*/")
}

/// The origin of a home page, to which the paths after its link belong: `[Data API](https://data.shop.example): POST /rooms`.
fn home_of(address: &str) -> Option<Url> {
    Url::parse(address).ok().filter(|url| url.has_host() && url.path() == "/" && url.query().is_none())
}

/// Whether the last segment of a call's path, such as `mcp`, follows another word. It is then the subject of the call (`POST
/// /v1/scan/mcp`), not a server.
fn is_below_another(address: &str) -> bool {
    let path = if address.starts_with('/') { address } else { path_of(address) };
    let above = path.trim_end_matches('/').rsplit('/').nth(1).unwrap_or_default();
    !above.is_empty() && !is_version(Some(above)) && !SERVER_FOLDERS.contains(&above)
}

/// Segments that may precede the last segment of an MCP server.
const SERVER_FOLDERS: &[&str] =
    &["api", "agent", "agents", "ai", "public", "rpc", "server", "servers", "service", "services"];
/// Whether a label announces an example.
fn is_example(label: Option<&str>) -> bool {
    label.is_some_and(|label| label.contains("xample") || label.contains("e.g"))
}

/// Reads an item that is a path with a variable and a remark (`/rooms/[id] — one room`): a pattern of calls, not a page.
fn read_pattern(item: &str, base: Option<&Url>, draft: &mut Draft<'_>) -> bool {
    let item = item.trim_start_matches(is_mark);
    let (path, remark) = item.split_once(char::is_whitespace).unwrap_or((item, ""));
    let path = path.trim_end_matches(is_mark);
    let has_variable = ["/[", "/{", "/:", "={"].iter().any(|start| path.contains(start));
    let remark = remark.trim_start_matches(REMARK_MARKS);
    if !path.starts_with('/')
        || !has_variable
        || remark.is_empty()
        || draft.manifest.capabilities.len() >= CALLS_MAX
    {
        return false;
    }
    let Some(template @ Address::Template(_)) = resolve(path, base, draft) else { return false };
    let mut capability = draft.capability(CapabilityKind::Operation, path, path, String::new());
    capability.description = draft::description(Some(remark));
    endpoint::set(&mut capability, template);
    draft.push(capability);
    true
}

/// Separators between a label and the call after it.
const LEADS: &[&str] = &[" \u{2014} ", " \u{2013} ", " - ", " \u{2192} ", " -> ", " ("];

/// Reads a heading that is a call or ends with one in brackets: `### GET /rooms`, `### Book (POST /bookings)`.
pub(crate) fn read_heading(line: &str, base: Option<&Url>, draft: &mut Draft<'_>) -> bool {
    let heading = line.trim_start_matches('#').trim();
    heading.contains('/') && heading.len() <= NAME_BYTES_MAX && read(&["- ", heading].concat(), base, draft)
}

/// Maximum bytes of a heading that may be a call.
const NAME_BYTES_MAX: usize = 400;

/// Separators between a call and the remark after it.
pub(super) const REMARK_MARKS: [char; 9] = [' ', '-', '\u{2014}', '\u{2013}', ':', '*', '`', '\u{2192}', ')'];

/// A line without its list marker or number.
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

/// Reads an item that is a path with a remark below a heading about an API, `- /rooms — all rooms`, and returns whether it is one.
/// Documents and paths below `.well-known` are links.
pub(crate) fn read_path(line: &str, base: Option<&Url>, draft: &mut Draft<'_>) -> bool {
    let item = item_of(line).trim_start_matches(is_mark);
    let (path, remark) = item.split_once(char::is_whitespace).unwrap_or((item, ""));
    let path = path.trim_end_matches([':', '*', '`']);
    let remark = remark.trim_start_matches(REMARK_MARKS);
    let is_document =
        path.rsplit('/').next().is_some_and(|file| file.contains('.')) || path.contains("/.well-known/");
    let is_item = line.starts_with(['-', '*', '+']) && path.len() > 1 && path.starts_with('/');
    let is_call = is_item && !is_document;
    if is_item && is_source_file(path) && !remark.is_empty() {
        addresses::keep(&addresses::LinkInText { title: Some(remark), address: path }, draft);
        return false;
    }
    if !is_call || remark.is_empty() || link_class::classify(path).rel != "page" {
        return false;
    }
    let address = resolve(path, base, draft).filter(|_| draft.manifest.capabilities.len() < CALLS_MAX);
    let Some(address) = address else { return false };
    let mut capability = draft.capability(CapabilityKind::Operation, path, path, String::new());
    capability.description = draft::description(Some(remark));
    capability.auth.required = lenient::required_by(&lenient::auth_in_words([remark])).required;
    endpoint::set(&mut capability, address);
    draft.push(capability);
    true
}

/// Whether a path has the extension of a source file. Some sites list their routes this way.
fn is_source_file(path: &str) -> bool {
    [".ts", ".tsx", ".js", ".py", ".go", ".rs", ".php"].iter().any(|ending| path.ends_with(ending))
}

/// Reads a line whose label ends with "endpoints" and whose words are paths: `Free-endpoints: /rooms /rooms/:id`.
fn read_endpoints(item: &str, base: Option<&Url>, draft: &mut Draft<'_>) -> bool {
    let is_label = |label: &str| {
        let end = label.len().checked_sub("endpoints".len()).and_then(|at| label.get(at..));
        label.len() <= LABEL_BYTES_MAX && end.is_some_and(|end| end.eq_ignore_ascii_case("endpoints"))
    };
    let Some((label, listed)) = item.split_once(':').filter(|(label, _)| is_label(label)) else {
        return false;
    };
    let is_call = |path: &str| link_class::classify(path).rel == "page";
    if paths(listed).count() < 2 || !paths(listed).all(is_call) {
        return false;
    }
    read_paths(listed, text::words(label).iter().any(|word| word == "free"), base, draft)
}

fn paths(listed: &str) -> impl Iterator<Item = &str> {
    let is_mark = |letter: char| letter.is_whitespace() || matches!(letter, ',' | '|');
    listed.split(is_mark).filter(|path| !path.is_empty()).take(CALLS_MAX)
}

/// Reads paths that are listed without methods, and returns whether the text contains nothing else.
pub(crate) fn read_paths(listed: &str, is_free: bool, base: Option<&Url>, draft: &mut Draft<'_>) -> bool {
    let is_path = |path: &str| path.len() > 1 && path.starts_with('/');
    if paths(listed).next().is_none() || !paths(listed).all(is_path) {
        return false;
    }
    for path in paths(listed) {
        let address = resolve(path, base, draft).filter(|_| draft.manifest.capabilities.len() < CALLS_MAX);
        let Some(address) = address else { continue };
        let mut capability = draft.capability(CapabilityKind::Operation, path, path, String::new());
        endpoint::set(&mut capability, address);
        capability.price = is_free.then(|| lenient::price(&"free".into())).flatten();
        draft.push(capability);
    }
    true
}

/// The words in brackets at the start of a text.
pub(crate) fn remark(text: &str) -> Option<String> {
    let inner = text.trim_start().strip_prefix('(')?;
    let (remark, _) = text::capped(inner, REMARK_CHARS_MAX).split_once(')')?;
    let is_short = remark.split_whitespace().count() <= REMARK_WORDS_MAX;
    is_short.then(|| text::capped(remark, draft::NAME_CHARS_MAX).to_owned())
}

/// The price at the start of the words in brackets after a call.
pub(crate) fn price_in(remark: &str) -> Option<Payment> {
    let price = remark.split(',').next().filter(|words| is_price(words))?;
    lenient::price(&price.into())
}

pub(super) fn is_price(words: &str) -> bool {
    let words = words.trim();
    words.starts_with(CURRENCY_SIGNS)
        || (words.starts_with(|letter: char| letter.is_ascii_digit())
            && words
                .split_whitespace()
                .nth(1)
                .is_some_and(|unit| unit.bytes().all(|b| b.is_ascii_uppercase())))
}

/// The address of a path below a base or on the origin, or of an absolute URL.
pub(crate) fn resolve(published: &str, base: Option<&Url>, draft: &Draft<'_>) -> Option<Address> {
    let published = &*address::with_scheme(published);
    match base.filter(|_| published.starts_with('/')) {
        // `/v1/rooms` is not below the base `https://api.shop.example/v2`, but on the same host.
        Some(base)
            if is_version(base.path().trim_end_matches('/').rsplit('/').next())
                && is_version(published.split('/').nth(1)) =>
        {
            address::resolve(base, published)
        }
        Some(base) => address::resolve(base, &address::below(base, published)),
        None => address::on_origin(draft.base(), published),
    }
}

/// Whether a segment of a path is the version of an API.
fn is_version(segment: Option<&str>) -> bool {
    segment.and_then(|segment| segment.strip_prefix('v')).is_some_and(|rest| rest.parse::<u16>().is_ok())
}

/// The path of an absolute URL without its query and its last slash.
pub(crate) fn path_of(url: &str) -> &str {
    url.get(path_range(url)).unwrap_or_default()
}

/// The bytes of an absolute URL that are its path without the last slash.
pub(crate) fn path_range(url: &str) -> Range<usize> {
    let host = url.find("://").map_or(0, |at| at + "://".len());
    let from_host = url.get(host..).unwrap_or_default();
    let Some(start) = from_host.find('/').map(|at| host + at) else { return url.len()..url.len() };
    let path = url.get(start..).and_then(|rest| rest.split(['?', '#']).next()).unwrap_or_default();
    start..start + path.trim_end_matches('/').len()
}

/// Whether the endpoint of a call is the address at which a document says that credentials are obtained.
pub(crate) fn is_at(capability: &Capability, address: &str) -> bool {
    let path = if address.starts_with('/') { address.trim_end_matches('/') } else { path_of(address) };
    !path.is_empty() && capability.invocation.endpoint().is_some_and(|endpoint| path_of(endpoint) == path)
}

#[cfg(test)]
mod tests {
    use super::super::call_prices::price_of_heading;
    use super::*;

    #[test]
    fn finds_the_members_of_a_body_after_a_call() {
        let members = |text| {
            let body = Call::of(text)?.body()?;
            Some(body.get("properties")?.as_object()?.keys().cloned().collect::<Vec<_>>())
        };
        assert_eq!(
            members("POST /a with {order, signature}."),
            Some(vec!["order".into(), "signature".into()])
        );
        assert_eq!(members(r#"POST /a with JSON `{ "email": "a@b.example" }`."#), Some(vec!["email".into()]));
        assert_eq!(members("POST /a with the answer {x}"), None);
        assert_eq!(members("GET /a with {x}"), None);
        assert_eq!(members("POST /a with { a b }"), None);
    }

    #[test]
    fn finds_calls_at_further_addresses_in_a_list() {
        let of = |text| {
            let calls: Vec<_> = std::iter::successors(Call::of(text), Call::next).collect();
            let rest = calls.last().map(|call| call.rest);
            (calls.iter().map(|call| call.address).collect::<Vec<_>>(), rest.unwrap_or_default())
        };
        assert_eq!(of("GET /halls or `/rooms`: free ones"), (vec!["/halls", "/rooms"], " free ones"));
        assert_eq!(of("GET /halls, /rooms and /desks"), (vec!["/halls", "/rooms", "/desks"], ""));
        assert_eq!(
            of("GET /halls, POST /rooms; GET /desks | GET /d"),
            (vec!["/halls", "/rooms", "/desks", "/d"], "")
        );
        assert_eq!(of("GET /halls or more"), (vec!["/halls"], " or more"));
        assert_eq!(of("GET /halls /rooms"), (vec!["/halls"], " /rooms"));
        assert_eq!(of("GET api.shop.com/v1/halls or /rooms").0, ["api.shop.com/v1/halls"]);
    }

    #[test]
    fn finds_the_price_after_a_call() {
        let price = |rest| price_behind(rest).and_then(|price| price.price);
        assert_eq!(price(" ($0.01) \u{2014} pairs").as_deref(), Some("$0.01"));
        assert_eq!(price(" \u{2014} $0.02 USDC \u{2014} signal").as_deref(), Some("$0.02 USDC"));
        assert_eq!(price(" - $0.02 per call - signal").as_deref(), Some("$0.02 per call"));
        assert_eq!(price(" (free): status").as_deref(), Some("free"));
        let of_heading = |text| price_of_heading(text).and_then(|price| price.price);
        assert_eq!(of_heading("### A ($0.01 - $0.05 USDC)").as_deref(), Some("$0.01 - $0.05 USDC"));
        assert_eq!(of_heading("### A \u{2014} $0.10 USDC").as_deref(), Some("$0.10 USDC"));
        assert_eq!(of_heading("### 2 rooms"), None);
        assert_eq!(price(": $50 gift cards"), None);
        assert_eq!(price(": 2 rooms"), None);
    }

    #[test]
    fn a_truncated_value_is_not_part_of_the_address() {
        for (word, expected) in [
            ("/a?address=0x...`", "/a?address="),
            ("/a?b=1&c=0x\u{2026},", "/a?b=1&c="),
            ("/a?q=...", "/a?q="),
            ("/a/b...", "/a/b"),
            ("`/a?b=1`.", "/a?b=1"),
        ] {
            assert_eq!(call_address(word), expected, "{word}");
        }
    }

    #[test]
    fn finds_calls_after_links() {
        let of = |item| Call::after_link(item).map(|(title, _, call)| (title, call.methods, call.address));
        assert_eq!(of("[Book](/b): POST with a date"), Some(("Book", vec!["POST"], "/b")));
        assert_eq!(of("[Docs](https://a.example/d) - GET /rooms"), Some(("Docs", vec!["GET"], "/rooms")));
        assert_eq!(of("[Post](/p): POSTs of today"), None);
        assert_eq!(of("[Book](/b): a room"), None);
        let of = |item| Call::before_method(item).map(|call| (call.methods, call.address));
        assert_eq!(of(" `/v1/a/{b}` (GET, POST): c"), Some((vec!["GET", "POST"], "/v1/a/{b}")));
        assert_eq!(of(" `/v1/a` (all): c"), None);
    }
}
