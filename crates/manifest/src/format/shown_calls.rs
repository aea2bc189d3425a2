//! Example calls in a text: in code blocks and code spans, on a line above the headers of a request, as curl commands, and in tables with
//! columns for the method and the path.
//!
//! A call that the text lists is not repeated. Calls to other sites are ignored, because they are examples of other services.

use url::Url;

use super::call_paths::CallPaths;
use super::call_prices;
use super::listed_calls::{self, Call};
use crate::address::{self, Address};
use crate::draft::{self, Draft};
use crate::format::{endpoint, lenient, link_class};
use crate::identity::host_of;
use crate::model::{AuthScheme, CapabilityAuth, CapabilityKind, Tristate};
use crate::text;

/// Maximum number of calls of one text that are kept, and of code spans of one line that are read.
const CALLS_MAX: usize = 100;
const SPANS_MAX: usize = 50;
/// Maximum number of columns of one table that are read, and maximum bytes of a line.
const COLUMNS_MAX: usize = 12;
const LINE_BYTES_MAX: usize = 1_000;
/// Words in lines about calls that must not be made.
const DENYING: &[&str] = &["Do not ", "do not ", "n't ", "ever ", "replaced ", "deprecated"];

/// A call that was found. It is kept unless the text lists it.
#[derive(Debug)]
struct Shown {
    method: String,
    published: String,
    address: Address,
    description: Option<String>,
    /// The line says that the call is free.
    is_free: bool,
    /// The number of the heading above it.
    section: usize,
}

/// The positions of the columns of a table.
#[derive(Debug, Clone, Copy, Default)]
struct Columns {
    path: usize,
    method: Option<usize>,
    remark: Option<usize>,
    auth: Option<usize>,
}

/// Collects the calls that a text shows, line by line.
#[expect(clippy::struct_excessive_bools, reason = "independent facts about the current line")]
#[derive(Debug, Default)]
pub(crate) struct ShownCalls {
    is_code: bool,
    /// The comment above a line of code.
    comment: Option<String>,
    /// The headings of single subjects by their numbers.
    titles: Vec<(usize, String)>,
    section: usize,
    is_of_api: bool,
    columns: Option<Columns>,
    found: Vec<Shown>,
    /// Whether the line continues the command of the last call, whose method is not stated.
    is_continued: bool,
    /// Whether the line is below the first line of a request over HTTP, among its headers.
    is_request: bool,
}

impl ShownCalls {
    /// Reads a line. Returns whether it is a row of a table of calls.
    pub(crate) fn read_line(&mut self, line: &str, base: Option<&Url>, draft: &mut Draft<'_>) -> bool {
        if std::mem::take(&mut self.is_continued) {
            return self.continue_command(line);
        }
        if line.starts_with("```") {
            self.is_code = !self.is_code;
            return false;
        }
        if line.starts_with('#') && !self.is_code {
            self.read_heading(line);
            return false;
        }
        if line.starts_with('|') {
            return self.read_row(line, base, draft);
        }
        self.columns = None;
        let is_header = std::mem::take(&mut self.is_request);
        if let Some(host) = line.strip_prefix("Host:").filter(|_| is_header) {
            self.set_host(host.trim(), draft);
            return false;
        }
        self.is_request = is_header && line.contains(": ");
        if !line.contains('/') || line.len() > LINE_BYTES_MAX || self.found.len() >= CALLS_MAX {
            if self.is_code {
                let comment = ["# ", "// "].iter().find_map(|mark| line.strip_prefix(mark));
                self.comment = comment.and_then(|comment| draft::description(Some(comment)));
            }
            return false;
        }
        if DENYING.iter().any(|words| line.contains(words)) {
            return false;
        }
        let is_item = line.starts_with(['-', '*', '+']);
        if !is_item && let Some(call) = Call::of(line).filter(|call| is_bare(call)) {
            let first = self.found.len();
            self.keep_call(&call, base, draft);
            self.is_request = self.is_code && call.rest.contains("HTTP/") && self.found.len() > first;
            if self.is_request {
                self.comment = None;
                return true;
            }
        } else if let Some((method, address)) = library_call(line).filter(|_| self.is_code) {
            self.keep(method, address, base, draft);
        } else if let Some((method, address)) = curl(line) {
            let first = self.found.len();
            self.keep(method, address, base, draft);
            self.is_continued = line.ends_with('\\') && self.found.len() > first && !names_method(line);
        } else if let Some(call) = labelled_call(line) {
            self.keep_call(&call, base, draft);
        }
        if !self.is_code {
            let first = self.found.len();
            let spans = line.split('`').skip(1).step_by(2).take(SPANS_MAX);
            for call in spans.filter_map(Call::of).filter(is_bare) {
                self.keep_call(&call, base, draft);
            }
            let is_free = line.contains("(free)");
            self.found.iter_mut().skip(first).for_each(|shown| shown.is_free = is_free);
        }
        self.comment = None;
        false
    }

