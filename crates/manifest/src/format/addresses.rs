//! Addresses in prose: Markdown links and bare URLs, classified by their target.
//!
//! Distinguishes manifests, which are followed, from pages.

use crate::draft::{self, Draft};
use crate::format::link_class::{class_of_title, classify, is_document};
use crate::format::link_remarks;
use crate::model::{Follow, Interface, Link, Protocol};
use crate::object::Object;

/// Maximum number of links of one text that are kept; the longest list seen has 74.
const LINKS_MAX: usize = 500;

/// An address found in a line.
pub(crate) struct LinkInText<'t> {
    pub(crate) title: Option<&'t str>,
    pub(crate) address: &'t str,
}

/// Every address in a line: Markdown links and bare addresses.
fn in_line(line: &str) -> Vec<LinkInText<'_>> {
    let mut found = Vec::new();
    let mut rest = line;
    while let Some((before, after)) = rest.split_once("](") {
        let Some((address, tail)) = after.split_once(')') else { break };
        let (words, title) =
            before.rsplit_once('[').map_or((before, None), |(words, title)| (words, Some(title)));
        found.extend(in_words(words));
        found.push(LinkInText { title, address: address.split_whitespace().next().unwrap_or_default() });
        rest = tail;
    }
    found.extend(in_words(rest));
    found
}

/// The first address of a line.
pub(crate) fn first_in_line(line: &str) -> Option<&str> {
    in_line(line).first().map(|found| found.address)
}

fn in_words(words: &str) -> impl Iterator<Item = LinkInText<'_>> {
    let (mut label, mut denies) = ("", false);
    let addresses = words.split(is_space).filter(|word| !word.is_empty()).filter_map(move |word| {
        let label = std::mem::replace(&mut label, word);
        denies |= DENYING_WORDS.iter().any(|known| word.eq_ignore_ascii_case(known));
        bare(word)
            .or_else(|| hosted(word))
            .or_else(|| page_in_code(word, label).filter(|_| !denies))
            .or_else(|| {
                let is_label = label.trim_end_matches(['*', '_']).ends_with(':');
                labelled_path(word.trim_start_matches('`')).filter(|_| is_label)
            })
            .or_else(|| home(word, label))
    });
    addresses.map(|address| LinkInText { title: None, address })
}

/// The path of a page that is marked as code and follows a word such as "at": "The forum is at `/forum`."
fn page_in_code<'t>(word: &'t str, before: &str) -> Option<&'t str> {
    let (path, rest) = word.strip_prefix('`')?.split_once('`')?;
    let is_end = rest.trim_end_matches(['.', ',', ';', ')']).is_empty();
    let leads = ["at", "see", "visit"].iter().any(|known| before.eq_ignore_ascii_case(known));
    let is_page = |found: &&str| *found == path && classify(found).rel == "page";
    labelled_path(path).filter(|found| is_end && leads && is_page(found))
}

/// Whether a character separates words. Texts in scripts without spaces use full-width brackets and commas.
fn is_space(letter: char) -> bool {
    letter.is_whitespace() || matches!(letter, '\u{ff08}' | '\u{ff09}' | '\u{3001}' | '\u{ff0c}' | '\u{3002}')
}

/// The path after a label, with any number of segments: `Contact: /contact`.
fn labelled_path(word: &str) -> Option<&str> {
    let path = without_end(word)?;
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.~/".contains(letter);
    (path.len() > 1 && path.starts_with('/') && path.chars().all(is_plain)).then_some(path)
}

/// The path of the home page after its label: `- Home: /`. After another label, the same path is a rule (`Allow: /`).
fn home<'t>(word: &'t str, label: &str) -> Option<&'t str> {
    let label = label.trim_matches(['*', '_', ':']);
    let is_home = label.eq_ignore_ascii_case("home") || label.eq_ignore_ascii_case("homepage");
    Some(word).filter(|word| *word == "/" && is_home)
}

