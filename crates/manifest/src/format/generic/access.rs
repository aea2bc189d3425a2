//! Credentials and limits of a whole service, at the root or in the block that describes it.

use serde_json::Value;

use crate::address;
use crate::draft::{self, Draft};
use crate::format::auth_sentences::{self, LinePosition};
use crate::format::{header, lenient, listed_calls};
use crate::model::{
    AppliesTo, Auth, AuthScheme, Capability, CapabilityAuth, Cost, Payment, Protocol, SafetyClass, Tristate,
};
use crate::object::Object;
use crate::safety;
use crate::text;

/// Blocks that describe a service and may state its credentials.
const BLOCKS: &[&str] = &["api", "service", "agent", "access", "capabilities", "safety", "security"];
/// Members of the block of a server that contain its address.
const SERVER_PARTS: &[&str] = &["remote", "hosted", "server"];

const SERVER_ADDRESSES: &[&str] = &["url", "endpoint"];

/// Credentials and rate limit of the whole service.
pub(crate) fn read_auth(root: &Object<'_>, draft: &mut Draft<'_>) {
    if let Some(stated) = Stated::of(root) {
        let found = lenient::auth(stated.value);
        let found = if found.is_empty() { auth_of_tiers(stated.value) } else { found };
        draft.keep_all(found);
    } else if let Some((holder, is_needed)) = key_flag(root) {
        let mut auth = Auth::new(if is_needed { AuthScheme::ApiKey } else { AuthScheme::None });
        auth.registration_url = is_needed.then(|| lenient::address_of(&holder, SIGNUP_KEYS)).flatten();
        draft.keep(auth);
    } else if let Some(described) = header::description_of(root) {
        let found = auth_sentences::stated_in(&described, LinePosition::Other);
        let is_credential = |auth: &Auth| !matches!(auth.scheme, AuthScheme::None | AuthScheme::Payment);
        draft.keep_all(found.into_iter().filter(is_credential));
    }
    if let Some(limit) = root.value_of(header::LIMIT_KEYS) {
        draft.manifest.rate_limit = lenient::rate_limit(limit);
    }
}

/// Maximum number of tiers of one block of credentials, and of members of one tier, that are read.
const TIERS_MAX: usize = 20;

/// The credentials that the sentences of tiers name, `"paid_tier": {"summary": "Depth via API key."}`. Without further statements, they
/// apply to no call.
fn auth_of_tiers(value: &Value) -> Vec<Auth> {
    let mut found: Vec<Auth> = Vec::new();
    let tiers =
        value.as_object().into_iter().flatten().filter_map(|(_, tier)| tier.as_object()).take(TIERS_MAX);
    for tier in tiers.map(Object::root) {
        let sentence = tier.text_of(&["summary", "description", "note", "notes"]);
        let issued = tier.map.iter().take(TIERS_MAX).find_map(|(name, address)| {
            let issues = text::words(name)
                .iter()
                .any(|word| matches!(word.as_str(), "issuance" | "signup" | "register"));
            address.as_str().filter(|address| issues && address.starts_with("https://"))
        });
        for auth in lenient::auth_in_words(sentence) {
            let is_known = found.iter().any(|known| known.scheme == auth.scheme);
            let tells = !matches!(auth.scheme, AuthScheme::None | AuthScheme::Other);
            if tells && !is_known {
                let registration_url =
                    issued.filter(|_| auth.scheme == AuthScheme::ApiKey).map(str::to_owned);
                found.push(Auth {
                    registration_url,
                    applies_to: AppliesTo::OptionalIds { ids: Vec::new() },
                    ..auth
                });
            }
        }
    }
    found
}

/// Flags that say whether calls need a key.
const KEY_FLAGS: &[&str] = &[
    "requires_key",
    "requiresKey",
    "requires_api_key",
    "requiresApiKey",
    "api_key_required",
    "apiKeyRequired",
    "key_required",
    "keyRequired",
];
const SIGNUP_KEYS: &[&str] =
    &["signup", "signup_url", "signupUrl", "register", "register_url", "registration_url"];

