//! llms.txt: a Markdown file with links for models.
//!
//! Reads the title, the quotation and the links, classified by their target. Lists of calls, and lists of addresses below a
//! heading that calls them endpoints, are capabilities.
//!
//! Follows llmstxt.org (September 2024): an H1, an optional quotation, H2 sections with lists of links.

use url::Url;

use crate::address;
use crate::draft::{self, Draft};
use crate::format::addresses::{self, LinkInText};
use crate::format::labels::Labels;
use crate::format::listed_tools::ListedTools;
use crate::format::priced_calls::PricedCalls;
use crate::format::{endpoint, lenient, listed_calls};
use crate::model::{Auth, AuthScheme, CapabilityKind, Tristate};
use crate::rule::findings;
use crate::text::{capped, each_word};

/// Lines that are read; the longest file seen has 3,800.
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
    draft.manifest.description = quoted.or_else(|| first_paragraph(lines()));
    let mut labels = Labels::default();
    let mut section = Section::default();
    let (mut tools, mut priced) = (ListedTools::default(), PricedCalls::default());
    for line in lines() {
        if tools.read_line(line) {
            continue;
        }
        if priced.read_line(line, draft) {
            labels.read_line(line, draft);
            continue;
        }
        if section.read_line(line, draft) {
            continue;
        }
        for name in addresses::labelled_files(line) {
            addresses::keep(&LinkInText { title: Some(name), address: name }, draft);
        }
        if let Some(file) = addresses::described_file(line) {
            addresses::keep(&file, draft);
        }
        addresses::keep_line(line, draft);
        labels.read_line(line, draft);
    }
    labels.finish(draft);
    tools.finish(draft);
}

/// Endpoints of one text that are read.
const ENDPOINTS_MAX: usize = 500;

/// What the lines below a heading are.
#[derive(Default)]
struct Section {
    is_of_endpoints: bool,
    /// The heading says that its endpoints need no credentials.
    is_open: bool,
    /// The base of paths, as the text states it.
    base: Option<Url>,
}

impl Section {
    /// Reads a line, and tells whether it is a call, which holds no link.
    fn read_line(&mut self, line: &str, draft: &mut Draft<'_>) -> bool {
        let is_list = line.starts_with(['-', '*', '+']);
        // A line such as `Core endpoints:` is a heading too.
        if line.starts_with('#') || (!is_list && line.ends_with(':')) {
            let heading = capped(line, draft::NAME_CHARS_MAX);
            self.is_open = lenient::says_open(heading);
            self.is_of_endpoints = false;
            each_word(heading, |word| self.is_of_endpoints |= matches!(word, "endpoint" | "endpoints"));
            if self.is_open && draft.manifest.auth.is_empty() {
                draft.keep(Auth::new(AuthScheme::None));
            }
            return false;
        }
        let labelled = addresses::labelled(line);
        if let Some((label, address)) = labelled.filter(|_| self.base.is_none())
            && ["base url", "api base", "base"].iter().any(|base| label.eq_ignore_ascii_case(base))
        {
            self.base = Url::parse(address).ok().filter(Url::has_host);
        }
        if listed_calls::read(line, self.base.as_ref(), draft) {
            return true;
        }
        if let Some((label, address)) = labelled.filter(|_| self.is_of_endpoints && is_list) {
            let is_described = line.find(address) < line.find(label);
            self.read_endpoint(if is_described { address } else { label }, address, draft);
            if let Some(last) =
                draft.manifest.capabilities.last_mut().filter(|last| is_described && last.name == address)
            {
                last.description = draft::description(Some(label));
            }
        }
        false
    }

    /// An address without a method, which the text calls an endpoint. A document is only a link.
    fn read_endpoint(&self, label: &str, published: &str, draft: &mut Draft<'_>) {
        if addresses::classify(published).rel != "page" || draft.manifest.capabilities.len() >= ENDPOINTS_MAX
        {
            return;
        }
        let Some(address) = address::on_document(draft.base(), published) else { return };
        let mut capability = draft.capability(CapabilityKind::Operation, label, label, String::new());
        endpoint::set(&mut capability, address);
        if self.is_open {
            capability.auth.required = Tristate::No;
        }
        draft.push(capability);
    }
}

/// The text between the title and the next heading, list or empty line.
fn first_paragraph<'t>(lines: impl Iterator<Item = &'t str>) -> Option<String> {
    let is_plain = |line: &&str| !line.is_empty() && !line.starts_with(['#', '-', '*', '+', '|', '`', '[']);
    let after_title = lines.skip_while(|line| line.is_empty() || line.starts_with("# "));
    let paragraph: Vec<&str> = after_title.take_while(is_plain).collect();
    draft::description(Some(paragraph.join(" ").as_str()))
}

fn is_link_item(line: &str) -> bool {
    line.starts_with(['-', '*', '+']) && line.contains("](")
}