/// The absolute URLs among the words of a sentence, also without a scheme, and the paths of servers, documents and pages.
pub(crate) fn in_sentence(sentence: &str) -> impl Iterator<Item = &str> {
    let words = may_hold_address(sentence).then(|| sentence.split_whitespace());
    let (mut before, mut denies) = ("", false);
    // Whether the previous word, or the word before "or", is the path of a page.
    let mut continues = false;
    words.into_iter().flatten().filter_map(move |word| {
        let before = std::mem::replace(&mut before, word);
        // A new sentence resets this.
        denies &= !before.ends_with('.');
        denies |= DENYING_WORDS.iter().any(|known| word.eq_ignore_ascii_case(known));
        if !word.as_bytes().contains(&b'/') {
            continues &= matches!(word, "or" | "and");
            return None;
        }
        let path = || bare(word).filter(|path| classify(path).rel != "page");
        let page = || path_of_page(word, if continues { "at" } else { before }).filter(|_| !denies);
        // Calls in sentences are read elsewhere.
        let host = || hosted(word).filter(|_| !denies && !crate::address::is_method(before));
        let found = bare_url(word).or_else(path).or_else(host).or_else(page);
        continues = found.is_some_and(|found| found.starts_with('/'));
        found
    })
}

/// An address without a scheme, without the punctuation around it: `(api.shop.com/v1/rooms)`.
fn hosted(word: &str) -> Option<&str> {
    let bare = without_end(word.trim_start_matches(['"', '\'', '`', '(', '<', '[']))?;
    crate::address::names_host(bare).then_some(bare)
}

/// Words before the path of a page or of a server in a sentence: `paid access via /agents-api`.
const LEADING_WORDS: &[&str] =
    &["at", "via", "see", "visit", "through", "under", "use", "query", "call", "fetch", "read"];
/// File extensions of documents, whose paths need no such word before them: `(the /init.md prompt)`.
const DOCUMENT_ENDINGS: &[&str] = &[".md", ".txt", ".json", ".xml"];
/// Words that precede paths that must not be visited.
const DENYING_WORDS: &[&str] =
    &["not", "don't", "never", "avoid", "except", "disallow", "disallows", "disallowed"];

/// A path in a sentence, recognised by the word before it or by its end: a slash (`/failures/`) or the ending of a document. Other words
/// with a slash are commands, alternatives or patterns.
fn path_of_page<'t>(word: &'t str, before: &str) -> Option<&'t str> {
    let path = labelled_path(word.trim_start_matches(['`', '(', '"', '\'']))?;
    let is_led = LEADING_WORDS.iter().any(|known| before.eq_ignore_ascii_case(known));
    let is_by_end = path.ends_with('/') || DOCUMENT_ENDINGS.iter().any(|ending| path.ends_with(ending));
    let is_call = crate::address::is_method(before);
    // `/v1/` is a part of other addresses.
    let is_version = path.trim_matches('/').strip_prefix('v').is_some_and(|rest| rest.parse::<u16>().is_ok());
    ((is_led || is_by_end) && !is_call && !is_version && !path.contains("//")).then_some(path)
}

/// Whether an address is the path of a page, and not of a document or a server.
pub(crate) fn is_path_of_page(address: &str) -> bool {
    address.starts_with('/') && classify(address).rel == "page"
}

/// Whether a sentence may contain an absolute URL or a path.
pub(crate) fn may_hold_address(sentence: &str) -> bool {
    // Every address has a slash, and few sentences have one.
    let Some((before, _)) = sentence.split_once('/') else { return false };
    let may_name_host = || before.contains('.') && sentence.contains(' ');
    may_name_host() || sentence.contains("://") || sentence.contains(" /")
}

/// A URL, or the path of a document, without the punctuation around it.
fn bare(word: &str) -> Option<&str> {
    bare_url(word).or_else(|| {
        let path = word.trim_start_matches(['"', '\'', '`', '(', '<', '[']);
        let path = without_end(path).filter(|path| path.starts_with('/'))?;
        (is_path(path) || leads_to_manifest(path)).then_some(path)
    })
}

