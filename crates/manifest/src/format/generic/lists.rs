//! The members of a document that list services.

use serde_json::{Map, Value};

use super::asides::PROSE_KEYS;
use super::element::{ADDRESS_KEYS, REQUEST_KEYS, published_address};
use super::other_shapes;
use crate::address;
use crate::format::lenient::{AUTH_KEYS, is_scheme, names_scheme};
use crate::format::outbound::{self, RELATED_WORDS, is_about_calls};
use crate::format::{described_block, mcp};
use crate::model::CapabilityKind;
use crate::object::{Members, Object};
use crate::text;

/// Members that list the capabilities of a service, the most specific first.
pub(super) const SERVICE_KEYS: &[&str] = &[
    "actions",
    "tools",
    "capabilities",
    "endpoints",
    "skills",
    "services",
    "flows",
    "intents",
    "interfaces",
    "data",
    "agents",
    "apis",
    "operations",
    "resources",
    "prompts",
    "tasks",
    "functions",
];
/// Members that may list calls. Only elements that describe a call are read.
const CALL_LIST_KEYS: &[&str] = &["commands", "routes", "methods"];
/// Lists that often do not contain services. They are read only if no other list is found.
const FALLBACK_KEYS: &[&str] = &["interfaces", "data", "resources", "prompts"];
/// Last words of names such as `publicOperations`, `free_endpoints` and `mcp_tools`.
const LAST_WORDS: &[&str] = &["actions", "tools", "endpoints", "skills", "apis", "operations", "tasks"];
/// Words in the names of lists whose elements cannot be called.
const DENYING_WORDS: &[&str] = &[
    "disallowed",
    "forbidden",
    "prohibited",
    "denied",
    "blocked",
    "excluded",
    "unsupported",
    "restricted",
    "deprecated",
    "removed",
    "not",
];

/// Maximum nesting at which detection searches for lists.
const DETECTION_NESTING_MAX: usize = 3;

/// Whether a list with this word in its name contains no calls, or the calls of other services.
fn is_denying(word: &str) -> bool {
    DENYING_WORDS.contains(&word) || RELATED_WORDS.contains(&word)
}

/// Whether a list of this name contains calls that are not offered.
pub(super) fn denies(name: &str) -> bool {
    let mut denies = false;
    text::each_word(name, |word| denies |= DENYING_WORDS.contains(&word));
    denies
}

/// Bytes of the shortest word for other services.
const RELATED_BYTES_MIN: usize = 5;

/// Whether a member is about other services: `related_services`, `partners`.
pub(super) fn is_of_others(name: &str) -> bool {
    // Most names are shorter than any of the words.
    if name.len() < RELATED_BYTES_MIN {
        return false;
    }
    let mut found = false;
    text::each_word(name, |word| found |= RELATED_WORDS.contains(&word));
    found
}

/// The kind of a list's elements, by the name of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ListKind(&'static str);

impl ListKind {
    /// The kind of a list; `None` if the name is not a name for lists of services.
    pub(super) fn of(name: &str) -> Option<Self> {
        if !name.ends_with(['s', 'S']) && name != "data" {
            return None;
        }
        if let Some(key) = SERVICE_KEYS.iter().chain(CALL_LIST_KEYS).find(|key| **key == name) {
            return Some(Self(key));
        }
        let (mut last, mut denies) = (String::new(), false);
        text::each_word(name, |word| {
            denies |= is_denying(word);
            word.clone_into(&mut last);
        });
        LAST_WORDS.iter().find(|word| **word == last && !denies).map(|word| Self(word))
    }

    pub(super) const fn of_capabilities() -> Self {
        Self("capabilities")
    }

    pub(super) const fn of_tools() -> Self {
        Self("tools")
    }

    pub(super) const fn of_operations() -> Self {
        Self("operations")
    }

    pub(super) fn is_capabilities(self) -> bool {
        self.0 == "capabilities"
    }

