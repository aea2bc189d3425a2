//! AI catalogs: the manifest of Agentic Resource Discovery and of the AI Catalog format it grew from.
//!
//! The media type of an entry determines its kind: agent, MCP server, skill, data set, registry or catalog. Each entry becomes
//! a capability and a link; a linked document is a separate manifest. Inline `data` is read in place. Nothing is called.
//!
//! Follows ARD 0.91 §4 (entries, urn:air identifiers) and §5.1 (`ard.json`, only `entries` at the root), ARD 0.9 §4
//! (`ai-catalog.json`, `specVersion`, `host`), AI Catalog 1.0 (`mediaType`, any URI as identifier).

mod published;

use serde_json::{Map, Value};

use crate::draft::{self, Draft};
use crate::format::detect::candidate::{Marker, at_path, strong};
use crate::format::{a2a, inline, lenient, mcp};
use crate::identity::site_named_by;
use crate::model::{Capability, CapabilityKind, Follow, Integrity, Link, Protocol};
use crate::name::Host;
use crate::object::Object;
use crate::rule::{Kind, findings, may, must, should};
use crate::walk::List;

/// Deepest nesting of catalogs; published ones nest once.
const NESTING_MAX: usize = 4;
/// Maximum number of representative queries kept from one catalog.
const QUERIES_MAX: usize = 100;

pub(crate) const MARKERS: &[Marker] = &[
    strong(|c| {
        let entry = c.list("entries")?.iter().find_map(Value::as_object)?;
        let shaped = ["identifier", "type", "mediaType"].iter().any(|key| entry.contains_key(*key));
        let is_urn =
            entry.get("identifier").and_then(Value::as_str).is_some_and(|id| id.starts_with("urn:air:"));
        let named = is_urn || c.has("specVersion") || c.is_file(CATALOG_FILES);
        (shaped && named).then(|| "`entries` holds objects with identifier or type".to_owned())
    }),
    strong(|c| {
        let named = c.list("entries")?.is_empty() && (c.has("specVersion") || c.is_file(CATALOG_FILES));
        named.then(|| "an empty `entries`, and `specVersion` or the path of a catalog".to_owned())
    }),
    at_path(|c| c.agrees(CATALOG_FILES, &["entries", "specVersion", "host"])),
    at_path(|c| {
        let is_bare = c.is_file(&["/ard.json"]) && (c.size() == 0 || c.value("entries").is_some());
        is_bare.then(|| "nothing else at the path of a catalog".to_owned())
    }),
];

const CATALOG_FILES: &[&str] = &["/ard.json", "/ai-catalog.json"];

