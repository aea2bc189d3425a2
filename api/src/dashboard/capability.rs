//! The page of one capability: parameters, result, safety, how to call it, and where it is declared.

use askama::Template;
use chrono::{DateTime, Utc};
use indexer::{Declaration, Hit, MergedCapability};
use manifest::model::{ExecutionModel, RateLimit, TypeSource};
use manifest::{Capability, Finding, Manifest, SafetyClass};
use serde_json::Value;
use store::StoredManifest;

use super::card::{Card, Tag, card, tags};
use super::frame::{Frame, Section};
use super::graph::Graph;
use super::links::Link;
use super::schema::{self, Row};
use super::time::Moment;
use super::{curl, labels, links};
use crate::answers::record;
use crate::text;
use crate::tool_export::{self, ToolShape};

/// Maximum number of linked capabilities of the same manifest.
const SIBLINGS_MAX: usize = 12;
/// Displayed findings and examples; the JSON response has all.
const FINDINGS_MAX: usize = 50;
const EXAMPLES_MAX: usize = 50;
/// Displayed reasons, inferred values, types and other short entries of one list.
const ENTRIES_MAX: usize = 50;
/// Maximum length of a displayed fact or reason, and of a displayed text, in characters.
const FACT_CHARS_MAX: usize = 1_000;
const TEXT_CHARS_MAX: usize = 4_000;
/// Maximum length of the text and of the place of a displayed finding, in characters.
const FINDING_CHARS_MAX: usize = 600;
const POINTER_CHARS_MAX: usize = 200;
/// Largest tool definition that is displayed.
const TOOL_BYTES_MAX: usize = 32 * 1_024;
/// Maximum depth of the displayed type of an unstructured result.
const ANSWER_DEPTH: u8 = 3;

struct Fact {
    name: &'static str,
    text: String,
    is_code: bool,
}

impl Fact {
    fn text(name: &'static str, text: impl Into<String>) -> Self {
        Self { name, text: text::cut(&text.into(), FACT_CHARS_MAX), is_code: false }
    }

    fn code(name: &'static str, text: impl Into<String>) -> Self {
        Self { name, text: text::cut(&text.into(), FACT_CHARS_MAX), is_code: true }
    }
}

/// A finding in words.
pub(crate) struct FindingView {
    pub(crate) severity: &'static str,
    pub(crate) text: String,
    pub(crate) fix: String,
    pub(crate) spec: String,
    pub(crate) code: String,
    pub(crate) pointer: String,
}

impl From<&Finding> for FindingView {
    fn from(finding: &Finding) -> Self {
        Self {
            severity: finding.severity.as_str(),
            text: text::cut(&finding.text, FINDING_CHARS_MAX),
            fix: finding.fix.to_string(),
            spec: finding.spec.to_string(),
            code: finding.code.to_string(),
            pointer: text::cut(&finding.pointer, POINTER_CHARS_MAX),
        }
    }
}

/// One of several declarations.
struct DeclarationView {
    format: &'static str,
    document: String,
    document_href: Option<String>,
    pointer: String,
    manifest_id: String,
    status: &'static str,
}

fn declarations(merged: &MergedCapability) -> Vec<DeclarationView> {
    let several = merged.declarations.iter().filter(|_| merged.declarations.len() > 1);
    let view = |declaration: &Declaration| {
        let url = declaration.manifest_url.to_string();
        let document = declaration.pointer_document.clone().unwrap_or(url);
        DeclarationView {
            format: declaration.format.label(),
            document_href: links::harmless(&document),
            document: text::cut(&document, FACT_CHARS_MAX),
            pointer: text::cut(&declaration.pointer, POINTER_CHARS_MAX),
            manifest_id: declaration.manifest_id.to_string(),
            status: declaration.status.as_str(),
        }
    };
    several.map(view).collect()
}

/// A definition in one shape.
struct ToolTab {
    name: &'static str,
    text: Option<String>,
    /// Why there is no text.
    refused: String,
    is_compiled: bool,
    href: String,
}

#[derive(Template)]
#[template(path = "capability.html")]
pub(crate) struct CapabilityPage {
    frame: Frame,
    name: String,
    site: String,
    tags: Vec<Tag>,
    description: Option<String>,
    deprecated: Option<String>,
    addresses_reader: bool,
    call_facts: Vec<Fact>,
    curl: Option<String>,
    no_curl: &'static str,
    parameters: Vec<Row>,
    more_parameters: Option<String>,
    no_parameters: &'static str,
    response: Vec<Row>,
    more_response: Option<String>,
    response_kind: Option<String>,
    examples: Vec<String>,
    safety_facts: Vec<Fact>,
    document: String,
    document_href: Option<String>,
    pointer: String,
    format: &'static str,
    strength: &'static str,
    evidence: Vec<String>,
    first_seen: Moment,
    last_seen: Moment,
    changed: Moment,
    inferred: Vec<(String, String)>,
    manifest_id: String,
    raw_allowed: bool,
    attribution: Option<String>,
    findings: Vec<FindingView>,
    /// Of a capability with several.
    declarations: Vec<DeclarationView>,
    more_findings: Option<String>,
    siblings: Vec<Link>,
    tools: Vec<ToolTab>,
    no_tool: Option<String>,
    graph: Option<Graph>,
    similar: Vec<Card>,
}

