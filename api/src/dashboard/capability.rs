//! The page of one capability: parameters, result, safety, how to call it, and where it is declared.

use askama::Template;
use chrono::{DateTime, Utc};
use indexer::Hit;
use manifest::model::{ExecutionModel, RateLimit, TypeSource};
use manifest::{Capability, Finding, Manifest, SafetyClass};
use store::StoredManifest;

use super::card::{Card, Tag, card, tags_of};
use super::frame::{Frame, Section};
use super::graph::Graph;
use super::links::Link;
use super::schema::{self, Row};
use super::time::Moment;
use super::{curl, labels, links};
use crate::answers::record;
use crate::tool_export::{self, ToolShape};

/// Maximum number of linked capabilities of the same manifest.
const SIBLINGS_MAX: usize = 12;
/// Maximum depth of the displayed type of an unstructured result.
const ANSWER_DEPTH: u8 = 3;

struct Fact {
    name: &'static str,
    text: String,
    is_code: bool,
}

impl Fact {
    fn text(name: &'static str, text: impl Into<String>) -> Self {
        Self { name, text: text.into(), is_code: false }
    }

    fn code(name: &'static str, text: impl Into<String>) -> Self {
        Self { name, text: text.into(), is_code: true }
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
            text: finding.text.clone(),
            fix: finding.fix.to_string(),
            spec: finding.spec.to_string(),
            code: finding.code.to_string(),
            pointer: finding.pointer.clone(),
        }
    }
}

/// A definition in one shape.
struct ToolTab {
    name: &'static str,
    text: Option<String>,
    refused: String,
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
    no_parameters: &'static str,
    response: Vec<Row>,
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
    siblings: Vec<Link>,
    tools: Vec<ToolTab>,
    no_tool: Option<String>,
    graph: Option<Graph>,
    similar: Vec<Card>,
}

pub(crate) fn page(
    stored: &StoredManifest,
    capability: &Capability,
    similar: &[Hit],
    now: DateTime<Utc>,
) -> CapabilityPage {
    let manifest = &stored.manifest;
    let detail = record::detail(stored, capability);
    let name = capability.title.clone().unwrap_or_else(|| capability.name.clone());
    let site = manifest.url.site().to_string();
    let document = detail.provenance.document.to_owned();
    let bare_answer = || capability.response.as_ref().map(|answer| schema::kind(answer, ANSWER_DEPTH));
    CapabilityPage {
        frame: Frame::new(format!("{name} · {site}"), Section::Search),
        name,
        site,
        tags: tags_of(&Hit::of(stored, capability), capability),
        description: capability.description.clone(),
        deprecated: capability.deprecated.then(|| capability.deprecation_message.clone().unwrap_or_default()),
        addresses_reader: capability.addresses_reader,
        call_facts: call_facts(capability, detail.rate_limit),
        curl: curl::command(capability),
        no_curl: no_curl(capability),
        parameters: capability.parameters.as_ref().map(schema::rows).unwrap_or_default(),
        no_parameters: no_parameters(capability),
        response: capability.response.as_ref().map(schema::rows).unwrap_or_default(),
        response_kind: bare_answer(),
        examples: capability.examples.clone(),
        safety_facts: safety_facts(capability),
        document_href: links::harmless(&document),
        document,
        pointer: capability.pointer.clone(),
        format: manifest.format().label(),
        strength: labels::strength(manifest.detection.strength),
        evidence: manifest.detection.evidence.clone(),
        first_seen: Moment::new(stored.first_seen_at, now),
        last_seen: Moment::new(stored.last_seen_at, now),
        changed: Moment::new(stored.changed_at, now),
        inferred: capability.inferred.clone().into_iter().collect(),
        manifest_id: manifest.id.to_string(),
        raw_allowed: stored.body_kept && manifest.policies.caching_allowed != Some(false),
        attribution: attribution(manifest),
        findings: detail.findings.into_iter().map(FindingView::from).collect(),
        siblings: siblings(manifest, capability),
        no_tool: tool_export::compile(manifest, capability, ToolShape::Mcp)
            .err()
            .map(|refused| format!("There is no tool definition: {refused}.")),
        tools: ToolShape::ALL.iter().map(|shape| tool_tab(manifest, capability, *shape)).collect(),
        graph: Graph::of(manifest, capability),
        similar: similar.iter().map(|hit| card(hit, now)).collect(),
    }
}

fn attribution(manifest: &Manifest) -> Option<String> {
    let asked = manifest.policies.attribution.as_deref().filter(|word| *word != "none")?;
    let whom = manifest.provider.name.as_deref().unwrap_or(&manifest.origin);
    Some(format!("{asked}: {whom}"))
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
            ToolTab { name, text, refused: String::new(), href }
        }
        Err(refused) => ToolTab { name, text: None, refused: format!("None: {refused}."), href },
    }
}

fn siblings(manifest: &Manifest, capability: &Capability) -> Vec<Link> {
    let others = manifest.capabilities.iter().filter(|other| other.id != capability.id);
    let link = |other: &Capability| Link {
        text: other.title.clone().unwrap_or_else(|| other.name.clone()),
        href: format!("/capabilities/{}", other.id),
    };
    others.take(SIBLINGS_MAX).map(link).collect()
}