findings! {
    shape CATALOG("ard", "ARD 0.91 §5.1") {
        must("entries", Kind::List, "List the catalog's entries."),
    }
    shape OLDER_CATALOG("ard", "ARD 0.9 §4.1") {
        may("host", Kind::Object, "Publish `host` with `displayName`."),
    }
    shape HOST("ard.host", "ARD 0.9 §4.3") {
        must("displayName", Kind::Text, "Name the publisher of the catalog."),
        may("identifier", Kind::Text, "Publish a DID or a domain."),
        may("documentationUrl", Kind::Url, "Publish an absolute URL."),
        may("logoUrl", Kind::Url, "Publish an absolute URL."),
    }
    shape ENTRY("ard.entry", "ARD 0.91 §4.2") {
        must("identifier", Kind::Text, "Give the entry an identifier such as urn:air:example.com:agent:assistant."),
        may("url", Kind::Url, "Publish the absolute URL of the artefact."),
        may("data", Kind::Object, "Embed the artefact as an object."),
        may("description", Kind::Text, "Describe the entry in a string."),
        may("tags", Kind::Texts, "Publish tags as strings."),
        may("capabilities", Kind::Texts, "Publish the names of skills or tools as strings."),
        may("representativeQueries", Kind::Texts, "Publish example queries as strings."),
        may("version", Kind::Text, "Publish the version of the artefact as a string."),
        may("updatedAt", Kind::Form(is_timestamp, "an ISO 8601 timestamp"), "Publish a time such as 2026-08-26T12:00:00Z."),
        may("metadata", Kind::Object, "Publish extensions as a map of plain values."),
        may("trustManifest", Kind::Object, "Publish `trustManifest` as an object with `identity`."),
        may("@id", Kind::Text, "Publish the identifier, or another IRI of the resource."),
    }
    shape ARD_NAME("ard.entry", "ARD 0.91 §4.2") {
        must("displayName", Kind::Text, "Name the entry."),
    }
    shape CATALOG_NAME("ard.catalog_entry", "ARD 0.91 §4.2") {
        should("displayName", Kind::Text, "Name the entry; ARD requires a name, AI Catalog does not."),
    }
    shape ATTESTATION("ard.attestation", "ARD 0.91 Appendix D.1") {
        must("type", Kind::Text, "Name the kind of the attestation, such as SOC2-Type2."),
        must("uri", Kind::Url, "Publish the absolute URL of the attestation."),
    }
    shape PROVENANCE("ard.provenance", "ARD 0.91 Appendix D.1") {
        must("relation", Kind::Text, "Name the relation, such as derivedFrom."),
        must("sourceId", Kind::Text, "Publish the identifier of the source."),
    }
    shape TRUST("ard.trust_manifest", "ARD 0.91 §4.5") {
        must("identity", Kind::Text, "Name the identity: a DID, a SPIFFE id or an https URL."),
        may("identityType", Kind::Text, "Name the kind of the identity in a string, such as did."),
        may("trustSchema", Kind::Object, "Describe the trust framework as an object."),
        may("attestations", Kind::List, "List attestations as objects with `type` and `uri`."),
        may("provenance", Kind::List, "List sources as objects with `relation` and `sourceId`."),
        may("signature", Kind::Text, "Publish the signature as a string."),
    }
    rule NO_TYPE: Must("ard.entry.type.missing", "ARD 0.91 §4.2")
        "an entry has neither `type` nor `mediaType`"
            => "State the media type of the artefact, such as application/mcp-server-card+json.";
    rule MEDIA_TYPE: Should("ard.entry.media_type.renamed", "ARD 0.91 §4.2")
        "`mediaType` is the older name of `type`" => "Publish `type`; you may keep `mediaType` beside it.";
    rule IDENTIFIER: Must("ard.entry.identifier.not_urn_air", "ARD 0.91 Appendix C")
        "the identifier is not of the form urn:air:<publisher domain>:<namespace>:<name>"
            => "Use urn:air: with your own domain; AI Catalog allows any URI, ARD does not.";
    rule VALUE_OR_REFERENCE: Must("ard.entry.value_or_reference", "ARD 0.91 §4.3")
        "an entry needs exactly one of `url` and `data`" => "Link to the artefact or embed it, not both.";
    rule QUERIES: Should("ard.entry.representative_queries.count", "ARD 0.91 §4.2")
        "there should be two to five representative queries" => "Publish two to five queries that the entry answers.";
    rule NO_QUERIES: Should("ard.entry.representative_queries.missing", "ARD 0.91 §4.2")
        "an entry has no `representativeQueries`, which help searches to find it"
            => "Publish two to five queries that the entry answers.";
    rule NESTED_METADATA: Should("ard.entry.metadata.nested", "ARD 0.91 Appendix D.1")
        "a value in `metadata` is an object or an array" => "Publish strings, numbers, booleans or null.";
    rule DUPLICATE: Must("ard.entry.identifier.duplicate", "ARD 0.91 §4.2, Appendix C")
        "two entries of one list have the same identifier"
            => "Give each entry an identifier of its own; a version belongs in `version`.";
    rule CONTEXT: Should("ard.entry.context.mistyped", "ARD 0.91 §4.1")
        "`@context` is not a string, an object or an array"
            => "Publish a URL, an object from prefixes to IRIs, or an array of them.";
    rule OTHER_ID: Must("ard.entry.id.other", "ARD 0.91 Appendix C")
        "`@id` is another urn:air name than `identifier`" => "Repeat the identifier in `@id`, or leave `@id` out.";
    rule IDENTITY: Must("ard.trust_manifest.identity.other_domain", "ARD 0.91 §4.5.1")
        "the identity belongs to another domain than the publisher in `identifier`"
            => "Use an identity of the publisher's domain, such as did:web:example.com.";
    rule IDENTITY_FOREIGN: Must("ard.trust_manifest.identity.foreign", "ARD 0.91 §4.5.1")
        "the identity is of another site than the one that serves the catalog"
            => "Use an identity of your own domain, and leave the entries of other publishers to them.";
    rule NOT_OBJECT: Must("ard.element.mistyped", "ARD 0.91 Appendix D.1")
        "an element of a list is not an object" => "List objects only.";
    rule SPEC_VERSION: Should("ard.spec_version.unknown", "ARD 0.9 §4.1")
        "`specVersion` is not 1.0" => "State 1.0, or leave it out as ARD 0.91 allows.";
    rule FOREIGN: Must("ard.entry.publisher.foreign", "ARD 0.91 Appendix C")
        "the publisher in the identifier is another site than the one that serves the catalog"
            => "Use your own domain for what you publish; name others' artefacts by their own identifiers.";
    rule NESTED: Note("ard.nested.too_deep", "agentdex limits")
        "catalogs nested deeper than four levels are not read" => "Link to inner catalogs instead of embedding them.";
}

