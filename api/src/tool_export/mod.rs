//! Compiles a capability into a tool definition for a model's runtime.
//!
//! The output depends only on the declaration and on who names its document, so the same declaration always has the same output. Undeclared
//! details are not invented. Declared risks are kept: as annotations if the shape supports them, and always in the description. A
//! capability that cannot be called from its declaration is refused with the reason.

mod name;
mod openapi;
mod references;
mod schema;
#[cfg(test)]
mod tests;
mod text;

use std::collections::BTreeSet;

use manifest::{Capability, Confirmation, Manifest, NamedBy, Publisher, SafetyClass, model::Protocol};
use serde::Serialize;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use store::StoredManifest;

pub(crate) use self::references::inlined;
use crate::value_size::bytes_left_after;

/// Maximum size of the parameters, of the response, and of the other parts of a definition, each: more than any model reads, and about
/// 8,000 parameters. A value counts as 8 bytes plus its texts.
const DECLARED_BYTES_MAX: usize = 256 * 1_024;

manifest::string_enum! {
    /// The shape of a tool definition.
    ToolShape, "tool shape" {
        /// A tool of the Model Context Protocol, 2025-11-25.
        Mcp = "mcp",
        /// A function of OpenAI's chat completions.
        OpenAi = "openai",
        /// A tool of Anthropic's messages.
        Anthropic = "anthropic",
        /// A whole OpenAPI 3.1 document with one operation.
        OpenApi = "openapi",
    }
}

/// A definition with its hash.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Tool {
    pub(crate) definition: Value,
    /// SHA-256 of the compiler's input, in hexadecimal.
    pub(crate) hash: String,
}

/// The reason why there is no definition.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refused {
    #[error("the declaration has no absolute URL to call, so no tool can be compiled from it")]
    NoAddress,
    #[error("its address is not on the public Internet, so no agent can call it")]
    NotPublic,
    #[error(
        "the declaration has an address but neither an HTTP method nor a tool name, so nothing can be \
         compiled from it alone"
    )]
    NoMethod,
    #[error(
        "it is called over {protocol}, which an OpenAPI document cannot express; request as=mcp, openai or anthropic"
    )]
    NotHttp { protocol: String },
    #[error("its address cannot be written in an OpenAPI document: {reason}")]
    Address { reason: &'static str },
    #[error(
        "its {what} take more than {} KiB, which is too much for a model; /capabilities/{{id}} has them as declared",
        DECLARED_BYTES_MAX / 1_024
    )]
    TooLarge { what: &'static str },
}

/// The parts that all shapes share.
struct Parts<'a> {
    source: Declared<'a>,
    capability: &'a Capability,
    name: String,
    /// The declared schema, with local references replaced.
    parameters: Option<Value>,
    response: Option<Value>,
    is_response_left_out: bool,
    input: Value,
}

/// A manifest, who names it and who publishes it.
#[derive(Clone, Copy)]
pub(crate) struct Declared<'a> {
    pub(crate) manifest: &'a Manifest,
    pub(crate) named_by: NamedBy,
    pub(crate) publisher: Publisher,
}

impl<'a> From<&'a StoredManifest> for Declared<'a> {
    fn from(stored: &'a StoredManifest) -> Self {
        let StoredManifest { manifest, named_by, publisher, .. } = stored;
        Self { manifest, named_by: *named_by, publisher: *publisher }
    }
}

/// Compiles one capability of a manifest.
pub(crate) fn compile(
    source: Declared<'_>,
    capability: &Capability,
    shape: ToolShape,
) -> Result<Tool, Refused> {
    let manifest = source.manifest;
    let Some(endpoint) = capability.invocation.endpoint() else {
        return Err(Refused::NoAddress);
    };
    if capability.invocation.not_public || manifest.leads_inside(endpoint) {
        return Err(Refused::NotPublic);
    }
    if !capability.is_invocable() {
        return Err(Refused::NoMethod);
    }
    refuse_too_large(manifest, capability)?;
    let response = capability.response.as_ref().filter(|response| is_small(response));
    let harmless = |schema: &Value| {
        let mut schema = inlined(schema);
        text::unstamped_value(&mut schema);
        if capability.addresses_reader { references::without_texts(&schema) } else { schema }
    };
    let parameters = capability.parameters.as_ref().map(harmless);
    let parts = Parts {
        source,
        capability,
        name: name::of(capability),
        input: schema::input(parameters.as_ref()),
        is_response_left_out: response.is_none() && capability.response.is_some(),
        response: response.map(harmless),
        parameters,
    };
    let unstamped = parts.definition(shape, None)?;
    let hash = hash_of(&unstamped);
    let definition = parts.definition(shape, Some(&hash))?;
    Ok(Tool { definition, hash })
}

