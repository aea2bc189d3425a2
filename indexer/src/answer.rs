//! The responses of the index: rows as in the public JSON, counts, and the cursor of the next page.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use manifest::declaration::Contradiction;
use manifest::model::{
    AuthScheme, Capability, CapabilityKind, Confirmation, Format, Protocol, SafetyClass, SemanticType,
    SourceKind, TypeSource,
};
use manifest::{CapabilityId, Host, IdentityMark, ManifestId, Publisher, SiteName};
use policy::Status;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;
use settings::escape;
use store::StoredManifest;

use crate::declarations::Declaration;
use crate::filter::FacetKey;
use crate::request::Grouping;
use crate::spam::SpamReason;

/// One capability that matches. The order of the fields is the order of the public JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "members of the public JSON")]
pub struct Hit {
    pub id: CapabilityId,
    pub key: String,
    pub native_id: String,
    pub name: String,
    /// The title, if the publisher states one that differs from the name. Rows of earlier programs have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    pub description: Option<String>,
    pub kind: CapabilityKind,
    pub site: SiteName,
    pub host: Host,
    pub format: Format,
    pub manifest_id: ManifestId,
    pub semantic_types: Vec<SemanticType>,
    pub protocol: Option<Protocol>,
    /// Upper-case HTTP verb.
    pub method: Option<String>,
    /// URL or URL template to call.
    pub endpoint: Option<String>,
    pub safety: SafetyClass,
    pub safety_source: TypeSource,
    pub confirmation: Confirmation,
    pub handoff: bool,
    pub auth: Vec<AuthScheme>,
    pub auth_required: Option<bool>,
    pub invocable: bool,
    pub deprecated: bool,
    /// Declared as impaired by the publisher.
    pub degraded: bool,
    /// Whether a text of the publisher addresses the model that reads it, as instructions do.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub addresses_reader: bool,
    pub source: SourceKind,
    /// Identity of the publisher: the binding of the leading declaration, and its signature.
    #[serde(default)]
    pub identity_marks: Vec<IdentityMark>,
    /// Who publishes the document of the leading declaration.
    #[serde(default = "unknown_publisher")]
    pub publisher: Publisher,
    pub status: Status,
    pub updated_at: DateTime<Utc>,
    /// The declarations in the documents of the site, the leading one first; empty if there is only one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub declarations: Vec<Declaration>,
    /// Contradictions between the declarations.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub contradictions: Vec<Contradiction>,
    /// The results that are grouped under this one, if the search groups results.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<Group>,
    /// When the capability was first seen; not part of the public row.
    #[serde(skip)]
    pub first_seen_at: DateTime<Utc>,
    /// Protocols of the agent endpoints (MCP, A2A) that the indexed documents of the site declare. Set only in search results; not part of
    /// the public row.
    #[serde(skip)]
    pub site_endpoints: Vec<Protocol>,
    #[serde(default, serialize_with = "rounded")]
    pub score: f32,
    /// Part of the publisher's text as HTML: escaped, with the words that match inside `<mark>`.
    #[serde(default)]
    pub snippet: String,
    /// The parts of the score, for the first results of a request with `explain`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub explanation: Option<Explanation>,
}

/// The parts of a score as JSON text, because a tree of values takes several times as much memory.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Explanation(pub(crate) Box<RawValue>);

impl Explanation {
    /// At most 16 KiB of JSON.
    pub fn as_str(&self) -> &str {
        self.0.get()
    }
}

impl PartialEq for Explanation {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Hit {
    /// The row of a stored capability; score, snippet and explanation are empty.
    pub fn of(stored: &StoredManifest, capability: &Capability) -> Self {
        let manifest = &stored.manifest;
        Self {
            id: capability.id.clone(),
            key: capability.key.clone(),
            native_id: capability.native_id.clone(),
            name: capability.name.clone(),
            title: capability.title.clone().filter(|title| *title != capability.name),
            description: capability.description.clone().or_else(|| capability.title.clone()),
            kind: capability.kind,
            site: manifest.url.site(),
            host: manifest.url.host(),
            format: manifest.format(),
            manifest_id: manifest.id.clone(),
            semantic_types: capability.semantic_types.clone(),
            protocol: capability.invocation.protocol,
            method: capability.invocation.method.clone(),
            endpoint: capability.invocation.endpoint().map(|address| escape::address(address).into_owned()),
            safety: capability.safety.class,
            safety_source: capability.safety.source,
            confirmation: capability.safety.confirmation,
            handoff: capability.safety.handoff,
            auth: capability.auth.schemes.clone(),
            auth_required: capability.auth.required.as_option(),
            invocable: capability.is_invocable(),
            deprecated: capability.deprecated,
            degraded: capability.degraded,
            addresses_reader: capability.addresses_reader,
            source: manifest.source.kind,
            identity_marks: manifest.identity_of(capability, stored.named_by).marks(),
            publisher: stored.publisher,
            status: stored.status,
            updated_at: stored.changed_at,
            declarations: Vec::new(),
            contradictions: Vec::new(),
            group: None,
            first_seen_at: stored.first_seen_at,
            site_endpoints: Vec::new(),
            score: 0.0,
            snippet: String::new(),
            explanation: None,
        }
    }