pub(crate) fn read(root: &Object<'_>, draft: &mut Draft<'_>) {
    draft.dialect(root.text("specVersion"), None);
    draft.assess("ARD 0.91", |code| code.starts_with("ard.") && !is_of_other_members(code));
    draft.assess("AI Catalog 1.0", |code| code.starts_with("ard.") && !OF_ARD_ALONE.contains(&code));
    let older_version = root.text("specVersion").filter(|version| *version != "0.91");
    if older_version.is_some_and(|version| version != "1.0") {
        draft.report_rule(&SPEC_VERSION, root.at("specVersion"));
    }
    if older_version.is_some() {
        draft.check(root, &OLDER_CATALOG);
    }
    if let Some(host) = root.object("host") {
        if older_version.is_some() {
            check_host(&host, draft);
        }
        read_host(&host, draft);
    }
    read_entries(root, 0, draft);
}

/// Whether a finding is about a member of the root that ARD 0.91 ignores.
fn is_of_other_members(code: &str) -> bool {
    code.starts_with("ard.host.") || code == SPEC_VERSION.code
}

/// Findings about requirements that AI Catalog does not have.
const OF_ARD_ALONE: &[&str] = &[
    IDENTIFIER.code,
    DUPLICATE.code,
    CONTEXT.code,
    OTHER_ID.code,
    MEDIA_TYPE.code,
    QUERIES.code,
    NO_QUERIES.code,
    IDENTITY.code,
    IDENTITY_FOREIGN.code,
    FOREIGN.code,
    "ard.entry.display_name.missing",
    "ard.catalog_entry.display_name.missing",
];

/// Checks the publisher of a catalog of an older version.
fn check_host(host: &Object<'_>, draft: &mut Draft<'_>) {
    draft.check(host, &HOST);
    if let Some(trust) = host.object("trustManifest")
        && is_catalog(draft)
    {
        check_trust(&trust, draft);
    }
}

/// Reads the publisher of a catalog, which ARD 0.91 does not define.
fn read_host(host: &Object<'_>, draft: &mut Draft<'_>) {
    let logo = draft.url(host, "logoUrl");
    draft.link(host, "documentationUrl", "docs", None);
    let manifest = &mut draft.manifest;
    manifest.name = draft::name(host.text("displayName"));
    manifest.provider.name.clone_from(&manifest.name);
    manifest.provider.identity = host.string("identifier");
    manifest.provider.logo = logo;
    if let Some(trust) = host.object("trustManifest") {
        manifest.integrity.signed = trust.has("signature");
        manifest.policies.privacy_url = trust.string("privacyPolicyUrl");
        manifest.policies.terms_url = trust.string("termsOfServiceUrl");
    }
}