fn refuse_too_large(manifest: &Manifest, capability: &Capability) -> Result<(), Refused> {
    if capability.parameters.as_ref().is_some_and(|parameters| !is_small(parameters)) {
        return Err(Refused::TooLarge { what: "parameters" });
    }
    let invocation = json_bytes(&capability.invocation);
    let auth = json_bytes(&capability.auth) + json_bytes(&manifest.auth);
    if invocation + auth > DECLARED_BYTES_MAX {
        return Err(Refused::TooLarge { what: "address, scopes and ways to authenticate" });
    }
    Ok(())
}

/// Whether a schema is small enough to be repeated.
pub(crate) fn is_small(schema: &Value) -> bool {
    bytes_left_after(schema, DECLARED_BYTES_MAX).is_some()
}

fn json_bytes(value: &impl Serialize) -> usize {
    serde_json::to_vec(value).map_or(0, |json| json.len())
}

fn hash_of(definition: &Value) -> String {
    data_encoding::HEXLOWER.encode(&Sha256::digest(definition.to_string().as_bytes()))
}

impl Parts<'_> {
    /// The definition, with its stamp once it is known.
    fn definition(&self, shape: ToolShape, hash: Option<&str>) -> Result<Value, Refused> {
        let description = text::description(self, hash);
        Ok(match shape {
            ToolShape::Mcp => self.mcp(&description, hash),
            ToolShape::OpenAi => json!({
                "type": "function",
                "function": {"name": self.name, "description": description, "parameters": self.input},
            }),
            ToolShape::Anthropic => {
                json!({"name": self.name, "description": description, "input_schema": self.input})
            }
            ToolShape::OpenApi => openapi::document(self, &description, hash)?,
        })
    }

    fn mcp(&self, description: &str, hash: Option<&str>) -> Value {
        let title = text::title(self.capability);
        let mut annotations = Map::from_iter([("title".to_owned(), Value::from(title.clone()))]);
        annotations.extend(self.hints());
        let mut tool = json!({
            "name": self.name, "title": title, "description": description, "inputSchema": self.input,
        });
        if let Some(output) = schema::output(self.response.as_ref()) {
            tool["outputSchema"] = output;
        }
        tool["annotations"] = Value::Object(annotations);
        tool["_meta"] = json!({"agentdex": self.origin(hash)});
        tool
    }

    /// The hints of MCP: absent if undeclared, so that clients assume the worst.
    fn hints(&self) -> Map<String, Value> {
        let safety = &self.capability.safety;
        let mut hints = Map::new();
        let mut hint = |name: &str, value: bool| hints.insert(name.to_owned(), Value::from(value));
        match safety.class {
            SafetyClass::Read => hint("readOnlyHint", true),
            SafetyClass::Write => hint("destructiveHint", false),
            SafetyClass::Destructive | SafetyClass::Irreversible => hint("destructiveHint", true),
            SafetyClass::Unknown => None,
        };
        if safety.class != SafetyClass::Read && self.is_idempotent() {
            hint("idempotentHint", true);
        }
        hint("openWorldHint", true);
        hints
    }

    /// Whether the call may be repeated: because of its method (RFC 9110 section 9.2.2), an idempotency key in its schema, or a hint of the
    /// MCP server for its tool.
    fn is_idempotent(&self) -> bool {
        let (contract, invocation) = (&self.capability.idempotency, &self.capability.invocation);
        let by_method = matches!(invocation.method.as_deref(), Some("PUT" | "DELETE"));
        let by_tool = invocation.protocol == Some(Protocol::Mcp);
        contract.supported == Some(true) && (by_method || by_tool || self.takes_key())
    }

    /// Whether a parameter is an idempotency key: the declared one, or one with the usual name.
    fn takes_key(&self) -> bool {
        let properties = self.parameters.as_ref().and_then(|schema| schema.get("properties"));
        let declared = self.capability.idempotency.key_field.as_deref();
        let is_key = |name: &str| {
            declared == Some(name)
                || name.to_ascii_lowercase().replace(['-', '_'], "").contains("idempotency")
        };
        properties.and_then(Value::as_object).is_some_and(|map| map.keys().any(|name| is_key(name)))
    }

    /// Machine-readable origin, invocation and effects.
    fn origin(&self, hash: Option<&str>) -> Value {
        let (capability, safety) = (self.capability, &self.capability.safety);
        let mut origin = json!({
            "capability": capability.id,
            "manifest": self.source.manifest.url,
            "content_hash": self.source.manifest.content_hash,
            "safety": safety.class,
            "safety_source": safety.source,
            "confirmation": safety.confirmation,
            "handoff": safety.handoff,
            "auth": capability.auth.schemes,
            "scopes": capability.auth.scopes,
            "invocation": capability.invocation,
        });
        for (mark, is_set) in
            [("degraded", capability.degraded), ("addresses_reader", capability.addresses_reader)]
        {
            if is_set {
                origin[mark] = Value::Bool(true);
            }
        }
        let Declared { named_by, publisher, .. } = self.source;
        if named_by == NamedBy::Others {
            origin["named_by"] = Value::from(named_by.as_str());
        }
        if publisher != Publisher::Site {
            origin["publisher"] = Value::from(publisher.as_str());
        }
        let authentication = self.source.manifest.authentication_for_agents(capability);
        if !authentication.is_empty() {
            origin["authentication"] = json!(authentication);
        }
        if let Some(message) = safety.message.as_ref().filter(|_| !capability.addresses_reader) {
            origin["confirmation_message"] = Value::from(message.as_str());
        }
        if let Some(identity) = &capability.auth.agent_identity {
            origin["agent_identity"] = json!(identity);
        }
        let session_url = capability.auth.session_url.as_deref();
        if let Some(url) = session_url.and_then(|url| self.source.manifest.address_for_agents(url)) {
            origin["session_url"] = Value::from(url);
        }
        if let Some(terms) = self.source.manifest.usage_terms() {
            origin["usage_terms"] = json!(terms);
        }
        if self.is_response_left_out {
            origin["response_left_out"] = Value::Bool(true);
        }
        text::unstamped_value(&mut origin);
        if let Some(hash) = hash {
            origin["hash"] = Value::from(format!("sha256:{hash}"));
        }
        origin
    }

    /// Whether a client must ask the user before each call: if the call does more than read, or requires confirmation. For other calls,
    /// OpenAI's clients let a person give permission once for all calls.
    fn is_consequential(&self) -> bool {
        let safety = &self.capability.safety;
        safety.confirmation == Confirmation::Required || safety.class != SafetyClass::Read
    }

    /// The sites other than the publisher's that receive the call, and those that receive credentials: sorted, each once.
    fn other_sites(&self) -> [BTreeSet<String>; 2] {
        let capability = self.capability;
        let auths = self.source.manifest.authentication_for_agents(capability);
        let of_auth = auths.iter().flat_map(|auth| {
            let flows =
                auth.flows.iter().flat_map(|flow| [&flow.authorize_url, &flow.token_url, &flow.refresh_url]);
            [&auth.authorize_url, &auth.token_url, &auth.refresh_url].into_iter().chain(flows).flatten()
        });
        let of_auth = of_auth.map(String::as_str).chain(capability.auth.session_url.as_deref());
        let other = |address: &str| {
            let address = self.source.manifest.address_for_agents(address)?;
            self.source.manifest.other_site_of(address)
        };
        [
            capability.invocation.endpoint().and_then(other).into_iter().collect(),
            of_auth.filter_map(other).collect(),
        ]
    }
}