    pub(super) const fn key(self) -> &'static str {
        self.0
    }

    pub(super) fn is_fallback(self) -> bool {
        FALLBACK_KEYS.contains(&self.0)
    }

    /// Whether names in a list of this kind are not capabilities.
    pub(super) fn is_of_calls(self) -> bool {
        CALL_LIST_KEYS.contains(&self.0)
    }

    pub(super) fn is_flows(self) -> bool {
        self.0 == "flows"
    }

    pub(super) fn is_agents(self) -> bool {
        self.0 == "agents"
    }

    pub(super) fn is_skills(self) -> bool {
        self.0 == "skills"
    }

    pub(super) fn is_resources(self) -> bool {
        self.0 == "resources"
    }

    pub(super) fn is_tools(self) -> bool {
        self.0 == "tools"
    }

    /// The kind of an element that is described.
    pub(super) fn of_object(self) -> CapabilityKind {
        match self.0 {
            "actions" | "intents" | "tasks" | "commands" => CapabilityKind::Action,
            "tools" | "functions" => CapabilityKind::Tool,
            "endpoints" | "apis" | "operations" | "services" | "interfaces" | "routes" | "methods" => {
                CapabilityKind::Operation
            }
            "skills" => CapabilityKind::Skill,
            "agents" => CapabilityKind::Agent,
            "flows" => CapabilityKind::Flow,
            "resources" => CapabilityKind::Resource,
            "prompts" => CapabilityKind::Content,
            "data" => CapabilityKind::Dataset,
            _ => CapabilityKind::Unknown,
        }
    }

    /// The kind of an element that is an address.
    pub(super) fn of_address(self) -> CapabilityKind {
        match self.of_object() {
            CapabilityKind::Unknown => CapabilityKind::Operation,
            kind => kind,
        }
    }

    /// The kind of an element that is only a name.
    pub(super) fn of_name(self) -> CapabilityKind {
        match self.0 {
            "tools" | "functions" | "prompts" | "resources" => self.of_object(),
            _ => CapabilityKind::Unknown,
        }
    }
}

/// Members of an element that can be called or read.
const CALL_KEYS: &[&str] = &[
    "path",
    "url",
    "endpoint",
    "href",
    "uri",
    "api",
    "method",
    "methods",
    "http_method",
    "url_template",
    "endpoint_url",
    "entry_point",
    "entryPoint",
    "route",
    "inputSchema",
    "input_schema",
    "parameters",
    "params",
    "inputs",
    "input",
];

/// Whether an object describes one service: it has an address, a method or parameters, or a name with a description.
pub(super) fn is_described(map: &Map<String, Value>) -> bool {
    let members = Members::of(map);
    let is_text = |key: &str| members.get(key).is_some_and(Value::is_string);
    CALL_KEYS.iter().any(|key| members.get(key).is_some_and(|value| !value.is_null()))
        || (["name", "id", "title"].into_iter().any(is_text)
            && ["description", "summary", "purpose"].into_iter().any(is_text))
}

/// Minimum number of words of a text that describes a capability. Shorter texts are values.
const SENTENCE_WORDS_MIN: usize = 5;

/// Whether a member of a map of capabilities is a setting by its shape: names, a value of few words, or members without a call or a
/// description. `"payment_protocols": ["x402"]`, `"payment_network": "Base L2"`, `"identity": {"standard": "ERC-8004"}`.
pub(super) fn is_setting(name: &str, value: &Value) -> bool {
    match value {
        Value::Array(list) if ListKind::of(name).is_none() => {
            let is_name = |item: &Value| item.as_str().is_some_and(|text| published_address(text).is_none());
            list.iter().all(is_name)
        }
        Value::String(text) => {
            published_address(text).is_none() && text.split_whitespace().nth(SENTENCE_WORDS_MIN - 1).is_none()
        }
        Value::Object(map) if ListKind::of(name).is_none() => {
            !is_declared(map) && !is_described(map) && !holds_elements(map)
        }
        _ => false,
    }
}

