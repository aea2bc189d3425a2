//! Plugin manifests of 2023. OpenAI has retired the format, but sites still publish new ones.
//!
//! Decides who offers the plugin and where its API is described; its capabilities are the operations of that description, which is merged
//! when it was fetched. Files that use the member names but have no `api` are read as far as possible.
//!
//! Follows the OpenAI plugin manifest `v1` (2023).

use crate::auth;
use crate::draft::{self, Draft};
use crate::format::detect::candidate::{Marker, medium, strong};
use crate::format::{generic, openapi};
use crate::model::{Auth, AuthScheme, Follow, Interface, Link, Protocol};
use crate::object::Object;
use crate::rule::{Kind, findings, may, must};

pub(crate) const MARKERS: &[Marker] = &[
    strong(|c| {
        let api = c.has("name_for_model") && c.object("api").is_some();
        api.then(|| "`name_for_model` beside `api`".to_owned())
    }),
    medium(|c| {
        // A file with a list of tools describes a server or its tools instead.
        let named = c.has("name_for_model") && c.has("description_for_model") && c.list("tools").is_none();
        named.then(|| "`name_for_model` beside `description_for_model`, without `api`".to_owned())
    }),
];

findings! {
    shape PLUGIN("ai_plugin", "plugin manifest v1") {
        must("schema_version", Kind::OneOf(&["v1"]), "State v1."),
        must("name_for_human", Kind::Text, "Name the plugin for people."),
        must("name_for_model", Kind::Form(is_model_name, "at most 50 letters, digits and underscores"), "Use letters, digits and underscores, at most 50."),
        must("description_for_human", Kind::Form(|text| text.chars().count() <= 120, "at most 120 characters"), "Keep the description within 120 characters."),
        must("description_for_model", Kind::Form(|text| text.chars().count() <= 8_000, "at most 8,000 characters"), "Keep the description within 8,000 characters."),
        must("auth", Kind::Object, "Publish `auth` with a `type`."),
        must("api", Kind::Object, "Publish `api` with `type` openapi and the `url` of the description."),
        must("logo_url", Kind::Text, "State the logo's URL."),
        must("contact_email", Kind::Text, "State an e-mail address."),
        must("legal_info_url", Kind::Text, "State the URL of the legal information."),
    }
    shape API("ai_plugin.api", "plugin manifest v1") {
        must("type", Kind::Text, "State openapi."),
        must("url", Kind::Reference, "State the absolute URL of the OpenAPI document."),
        may("is_user_authenticated", Kind::Bool, "Publish true or false."),
    }
    shape AUTH("ai_plugin.auth", "plugin manifest v1") {
        must("type", Kind::OneOf(&["none", "user_http", "service_http", "oauth"]), "Use one of the four types."),
    }
    rule RETIRED: Note("ai_plugin.retired", "plugin manifest v1")
        "plugins were withdrawn in 2024; current agents look for other manifests"
            => "Publish an agent card, an MCP server card or an API catalog beside it.";
    rule LONG_NAME: Should("ai_plugin.name_for_human.long", "plugin manifest v1")
        "the name for people is longer than 20 characters" => "Keep the name within 20 characters.";
    rule API_TYPE: Must("ai_plugin.api.type.not_openapi", "plugin manifest v1")
        "`api.type` is not openapi, the only type there is" => "Describe the API in OpenAPI and link to it.";
    rule PLACEHOLDER: Must("ai_plugin.api.url.placeholder", "plugin manifest v1")
        "`api.url` still holds a placeholder" => "Substitute the host before publishing.";
    rule ABSENT: Must("ai_plugin.api.absent", "plugin manifest v1")
        "no document can be fetched at `api.url`" => "Serve the OpenAPI document at that address.";
    rule NOT_READ: Should("ai_plugin.api.not_openapi_document", "plugin manifest v1")
        "the document at `api.url` is not an OpenAPI description" => "Serve the OpenAPI document at that address.";
}

pub(crate) fn read(root: &Object<'_>, draft: &mut Draft<'_>) {
    let flavour = if root.has("api") { None } else { Some("derived") };
    draft.dialect(root.text("schema_version"), flavour);
    draft.assess("plugin manifest v1", |code| code.starts_with("ai_plugin."));
    draft.check(root, &PLUGIN);
    draft.report_rule(&RETIRED, String::new());
    if root.text("name_for_human").is_some_and(|name| name.chars().count() > 20) {
        draft.report_rule(&LONG_NAME, root.at("name_for_human"));
    }
    read_header(root, draft);
    if let Some(auth) = draft.checked(root, "auth", &AUTH) {
        draft.manifest.auth = vec![auth_of(&auth)];
    }
    keep_described_token(draft);
    if let Some(api) = root.object("api") {
        read_api(&api, draft);
    }
    if let Some(names) = root.value("capabilities").filter(|_| draft.manifest.capabilities.is_empty()) {
        generic::read_service_list("capabilities", names, &root.at("capabilities"), draft);
    }
}

