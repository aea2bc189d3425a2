//! WoA transports (§4.3): how an agent is invoked. The invocation URL is the concatenation of `base` and
//! `invoke_path`, which are not resolved like a relative URL.

use std::collections::{BTreeMap, HashSet};

use serde_json::{Value, json};

use super::rules;
use crate::draft::{self, Draft};
use crate::json::push_index;
use crate::model::{Capability, Interface, Protocol};
use crate::name::URL_BYTES_MAX;
use crate::object::{Object, type_name};
use crate::text::capped;

/// The placeholder of the agent's id in the path, case-sensitive.
const PLACEHOLDER: &str = "{agent_id}";

/// The transports of a document by name, and the names of those that are not objects.
pub(super) struct Transports<'v>(BTreeMap<&'v str, Object<'v>>, HashSet<&'v str>);

impl<'v> Transports<'v> {
    pub(super) fn read(root: &Object<'v>, draft: &mut Draft<'_>) -> Self {
        let Some(published) = root.object("transports") else {
            return Self(BTreeMap::new(), HashSet::new());
        };
        let (mut transports, mut mistyped) = (BTreeMap::new(), HashSet::new());
        for (name, value) in published.map {
            let pointer = published.at(name);
            let Some(map) = value.as_object() else {
                let text = format!("the transport \"{name}\" is {}", type_name(value));
                draft.report(&rules::TRANSPORT_MISTYPED, pointer, text);
                mistyped.insert(name.as_str());
                continue;
            };
            let transport = Object::new(map, pointer);
            check(name, &transport, draft);
            draft.keep(interface(name, &transport));
            transports.insert(name.as_str(), transport);
        }
        if published.map.is_empty() {
            draft.report_rule(&rules::NO_TRANSPORTS, published.pointer.clone());
        }
        report_unused(root, &published, draft);
        Self(transports, mistyped)
    }

    /// The transports that an agent names and the document describes.
    pub(super) fn of_agent(&self, agent: &Object<'v>, draft: &mut Draft<'_>) -> Vec<&'v str> {
        let mut known = Vec::new();
        let names = agent.list("transports").unwrap_or_default();
        if names.is_empty() && agent.list("transports").is_some() {
            draft.report_rule(&rules::AGENT_UNREACHABLE, agent.at("transports"));
        }
        for (index, name) in names.iter().enumerate() {
            let Some(name) = name.as_str() else { continue };
            if let Some((name, _)) = self.0.get_key_value(name) {
                known.push(*name);
            } else if !self.1.contains(name) {
                let mut pointer = agent.at("transports");
                push_index(&mut pointer, index);
                let text = format!("the transport \"{}\" is not described", capped(name, 100));
                draft.report(&rules::TRANSPORT_UNKNOWN, pointer, text);
            }
        }
        if let Some(Value::String(name)) = agent.value("transports") {
            known.extend(self.0.get_key_value(name.as_str()).map(|(name, _)| *name));
        }
        known
    }

    /// Sets how an agent or one of its operations is invoked: over REST if possible, else over MCP, else over the first private transport.
    /// A transport without a usable address comes last.
    pub(super) fn invoke(
        &self,
        capability: &mut Capability,
        agent_id: &str,
        operation: Option<&str>,
        called_over: &[&str],
    ) {
        let mut registered = ["rest", "mcp"].into_iter().filter(|name| called_over.contains(name));
        let is_usable = |name: &&str| self.0.get(*name).is_some_and(|transport| is_usable(name, transport));
        let usable = registered.clone().find(is_usable).or_else(|| registered.next());
        let Some(name) = usable.or_else(|| called_over.first().copied()) else { return };
        let Some(transport) = self.0.get(name) else { return };
        let invocation = &mut capability.invocation;
        invocation.envelope = Some(envelope(agent_id, operation));
        match name {
            "rest" => {
                invocation.protocol = Some(Protocol::Http);
                invocation.method = Some("POST".to_owned());
                let address = rest_url(transport, agent_id);
                let is_template = address.as_deref().is_some_and(|address| address.contains('{'));
                let place = if is_template { &mut invocation.url_template } else { &mut invocation.url };
                *place = address;
            }
            "mcp" => {
                invocation.protocol = Some(Protocol::Mcp);
                invocation.url =
                    transport.text("server").filter(|server| is_https(server)).map(str::to_owned);
                let tool = if transport.text("tool_field") == Some("operation") { operation } else { None };
                invocation.native = Some(tool.unwrap_or(agent_id).to_owned());
            }
            _ => {
                invocation.protocol = Some(Protocol::Other);
                invocation.native = Some(agent_id.to_owned());
            }
        }
    }
}

