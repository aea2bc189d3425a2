//! llms.txt: a Markdown file with links for models.
//!
//! Reads the title, the block quote and the links, which are classified by their target. Lists of calls, and lists of addresses below a
//! heading that calls them endpoints, are capabilities.
//!
//! Follows llmstxt.org (September 2024): an H1, an optional block quote, H2 sections with lists of links.

use std::ops::Range;

use serde_json::Value;

use crate::address;
use crate::draft::{self, Draft};
use crate::format::addresses::{self, LinkInText};
use crate::format::labels::Labels;
use crate::format::link_class;
use crate::format::listed_tools::ListedTools;
use crate::format::paired_calls::PairedCalls;
use crate::format::plan_lines::PlanLines;
use crate::format::priced_calls::PricedCalls;
use crate::format::shown_calls::ShownCalls;
use crate::format::shown_servers::ShownServers;
use crate::format::stated_auth::StatedAuth;
use crate::format::stated_base::StatedBase;
use crate::format::{call_prices, endpoint, lenient, listed_calls, query_parameters, whole_variables};
use crate::model::{Auth, AuthScheme, Capability, CapabilityKind, Payment, Protocol, Tristate};
use crate::rule::findings;
use crate::text::{capped, each_word};

/// Maximum number of lines that are read; the longest file seen has 3,800.
const LINES_MAX: usize = 20_000;

findings! {
    rule NO_TITLE: Must("llms_txt.title.missing", "llmstxt.org")
        "the file does not begin with an H1" => "Begin with `# ` and the name of the site.";
    rule NO_SECTION: Should("llms_txt.sections.missing", "llmstxt.org")
        "there is no H2 section" => "Group links under `## ` headings.";
    rule NO_LINKS: Should("llms_txt.links.missing", "llmstxt.org")
        "there is no list of Markdown links" => "List pages as `- [title](url): note`.";
}

pub(crate) fn read(text: &str, draft: &mut Draft<'_>) {
    draft.assess("llmstxt.org", |code| code.starts_with("llms_txt."));
    let text = &*whole_variables::with_whole_variables(text);
    let lines = || text.lines().take(LINES_MAX).map(str::trim);
    match lines().find(|line| !line.is_empty()).and_then(|line| line.strip_prefix("# ")) {
        Some(title) => draft.manifest.name = draft::name(Some(title)),
        None => draft.report_rule(&NO_TITLE, String::new()),
    }
    if !lines().any(|line| line.starts_with("## ")) {
        draft.report_rule(&NO_SECTION, String::new());
    }
    if !lines().any(is_link_item) {
        draft.report_rule(&NO_LINKS, String::new());
    }
    let quoted: Vec<&str> = lines().filter_map(|line| line.strip_prefix('>')).map(str::trim).collect();
    let quoted = draft::description(Some(quoted.join(" ").as_str()));
    draft.manifest.description = quoted.or_else(|| subtitle(lines())).or_else(|| first_paragraph(lines()));
    let mut labels = Labels::default();
    let mut section = Section::default();
    let (mut tools, mut priced) = (ListedTools::default(), PricedCalls::default());
    let (mut credentials, mut shown) = (StatedAuth::default(), ShownCalls::default());
    let (mut servers, mut plans) = (ShownServers::default(), PlanLines::default());
    let (mut after_call, mut filters_left) = (false, FILTERS_MAX);
    let mut examples = example_blocks(lines()).into_iter().peekable();
    for (at, whole) in text.lines().take(LINES_MAX).enumerate() {
        let line = whole.trim();
        plans.read_line(line, draft);
        credentials.read_line(whole, draft);
        servers.read_line(line, draft);
        if tools.read_line(line) || shown.read_line(line, section.base.get(), draft) {
            continue;
        }
        if priced.read_line(line, draft) {
            labels.read_line(line, draft);
            continue;
        }
        let follows_call = std::mem::take(&mut after_call);
        if section.read_line(line, draft) {
            after_call = true;
            continue;
        }
        while examples.next_if(|block| block.end <= at).is_some() {}
        if examples.peek().is_some_and(|block| block.contains(&at)) && line.contains("\"/") {
            continue;
        }
        read_filters(line, follows_call, &mut filters_left, draft);
        for name in addresses::labelled_files(line) {
            addresses::keep(&LinkInText { title: Some(name), address: name }, draft);
        }
        if let Some(file) = addresses::described_file(line) {
            addresses::keep(&file, draft);
        }
        if let Some(page) = addresses::path_of_item(line) {
            addresses::keep(&page, draft);
        }
        addresses::keep_line(line, draft);
        labels.read_line(line, draft);
    }
    labels.finish(draft);
    plans.finish(draft);
    let calls = draft.manifest.capabilities.len();
    shown.finish(draft);
    tools.finish(draft);
    credentials.finish(calls, draft);
}

