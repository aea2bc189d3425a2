//! ATP capabilities (§3.5): calls, side effects and confirmation.

use std::collections::HashSet;

use super::rules;
use crate::draft::{self, Draft};
use crate::format::endpoint;
use crate::model::{Capability, CapabilityKind, Confirmation, SafetyClass, Tristate};
use crate::object::Object;
use crate::reference::{ProblemKind, Resolver};
use crate::schema::{Location, Parameters, object_descriptor};
use crate::walk::List;
use crate::{safety, semantic, text};

pub(super) fn read(root: &Object<'_>, draft: &mut Draft<'_>) {
    let mut resolver = Resolver::new(root.map, draft.document.bytes.len());
    let scopes: HashSet<String> =
        draft.manifest.auth.iter().flat_map(|auth| auth.scopes.keys().cloned()).collect();
    let list = List::UNCHECKED.mistyped(&rules::CAPABILITY_MISTYPED).unique("id", &rules::ID_DUPLICATE);
    draft.each(root, "capabilities", &list, |published, draft| {
        read_capability(published, &scopes, &mut resolver, draft);
    });
}

fn read_capability<'v>(
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
    }
    endpoint::read_call(published, &mut capability, draft);
    parameters(published, &mut capability, draft);
    response(published, &mut capability, resolver, draft);
    authorization(published, scopes, &mut capability, draft);
    effects(published, &mut capability, draft);
    confirmation(published, &mut capability, draft);
    capability.deprecated = published.flag("deprecated").unwrap_or_default();
    capability.deprecation_message = draft::description(published.text("deprecationMessage"));
    draft.push(capability);
}

fn parameters(published: &Object<'_>, capability: &mut Capability, draft: &mut Draft<'_>) {
    let mut parameters = Parameters::default();
    let list = List::of(&rules::PARAMETER).mistyped(&rules::PARAMETER_MISTYPED);
    draft.each(published, "parameters", &list, |parameter, _| {
        if let Some(name) = parameter.text("name") {
            let (schema, presence) = object_descriptor(parameter.map);
            parameters.add(name, schema, Location::of(&capability.invocation, name), presence);
        }
    });
    capability.parameters = parameters.finish();
}

fn response(
    published: &Object<'_>,
    capability: &mut Capability,
    resolver: &mut Resolver<'_>,
    draft: &mut Draft<'_>,
) {
    let Some(schema) = published.value("response").filter(|response| response.is_object()) else { return };
    let pointer = published.at("response");
    capability.response = Some(resolver.schema(schema, &pointer));
    for problem in resolver.take_problems() {
        let leads = match problem.kind {
            ProblemKind::Unresolved => "nowhere",
            ProblemKind::Remote => "out of this document",
            // The schema is marked where it was cut.
            ProblemKind::TooLarge => continue,
        };
        draft.report(&rules::REFERENCE, pointer.clone(), format!("{} leads {leads}", problem.detail));
    }
}

fn authorization(
    published: &Object<'_>,
    scopes: &HashSet<String>,
    capability: &mut Capability,
    draft: &mut Draft<'_>,
) {
    let required = published.texts("requiredScopes");
    if required.is_empty() {
        return;
    }
    let schemes: Vec<_> =
        draft.manifest.auth.iter().take(draft::SCHEMES_PER_CAPABILITY_MAX).map(|auth| auth.scheme).collect();
    if schemes.is_empty() {
        draft.report_rule(&rules::AUTH_UNDECLARED, published.at("requiredScopes"));
    } else if !scopes.is_empty() {
        for scope in required.iter().filter(|scope| !scopes.contains(**scope)) {
            let text = format!("no scheme declares the scope \"{scope}\"");
            draft.report(&rules::SCOPE_UNKNOWN, published.at("requiredScopes"), text);
        }
    }
    capability.auth.required = Tristate::Yes;
    capability.auth.schemes = schemes;
    capability.auth.scopes = draft::tags(required);
}

/// `sideEffects` cannot lower the class of PUT, PATCH and DELETE.
fn effects(published: &Object<'_>, capability: &mut Capability, draft: &mut Draft<'_>) {
    let stated = published.flag("sideEffects");
    let method = capability.invocation.method.as_deref();
    match (method, stated) {
        (Some("PUT" | "PATCH" | "DELETE"), None | Some(false)) => {
            draft.report_rule(&rules::SIDE_EFFECTS, published.pointer.clone());
        }
        (Some("POST"), None) => {
            draft.report_rule(&rules::SIDE_EFFECTS_UNSTATED, published.pointer.clone());
        }
        _ => {}
    }
    match (method, stated) {
        (Some("DELETE"), _) | (_, None) | (Some("PUT" | "PATCH"), Some(false)) => {}
        (_, Some(true)) => capability.safety = safety::declared(SafetyClass::Write),
        (_, Some(false)) => capability.safety = safety::declared(SafetyClass::Read),
    }
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
            draft.report_rule(&rules::MESSAGE_MISSING, published.at("confirmation"));
        }
        return;
    }
    let words = text::words(published.text("id").unwrap_or_default());
    let costly = words.iter().any(|word| COSTLY.contains(&word.as_str()));
    let changes = published.flag("sideEffects") == Some(true)
        || capability.invocation.method.as_deref() == Some("DELETE");
    if costly && changes {
        draft.report_rule(&rules::CONFIRMATION_UNDECLARED, published.pointer.clone());
    }
}
