//! The parts of a manifest that describe the service as a whole: provider, authentication, limits, policies, interfaces.

use std::collections::{BTreeMap, HashSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::enums::{AuthScheme, Cost, PolicyChoice, Protocol};
use super::signature::SignatureCheck;

/// Maximum number of authentication schemes kept for one capability.
pub(crate) const SCHEMES_PER_CAPABILITY_MAX: usize = 64;

/// Who offers the service.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Provider {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub logo: Option<String>,
    /// A DID, SPIFFE id or URN.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub identity: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Contact {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub email: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub other: Option<String>,
}

/// Which capabilities an authentication contract covers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "scope")]
pub enum AppliesTo {
    #[default]
    All,
    /// Native ids that need it (AWP `required_for`).
    Ids { ids: Vec<String> },
    /// Native ids that may use it (AWP `optional_for`). An empty list names no call: every call may use it, or the document does not say
    /// which.
    OptionalIds { ids: Vec<String> },
}

impl AppliesTo {
    /// Adds calls to those that need a credential. A credential that named no call is then restricted to these.
    pub(crate) fn add_ids(&mut self, ids: Vec<String>) {
        match self {
            Self::OptionalIds { ids: known } if known.is_empty() => *self = Self::Ids { ids },
            Self::Ids { ids: known } => {
                let seen: HashSet<String> = known.iter().cloned().collect();
                known.extend(ids.into_iter().filter(|id| !seen.contains(id)));
            }
            Self::All | Self::OptionalIds { .. } => {}
        }
    }

    /// Whether the capability with this native id may use the credentials. An empty list in [`AppliesTo::OptionalIds`] covers all calls,
    /// because the document does not say which may use them.
    pub(crate) fn covers(&self, native_id: &str) -> bool {
        match self {
            Self::All => true,
            Self::Ids { ids } => ids.iter().any(|id| id == native_id),
            Self::OptionalIds { ids } => ids.is_empty() || ids.iter().any(|id| id == native_id),
        }
    }
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AgentIdentity {
    pub required: bool,
    /// `did:web`, `did:key` or the publisher's own term.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<String>,
}

/// One flow of an OAuth scheme.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct OAuthFlow {
    /// As published: `authorizationCode`, `clientCredentials`…
    pub flow: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub authorize_url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refresh_url: Option<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub scopes: BTreeMap<String, String>,
}

/// One authentication scheme. `none` is an explicit declaration; an empty list means that none was declared.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Auth {
    pub scheme: AuthScheme,
    /// The publisher's own name for the scheme, if it differs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub declared: Option<String>,
    /// `header`, `query`, `cookie` or `body`; `environment` or `argument` for the secret of a package that a caller starts.
    #[serde(default, rename = "in", skip_serializing_if = "Option::is_none")]
    pub location: Option<String>,
    /// Name of the header, query parameter, cookie or member of the body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_url: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authorize_url: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refresh_url: Option<String>,
    /// Scope name to its description; the description may be empty.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub scopes: BTreeMap<String, String>,
    /// The OAuth flows, if there are several. The fields above then contain the first address of each kind and all scopes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flows: Vec<OAuthFlow>,
    /// What the publisher says about the credential, as plain text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registration_url: Option<String>,
    /// How the credentials are obtained, in the publisher's words: "first request creates credentials". `automatic` for a flag such as
    /// `auto_registration`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registration: Option<String>,
    /// The form of the credential, as published: `ak_live_<32 hex>`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_expiry_s: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_identity: Option<AgentIdentity>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub docs_url: Option<String>,
    #[serde(default)]
    pub applies_to: AppliesTo,
}

impl Auth {
    pub fn new(scheme: AuthScheme) -> Self {
        Self { scheme, ..Self::default() }
    }

    /// Adds the flows of an OAuth scheme: the first address of each kind and all scopes, and each flow if there are several.
    pub(crate) fn add_flows(&mut self, flows: Vec<OAuthFlow>) {
        for flow in &flows {
            for (known, found) in [
                (&mut self.authorize_url, &flow.authorize_url),
                (&mut self.token_url, &flow.token_url),
                (&mut self.refresh_url, &flow.refresh_url),
            ] {
                if known.is_none() {
                    known.clone_from(found);
                }
            }
            self.scopes.extend(flow.scopes.clone());
        }
        if flows.len() > 1 {
            self.flows = flows;
        }
    }
}

/// Feature flags (AWP section 6, A2A capabilities). `other` keeps what has no field, as published.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Features {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub streaming: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batch_actions: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub webhooks: Option<bool>,
    /// `cursor`, `offset`, `page`, `none` or the publisher's own word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pagination: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idempotency: Option<bool>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub other: BTreeMap<String, Value>,
}

/// Recovery for an error code. Raw and untrusted.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ErrorRecovery {
    pub code: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recovery: Option<String>,
}

/// Sessions of agents.json. URLs are absolute.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Sessions {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub create_url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delete_url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttl_s: Option<u64>,
    /// Native ids of the capabilities that need a session.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub required_ids: Vec<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Audit {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Base64 of an Ed25519 public key, as published.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub public_key: Option<String>,
}

/// `requests` in every `window_s` seconds. `text` keeps the published spelling when there was one.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RateLimit {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window_s: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub burst: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub concurrent_sessions: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tier_url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