    /// Sets the host of the last request from its `Host` header, or drops the request if the host is on another site.
    fn set_host(&mut self, host: &str, draft: &Draft<'_>) {
        let Some(last) = self.found.pop() else { return };
        let is_host = host.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-'));
        let base = Url::parse(&["https://", host].concat()).ok().filter(|_| is_host);
        let is_own = host_of(host).is_some_and(|host| host.site() == draft.base().site());
        let address = base
            .filter(|_| is_own)
            .and_then(|base| listed_calls::resolve(&last.published, Some(&base), draft));
        self.found.extend(address.map(|address| Shown { address, ..last }));
    }

    /// Reads a further line of a command: its method, or the data that it sends.
    fn continue_command(&mut self, line: &str) -> bool {
        let Some(last) = self.found.last_mut() else { return false };
        let named = line.split_whitespace().skip_while(|word| !is_method_option(word)).nth(1);
        let named = named.map(|method| method.trim_matches(['"', '\'']));
        if let Some(method) = named.filter(|method| address::is_method(method)) {
            method.clone_into(&mut last.method);
        } else {
            if line.split_whitespace().take(SPANS_MAX).any(sends) {
                "POST".clone_into(&mut last.method);
            }
            self.is_continued = line.ends_with('\\');
        }
        false
    }

    fn read_heading(&mut self, line: &str) {
        self.section += 1;
        self.is_of_api = call_prices::is_heading_of_api(line);
        if let Some(title) = call_prices::title_of_heading(line).filter(|_| self.titles.len() < CALLS_MAX) {
            self.titles.push((self.section, title.to_owned()));
        }
    }

    fn keep_call(&mut self, call: &Call<'_>, base: Option<&Url>, draft: &Draft<'_>) {
        for method in &call.methods {
            self.keep(method, call.address, base, draft);
        }
    }

    fn keep(&mut self, method: &str, published: &str, base: Option<&Url>, draft: &Draft<'_>) {
        let class = link_class::classify(published);
        if class.rel == "mcp" || class.follow.is_some() || self.found.len() >= CALLS_MAX {
            return;
        }
        let is_own = |published: &str| {
            let host = host_of(published);
            let of_base = base.and_then(|base| host_of(base.as_str()));
            host.is_some_and(|host| {
                host.site() == draft.base().site() || of_base.is_some_and(|base| base.site() == host.site())
            })
        };
        if !published.starts_with('/') && !is_own(published) {
            return;
        }
        let Some(address) = listed_calls::resolve(published, base, draft) else { return };
        self.found.push(Shown {
            method: method.to_owned(),
            published: published.to_owned(),
            address,
            description: self.comment.take(),
            is_free: false,
            section: self.section,
        });
    }

