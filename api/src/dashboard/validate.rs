//! The validator: the lines of a document with their findings, what to fix first, and what would
//! be indexed.

use std::collections::BTreeMap;

use askama::Template;
use manifest::{Format, Severity};

use super::capability::FindingView;
use super::frame::{Frame, Section};
use super::labels;
use crate::answers::validate::{PlacedFinding, ValidateAnswer};
use crate::text;

/// Maximum number of displayed lines: few enough for a browser.
const LINES_MAX: usize = 2_000;
/// Maximum length of a displayed line, in characters.
const LINE_CHARS_MAX: usize = 400;
/// Maximum number of findings beside one line.
const FINDINGS_OF_LINE_MAX: usize = 10;
/// Findings in the list of what to fix first.
const FIRST_MAX: usize = 5;
/// Maximum number of listed capabilities.
const CAPABILITIES_MAX: usize = 50;

/// The input of the form.
#[derive(Debug, Default)]
pub(crate) struct FormInput {
    pub(crate) document: String,
    pub(crate) url: String,
    pub(crate) force: Option<Format>,
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
    format: &'static str,
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
}

#[derive(Template)]
#[template(path = "validate.html")]
pub(crate) struct ValidatePage {
    frame: Frame,
    typed: FormInput,
    choices: Vec<Choice>,
    trouble: Option<String>,
    verdict: Option<Verdict>,
}

pub(crate) fn blank() -> ValidatePage {
    page(FormInput::default(), None, None)
}

/// The form with its input and the reason why it cannot be read.
pub(crate) fn refused(typed: FormInput, trouble: String) -> ValidatePage {
    page(typed, Some(trouble), None)
}

/// The form with its input and the result.
pub(crate) fn judged(typed: FormInput, answer: &ValidateAnswer) -> ValidatePage {
    let verdict = verdict(&typed.document, answer);
    page(typed, None, Some(verdict))
}

fn page(typed: FormInput, trouble: Option<String>, verdict: Option<Verdict>) -> ValidatePage {
    let title = if verdict.is_some() { "Findings" } else { "Validate a manifest" };
    let choice = |format: &Format| Choice {
        slug: format.as_str(),
        text: format.label(),
        chosen: typed.force == Some(*format),
    };
    ValidatePage {
        frame: Frame::new(title, Section::Validate),
        choices: Format::ALL.iter().filter(|format| format.is_indexable()).map(choice).collect(),
        typed,
        trouble,
        verdict,
    }
}

fn verdict(document: &str, answer: &ValidateAnswer) -> Verdict {
    let mut by_line: BTreeMap<usize, Vec<FindingView>> = BTreeMap::new();
    let mut elsewhere = Vec::new();
    let shown_lines = document.lines().count().min(LINES_MAX);
    for placed in &answer.findings {
        match placed.line.filter(|line| (1..=shown_lines).contains(line)) {
            Some(line) => {
                let beside = by_line.entry(line).or_default();
                if beside.len() < FINDINGS_OF_LINE_MAX {
                    beside.push(FindingView::from(&placed.finding));
                }
            }
            None => elsewhere.push(FindingView::from(&placed.finding)),
        }
    }
    let lines = document.lines().take(LINES_MAX).enumerate().map(|(index, text)| Line {
        number: index + 1,
        text: text::cut(text, LINE_CHARS_MAX),
        findings: by_line.remove(&(index + 1)).unwrap_or_default(),
    });
    let left_out = document.lines().count().saturating_sub(LINES_MAX);
    Verdict {
        format: answer.format.label(),
        strength: labels::strength(answer.detection.strength),
        evidence: answer.detection.evidence.clone(),
        conformance: conformance(answer),
        counts: counts(&answer.findings),
        indexed: indexed(answer),
        first: answer.findings.iter().take(FIRST_MAX).map(first).collect(),
        capabilities: capabilities(answer),
        lines: lines.collect(),
        left_out: (left_out > 0).then(|| labels::counted(count(left_out), "more line", "more lines")),
        elsewhere,
    }
}

fn first(placed: &PlacedFinding) -> First {
    First {
        place: placed.line.map_or_else(|| "the document".to_owned(), |line| format!("line {line}")),
        line: placed.line.filter(|line| *line <= LINES_MAX),
        finding: FindingView::from(&placed.finding),
    }
}

fn conformance(answer: &ValidateAnswer) -> Vec<String> {
    let levels = answer.conformance.iter();
    levels.map(|level| format!("{}: {}", level.spec, level.level.as_str())).collect()
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
        (0, _) => "Nothing of it would be indexed.".to_owned(),
        (all, callable) if all == callable => format!("{found} would be indexed, each with how to call it."),
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
        let name = capability.title.clone().unwrap_or_else(|| capability.name.clone());
        let types: Vec<&str> = capability.semantic_types.iter().map(|t| t.name.as_str()).collect();
        let types = if types.is_empty() { "no type".to_owned() } else { types.join(", ") };
        (name, format!("{} · {types}", labels::safety(capability.safety.class)))
    };
    listed.map(line).collect()
}

fn count(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}