fn read_entries(catalog: &Object<'_>, depth: usize, draft: &mut Draft<'_>) {
    draft.check(catalog, &CATALOG);
    draft.each(catalog, "entries", &OBJECTS.unique("identifier", &DUPLICATE), |_, _| {});
    for entry in catalog.objects("entries") {
        if draft.is_full() {
            return;
        }
        read_entry(&entry, depth, draft);
    }
}

fn read_entry(entry: &Object<'_>, depth: usize, draft: &mut Draft<'_>) {
    match published::with_usual_names(entry.map) {
        Some(map) => read_terms(&Object::new(&map, entry.pointer.clone()), depth, draft),
        None => read_terms(entry, depth, draft),
    }
}

fn read_terms(entry: &Object<'_>, depth: usize, draft: &mut Draft<'_>) {
    check_entry(entry, draft);
    let media_type = entry.text_of(&["type", "mediaType"]).unwrap_or_default().to_ascii_lowercase();
    let artefact = Artefact::of(&media_type);
    let mut capability = draft.begin(artefact.kind(), entry, &["identifier"], &["displayName"]);
    capability.tags = draft::tags(entry.texts("tags").into_iter().chain(entry.texts("capabilities")));
    capability.examples = draft::tags(entry.texts("representativeQueries"));
    capability.version = draft::name(entry.text("version"));
    capability.published = published::published(entry);
    if let Some(trust) = entry.object("trustManifest") {
        capability.integrity = Some(Integrity { signed: trust.has("signature"), ..Integrity::default() });
    }
    if let Some(metadata) = entry.object("metadata") {
        lenient::read_own_auth(&metadata, &mut capability.auth);
    }
    let queries = &mut draft.manifest.representative_queries;
    queries.extend(capability.examples.iter().take(QUERIES_MAX.saturating_sub(queries.len())).cloned());
    if let Some(url) = draft.url(entry, "url") {
        // The address of a document that describes an agent or a server is not the address of that agent or server. The link of the entry
        // leads to the document.
        let is_described = matches!(artefact, Artefact::Agent | Artefact::McpServer);
        let is_document = media_type.contains("json") || media_type.contains("card") || is_file(&url);
        refer(artefact, &url, &mut capability);
        if is_described && is_document {
            capability.invocation.described_by = capability.invocation.url.take();
        }
        let follow = artefact.follow().filter(|_| !is_described || is_document);
        let mut link = Link::new("catalog-entry", url, follow);
        link.media_type = (!media_type.is_empty()).then_some(media_type);
        link.title = draft::name(entry.text("displayName"));
        draft.keep(link);
    }
    let data = entry.object("data");
    if let Some(data) = &data {
        describe_inline(data, artefact, &mut capability, draft);
    }
    draft.push(capability);
    if let Some(data) = data {
        read_inline(&data, artefact, depth, draft);
    }
}

/// Adds what inline data states about the agent or server itself: its name, description and version, and the address of an agent.
fn describe_inline(
    data: &Object<'_>,
    artefact: Artefact,
    capability: &mut Capability,
    draft: &mut Draft<'_>,
) {
    if !matches!(artefact, Artefact::Agent | Artefact::McpServer) {
        return;
    }
    let texts = [
        ("name", draft::name(data.text("name"))),
        ("description", draft::description(data.text("description"))),
        ("version", draft::name(data.text("version"))),
    ];
    let stated: Map<String, Value> =
        texts.into_iter().filter_map(|(key, text)| Some((key.to_owned(), Value::String(text?)))).collect();
    if !stated.is_empty() {
        capability.published.insert("data".to_owned(), Value::Object(stated));
    }
    let is_agent = matches!(artefact, Artefact::Agent) && capability.invocation.endpoint().is_none();
    if let Some(url) = is_agent.then(|| draft.url(data, "url")).flatten() {
        refer(artefact, &url, capability);
    }
}