/// Whether a text is a path of two segments or more. A single segment may be a command (`/help`); text with other punctuation is a pattern
/// or a fraction.
fn is_path(text: &str) -> bool {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.~%/?=&{}:".contains(letter);
    let segments =
        text.split(['?', '#']).next().unwrap_or_default().split('/').filter(|part| !part.is_empty());
    let is_code = [".ts", ".tsx", ".rs", ".py", ".go"].iter().any(|ending| text.ends_with(ending));
    let is_balanced = text.matches('{').count() == text.matches('}').count();
    let is_whole = !is_code && is_balanced && !text.contains("//") && !text.contains("..");
    is_whole && text.chars().all(is_plain) && segments.count() >= 2
}

/// The path of one segment at the start of an item, before a remark or alone as code: `/forum` in `- /forum \u{2014} talk`, `` - `/docs`
/// ``. Without a remark or code marks, it may be a command.
pub(crate) fn path_of_item(line: &str) -> Option<LinkInText<'_>> {
    // A line without a list marker must begin with a path.
    let marked = line.strip_prefix(['-', '*', '+']).map(str::trim_start);
    let item = marked.or_else(|| Some(line).filter(|line| line.starts_with('/')))?;
    let (word, remark) = item.split_once(char::is_whitespace).unwrap_or((item, ""));
    if word.contains("/*") {
        return None;
    }
    let is_code = word.len() > 2 && word.starts_with('`') && word.trim_end_matches(':').ends_with('`');
    let title = remark.trim_start_matches([' ', '-', ':', '#', '\u{2014}', '\u{2013}']);
    let is_remark = title.len() < remark.len() || word.ends_with(':');
    let path = labelled_path(word.trim_matches(['`', '*']))?;
    let is_page = path.trim_end_matches('/').matches('/').count() == 1 && path.starts_with('/');
    let is_document = || remark.is_empty() && is_document(path);
    let is_item =
        is_page && ((is_remark && !title.is_empty()) || (is_code && remark.is_empty()) || is_document());
    is_item.then(|| LinkInText { title: label_of(title), address: path })
}

/// An address without the punctuation that follows it.
fn without_end(text: &str) -> Option<&str> {
    // `/passport/[slug]` and `?room=<room>` are templates: the text before the placeholder is not an address.
    let is_template =
        |mark: char| text.split_once(mark).is_some_and(|(start, _)| start.ends_with(['/', '=']));
    // `/oauth/*` is a pattern, `**/oauth/**` is bold.
    let is_pattern = text.split_once("/*").is_some_and(|(_, after)| !after.starts_with('*'));
    if is_pattern || is_template('[') || is_template('<') {
        return None;
    }
    // Alternatives in braces belong to the address: `?plan={basic|pro}`.
    let mut in_braces = false;
    let is_end = |letter: char| {
        in_braces = if in_braces { letter != '}' } else { letter == '{' && text.contains('}') };
        matches!(letter, '"' | '\'' | '<' | '>' | '`' | '(' | ')' | '[' | ']' | '*')
            || (letter == '|' && !in_braces)
    };
    let end = text.find(is_end).unwrap_or(text.len());
    Some(text.get(..end)?.trim_end_matches(['.', ',', ';', ':', '!', '?']))
}

fn bare_url(word: &str) -> Option<&str> {
    let at = word.find("://")?;
    let before = word.get(..at)?;
    let scheme = ["https", "http", "wss"].into_iter().find(|scheme| before.ends_with(scheme))?;
    without_end(word.get(at - scheme.len()..)?)
}

/// Whether a text is the address of a document that could be a manifest.
pub(crate) fn leads_to_manifest(text: &str) -> bool {
    let is_address = text.starts_with('/') || text.starts_with("https://");
    let is_document = [".json", ".txt", ".md", ".yaml"].iter().any(|ending| text.ends_with(ending))
        || text.contains("/.well-known/");
    is_address
        && is_document
        && !text.contains(char::is_whitespace)
        && crate::address::split_method(text).0.is_none()
}