/// Whether a member of a map is a list of services, or describes a capability or its call.
pub(super) fn declares(value: &Value) -> bool {
    let is_declared = |value: &Value| {
        value.as_object().is_some_and(|map| is_declared(map) || is_described(map) || holds_elements(map))
    };
    has_groups(value) || value.as_object().is_some_and(|map| map.values().any(is_declared))
}

/// Whether a map contains addresses, calls or lists of objects.
fn holds_elements(map: &Map<String, Value>) -> bool {
    map.values().any(|value| match value {
        // An absolute address may belong to a page.
        Value::String(text) => text.starts_with('/') && published_address(text).is_some(),
        Value::Array(list) => {
            let mut inner = list.iter().filter_map(Value::as_object);
            inner.any(|map| is_declared(map) || is_described(map))
        }
        Value::Object(inner) => is_declared(inner) || is_described(inner),
        _ => false,
    })
}

/// Whether an object has the address of its own call, or a description.
pub(super) fn is_declared(map: &Map<String, Value>) -> bool {
    is_call_object(map) || ["description", "summary", "endpoint"].iter().any(|key| map.contains_key(*key))
}

/// Whether a member of a map of capabilities states credentials or limits instead of a capability.
pub(super) fn is_access(name: &str, value: &Value) -> bool {
    let is_limit = name.starts_with("rate_limit") || name.starts_with("rateLimit");
    let is_auth = AUTH_KEYS.contains(&name);
    let states = |map: &Map<String, Value>| {
        let keys = ["type", "scheme", "schemes", "methods", "types", "required"];
        !is_call_object(map) && (keys.iter().any(|key| map.contains_key(*key)) || !is_described(map))
    };
    match value {
        Value::Object(map) => (is_limit || is_auth) && states(map),
        Value::Array(_) => is_auth,
        Value::String(text) => is_limit || (is_auth && (is_scheme(value) || names_scheme(text))),
        _ => false,
    }
}

/// Whether a list contains protocol features of an MCP server (`["tools", "prompts"]`) instead of capabilities.
pub(super) fn names_mcp_features(value: &Value) -> bool {
    let is_feature = |item: &Value| item.as_str().is_some_and(|name| mcp::FEATURES.contains(&name));
    value.as_array().is_some_and(|list| !list.is_empty() && list.iter().all(is_feature))
}

/// Whether an object with this pointer is a block of credentials.
pub(super) fn is_in_auth(pointer: &str) -> bool {
    pointer.rsplit('/').next().is_some_and(|name| AUTH_KEYS.contains(&name))
}

/// Whether a list contains a name of several words, which is an identifier and not the value of a field. True for elements other than
/// names.
pub(super) fn has_identifier(value: &Value) -> bool {
    let is_single = |name: &Value| {
        let mut words = 0;
        text::each_word(name.as_str().unwrap_or("an object"), |_| words += 1);
        words < 2
    };
    value.as_array().is_none_or(|list| !list.iter().all(is_single))
}

/// Maximum number of accounts that are read from the lists of endpoints of one document.
pub(super) const ACCOUNTS_MAX: usize = 20;

/// Whether the name of a list says that its elements are tools of an MCP server, even if they are only names.
pub(super) fn names_mcp_tools(name: &str) -> bool {
    matches!(name, "mcp_tools" | "mcpTools" | "mcp-tools")
}

/// Whether a map contains flags, so that its members are features.
pub(super) fn has_flags(value: &Value) -> bool {
    value.as_object().is_some_and(|map| map.values().any(Value::is_boolean))
}

