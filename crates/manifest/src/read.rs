//! The one way in: bytes and what is known of them become a [`Manifest`]. Never fails, never panics, always ends.

use serde_json::{Map, Value};

use crate::budget::{self, MANIFEST_NODES_MAX, Measure, OverBudget};
use crate::bytes::{self, Decoded};
use crate::detect;
use crate::draft::{Draft, detection};
use crate::format::{self, Body};
use crate::json::{self, NotJson, Notes};
use crate::model::{Detection, Discovery, Format, Manifest, Served, Severity, Strength};
use crate::name::ManifestUrl;
use crate::rule::Rule;
use crate::text::Hidden;
use crate::{identity, served};

/// A document to read, and what is known of how it came.
#[derive(Debug, Clone, Copy)]
pub struct Document<'a> {
    pub bytes: &'a [u8],
    /// As requested.
    pub url: &'a ManifestUrl,
    /// After redirects, when it differs.
    pub final_url: Option<&'a ManifestUrl>,
    pub discovery: Discovery,
    /// `None`: rules about how a document is served are not checked.
    pub served: Option<&'a Served>,
    /// Documents that were fetched for this one's links with [`crate::model::Follow::Merge`].
    pub linked: &'a [LinkedDocument<'a>],
    /// Reads the document as this format whatever it looks like.
    pub force: Option<Format>,
}

/// A document that completes another one.
#[derive(Debug, Clone, Copy)]
pub struct LinkedDocument<'a> {
    pub url: &'a ManifestUrl,
    pub bytes: &'a [u8],
}

/// Version of the reader: what it accepts, how it parses, and which budgets it enforces.
///
/// Raise it by one whenever reading changes: another parser or parser version, another budget, or another normalisation.
/// A document that stalled or ended a reader is retried only by a reader of another version.
pub const READER_VERSION: u32 = 1;
/// Largest document that is parsed at all: the largest OpenAPI documents published are a quarter of it.
pub const DOCUMENT_BYTES_MAX: usize = 16 * 1_024 * 1_024;
/// Largest manifest that is read; only OpenAPI documents may be longer.
pub const MANIFEST_BYTES_MAX: usize = 4 * 1_024 * 1_024;
/// Length above which a manifest is worth a remark: six times the 95th percentile of what is published.
pub const MANIFEST_BYTES_ADVISED: usize = 256 * 1_024;

const TOO_LONG: Rule = Rule {
    code: "document.too_long",
    severity: Severity::Must,
    spec: "agentdex limits",
    wrong: "the document is longer than what is read",
    fix: "Publish a manifest below 4 MiB (OpenAPI documents: 16 MiB); link to details instead of embedding them.",
};
const LONG: Rule = Rule {
    code: "document.long",
    severity: Severity::May,
    spec: "agentdex limits",
    wrong: "the document is longer than agents like to read",
    fix: "Keep manifests below 256 KiB; link to details instead of embedding them.",
};
pub(crate) const OVER_BUDGET: Rule = Rule {
    code: "document.over_budget",
    severity: Severity::Must,
    spec: "agentdex limits",
    wrong: "the document is nested deeper, or holds more values or text, than is read",
    fix: "Flatten or split the document until it is within the limit that is named; link to details instead of embedding them.",
};
const TRUNCATED: Rule = Rule {
    code: "document.truncated",
    severity: Severity::Must,
    spec: "agentdex limits",
    wrong: "the body was cut at the size cap while it was fetched",
    fix: "Publish a shorter document.",
};
pub(crate) const SYNTAX: Rule = Rule {
    code: "json.syntax",
    severity: Severity::Must,
    spec: "RFC 8259",
    wrong: "the document is not JSON",
    fix: "Correct the syntax at the offset named; no reader repairs it silently.",
};
const DUPLICATE: Rule = Rule {
    code: "json.duplicate_name",
    severity: Severity::Should,
    spec: "RFC 8259 §4",
    wrong: "a name occurs twice in one object; the last value counts",
    fix: "Keep one of the two.",
};
const TOO_DEEP: Rule = Rule {
    code: "json.too_deep",
    severity: Severity::Should,
    spec: "RFC 8259 §9",
    wrong: "a value is nested deeper than 64 levels and was dropped",
    fix: "Flatten the structure.",
};
const STRING_CUT: Rule = Rule {
    code: "json.string_too_long",
    severity: Severity::Should,
    spec: "RFC 8259 §9",
    wrong: "a string is longer than 64 KiB and was cut",
    fix: "Shorten the text or link to it.",
};
const CONTROL: Rule = hidden_rule("text.control_characters", "control characters were removed");
const BIDI: Rule = hidden_rule("text.bidi_characters", "characters that reorder text were removed");
const ZERO_WIDTH: Rule = hidden_rule("text.zero_width_characters", "invisible characters were removed");
const TAGS: Rule =
    hidden_rule("text.tag_characters", "tag characters, which spell invisible text, were removed");

const fn hidden_rule(code: &'static str, wrong: &'static str) -> Rule {
    let fix = "Publish text without characters that a reader cannot see.";
    Rule { code, severity: Severity::Should, spec: "UTS 39 §5", wrong, fix }
}

/// The rules that hold for every document.
pub(crate) const RULES: &[&Rule] = &[
    &bytes::EMPTY,
    &bytes::UTF16,
    &bytes::NOT_UTF8,
    &bytes::HTML,
    &bytes::BOM,
    &TOO_LONG,
    &LONG,
    &OVER_BUDGET,
    &TRUNCATED,
    &SYNTAX,
    &DUPLICATE,
    &TOO_DEEP,
    &STRING_CUT,
    &CONTROL,
    &BIDI,
    &ZERO_WIDTH,
    &TAGS,
    &crate::draft::CAPABILITIES_CUT,
    &crate::draft::UNDERSTATED,
    &crate::draft::ADDRESSES_READER,
    &crate::draft::INSECURE,
    &crate::draft::UNUSABLE,
];

