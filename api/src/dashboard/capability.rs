//! The page of one capability: parameters, result, safety, how to call it, and its declarations.

use std::collections::BTreeSet;

use askama::Template;
use indexer::{Declaration, Hit, MergedCapability};
use manifest::model::{ExecutionModel, Idempotency, RateLimit, TypeSource};
use manifest::{Capability, Finding, Manifest, Publisher, SafetyClass};
use serde_json::{Value, json};
use store::StoredManifest;

use super::card::{Card, Tag, card, owner_tag, repeats, tags};
use super::frame::{Frame, Section};
use super::graph::{Graph, name_of};
use super::links::Link;
use super::reported::reasons;
use super::schema::{self, Row};
use super::site_contradictions::{Listing, listings};
use super::time::Moment;
use super::trust_words::trust_words;
use super::use_it::{UseIt, use_it};
use super::{icons, labels, links};
use crate::answers::caution::{Elsewhere, Money};
use crate::answers::claim::OwnerMark;
use crate::answers::listed_by::ListedBy;
use crate::answers::record;
use crate::page_context::PageContext;
use crate::parameters::QueryPairs;
use crate::text;
use crate::tool_export;

/// Maximum number of linked capabilities of the same manifest.
const SIBLINGS_MAX: usize = 12;
/// Maximum length of the name of another capability in the list, in characters: two lines.
const SIBLING_CHARS_MAX: usize = 80;
/// Maximum number of displayed findings and examples; the JSON response has all.
const FINDINGS_MAX: usize = 50;
const EXAMPLES_MAX: usize = 50;
/// Maximum number of displayed reasons, inferred values, types and other short entries of one list.
const ENTRIES_MAX: usize = 50;
/// Maximum length of a displayed fact or reason, and of a displayed text, in characters.
const FACT_CHARS_MAX: usize = 1_000;
const TEXT_CHARS_MAX: usize = 4_000;
/// Maximum length of the text and of the place of a displayed finding, in characters.
const FINDING_CHARS_MAX: usize = 600;
const POINTER_CHARS_MAX: usize = 200;
/// Maximum number of similar capabilities of other sites that are displayed.
const SIMILAR_MAX: usize = 4;
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

/// A finding as text.
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

#[derive(Template)]
#[template(path = "capability.html")]
#[expect(clippy::struct_excessive_bools, reason = "a template reads one condition from each")]
pub(crate) struct CapabilityPage {
    frame: Frame,
    name: String,
    site: String,
    site_icon: String,
    tags: Vec<Tag>,
    /// One line on what speaks for and against the capability.
    trust: String,
    /// Whether the description says no more than the name.
    repeats_name: bool,
    description: Option<String>,
    deprecated: Option<String>,
    addresses_reader: bool,
    /// Whether only others name the document.
    is_named_by_others: bool,
    call_facts: Vec<Fact>,
    use_it: UseIt,
    parameters: Vec<Row>,
    more_parameters: Option<String>,
    no_parameters: &'static str,
    response: Vec<Row>,
    more_response: Option<String>,
    response_kind: Option<String>,
    examples: Vec<String>,
    safety_icon: &'static str,
    safety_words: String,
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
    /// All declarations of a capability that has several; otherwise empty.
    declarations: Vec<DeclarationView>,
    more_findings: Option<String>,
    siblings: Vec<Link>,
    listed_by: Vec<Listing>,
    graph: Option<Graph>,
    similar: Vec<Card>,
    /// Id of the capability, for the report form.
    id: String,
    report_reasons: Vec<(&'static str, &'static str)>,
}

/// Inputs of the page in addition to the capability.
#[derive(Clone)]
pub(crate) struct CapabilityRequest<'a> {
    /// The values of the form.
    pub(crate) typed: &'a QueryPairs,
    /// The capability as an entry of an ARD catalog.
    pub(crate) entry: &'a Value,
    /// The owner who proved control of the site.
    pub(crate) owner: Option<&'a OwnerMark>,
    /// The daily checks of the endpoint's host, in words.
    pub(crate) liveness: Option<String>,
    /// Entries of other registries about what the manifest declares.
    pub(crate) listed_by: &'a [ListedBy],
}

