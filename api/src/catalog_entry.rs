//! Capabilities and manifests as catalog entries (ARD 0.91 §4.2).

use chrono::{DateTime, SecondsFormat, Utc};
use manifest::entry::{self, Entry};
use manifest::{AuthScheme, Capability, Identity, ListedEntry};
use serde::Serialize;
use serde_json::{Map, Value};
use store::StoredManifest;
use utoipa::ToSchema;

use crate::answers::TEXT_IS;
use crate::clock;

/// Representative queries of an entry: the standard requires two to five.
const QUERIES_MIN: usize = 2;
const QUERIES_MAX: usize = 5;
/// Maximum number of capability names in the entry of a manifest; the manifest itself has the complete list.
const CAPABILITIES_MAX: usize = 100;
/// Present in the metadata of an entry with a text that contains instructions for the model that reads it.
const ADDRESSES_READER: &str = "addressesReader";
/// The registries that list an entry, in the metadata of an entry that a peer lists.
pub(crate) const LISTED_BY: &str = "listedBy";
/// Prefix for a member of a publisher's metadata that has the name of a fact of this registry.
const DECLARED: &str = "declared.";
/// Names of facts that this registry states in rows, entries and records, as [`folded`]. Names for a publisher's own words, such as `title`, are
/// not among them.
const OWN_FACTS: [&str; 89] = [
    "above",
    "addressesreader",
    "agentidentity",
    "auth",
    "authentication",
    "authenticationleftout",
    "authrequired",
    "blocked",
    "capabilitycount",
    "capabilityid",
    "changedat",
    "confirmation",
    "confirmationmessage",
    "conformance",
    "contenthash",
    "contradictions",
    "declarations",
    "declaredby",
    "declaredname",
    "degraded",
    "dependson",
    "deprecated",
    "deprecationmessage",
    "details",
    "detailsleftout",
    "endpoint",
    "entry",
    "evidence",
    "execution",
    "findings",
    "firstseenat",
    "format",
    "group",
    "handoff",
    "host",
    "id",
    "idempotency",
    "identifierminted",
    "identity",
    "identitymarks",
    "invocable",
    "invocation",
    "islatest",
    "key",
    "kind",
    "lastseenat",
    "level",
    "listedby",
    "manifestid",
    "manifestidentifier",
    "method",
    "namedby",
    "nameis",
    "nativeid",
    "optout",
    "otherprices",
    "ownedby",
    "owner",
    "parameters",
    "payment",
    "payments",
    "price",
    "protocol",
    "provenance",
    "publisher",
    "rank",
    "ratelimit",
    "relevant",
    "response",
    "reviewed",
    "robots",
    "safety",
    "safetysource",
    "scopes",
    "score",
    "semantictype",
    "semantictypes",
    "sessionurl",
    "signature",
    "site",
    "snippet",
    "source",
    "status",
    "suspended",
    "textis",
    "updatedat",
    "usageterms",
    "verified",
    "verifiedby",
];
/// The subset of [`OWN_FACTS`] that no other member of a publisher's entry may be named, either.
const OWN_JUDGEMENTS: [&str; 12] = [
    "addressesreader",
    "id",
    "identifierminted",
    "listedby",
    "namedby",
    "owner",
    "ownedby",
    "score",
    "source",
    "textis",
    "verified",
    "verifiedby",
];
/// Maximum number of tags of one entry.
const TAGS_MAX: usize = 20;

/// One entry. The standard requires either `url` or `data`; these entries always have a `url`.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ArdEntry)]
pub(crate) struct CatalogEntry {
    pub(crate) identifier: String,
    pub(crate) display_name: String,
    #[serde(rename = "type")]
    pub(crate) media_type: String,
    pub(crate) url: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub(crate) description: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub(crate) tags: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub(crate) capabilities: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub(crate) representative_queries: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub(crate) version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub(crate) updated_at: Option<String>,
    /// Plain values only, as the schema of the standard requires.
    #[serde(skip_serializing_if = "Map::is_empty")]
    #[schema(value_type = Object, required = false)]
    pub(crate) metadata: Map<String, Value>,
    /// Further terms of the publisher's entry: its `@context`, terms of other namespaces, `trustManifest`.
    #[serde(flatten)]
    #[schema(value_type = std::collections::HashMap<String, Value>)]
    pub(crate) published: Map<String, Value>,
}

