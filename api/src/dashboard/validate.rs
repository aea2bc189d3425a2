//! The validator page: the lines of a document with their findings, the most important fixes, and what would be indexed.

use std::collections::BTreeMap;

use askama::Template;
use manifest::{Format, ManifestUrl, Severity};

use super::capability::FindingView;
use super::frame::{Frame, Section};
use super::type_words::type_words;
use super::{labels, links};
use crate::answers::validate::{ExampleRequests, PlacedFinding, UnfoundRequest, ValidateAnswer};
use crate::page_context::PageContext;
use crate::text;

/// Maximum number of displayed lines, chosen so that browsers stay fast.
const LINES_MAX: usize = 2_000;
/// Maximum length of a displayed line, in characters.
const LINE_CHARS_MAX: usize = 400;
/// Maximum size of the displayed lines of a document, and of the document in the form, in bytes after escaping.
const ECHO_BYTES_MAX: usize = 1024 * 1024;
/// Maximum length of a displayed URL and of a displayed error, in characters.
const WORDS_CHARS_MAX: usize = 1_000;
/// Maximum number of displayed findings without a displayed line.
const ELSEWHERE_MAX: usize = 200;
/// Maximum number of findings next to one line, and next to all lines.
const FINDINGS_OF_LINE_MAX: usize = 10;
const FINDINGS_OF_LINES_MAX: usize = 1_000;
/// Maximum number of findings in the list of first fixes.
const FIRST_MAX: usize = 5;
/// Maximum number of listed example requests.
const UNFOUND_MAX: usize = 20;
/// The finding of a document that is an HTML page.
const HTML_CODE: &str = "document.html";
/// Maximum number of listed capabilities.
const CAPABILITIES_MAX: usize = 50;

/// Placeholder of the empty text field.
const PLACEHOLDER: &str = r#"{
  "awp_version": "0.1",
  "domain": "example.org",
  "intent": "Find and book seats on our flights.",
  "actions": [
    {"id": "find_flights", "description": "Search flights between two airports.",
     "endpoint": "/api/flights", "method": "GET", "auth_required": false,
     "inputs": {"from": {"type": "airport_code", "required": true}},
     "outputs": {"flights": "array[object]"}}
  ],
  "errors": {"RATE_LIMITED": {"recovery": "wait 60 seconds then retry"}}
}"#;

/// The input of the form.
#[derive(Debug, Default)]
pub(crate) struct FormInput {
    pub(crate) document: String,
    pub(crate) url: String,
    pub(crate) force: Option<Format>,
    /// Whether the stored document of the URL is validated.
    pub(crate) is_stored: bool,
}

/// The URL of the result for a stored document, for sharing.
fn share(typed: &FormInput) -> Option<String> {
    let url = Some(typed.url.as_str()).filter(|url| typed.is_stored && !url.is_empty())?;
    let form = typed.force.map(|format| ("as", format.as_str()));
    Some(links::with_query("/validate", [("url", url)].into_iter().chain(form)))
}

/// The site of the typed address.
fn badge_site(typed: &FormInput) -> Option<String> {
    ManifestUrl::parse(&typed.url).ok().map(|url| url.site().to_string())
}

struct Choice {
    slug: &'static str,
    text: &'static str,
    chosen: bool,
}

struct Line {
    number: usize,
    text: String,
    findings: Vec<FindingView>,
}

struct First {
    place: String,
    line: Option<usize>,
    finding: FindingView,
}

