//! ATP capabilities (§3.5): calls, side effects and confirmation.

use std::collections::HashSet;

use super::{parameter, rules};
use crate::draft::{self, Draft};
use crate::format::endpoint;
use crate::json::push_index;
use crate::model::{self, AuthScheme, Capability, CapabilityKind, Confirmation, SafetyClass, Tristate};
use crate::object::Object;
use crate::reference::Resolver;
use crate::walk::List;
use crate::{address, safety, semantic, text};

pub(super) fn read(root: &Object<'_>, draft: &mut Draft<'_>) {
    let mut resolver = Resolver::new(root.map, draft.document.bytes.len());
    let scopes: HashSet<String> =
        draft.manifest.auth.iter().flat_map(|auth| auth.scopes.keys().cloned()).collect();
    let list = List::UNCHECKED.mistyped(&rules::CAPABILITY_MISTYPED).unique("id", &rules::ID_DUPLICATE);
    draft.each(root, "capabilities", &list, |published, draft| {
        read_capability(root, published, &scopes, &mut resolver, draft);
    });
}

fn read_capability<'v>(
    root: &Object<'v>,
    published: &Object<'v>,
    scopes: &HashSet<String>,
    resolver: &mut Resolver<'v>,
    draft: &mut Draft<'_>,
) {
    draft.check(published, &rules::CAPABILITY);
    draft.check(published, &rules::SCHEMA_CAPABILITY);
    let mut capability = draft.begin(CapabilityKind::Operation, published, &["id"], &["name"]);
    if let Some(name) = published.text("semanticType").filter(|name| name.contains(':')) {
        capability.semantic_types.push(semantic::declared(name));
        check_spelling(name, published, draft);
    }
    endpoint::read_call(published, &mut capability, draft);
    if capability.invocation.endpoint().is_some_and(|address| address.starts_with("http:")) {
        draft.report_rule(&rules::ENDPOINT_INSECURE, published.at("endpoint"));
    }
    parameter::read(published, &mut capability, draft);
    check_variables(published, &capability, draft);
    response(root, published, &mut capability, resolver, draft);
    authorization(published, scopes, &mut capability, draft);
    effects(published, &mut capability, draft);
    confirmation(published, &mut capability, draft);
    capability.deprecated = published.flag("deprecated").unwrap_or_default();
    capability.deprecation_message = draft::description(published.text("deprecationMessage"));
    if capability.deprecation_message.is_some() && !capability.deprecated {
        let is_stated = published.has("deprecated");
        let pointer = if is_stated { published.at("deprecated") } else { published.pointer.clone() };
        draft.report_rule(&rules::DEPRECATION_UNSTATED, pointer);
    }
    draft.push(capability);
}

/// The types that §3.5.2 lists.
pub(super) const STANDARD_TYPES: &[&str] = &[
    "commerce:product-search",
    "commerce:cart-add",
    "commerce:cart-remove",
    "commerce:order-create",
    "commerce:order-status",
    "content:article-search",
    "content:article-read",
    "content:media-stream",
    "content:comment-create",
    "account:profile-read",
    "account:profile-update",
    "account:settings-read",
    "account:settings-update",
    "communication:message-send",
    "communication:message-read",
    "communication:notification-subscribe",
    "scheduling:availability-check",
    "scheduling:appointment-create",
    "scheduling:appointment-cancel",
    "data:query",
    "data:export",
    "data:report-generate",
    "auth:login",
    "auth:logout",
    "auth:token-refresh",
    "auth:password-reset",
];

fn check_spelling(name: &str, published: &Object<'_>, draft: &mut Draft<'_>) {
    if STANDARD_TYPES.contains(&name) {
        return;
    }
    if let Some(standard) = STANDARD_TYPES.iter().find(|standard| text::is_one_edit_apart(name, standard)) {
        let text = format!("\"{}\" is one letter away from {standard}", text::capped(name, 60));
        draft.report(&rules::TYPE_MISSPELT, published.at("semanticType"), text);
    }
}

/// Reports variables of an endpoint without a parameter of the same name.
fn check_variables(published: &Object<'_>, capability: &Capability, draft: &mut Draft<'_>) {
    let Some(template) = capability.invocation.url_template.as_deref() else { return };
    let named: HashSet<&str> =
        published.objects("parameters").filter_map(|parameter| parameter.text("name")).collect();
    for variable in address::variables(template).filter(|variable| !named.contains(variable)) {
        let text = format!("no parameter is named \"{}\"", text::capped(variable, 60));
        draft.report(&rules::ENDPOINT_VARIABLE, published.at("endpoint"), text);
    }
}

/// Reports each reference once, at the location where it is published.
fn response<'v>(
    root: &Object<'v>,
    published: &Object<'v>,
    capability: &mut Capability,
    resolver: &mut Resolver<'v>,
    draft: &mut Draft<'_>,
) {
    let Some(schema) = published.value("response").filter(|response| response.is_object()) else { return };
    let pointer = published.at("response");
    super::check_schema(root.map, schema, pointer.clone(), (&rules::RESPONSE, &rules::REFERENCE), draft);
    capability.response = Some(resolver.schema(schema, &pointer));
    resolver.take_problems();
}