    /// Whether the site itself publishes the document that declares it, at its domain. Other documents that it names may be those of its
    /// customers and users.
    pub fn is_published_by_site(&self) -> bool {
        self.is_of_site() && self.publisher == Publisher::Site
    }

    /// Whether the site itself names the document that declares it.
    pub fn is_of_site(&self) -> bool {
        !self.identity_marks.contains(&IdentityMark::NamedByOthers)
    }

    /// The title, or else the name.
    pub fn heading(&self) -> &str {
        self.title.as_deref().unwrap_or(&self.name)
    }

    /// The id of the leading declaration in its manifest.
    pub fn declared_id(&self) -> &CapabilityId {
        self.declarations.first().map_or(&self.id, |leading| &leading.id)
    }
}

const fn unknown_publisher() -> Publisher {
    Publisher::Unknown
}

/// Results that are grouped under a better one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Group {
    pub by: Grouping,
    /// Number of grouped results.
    pub others: u64,
    /// The best of them.
    pub members: Vec<GroupMember>,
}

/// A result of a [`Group`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupMember {
    pub id: CapabilityId,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub addresses_reader: bool,
    pub name: String,
    pub site: SiteName,
    /// Who publishes the document of the leading declaration.
    #[serde(default = "unknown_publisher")]
    pub publisher: Publisher,
}

/// Rounds to four decimals; more would be noise.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn rounded<S: Serializer>(score: &f32, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64((f64::from(*score) * 1e4).round() / 1e4)
}

/// The number of results with a value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FacetCount {
    pub value: String,
    pub count: u64,
    /// Number of relevant results with this value. `None` if it is not known, because results are not sorted by relevance, or because the
    /// facet's own filter is set, so that all relevant results have the filtered value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relevant: Option<u64>,
}

/// The most frequent values of a facet, and the sum of the counts of the others.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FacetBuckets {
    pub values: Vec<FacetCount>,
    pub other_count: u64,
}

/// One page of results.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SearchAnswer {
    pub hits: Vec<Hit>,
    /// Results on all pages.
    pub total: u64,
    /// How many of the first results are relevant; `None` if results are not sorted by relevance.
    pub relevant: Option<u64>,
    /// The share of the request that the best results cover, 0 to 1.
    pub coverage: f32,
    /// There are no results because none is relevant.
    pub nothing_good: bool,
    /// There are no results because the request has text, but no word that capabilities are searched by.
    pub has_no_words: bool,
    pub did_you_mean: Option<String>,
    /// Each counted as if its own filter were not set. The values of relevant results come first.
    pub facets: BTreeMap<FacetKey, Vec<FacetCount>>,
    pub next_cursor: Option<String>,
    pub completeness: Completeness,
}

/// How complete an answer is. That of an index on this machine is always complete.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Completeness {
    /// The total, or the counts of a facet, are not exact.
    pub is_estimate: bool,
    /// The shards of a cluster whose results are missing.
    pub missing_shards: Vec<String>,
}

/// Why a result or a site is spam.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SpamCause {
    pub reason: SpamReason,
    /// The site that it imitates, or the sibling site whose rank is unchanged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub of: Option<SiteName>,
}

/// A site with capabilities that rank lower because they are spam.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SpamSite {
    pub site: SiteName,
    pub causes: Vec<SpamCause>,
    /// Capabilities whose own document makes them spam; 0 if the site as a whole is.
    pub capabilities: u64,
}

manifest::string_enum! {
    /// The kind of text that a suggestion completes.
    SuggestionKind, "suggestion kind" {
        Name = "name",
        SemanticType = "semantic_type",
        Phrase = "phrase",
        Site = "site",
    }
}

/// A completion of a prefix.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Suggestion {
    pub text: String,
    pub kind: SuggestionKind,
    /// Number of sites with this text; if there are many, number of capabilities.
    pub count: u64,
}