impl CatalogEntry {
    /// The entry of one capability; `base` is this registry's own address.
    pub(crate) fn of_capability(stored: &StoredManifest, capability: &Capability, base: &str) -> Self {
        let entry = stored.entry_of(capability);
        let name = capability.title.as_deref().unwrap_or(&capability.name);
        let mut made = Self::begun(stored, &entry, [name, &capability.native_id]);
        made.description.clone_from(&capability.description);
        made.tags = capability.tags.iter().take(TAGS_MAX).cloned().collect();
        made.capabilities = vec![capability.name.clone()];
        made.representative_queries = queries(&capability.examples);
        made.metadata.extend(facts_of_capability(stored, capability, base));
        made.mark_identity(&stored.manifest.identity_of(capability, stored.named_by).at(clock::now()));
        made.mark_addressing(capability.addresses_reader);
        if !entry.identifier.is_minted && capability.version.is_some() {
            made.version.clone_from(&capability.version);
        }
        made.published.clone_from(&capability.published);
        // The entry refers to its document by `url`, and an entry has either `url` or `data` (ARD §4.3).
        made.published.remove("data");
        // Metadata of a publisher can neither replace nor imitate the facts of this registry.
        if let Some(Value::Object(published)) = made.published.remove("metadata") {
            for (name, value) in published {
                let name = if is_own_fact(&name) { format!("{DECLARED}{name}") } else { name };
                made.metadata.entry(name).or_insert(value);
            }
        }
        made.published.retain(|name, _| !is_named(name, &OWN_JUDGEMENTS));
        made
    }

    pub(crate) fn of_manifest(stored: &StoredManifest, base: &str) -> Self {
        let manifest = &stored.manifest;
        let entry = entry::of_manifest(manifest);
        let host = manifest.url.host();
        let names = [manifest.title.as_deref(), manifest.name.as_deref()];
        let name = names.into_iter().flatten().find(|name| !name.trim().is_empty());
        let mut made = Self::begun(stored, &entry, [name.unwrap_or_default(), host.as_str()]);
        made.description.clone_from(&manifest.description);
        made.tags = manifest.tags.iter().take(TAGS_MAX).cloned().collect();
        let names = manifest.capabilities.iter().map(|capability| capability.name.clone());
        made.capabilities = names.take(CAPABILITIES_MAX).collect();
        made.representative_queries = queries(&manifest.representative_queries);
        made.metadata.insert("entry".to_owned(), "manifest".into());
        made.metadata.insert("capabilityCount".to_owned(), manifest.capabilities.len().into());
        made.metadata.insert("details".to_owned(), format!("{base}/manifests/{}", manifest.id).into());
        made.mark_identity(&stored.identity().at(clock::now()));
        made.mark_addressing(manifest.addresses_reader());
        made
    }

    /// An entry that only other registries list. `listed_by` names them.
    pub(crate) fn of_listing(listed: &ListedEntry, listed_by: &str) -> Self {
        let mut made = Self {
            identifier: listed.identifier.clone(),
            display_name: listed.display_name.clone(),
            media_type: listed.media_type.clone(),
            url: listed.url.clone(),
            description: listed.description.clone(),
            tags: listed.tags.clone(),
            capabilities: listed.capabilities.clone(),
            representative_queries: Vec::new(),
            version: listed.version.clone(),
            updated_at: listed.updated_at.clone(),
            metadata: Map::from_iter([
                ("entry".to_owned(), Value::from("listing")),
                (LISTED_BY.to_owned(), listed_by.into()),
                ("binding".to_owned(), listed.binding.as_str().into()),
                ("verified".to_owned(), false.into()),
                ("textIs".to_owned(), TEXT_IS.into()),
            ]),
            published: Map::new(),
        };
        made.mark_addressing(listed.addresses_reader);
        made
    }

    /// States whether the named publisher is the site that serves the entry, and what the signature proves. This is needed because a
    /// `trustManifest` is repeated as published.
    fn mark_identity(&mut self, identity: &Identity<'_>) {
        let facts = [
            ("binding", identity.binding.as_str().into()),
            ("signature", identity.signature.status.as_str().into()),
            ("verified", identity.verified.into()),
        ];
        self.metadata.extend(facts.map(|(name, value): (&str, Value)| (name.to_owned(), value)));
    }

    /// Marks an entry with a text of the publisher that contains instructions for the model that reads it.
    fn mark_addressing(&mut self, is_set: bool) {
        if is_set {
            self.metadata.insert(ADDRESSES_READER.to_owned(), true.into());
        }
    }

    /// Whether the entry is marked because one of its texts addresses the model that reads it.
    pub(crate) fn addresses_reader(&self) -> bool {
        self.metadata.contains_key(ADDRESSES_READER)
    }