pub(crate) fn page(
    stored: &StoredManifest,
    merged: &MergedCapability,
    similar: &[Hit],
    request: CapabilityRequest<'_>,
    context: &PageContext,
) -> CapabilityPage {
    let now = context.now;
    let (manifest, capability) = (&stored.manifest, &merged.capability);
    let detail = record::detail(stored, merged);
    let name = text::cut(capability.title.as_deref().unwrap_or(&capability.name), FACT_CHARS_MAX);
    let site = manifest.url.site().to_string();
    let document = detail.provenance.document.to_owned();
    let bare_answer = || capability.response.as_ref().map(|answer| schema::kind(answer, ANSWER_DEPTH));
    let use_it = use_it(stored, capability, &request, &context.base);
    let (parameters, response) = (table(capability.parameters.as_ref()), table(capability.response.as_ref()));
    CapabilityPage {
        frame: frame((stored, capability), &name, &site, context, use_it.is_filled),
        id: capability.id.to_string(),
        report_reasons: reasons(),
        site_icon: icons::of_site(&site, 20),
        site,
        tags: request
            .owner
            .map(owner_tag)
            .into_iter()
            .chain(tags(&Hit::of(stored, capability)).into_iter().take(ENTRIES_MAX))
            .collect(),
        trust: trust_words(stored, capability, request.owner.is_some()),
        repeats_name: capability.description.as_deref().is_some_and(|does| repeats(does, &name)),
        description: capability.description.as_deref().map(paragraph),
        deprecated: capability
            .deprecated
            .then(|| paragraph(capability.deprecation_message.as_deref().unwrap_or_default())),
        addresses_reader: capability.addresses_reader,
        is_named_by_others: !stored.is_of_site(),
        call_facts: call_facts(manifest, capability, detail.rate_limit)
            .into_iter()
            .chain(request.liveness.map(|words| Fact::text("Host", words)))
            .collect(),
        use_it,
        more_parameters: more(parameters.left_out, 0),
        parameters: parameters.rows,
        no_parameters: no_parameters(capability),
        more_response: more(response.left_out, 0),
        response: response.rows,
        response_kind: bare_answer(),
        examples: first_texts(&capability.examples, EXAMPLES_MAX),
        safety_icon: icons::safety(capability.safety.class),
        safety_words: safety_words(manifest, capability),
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
        listed_by: listings(request.listed_by),
        graph: Graph::of(manifest, capability),
        similar: elsewhere(capability, manifest, similar).map(|hit| card(hit, "", context)).collect(),
        name,
    }
}

fn frame(
    (stored, capability): (&StoredManifest, &Capability),
    name: &str,
    site: &str,
    context: &PageContext,
    is_filled: bool,
) -> Frame {
    let path = links::capability(&capability.id);
    let published = capability.description.as_deref().unwrap_or("No description was published.");
    let said = if capability.addresses_reader {
        "Its texts give orders to AI models, so they are not repeated here."
    } else {
        published
    };
    let mut data = json!({
        "@context": "https://schema.org", "@type": "WebAPI", "name": name,
        "description": text::one_line(said, TEXT_CHARS_MAX),
        "url": format!("{}{path}", context.base),
    });
    if stored.is_of_site() && stored.publisher == Publisher::Site {
        data["provider"] = json!({"@type": "Organization", "name": site, "url": format!("https://{site}/")});
    }
    let frame = Frame::new(format!("{name} · {site}"), Section::None).at(context, &path);
    let frame = frame.described(said).with_picture(context, "capability").with_json_ld(&data);
    if is_filled { frame.unlisted() } else { frame }
}

