//! Requirements that are new in A2A 1.0, or that it states in another form: lists that must not be empty, security schemes in wrappers,
//! extensions, protected headers of signatures.

use std::collections::HashSet;

use serde_json::Value;

use crate::check::{is_major_minor, is_url};
use crate::draft::Draft;
use crate::json::push_index;
use crate::object::{Object, children, type_name};
use crate::rule::{Kind, Rule, Shape, findings, may, must, should};

findings! {
    shape EXTENSION("a2a.extension", "A2A 1.0 §4.4.4") {
        should("uri", Kind::Text, "Name the extension by its URI."),
        may("description", Kind::Text, "Describe in a string how the agent uses the extension."),
        may("required", Kind::Bool, "Publish true or false."),
        may("params", Kind::Object, "Publish the extension's parameters as an object."),
    }
    shape REQUIREMENT("a2a.requirement", "A2A 1.0 SecurityRequirement") {
        may("schemes", Kind::Object, "Publish a map from scheme to scopes, such as {\"login\": {\"list\": [\"read\"]}}."),
    }
    shape SCHEME("a2a.scheme", "A2A 1.0 §4.5.1") {
        may("description", Kind::Text, "Describe the scheme in a string."),
    }
    shape API_KEY("a2a.api_key", "A2A 1.0 §4.5.2") {
        must("location", Kind::OneOf(&["query", "header", "cookie"]), "State query, header or cookie."),
        must("name", Kind::Text, "Name the header, query parameter or cookie."),
    }
    shape HTTP_AUTH("a2a.http_auth", "A2A 1.0 §4.5.3") {
        must("scheme", Kind::Text, "Name the scheme of the Authorization header, such as Bearer."),
        may("bearerFormat", Kind::Text, "Name the form of the token in a string, such as JWT."),
    }
    shape OAUTH("a2a.oauth", "A2A 1.0 §4.5.4") {
        must("flows", Kind::Object, "Publish one flow, such as authorizationCode."),
        may("oauth2MetadataUrl", Kind::Form(is_https, "an absolute https URL"), "Publish the https URL of the server's metadata."),
    }
    shape OPEN_ID("a2a.open_id", "A2A 1.0 §4.5.5") {
        must("openIdConnectUrl", Kind::Url, "Publish the absolute URL of the provider's configuration."),
    }
    shape FLOW("a2a.flow", "A2A 1.0 §4.5.7") {
        must("tokenUrl", Kind::Url, "Publish the absolute URL of the token endpoint."),
        must("scopes", Kind::Object, "Publish the scopes as a map from name to description."),
        may("refreshUrl", Kind::Url, "Publish the absolute URL of the refresh endpoint."),
    }
    shape AUTHORIZATION_CODE("a2a.authorization_code", "A2A 1.0 §4.5.8") {
        must("authorizationUrl", Kind::Url, "Publish the absolute URL of the authorization endpoint."),
        may("pkceRequired", Kind::Bool, "Publish true or false."),
    }
    shape DEVICE_CODE("a2a.device_code", "A2A 1.0 §4.5.10") {
        must("deviceAuthorizationUrl", Kind::Url, "Publish the absolute URL of the device authorization endpoint."),
    }
    shape SIGNATURE_HEADER("a2a.signature_header", "A2A 1.0 §8.4.2") {
        may("header", Kind::Object, "Publish the unprotected header as an object."),
    }
    rule SCOPES: Should("a2a.requirement.scopes", "A2A 1.0 SecurityRequirement")
        "the scopes of a requirement are not an object with the array `list`" => "Publish {\"list\": [\"read\"]}, with the names of the scopes.";
    rule EMPTY_LIST: Must("a2a.list.empty", "A2A 1.0 §5.7")
        "a required list is empty" => "List at least one element.";
    rule ELEMENT: Must("a2a.element.mistyped", "A2A 1.0 §4.4")
        "an element of a list is not an object" => "List objects only.";
    rule REPEATED_SKILL: Must("a2a.skill.id.duplicate", "A2A 1.0 §4.4.5")
        "two skills have the same id" => "Give each skill a unique id.";
    rule BINDING: Should("a2a.interface.protocol_binding.unknown", "A2A 1.0 §5.8")
        "a binding is neither JSONRPC, GRPC, HTTP+JSON nor a URI" => "Name the binding by its URI if it is your own.";
    rule PATCH_VERSION: Should("a2a.interface.protocol_version.patch", "A2A 1.0 §3.6")
        "the version of an interface is not major.minor" => "State major and minor version alone, such as 1.0: patch versions do not change the protocol.";
    rule SCHEME_KIND: Must("a2a.security_scheme.kind", "A2A 1.0 §4.5.1")
        "a security scheme is not exactly one of `apiKeySecurityScheme`, `httpAuthSecurityScheme`, `oauth2SecurityScheme`, `openIdConnectSecurityScheme` and `mtlsSecurityScheme`"
            => "Put the scheme into one member, such as `httpAuthSecurityScheme`.";
    rule ONE_FLOW: Must("a2a.flow.count", "A2A 1.0 §4.5.7")
        "an OAuth scheme does not have exactly one flow out of `authorizationCode`, `clientCredentials` and `deviceCode`" => "Publish one flow for each scheme.";
    rule DEPRECATED_FLOW: Should("a2a.flow.deprecated", "A2A 1.0 §4.5.7")
        "an OAuth scheme uses a deprecated flow" => "Use the authorization code with PKCE, or the device code.";
    rule PROTECTED: Must("a2a.signature.protected.invalid", "A2A 1.0 §8.4.2")
        "the protected header is not the base64url of an object with `alg` and `kid`"
            => "Encode a header such as {\"alg\": \"ES256\", \"typ\": \"JOSE\", \"kid\": \"key-1\"}.";
    rule NOT_JOSE: Should("a2a.signature.protected.typ", "A2A 1.0 §8.4.2")
        "the protected header does not state the type JOSE" => "Add \"typ\": \"JOSE\" to the protected header.";
    rule SIGNATURE_TEXT: Must("a2a.signature.signature.invalid", "A2A 1.0 §8.4.2")
        "the signature is not base64url" => "Encode the signature in base64url without padding.";
}