impl RateLimit {
    pub(crate) fn per_minute(requests: u64) -> Self {
        Self { requests: Some(requests), window_s: Some(60), ..Self::default() }
    }
}

/// What the publisher allows others to do with the content (ATP section 3.8, agents.txt 1.0 access).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Policies {
    pub training: PolicyChoice,
    pub inference: PolicyChoice,
    /// Whether the content may be in a search index (`search` of content signals).
    #[serde(skip_serializing_if = "PolicyChoice::is_unset")]
    pub search: PolicyChoice,
    /// `Some(false)`: agentdex does not serve the fetched bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub caching_allowed: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub caching_max_age_s: Option<u64>,
    /// `required`, `preferred`, `none` or the publisher's own word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attribution: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub terms_url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub privacy_url: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub access_allow: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub access_disallow: Vec<String>,
}

impl Policies {
    /// The publisher's requirements for callers; `None` if nothing is stated.
    pub fn usage_terms(&self) -> Option<UsageTerms<'_>> {
        let (attribution, terms_url) = (self.attribution.as_deref(), self.terms_url.as_deref());
        let is_stated = !self.inference.is_unset() || attribution.is_some() || terms_url.is_some();
        is_stated.then_some(UsageTerms { inference: self.inference, attribution, terms_url })
    }
}

/// Conditions for the use of responses (ATP section 3.8).
#[derive(Debug, Serialize)]
pub struct UsageTerms<'a> {
    /// Whether a model may use it as input.
    #[serde(skip_serializing_if = "PolicyChoice::is_unset")]
    pub inference: PolicyChoice,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attribution: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub terms_url: Option<&'a str>,
}

/// The publisher's statement on whether the service works.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Status {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operational: Option<bool>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub degraded_ids: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status_url: Option<String>,
}

/// A protocol endpoint of the whole service. It is declared and never called.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Interface {
    pub protocol: Protocol,
    /// The publisher's own name for the protocol or transport (`JSONRPC`, `com.example.private`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub declared: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transport: Option<String>,
    /// Further configuration, as published: WoA `tool_field`, the members of a private transport.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, Value>,
}

impl Interface {
    pub const fn new(protocol: Protocol, url: Option<String>) -> Self {
        Self { protocol, declared: None, url, version: None, transport: None, settings: BTreeMap::new() }
    }
}

/// A price. It is recorded and never acted upon.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Payment {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheme: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asset: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub price: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// The plan or the item that the price is for: `pro`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    /// How the price is charged: `per_call`, `subscription`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

impl Payment {
    /// The amount in `price`, if it has digits.
    pub fn amount(&self) -> Option<f64> {
        let text = self.price.as_deref()?;
        let number = text.trim_matches(|letter: char| !letter.is_ascii_digit() && letter != '.');
        number.parse::<f64>().ok().filter(|amount| amount.is_finite())
    }

    /// Whether a call costs something; `None` without a price.
    pub fn cost(&self) -> Option<Cost> {
        let text = self.price.as_deref()?.trim();
        let is_free = match self.amount() {
            Some(amount) => amount <= 0.0,
            None => FREE_WORDS.iter().any(|word| text.eq_ignore_ascii_case(word)),
        };
        Some(if is_free { Cost::Free } else { Cost::Paid })
    }
}

/// Words for a price of zero.
const FREE_WORDS: &[&str] = &["free", "none", "gratis"];

/// An address of another document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Link {
    /// `tools`, `service-desc`, `agent-card`, `catalog-entry`, `docs`, `llms`, `status`…
    pub rel: String,
    /// Absolute.
    pub url: String,
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Absolute URL of the resource to which the target belongs, if the publisher states it: in an API catalog, the API of the link (RFC
    /// 9264 `anchor`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub anchor: Option<String>,
    /// Whether and how the crawler follows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub follow: Option<Follow>,
}

impl Link {
    /// A link. It is not followed if it has a variable (`{id}`).
    pub fn new(rel: &str, url: String, follow: Option<Follow>) -> Self {
        let follow = follow.filter(|_| !url.contains('{'));
        Self { rel: rel.to_owned(), url, media_type: None, title: None, anchor: None, follow }
    }
}

/// How a linked document is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Follow {
    /// It completes this manifest: fetch it and read this document again with it (ARWS tools, plugin api.url).
    Merge,
    /// It is a separate manifest (catalog entries, api-catalog descriptions, pointers).
    Manifest,
}

/// One step of a workflow: a native capability id, or an operation of a named source.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct WorkflowStep {
    pub id: String,
    /// The operation that the step calls, if the step has an id of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Workflow {
    pub id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    pub steps: Vec<WorkflowStep>,
    /// Branching rules, raw as published.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Value>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Integrity {
    pub signed: bool,
    /// `None` if there is no signature.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verified: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// How the signature was checked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub check: Option<SignatureCheck>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_of_zero_and_words_for_no_price_are_free() {
        let cost = |price: &str| Payment { price: Some(price.to_owned()), ..Payment::default() }.cost();
        for free in ["0", "0.00", "$0", "0 USDC", "free", "Free", " FREE "] {
            assert_eq!(cost(free), Some(Cost::Free), "{free}");
        }
        for paid in ["0.01", "$5", "12 EUR", "on request", "1000000"] {
            assert_eq!(cost(paid), Some(Cost::Paid), "{paid}");
        }
        assert_eq!(Payment { scheme: Some("x402".to_owned()), ..Payment::default() }.cost(), None);
    }
}