/// The flag for a key at the root, in a block that describes the service or in its free plan, and the object next to it that says where
/// keys are issued.
fn key_flag<'v>(root: &Object<'v>) -> Option<(Object<'v>, bool)> {
    let blocks = BLOCKS.iter().filter_map(|key| root.object(key));
    std::iter::once(root.clone()).chain(blocks).find_map(|holder| {
        let plan = holder.object_of(&["free_tier", "freeTier"]);
        let stated = std::iter::once(&holder).chain(plan.as_ref());
        let flag = stated.flat_map(|object| KEY_FLAGS.iter().filter_map(|key| object.flag(key))).next()?;
        Some((holder.clone(), flag))
    })
}

/// The credentials that a document states for its capabilities.
struct Stated<'v> {
    value: &'v Value,
    /// Whether they apply to the MCP server, not to the calls next to it.
    is_of_server: bool,
    /// The addresses of that server.
    servers: Vec<&'v str>,
}

impl<'v> Stated<'v> {
    fn of(root: &Object<'v>) -> Option<Self> {
        let of_service = |value| Self { value, is_of_server: false, servers: Vec::new() };
        let is_named =
            |value: &Value| lenient::is_scheme(value) || value.as_str().is_some_and(lenient::names_scheme);
        let is_stated = |value: &&Value| value.is_object() || value.is_array() || is_named(value);
        let of = |block: Object<'v>| block.value_of(lenient::AUTH_KEYS).filter(is_stated);
        if let Some(value) = root.value_of(lenient::AUTH_KEYS) {
            return Some(of_service(value));
        }
        if let Some(value) = BLOCKS.iter().filter_map(|key| root.object(key)).find_map(of) {
            return Some(of_service(value));
        }
        let server = root.object("mcp");
        let part = server.as_ref().and_then(|server| server.object_of(SERVER_PARTS));
        let blocks = || server.clone().into_iter().chain(part.clone());
        if let Some(value) = blocks().find_map(of) {
            let servers = blocks().filter_map(|block| block.text_of(SERVER_ADDRESSES)).collect();
            return Some(Self { value, is_of_server: true, servers });
        }
        let scheme = root.value("security").filter(|security| lenient::is_scheme(security));
        scheme.or_else(|| root.object("safety")?.value_of(lenient::AUTH_KEYS)).map(of_service)
    }

    fn applies_to(&self, capability: &Capability) -> bool {
        !self.is_of_server
            || capability.invocation.protocol == Some(Protocol::Mcp)
            || capability.pointer.starts_with("/mcp/")
            || self.servers.iter().any(|address| listed_calls::is_at(capability, address))
    }
}

/// Applies a description that says that no credentials are needed, if the document says nothing else about them.
pub(crate) fn read_openness(root: &Object<'_>, draft: &mut Draft<'_>) {
    let manifest = &mut draft.manifest;
    let is_stated = |auth: &CapabilityAuth| {
        auth.required == Tristate::No || auth.schemes.iter().any(|scheme| *scheme != AuthScheme::Payment)
    };
    let has_own = manifest.capabilities.iter().any(|capability| is_stated(&capability.auth));
    // A payment is not a credential, but a call that must be paid is not open.
    let is_paid =
        |capability: &Capability| capability.price.as_ref().and_then(Payment::cost) == Some(Cost::Paid);
    for capability in &mut manifest.capabilities {
        let is_unknown = capability.auth.required == Tristate::Unknown && capability.auth.schemes.is_empty();
        let is_open = || capability.description.as_deref().is_some_and(lenient::says_call_is_open);
        if is_unknown && !is_paid(capability) && is_open() {
            capability.auth.required = Tristate::No;
        }
    }
    let remarks = ["instructions", "note", "notes"];
    let says = || {
        let described = manifest.description.as_deref().is_some_and(lenient::says_open);
        described || remarks.iter().filter_map(|key| root.text(key)).any(lenient::says_open)
    };
    if !manifest.auth.is_empty() || has_own || !says() {
        return;
    }
    // If calls are paid and none has a price, it is unknown which calls are open.
    let names_payment = || {
        let described = manifest.description.as_deref().unwrap_or_default().to_ascii_lowercase();
        lenient::names_payment(&described)
    };
    if manifest.capabilities.iter().all(|capability| capability.price.is_none()) && names_payment() {
        return;
    }
    let costs = |price: &Payment| !matches!(price.price.as_deref(), Some("free" | "Free" | "FREE" | "0"));
    let is_free = |capability: &&mut Capability| {
        capability.auth.schemes.is_empty() && !capability.price.as_ref().is_some_and(costs)
    };
    for capability in manifest.capabilities.iter_mut().filter(is_free) {
        if capability.auth.required == Tristate::Unknown {
            capability.auth.required = Tristate::No;
        }
    }
    let calls = &manifest.capabilities;
    let is_paid = |capability: &Capability| {
        capability.auth.schemes.contains(&AuthScheme::Payment) || capability.price.as_ref().is_some_and(costs)
    };
    let open = || calls.iter().filter(|call| !is_paid(call)).map(|call| call.native_id.clone()).collect();
    let open: Vec<String> = if calls.iter().any(is_paid) { open() } else { Vec::new() };
    let applies_to = match open {
        ids if !ids.is_empty() => AppliesTo::Ids { ids },
        // Every call must be paid.
        _ if calls.iter().any(is_paid) => return,
        _ => AppliesTo::All,
    };
    draft.keep(Auth { applies_to, ..Auth::new(AuthScheme::None) });
}