    /// An entry with the members that both kinds share.
    fn begun(stored: &StoredManifest, entry: &Entry<'_>, names: [&str; 2]) -> Self {
        let manifest = &stored.manifest;
        let name = names.into_iter().find(|name| !name.trim().is_empty()).unwrap_or("unnamed");
        let metadata = Map::from_iter([
            ("identifierMinted".to_owned(), Value::from(entry.identifier.is_minted)),
            ("manifestId".to_owned(), manifest.id.as_str().into()),
            ("format".to_owned(), manifest.format().as_str().into()),
            ("site".to_owned(), manifest.url.site().as_str().into()),
            ("status".to_owned(), stored.status.as_str().into()),
            ("source".to_owned(), manifest.source.kind.as_str().into()),
            ("textIs".to_owned(), TEXT_IS.into()),
        ]);
        Self {
            identifier: entry.identifier.urn.clone(),
            display_name: name.to_owned(),
            media_type: entry.media_type.clone().into_owned(),
            url: entry.url.to_owned(),
            description: None,
            tags: Vec::new(),
            capabilities: Vec::new(),
            representative_queries: Vec::new(),
            version: manifest.document_version.clone(),
            updated_at: Some(timestamp(stored.changed_at)),
            metadata,
            published: Map::new(),
        }
    }
}

/// Whether a client could take a member of this name for a fact of this registry: by the last part of the name, in any case and with any
/// separators.
fn is_own_fact(name: &str) -> bool {
    folded(name).contains("agentdex") || is_named(name, &OWN_FACTS)
}

/// Whether a name is in the list. Only the last part of a URL, or of a name with a prefix, is compared.
fn is_named(name: &str, names: &[&str]) -> bool {
    let separators = [':', '/', '#', '.'];
    let last = name.trim_end_matches(separators).rsplit(separators).next().unwrap_or_default();
    [name, last].into_iter().any(|name| names.contains(&folded(name).as_str()))
}

/// The letters and digits of a name, in lower case.
fn folded(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

fn facts_of_capability(
    stored: &StoredManifest,
    capability: &Capability,
    base: &str,
) -> impl Iterator<Item = (String, Value)> {
    let schemes: Vec<&str> = capability.auth.schemes.iter().copied().map(AuthScheme::as_str).collect();
    let of_manifest = entry::of_manifest(&stored.manifest).identifier.urn;
    let types = capability.semantic_types.first().map(|of| of.name.clone());
    [
        ("entry", "capability".into()),
        ("manifestIdentifier", of_manifest.into()),
        ("capabilityId", capability.id.as_str().into()),
        ("nativeId", capability.native_id.as_str().into()),
        ("kind", capability.kind.as_str().into()),
        ("semanticType", types.into()),
        ("protocol", capability.invocation.protocol.map(manifest::model::Protocol::as_str).into()),
        ("method", capability.invocation.method.as_deref().into()),
        ("endpoint", capability.invocation.endpoint().into()),
        ("invocable", capability.is_invocable().into()),
        ("safety", capability.safety.class.as_str().into()),
        ("confirmation", capability.safety.confirmation.as_str().into()),
        ("auth", if schemes.is_empty() { Value::Null } else { schemes.join(",").into() }),
        ("authRequired", capability.auth.required.as_option().into()),
        ("details", format!("{base}/capabilities/{}", capability.id).into()),
    ]
    .into_iter()
    .map(|(name, value): (&str, Value)| (name.to_owned(), value))
}

fn queries(published: &[String]) -> Vec<String> {
    if published.len() < QUERIES_MIN {
        return Vec::new();
    }
    published.iter().take(QUERIES_MAX).cloned().collect()
}

fn timestamp(time: DateTime<Utc>) -> String {
    time.to_rfc3339_opts(SecondsFormat::Secs, true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_facts_are_known_in_any_spelling() {
        assert!(OWN_FACTS.is_sorted() && OWN_FACTS.iter().all(|name| folded(name) == *name));
        for name in [
            "verified",
            "Verified",
            "named_by",
            "namedBy",
            "text-is",
            "x:verified",
            "agentdex.note",
            "https://agenticresourcediscovery.org/ns#score",
            "https://schema.example/source/",
            "id",
        ] {
            assert!(is_own_fact(name), "{name}");
        }
        let of_entry = |name: &str| is_named(name, &OWN_JUDGEMENTS);
        assert!(of_entry("https://agenticresourcediscovery.org/ns#score") && of_entry("id"));
        assert!(!of_entry("schema:price") && !of_entry("trustManifest") && !of_entry("@context"));
        for name in ["region", "title", "schema:license", "trustManifest", "@context", "tags"] {
            assert!(!is_own_fact(name), "{name}");
        }
    }
}