/// Maximum number of elements of one list that are checked.
const ITEMS_MAX: usize = 1_000;

/// Checks the requirements that only cards of 1.0 have.
pub(super) fn check(root: &Object<'_>, draft: &mut Draft<'_>) {
    for key in ["supportedInterfaces", "defaultInputModes", "defaultOutputModes", "skills"] {
        check_not_empty(root, key, draft);
    }
    for key in ["supportedInterfaces", "skills", "securityRequirements", "signatures"] {
        check_elements(root, key, draft);
    }
    for interface in root.objects("supportedInterfaces").take(ITEMS_MAX) {
        check_interface(&interface, draft);
    }
    if let Some(capabilities) = root.object("capabilities") {
        check_elements(&capabilities, "extensions", draft);
        for extension in capabilities.objects("extensions").take(ITEMS_MAX) {
            draft.check(&extension, &EXTENSION);
        }
    }
    let schemes = root.value("securitySchemes").filter(|schemes| schemes.is_object());
    let schemes = schemes.into_iter().flat_map(|schemes| children(schemes, &root.at("securitySchemes")));
    for (_, scheme, pointer) in schemes.take(ITEMS_MAX) {
        if let Some(scheme) = draft.object(scheme, pointer, &SCHEME_KIND) {
            check_scheme(&scheme, draft);
        }
    }
    check_requirements(root, draft);
    check_skills(root, draft);
    for signature in root.objects("signatures").take(ITEMS_MAX) {
        check_signature(&signature, draft);
    }
}

fn check_not_empty(object: &Object<'_>, key: &str, draft: &mut Draft<'_>) {
    if object.list(key).is_some_and(<[Value]>::is_empty) {
        draft.report(&EMPTY_LIST, object.at(key), format!("`{key}` is empty"));
    }
}

fn check_elements(object: &Object<'_>, key: &str, draft: &mut Draft<'_>) {
    for (index, value) in object.list(key).unwrap_or_default().iter().enumerate() {
        if !value.is_object() {
            let mut pointer = object.at(key);
            push_index(&mut pointer, index);
            draft.report(&ELEMENT, pointer, format!("an element of `{key}` is {}", type_name(value)));
        }
    }
}

fn check_interface(interface: &Object<'_>, draft: &mut Draft<'_>) {
    let is_known = |binding: &str| ["JSONRPC", "GRPC", "HTTP+JSON"].contains(&binding);
    if interface.text("protocolBinding").is_some_and(|binding| !is_known(binding) && !binding.contains(':')) {
        draft.report_rule(&BINDING, interface.at("protocolBinding"));
    }
    if interface.text("protocolVersion").is_some_and(|version| !is_major_minor(version)) {
        draft.report_rule(&PATCH_VERSION, interface.at("protocolVersion"));
    }
}