fn check_entry(entry: &Object<'_>, draft: &mut Draft<'_>) {
    draft.check(entry, &ENTRY);
    draft.check(entry, if is_catalog(draft) { &CATALOG_NAME } else { &ARD_NAME });
    match (entry.text("type").is_some(), entry.text("mediaType").is_some()) {
        (false, false) => draft.report_rule(&NO_TYPE, entry.pointer.clone()),
        (false, true) => draft.report_rule(&MEDIA_TYPE, entry.at("mediaType")),
        _ => {}
    }
    let (is_url, is_data) = (entry.text("url").is_some(), entry.object("data").is_some());
    if is_url == is_data || entry.has("url") == entry.has("data") {
        draft.report_rule(&VALUE_OR_REFERENCE, entry.pointer.clone());
    }
    if let Some(identifier) = entry.text("identifier") {
        match publisher(identifier) {
            None => draft.report(
                &IDENTIFIER,
                entry.at("identifier"),
                format!("\"{identifier}\" is not a urn:air name"),
            ),
            Some(host) if draft.serving_site().is_some_and(|serving| serving != host.site()) => {
                draft.report(&FOREIGN, entry.at("identifier"), format!("the publisher is {}", host.as_str()));
            }
            Some(_) => {}
        }
    }
    match entry.list("representativeQueries") {
        Some(queries) if !(2..=5).contains(&queries.len()) => {
            draft.report_rule(&QUERIES, entry.at("representativeQueries"));
        }
        None if !entry.has("representativeQueries") => {
            draft.report_rule(&NO_QUERIES, entry.pointer.clone());
        }
        _ => {}
    }
    let is_other = |id: &str| id.starts_with("urn:air:") && entry.text("identifier") != Some(id);
    if entry.text("@id").is_some_and(is_other) {
        draft.report_rule(&OTHER_ID, entry.at("@id"));
    }
    if entry.value("@context").is_some_and(|context| context.is_number() || context.is_boolean()) {
        draft.report_rule(&CONTEXT, entry.at("@context"));
    }
    let metadata = entry.object("metadata");
    let nested = metadata.as_ref().and_then(|metadata| {
        metadata
            .map
            .iter()
            .find(|(_, value)| value.is_object() || value.is_array())
            .map(|(name, _)| metadata.at(name))
    });
    if let Some(pointer) = nested {
        draft.report_rule(&NESTED_METADATA, pointer);
    }
    if let Some(trust) = entry.object("trustManifest") {
        check_trust(&trust, draft);
        check_authority(entry, &trust, draft);
    }
}

/// Whether the document claims to be an AI Catalog, whose entries need no name: it states `specVersion`, which ARD 0.91
/// does not have, and is not at ARD's own path.
fn is_catalog(draft: &Draft<'_>) -> bool {
    draft.manifest.detection.version.is_some() && !draft.base().path().ends_with("/ard.json")
}

const OBJECTS: List = List::UNCHECKED.mistyped(&NOT_OBJECT);

fn check_trust(trust: &Object<'_>, draft: &mut Draft<'_>) {
    draft.check(trust, &TRUST);
    for (key, shape) in [("attestations", &ATTESTATION), ("provenance", &PROVENANCE)] {
        draft.each(trust, key, &OBJECTS, |object, draft| draft.check(object, shape));
    }
}

/// Reports an identity that belongs to another site than the publisher, or to another site than the one that serves the catalog. An
/// identity without a domain, such as did:key, is not checked.
fn check_authority(entry: &Object<'_>, trust: &Object<'_>, draft: &mut Draft<'_>) {
    let Some(named) = trust.text("identity").and_then(site_named_by) else { return };
    if let Some(publisher) = entry.text("identifier").and_then(publisher)
        && named != publisher.site()
    {
        let text = format!("the identity is of {named}, the publisher is {}", publisher.as_str());
        draft.report(&IDENTITY, trust.at("identity"), text);
    }
    if let Some(serving) = draft.serving_site().filter(|serving| *serving != named) {
        let text = format!("the identity is of {named}, and {serving} serves the catalog");
        draft.report(&IDENTITY_FOREIGN, trust.at("identity"), text);
    }
}

fn is_timestamp(text: &str) -> bool {
    chrono::DateTime::parse_from_rfc3339(text).is_ok()
        || chrono::NaiveDate::parse_from_str(text, "%Y-%m-%d").is_ok()
}