    /// A row of a table: the names of its columns, or a call.
    fn read_row(&mut self, line: &str, base: Option<&Url>, draft: &mut Draft<'_>) -> bool {
        let cells: Vec<&str> = line.trim_matches('|').split('|').take(COLUMNS_MAX).map(str::trim).collect();
        let Some(columns) = self.columns else {
            self.columns = columns_of(&cells);
            return false;
        };
        let cell = |at: Option<usize>| at.and_then(|at| cells.get(at)).copied().unwrap_or_default();
        let (path, remark) = (cell(Some(columns.path)), cell(columns.remark));
        let first = draft.manifest.capabilities.len();
        let item = match columns.method {
            Some(method) => {
                ["- ", cell(Some(method)).trim_matches('`'), " ", path, " \u{2014} ", remark].concat()
            }
            None => ["- ", path, " \u{2014} ", remark].concat(),
        };
        let is_call = match columns.method {
            // Such rows are read by the parser of lists.
            Some(0) if columns.path == 1 && columns.auth.is_none() => false,
            Some(_) => listed_calls::read(&item, base, draft),
            None => self.is_of_api && listed_calls::read_path(&item, base, draft),
        };
        let stated = cell(columns.auth);
        if is_call && !stated.is_empty() {
            let (_, mut needed) = lenient::stated(&stated.into());
            needed.schemes.retain(|scheme| *scheme != AuthScheme::None);
            for call in draft.manifest.capabilities.iter_mut().skip(first) {
                if call.auth.required == Tristate::Unknown && is_known(&needed) {
                    call.auth.clone_from(&needed);
                }
            }
        }
        is_call
    }

    /// Adds the calls that the text does not list.
    pub(crate) fn finish(self, draft: &mut Draft<'_>) {
        let listed = draft.manifest.capabilities.len();
        let mut paths = CallPaths::default();
        for (at, shown) in self.found.iter().enumerate() {
            let capabilities = &draft.manifest.capabilities;
            let capabilities = capabilities.get(..listed + CALLS_MAX).unwrap_or(capabilities);
            let path = listed_calls::path_of(shown.address.as_str());
            let same = paths.first(path, capabilities, is_same, |call| {
                call.invocation.method.as_ref() == Some(&shown.method)
            });
            if same.is_some() || paths.is_spent() {
                continue;
            }
            let is_only = self
                .found
                .iter()
                .enumerate()
                .all(|(other, call)| other == at || call.section != shown.section);
            let title = self.titles.iter().find(|(section, _)| *section == shown.section && is_only);
            let call = [&shown.method, " ", &shown.published].concat();
            let name = title.map_or(&call, |(_, title)| title);
            let mut capability = draft.capability(CapabilityKind::Operation, &call, name, String::new());
            endpoint::set_call(&mut capability, &shown.method, shown.address.clone());
            capability.description.clone_from(&shown.description);
            capability.price = shown.is_free.then(|| lenient::price(&"free".into())).flatten();
            draft.push(capability);
        }
    }
}

/// Whether only the HTTP version follows a call.
fn is_bare(call: &Call<'_>) -> bool {
    let rest = call.rest.trim_matches(['`', '*', ' ']);
    rest.is_empty() || rest.starts_with("HTTP/")
}

/// The call after a label such as `Endpoint: POST /rooms`.
fn labelled_call(line: &str) -> Option<Call<'_>> {
    let (label, value) = line.trim_start_matches(['-', '*', '+', ' ']).split_once(':')?;
    let label = label.trim_matches(['*', '`', ' ']);
    let is_label = ["endpoint", "request", "route"].iter().any(|known| label.eq_ignore_ascii_case(known));
    Call::of(value.trim_start_matches(['*', ' '])).filter(|call| is_label && is_bare(call))
}

fn is_known(needed: &CapabilityAuth) -> bool {
    needed.required != Tristate::Unknown && needed.schemes.iter().all(|scheme| *scheme != AuthScheme::Other)
}

/// The columns that a row names, if one of them is for paths.
fn columns_of(cells: &[&str]) -> Option<Columns> {
    let names: Vec<String> =
        cells.iter().map(|cell| text::folded_words(text::capped(cell, draft::NAME_CHARS_MAX))).collect();
    let at = |known: &[&str]| names.iter().position(|name| known.contains(&name.as_str()));
    Some(Columns {
        path: at(&["endpoint", "path", "url", "route"])?,
        method: at(&["method", "verb", "http method"]),
        remark: at(&["description", "purpose", "what it does", "summary", "notes", "returns"]),
        auth: at(&["auth", "authentication", "authorization", "access"]),
    })
}

