//! Capabilities and manifests as catalog entries (ARD 0.91 §4.2).

use std::collections::HashSet;

use chrono::{DateTime, SecondsFormat, Utc};
use manifest::entry::{self, Entry};
use manifest::{AuthScheme, Capability, Identity};
use serde::Serialize;
use serde_json::{Map, Value};
use store::StoredManifest;
use utoipa::ToSchema;

use crate::answers::TEXT_IS;
use crate::answers::search_parameters::row_members;
use crate::clock;

/// Representative queries of an entry: the standard requires two to five.
const QUERIES_MIN: usize = 2;
const QUERIES_MAX: usize = 5;
/// Maximum number of names of capabilities in the entry of a manifest; a longer list is in the manifest itself.
const CAPABILITIES_MAX: usize = 100;
/// Present in the metadata of an entry with a text that contains instructions for the model that reads it.
const ADDRESSES_READER: &str = "addressesReader";
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
        let entry = entry::of_capability(&stored.manifest, capability, stored.named_by);
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
        // The facts of this registry are not replaced by a publisher's.
        if let Some(Value::Object(published)) = made.published.remove("metadata") {
            let own: HashSet<String> = made.metadata.keys().map(|name| plain_name(name)).collect();
            let is_own = |name: &str| {
                let name = plain_name(name);
                own.contains(&name) || is_stated_by_registry(&name)
            };
            made.metadata.extend(published.into_iter().filter(|(name, _)| !is_own(name)));
        }
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

    /// States whether the publisher that the entry names is the site that serves it, and what its signature proves: a `trustManifest` is
    /// repeated as published.
    fn mark_identity(&mut self, identity: &Identity<'_>) {
        let facts = [
            ("binding", identity.binding.as_str().into()),
            ("signature", identity.signature.status.as_str().into()),
            ("verified", identity.verified.into()),
        ];
        self.metadata.extend(facts.map(|(name, value): (&str, Value)| (name.to_owned(), value)));
    }

    /// Whether it is marked so.
    pub(crate) fn addresses_reader(&self) -> bool {
        self.metadata.contains_key(ADDRESSES_READER)
    }

    /// Marks an entry with a text of the publisher that contains instructions for the model that reads it.
    fn mark_addressing(&mut self, is_set: bool) {
        if is_set {
            self.metadata.insert(ADDRESSES_READER.to_owned(), true.into());
        }
    }

    /// The members that both kinds of entries share.
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

/// Names by which this registry states facts about what it lists, besides the members of its rows and records. A publisher's metadata
/// with such a name could not be told from them.
const STATED_BY_REGISTRY: [&str; 16] = [
    "identity",
    "indexed",
    "isverified",
    "listedby",
    "namedby",
    "owner",
    "rank",
    "ranking",
    "registry",
    "relevance",
    "reviewed",
    "reviewedby",
    "trust",
    "trusted",
    "verified",
    "verifiedby",
];

fn is_stated_by_registry(plain: &str) -> bool {
    plain == plain_name(ADDRESSES_READER)
        || STATED_BY_REGISTRY.contains(&plain)
        || row_members().any(|member| plain_name(member) == plain)
}

/// A name without case and separators: `named_by`, `namedBy` and `Named-By` are read as one.
fn plain_name(name: &str) -> String {
    name.chars().filter(|c| !matches!(c, '_' | '-' | ' ' | '.')).flat_map(char::to_lowercase).collect()
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