/// Whether every member is a call: a method and an address.
pub(super) fn is_map_of_calls(map: &Map<String, Value>) -> bool {
    let is_call = |value: &Value| {
        value.as_str().and_then(published_address).is_some_and(|(method, _)| method.is_some())
    };
    let is_prose = |name: &String| PROSE_KEYS.contains(&name.as_str());
    !map.is_empty() && map.values().all(is_call) && !map.keys().all(is_prose)
}

/// Whether every member is an address, with or without a method, or the description of a call.
pub(super) fn is_group_of_calls(map: &Map<String, Value>) -> bool {
    let is_call = |(name, value): &(&String, &Value)| match value {
        Value::String(text) => published_address(text).is_some(),
        Value::Object(call) => !is_part_of_call(name) && is_call_object(call),
        _ => false,
    };
    // A description next to the calls describes the group.
    let is_prose =
        |(name, value): &(&String, &Value)| PROSE_KEYS.contains(&name.as_str()) && value.is_string();
    map.iter().any(|member| is_call(&member))
        && map.iter().all(|member| is_call(&member) || is_prose(&member))
}

/// Members of an element that describe its own call.
pub(super) fn is_part_of_call(name: &str) -> bool {
    CALL_KEYS.contains(&name) || REQUEST_KEYS.contains(&name) || name == "mcp"
}

/// The members of a tool in the form of a model's function, `{"type": "function", "function": {"name": …}}`, merged with those of the
/// enclosing object, which take precedence. `None` for another element.
pub(super) fn of_function(map: &Map<String, Value>) -> Option<Map<String, Value>> {
    let function = map.get("function")?.as_object().filter(|function| function.contains_key("name"))?;
    let around = map.iter().filter(|(name, _)| *name != "function" && *name != "type");
    Some(function.iter().chain(around).map(|(name, value)| (name.clone(), value.clone())).collect())
}

/// Whether an object has an address and a method.
pub(crate) fn is_call_object(map: &Map<String, Value>) -> bool {
    let members = Members::of(map);
    let text = |keys: &[&str]| keys.iter().find_map(|key| members.get(key)?.as_str());
    let keys = ["path", "url", "endpoint", "href", "target", "urlTemplate", "url_template"];
    let Some((prefixed, _)) = text(&keys).and_then(published_address) else {
        return false;
    };
    let method = text(&["method", "http_method", "httpMethod"]).map(str::to_ascii_uppercase);
    prefixed.is_some() || method.is_some_and(|method| address::is_method(&method))
}

/// Whether the address of an element is a pattern.
pub(super) fn has_pattern(object: &Object<'_>) -> bool {
    object.text_of(ADDRESS_KEYS.within(object)).is_some_and(address::is_pattern)
}

/// Whether a list of any name contains only calls. False for lists that are named after examples, or after calls that are not offered.
pub(super) fn is_list_of_calls(name: &str, value: &Value) -> bool {
    let is_call = |item: &Value| {
        item.as_object().is_some_and(|map| is_call_object(map) || call_by_shape(map).is_some())
    };
    let mut denies = is_about_calls(name);
    text::each_word(name, |word| denies |= is_denying(word));
    !denies && value.as_array().is_some_and(|list| !list.is_empty() && list.iter().all(is_call))
}