/// Reads a document: detects its dialect, reports where it deviates, and normalises it.
pub fn read(document: &Document<'_>) -> Manifest {
    let mut draft = if document.bytes.len() > DOCUMENT_BYTES_MAX {
        malformed(document, &TOO_LONG, DOCUMENT_BYTES_MAX)
    } else {
        match bytes::decode(document.bytes) {
            Decoded::Refused(rule, offset) => malformed(document, rule, offset),
            Decoded::Text(..) if bytes::is_html(document.bytes) => malformed(document, &bytes::HTML, 0),
            Decoded::Text(text, skipped) => read_text(document, text, skipped),
        }
    };
    report_size(&mut draft);
    identity::examine(&mut draft);
    served::examine(&mut draft);
    draft.finish()
}

fn malformed<'d>(document: &'d Document<'d>, rule: &Rule, offset: usize) -> Draft<'d> {
    let mut draft = Draft::new(document, detection(Format::Malformed, Strength::Strong, rule.wrong));
    draft.report(rule, String::new(), format!("{} (at byte {offset})", rule.wrong));
    draft.judge("RFC 8259", |_| true);
    draft
}

fn read_text<'d>(document: &'d Document<'d>, text: &str, skipped: usize) -> Draft<'d> {
    let path = document.url.path();
    let mut draft = match detect::syntax(text, path) {
        detect::Syntax::Json => match budget::check_json(text.as_bytes(), budget::DOCUMENT) {
            Ok(meter) => match json::parse(text) {
                Ok((value, notes)) => read_json(document, &value, &notes, meter.spent().nodes),
                Err(error) => not_json(document, &error, skipped),
            },
            Err(over) => over_budget(document, over),
        },
        detect::Syntax::Text => {
            let found = forced(document).unwrap_or_else(|| detect::text(text, path));
            let mut draft = Draft::new(document, found);
            format::read(&Body::Text(text), &mut draft);
            draft
        }
    };
    if skipped > 0 {
        draft.report_plainly(&bytes::BOM, String::new());
    }
    draft
}

/// A document that is not read because of what it would cost.
fn over_budget<'d>(document: &'d Document<'d>, over: OverBudget) -> Draft<'d> {
    let mut draft = Draft::new(document, detection(Format::Malformed, Strength::Strong, over.to_string()));
    draft.report(&OVER_BUDGET, String::new(), over.to_string());
    draft.judge("RFC 8259", |_| true);
    draft
}

fn not_json<'d>(document: &'d Document<'d>, error: &NotJson, skipped: usize) -> Draft<'d> {
    let offset = error.offset + skipped;
    let evidence = format!("not JSON: {} at byte {offset}", error.reason);
    let mut draft = Draft::new(document, detection(Format::Malformed, Strength::Strong, evidence));
    draft.report(&SYNTAX, String::new(), format!("{} at byte {offset}", error.reason));
    draft.judge("RFC 8259", |_| true);
    draft
}

fn read_json<'d>(document: &'d Document<'d>, value: &Value, notes: &Notes, values: usize) -> Draft<'d> {
    let found = detect::json(value, document.url.path());
    let (detection, part, pointer) = match forced(document) {
        Some(forced) if forced.format != found.detection.format => (forced, value, String::new()),
        Some(forced) => (forced, found.body, found.pointer),
        None => (found.detection, found.body, found.pointer),
    };
    let too_long = document.bytes.len() > MANIFEST_BYTES_MAX && detection.format != Format::OpenApi;
    if values > MANIFEST_NODES_MAX && detection.format != Format::OpenApi && !too_long {
        let over = OverBudget { measure: Measure::Nodes, limit: MANIFEST_NODES_MAX, measured: values };
        return over_budget(document, over);
    }
    let empty = Value::Object(Map::new());
    let mut draft = Draft::new(document, detection);
    draft.within(&pointer, |draft| format::read(&Body::Json(if too_long { &empty } else { part }), draft));
    if !pointer.is_empty() {
        format::read_around(&Body::Json(value), &mut draft);
    }
    if too_long {
        draft.report_plainly(&TOO_LONG, String::new());
    }
    report_notes(&mut draft, notes);
    draft
}

fn forced(document: &Document<'_>) -> Option<Detection> {
    document.force.map(|format| detection(format, Strength::Strong, "the format was given"))
}

fn report_size(draft: &mut Draft<'_>) {
    let length = draft.document.bytes.len();
    if draft.format() != Format::OpenApi && (MANIFEST_BYTES_ADVISED..=MANIFEST_BYTES_MAX).contains(&length) {
        draft.report(&LONG, String::new(), format!("the document has {length} bytes"));
    }
    if draft.document.served.is_some_and(|served| served.truncated) {
        draft.report_plainly(&TRUNCATED, String::new());
    }
}

fn report_notes(draft: &mut Draft<'_>, notes: &Notes) {
    for (rule, pointers) in
        [(&DUPLICATE, &notes.duplicates), (&TOO_DEEP, &notes.too_deep), (&STRING_CUT, &notes.cut)]
    {
        for pointer in pointers {
            draft.report_plainly(rule, pointer.clone());
        }
    }
    for (kind, count, pointer) in &notes.hidden {
        let rule = match kind {
            Hidden::Control => &CONTROL,
            Hidden::Bidi => &BIDI,
            Hidden::ZeroWidth => &ZERO_WIDTH,
            Hidden::Tag => &TAGS,
        };
        draft.report(rule, pointer.clone(), format!("{} ({count}, the first one here)", rule.wrong));
    }
}