/// Applies the credentials of the service to capabilities that state none.
pub(super) fn apply_auth(root: &Object<'_>, draft: &mut Draft<'_>) {
    let stated = Stated::of(root);
    let value = stated.as_ref().map(|stated| stated.value);
    let keys = ["auth_required", "authRequired", "requires_auth", "requiresAuth", "authentication_required"];
    let flag = keys.iter().find_map(|key| root.flag(key));
    // Without further statements, the credentials of tiers apply to no call.
    let is_of_tier = |auth: &&Auth| matches!(auth.applies_to, AppliesTo::OptionalIds { .. });
    let of_calls: Vec<Auth> = draft.manifest.auth.iter().filter(|auth| !is_of_tier(auth)).cloned().collect();
    let needed = lenient::required_by(&of_calls);
    let is_partly_open = value.is_some_and(lenient::is_partly_open);
    let stated_required = value.and_then(lenient::auth_required).or(flag);
    let required = match stated_required {
        Some(required) => Tristate::from_option(Some(required)),
        None if is_partly_open => Tristate::Unknown,
        None => needed.required,
    };
    let by_effect = value.and_then(lenient::by_effect);
    // Credentials that are optional for every call.
    let offered: Vec<AuthScheme> = needed
        .schemes
        .iter()
        .copied()
        .filter(|scheme| !matches!(scheme, AuthScheme::None | AuthScheme::Other))
        .collect();
    // A statement about calls that read does not apply to other calls.
    let required = if by_effect.is_some() { Tristate::Unknown } else { required };
    let credentials = std::mem::take(&mut draft.manifest.auth);
    let applies =
        |capability: &Capability| stated.as_ref().is_none_or(|stated| stated.applies_to(capability));
    for capability in draft.manifest.capabilities.iter_mut().filter(|capability| applies(capability)) {
        let is_open = capability.description.as_deref().is_some_and(lenient::says_call_is_open)
            || obtains_credentials(capability, &credentials);
        let of_effect = by_effect.as_ref().and_then(|(reads, writes)| match safety::effect(capability) {
            SafetyClass::Read => Some(reads),
            SafetyClass::Unknown => None,
            _ => Some(writes),
        });
        let auth = &mut capability.auth;
        if auth.required == Tristate::Unknown && auth.schemes.is_empty() {
            auth.required = if is_open { Tristate::No } else { required };
            if stated_required == Some(false) && by_effect.is_none() && !is_open {
                auth.schemes.clone_from(&offered);
            }
            if let Some(needed) = of_effect.filter(|_| !is_open) {
                auth.required = needed.required;
                auth.schemes = needed.schemes.iter().copied().filter(|s| *s != AuthScheme::None).collect();
            }
        }
        if auth.required == Tristate::Yes && auth.schemes.is_empty() {
            auth.schemes =
                needed.schemes.iter().copied().filter(|scheme| *scheme != AuthScheme::None).collect();
        }
    }
    draft.manifest.auth = credentials;
    let needs = |call: &Capability| call.auth.required == Tristate::Yes;
    if flag == Some(false) && draft.manifest.auth.is_empty() && !draft.manifest.capabilities.iter().any(needs)
    {
        draft.keep(Auth::new(AuthScheme::None));
    }
    let is_exempt = value.is_some_and(|value| open_calls(value, &mut draft.manifest.capabilities));
    // Such a document states which calls need a scheme, even if it does not mention every call.
    if is_exempt || by_effect.is_some() || stated.is_some_and(|stated| stated.is_of_server) {
        draft::restrict_to_needing(&mut draft.manifest);
    }
    if stated_required == Some(false) || (stated_required.is_none() && is_partly_open) {
        make_optional(draft);
    }
}

