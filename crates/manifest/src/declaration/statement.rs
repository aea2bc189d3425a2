//! The facts of one declaration on which declarations may disagree.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::model::{Capability, CapabilityAuth, Finding, Format, Manifest, Payment, RateLimit, Safety};
use crate::name::{CapabilityId, ManifestId, ManifestUrl};
use crate::schema::required_properties;

/// Maximum number of parameters of one declaration that are compared (the first by name), and maximum bytes of the name of a parameter.
const PARAMETERS_MAX: usize = 64;
const PARAMETER_NAME_BYTES_MAX: usize = 200;
/// Maximum number of bytes of the compared parameters of one declaration, as JSON: 64 parameters with names and types of usual length take
/// half of this.
const PARAMETERS_BYTES_MAX: usize = 8 * 1024;
/// Keywords of a parameter's schema that are kept, maximum bytes of such a value, and maximum number of types in a list.
const KEYWORDS: [&str; 3] = ["type", "format", "x-in"];
const KEYWORD_BYTES_MAX: usize = 100;
const TYPES_MAX: usize = 8;
/// Estimated bytes of memory of a statement and of a parameter, without their texts.
const STATEMENT_BYTES: usize = 1_000;
const PARAMETER_BYTES: usize = 400;

/// The location of a declaration, and its facts that are compared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Statement {
    /// The capability id that the declaration would have without grouping.
    pub id: CapabilityId,
    pub native_id: String,
    pub manifest_id: ManifestId,
    pub url: ManifestUrl,
    pub format: Format,
    /// Position of the declaration; see [`Capability::pointer`].
    pub pointer: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pointer_document: Option<String>,
    pub auth: CapabilityAuth,
    pub safety: Safety,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Payment>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) rate_limit: Option<RateLimit>,
    pub(super) deprecated: bool,
    pub degraded: bool,
    pub(super) addresses_reader: bool,
    /// Parameters by name; `None` if the declaration has no parameters at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) parameters: Option<BTreeMap<String, Parameter>>,
}

/// The facts of a declaration about a parameter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Parameter {
    #[serde(rename = "required", default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_required: bool,
    /// Type, format and location.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub(super) schema: Map<String, Value>,
}

impl Parameter {
    /// The type as text; `None` if there is none.
    pub(super) fn kind(&self) -> Option<String> {
        match self.schema.get("type")? {
            Value::String(kind) => Some(kind.clone()),
            Value::Array(kinds) => Some(kinds.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("|")),
            _ => None,
        }
    }
}

impl Statement {
    pub fn of(manifest: &Manifest, capability: &Capability) -> Self {
        Self {
            id: capability.id.clone(),
            native_id: capability.native_id.clone(),
            manifest_id: manifest.id.clone(),
            url: manifest.url.clone(),
            format: manifest.format(),
            pointer: capability.pointer.clone(),
            pointer_document: capability.pointer_document.clone(),
            auth: capability.auth.clone(),
            safety: capability.safety.clone(),
            price: capability.price.clone(),
            rate_limit: capability.rate_limit.clone().or_else(|| manifest.rate_limit.clone()),
            deprecated: capability.deprecated,
            degraded: capability.degraded,
            addresses_reader: capability.addresses_reader,
            parameters: capability.parameters.as_ref().and_then(parameters),
        }
    }

    /// Estimated bytes of memory.
    pub fn bytes(&self) -> usize {
        let facts = (&self.auth, &self.safety, &self.price, &self.rate_limit);
        let facts = serde_json::to_vec(&facts).map_or(0, |json| json.len());
        let parameters = self.parameters.iter().flatten();
        let parameters: usize = parameters.map(|(name, _)| PARAMETER_BYTES + name.len()).sum();
        let document = self.pointer_document.as_ref().map_or(0, String::len);
        let place = self.native_id.len() + self.url.as_str().len() + self.pointer.len() + document;
        STATEMENT_BYTES + facts + parameters + place
    }

    /// The location of the declaration as text: the document and the pointer.
    pub(super) fn place(&self) -> String {
        let document = self.pointer_document.as_deref().unwrap_or_else(|| self.url.as_str());
        if self.pointer.is_empty() { document.to_owned() } else { format!("{document}#{}", self.pointer) }
    }

    /// A finding about the declaration.
    pub(super) fn finding(&self, rule: &crate::rule::Rule, text: String) -> Finding {
        Finding {
            code: rule.code.into(),
            severity: rule.severity,
            spec: rule.spec.into(),
            pointer: self.pointer.clone(),
            pointer_document: self.pointer_document.clone(),
            text,
            fix: rule.fix.into(),
        }
    }
}

fn parameters(schema: &Value) -> Option<BTreeMap<String, Parameter>> {
    let properties = schema.get("properties")?.as_object()?;
    let required: Vec<&str> = required_properties(schema).collect();
    let parameter = |(name, schema): (&String, &Value)| {
        let keywords = KEYWORDS.iter().filter_map(|keyword| {
            let value = schema.get(keyword).filter(|value| is_short(value))?;
            Some(((*keyword).to_owned(), value.clone()))
        });
        let is_required = required.contains(&name.as_str());
        (name.clone(), Parameter { is_required, schema: keywords.collect() })
    };
    let mut bytes = 0;
    let fits = |(name, parameter): &(String, Parameter)| {
        bytes += name.len() + serde_json::to_vec(parameter).map_or(PARAMETERS_BYTES_MAX, |json| json.len());
        bytes <= PARAMETERS_BYTES_MAX
    };
    let named = properties.iter().filter(|(name, _)| name.len() <= PARAMETER_NAME_BYTES_MAX);
    let mut sorted: Vec<(&String, &Value)> = named.collect();
    sorted.sort_unstable_by_key(|(name, _)| *name);
    Some(sorted.into_iter().take(PARAMETERS_MAX).map(parameter).take_while(fits).collect())
}

/// Whether a value is a short text or a short list of texts.
fn is_short(value: &Value) -> bool {
    match value {
        Value::String(text) => text.len() <= KEYWORD_BYTES_MAX,
        Value::Array(texts) => {
            texts.len() <= TYPES_MAX && texts.iter().all(|text| text.is_string() && is_short(text))
        }
        _ => false,
    }
}