/// Keeps every address of a line.
pub(crate) fn keep_line(line: &str, draft: &mut Draft<'_>) {
    // A URL that agents must not request is not a link.
    let label = line.split(':').next().unwrap_or_default();
    if label.eq_ignore_ascii_case("disallow") {
        return;
    }
    // A quoted address on a reserved host is the value of an example.
    let is_quoted = line.contains('"');
    let labelled = labelled(line);
    let found = in_line(line);
    let listed: Vec<&str> = found.iter().map(|found| found.address).collect();
    for mut found in found {
        if is_quoted && is_example(found.address) {
            continue;
        }
        found.title = found
            .title
            .or_else(|| labelled.filter(|(_, address)| *address == found.address).map(|(label, _)| label));
        keep(&found, draft);
    }
    if let Some((address, title, note)) = item_link(line) {
        keep_note(address, title, note, draft);
    }
    if (1..=LINE_LINKS_MAX).contains(&listed.len()) && !line.contains("](") {
        for (address, title) in link_remarks::of_line(line, &listed) {
            title_untitled(address, &title, draft);
        }
    }
}

/// Maximum number of addresses of one line that are titled by the words between them.
const LINE_LINKS_MAX: usize = 16;

/// Sets the title of a link that has none.
fn title_untitled(address: &str, title: &str, draft: &mut Draft<'_>) {
    let published = crate::address::with_scheme(address);
    let Some(url) = crate::address::on_document(draft.base(), &published) else { return };
    let url = url.into_string();
    let link = draft.manifest.links.iter_mut().find(|link| link.url == url && link.title.is_none());
    if let Some(link) = link {
        link.title = draft::title(Some(title));
    }
}

/// The address, title and note of an item that is one Markdown link: `- [Rooms](/rooms.md): all rooms and their prices`. The note is empty
/// if the item has none.
fn item_link(line: &str) -> Option<(&str, &str, &str)> {
    let item = line.trim_start_matches(['-', '*', '+', ' ', '\t']);
    let (title, after) = item.trim_start_matches("**").strip_prefix('[')?.split_once("](")?;
    let (address, note) = after.split_once(')')?;
    let note = note.trim_start_matches("**").trim_start();
    let is_item = item.len() < line.len();
    let noted = NOTE_MARKS.iter().find_map(|mark| note.strip_prefix(mark)).map(str::trim);
    let note = noted.or_else(|| Some(note).filter(|note| is_item && note.is_empty()))?;
    let is_plain = !note.contains("](") && !title.contains(']') && (is_item || !note.is_empty());
    is_plain.then_some((address, title, note))
}

/// Marks between a link and its note.
const NOTE_MARKS: &[&str] = &[":", "\u{2014}", "\u{2013}", "- "];

/// Adds the note of a link to its title. If an earlier item with another title has the same address, the titles are joined.
fn keep_note(address: &str, title: &str, note: &str, draft: &mut Draft<'_>) {
    let published = crate::address::with_scheme(address);
    let Some(url) = crate::address::on_document(draft.base(), &published) else { return };
    let (url, title) = (url.into_string(), draft::name(Some(title)));
    let link = draft.manifest.links.iter_mut().find(|link| link.url == url);
    let Some((link, title)) = link.zip(title) else { return };
    let noted = if note.is_empty() { title.clone() } else { format!("{title}: {note}") };
    if link.title.as_ref() == Some(&title) {
        link.title = draft::title(Some(&noted));
    } else if let Some(known) = link.title.as_ref().filter(|known| !known.contains(&title)) {
        link.title = draft::joined_title(&format!("{known}; {noted}"));
    }
}

/// Keeps every address of a line. If an address is the whole line, the line above it is its label: `Agent manifest:`.
pub(crate) fn keep_below(above: &str, line: &str, draft: &mut Draft<'_>) {
    let label = above.strip_suffix(':').and_then(label_of);
    match label.zip(bare_url(line).filter(|address| *address == line)) {
        Some((label, address)) => keep(&LinkInText { title: Some(label), address }, draft),
        None => keep_line(line, draft),
    }
}

