//! agents.txt 0.1 in two grammars: the one of the specification and the one of its SDK.
//!
//! Both only name capabilities; the endpoints are in the linked agents.json, a separate manifest. The keys determine the grammar: `Name`
//! with `Capabilities` belongs to the specification, `Site` with `Allow` to the SDK. Missing addresses get the defaults of the
//! specification.

use serde_json::{Map, Value};

use super::grammar::{Line, listed};
use crate::draft::{self, Draft};
use crate::format::header;
use crate::model::{Audit, CapabilityKind, Follow, Interface, Link, Protocol, RateLimit, Sessions};
use crate::object::Object;
use crate::quantity::{self, is_duration, is_rate};
use crate::rule::{Kind, Shape, findings, may, must};

findings! {
    shape PROSE("agents_txt_0", SPEC) {
        must("name", Kind::Any, "Write `Name:` and the name of the site."),
        must("url", ADDRESS, "Write `URL:` and the absolute URL of the site."),
        must("capabilities", Kind::Any, "Write `Capabilities:` and the names, with commas between them."),
        may("capabilities-url", ADDRESS, "Give the absolute URL of the agents.json."),
        may("agent-api", ADDRESS, "Give the absolute URL of the interaction API."),
        may("session-endpoint", ADDRESS, "Give the absolute URL where sessions are created."),
        may("docs", ADDRESS, "Give the absolute URL of the documentation."),
        may("rate-limit", Kind::Line(is_whole, "a whole number of requests a minute"), "Write a whole number."),
        may("session-ttl", Kind::Line(is_whole, "a whole number of seconds"), "Write a whole number of seconds."),
        may("audit", Kind::Line(|text| matches!(text, "true" | "false"), "true or false"), "Write true or false."),
        may("audit-endpoint", ADDRESS, "Give the absolute URL of the audit artifacts."),
    }
    shape SDK("agents_txt_0.sdk", "agents.txt 0.1 SDK") {
        must("site", Kind::Any, "Write `Site:` and the name of the site."),
        must("url", ADDRESS, "Write `URL:` and the absolute URL of the site."),
        may("agents-json", ADDRESS, "Give the absolute URL of the agents.json."),
        may("rate-limit", Kind::Line(is_rate, "a rate such as 120/minute"), "Write a rate such as 120/minute."),
        may("session-ttl", Kind::Line(is_duration, "a duration such as 900s"), "Write a duration such as 900s."),
    }
    rule KEY_UNKNOWN: May("agents_txt_0.key.unknown", SPEC)
        "a line has a key that the specification does not define; it is ignored" => "Remove the line, or correct the key.";
    rule KEY_REPEATED: May("agents_txt_0.key.repeated", SPEC)
        "a key occurs twice; the first line counts" => "Keep one of the lines.";
    rule NO_CAPABILITY: Must("agents_txt_0.sdk.allow.missing", "agents.txt 0.1 SDK")
        "no `Allow` line names a capability" => "Write one `Allow:` line for each capability.";
}

const SPEC: &str = "agents.txt 0.1";
/// A value that must be an absolute URL.
const ADDRESS: Kind = Kind::Line(crate::check::is_url, "an absolute URL");

/// Keys of either grammar without a field in a shape.
const OTHER_KEYS: &[&str] = &["description", "contact", "allow"];

