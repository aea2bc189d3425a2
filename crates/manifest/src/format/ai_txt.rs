//! ai.txt, which has no specification. Reads its addresses, its labelled lines and, in robots-like files, the name.

use serde_json::Value;

use crate::budget::{self, Limits};
use crate::document::MANIFEST_BYTES_MAX;
use crate::draft::{self, Draft};
use crate::format::labels::Labels;
use crate::format::listed_tools::ListedTools;
use crate::format::plan_lines::PlanLines;
use crate::format::product_lines::ProductLines;
use crate::format::stated_auth::StatedAuth;
use crate::format::stated_base::StatedBase;
use crate::format::{addresses, listed_calls, whole_variables};
use crate::json;
use crate::text;

/// Maximum number of lines that are read.
const LINES_MAX: usize = 5_000;

pub(crate) fn read(text: &str, draft: &mut Draft<'_>) {
    let (mut labels, mut tools) = (Labels::default(), ListedTools::default());
    let (mut above, mut products, mut base) = ("", ProductLines::default(), StatedBase::default());
    let (mut credentials, mut plans) = (StatedAuth::default(), PlanLines::default());
    let text = &*whole_variables::with_whole_variables(text);
    for whole in text.lines().take(LINES_MAX) {
        credentials.read_line(whole, draft);
        let line = whole.trim();
        plans.read_line(line, draft);
        labels.read_prohibition(above, line, draft);
        if draft.manifest.name.is_none() {
            draft.manifest.name = named(line).and_then(|name| draft::name(Some(name)));
        }
        base.read_line(line);
        if !tools.read_line(line)
            && !products.read_paths(line, draft)
            && !listed_calls::read(line, base.get(), draft)
        {
            products.read_line(line, draft);
            addresses::keep_below(std::mem::replace(&mut above, line), line, draft);
            labels.read_line(line, draft);
        }
    }
    labels.finish(draft);
    plans.finish(draft);
    let calls = draft.manifest.capabilities.len();
    tools.finish(draft);
    credentials.finish(calls, draft);
}

/// The JSON object below the comments, with or without a code block around it.
pub(crate) fn object_below_comments(text: &str) -> Option<Value> {
    let mut below = text;
    while let Some((_, rest)) = below.split_once('\n').filter(|(line, _)| is_comment(line)) {
        below = rest;
    }
    if let Some((fence, rest)) = below.split_once('\n')
        && matches!(fence.trim_end(), "```json" | "```")
    {
        below = rest.split("\n```").next().unwrap_or_default();
    }
    let limits = Limits { nodes: budget::MANIFEST_NODES_MAX, ..budget::DOCUMENT };
    let is_long = below.len() > MANIFEST_BYTES_MAX;
    if !below.starts_with('{') || is_long {
        return None;
    }
    let outline = budget::check_json(below.as_bytes(), limits).ok()?.outline;
    match json::parse(below, &outline) {
        Ok((document, _)) => Some(document),
        Err(_) => None,
    }
}

fn is_comment(line: &str) -> bool {
    line.trim().is_empty() || line.starts_with('#')
}

fn named(line: &str) -> Option<&str> {
    if let Some(title) = line.strip_prefix("# ") {
        return (!title.contains("://") && !text::is_sentence(title)).then_some(title);
    }
    let (key, value) = line.split_once(':')?;
    matches!(key.to_ascii_lowercase().as_str(), "name" | "product" | "site-name").then_some(value.trim())
}