/// The method and the address of a command: `curl -X POST https://… -d …`.
fn curl(line: &str) -> Option<(&str, &str)> {
    let command = line.trim_start_matches(['$', '`', ' ']).strip_prefix("curl ")?;
    if command.contains('|') {
        return None;
    }
    let words = || command.split_whitespace().take(SPANS_MAX);
    let is_address = |word: &&str| word.starts_with("https://");
    let address = words().map(|word| word.trim_matches(['"', '\'', '`', '\\'])).find(is_address)?;
    let named = words().skip_while(|word| !is_method_option(word)).nth(1);
    let default =
        if words().any(sends) || command.ends_with('\\') && named.is_some() { "POST" } else { "GET" };
    let method = named.map_or(default, |method| method.trim_matches(['"', '\'']));
    address::is_method(method).then_some((method, address))
}

/// Functions of libraries that call an address, by their method.
const FUNCTIONS: &[(&str, &str)] = &[
    ("requests.get(", "GET"),
    ("requests.post(", "POST"),
    ("requests.put(", "PUT"),
    ("requests.patch(", "PATCH"),
    ("requests.delete(", "DELETE"),
    ("httpx.get(", "GET"),
    ("httpx.post(", "POST"),
    ("axios.get(", "GET"),
    ("axios.post(", "POST"),
    ("fetch(", "GET"),
];

/// The call of a library in a line of code: `requests.post("https://…", …)`, `fetch("https://…", {method: "POST"})`. A call of `fetch` that
/// spans several lines may state its method on a later line.
fn library_call(line: &str) -> Option<(&str, &str)> {
    let (function, method) = FUNCTIONS.iter().find(|(function, _)| line.contains(function))?;
    let (_, rest) = line.split_once(function)?;
    let quote = rest.chars().next().filter(|quote| matches!(quote, '"' | '\'' | '`'))?;
    let (address, rest) = rest.get(1..)?.split_once(quote)?;
    let is_fetch = *function == "fetch(";
    if !address.starts_with("https://")
        || address.contains("${")
        || (is_fetch && line.ends_with(['{', ',', '(']))
    {
        return None;
    }
    let named = rest.split(['"', '\'', '`']).take(SPANS_MAX).find(|word| address::is_method(word));
    Some((named.filter(|_| is_fetch && rest.contains("method")).unwrap_or(method), address))
}

/// Whether a word of a command states the method that follows.
fn is_method_option(word: &str) -> bool {
    matches!(word, "-X" | "--request")
}

fn names_method(command: &str) -> bool {
    command.split_whitespace().take(SPANS_MAX).any(is_method_option)
}

/// Whether a word of a command sends a body.
fn sends(word: &str) -> bool {
    word.starts_with("-d") || word.starts_with("--data") || word == "--json"
}

/// Whether segments of two paths match: a variable stands for any segment.
fn is_same(listed: &str, shown: &str) -> bool {
    listed == shown || listed.contains('{') || shown.contains('{')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_call_of_a_command() {
        for (line, expected) in [
            ("curl -X POST https://a.example/api/b \\", Some(("POST", "https://a.example/api/b"))),
            ("curl \"https://a.example/api/b?x=1\"", Some(("GET", "https://a.example/api/b?x=1"))),
            ("curl https://a.example/api/b -d '{}'", Some(("POST", "https://a.example/api/b"))),
            ("curl -fsSL https://a.example/install.sh | bash", None),
            ("curl --help", None),
        ] {
            assert_eq!(curl(line), expected, "{line}");
        }
    }

    #[test]
    fn a_variable_stands_for_any_segment() {
        assert!(is_same("{c}", "1"));
        assert!(is_same("1", "{c}"));
        assert!(!is_same("c", "d"));
    }
}