/// Similar capabilities of other sites: they share a type, or they are in the same field and share a word of the name. Similar descriptions
/// alone are not enough, because they would also match unrelated capabilities.
fn elsewhere<'a>(
    capability: &'a Capability,
    manifest: &Manifest,
    similar: &'a [Hit],
) -> impl Iterator<Item = &'a Hit> {
    let site = manifest.url.site();
    let name = words(&capability.name);
    let is_alike = move |hit: &&Hit| {
        let own = || capability.semantic_types.iter().map(|t| t.name.as_str());
        let theirs = || hit.semantic_types.iter().map(|t| t.name.as_str());
        let field = |name: &str| name.split(':').next().unwrap_or_default().to_owned();
        let shares_type = own().any(|own| theirs().any(|theirs| own == theirs));
        let shares_field = own().any(|own| theirs().any(|theirs| field(own) == field(theirs)));
        let shared_words = words(&hit.name).intersection(&name).count();
        shares_type || shared_words >= 2 || (shares_field && shared_words >= 1)
    };
    similar.iter().filter(move |hit| hit.site != site).filter(is_alike).take(SIMILAR_MAX)
}

/// The words of a name, in lower case and without the English plural ending.
fn words(name: &str) -> BTreeSet<String> {
    let words = name.split(|c: char| !c.is_alphanumeric()).filter(|word| word.chars().count() > 2);
    words.map(|word| word.to_lowercase().trim_end_matches('s').to_owned()).collect()
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

/// The rows of a schema; those of its references only if the schema is small.
fn table(schema: Option<&Value>) -> schema::Table {
    match schema {
        Some(schema) if tool_export::is_small(schema) => schema::Table::of(&tool_export::inlined(schema)),
        Some(schema) => schema::Table::of(schema),
        None => schema::Table::default(),
    }
}

fn attribution(manifest: &Manifest) -> Option<String> {
    let attribution = manifest.policies.attribution.as_deref().filter(|word| *word != "none")?;
    let whom = manifest.provider.name.as_deref().unwrap_or(&manifest.origin);
    Some(text::cut(&format!("{attribution}: {whom}"), FACT_CHARS_MAX))
}

fn no_parameters(capability: &Capability) -> &'static str {
    if capability.parameters.is_some() { "It takes none." } else { "Its parameters were not declared." }
}

fn call_facts(manifest: &Manifest, capability: &Capability, rate_limit: Option<&RateLimit>) -> Vec<Fact> {
    let invocation = &capability.invocation;
    let mut facts = Vec::new();
    facts.extend(invocation.protocol.map(|protocol| Fact::text("Called over", labels::protocol(protocol))));
    let verb = invocation.method.as_deref().map(|method| format!("{method} ")).unwrap_or_default();
    facts.extend(invocation.endpoint().map(|url| Fact::code("Address", format!("{verb}{url}"))));
    facts.extend(invocation.native.as_deref().map(|native| Fact::code("Name there", native)));
    facts.push(Fact::code("Id in the document", capability.native_id.as_str()));
    let types: Vec<&str> =
        capability.semantic_types.iter().map(|known| known.name.as_str()).take(ENTRIES_MAX).collect();
    if !types.is_empty() {
        facts.push(Fact::code("Type", types.join(", ")));
    }
    let needed = labels::auth_needed(&capability.auth.schemes, capability.auth.required.as_option());
    facts.push(Fact::text("Authentication", needed));
    facts.push(Fact::text(
        "For",
        labels::for_whom(&capability.auth.schemes, capability.auth.required.as_option()),
    ));
    if !capability.auth.scopes.is_empty() {
        facts.push(Fact::code("Scopes", capability.auth.scopes.join(" ")));
    }
    facts.extend(rate_limit.and_then(rate_words).map(|words| Fact::text("Rate limit", words)));
    facts.extend(execution_words(capability).map(|words| Fact::text("Returns", words)));
    if !capability.depends_on.is_empty() {
        let names: Vec<&str> =
            capability.depends_on.iter().take(ENTRIES_MAX).map(|id| name_of(manifest, id)).collect();
        facts.push(Fact::text("Call first", names.join(", ")));
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
        ExecutionModel::Sync => "the result directly",
        ExecutionModel::Async => "the result later",
        ExecutionModel::Stream => "a stream",
        ExecutionModel::Unknown => return None,
    };
    let poll = capability.execution.poll_url.as_deref();
    Some(poll.map_or_else(|| words.to_owned(), |url| format!("{words}; poll {url} for its progress")))
}

