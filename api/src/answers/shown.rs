//! The capabilities of a site as search results show them: each once, merged with its other declarations.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;

use manifest::model::AuthScheme;
use manifest::{Capability, CapabilityId, Format, SafetyClass, SiteName};
use store::{SharedCapability, StoredManifest};

use super::caution::{Elsewhere, Money};
use super::declarations::SharedDeclarations;
use crate::text;

/// Maximum length of a capability's summary, in characters.
const SUMMARY_CHARS_MAX: usize = 140;
/// Minimum length of a description that is more informative than a name.
pub(crate) const DESCRIPTION_CHARS_MIN: usize = 20;

/// A capability, merged with its other declarations.
#[derive(Debug)]
pub(crate) struct ShownCapability {
    pub(crate) id: CapabilityId,
    /// The beginning of the description.
    pub(crate) summary: String,
    /// The first type.
    pub(crate) semantic_type: Option<String>,
    pub(crate) safety: SafetyClass,
    pub(crate) elsewhere: Option<Elsewhere>,
    pub(crate) money: Option<Money>,
    pub(crate) auth: Vec<AuthScheme>,
    pub(crate) auth_required: Option<bool>,
    /// Number of documents that declare it.
    pub(crate) documents: usize,
}

impl ShownCapability {
    fn of(capability: &Capability, documents: usize, format: Format, site: &SiteName) -> Self {
        let (types, class) = (&capability.semantic_types, capability.safety.class);
        let address = capability.invocation.endpoint();
        Self {
            id: capability.id.clone(),
            summary: text::one_line(capability.description.as_deref().unwrap_or_default(), SUMMARY_CHARS_MAX),
            semantic_type: types.first().map(|semantic| semantic.name.clone()),
            safety: class,
            elsewhere: Elsewhere::of(format, &capability.native_id, address, site),
            money: Money::of(&capability.name, types, class),
            auth: capability.auth.schemes.clone(),
            auth_required: capability.auth.required.as_option(),
            documents,
        }
    }
}

/// Numbers of capabilities that the search shows for a manifest: those that only this manifest declares, and those whose leading
/// declaration it contains.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct CapabilityCounts {
    pub(crate) all: usize,
    pub(crate) described: usize,
    /// Capabilities that are not entries for other sites, and how many of these state their parameters and can be called.
    pub(crate) own: usize,
    pub(crate) with_schema: usize,
    pub(crate) callable: usize,
}

impl CapabilityCounts {
    fn add(&mut self, shown: &ShownCapability, capability: &Capability) {
        let is_own = !matches!(shown.elsewhere, Some(Elsewhere::Lists(_)));
        let is_described = |text: &String| text.chars().count() >= DESCRIPTION_CHARS_MIN;
        self.all += 1;
        self.described += usize::from(capability.description.as_ref().is_some_and(is_described));
        self.own += usize::from(is_own);
        self.with_schema += usize::from(is_own && capability.parameters.is_some());
        self.callable += usize::from(is_own && capability.is_invocable());
    }
}

/// Further declarations of the capabilities of a site, in addition to the leading ones.
pub(super) struct Others {
    /// Ids of declarations that are not the leading ones.
    following: HashSet<CapabilityId>,
    compared: Arc<SharedDeclarations>,
}

impl Others {
    pub(super) const fn new(following: HashSet<CapabilityId>, compared: Arc<SharedDeclarations>) -> Self {
        Self { following, compared }
    }

    /// Ids of the declarations that are not the leading ones of their capabilities.
    pub(super) fn following(shared: &[SharedCapability]) -> HashSet<CapabilityId> {
        let following = shared.iter().flat_map(|shared| shared.members.iter().skip(1));
        following.map(|member| member.id.clone()).collect()
    }

    /// The capability with what its other declarations state, and the number of documents that declare it; `None` for a further
    /// declaration.
    fn shown<'a>(
        &self,
        stored: &StoredManifest,
        capability: &'a Capability,
    ) -> Option<(Cow<'a, Capability>, usize)> {
        if self.following.contains(&capability.id) {
            return None;
        }
        self.compared.shown(stored, capability)
    }
}

/// The capabilities of a manifest as the search shows them, in their order, with their numbers added to `counts`.
pub(super) fn shown_capabilities(
    stored: &StoredManifest,
    others: &Others,
    counts: &mut CapabilityCounts,
) -> Vec<Option<ShownCapability>> {
    let manifest = &stored.manifest;
    let (format, site) = (manifest.format(), manifest.url.site());
    let shown = manifest.capabilities.iter().map(|declared| {
        let (capability, documents) = others.shown(stored, declared)?;
        let shown = ShownCapability::of(&capability, documents, format, &site);
        counts.add(&shown, &capability);
        Some(shown)
    });
    shown.collect()
}