/// Members of JSON that declares calls or servers, and is no example of a response.
const DECLARING: &[&str] = &[
    "\"endpoint",
    "\"api",
    "\"mcp",
    "\"url_template\"",
    "\"tools\"",
    "\"skills\"",
    "\"capabilities\"",
    "\"paths\"",
    "\"$schema\"",
    "\"@context\"",
];

/// The lines of the blocks of code with JSON that is an example of a request or a response, whose paths are examples too.
fn example_blocks<'t>(lines: impl Iterator<Item = &'t str>) -> Vec<Range<usize>> {
    let (mut blocks, mut open) = (Vec::new(), None);
    for (at, line) in lines.enumerate() {
        if line.starts_with("```") {
            match open.take() {
                Some((start, true, false)) => blocks.push(start..at),
                Some(_) => {}
                None => open = Some((at, false, false)),
            }
        } else if let Some((_, is_json, declares)) = &mut open {
            *is_json |= line.starts_with('{');
            *declares |= DECLARING.iter().any(|name| line.contains(name));
        }
    }
    blocks
}

/// Reads a line such as `Filters: ?search, ?section`: the parameters of the call on the line above, or of the only call that lists.
fn read_filters(line: &str, follows_call: bool, filters_left: &mut usize, draft: &mut Draft<'_>) {
    let item = line.trim_start_matches(['-', '*', '+', ' ']);
    let Some((label, _)) = item.split_once(':').filter(|(_, shown)| shown.contains('?')) else { return };
    let is_of_filters = matches!(
        label.trim_matches('*').to_ascii_lowercase().as_str(),
        "filter" | "filters" | "query" | "query parameters" | "parameters" | "params" | "search parameters"
    );
    if !is_of_filters {
        return;
    }
    let Some(left) = filters_left.checked_sub(1) else { return };
    *filters_left = left;
    let Some(parameters) = query_parameters::parameters_in(item) else { return };
    let is_read = |call: &Capability| {
        call.invocation.method.as_deref().is_none_or(|method| method == "GET")
            && call.invocation.protocol == Some(Protocol::Http)
    };
    let lists = |call: &Capability| {
        let mut is_list = false;
        for text in [&call.native_id, &call.name] {
            each_word(text, |word| is_list |= LIST_WORDS.contains(&word));
        }
        is_list && is_read(call) && call.invocation.url_template.is_none()
    };
    let calls = &mut draft.manifest.capabilities;
    let call = if follows_call {
        calls.last_mut().filter(|call| is_read(call))
    } else {
        let mut listing = calls.iter_mut().filter(|call| lists(call));
        listing.next().filter(|_| listing.next().is_none())
    };
    let Some(call) = call else { return };
    let known = call.parameters.as_mut().and_then(|schema| schema.get_mut("properties")?.as_object_mut());
    match (known, parameters.get("properties").and_then(Value::as_object)) {
        (Some(known), Some(shown)) => {
            for (name, schema) in shown {
                known.entry(name.clone()).or_insert_with(|| schema.clone());
            }
        }
        _ => call.parameters = Some(parameters),
    }
}

/// Maximum number of lines with filters of one text that are read.
const FILTERS_MAX: usize = 50;

/// Words in the names of calls that return lists.
const LIST_WORDS: &[&str] = &["list", "lists", "listing", "listings", "catalog", "catalogue", "browse"];

/// Maximum number of endpoints of one text that are read.
const ENDPOINTS_MAX: usize = 500;

