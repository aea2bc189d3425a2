//! The publisher of a manifest: the identity that the document declares, the origin that served it, and what a signature proves.

use std::borrow::Cow;

use chrono::{DateTime, Utc};
use serde::Serialize;

use crate::entry::is_identifier;
use crate::identity::site_named_by;
use crate::model::{
    AgentIdentity, Capability, Format, Integrity, Manifest, NamedBy, SignatureCheck, SignatureStatus,
};
use crate::name::SiteName;
use crate::signature::{CLOCK_SKEW, EXPIRED};
use crate::text::capped;

/// Maximum number of characters of a declared identity: the longest DIDs have a few hundred.
const VALUE_CHARS_MAX: usize = 500;

crate::string_enum! {
    /// Whether the declared publisher is the site that serves the document.
    Binding, "binding" {
        /// The site links to the document, and nothing in the document names another publisher.
        Bound = "bound",
        /// The document names a publisher on another site.
        Foreign = "foreign",
        /// Only others link to the document, so its declarations are not attributed to the site.
        NamedByOthers = "named_by_others",
    }
}

crate::string_enum! {
    /// A property of an identity that is a search filter: one for the binding, one for the signature.
    IdentityMark, "identity" {
        /// Bound, and signed by a key of the publisher.
        Verified = "verified",
        Bound = "bound",
        Foreign = "foreign",
        NamedByOthers = "named_by_others",
        Unsigned = "unsigned",
        Unresolvable = "unresolvable",
        Invalid = "invalid",
    }
}

impl IdentityMark {
    /// Whether most manifests have it: bound, and not signed.
    pub const fn is_usual(self) -> bool {
        matches!(self, Self::Bound | Self::Unsigned)
    }
}

/// The identity of a manifest, or of one entry of a catalog.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Identity<'m> {
    /// Statements of the document about its publisher.
    pub declared: Vec<DeclaredIdentity<'m>>,
    pub served: ServedBy<'m>,
    pub binding: Binding,
    /// Whether it is bound and its signature is verified. This proves who published it, not that it is trustworthy.
    pub verified: bool,
    pub signature: Cow<'m, SignatureCheck>,
    /// The identity that the publisher requires of callers (ATP section 3.3.3).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub demanded_of_agents: Option<&'m AgentIdentity>,
}

/// One statement about the publisher.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DeclaredIdentity<'m> {
    /// The member of the document: `domain`, `site.url`, `trustManifest.identity`.
    pub member: &'static str,
    pub value: &'m str,
    /// The site in the value; `None` for a did:key or a plain name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub site: Option<SiteName>,
}

/// The origin of the document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ServedBy<'m> {
    pub origin: &'m str,
    pub site: SiteName,
}