fn read_header(root: &Object<'_>, draft: &mut Draft<'_>) {
    let legal = root.text("legal_info_url").filter(|text| text.contains("://")).map(str::to_owned);
    let logo = root.text("logo_url").filter(|text| text.contains("://")).map(str::to_owned);
    let privacy = root.string("privacy_policy_url");
    let manifest = &mut draft.manifest;
    manifest.name = draft::name(root.text_of(&["name_for_model", "name_for_human"]));
    manifest.title = draft::name(root.text("name_for_human"));
    manifest.description =
        draft::description(root.text_of(&["description_for_model", "description_for_human"]));
    manifest.contact.email = root.string("contact_email");
    manifest.provider.logo = logo;
    manifest.policies.terms_url = legal;
    manifest.policies.privacy_url = privacy;
    manifest.language = root.texts("language").first().map(|text| (*text).to_owned());
    manifest.tags = draft::tags(["categories", "keywords", "tags"].iter().flat_map(|key| root.texts(key)));
}

fn auth_of(auth: &Object<'_>) -> Auth {
    let kind = auth.text("type").unwrap_or_default();
    let mut found = Auth::new(match (kind, auth.text("authorization_type")) {
        ("service_http" | "user_http", Some("bearer")) => AuthScheme::Bearer,
        _ => auth::scheme(kind),
    });
    found.declared = Some(kind.to_owned());
    found.authorize_url = auth.string("client_url");
    found.token_url = auth.string("authorization_url");
    for scope in auth.text("scope").into_iter().flat_map(str::split_whitespace) {
        found.scopes.insert(scope.to_owned(), String::new());
    }
    found
}

/// Maximum number of clauses of a description that are searched for a credential.
const CLAUSES_MAX: usize = 50;

/// Keeps the bearer token that the description requires: `Write operations require a bearer token from POST /keys.`
fn keep_described_token(draft: &mut Draft<'_>) {
    let Some(description) = &draft.manifest.description else { return };
    let asks = |clause: &&str| {
        let folded = clause.to_ascii_lowercase();
        folded.contains("bearer token")
            && ["require", "need", "must"].iter().any(|word| folded.contains(word))
    };
    let Some(clause) = description.split(". ").take(CLAUSES_MAX).find(asks) else { return };
    let is_known = draft.manifest.auth.iter().any(|auth| auth.scheme == AuthScheme::Bearer);
    let path = clause.split_whitespace().find(|word| word.starts_with('/') || word.starts_with("https://"));
    let registration_url =
        path.and_then(|path| draft.origin_url(path.trim_end_matches(['.', ',', ';', ')'])));
    if !is_known {
        draft.keep(Auth {
            location: Some("header".to_owned()),
            name: Some("Authorization".to_owned()),
            registration_url,
            ..Auth::new(AuthScheme::Bearer)
        });
    }
}

fn read_api(api: &Object<'_>, draft: &mut Draft<'_>) {
    draft.check(api, &API);
    if api.text("type").is_some_and(|kind| kind != "openapi") {
        draft.report_rule(&API_TYPE, api.at("type"));
    }
    let Some(published) = api.text("url") else { return };
    if ["$host", "{{", "PLUGIN_HOSTNAME", "<"].iter().any(|mark| published.contains(mark)) {
        return draft.report_rule(&PLACEHOLDER, api.at("url"));
    }
    let Some(url) = draft.url(api, "url") else { return };
    if api.text("type").is_some_and(|kind| kind.eq_ignore_ascii_case("mcp")) {
        return draft.keep(Interface::new(Protocol::Mcp, Some(url)));
    }
    draft.keep(Link::new("service-desc", url.clone(), Some(Follow::Merge)));
    let linked = draft.document.linked;
    let Some(description) = linked.iter().find(|linked| linked.url.as_str() == url) else { return };
    if description.bytes.is_empty() {
        return draft.report_rule(&ABSENT, api.at("url"));
    }
    match openapi::parse_linked(description.bytes) {
        Some(document) => openapi::merge(&document, description.url, draft),
        None => draft.report_rule(&NOT_READ, api.at("url")),
    }
}

fn is_model_name(text: &str) -> bool {
    text.len() <= 50 && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}
