//! Credentials of MCP servers: which ones, and which tools need them.

use std::collections::HashSet;

use crate::draft::DESCRIPTION_CHARS_MAX;
use crate::format::lenient;
use crate::model::{Auth, Capability, CapabilityAuth, SafetyClass, Tristate};
use crate::object::Object;
use crate::safety;
use crate::text;

/// Credentials of a server and the tools that they apply to.
pub(super) struct Access<'v> {
    pub(super) auth: Vec<Auth>,
    /// Whether credentials are needed, as stated next to the schemes.
    required: Option<bool>,
    /// Names of tools that need no credentials.
    public: Vec<&'v str>,
    /// Names of tools that need credentials.
    protected: Vec<&'v str>,
    /// Whether the credentials state which tools need them.
    has_list: bool,
    /// The requirements of reading and of writing tools, if the document distinguishes them.
    by_effect: Option<(CapabilityAuth, CapabilityAuth)>,
}

const PUBLIC_KEYS: &[&str] = &[
    "optional_for",
    "optionalFor",
    "public_tools",
    "publicTools",
    "anonymous_tools",
    "free_tools",
    "freeTools",
];
const PROTECTED_KEYS: &[&str] = &[
    "required_for",
    "requiredFor",
    "authenticated_tools",
    "authenticatedTools",
    "protected_tools",
    "protectedTools",
    "private_tools",
];

pub(super) fn read<'v>(root: &Object<'v>) -> Access<'v> {
    let keys = ["authentication", "auth", "security"];
    let (value, block) = (root.value_of(&keys), root.object_of(&keys));
    let paid = ["payment", "pricing", "payments"].iter().filter_map(|key| root.object(key));
    let blocks: Vec<Object<'v>> =
        block.into_iter().chain(std::iter::once(root.clone())).chain(paid).collect();
    let named = |keys: &[&str]| -> Vec<&'v str> {
        let blocks = blocks.iter();
        blocks.flat_map(|block| keys.iter().flat_map(|key| block.texts(key))).collect()
    };
    Access {
        auth: value.map(lenient::auth).unwrap_or_default(),
        required: value.and_then(lenient::auth_required),
        by_effect: value.and_then(lenient::by_effect),
        public: named(PUBLIC_KEYS),
        protected: named(PROTECTED_KEYS),
        has_list: root
            .object_of(&keys)
            .is_some_and(|block| block.has("required_for") || block.has("requiredFor")),
    }
}

impl Access<'_> {
    /// Applies the credentials to tools that state none.
    pub(super) fn apply(&self, capabilities: &mut [Capability]) {
        let needed = lenient::required_by(&self.auth);
        let public: HashSet<&str> = self.public.iter().copied().collect();
        let protected: HashSet<&str> = self.protected.iter().copied().collect();
        for capability in capabilities {
            self.apply_one(capability, &needed, (&public, &protected));
        }
    }

    /// Names of tools in these lists; the tools may be in no other list.
    pub(super) fn named(&self) -> impl Iterator<Item = &str> {
        self.public.iter().chain(&self.protected).copied()
    }

    fn apply_one(
        &self,
        capability: &mut Capability,
        needed: &CapabilityAuth,
        (public, protected): (&HashSet<&str>, &HashSet<&str>),
    ) {
        let name = capability.invocation.native.as_deref().unwrap_or(&capability.native_id);
        let says_open = || capability.description.as_deref().is_some_and(lenient::says_call_is_open);
        if capability.auth == CapabilityAuth::default() && !protected.contains(name) && says_open() {
            capability.auth.required = Tristate::No;
            return;
        }
        let required = if public.contains(name) {
            Tristate::No
        } else if protected.contains(name) {
            Tristate::Yes
        } else {
            // If some tools are named as protected, the others are not.
            let stated = self.required.or_else(|| (!protected.is_empty() && self.has_list).then_some(false));
            stated.map_or(needed.required, |required| Tristate::from_option(Some(required)))
        };
        if let Some((reads, writes)) = &self.by_effect
            && !public.contains(name)
            && !protected.contains(name)
            && capability.auth == CapabilityAuth::default()
        {
            capability.auth = match safety::effect(capability) {
                SafetyClass::Read => reads.clone(),
                SafetyClass::Unknown => CapabilityAuth::default(),
                _ => writes.clone(),
            };
            return;
        }
        let auth = &mut capability.auth;
        // Skip tools that state that they need no credentials.
        if auth.schemes.is_empty() && auth.required != Tristate::No {
            auth.schemes.clone_from(&needed.schemes);
            if auth.required == Tristate::Unknown {
                auth.required = required;
            }
        }
    }
}

/// Marks the pages of applications as open if a note of the card says that reading them is public: "ui:// reads are public".
pub(super) fn open_pages(root: &Object<'_>, capabilities: &mut [Capability]) {
    let metadata = root.object("metadata");
    let holders = std::iter::once(root).chain(metadata.as_ref());
    let notes =
        holders.filter_map(|holder| holder.object_of(&["mcpApps", "mcp_apps"])?.text_of(&["note", "notes"]));
    let says = |note: &str| {
        let mut clauses =
            text::capped(note, DESCRIPTION_CHARS_MAX).split(". ").flat_map(|part| part.split([';', '(']));
        clauses.any(|clause| clause.contains("ui:// reads are public") && !clause.contains("not public"))
    };
    if !notes.into_iter().any(says) {
        return;
    }
    for page in capabilities.iter_mut().filter(|page| page.native_id.starts_with("ui://")) {
        page.auth = CapabilityAuth { required: Tristate::No, ..CapabilityAuth::default() };
    }
}