fn authorization(
    published: &Object<'_>,
    scopes: &HashSet<String>,
    capability: &mut Capability,
    draft: &mut Draft<'_>,
) {
    let identity = draft.manifest.auth.iter().find_map(|auth| auth.agent_identity.as_ref());
    capability.auth.agent_identity = identity.filter(|identity| identity.required).cloned();
    let required = published.texts("requiredScopes");
    if required.is_empty() {
        return;
    }
    let declared = draft.manifest.auth.iter().map(|auth| auth.scheme);
    let mut schemes: Vec<AuthScheme> = Vec::new();
    for scheme in declared.take(model::SCHEMES_PER_CAPABILITY_MAX) {
        if !schemes.contains(&scheme) {
            schemes.push(scheme);
        }
    }
    // An agent's identity grants no scope.
    if schemes.iter().all(|scheme| *scheme == AuthScheme::AgentIdentity) {
        draft.report_rule(&rules::AUTH_UNDECLARED, published.at("requiredScopes"));
    } else if !scopes.is_empty() {
        for (index, value) in published.list("requiredScopes").unwrap_or_default().iter().enumerate() {
            if let Some(scope) = value.as_str().filter(|scope| !scopes.contains(scope.trim())) {
                let mut pointer = published.at("requiredScopes");
                push_index(&mut pointer, index);
                let text = format!("no scheme declares the scope \"{scope}\"");
                draft.report(&rules::SCOPE_UNKNOWN, pointer, text);
            }
        }
    }
    capability.auth.required = Tristate::Yes;
    capability.auth.schemes = schemes;
    capability.auth.scopes = draft::tags(required);
}

/// Sets the safety class. `sideEffects` cannot lower the class of PUT, PATCH and DELETE, or of a POST whose name implies a change.
fn effects(published: &Object<'_>, capability: &mut Capability, draft: &mut Draft<'_>) {
    let stated = published.flag("sideEffects");
    let method = capability.invocation.method.as_deref();
    let changes = match method {
        Some("PUT" | "PATCH" | "DELETE") => true,
        Some("POST") => changes_by_name(published),
        _ => false,
    };
    match (method, stated) {
        (_, Some(false)) if changes => {
            draft.report_rule(&rules::SIDE_EFFECTS_CONTRADICTED, published.at("sideEffects"));
        }
        (Some("PUT" | "PATCH" | "DELETE"), None) => {
            draft.report_rule(&rules::SIDE_EFFECTS, published.pointer.clone());
        }
        (Some("POST"), None) => {
            draft.report_rule(&rules::SIDE_EFFECTS_UNSTATED, published.pointer.clone());
        }
        _ => {}
    }
    match (method, stated) {
        (Some("DELETE"), _) | (_, None) => {}
        (_, Some(true)) => capability.safety = safety::declared(SafetyClass::Write),
        (_, Some(false)) if changes => {}
        (_, Some(false)) => capability.safety = safety::declared(SafetyClass::Read),
    }
}

/// Words in an id or a semantic type that imply a change.
const CHANGES: &[&str] = &[
    "add",
    "book",
    "buy",
    "cancel",
    "charge",
    "checkout",
    "create",
    "delete",
    "edit",
    "pay",
    "place",
    "publish",
    "purchase",
    "refund",
    "remove",
    "reserve",
    "reset",
    "send",
    "submit",
    "subscribe",
    "transfer",
    "update",
    "upload",
];

fn changes_by_name(published: &Object<'_>) -> bool {
    ["id", "semanticType"].into_iter().any(|key| {
        let words = text::words(published.text(key).unwrap_or_default());
        let has = |listed: &[&str]| words.iter().any(|word| listed.contains(&word.as_str()));
        has(CHANGES) && !has(safety::READS)
    })
}

/// Words in an id that imply an irreversible or costly effect.
const COSTLY: &[&str] = &[
    "delete", "pay", "payment", "purchase", "buy", "checkout", "order", "transfer", "cancel", "refund",
    "charge", "book",
];

fn confirmation(published: &Object<'_>, capability: &mut Capability, draft: &mut Draft<'_>) {
    let confirmation = published.object("confirmation");
    if let Some(confirmation) = &confirmation {
        draft.check(confirmation, &rules::CONFIRMATION);
        capability.safety.message = draft::description(confirmation.text("message"));
    }
    let required = confirmation.as_ref().and_then(|confirmation| confirmation.flag("required"));
    if required == Some(true) {
        capability.safety.confirmation = Confirmation::Required;
        if capability.safety.message.is_none() {
            let message = confirmation.as_ref().filter(|confirmation| confirmation.has("message"));
            let pointer = message
                .map_or_else(|| published.at("confirmation"), |confirmation| confirmation.at("message"));
            draft.report_rule(&rules::MESSAGE_MISSING, pointer);
        }
        return;
    }
    let id = published.text("id").unwrap_or_default();
    let deletes = capability.invocation.method.as_deref() == Some("DELETE");
    // A publisher who states that a deletion needs no confirmation has decided it.
    let is_decided = required == Some(false);
    let is_costly = (!is_decided && (deletes || safety::dangerous_word(id).is_some()))
        || text::words(id).iter().any(|word| COSTLY.contains(&word.as_str()));
    let changes = deletes || published.flag("sideEffects") == Some(true);
    if is_costly && changes {
        let stated = confirmation.filter(|_| required == Some(false));
        let pointer =
            stated.map_or_else(|| published.pointer.clone(), |confirmation| confirmation.at("required"));
        draft.report_rule(&rules::CONFIRMATION_UNDECLARED, pointer);
    }
}
