//! The members of a capability that `view=full` adds from the store to the row of the index.

use std::borrow::Cow;
use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use indexer::MergedCapability;
use manifest::model::{
    AgentIdentity, Auth, Cost, Execution, Idempotency, Invocation, Payment, Source, UsageTerms,
};
use manifest::{
    Capability, CapabilityId, ContentHash, Detection, Discovery, Finding, Identity, Manifest, ManifestId,
    ManifestUrl,
};
use serde::Serialize;
use serde_json::Value;
use store::StoredManifest;

use crate::clock;
use crate::value_size::json_bytes_left_after;

/// How to call a capability, where it is declared, and the findings of the declaration.
#[derive(Debug, Serialize)]
pub(crate) struct Detail<'a> {
    pub(crate) parameters: Option<&'a Value>,
    pub(crate) response: Option<&'a Value>,
    pub(crate) invocation: &'a Invocation,
    pub(crate) scopes: &'a [String],
    /// URL that opens the session that the call needs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) session_url: Option<&'a str>,
    /// The accepted schemes with their addresses, flows and scopes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) authentication: Vec<&'a Auth>,
    /// Number of accepted schemes that were left out because of their size; the manifest contains them.
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) authentication_left_out: usize,
    /// The identity that the caller must present in addition to credentials (ATP section 3.3.3).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) agent_identity: Option<&'a AgentIdentity>,
    /// The publisher: the declared one, the one that served the document, and the one that a signature proves.
    pub(crate) identity: Identity<'a>,
    /// What to show the person who confirms; the publisher's text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) confirmation_message: Option<&'a str>,
    /// The publisher's requests to the caller: inference, attribution, terms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) usage_terms: Option<UsageTerms<'a>>,
    pub(crate) idempotency: &'a Idempotency,
    pub(crate) execution: Cow<'a, Execution>,
    pub(crate) rate_limit: Option<&'a manifest::model::RateLimit>,
    /// What a call costs, as declared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) price: Option<&'a Payment>,
    /// Prices for other networks and assets.
    #[serde(skip_serializing_if = "<[Payment]>::is_empty")]
    pub(crate) other_prices: &'a [Payment],
    /// The payment method of a capability with a price, if only its manifest declares one.
    #[serde(skip_serializing_if = "<[Payment]>::is_empty")]
    pub(crate) payments: &'a [Payment],
    pub(crate) depends_on: &'a [String],
    pub(crate) examples: &'a [String],
    pub(crate) provenance: Provenance<'a>,
    /// Findings about the leading declaration, including where it contradicts others.
    pub(crate) findings: Vec<Finding>,
}

/// Where a capability is declared, how the declaration was read, and which values were inferred by which rule.
#[derive(Debug, Serialize)]
pub(crate) struct Provenance<'a> {
    pub(crate) manifest_id: &'a ManifestId,
    pub(crate) manifest_url: &'a ManifestUrl,
    /// The document that the pointer points into.
    pub(crate) document: &'a str,
    pub(crate) pointer: &'a str,
    pub(crate) discovery: Discovery,
    pub(crate) detection: &'a Detection,
    pub(crate) source: &'a Source,
    pub(crate) content_hash: &'a ContentHash,
    pub(crate) fetched_at: Option<&'a str>,
    pub(crate) first_seen_at: DateTime<Utc>,
    pub(crate) last_seen_at: DateTime<Utc>,
    pub(crate) changed_at: DateTime<Utc>,
    pub(crate) inferred: &'a BTreeMap<String, String>,
}

/// The capability of this id in a manifest.
pub(crate) fn capability_in<'a>(stored: &'a StoredManifest, id: &CapabilityId) -> Option<&'a Capability> {
    stored.manifest.capabilities.iter().find(|capability| capability.id == *id)
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
const fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// Maximum number of bytes of the accepted schemes in the record of a capability. A document states them once, but the record of each
/// capability repeats them.
const AUTHENTICATION_BYTES_MAX: usize = 64 * 1_024;
/// The form in a line of the export, which has one line for each capability of a document.
const EXPORTED_AUTHENTICATION_BYTES_MAX: usize = 8 * 1_024;

