//! One capability of a manifest.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::enums::{
    AuthScheme, CapabilityKind, Confirmation, ExecutionModel, Format, Protocol, SafetyClass, Tristate,
    TypeSource,
};
use super::parts::{AgentIdentity, Integrity, Payment, RateLimit};
use crate::name::{CapabilityId, ManifestUrl};

/// `namespace:type` (ATP section 3.5.2), declared or inferred.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SemanticType {
    #[serde(rename = "type")]
    pub name: String,
    pub source: TypeSource,
    /// 0 to 1; 1 where declared.
    pub confidence: f64,
    /// The rule that inferred it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
}

/// How to call it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Invocation {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol: Option<Protocol>,
    /// Upper-case HTTP verb; `None` unless the call is plain HTTP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// Absolute URL, if it has no variables.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Absolute URL with `{name}` variables (RFC 6570 level 1).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url_template: Option<String>,
    /// URL of the document that describes the agent or server, if a catalog names this document instead of the address to call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub described_by: Option<String>,
    /// Name of the tool or operation inside the protocol.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub native: Option<String>,
    /// Shape that wraps the parameters (WoA `{agent, operation, input}`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub envelope: Option<Value>,
    /// The host is not on the public Internet: a private address or name.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub not_public: bool,
}

impl Invocation {
    /// The address to show: the URL, or its template.
    pub fn endpoint(&self) -> Option<&str> {
        self.url.as_deref().or(self.url_template.as_deref())
    }
}

/// Credentials for a call.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CapabilityAuth {
    pub required: Tristate,
    /// Schemes that apply; empty when none was declared.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub schemes: Vec<AuthScheme>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<String>,
    /// A session must be opened first (agents.json).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub session: bool,
    /// Where the session is opened, with POST.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_url: Option<String>,
    /// The caller must present a verifiable identity of the agent (ATP section 3.3.3).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_identity: Option<AgentIdentity>,
}

/// The effect of a call. An inferred class is never shown as declared, and a declared one is never lowered.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Safety {
    pub class: SafetyClass,
    pub source: TypeSource,
    pub confirmation: Confirmation,
    /// The response is a URL at which a person completes the action (agents.json `human_handoff`).
    #[serde(default)]
    pub handoff: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reversible: Option<bool>,
    /// The publisher's text for the person who confirms the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Idempotency {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub supported: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_field: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window_s: Option<u64>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Execution {
    pub model: ExecutionModel,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub poll_url: Option<String>,
}

/// An action, tool, skill or operation that agents can use.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Capability {
    pub id: CapabilityId,
    /// `<manifest URL>#<format>:<native id>`.
    pub key: String,
    /// As published; otherwise derived from name or position.
    pub native_id: String,
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    pub kind: CapabilityKind,
    /// Version of the implementation, as published (WoA `version` of an agent).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub semantic_types: Vec<SemanticType>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Example requests in words, as published.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<String>,
    #[serde(default)]
    pub invocation: Invocation,
    /// JSON Schema 2020-12 object; each property keeps `x-in`: query, path, header or body. Absent when not declared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameters: Option<Value>,
    /// JSON Schema 2020-12.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response: Option<Value>,
    #[serde(default)]
    pub auth: CapabilityAuth,
    #[serde(default)]
    pub safety: Safety,
    #[serde(default)]
    pub idempotency: Idempotency,
    #[serde(default)]
    pub execution: Execution,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_limit: Option<RateLimit>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Payment>,
    /// Prices of the same call on other networks or in other assets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub other_prices: Vec<Payment>,
    #[serde(default)]
    pub deprecated: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deprecation_message: Option<String>,
    #[serde(default)]
    pub degraded: bool,
    /// Native ids that must be called first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<String>,
    /// Ids of the manifest's workflows that use it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub used_in_workflows: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub integrity: Option<Integrity>,
    /// Members of the publisher's catalog entry that have no field in this model, as published: `@context`, terms of other namespaces,
    /// `metadata` and `trustManifest`. For tools, the id with which callers pay (`endpoint_id`).
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub published: Map<String, Value>,
    /// A text instructs the model that reads it. It is kept as data and excluded from ranking.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub addresses_reader: bool,
    /// Field name to the rule that inferred its value. Other fields were declared or are absent.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub inferred: BTreeMap<String, String>,
    /// JSON pointer into the document as fetched, or into the linked document that declares the capability.
    #[serde(default)]
    pub pointer: String,
    /// URL of the linked document that the pointer refers to, if it is not the manifest itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pointer_document: Option<String>,
}

impl Capability {
    /// An empty capability with its identity.
    pub fn new(
        manifest: &ManifestUrl,
        format: Format,
        native_id: &str,
        name: &str,
        kind: CapabilityKind,
        pointer: String,
    ) -> Self {
        let key = [manifest.as_str(), "#", format.as_str(), ":", native_id].concat();
        Self {
            id: CapabilityId::of_key(&key),
            key,
            native_id: native_id.to_owned(),
            name: name.to_owned(),
            title: None,
            description: None,
            kind,
            version: None,
            semantic_types: Vec::new(),
            tags: Vec::new(),
            examples: Vec::new(),
            invocation: Invocation::default(),
            parameters: None,
            response: None,
            auth: CapabilityAuth::default(),
            safety: Safety::default(),
            idempotency: Idempotency::default(),
            execution: Execution::default(),
            rate_limit: None,
            price: None,
            other_prices: Vec::new(),
            deprecated: false,
            deprecation_message: None,
            degraded: false,
            depends_on: Vec::new(),
            used_in_workflows: Vec::new(),
            integrity: None,
            published: Map::new(),
            addresses_reader: false,
            inferred: BTreeMap::new(),
            pointer,
            pointer_document: None,
        }
    }

    /// Whether the declaration alone suffices to call it: an absolute public address, and a method or a tool name.
    pub fn is_invocable(&self) -> bool {
        self.invocation.endpoint().is_some()
            && !self.invocation.not_public
            && (self.invocation.method.is_some() || self.invocation.native.is_some())
    }
}