impl Manifest {
    /// The identity of the manifest's publisher. `named_by` states who links to the document, because the document cannot state that
    /// itself.
    pub fn identity(&self, named_by: NamedBy) -> Identity<'_> {
        self.identity_with(self.own_declarations(), Some(&self.integrity), named_by)
    }

    /// The identity of the capability's publisher: from its own catalog entry, or else from the manifest.
    pub fn identity_of<'m>(&'m self, capability: &'m Capability, named_by: NamedBy) -> Identity<'m> {
        if self.format() != Format::Ard {
            return self.identity(named_by);
        }
        let identifier = Some(capability.native_id.as_str()).filter(|id| is_identifier(id));
        let trust = capability.published.get("trustManifest").and_then(|trust| trust.get("identity"));
        let declared =
            [("identifier", identifier), ("trustManifest.identity", trust.and_then(|id| id.as_str()))];
        self.identity_with(declared_by(&declared), capability.integrity.as_ref(), named_by)
    }

    /// The earliest expiry of the keys that verified its signatures.
    pub fn keys_expire_at(&self) -> Option<DateTime<Utc>> {
        let entries = self.capabilities.iter().filter_map(|capability| capability.integrity.as_ref());
        let checks = entries.chain([&self.integrity]).filter_map(|integrity| integrity.check.as_ref());
        checks.filter_map(expires_at).min()
    }

    fn identity_with<'m>(
        &'m self,
        declared: Vec<DeclaredIdentity<'m>>,
        integrity: Option<&'m Integrity>,
        named_by: NamedBy,
    ) -> Identity<'m> {
        let host = self.final_url.as_ref().unwrap_or(&self.url).host();
        let site = host.site();
        let names_other = |one: &DeclaredIdentity<'_>| one.site.as_ref().is_some_and(|named| *named != site);
        let is_foreign = !host.is_nowhere() && declared.iter().any(names_other);
        let binding = match named_by {
            NamedBy::Others => Binding::NamedByOthers,
            NamedBy::Site if is_foreign => Binding::Foreign,
            NamedBy::Site => Binding::Bound,
        };
        let signature = match integrity.map(|integrity| (integrity.check.as_ref(), integrity.signed)) {
            Some((Some(check), _)) => Cow::Borrowed(check),
            Some((None, true)) => Cow::Owned(SignatureCheck {
                status: SignatureStatus::Unresolvable,
                reason: Some("it was read by a version that did not check signatures".to_owned()),
                ..SignatureCheck::UNSIGNED
            }),
            _ => Cow::Owned(SignatureCheck::UNSIGNED),
        };
        let verified = signature.status == SignatureStatus::Verified && binding == Binding::Bound;
        let demanded_of_agents = self
            .auth
            .iter()
            .find_map(|auth| auth.agent_identity.as_ref())
            .filter(|_| self.format() == Format::Atp);
        Identity {
            declared,
            served: ServedBy { origin: &self.origin, site },
            binding,
            verified,
            signature,
            demanded_of_agents,
        }
    }

    /// The members of each dialect that name the publisher. Addresses of services do not: many are on other domains.
    fn own_declarations(&self) -> Vec<DeclaredIdentity<'_>> {
        let origin = self.declared_origin.as_deref();
        match self.format() {
            Format::Awp => declared_by(&[("domain", origin)]),
            Format::Atp => declared_by(&[("provider.url", origin)]),
            Format::AgentsJson => declared_by(&[("site.url", origin)]),
            Format::A2a => declared_by(&[("provider.url", self.provider.url.as_deref())]),
            Format::Ard => declared_by(&[("host.identifier", self.provider.identity.as_deref())]),
            _ => Vec::new(),
        }
    }
}

fn declared_by<'m>(members: &[(&'static str, Option<&'m str>)]) -> Vec<DeclaredIdentity<'m>> {
    let stated = members.iter().filter_map(|(member, value)| Some((*member, (*value)?)));
    stated
        .map(|(member, value)| DeclaredIdentity {
            member,
            value: capped(value, VALUE_CHARS_MAX),
            site: site_named_by(value),
        })
        .collect()
}

/// When the key of a check expires, by the publisher's clock.
fn expires_at(check: &SignatureCheck) -> Option<DateTime<Utc>> {
    let end = DateTime::parse_from_rfc3339(check.valid_until.as_deref()?).ok()?;
    end.to_utc().checked_add_signed(CLOCK_SKEW)
}

impl Identity<'_> {
    /// The identity at a time: the key that verified its signature may have expired since the document was read.
    #[must_use]
    pub fn at(mut self, now: DateTime<Utc>) -> Self {
        let is_verified = self.signature.status == SignatureStatus::Verified;
        if is_verified && expires_at(&self.signature).is_some_and(|end| end < now) {
            let signature = self.signature.to_mut();
            signature.status = SignatureStatus::Invalid;
            signature.reason = Some(EXPIRED.to_owned());
            self.verified = false;
        }
        self
    }

    /// The properties that are search filters.
    pub fn marks(&self) -> Vec<IdentityMark> {
        let binding = match self.binding {
            Binding::Bound => IdentityMark::Bound,
            Binding::Foreign => IdentityMark::Foreign,
            Binding::NamedByOthers => IdentityMark::NamedByOthers,
        };
        let signature = match self.signature.status {
            SignatureStatus::Verified => self.verified.then_some(IdentityMark::Verified),
            SignatureStatus::Invalid => Some(IdentityMark::Invalid),
            SignatureStatus::Unsigned => Some(IdentityMark::Unsigned),
            SignatureStatus::Unresolvable => Some(IdentityMark::Unresolvable),
        };
        signature.into_iter().chain([binding]).collect()
    }
}