/// All details of a capability and its declarations that the store has.
pub(crate) fn detail<'a>(stored: &'a StoredManifest, merged: &'a MergedCapability) -> Detail<'a> {
    detail_within(stored, merged, AUTHENTICATION_BYTES_MAX)
}

/// The form for a line of the export.
pub(crate) fn exported_detail<'a>(stored: &'a StoredManifest, merged: &'a MergedCapability) -> Detail<'a> {
    detail_within(stored, merged, EXPORTED_AUTHENTICATION_BYTES_MAX)
}

fn detail_within<'a>(
    stored: &'a StoredManifest,
    merged: &'a MergedCapability,
    authentication_bytes_max: usize,
) -> Detail<'a> {
    let manifest = &stored.manifest;
    let capability = &merged.capability;
    let session_url = capability.auth.session_url.as_deref();
    let mut findings = findings_about(stored, capability);
    findings.extend(merged.declarations.first().into_iter().flat_map(|leader| merged.findings(&leader.id)));
    let mut authentication = manifest.authentication_for_agents(capability);
    let accepted = authentication.len();
    let mut room = Some(authentication_bytes_max);
    authentication.retain(|auth| {
        room = room.and_then(|room| json_bytes_left_after(auth, room));
        room.is_some()
    });
    Detail {
        parameters: capability.parameters.as_ref(),
        response: capability.response.as_ref(),
        invocation: &capability.invocation,
        scopes: &capability.auth.scopes,
        session_url: session_url.and_then(|url| manifest.address_for_agents(url)),
        authentication_left_out: accepted - authentication.len(),
        authentication,
        agent_identity: capability.auth.agent_identity.as_ref(),
        identity: manifest.identity_of(capability, stored.named_by).at(clock::now()),
        confirmation_message: capability.safety.message.as_deref(),
        usage_terms: manifest.usage_terms(),
        idempotency: &capability.idempotency,
        execution: execution(manifest, capability),
        rate_limit: capability.rate_limit.as_ref().or(manifest.rate_limit.as_ref()),
        price: capability.price.as_ref(),
        other_prices: &capability.other_prices,
        payments: payments(manifest, capability),
        depends_on: &capability.depends_on,
        examples: &capability.examples,
        provenance: provenance(stored, capability),
        findings,
    }
}

fn payments<'a>(manifest: &'a Manifest, capability: &Capability) -> &'a [Payment] {
    let is_paid = capability
        .price
        .as_ref()
        .is_some_and(|price| price.scheme.is_none() && price.cost() != Some(Cost::Free));
    if is_paid { &manifest.payments } else { &[] }
}

/// The steps of a call, without addresses that agents must not be sent to.
fn execution<'a>(manifest: &Manifest, capability: &'a Capability) -> Cow<'a, Execution> {
    let declared = &capability.execution;
    let is_usable = |url: &str| manifest.address_for_agents(url).is_some();
    if declared.poll_url.as_deref().is_none_or(is_usable) {
        return Cow::Borrowed(declared);
    }
    Cow::Owned(Execution { poll_url: None, ..declared.clone() })
}

fn provenance<'a>(stored: &'a StoredManifest, capability: &'a Capability) -> Provenance<'a> {
    let manifest = &stored.manifest;
    let served_from = manifest.final_url.as_ref().unwrap_or(&manifest.url);
    Provenance {
        manifest_id: &manifest.id,
        manifest_url: &manifest.url,
        document: capability.pointer_document.as_deref().unwrap_or_else(|| served_from.as_str()),
        pointer: &capability.pointer,
        discovery: manifest.discovery,
        detection: &manifest.detection,
        source: &manifest.source,
        content_hash: &manifest.content_hash,
        fetched_at: manifest.served.at.as_deref(),
        first_seen_at: stored.first_seen_at,
        last_seen_at: stored.last_seen_at,
        changed_at: stored.changed_at,
        inferred: &capability.inferred,
    }
}

/// Findings whose JSON pointer is at or below the capability.
fn findings_about(stored: &StoredManifest, capability: &Capability) -> Vec<Finding> {
    if capability.pointer.is_empty() || capability.pointer_document.is_some() {
        return Vec::new();
    }
    let is_below = |pointer: &str| {
        pointer
            .strip_prefix(capability.pointer.as_str())
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    stored.manifest.findings.iter().filter(|finding| is_below(&finding.pointer)).cloned().collect()
}
