//! Requirements of A2A cards.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Generation, current};
use crate::draft::Draft;
use crate::model::Auth;
use crate::object::Object;
use crate::rule::{Kind, findings, may, must, should};

findings! {
    shape CARD("a2a.card", "A2A 0.3 §5.5, 1.0 AgentCard") {
        must("name", Kind::Text, "Name the agent."),
        must("description", Kind::Text, "Describe the purpose of the agent."),
        must("version", Kind::Text, "State the agent's own version as a string."),
        must("capabilities", Kind::Object, "Publish `capabilities` as an object of optional features; `{}` is enough."),
        must("defaultInputModes", Kind::Texts, "List the media types that the agent accepts, such as text/plain."),
        must("defaultOutputModes", Kind::Texts, "List the media types that the agent returns, such as text/plain."),
        must("skills", Kind::List, "List the agent's skills as objects."),
        may("provider", Kind::Object, "Publish `provider` with `organization` and `url`."),
        may("documentationUrl", Kind::Url, "Publish an absolute URL."),
        may("iconUrl", Kind::Url, "Publish an absolute URL."),
        may("securitySchemes", Kind::Object, "Publish `securitySchemes` as a map from name to scheme."),
        may("signatures", Kind::List, "Publish signatures as an array of detached JWS objects."),
    }
    shape CARD_URL("a2a.card_url", "A2A 0.3 §5.5") {
        must("url", Kind::Url, "Publish the absolute URL of the agent's preferred interface."),
        should("protocolVersion", Kind::Text, "State the A2A version that the card follows, such as 0.3.0."),
        may("preferredTransport", Kind::Text, "Name the transport of `url`: JSONRPC, GRPC or HTTP+JSON."),
        may("additionalInterfaces", Kind::List, "Publish further interfaces as objects with `url` and `transport`."),
        may("supportsAuthenticatedExtendedCard", Kind::Bool, "Publish true or false."),
        may("security", Kind::List, "Publish requirements as an array of maps from scheme to scopes."),
    }
    shape CARD_INTERFACES("a2a.card_interfaces", "A2A 1.0 AgentCard") {
        must("supportedInterfaces", Kind::List, "List the agent's interfaces, the preferred one first."),
        may("securityRequirements", Kind::List, "Publish requirements as an array of objects with `schemes`."),
    }
    shape INTERFACE("a2a.interface", "A2A 1.0 AgentInterface") {
        must("url", Kind::Url, "Publish the absolute URL of the interface."),
        must("protocolBinding", Kind::Text, "Name the binding: JSONRPC, GRPC or HTTP+JSON."),
        must("protocolVersion", Kind::Text, "State the A2A version that the interface speaks, such as 1.0."),
        may("tenant", Kind::Text, "Publish the tenant as a string."),
    }
    shape ADDITIONAL("a2a.additional_interface", "A2A 0.3 §5.5.5") {
        must("url", Kind::Url, "Publish the absolute URL of the interface."),
        must("transport", Kind::Text, "Name the transport: JSONRPC, GRPC or HTTP+JSON."),
    }
    shape PROVIDER("a2a.provider", "A2A 0.3 §5.5.1, 1.0 AgentProvider") {
        must("organization", Kind::Text, "Name the organisation that offers the agent."),
        must("url", Kind::Url, "Publish the organisation's absolute URL."),
    }
    shape CAPABILITIES("a2a.capabilities", "A2A 0.3 §5.5.2, 1.0 AgentCapabilities") {
        may("streaming", Kind::Bool, "Publish true or false."),
        may("pushNotifications", Kind::Bool, "Publish true or false."),
        may("extendedAgentCard", Kind::Bool, "Publish true or false."),
        may("stateTransitionHistory", Kind::Bool, "Publish true or false."),
        may("extensions", Kind::List, "Publish extensions as an array of objects with `uri`."),
    }
    shape SKILL("a2a.skill", "A2A 0.3 §5.5.4, 1.0 AgentSkill") {
        must("id", Kind::Text, "Give the skill an id that is unique in the card."),
        must("name", Kind::Text, "Name the skill."),
        must("description", Kind::Text, "Describe what the skill does and when to use it."),
        must("tags", Kind::Texts, "Publish keywords for the skill."),
        may("examples", Kind::Texts, "Publish example requests as strings."),
        may("inputModes", Kind::Texts, "Publish media types as strings."),
        may("outputModes", Kind::Texts, "Publish media types as strings."),
    }
    shape SIGNATURE("a2a.signature", "A2A 0.3 §5.5.6, 1.0 AgentCardSignature") {
        must("protected", Kind::Text, "Publish the base64url-encoded protected header."),
        must("signature", Kind::Text, "Publish the base64url-encoded signature."),
    }
    rule LEGACY_AUTHENTICATION: Should("a2a.authentication.legacy", "A2A 0.2 §5.5")
        "`authentication` is the form of A2A 0.1; clients of later versions do not read it"
            => "Describe credentials in `securitySchemes` and require them in `security`.";
    rule LEGACY_URL: Note("a2a.url.legacy", "A2A 1.0 AgentCard")
        "a card of A2A 1.0 keeps the `url` of older versions beside `supportedInterfaces`"
            => "You may keep it for old clients; new ones only read `supportedInterfaces`.";
    rule NO_SKILLS: Should("a2a.skills.empty", "A2A 0.3 §5.5.4")
        "the card lists no skill" => "Describe what the agent can do as skills; clients choose agents by them.";
    rule SCHEME_TYPE: Must("a2a.security_scheme.type.unknown", "A2A 0.3 §5.5.3")
        "a security scheme has an unknown type"
            => "Use apiKey, http, oauth2, openIdConnect or mutualTLS; a public agent needs no scheme.";
    rule UNKNOWN_SCHEME: Must("a2a.security.unknown_scheme", "A2A 0.3 §5.5")
        "a requirement names a scheme that `securitySchemes` does not define" => "Define the scheme or correct its name.";
    rule SKILL_ENDPOINT: Note("a2a.skill.endpoint", "A2A 0.3 §5.5.4")
        "a skill has its own endpoint, which A2A clients do not read"
            => "Serve all skills through the card's interface, or declare plain HTTP operations in OpenAPI.";
}