struct Verdict {
    /// The meaning of the result, in a sentence.
    words: String,
    /// Whether the document has a format.
    is_readable: bool,
    /// Number of findings after the first ones.
    more_first: u64,
    format: &'static str,
    is_recognised: bool,
    strength: &'static str,
    evidence: Vec<String>,
    conformance: Vec<String>,
    counts: Vec<(&'static str, String)>,
    indexed: String,
    first: Vec<First>,
    capabilities: Vec<(String, String)>,
    lines: Vec<Line>,
    left_out: Option<String>,
    elsewhere: Vec<FindingView>,
    /// A sentence with the number of example requests that find their capability.
    examples: Option<String>,
    /// Example requests that do not find their capability, each with its actual result.
    unfound: Vec<(String, String)>,
}

#[derive(Template)]
#[template(path = "validate.html")]
pub(crate) struct ValidatePage {
    frame: Frame,
    /// A small manifest that shows what to enter.
    placeholder: &'static str,
    typed: FormInput,
    choices: Vec<Choice>,
    /// Whether the document is too large to be put into the form again.
    is_not_repeated: bool,
    trouble: Option<String>,
    /// Whether the document of the address is not stored.
    is_not_stored: bool,
    verdict: Option<Verdict>,
    share: Option<String>,
    badge_site: Option<String>,
}

pub(crate) fn blank(context: &PageContext) -> ValidatePage {
    let page = page(FormInput::default(), "", None, None);
    ValidatePage { frame: page.frame.at(context, "/validate"), ..page }
}

/// The form with its input and the reason why it cannot be read.
pub(crate) fn refused(mut typed: FormInput, trouble: &str) -> ValidatePage {
    let document = std::mem::take(&mut typed.document);
    page(typed, &document, Some(text::cut(trouble, WORDS_CHARS_MAX)), None)
}

/// The form with the address of a document that is not stored.
pub(crate) fn not_stored(typed: FormInput, url: &ManifestUrl) -> ValidatePage {
    let url = text::cut(url.as_str(), WORDS_CHARS_MAX);
    let page = page(typed, "", Some(format!("Nothing is stored of {url}.")), None);
    ValidatePage { is_not_stored: true, ..page }
}

/// The form with its input and the result.
pub(crate) fn judged(typed: FormInput, document: &str, answer: &ValidateAnswer) -> ValidatePage {
    page(typed, document, None, Some(verdict(document, answer)))
}

/// Bytes of a text as HTML, where each of five special characters becomes five bytes.
fn escaped_bytes(text: &str) -> usize {
    text.len() + 4 * text.bytes().filter(|byte| matches!(byte, b'"' | b'\'' | b'&' | b'<' | b'>')).count()
}

fn page(
    mut typed: FormInput,
    document: &str,
    trouble: Option<String>,
    verdict: Option<Verdict>,
) -> ValidatePage {
    let is_repeated = escaped_bytes(document) <= ECHO_BYTES_MAX;
    typed.document = if is_repeated { document.to_owned() } else { String::new() };
    typed.url = text::cut(&typed.url, WORDS_CHARS_MAX);
    let title = if verdict.is_some() { "Validation result" } else { "Validate a manifest" };
    let choice = |format: &Format| Choice {
        slug: format.as_str(),
        text: format.label(),
        chosen: typed.force == Some(*format),
    };
    ValidatePage {
        frame: Frame::new(title, Section::Validate).described(
            "Paste a manifest for AI agents and read what is wrong with it, line by line, and how to fix it.",
        ),
        placeholder: PLACEHOLDER,
        share: verdict.as_ref().and_then(|_| share(&typed)),
        badge_site: verdict.as_ref().and_then(|_| badge_site(&typed)),
        choices: Format::ALL.iter().filter(|format| is_choice(**format)).map(choice).collect(),
        typed,
        is_not_repeated: !is_repeated,
        trouble,
        is_not_stored: false,
        verdict,
    }
}

/// Whether a document can be meant as this format. The excluded ones describe what a document is, and no specification defines them.
fn is_choice(format: Format) -> bool {
    format.is_indexable() && !matches!(format, Format::Generic | Format::Pointer | Format::List)
}

fn verdict(document: &str, answer: &ValidateAnswer) -> Verdict {
    let mut by_line: BTreeMap<usize, Vec<FindingView>> = BTreeMap::new();
    let mut elsewhere = Vec::new();
    let mut beside_lines = 0;
    let shown = shown_lines(document);
    for placed in &answer.findings {
        match placed.line.filter(|line| (1..=shown.len()).contains(line)) {
            Some(line) => {
                let beside = by_line.entry(line).or_default();
                if beside.len() < FINDINGS_OF_LINE_MAX && beside_lines < FINDINGS_OF_LINES_MAX {
                    beside_lines += 1;
                    beside.push(FindingView::from(&placed.finding));
                }
            }
            None if elsewhere.len() < ELSEWHERE_MAX => elsewhere.push(FindingView::from(&placed.finding)),
            None => {}
        }
    }
    let left_out = document.lines().count().saturating_sub(shown.len());
    let first = |placed: &PlacedFinding| first(placed, shown.len());
    let first = answer.findings.iter().take(FIRST_MAX).map(first).collect();
    let lines = shown.into_iter().enumerate().map(|(index, text)| Line {
        number: index + 1,
        text,
        findings: by_line.remove(&(index + 1)).unwrap_or_default(),
    });
    Verdict {
        words: verdict_words(answer),
        is_readable: !labels::is_unreadable_as(answer.format),
        more_first: count(answer.findings.len().saturating_sub(FIRST_MAX)),
        format: answer.format.label(),
        is_recognised: answer.format.is_indexable(),
        strength: labels::strength(answer.detection.strength),
        evidence: answer.detection.evidence.clone(),
        conformance: conformance(answer),
        counts: counts(&answer.findings),
        indexed: indexed(answer),
        first,
        capabilities: capabilities(answer),
        lines: lines.collect(),
        left_out: (left_out > 0).then(|| labels::counted(count(left_out), "more line", "more lines")),
        elsewhere,
        examples: examples(&answer.examples),
        unfound: answer.examples.unfound.iter().take(UNFOUND_MAX).map(unfound).collect(),
    }
}

/// The meaning of the result for the publisher, in a sentence.
fn verdict_words(answer: &ValidateAnswer) -> String {
    let of = |severity| count(answer.findings.iter().filter(|p| p.finding.severity == severity).count());
    let format = answer.format.label();
    match (answer.format.is_indexable(), of(Severity::Must), of(Severity::Should)) {
        (false, ..) if answer.findings.iter().any(|placed| placed.finding.code == HTML_CODE) => {
            "This is a web page, not a manifest.".to_owned()
        }
        (false, ..) if answer.format == Format::Malformed => {
            "This is not valid JSON, so its format is unknown.".to_owned()
        }
        (false, ..) => "This document is not recognised as a manifest.".to_owned(),
        (true, 0, 0) => format!("This {format} document has nothing that must or should be fixed."),
        (true, 0, should) => {
            format!(
                "This {format} document can be used. {}.",
                labels::counted(should, "thing should be better", "things should be better")
            )
        }
        (true, must, _) => {
            format!(
                "This {format} document breaks its specification in {}.",
                labels::counted(must, "place", "places")
            )
        }
    }
}

/// A sentence with the number of example requests of the publisher that find their capability by its other texts.
fn examples(requests: &ExampleRequests) -> Option<String> {
    let found = requests.checked.saturating_sub(requests.unfound.len());
    (requests.checked > 0).then(|| {
        format!(
            "{} of {} find their capability first by its name, description and parameters.",
            labels::grouped(count(found)),
            labels::counted(count(requests.checked), "example request", "example requests")
        )
    })
}

/// An example request and its results.
fn unfound(request: &UnfoundRequest) -> (String, String) {
    let cut = |text: &str| text::cut(text, WORDS_CHARS_MAX);
    let capability = cut(&request.capability);
    let finds = match (request.place, &request.first) {
        (Some(place), Some(first)) => format!("finds {} first, {capability} in place {place}", cut(first)),
        _ => format!("has no word of {capability}"),
    };
    (cut(&request.example), finds)
}

/// The first lines of a document, each truncated.
fn shown_lines(document: &str) -> Vec<String> {
    let mut room = ECHO_BYTES_MAX;
    let lines = document.lines().take(LINES_MAX).map(|line| text::cut(line, LINE_CHARS_MAX));
    lines
        .take_while(|line| {
            let bytes = escaped_bytes(line);
            let fits = bytes <= room;
            room = room.saturating_sub(bytes);
            fits
        })
        .collect()
}

fn first(placed: &PlacedFinding, shown_lines: usize) -> First {
    First {
        place: placed.line.map_or_else(|| "the document".to_owned(), |line| format!("line {line}")),
        line: placed.line.filter(|line| *line <= shown_lines),
        finding: FindingView::from(&placed.finding),
    }
}

fn conformance(answer: &ValidateAnswer) -> Vec<String> {
    let levels = answer.conformance.iter();
    levels.map(|level| format!("{}: {}", level.spec, level.level.in_words())).collect()
}

fn counts(findings: &[PlacedFinding]) -> Vec<(&'static str, String)> {
    let of = |severity: &Severity| findings.iter().filter(|p| p.finding.severity == *severity).count();
    let all = [Severity::Must, Severity::Should, Severity::May, Severity::Note];
    let counted = all.iter().map(|severity| (severity.as_str(), of(severity)));
    counted.filter(|(_, n)| *n > 0).map(|(name, n)| (name, labels::grouped(count(n)))).collect()
}

fn indexed(answer: &ValidateAnswer) -> String {
    let found = labels::counted(count(answer.indexed.capabilities), "capability", "capabilities");
    match (answer.indexed.capabilities, answer.indexed.invocable) {
        (0, _) => "It has nothing that would be indexed.".to_owned(),
        (all, callable) if all == callable => format!("{found} would be indexed, each with how to call it."),
        (_, 0) => format!(
            "{found} would be indexed; none of them can be called from the declaration alone, because its address or method is missing."
        ),
        (_, callable) => format!(
            "{found} would be indexed; {} of them can be called from the declaration alone.",
            labels::grouped(count(callable))
        ),
    }
}

fn capabilities(answer: &ValidateAnswer) -> Vec<(String, String)> {
    if answer.indexed.capabilities == 0 {
        return Vec::new();
    }
    let listed = answer.manifest.capabilities.iter().take(CAPABILITIES_MAX);
    let line = |capability: &manifest::Capability| {
        let name = text::cut(capability.title.as_deref().unwrap_or(&capability.name), WORDS_CHARS_MAX);
        let types: Vec<String> = capability.semantic_types.iter().map(|t| type_words(&t.name)).collect();
        let types = if types.is_empty() { "no type".to_owned() } else { types.join(", ") };
        (name, format!("{}; {types}", labels::safety(capability.safety.class)))
    };
    listed.map(line).collect()
}

fn count(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}