/// The effect of a call, and the other site to which it is sent.
fn safety_words(manifest: &Manifest, capability: &Capability) -> String {
    let (site, class) = (manifest.url.site(), capability.safety.class);
    let address = capability.invocation.endpoint();
    let elsewhere = Elsewhere::of(manifest.format(), &capability.native_id, address, &site);
    let place = match elsewhere {
        Some(Elsewhere::Calls(other)) => other.to_string(),
        Some(Elsewhere::Lists(_)) | None => "the site".to_owned(),
    };
    let money = Money::of(&capability.name, &capability.semantic_types, class);
    labels::safety_in_words(class, &place, money == Some(Money::Moves))
}

fn safety_facts(capability: &Capability) -> Vec<Fact> {
    let safety = &capability.safety;
    let how = match (safety.source, safety.class) {
        (_, SafetyClass::Unknown) => "",
        (TypeSource::Declared, _) => ", as declared",
        (TypeSource::Inferred, _) => ", inferred",
    };
    let mut facts = vec![Fact::text("Effect", format!("{}{how}", labels::safety(safety.class)))];
    let confirmation =
        labels::confirmation(safety.confirmation).unwrap_or("the publisher does not ask for it");
    facts.push(Fact::text("Confirmation", confirmation));
    facts.extend(safety.message.as_deref().map(|message| Fact::text("Message for that person", message)));
    if safety.handoff {
        facts.push(Fact::text("Hand-over", "the answer is an address where a person finishes"));
    }
    let reversible = safety.reversible.map(|reversible| if reversible { "yes" } else { "no" });
    facts.extend(reversible.map(|words| Fact::text("Reversible", words)));
    facts.extend(repeat_words(&capability.idempotency).map(|words| Fact::text("Safe to repeat", words)));
    facts.push(Fact::text("Cost", cost_words(capability)));
    facts
}

/// Whether the call may be repeated. With a key, only a repetition with the same key has no further effect.
fn repeat_words(idempotency: &Idempotency) -> Option<String> {
    if !idempotency.supported? {
        return Some("no".to_owned());
    }
    let Some(key) = idempotency.key_field.as_deref() else { return Some("yes, as declared".to_owned()) };
    let window = idempotency
        .window_s
        .map(|seconds| format!(", within {}", labels::duration(seconds)))
        .unwrap_or_default();
    Some(format!("only with the same {key}{window}"))
}

/// The declared price of a call, and whether the goods that it buys may cost more.
fn cost_words(capability: &Capability) -> String {
    let price = capability.price.as_ref().and_then(|price| {
        let amount = price.price.as_deref()?;
        Some(price.asset.as_deref().map_or_else(|| amount.to_owned(), |asset| format!("{amount} {asset}")))
    });
    let call = price
        .map_or_else(|| "the publisher states none".to_owned(), |price| format!("{price} for each call"));
    match Money::of(&capability.name, &capability.semantic_types, capability.safety.class) {
        Some(_) => format!("{call}; what the call buys or pays may cost more"),
        None => call,
    }
}

fn siblings(manifest: &Manifest, capability: &Capability) -> Vec<Link> {
    let others = manifest.capabilities.iter().filter(|other| other.key != capability.key);
    let link = |other: &Capability| Link {
        text: text::cut(other.title.as_deref().unwrap_or(&other.name), SIBLING_CHARS_MAX),
        href: links::capability(&other.id),
    };
    others.take(SIBLINGS_MAX).map(link).collect()
}