pub(crate) fn page(
    stored: &StoredManifest,
    merged: &MergedCapability,
    similar: &[Hit],
    now: DateTime<Utc>,
) -> CapabilityPage {
    let (manifest, capability) = (&stored.manifest, &merged.capability);
    let detail = record::detail(stored, merged);
    let name = text::cut(capability.title.as_deref().unwrap_or(&capability.name), FACT_CHARS_MAX);
    let site = manifest.url.site().to_string();
    let document = detail.provenance.document.to_owned();
    let bare_answer = || capability.response.as_ref().map(|answer| schema::kind(answer, ANSWER_DEPTH));
    CapabilityPage {
        frame: Frame::new(format!("{name} · {site}"), Section::Search),
        name,
        site,
        tags: tags(&Hit::of(stored, capability)).into_iter().take(ENTRIES_MAX).collect(),
        description: capability.description.as_deref().map(paragraph),
        deprecated: capability
            .deprecated
            .then(|| paragraph(capability.deprecation_message.as_deref().unwrap_or_default())),
        addresses_reader: capability.addresses_reader,
        call_facts: call_facts(capability, detail.rate_limit),
        curl: curl::command(capability),
        no_curl: no_curl(capability),
        parameters: capability.parameters.as_ref().map(schema::rows).unwrap_or_default(),
        more_parameters: more_rows(capability.parameters.as_ref()),
        no_parameters: no_parameters(capability),
        response: capability.response.as_ref().map(schema::rows).unwrap_or_default(),
        more_response: more_rows(capability.response.as_ref()),
        response_kind: bare_answer(),
        examples: first_texts(&capability.examples, EXAMPLES_MAX),
        safety_facts: safety_facts(capability),
        document_href: links::harmless(&document),
        document,
        pointer: capability.pointer.clone(),
        format: manifest.format().label(),
        strength: labels::strength(manifest.detection.strength),
        evidence: first_texts(&manifest.detection.evidence, ENTRIES_MAX),
        first_seen: Moment::new(stored.first_seen_at, now),
        last_seen: Moment::new(stored.last_seen_at, now),
        changed: Moment::new(stored.changed_at, now),
        inferred: inferred(capability),
        manifest_id: manifest.id.to_string(),
        raw_allowed: stored.body_kept && manifest.policies.caching_allowed != Some(false),
        attribution: attribution(manifest),
        more_findings: more(detail.findings.len(), FINDINGS_MAX),
        findings: detail.findings.iter().take(FINDINGS_MAX).map(FindingView::from).collect(),
        declarations: declarations(merged),
        siblings: siblings(manifest, capability),
        no_tool: tool_export::compile(manifest, capability, ToolShape::Mcp)
            .err()
            .map(|refused| format!("There is no tool definition: {refused}.")),
        tools: ToolShape::ALL.iter().map(|shape| tool_tab(manifest, capability, *shape)).collect(),
        graph: Graph::of(manifest, capability),
        similar: similar.iter().map(|hit| card(hit, now)).collect(),
    }
}

/// The beginning of a text.
fn paragraph(text: &str) -> String {
    text::cut(text, TEXT_CHARS_MAX)
}

/// The beginnings of the first texts of a list.
fn first_texts(texts: &[String], max: usize) -> Vec<String> {
    texts.iter().take(max).map(|text| text::cut(text, FACT_CHARS_MAX)).collect()
}

fn inferred(capability: &Capability) -> Vec<(String, String)> {
    let short = |text: &str| text::cut(text, POINTER_CHARS_MAX);
    let fields = capability.inferred.iter().take(ENTRIES_MAX);
    fields.map(|(field, rule)| (short(field), short(rule))).collect()
}

/// How many entries of a list are not shown.
fn more(count: usize, shown: usize) -> Option<String> {
    let more = u64::try_from(count.saturating_sub(shown)).unwrap_or(u64::MAX);
    (more > 0).then(|| format!("and {} more", labels::grouped(more)))
}

fn more_rows(schema: Option<&Value>) -> Option<String> {
    more(schema.map_or(0, schema::rows_left_out), 0)
}

fn attribution(manifest: &Manifest) -> Option<String> {
    let attribution = manifest.policies.attribution.as_deref().filter(|word| *word != "none")?;
    let whom = manifest.provider.name.as_deref().unwrap_or(&manifest.origin);
    Some(text::cut(&format!("{attribution}: {whom}"), FACT_CHARS_MAX))
}

