//! The entry point: reads a document into a [`Manifest`]. Never fails or panics, always terminates.

use serde_json::Value;

use crate::budget::{self, MANIFEST_NODES_MAX, Measure, OverBudget};
use crate::bytes::{self, Decoded};
use crate::document::{self, Body, DOCUMENT_BYTES_MAX, Document, MANIFEST_BYTES_ADVISED, MANIFEST_BYTES_MAX};
use crate::draft::Draft;
use crate::format::{self, detect};
use crate::json::{self, NotJson, Notes};
use crate::model::{Detection, Format, Manifest, Strength};
use crate::rule::Rule;
use crate::text::Hidden;
use crate::{identity, position, served, signature, unread};

/// Version of the reader: changes with the accepted documents, the parsing and the budgets.
///
/// Raise it by one whenever reading changes: another parser or parser version, another budget, or another normalisation. A document that
/// stalled or ended a reader is retried only by a reader of another version.
pub const READER_VERSION: u32 = 21;

/// Reads a document: detects its dialect, reports where it deviates, and normalises it.
pub fn read(document: &Document<'_>) -> Manifest {
    let mut draft = if document.bytes.len() > DOCUMENT_BYTES_MAX {
        malformed(document, &document::TOO_LONG, DOCUMENT_BYTES_MAX)
    } else {
        match bytes::decode(document.bytes) {
            Decoded::Refused(rule, offset) => malformed(document, rule, offset),
            Decoded::Text(..) if bytes::is_html(document.bytes) => malformed(document, &bytes::HTML, 0),
            Decoded::Text(text, skipped) => read_text(document, text, skipped),
        }
    };
    report_size(&mut draft);
    // a document that is too long was not read
    if document.force.is_none() && document.bytes.len() <= MANIFEST_BYTES_MAX {
        recognise(&mut draft);
    }
    if draft.format() == Format::Opaque {
        unread::forget(&mut draft);
    }
    identity::check(&mut draft);
    served::check(&mut draft);
    draft.finish()
}

fn malformed<'d>(document: &'d Document<'d>, rule: &Rule, offset: usize) -> Draft<'d> {
    unreadable(document, rule, rule.wrong.to_owned(), format!("{} (at byte {offset})", rule.wrong))
}

/// The draft of a document that cannot be read, with the evidence of the detection and a single finding.
fn unreadable<'d>(document: &'d Document<'d>, rule: &Rule, evidence: String, text: String) -> Draft<'d> {
    let mut draft = Draft::new(document, Detection::new(Format::Malformed, Strength::Strong, evidence));
    draft.report(rule, String::new(), text);
    draft.assess("RFC 8259", |_| true);
    draft
}

fn read_text<'d>(document: &'d Document<'d>, text: &str, skipped: usize) -> Draft<'d> {
    let path = document.url.path();
    let syntax = if document.force.is_some_and(format::is_text) {
        detect::Syntax::Text
    } else {
        detect::syntax(text, path)
    };
    let mut draft = match syntax {
        detect::Syntax::Json => match budget::check_json(text.as_bytes(), budget::DOCUMENT) {
            Ok(checked) => match json::parse(text, &checked.outline) {
                Ok((value, notes)) => read_json(document, text, &value, &notes, checked.spent.nodes),
                Err(error) => not_json(document, text, &error),
            },
            Err(over) => over_budget(document, over),
        },
        detect::Syntax::Text => {
            let found = forced(document).unwrap_or_else(|| detect::text(text, path));
            let evidence = (found.format == Format::Malformed).then(|| found.evidence.join("; "));
            let mut draft = Draft::new(document, found);
            draft.search_steering_lines(text);
            if let Some(evidence) = evidence {
                draft.report(&document::NOT_JSON, String::new(), evidence);
                draft.assess(document::NOT_JSON.spec, |_| true);
            }
            format::read(&Body::Text(text), &mut draft);
            identity::mark_not_public(&mut draft, None);
            draft
        }
    };
    if skipped > 0 {
        draft.report_rule(&bytes::BOM, String::new());
    }
    draft
}

fn over_budget<'d>(document: &'d Document<'d>, over: OverBudget) -> Draft<'d> {
    unreadable(document, &document::OVER_BUDGET, over.to_string(), over.to_string())
}

fn not_json<'d>(document: &'d Document<'d>, text: &str, error: &NotJson) -> Draft<'d> {
    let wrong = format!("{} at {}", error.reason, position::place_words(text, error.offset));
    unreadable(document, &document::SYNTAX, format!("not JSON: {wrong}"), wrong)
}