/// The meaning of the lines below a heading.
#[expect(clippy::struct_excessive_bools, reason = "independent facts about the current line")]
#[derive(Default)]
struct Section {
    is_of_endpoints: bool,
    /// Whether the heading names an API, and not its documentation.
    is_of_api: bool,
    /// Whether the heading says that its endpoints need no credentials.
    is_open: bool,
    /// Whether the heading is a call, which the next line describes.
    is_call: bool,
    /// The price in the heading.
    price: Option<Payment>,
    /// The text of the heading on the line above, if it has a single subject. It becomes the name of the call below it.
    title: Option<String>,
    pairs: PairedCalls,
    base: StatedBase,
}

impl Section {
    /// Reads a line, and returns whether it is a call, so that no links are read from it.
    fn read_line(&mut self, line: &str, draft: &mut Draft<'_>) -> bool {
        let is_list = line.starts_with(['-', '*', '+']);
        self.base.read_line(line);
        let first = draft.manifest.capabilities.len();
        if self.pairs.read_line(line, self.base.get(), draft) {
            self.complete(first, draft);
            return true;
        }
        // A line such as `Core endpoints:` is a heading too.
        if line.starts_with('#') || (!is_list && line.ends_with(':')) {
            self.read_heading(line, draft);
            let first = draft.manifest.capabilities.len();
            self.is_call = line.starts_with('#') && listed_calls::read_heading(line, self.base.get(), draft);
            self.complete(first, draft);
            return self.is_call;
        }
        let is_plain = !is_list && !line.is_empty() && !line.starts_with(['|', '`', '>', '{', '<']);
        let is_below_call = !line.is_empty() && std::mem::take(&mut self.is_call);
        if let Some(call) = draft.manifest.capabilities.last_mut().filter(|_| is_below_call && is_plain) {
            call.description = call.description.take().or_else(|| draft::description(Some(line)));
        }
        let title = if line.is_empty() { None } else { self.title.take() };
        let first = draft.manifest.capabilities.len();
        if listed_calls::read(line, self.base.get(), draft) {
            if let (Some([call]), Some(title)) = (draft.manifest.capabilities.get_mut(first..), title)
                && line.starts_with('`')
            {
                call.name = title;
            }
            self.complete(first, draft);
            return true;
        }
        let is_path = is_list
            && self.is_of_api
            && !self.is_of_endpoints
            && listed_calls::read_path(line, self.base.get(), draft);
        // `/oauth/*` is a pattern.
        if is_list && self.is_of_endpoints && !line.contains("/*") {
            self.read_endpoint_item(line, draft);
        }
        self.complete(first, draft);
        is_path
    }

    fn read_heading(&mut self, line: &str, draft: &mut Draft<'_>) {
        let heading = capped(line, draft::NAME_CHARS_MAX);
        self.is_open = lenient::says_open(heading) || is_free_heading(heading);
        let is_heading = line.starts_with('#');
        self.price = call_prices::price_of_heading(heading).filter(|_| is_heading);
        self.title = call_prices::title_of_heading(line).filter(|_| is_heading).map(str::to_owned);
        (self.is_of_endpoints, self.is_of_api) = (false, false);
        let mut is_about = false;
        each_word(heading, |word| match word {
            "endpoint" | "endpoints" => self.is_of_endpoints = true,
            "api" | "apis" => self.is_of_api = true,
            "doc" | "docs" | "documentation" | "reference" | "guide" | "guides" | "pages" => is_about = true,
            _ => {}
        });
        self.is_of_api &= !is_about;
        if lenient::says_open(heading) && draft.manifest.auth.is_empty() {
            draft.keep(Auth::new(AuthScheme::None));
        }
    }

    /// Applies the heading to the calls from `first` on.
    fn complete(&self, first: usize, draft: &mut Draft<'_>) {
        for capability in draft.manifest.capabilities.iter_mut().skip(first) {
            capability.price = capability.price.take().or_else(|| self.price.clone());
            if self.is_open && capability.auth.required == Tristate::Unknown {
                capability.auth.required = Tristate::No;
            }
        }
    }

