//! llms.txt: a Markdown file with links for models. It declares no capability.
//!
//! Reads the title, the quotation and the links, classified by their target.
//!
//! Follows llmstxt.org (September 2024): an H1, an optional quotation, H2 sections with lists of links.

use crate::draft::{self, Draft};
use crate::format::addresses;
use crate::format::labels::Labels;
use crate::rule::findings;

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
    for line in lines() {
        addresses::keep_line(line, draft);
        labels.read_line(line, draft);
    }
    labels.finish(draft);
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