pub(super) fn check_card(root: &Object<'_>, generation: Generation, draft: &mut Draft<'_>) {
    draft.assess("A2A", |code| code.starts_with("a2a."));
    draft.check(root, &CARD);
    match generation {
        Generation::Interfaces => {
            draft.check(root, &CARD_INTERFACES);
            current::check(root, draft);
            if root.has("url") {
                draft.report_rule(&LEGACY_URL, root.at("url"));
            }
        }
        Generation::Url => draft.check(root, &CARD_URL),
    }
    draft.checked(root, "provider", &PROVIDER);
    draft.checked(root, "capabilities", &CAPABILITIES);
    for signature in root.objects("signatures") {
        draft.check(&signature, &SIGNATURE);
    }
    if root.has("authentication") {
        draft.report_rule(&LEGACY_AUTHENTICATION, root.at("authentication"));
    }
    if generation == Generation::Url && root.list("skills").is_some_and(<[Value]>::is_empty) {
        draft.report_rule(&NO_SKILLS, root.at("skills"));
    }
}

pub(super) fn check_skill(skill: &Object<'_>, draft: &mut Draft<'_>) {
    draft.check(skill, &SKILL);
    if skill.has("endpoint") {
        draft.report_rule(&SKILL_ENDPOINT, skill.at("endpoint"));
    }
}

/// Reports requirements of a card or a skill that name unknown schemes.
pub(super) fn check_requirements(object: &Object<'_>, known: &BTreeMap<String, Auth>, draft: &mut Draft<'_>) {
    let key = if object.has("security") { "security" } else { "securityRequirements" };
    for requirement in object.objects(key) {
        let schemes = requirement.object("schemes").unwrap_or(requirement);
        for name in schemes.map.keys().filter(|name| !known.contains_key(*name)) {
            let text = format!("\"{name}\" is not in `securitySchemes`");
            draft.report(&UNKNOWN_SCHEME, schemes.at(name), text);
        }
    }
}
