//! agents.txt 1.0 of agents-txt.com: which agent protocols a site speaks, and where.
//!
//! Reads interfaces, payment methods and documents to follow; skills are documents to read. The file declares no call.
//!
//! Follows the agents.txt standard 1.0 of agents-txt.com.

use serde_json::{Map, Value, json};

use super::grammar::{Line, listed};
use crate::auth;
use crate::draft::{self, Draft};
use crate::format::lenient;
use crate::model::{
    AgentIdentity, Auth, AuthScheme, CapabilityKind, Follow, Interface, Link, Payment, Protocol,
};
use crate::object::Object;
use crate::rule::{Kind, findings, may, must};
use crate::walk::List;

/// Maximum number of entries of one member that are kept.
const ENTRIES_MAX: usize = 200;

findings! {
    shape ROOT("agents_txt_com", "agents-txt.com 1.0") {
        must("version", Kind::OneOf(&["1.0"]), "State 1.0."),
        must("standard", Kind::OneOf(&["https://agents-txt.com"]), "State https://agents-txt.com."),
        must("site", Kind::Object, "Describe the site with `name` and `url`."),
        may("payments", Kind::Object, "Publish ways to pay as a map by protocol."),
        may("authorization", Kind::Object, "Publish `authorization` with `protocols` and `discovery`."),
        may("mcp", Kind::List, "List servers as objects with `url` and `type`."),
        may("skills", Kind::List, "List skills as objects with `url`."),
        may("a2a", Kind::List, "List agent cards as objects with `url`."),
        may("ucp", Kind::List, "List profiles as objects with `url`."),
        may("webmcp", Kind::List, "List pages as objects with `url`."),
    }
    shape SITE("agents_txt_com.site", "agents-txt.com 1.0") {
        must("name", Kind::Text, "Name the site."),
        must("url", Kind::Form(is_http, "an absolute http or https URL"), "State the site's absolute URL."),
    }
    shape MCP("agents_txt_com.mcp", "agents-txt.com 1.0") {
        must("url", Kind::Form(is_http, "an absolute http or https URL"), "State the server's absolute URL."),
        must("type", Kind::OneOf(&["streamable-http"]), "State streamable-http."),
    }
    shape ENTRY("agents_txt_com.entry", "agents-txt.com 1.0") {
        must("url", Kind::Form(is_http, "an absolute http or https URL"), "State the absolute URL."),
    }
    shape AUTHORIZATION("agents_txt_com.authorization", "agents-txt.com 1.0") {
        must("protocols", Kind::Texts, "List agent-auth, oauth2 or auth-md."),
        must("discovery", Kind::Reference, "State the discovery endpoint."),
    }
    rule NO_METHOD: Must("agents_txt_com.payments.no_protocol", "agents-txt.com 1.0")
        "`payments` names no protocol" => "Declare x402, mpp or ap2, or a protocol of your own that begins with x-.";
    rule EMPTY_METHOD: Must("agents_txt_com.payments.empty_list", "agents-txt.com 1.0")
        "a way to pay lists no chain, method or presentation" => "List at least one.";
}