/// Maximum length in bytes of the label of an address, and of the name of a relative path.
const LABEL_BYTES_MAX: usize = 100;
/// Separators between an address and its label.
const SEPARATORS: &[&str] =
    &[": ", ":** ", "\u{ff1a}", " \u{2192} ", " -> ", " \u{2014} ", " \u{2013} ", " - "];

/// The label and the address of a line with little other text: `- Search: https://…`, `- https://… — Search`.
pub(crate) fn labelled(line: &str) -> Option<(&str, &str)> {
    let item = line.trim_start_matches(['-', '*', '+', '#', '>', ' ', '\t']);
    let parts = SEPARATORS.iter().filter_map(|separator| Some((*separator, item.split_once(separator)?)));
    let (separator, (first, second)) = parts.min_by_key(|(_, (first, _))| first.len())?;
    // Other remarks may be between them: `Room - 20 EUR - https://…`.
    let behind_remarks = || {
        let mut pieces = second.split(separator).skip(1).take(PIECES_MAX);
        pieces.find_map(first_address).filter(|_| separator.starts_with(' '))
    };
    let labelled = label_of(first).zip(first_address(second).or_else(behind_remarks));
    labelled.or_else(|| label_of(second).zip(first_address(first)))
}

/// Maximum number of remarks between a label and its address.
const PIECES_MAX: usize = 5;

fn label_of(text: &str) -> Option<&str> {
    let label = text.trim_matches(|letter: char| letter.is_whitespace() || "*_`:\u{ff1a}".contains(letter));
    // A JSON member name.
    let quoted = label.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    let label = quoted.filter(|name| !name.contains('"')).unwrap_or(label);
    let is_label = !label.is_empty() && label.len() <= LABEL_BYTES_MAX;
    (is_label && !label.contains("://") && !label.contains("](")).then_some(label)
}

/// The address that a text begins with.
fn first_address(text: &str) -> Option<&str> {
    let word = text.split_whitespace().next()?;
    bare(word).or_else(|| labelled_path(word))
}

/// The names of files after a label: `Docs: README.md, AGENTS.md, docs/decisions`. Empty if the line contains anything else.
pub(crate) fn labelled_files(line: &str) -> Vec<&str> {
    let item = line.trim_start_matches(['-', '*', '+', '>', ' ', '\t']);
    let Some((_, listed)) = item.split_once(':').filter(|(label, _)| label.len() <= LABEL_BYTES_MAX) else {
        return Vec::new();
    };
    let listed = listed.trim().trim_end_matches('.').split([',', ';']).take(FILES_MAX);
    let names: Vec<&str> = listed
        .map(|name| name.trim_matches(|letter: char| letter.is_whitespace() || "*`".contains(letter)))
        .collect();
    let are_files = names.iter().all(|name| is_relative(name)) && names.iter().any(|name| is_document(name));
    if are_files { names } else { Vec::new() }
}

/// Whether a text is the relative path of a document: `docs/keys.md`.
pub(crate) fn is_relative_document(text: &str) -> bool {
    is_document(text) && is_relative(text)
}

/// The name of a file before its description: `README.md - How to begin`. Only documents that are read as a page.
pub(crate) fn described_file(line: &str) -> Option<LinkInText<'_>> {
    let item = line.trim_start_matches(['-', '*', '+', '>', ' ', '\t']);
    let (name, described) =
        [" - ", " \u{2014} ", " \u{2013} "].iter().find_map(|mark| item.split_once(mark))?;
    let name = name.trim_matches(|letter: char| letter.is_whitespace() || "*`".contains(letter));
    let is_page = PAGE_ENDINGS.iter().any(|ending| name.ends_with(ending));
    let title = label_of(described)?;
    (is_page && is_relative(name)).then_some(LinkInText { title: Some(title), address: name })
}