/// Marks credentials as optional that are not required for all calls: because they are optional, or because only some calls, which the
/// document does not name, need them.
fn make_optional(draft: &mut Draft<'_>) {
    let is_credential =
        |auth: &&mut Auth| auth.scheme != AuthScheme::None && auth.applies_to == AppliesTo::All;
    for auth in draft.manifest.auth.iter_mut().filter(is_credential) {
        auth.applies_to = AppliesTo::OptionalIds { ids: Vec::new() };
    }
}

/// Maximum number of calls that one block of credentials may list as open.
const OPEN_CALLS_MAX: usize = 100;

/// Marks the calls as open that the block of credentials lists as such: `"public_endpoints": ["/a"]`, `"methods":
/// ["none_for_quick_purchase"]`. Returns whether it names one.
fn open_calls(value: &Value, capabilities: &mut [Capability]) -> bool {
    let lists = value.as_object().into_iter().flatten().filter_map(|(key, list)| {
        let says_open = text::words(key).iter().any(|word| OPEN_WORDS.contains(&word.as_str()));
        Some((says_open, list.as_array()?))
    });
    let named = lists.flat_map(|(says_open, list)| {
        list.iter()
            .filter_map(Value::as_str)
            .filter_map(move |name| if says_open { Some(name) } else { lenient::exempt_call(name) })
    });
    let mut is_exempt = false;
    for name in named.take(OPEN_CALLS_MAX) {
        let (method, path) = address::split_method(name);
        let is_named = |capability: &&mut Capability| {
            let has_method = method.is_none() || capability.invocation.method.as_deref() == method;
            capability.native_id == name || (has_method && listed_calls::is_at(capability, path))
        };
        for capability in capabilities.iter_mut().filter(is_named) {
            capability.auth = CapabilityAuth { required: Tristate::No, ..CapabilityAuth::default() };
            is_exempt = true;
        }
    }
    is_exempt
}

/// Words in the names of lists of open calls.
const OPEN_WORDS: &[&str] = &["public", "open", "anonymous", "unauthenticated", "exempt"];

/// Verbs and nouns in the names of calls that obtain credentials.
const REGISTERING: &[&str] = &["register", "signup", "login", "authenticate"];
const REGISTERED: &[&str] = &["agent", "account", "user", "client", "app"];
/// Names of calls in the block of credentials that need existing credentials, for example to replace them.
const RENEWING: &[&str] = &["refresh", "renew", "rotate", "revoke", "logout"];

/// Whether credentials are obtained by this call, so that it cannot need them: by the address in a scheme, by its place in the block of the
/// credentials, or by its name.
fn obtains_credentials(capability: &Capability, credentials: &[Auth]) -> bool {
    let posts = || capability.invocation.method.as_deref().is_none_or(|method| method == "POST");
    let words = || text::words(&capability.native_id);
    let block = capability.pointer.split('/').nth(1).unwrap_or_default();
    if lenient::AUTH_KEYS.contains(&block) {
        return posts() && !words().iter().any(|word| RENEWING.contains(&word.as_str()));
    }
    let registrations = || credentials.iter().filter_map(|auth| auth.registration_url.as_deref());
    if registrations().any(|address| listed_calls::is_at(capability, address)) {
        return posts();
    }
    if registrations().next().is_none() {
        return false;
    }
    match words().as_slice() {
        [verb] => REGISTERING.contains(&verb.as_str()),
        [verb, what] => REGISTERING.contains(&verb.as_str()) && REGISTERED.contains(&what.as_str()),
        _ => false,
    }
}

/// Marks calls that issue credentials as open, if the document does not state otherwise.
pub(crate) fn open_registration(draft: &mut Draft<'_>) {
    let manifest = &mut draft.manifest;
    if !manifest.auth.iter().any(|auth| auth.registration_url.is_some()) {
        return;
    }
    for capability in &mut manifest.capabilities {
        if capability.auth == CapabilityAuth::default() && obtains_credentials(capability, &manifest.auth) {
            capability.auth.required = Tristate::No;
        }
    }
}