fn check_skills(root: &Object<'_>, draft: &mut Draft<'_>) {
    let mut seen = HashSet::new();
    for skill in root.objects("skills") {
        check_not_empty(&skill, "tags", draft);
        if skill.text("id").is_some_and(|id| !seen.insert(id)) {
            draft.report_rule(&REPEATED_SKILL, skill.at("id"));
        }
        check_elements(&skill, "securityRequirements", draft);
        check_requirements(&skill, draft);
    }
}

fn check_requirements(object: &Object<'_>, draft: &mut Draft<'_>) {
    for requirement in object.objects("securityRequirements").take(ITEMS_MAX) {
        draft.check(&requirement, &REQUIREMENT);
        let Some(schemes) = requirement.object("schemes") else { continue };
        for (name, scopes) in schemes.map.iter().take(ITEMS_MAX) {
            let is_list =
                |list: &Value| list.as_array().is_some_and(|list| list.iter().all(Value::is_string));
            if !scopes.as_object().is_some_and(|scopes| scopes.get("list").is_none_or(is_list)) {
                draft.report_rule(&SCOPES, schemes.at(name));
            }
        }
    }
}

/// The wrappers of the five kinds, and the shapes of their contents.
const KINDS: [(&str, Option<&Shape>); 5] = [
    ("apiKeySecurityScheme", Some(&API_KEY)),
    ("httpAuthSecurityScheme", Some(&HTTP_AUTH)),
    ("oauth2SecurityScheme", Some(&OAUTH)),
    ("openIdConnectSecurityScheme", Some(&OPEN_ID)),
    ("mtlsSecurityScheme", None),
];

fn check_scheme(scheme: &Object<'_>, draft: &mut Draft<'_>) {
    let mut found = 0;
    for (wrapper, shape) in KINDS {
        let Some(inner) = draft.checked(scheme, wrapper, &SCHEME) else { continue };
        found += 1;
        if let Some(shape) = shape {
            draft.check(&inner, shape);
        }
        if wrapper == "oauth2SecurityScheme"
            && let Some(flows) = inner.object("flows")
        {
            check_flows(&flows, draft);
        }
    }
    if found != 1 {
        draft.report_rule(&SCHEME_KIND, scheme.pointer.clone());
    }
}

fn check_flows(flows: &Object<'_>, draft: &mut Draft<'_>) {
    let current: [(&str, &[&Shape]); 3] = [
        ("authorizationCode", &[&AUTHORIZATION_CODE, &FLOW]),
        ("clientCredentials", &[&FLOW]),
        ("deviceCode", &[&DEVICE_CODE, &FLOW]),
    ];
    let mut found = 0;
    for (name, shapes) in current {
        let Some(flow) = flows.object(name) else { continue };
        found += 1;
        for shape in shapes {
            draft.check(&flow, shape);
        }
    }
    for name in ["implicit", "password"].into_iter().filter(|name| flows.has(name)) {
        found += 1;
        draft.report_rule(&DEPRECATED_FLOW, flows.at(name));
    }
    if found != 1 {
        draft.report_rule(&ONE_FLOW, flows.pointer.clone());
    }
}

fn check_signature(signature: &Object<'_>, draft: &mut Draft<'_>) {
    draft.check(signature, &SIGNATURE_HEADER);
    let decoded = |key: &str| Some(data_encoding::BASE64URL_NOPAD.decode(signature.text(key)?.as_bytes()));
    if decoded("signature").is_some_and(|bytes| bytes.is_err()) {
        draft.report_rule(&SIGNATURE_TEXT, signature.at("signature"));
    }
    let Some(header) = decoded("protected") else { return };
    let header: Option<Value> = header.ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
    let text = |key: &str| header.as_ref()?.get(key)?.as_str();
    let broken: Option<&Rule> = match (text("alg"), text("kid"), text("typ")) {
        (None, _, _) | (_, None, _) => Some(&PROTECTED),
        (_, _, Some("JOSE")) => None,
        _ => Some(&NOT_JOSE),
    };
    if let Some(rule) = broken {
        draft.report_rule(rule, signature.at("protected"));
    }
}

fn is_https(text: &str) -> bool {
    text.starts_with("https://") && is_url(text)
}