/// The members of a call with names in another language or specific to the site, recognised by their values: one text is an HTTP method and
/// one is a path. They get the usual names, and the longest sentence is the description.
pub(super) fn call_by_shape(map: &Map<String, Value>) -> Option<Map<String, Value>> {
    let texts = || map.iter().filter_map(|(name, value)| Some((name, value.as_str()?)));
    let is_path = |text: &str| {
        text.len() > 1
            && text.starts_with('/')
            && !text.contains(char::is_whitespace)
            && !text.starts_with("//")
    };
    let only = |is_wanted: &dyn Fn(&str) -> bool| {
        let mut found = texts().filter(|(_, text)| is_wanted(text));
        found.next().filter(|_| found.next().is_none()).map(|(name, _)| name)
    };
    let method = only(&|text| address::is_method(text))?;
    // The address of a page is not the address of a call.
    let leads = |name: &String| {
        let path = map.get(name).and_then(Value::as_str).unwrap_or_default();
        outbound::target(&[name], path).is_some() || is_about_calls(name)
    };
    let path = only(&is_path).filter(|name| !leads(name))?;
    let sentence = texts()
        .filter(|(_, text)| text.split_whitespace().nth(2).is_some())
        .max_by_key(|(_, text)| text.len());
    let rename = |(name, value): (&String, &Value)| {
        let usual = match name {
            _ if name == method => "method",
            _ if name == path => "path",
            _ if !map.contains_key("description") && sentence.is_some_and(|(known, _)| known == name) => {
                "description"
            }
            _ => name,
        };
        (usual.to_owned(), value.clone())
    };
    (!is_call_object(map)).then(|| map.iter().map(rename).collect())
}

/// Whether every member is an HTTP method, as below the paths of OpenAPI.
pub(super) fn is_map_of_methods(map: &Map<String, Value>) -> bool {
    !map.is_empty() && map.keys().all(|name| address::is_method_in_any_case(name))
}

/// Whether the members of a map are lists of services (`tools`, `prompts`), not services.
pub(super) fn has_groups(value: &Value) -> bool {
    let is_group = |(name, value): (&String, &Value)| {
        ListKind::of(name).is_some() && value.as_array().is_some_and(|list| !list.is_empty())
    };
    value.as_object().is_some_and(|map| map.iter().any(is_group))
}

/// The name of the first list of services of a document, at the root or below.
pub(crate) fn first_list(root: &Map<String, Value>) -> Option<String> {
    let is_filled = |value: &Value| match value {
        Value::Array(list) => !list.is_empty(),
        Value::Object(map) => !map.is_empty(),
        _ => false,
    };
    let members = Members::of(root);
    let known = SERVICE_KEYS.iter().find(|key| members.get(key).is_some_and(is_filled));
    let of_names = || {
        let is_names = |list: &[Value]| !list.is_empty() && list.iter().all(Value::is_string);
        let known = described_block::BLOCKS_OF_NAMES.iter().copied().find(|(block, key)| {
            root.get(*block).and_then(|block| block.get(*key)?.as_array()).is_some_and(|list| is_names(list))
        });
        known
            .or_else(|| Some((described_block::name_of(root)?, "capabilities")))
            .or_else(|| described_block::with_names(root).next())
    };
    known
        .map(|key| (*key).to_owned())
        .or_else(|| first_of_operations(root, 0))
        .or_else(|| of_names().map(|(block, key)| [block, ".", key].concat()))
}

/// The name of the first list that contains something to call.
fn first_of_operations(map: &Map<String, Value>, depth: usize) -> Option<String> {
    map.iter().find_map(|(name, value)| match ListKind::of(name).filter(|kind| !kind.is_fallback()) {
        Some(_) => holds_operations(name, value).then(|| name.clone()),
        None if is_list_of_calls(name, value) => Some(name.clone()),
        None if value.as_array().is_some_and(|list| other_shapes::is_list_of_texts(list))
            && !is_about_calls(name) =>
        {
            Some(name.clone())
        }
        None if depth < DETECTION_NESTING_MAX && !is_about_calls(name) && !is_of_others(name) => {
            first_of_operations(value.as_object()?, depth + 1)
        }
        None => None,
    })
}

fn holds_operations(name: &str, value: &Value) -> bool {
    let is_operation = |item: &Value| match item {
        Value::Object(map) => is_described(map),
        Value::String(text) => published_address(text).is_some_and(|(method, _)| method.is_some()),
        _ => false,
    };
    match value {
        Value::Array(list) => list.iter().any(is_operation),
        Value::Object(map) => map.values().any(is_operation) || other_shapes::holds_calls(name, map),
        _ => false,
    }
}
