//! agents.txt: several grammars under one name, and the JSON forms of two of them.
//!
//! The keys determine the grammar. Of other texts, only addresses are kept. A text is converted to its JSON form, so that one parser
//! handles both forms. JSON pointers of findings refer to the JSON form.
//!
//! Follows agents.txt 0.1 (kaylacar/agents-protocol) in prose and SDK, agents.txt 1.0 (kaylacar/agents-txt,
//! draft-car-agents-txt-wellknown-00) and agents.txt 1.0 of agents-txt.com.

mod com;
mod grammar;
mod v0;
mod v1;

use serde_json::Value;

use crate::document::Body;
use crate::draft::{self, Draft};
use crate::format::detect::candidate::{Marker, strong};
use crate::format::labels::Labels;
use crate::format::listed_tools::ListedTools;
use crate::format::paired_calls::PairedCalls;
use crate::format::plan_lines::PlanLines;
use crate::format::priced_calls::PricedCalls;
use crate::format::shown_calls::ShownCalls;
use crate::format::shown_servers::ShownServers;
use crate::format::stated_auth::StatedAuth;
use crate::format::stated_base::StatedBase;
use crate::format::{addresses, call_prices, listed_calls, whole_variables};
use crate::object::Object;
use crate::rule::{FindingTable, findings};
use crate::text;

/// Maximum number of lines that are read; the longest published file has 1,900.
const LINES_MAX: usize = 20_000;

pub(crate) const MARKERS: &[Marker] = &[
    strong(|c| c.with_site("specVersion")),
    strong(|c| {
        let marker = ["$schema", "standard"]
            .iter()
            .find_map(|key| c.text(key).filter(|v| v.contains("agents-txt.com")))?;
        Some(format!("it names {marker}"))
    }),
];

/// The findings of every grammar.
pub(crate) const FINDING_TABLES: &[&FindingTable] =
    &[&v0::FINDINGS, &v1::FINDINGS, &com::FINDINGS, &FINDINGS];

findings! {
    rule NO_GRAMMAR: Must("agents_txt.grammar.unknown", "agents.txt 1.0 §3.1")
        "the file is prose, Markdown or robots.txt rules rather than one of the grammars of agents.txt"
            => "Write `Spec-Version`, `Site-Name`, `Site-URL` and a `Capability:` block for each thing that agents can do.";
}

/// Reads a text in any grammar, or its JSON form.
pub(crate) fn read(body: &Body<'_>, draft: &mut Draft<'_>) {
    match (body.root(), body.text()) {
        (Some(root), _) if root.has("specVersion") => v1::read(&root, draft),
        (Some(root), _) => com::read(&root, draft),
        (None, Some(text)) => read_text(text, draft),
        (None, None) => {}
    }
}

fn read_text(text: &str, draft: &mut Draft<'_>) {
    let lines = grammar::lines(text);
    let has = |key: &str| lines.iter().any(|line| line.indent == 0 && line.key == key);
    let com_keys = ["protocols", "authorization", "mcp", "skills", "a2a", "ucp", "webmcp"];
    if has("spec-version") || (has("site-name") && has("capability")) {
        read_json(&v1::to_json(&lines), draft, v1::read);
        v1::keep_others(&lines, draft);
    } else if com_keys.iter().filter(|key| has(key)).count() >= 2 {
        read_json(&com::to_json(&lines), draft, com::read);
    } else if v0::is_v0(&lines) {
        v0::read(&lines, draft);
    } else {
        return read_prose(text, draft);
    }
    // `# JSON: https://…` in a comment is the address of the JSON form.
    for line in text.lines().take(LINES_MAX).filter(|line| line.trim_start().starts_with('#')) {
        addresses::keep_line(line, draft);
    }
}

fn read_json(json: &Value, draft: &mut Draft<'_>, read: fn(&Object<'_>, &mut Draft<'_>)) {
    if let Value::Object(map) = json {
        read(&Object::root(map), draft);
    }
}

/// The first line of a text, if it is a title without a mark: no label, address or sentence.
fn title_line(line: &str) -> Option<&str> {
    let is_title = line.starts_with(char::is_alphabetic)
        && line.len() <= TITLE_BYTES_MAX
        && !line.contains([':', '/', '@', '{', '<', '|', '='])
        && !line.ends_with(['.', '!', '?', ','])
        && !text::is_sentence(line);
    is_title.then_some(line)
}

/// Maximum number of bytes of a title without a mark.
const TITLE_BYTES_MAX: usize = 80;

/// Reads prose and policy stubs: a title, addresses, labelled lines, and calls in lists.
fn read_prose(prose: &str, draft: &mut Draft<'_>) {
    draft.dialect(None, Some("prose"));
    draft.assess("agents.txt", |code| code.starts_with("agents_txt."));
    draft.report_rule(&NO_GRAMMAR, String::new());
    let (mut labels, mut tools) = (Labels::default(), ListedTools::default());
    let (mut priced, mut base) = (PricedCalls::default(), StatedBase::default());
    let (mut above, mut is_of_api) = ("", false);
    let (mut credentials, mut shown) = (StatedAuth::default(), ShownCalls::default());
    let (mut pairs, mut servers) = (PairedCalls::default(), ShownServers::default());
    let mut plans = PlanLines::default();
    let prose = &*whole_variables::with_whole_variables(prose);
    let first = prose.lines().map(str::trim).find(|line| !line.is_empty()).and_then(title_line);
    for whole in prose.lines().take(LINES_MAX) {
        credentials.read_line(whole, draft);
        let line = whole.trim();
        servers.read_line(line, draft);
        plans.read_line(line, draft);
        labels.read_prohibition(above, line, draft);
        if draft.manifest.name.is_none() {
            let title =
                line.strip_prefix("# ").filter(|title| !title.contains("://") && !text::is_sentence(title));
            draft.manifest.name = draft::name(title);
        }
        if tools.read_line(line) || shown.read_line(line, base.get(), draft) {
            continue;
        }
        if line.starts_with("##") {
            is_of_api = call_prices::is_heading_of_api(line);
        }
        if priced.read_line(line, draft) {
            labels.read_line(line, draft);
            continue;
        }
        base.read_line(line);
        let is_call = pairs.read_line(line, base.get(), draft)
            || listed_calls::read(line, base.get(), draft)
            || (is_of_api && listed_calls::read_path(line, base.get(), draft));
        let above = std::mem::replace(&mut above, line);
        // The path of a call below a base is not a page of the site.
        if !is_call || base.get().is_none() {
            if let Some(page) = addresses::path_of_item(line).filter(|_| !is_call) {
                addresses::keep(&page, draft);
            }
            addresses::keep_below(above, line, draft);
        }
        labels.read_line(line, draft);
    }
    labels.finish(draft);
    draft.manifest.name = draft.manifest.name.take().or_else(|| draft::name(first));
    plans.finish(draft);
    let calls = draft.manifest.capabilities.len();
    shown.finish(draft);
    tools.finish(draft);
    credentials.finish(calls, draft);
}