fn no_curl(capability: &Capability) -> &'static str {
    if capability.is_invocable() {
        "It is not plain HTTP, so there is no command line for it."
    } else {
        "The declaration names no address or no method, so the declaration is not enough to call it."
    }
}

fn no_parameters(capability: &Capability) -> &'static str {
    if capability.parameters.is_some() { "It takes none." } else { "Its parameters were not declared." }
}

fn call_facts(capability: &Capability, rate_limit: Option<&RateLimit>) -> Vec<Fact> {
    let invocation = &capability.invocation;
    let mut facts = Vec::new();
    facts.extend(invocation.protocol.map(|protocol| Fact::text("Protocol", labels::protocol(protocol))));
    let verb = invocation.method.as_deref().map(|method| format!("{method} ")).unwrap_or_default();
    facts.extend(invocation.endpoint().map(|url| Fact::code("Address", format!("{verb}{url}"))));
    facts.extend(invocation.native.as_deref().map(|native| Fact::code("Name there", native)));
    facts.push(Fact::code("Native id", capability.native_id.as_str()));
    let needed = labels::auth_needed(&capability.auth.schemes, capability.auth.required.as_option());
    facts.push(Fact::text("Authentication", needed));
    if !capability.auth.scopes.is_empty() {
        facts.push(Fact::code("Scopes", capability.auth.scopes.join(" ")));
    }
    facts.extend(rate_limit.and_then(rate_words).map(|words| Fact::text("Rate limit", words)));
    facts.extend(execution_words(capability).map(|words| Fact::text("Answers", words)));
    if !capability.depends_on.is_empty() {
        facts.push(Fact::code("Call first", capability.depends_on.join(", ")));
    }
    facts
}

fn rate_words(limit: &RateLimit) -> Option<String> {
    match (limit.requests, limit.window_s) {
        (Some(requests), Some(window)) => Some(format!("{requests} requests in {window} seconds")),
        (Some(requests), None) => Some(format!("{requests} requests")),
        _ => limit.text.clone(),
    }
}

fn execution_words(capability: &Capability) -> Option<String> {
    let words = match capability.execution.model {
        ExecutionModel::Sync => "at once",
        ExecutionModel::Async => "later",
        ExecutionModel::Stream => "as a stream",
        ExecutionModel::Unknown => return None,
    };
    let poll = capability.execution.poll_url.as_deref();
    Some(poll.map_or_else(|| words.to_owned(), |url| format!("{words}; ask {url} how far it is")))
}

fn safety_facts(capability: &Capability) -> Vec<Fact> {
    let safety = &capability.safety;
    let how = match (safety.source, safety.class) {
        (_, SafetyClass::Unknown) => "",
        (TypeSource::Declared, _) => ", as declared",
        (TypeSource::Inferred, _) => ", inferred",
    };
    let mut facts = vec![Fact::text("Effect", format!("{}{how}", labels::safety(safety.class)))];
    let confirmation = labels::confirmation(safety.confirmation).unwrap_or("not required by the publisher");
    facts.push(Fact::text("Confirmation", confirmation));
    facts.extend(safety.message.as_deref().map(|message| Fact::text("To tell them", message)));
    if safety.handoff {
        facts.push(Fact::text("Hand-over", "the answer is an address where a person finishes"));
    }
    let reversible = safety.reversible.map(|reversible| if reversible { "yes" } else { "no" });
    facts.extend(reversible.map(|words| Fact::text("Reversible", words)));
    let repeatable = capability.idempotency.supported.map(|supported| if supported { "yes" } else { "no" });
    facts.extend(repeatable.map(|words| Fact::text("Safe to repeat", words)));
    facts
}

fn tool_tab(manifest: &Manifest, capability: &Capability, shape: ToolShape) -> ToolTab {
    let name = match shape {
        ToolShape::Mcp => "MCP",
        ToolShape::OpenAi => "OpenAI",
        ToolShape::Anthropic => "Anthropic",
        ToolShape::OpenApi => "OpenAPI",
    };
    let href = format!("{}/tool?as={}", links::capability(&capability.id), shape.as_str());
    match tool_export::compile(manifest, capability, shape) {
        Ok(tool) => {
            let text = serde_json::to_string_pretty(&tool.definition).ok();
            let text = text.filter(|text| text.len() <= TOOL_BYTES_MAX);
            let refused = "The definition is too long for this page.".to_owned();
            ToolTab { name, text, refused, is_compiled: true, href }
        }
        Err(refused) => {
            let refused = format!("None: {refused}.");
            ToolTab { name, text: None, refused, is_compiled: false, href }
        }
    }
}

fn siblings(manifest: &Manifest, capability: &Capability) -> Vec<Link> {
    let others = manifest.capabilities.iter().filter(|other| other.key != capability.key);
    let link = |other: &Capability| Link {
        text: text::cut(other.title.as_deref().unwrap_or(&other.name), POINTER_CHARS_MAX),
        href: links::capability(&other.id),
    };
    others.take(SIBLINGS_MAX).map(link).collect()
}