fn read_json<'d>(
    document: &'d Document<'d>,
    text: &str,
    value: &Value,
    notes: &Notes,
    values: usize,
) -> Draft<'d> {
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
    let is_whole = pointer.is_empty();
    let mut draft = Draft::new(document, detection);
    if too_long {
        draft.report_rule(&document::TOO_LONG, String::new());
        draft.assess(document::TOO_LONG.spec, |_| true);
        return draft;
    }
    draft.search_steering(value);
    draft.within(&pointer, |draft| format::read(&Body::Json(part), draft));
    if !is_whole {
        let beside = without_wrapper(value, &pointer);
        report_wrapped(pointer, &mut draft);
        format::read_embedded(&Body::Json(&beside), &mut draft);
    }
    report_notes(&mut draft, notes);
    if is_whole {
        signature::check(&mut draft, text, notes);
    }
    identity::mark_not_public(&mut draft, Some(value));
    identity::locate(&mut draft, value);
    unread::keep(value, &mut draft);
    draft
}

/// The members next to the one that contains the document.
fn without_wrapper(value: &Value, pointer: &str) -> Value {
    let wrapper = pointer.split('/').nth(1).unwrap_or_default();
    let beside = value.as_object().into_iter().flatten().filter(|(name, _)| *name != wrapper);
    Value::Object(beside.map(|(name, value)| (name.clone(), value.clone())).collect())
}

/// Reports a wrapper for formats whose specifications define the members of the root.
fn report_wrapped(pointer: String, draft: &mut Draft<'_>) {
    let format = draft.format();
    if has_specified_root(format) {
        let text =
            format!("the members of {} are inside `{}`", format.label(), pointer.trim_start_matches('/'));
        draft.report(&document::WRAPPED, pointer, text);
    }
}

const fn has_specified_root(format: Format) -> bool {
    matches!(
        format,
        Format::Awp
            | Format::Atp
            | Format::Woa
            | Format::AgentsJson
            | Format::Arws
            | Format::A2a
            | Format::Ard
            | Format::McpCard
            | Format::McpRegistry
            | Format::SkillsIndex
            | Format::ApiCatalog
            | Format::Wildcard
    )
}

/// Reclassifies documents without a known format: if nothing can be called or followed, the document is not a manifest; if it names a
/// server or a command, it is one.
fn recognise(draft: &mut Draft<'_>) {
    let names_interface = !draft.manifest.interfaces.is_empty();
    if draft.format() == Format::Opaque && names_interface {
        let evidence = "no list of capabilities, but a server or a command to call";
        draft.manifest.detection = Detection::new(Format::Pointer, Strength::Weak, evidence);
    }
    if !matches!(draft.format(), Format::Generic | Format::Pointer | Format::List) {
        return;
    }
    let manifest = &draft.manifest;
    let own = manifest.url.as_str();
    let leads_elsewhere = manifest.links.iter().any(|link| link.url != own);
    let is_empty =
        manifest.capabilities.is_empty() && manifest.interfaces.is_empty() && manifest.payments.is_empty();
    if is_empty && !leads_elsewhere {
        let evidence = format!("{}, but nothing in it can be called", manifest.detection.evidence.join("; "));
        draft.manifest.detection = Detection::new(Format::Opaque, Strength::Weak, evidence);
    }
}

fn forced(document: &Document<'_>) -> Option<Detection> {
    document.force.map(|format| Detection::new(format, Strength::Strong, "the format was given"))
}

fn report_size(draft: &mut Draft<'_>) {
    let length = draft.document.bytes.len();
    if draft.format() != Format::OpenApi && (MANIFEST_BYTES_ADVISED..=MANIFEST_BYTES_MAX).contains(&length) {
        draft.report(&document::LONG, String::new(), format!("the document has {length} bytes"));
    }
    if draft.document.served.is_some_and(|served| served.truncated) {
        draft.report_rule(&document::TRUNCATED, String::new());
    }
}

fn report_notes(draft: &mut Draft<'_>, notes: &Notes) {
    for (rule, pointers) in [
        (&document::DUPLICATE, &notes.duplicates),
        (&document::TOO_DEEP, &notes.too_deep),
        (&document::STRING_CUT, &notes.cut),
    ] {
        for pointer in pointers {
            draft.report_rule(rule, pointer.clone());
        }
    }
    for (kind, count, pointer) in &notes.hidden {
        let rule = match kind {
            Hidden::Control => &document::CONTROL,
            Hidden::Bidi => &document::BIDI,
            Hidden::ZeroWidth => &document::ZERO_WIDTH,
            Hidden::Tag => &document::TAGS,
        };
        draft.report(rule, pointer.clone(), format!("{} ({count}, the first one here)", rule.wrong));
    }
}