/// Whether lines follow one of the two grammars.
pub(super) fn is_v0(lines: &[Line<'_>]) -> bool {
    let has = |key: &str| lines.iter().any(|line| line.indent == 0 && line.key == key);
    let prose = has("capabilities") && (has("name") || has("url")) || has("capabilities-url");
    let sdk = has("site") && (has("allow") || has("agents-json")) && !has("user-agent");
    prose || sdk
}

pub(super) fn read(lines: &[Line<'_>], draft: &mut Draft<'_>) {
    let is_sdk = lines.iter().any(|line| line.key == "site");
    let shape = if is_sdk { &SDK } else { &PROSE };
    draft.assess(shape.spec, |code| code.starts_with("agents_txt_0."));
    draft.dialect(Some("0.1"), Some(if is_sdk { "sdk" } else { "prose" }));
    let map = members(lines, shape, draft);
    let root = Object::root(&map);
    draft.check(&root, shape);
    header(&root, draft);
    limits(&root, draft);
    let names: Vec<&str> = match root.text("capabilities") {
        Some(names) => listed(names).collect(),
        None => lines.iter().filter(|line| line.key == "allow").map(|line| line.value).collect(),
    };
    if is_sdk && names.is_empty() {
        draft.report_rule(&NO_CAPABILITY, String::new());
    }
    for name in names.into_iter().filter(|name| !name.is_empty() && !name.starts_with('/')) {
        let capability = draft.capability(CapabilityKind::Unknown, name, "", String::new());
        draft.push(capability);
        if draft.is_full() {
            return;
        }
    }
}

/// Converts the lines to an object, so that they can be checked like one. Of repeated keys, the first one is used.
fn members(lines: &[Line<'_>], shape: &Shape, draft: &mut Draft<'_>) -> Map<String, Value> {
    let mut map = Map::new();
    for line in lines {
        let known = shape.fields.iter().any(|field| field.key == line.key);
        if !known && !OTHER_KEYS.contains(&line.key.as_str()) {
            let text = format!("`{}` is not a key of {}", crate::text::capped(&line.key, 60), shape.spec);
            draft.report(&KEY_UNKNOWN, String::new(), text);
        }
        if line.value.is_empty() {
            continue;
        }
        if !map.contains_key(&line.key) {
            map.insert(line.key.clone(), Value::from(line.value));
        } else if line.key != "allow" {
            draft.report(&KEY_REPEATED, String::new(), format!("`{}` occurs twice", line.key));
        }
    }
    map
}

fn header(root: &Object<'_>, draft: &mut Draft<'_>) {
    let manifest = &mut draft.manifest;
    manifest.name = draft::name(root.text_of(&["name", "site"]));
    manifest.description = draft::description(root.text("description"));
    manifest.declared_origin = root.string("url");
    manifest.contact = root.value("contact").map(header::contact).unwrap_or_default();
    let declared = root.text_of(&["capabilities-url", "agents-json"]).unwrap_or("/.well-known/agents.json");
    if let Some(url) = draft.origin_url(declared) {
        draft.keep(Link::new("agents-json", url, Some(Follow::Manifest)));
    }
    if let Some(url) = root.text("docs").and_then(|docs| draft.origin_url(docs)) {
        draft.keep(Link::new("docs", url, None));
    }
    if let Some(url) = root.text("agent-api").and_then(|api| draft.origin_url(api)) {
        let declared = Some("Agent-API".to_owned());
        draft.keep(Interface { declared, ..Interface::new(Protocol::Http, Some(url)) });
    }
}

fn limits(root: &Object<'_>, draft: &mut Draft<'_>) {
    if let Some(published) = root.text("rate-limit") {
        // The specification requires a bare number of requests per minute, but its README and the SDK write 60/minute.
        draft.manifest.rate_limit = Some(match published.parse() {
            Ok(requests) => RateLimit::per_minute(requests),
            Err(_) => quantity::rate(published),
        });
    }
    if root.has("session-endpoint") || root.has("session-ttl") {
        let create_url = root.text("session-endpoint").and_then(|text| draft.origin_url(text));
        draft.manifest.sessions = Some(Sessions {
            delete_url: create_url.clone(),
            create_url,
            ttl_s: root.text("session-ttl").and_then(quantity::duration_s),
            required_ids: Vec::new(),
        });
    }
    if root.has("audit") || root.has("audit-endpoint") {
        draft.manifest.audit = Some(Audit {
            enabled: root.text("audit").and_then(|text| text.to_ascii_lowercase().parse().ok()),
            url: root.text("audit-endpoint").and_then(|text| draft.origin_url(text)),
            public_key: None,
        });
    }
}

fn is_whole(text: &str) -> bool {
    text.parse::<u64>().is_ok()
}