/// Endings of documents that are read as a page.
const PAGE_ENDINGS: &[&str] = &[".md", ".mdx", ".txt", ".html", ".pdf"];

/// Maximum number of names of files of one line that are read.
const FILES_MAX: usize = 50;
/// Whether a text is a path relative to its document: a name with an ending, or several segments.
fn is_relative(text: &str) -> bool {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./%".contains(letter);
    let name = text.strip_prefix("./").unwrap_or(text);
    name.len() <= LABEL_BYTES_MAX
        && name.starts_with(|letter: char| letter.is_ascii_alphanumeric())
        && name.contains(['.', '/'])
        && name.contains(|letter: char| letter.is_ascii_alphabetic())
        && name.chars().all(is_plain)
}

/// Keeps an address as a link, and as an interface if it is an MCP server.
pub(crate) fn keep(found: &LinkInText<'_>, draft: &mut Draft<'_>) {
    let published = crate::address::with_scheme(found.address);
    let is_absolute = ["https://", "http://", "/", "wss://"].iter().any(|start| published.starts_with(start));
    // A bare word is an address only if it begins like one; an address with a title may be relative.
    let plain = is_absolute || (found.title.is_some() && is_relative(found.address));
    if !plain || draft.manifest.links.len() >= LINKS_MAX {
        return;
    }
    let Some(address) = crate::address::on_document(draft.base(), &published) else { return };
    let url = address.into_string();
    if url == draft.base().as_str() {
        return;
    }
    if let Some(known) = draft.manifest.links.iter_mut().find(|link| link.url == url) {
        known.title = known.title.take().or_else(|| draft::name(found.title));
        return;
    }
    if url.starts_with("wss://") {
        if !draft.has_interface(&url) {
            draft.keep(Interface::new(Protocol::WebSocket, Some(url)));
        }
        return;
    }
    let mut class = classify(&url);
    if class.rel == "page" {
        class = found.title.and_then(|title| class_of_title(title, &url)).unwrap_or(class);
    }
    if class.rel == "mcp" && !draft.has_interface(&url) {
        draft.keep(Interface::new(Protocol::Mcp, Some(url.clone())));
    }
    let mut link = Link::new(class.rel, url, class.follow);
    link.title = draft::name(found.title);
    draft.keep(link);
}

/// Whether a URL is on one of the hosts that are reserved for examples (RFC 2606).
fn is_example(url: &str) -> bool {
    let host =
        url.split_once("://").map_or("", |(_, rest)| rest.split(['/', ':', '?']).next().unwrap_or_default());
    ["example.com", "example.org", "example.net"].iter().any(|known| {
        host.strip_suffix(known).is_some_and(|before| before.is_empty() || before.ends_with('.'))
    })
}