/// The domain in `urn:air:<publisher>:<namespace>:<name>`.
fn publisher(identifier: &str) -> Option<Host> {
    let rest = identifier.strip_prefix("urn:air:")?;
    let (publisher, name) = rest.split_once(':')?;
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | ':');
    let well_formed = name.chars().all(plain) && name.split(':').all(|part| !part.is_empty());
    well_formed.then(|| Host::parse(publisher).ok()).flatten()
}

/// The artefact of an entry, by its media type.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Artefact {
    Agent,
    McpServer,
    Catalog,
    Registry,
    Skill,
    Api,
    Dataset,
    Page,
    Other,
}

impl Artefact {
    fn of(media_type: &str) -> Self {
        let essence = media_type.split(';').next().unwrap_or_default().trim();
        match essence {
            "application/ai-registry+json" => Self::Registry,
            "application/ai-catalog+json" | "application/linkset+json" => Self::Catalog,
            _ if essence.contains("a2a") || essence.contains("agent-card") => Self::Agent,
            _ if essence.contains("mcp") => Self::McpServer,
            _ if essence.contains("skill") => Self::Skill,
            _ if essence.contains("openapi") || essence.contains("swagger") => Self::Api,
            _ if essence.contains("woa+json") || essence.contains("agent") => Self::Agent,
            "text/html" | "text/markdown" | "text/plain" | "application/pdf" => Self::Page,
            _ if ["parquet", "csv", "ndjson", "dataset"].iter().any(|word| essence.contains(word)) => {
                Self::Dataset
            }
            _ => Self::Other,
        }
    }

    const fn kind(self) -> CapabilityKind {
        match self {
            Self::Agent => CapabilityKind::Agent,
            Self::Catalog | Self::Registry => CapabilityKind::Registry,
            Self::Skill => CapabilityKind::Skill,
            Self::Dataset => CapabilityKind::Dataset,
            Self::Page => CapabilityKind::Content,
            Self::McpServer | Self::Api | Self::Other => CapabilityKind::Resource,
        }
    }

    /// Documents that declare capabilities are followed.
    const fn follow(self) -> Option<Follow> {
        match self {
            Self::Agent | Self::McpServer | Self::Catalog | Self::Api => Some(Follow::Manifest),
            Self::Registry | Self::Skill | Self::Dataset | Self::Page | Self::Other => None,
        }
    }
}

/// Sets the address of the artefact. ARD defines calls of registries only.
fn refer(artefact: Artefact, url: &str, capability: &mut Capability) {
    let invocation = &mut capability.invocation;
    match artefact {
        Artefact::Registry => {
            invocation.protocol = Some(Protocol::Http);
            invocation.method = Some("POST".to_owned());
            // The entry names the registry itself, or its search endpoint, as in ARD's own examples.
            let base = url.trim_end_matches('/');
            invocation.url =
                Some(if base.ends_with("/search") { base.to_owned() } else { format!("{base}/search") });
            return;
        }
        Artefact::Agent => invocation.protocol = Some(Protocol::A2a),
        Artefact::McpServer => invocation.protocol = Some(Protocol::Mcp),
        _ => invocation.protocol = Some(Protocol::Http),
    }
    invocation.url = Some(url.to_owned());
}

/// Whether the path of an address ends with the name of a JSON document.
fn is_file(url: &str) -> bool {
    let extension = url.split(['?', '#']).next().and_then(|path| path.rsplit_once('.')).map(|(_, last)| last);
    extension.is_some_and(|extension| extension.eq_ignore_ascii_case("json"))
}

fn read_inline(data: &Object<'_>, artefact: Artefact, depth: usize, draft: &mut Draft<'_>) {
    let is_catalog = data.value("entries").is_some_and(Value::is_array);
    match artefact {
        _ if is_catalog && depth + 1 >= NESTING_MAX => draft.report_rule(&NESTED, data.pointer.clone()),
        _ if is_catalog => read_entries(data, depth + 1, draft),
        Artefact::Agent => a2a::merge(data, draft),
        Artefact::McpServer => mcp::merge(data, draft),
        _ => drop(inline::read(data, draft)),
    }
}