    /// Reads an item with an address below a heading of endpoints.
    fn read_endpoint_item(&self, line: &str, draft: &mut Draft<'_>) {
        if let Some((title, address, remark)) = titled_link(line).filter(|(_, address, _)| is_of_api(address))
        {
            return self.read_endpoint(title, address, Some(remark), draft);
        }
        let Some((label, address)) = addresses::labelled(line) else { return };
        if line.find(address) < line.find(label) {
            self.read_endpoint(address, address, Some(label), draft);
        } else {
            self.read_endpoint(label, address, None, draft);
        }
    }

    /// Reads an address without a method that the text calls an endpoint. A document is only a link.
    fn read_endpoint(&self, name: &str, published: &str, remark: Option<&str>, draft: &mut Draft<'_>) {
        if link_class::classify(published).rel != "page" || draft.manifest.capabilities.len() >= ENDPOINTS_MAX
        {
            return;
        }
        let base = self.base.get().filter(|_| published.starts_with('/'));
        let address = match base {
            Some(_) => listed_calls::resolve(published, base, draft),
            None => address::on_document(draft.base(), published),
        };
        let Some(address) = address else { return };
        let mut capability = draft.capability(CapabilityKind::Operation, name, name, String::new());
        capability.description = draft::description(remark);
        endpoint::set(&mut capability, address);
        draft.push(capability);
    }
}

/// Whether a heading says that the calls below it are free: `### Free endpoints (no payment required)`.
fn is_free_heading(heading: &str) -> bool {
    let heading = heading.to_ascii_lowercase();
    let listed = ["free endpoints", "free routes", "free calls", "free tools"];
    heading.contains("no payment") || listed.iter().any(|words| heading.contains(words))
}

/// Title, address and remark of an item that is a link: `- [Swap quote](/api/quote): how to swap`.
fn titled_link(line: &str) -> Option<(&str, &str, &str)> {
    let item = line.trim_start_matches(['-', '*', '+', ' ']);
    let (title, after) = item.strip_prefix('[')?.split_once("](")?;
    let (address, remark) = after.split_once(')')?;
    let remark = remark.trim_start_matches([':', ' ', '-', '\u{2014}', '\u{2013}']);
    (title.len() <= draft::NAME_BYTES_MAX && !title.contains(']')).then_some((title, address, remark))
}

/// Whether an address belongs to an API, according to its path or host.
fn is_of_api(address: &str) -> bool {
    let path = address.split(['?', '#']).next().unwrap_or_default();
    let is_version = |part: &str| part.strip_prefix('v').is_some_and(|rest| rest.parse::<u16>().is_ok());
    path.contains("://api.") || path.split('/').any(|part| part == "api" || is_version(part))
}

/// A second H1 directly below the title, if it is a sentence: `# 64 products. Live prices in 7 currencies.`
fn subtitle<'t>(lines: impl Iterator<Item = &'t str>) -> Option<String> {
    let mut lines = lines.skip_while(|line| line.is_empty());
    lines.next().filter(|line| line.starts_with("# "))?;
    let second = lines.next()?.strip_prefix("# ")?;
    draft::description(Some(second)).filter(|_| second.split_whitespace().count() >= SUBTITLE_WORDS_MIN)
}

/// Minimum number of words of a second H1 that describes the site.
const SUBTITLE_WORDS_MIN: usize = 4;

/// The text between the title and the next heading, list or empty line.
fn first_paragraph<'t>(lines: impl Iterator<Item = &'t str>) -> Option<String> {
    let is_plain = |line: &&str| !line.is_empty() && !line.starts_with(['#', '-', '*', '+', '|', '`', '[']);
    let after_title = lines.skip_while(|line| line.is_empty() || line.starts_with("# "));
    let paragraph: Vec<&str> = after_title.take_while(is_plain).collect();
    // Lines such as `name: Acme` are not prose.
    let is_labelled = |line: &&str| {
        let label = line.split(':').next().unwrap_or_default();
        ["name", "title", "url", "site", "description", "version"]
            .iter()
            .any(|key| label.eq_ignore_ascii_case(key))
    };
    if paragraph.first().is_some_and(is_labelled) {
        return None;
    }
    draft::description(Some(paragraph.join(" ").as_str()))
}

fn is_link_item(line: &str) -> bool {
    line.starts_with(['-', '*', '+']) && line.contains("](")
}