impl Draft<'_> {
    /// Keeps members that contain an address as links, by key and relation. Descriptions of services are followed.
    pub(crate) fn links(&mut self, object: &Object<'_>, rels: &[(&str, &str)]) {
        for (key, rel) in rels {
            let address = object.text(key).filter(|text| text.contains("://") || text.starts_with('/'));
            if let Some(address) = address {
                let is_followed = *rel == "service-desc" || classify(address).follow.is_some();
                self.link(object, key, rel, is_followed.then_some(Follow::Manifest));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_addresses_in_markdown_and_prose() {
        let of = |line| in_line(line).iter().map(|found| found.address).collect::<Vec<_>>();
        assert_eq!(
            of("- [API](https://a.example/openapi.json): the API"),
            ["https://a.example/openapi.json"]
        );
        assert_eq!(
            of("See https://a.example/docs, or `https://b.example/mcp`."),
            ["https://a.example/docs", "https://b.example/mcp"]
        );
        assert_eq!(
            of("Pay: https://a.example/pay?plan={basic|pro}, | https://a.example/b|c"),
            ["https://a.example/pay?plan={basic|pro}", "https://a.example/b"]
        );
        assert_eq!(of("Read (shop.com/terms) or README.md/x"), ["shop.com/terms"]);
        assert_eq!(of("no [link] (here)"), Vec::<&str>::new());
        assert_eq!(of("[broken](https://a.example"), ["https://a.example"]);
    }

    #[test]
    fn finds_the_paths_of_pages_in_sentences() {
        for (sentence, expected) in [
            ("Paid access via /agents-api, or see `/docs`.", &["/agents-api", "/docs"][..]),
            (
                "Resources: /failures/ (the database), /blog/how-to/ (a guide)",
                &["/failures/", "/blog/how-to/"],
            ),
            ("Type /help or send GET /status/ to the bot; and/or wait", &[]),
            ("Do not visit pages under /admin/. Read on at /news.", &["/news"]),
            (
                "Register at /buyers or /sellers, see /terms, /privacy.",
                &["/buyers", "/sellers", "/terms", "/privacy"],
            ),
            (
                "Read api.shop.com/v1/mcp.json and/or alice.github.io/notes.",
                &["api.shop.com/v1/mcp.json", "alice.github.io/notes"],
            ),
            ("The path begins with /v1/ and ends with //", &[]),
        ] {
            assert_eq!(in_sentence(sentence).collect::<Vec<_>>(), expected, "{sentence}");
        }
    }

    #[test]
    fn finds_the_label_of_an_address() {
        for (line, expected) in [
            ("- Search: https://a.example/s?q={query}", Some(("Search", "https://a.example/s?q={query}"))),
            ("* **Book a room:** `https://a.example/b`", Some(("Book a room", "https://a.example/b"))),
            ("- https://a.example/b \u{2014} Book a room", Some(("Book a room", "https://a.example/b"))),
            ("- Room \u{2014} 20 EUR \u{2014} https://a.example/r", Some(("Room", "https://a.example/r"))),
            ("Rooms: see the list: https://a.example/r", None),
            ("Rooms \u{2192} /rooms/all", Some(("Rooms", "/rooms/all"))),
            ("\"site\": \"https://a.example/\"", Some(("site", "https://a.example/"))),
            ("See https://a.example/b: it is new", None),
            ("- Search: no address", None),
            ("https://a.example/b", None),
        ] {
            assert_eq!(labelled(line), expected, "{line}");
        }
    }

    #[test]
    fn finds_the_files_after_a_label() {
        for (line, expected) in [
            (
                "Primary docs: README.md, AGENTS.md, docs/decisions.",
                &["README.md", "AGENTS.md", "docs/decisions"][..],
            ),
            ("- Licence: `LICENSE.txt`", &["LICENSE.txt"]),
            ("Currencies: RUB, USD", &[]),
            ("Ratio: 1/2, 3/4", &[]),
            ("Docs: README.md, and more of them", &[]),
            ("Docs: https://a.example/README.md", &[]),
        ] {
            assert_eq!(labelled_files(line), expected, "{line}");
        }
    }

    #[test]
    fn finds_the_file_before_its_description() {
        let of = |line| described_file(line).map(|file| (file.address, file.title.unwrap_or_default()));
        assert_eq!(of("- `docs/keys.md` - How keys work"), Some(("docs/keys.md", "How keys work")));
        assert_eq!(of("README.md \u{2014} Start here"), Some(("README.md", "Start here")));
        for line in ["src/main.py - The program", "Open README.md - it helps", "README.md", "1.5 - a number"]
        {
            assert_eq!(of(line), None, "{line}");
        }
    }

    #[test]
    fn classifies_addresses_by_path() {
        for (address, rel, followed) in [
            ("https://a.example/.well-known/agent-card.json", "agent-card", true),
            ("https://a.example/api/openapi.yaml?v=1", "service-desc", true),
            ("https://a.example/mcp", "mcp", false),
            ("https://a.example/llms-full.txt", "llms", false),
            ("https://a.example/about", "page", false),
        ] {
            let class = classify(address);
            assert_eq!((class.rel, class.follow.is_some()), (rel, followed), "{address}");
        }
    }
}
