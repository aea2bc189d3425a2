//! llms.txt: a Markdown file that leads models to what is worth reading. It declares nothing to call.
//!
//! Decides the links, classified by what they lead to. The names of a title, a quotation and sections come from the text.
//!
//! Follows llmstxt.org (September 2024): an H1, an optional quotation, H2 sections with lists of links.

use super::addresses;
use crate::draft::{self, Draft};
use crate::model::Severity;
use crate::rule::{Dialect, Rule};

/// Lines that are read; the longest file seen has 3,800.
const LINES_MAX: usize = 20_000;

pub(crate) const DIALECT: Dialect =
    Dialect { title: "llms.txt", shapes: &[], rules: &[&NO_TITLE, &NO_SECTION, &NO_LINKS] };

const NO_TITLE: Rule = Rule {
    code: "llms_txt.title.missing",
    severity: Severity::Must,
    spec: "llmstxt.org",
    wrong: "the file does not begin with an H1",
    fix: "Begin with `# ` and the name of the site.",
};
const NO_SECTION: Rule = Rule {
    code: "llms_txt.sections.missing",
    severity: Severity::Should,
    spec: "llmstxt.org",
    wrong: "there is no H2 section",
    fix: "Group links under `## ` headings.",
};
const NO_LINKS: Rule = Rule {
    code: "llms_txt.links.missing",
    severity: Severity::Should,
    spec: "llmstxt.org",
    wrong: "there is no list of Markdown links",
    fix: "List pages as `- [title](url): note`.",
};

/// Reads a file.
pub(crate) fn read(text: &str, draft: &mut Draft<'_>) {
    draft.judge("llmstxt.org", |code| code.starts_with("llms_txt."));
    let lines = || text.lines().take(LINES_MAX).map(str::trim);
    match lines().find(|line| !line.is_empty()).and_then(|line| line.strip_prefix("# ")) {
        Some(title) => draft.manifest.name = draft::name(Some(title)),
        None => draft.report_plainly(&NO_TITLE, String::new()),
    }
    if !lines().any(|line| line.starts_with("## ")) {
        draft.report_plainly(&NO_SECTION, String::new());
    }
    if !lines().any(is_link_item) {
        draft.report_plainly(&NO_LINKS, String::new());
    }
    let quoted: Vec<&str> = lines().filter_map(|line| line.strip_prefix('>')).map(str::trim).collect();
    draft.manifest.description = draft::description(Some(quoted.join(" ").as_str()));
    for line in lines() {
        for found in addresses::in_line(line) {
            addresses::keep(&found, draft);
        }
    }
}

fn is_link_item(line: &str) -> bool {
    line.starts_with(['-', '*', '+']) && line.contains("](")
}