/// The invocation envelope (§5.1) with the fixed values of this capability; `input` takes the parameters.
fn envelope(agent_id: &str, operation: Option<&str>) -> Value {
    match operation {
        Some(operation) => json!({"agent": agent_id, "operation": operation, "input": "{parameters}"}),
        None => json!({"agent": agent_id, "input": "{parameters}"}),
    }
}

/// `base` and `invoke_path` concatenated, the placeholder replaced by the agent's id (§4.3.1). `None` for an address that
/// is longer than [`URL_BYTES_MAX`].
fn rest_url(transport: &Object<'_>, agent_id: &str) -> Option<String> {
    let base = transport.text("base").filter(|base| is_https(base))?;
    let path = transport.text("invoke_path")?;
    let ids_bytes = path.matches(PLACEHOLDER).count().saturating_mul(agent_id.len());
    if base.len() + path.len() + ids_bytes > URL_BYTES_MAX {
        return None;
    }
    Some(format!("{base}{}", path.replace(PLACEHOLDER, agent_id)))
}

fn is_usable(name: &str, transport: &Object<'_>) -> bool {
    match name {
        "rest" => rest_url(transport, "").is_some(),
        _ => transport.text("server").is_some_and(is_https),
    }
}

fn is_https(text: &str) -> bool {
    text.len() <= URL_BYTES_MAX && text.get(..8).is_some_and(|scheme| scheme.eq_ignore_ascii_case("https://"))
}

fn check(name: &str, transport: &Object<'_>, draft: &mut Draft<'_>) {
    match name {
        "rest" => {
            draft.check(transport, &rules::REST);
            if transport.text("base").is_some_and(|base| base.contains("://") && !is_https(base)) {
                draft.report_rule(&rules::BASE_NOT_HTTPS, transport.at("base"));
            }
            if transport.text("base").is_some_and(|base| base.ends_with('/') || base.contains(['?', '#'])) {
                draft.report_rule(&rules::BASE_ENDING, transport.at("base"));
            }
            let rest = transport.text("invoke_path").map(|path| path.replace(PLACEHOLDER, ""));
            if rest.is_some_and(|path| path.contains('{')) {
                draft.report_rule(&rules::PLACEHOLDER_CASE, transport.at("invoke_path"));
            }
        }
        "mcp" => {
            draft.check(transport, &rules::MCP);
            // `server` may also be an identifier.
            if transport.text("server").is_some_and(|server| server.contains("://")) {
                draft.url(transport, "server");
            }
        }
        private if is_reverse_dns(private) => {}
        other => {
            let text = format!("\"{other}\" is neither registered nor named with a reverse DNS prefix");
            draft.report(&rules::TRANSPORT_UNREGISTERED, transport.pointer.clone(), text);
        }
    }
}

/// `com.example.mytransport`: at least three labels.
fn is_reverse_dns(name: &str) -> bool {
    let label_ok = |label: &str| {
        !label.is_empty()
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    name.split('.').count() >= 3 && name.split('.').all(label_ok)
}

/// Converts a transport to an interface: its address, and all other members as published.
fn interface(name: &str, transport: &Object<'_>) -> Interface {
    let (protocol, key) = match name {
        "rest" => (Protocol::Http, "base"),
        "mcp" => (Protocol::Mcp, "server"),
        _ => (Protocol::Other, "url"),
    };
    let url = transport.text(key).filter(|address| is_https(address)).map(str::to_owned);
    let settings = transport.map.iter().filter(|(member, _)| *member != key || url.is_none());
    let settings = settings.map(|(member, value)| (member.clone(), value.clone())).collect();
    let declared = draft::name(Some(name));
    Interface { declared, settings, ..Interface::new(protocol, url) }
}

fn report_unused(root: &Object<'_>, published: &Object<'_>, draft: &mut Draft<'_>) {
    let used: HashSet<&str> = root.objects("agents").flat_map(|agent| agent.texts("transports")).collect();
    for name in published.map.keys().filter(|name| !used.contains(name.as_str())) {
        draft.report(&rules::TRANSPORT_UNUSED, published.at(name), format!("no agent names \"{name}\""));
    }
}