/// Converts a text to its JSON form.
pub(super) fn to_json(lines: &[Line<'_>]) -> Value {
    let mut root = Map::new();
    root.insert("version".to_owned(), json!("1.0"));
    root.insert("standard".to_owned(), json!("https://agents-txt.com"));
    for line in lines {
        match line.key.as_str() {
            "protocols" => {
                let payments: Map<String, Value> =
                    listed(line.value).map(|name| (name.to_owned(), json!({}))).collect();
                root.insert("payments".to_owned(), Value::Object(payments));
            }
            "authorization" => {
                let protocols: Vec<&str> = listed(line.value).collect();
                let well_known = "/.well-known/agent-configuration";
                root.insert(
                    "authorization".to_owned(),
                    json!({"protocols": protocols, "discovery": well_known}),
                );
            }
            key @ ("mcp" | "skills" | "a2a" | "ucp" | "webmcp") => {
                let mut entry = json!({"url": line.value});
                if key == "mcp" {
                    entry["type"] = json!("streamable-http");
                }
                if let Value::Array(list) = root.entry(key).or_insert_with(|| json!([])) {
                    list.push(entry);
                }
            }
            _ => {}
        }
    }
    Value::Object(root)
}

pub(super) fn read(root: &Object<'_>, draft: &mut Draft<'_>) {
    draft.dialect(root.text("version"), Some("agents-txt.com"));
    draft.assess("agents-txt.com 1.0", |code| code.starts_with("agents_txt_com."));
    if draft.document.bytes.first() == Some(&b'{') {
        // The text form has neither `site` nor `standard`.
        draft.check(root, &ROOT);
    }
    if let Some(site) = draft.checked(root, "site", &SITE) {
        draft.manifest.name = draft::name(site.text("name"));
        draft.manifest.description = draft::description(site.text("description"));
        draft.manifest.declared_origin = site.string("url");
    }
    if let Some(payments) = root.object("payments") {
        read_payments(&payments, draft);
    }
    if let Some(authorization) = draft.checked(root, "authorization", &AUTHORIZATION) {
        let protocols = authorization.texts("protocols");
        let identity = authorization
            .text("identity")
            .map(|word| AgentIdentity { required: word == "required", format: None });
        let auth = |word: &str| Auth {
            declared: Some(word.to_owned()),
            agent_identity: identity.clone(),
            ..Auth::new(auth::scheme(word))
        };
        draft.keep_all(protocols.into_iter().map(auth));
    }
    for (key, protocol) in [("mcp", Protocol::Mcp), ("a2a", Protocol::A2a), ("ucp", Protocol::Ucp)] {
        for entry in root.objects(key).take(ENTRIES_MAX) {
            draft.check(&entry, if key == "mcp" { &MCP } else { &ENTRY });
            read_entry(&entry, key, protocol, draft);
        }
    }
    draft.each(root, "skills", &List::of(&ENTRY).at_most(ENTRIES_MAX), read_skill);
    draft.each(root, "webmcp", &List::of(&ENTRY).at_most(ENTRIES_MAX), |page, draft| {
        draft.link(page, "url", "webmcp", None);
    });
}

/// A server is an interface; a card or a profile is a document to follow.
fn read_entry(entry: &Object<'_>, key: &str, protocol: Protocol, draft: &mut Draft<'_>) {
    let Some(url) = draft.server_url(entry, "url") else { return };
    if protocol == Protocol::Mcp {
        let mut interface = Interface::new(protocol, Some(url));
        interface.transport = entry.string("type");
        interface.version = entry.string("version");
        draft.keep(interface);
    } else {
        let rel = if key == "a2a" { "agent-card" } else { "ucp-profile" };
        draft.keep(Link::new(rel, url, Some(Follow::Manifest)));
    }
}

fn read_skill(skill: &Object<'_>, draft: &mut Draft<'_>) {
    let published = skill.text("url").unwrap_or_default();
    // …/skills/adopt-agents-txt/SKILL.md is named after its folder.
    let parts: Vec<&str> = published.trim_end_matches('/').rsplit('/').take(2).collect();
    let name = match parts.as_slice() {
        [file, folder] if file.eq_ignore_ascii_case("SKILL.md") => folder,
        [file, ..] => file,
        [] => "",
    };
    let mut capability = draft.capability(CapabilityKind::Skill, published, name, skill.pointer.clone());
    capability.description = draft::description(skill.text("description"));
    capability.invocation.protocol = Some(Protocol::Http);
    capability.invocation.url = draft.url(skill, "url");
    draft.push(capability);
}

fn read_payments(payments: &Object<'_>, draft: &mut Draft<'_>) {
    let known = |name: &str| matches!(name, "x402" | "mpp" | "ap2") || name.starts_with("x-");
    if !payments.map.keys().any(|name| known(name)) {
        draft.report_rule(&NO_METHOD, payments.pointer.clone());
    }
    let price = payments.value("pricing").and_then(lenient::price).unwrap_or_default();
    if price != Payment::default() && !payments.map.keys().any(|name| known(name)) {
        draft.keep(price.clone());
    }
    if payments.flag("required") == Some(true) {
        draft.keep(Auth::new(AuthScheme::Payment));
    }
    for (scheme, method) in payments.members().filter(|(name, _)| known(name)) {
        let listed = ["chains", "methods", "presentations"].iter().find_map(|key| method.list(key));
        if listed.is_some_and(<[Value]>::is_empty) {
            draft.report_rule(&EMPTY_METHOD, method.pointer.clone());
        }
        // A chain, or the MPP payment method that is used in place of one (`tempo`, `stripe`).
        let networks = [method.texts("chains"), method.texts("methods")].concat();
        let base = Payment { scheme: Some(scheme.to_owned()), ..price.clone() };
        if networks.is_empty() {
            draft.keep(base);
            continue;
        }
        for network in networks {
            // A provider of payments is not a chain.
            if PROVIDERS.contains(&network) {
                draft.keep(Payment { scheme: Some(network.to_owned()), ..price.clone() });
            } else {
                draft.keep(Payment { network: Some(network.to_owned()), ..base.clone() });
            }
        }
    }
}

/// Methods of payment that are providers, and not chains.
const PROVIDERS: &[&str] = &["stripe", "card", "paypal"];

fn is_http(text: &str) -> bool {
    text.starts_with("https://") || text.starts_with("http://")
}
