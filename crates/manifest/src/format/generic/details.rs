//! Reads the members of an element next to its call: tags, examples, dependencies, effects.

use serde_json::{Map, Value};

use super::element::Context;
use crate::auth;
use crate::draft;
use crate::format::{call_examples, header, lenient, mcp, needed_credentials, request_headers};
use crate::model::{
    AuthScheme, Capability, CapabilityAuth, Confirmation, Cost, Payment, SafetyClass, Tristate,
};
use crate::object::{Object, texts};
use crate::safety;

const TAG_KEYS: &[&str] =
    &["tags", "category", "categories", "primary_category", "primaryCategory", "keywords", "topics"];
const EXAMPLE_KEYS: &[&str] = &[
    "examples",
    "example",
    "example_prompts",
    "examplePrompts",
    "example_queries",
    "exampleQueries",
    "sample_prompts",
    "sample_queries",
    "use_cases",
    "useCases",
    "utterances",
    "triggers",
];
/// Members of an example with the request in words.
const EXAMPLE_TEXT_KEYS: &[&str] =
    &["prompt", "query", "question", "text", "user", "description", "title", "name"];
/// Maximum number of examples of one element that are read.
const EXAMPLES_MAX: usize = 64;
const DEPENDENCY_KEYS: &[&str] = &["depends_on", "dependsOn", "dependencies", "prerequisites"];
const CONFIRMATION_KEYS: &[&str] = &[
    "requires_confirmation",
    "requiresConfirmation",
    "confirmation_required",
    "confirmationRequired",
    "requires_human_confirmation",
    "requires_human_approval",
    "requires_approval",
    "requiresApproval",
    "human_approval_required",
    "human_in_the_loop",
];
const READ_KEYS: &[&str] = &["read_only", "readOnly", "readonly"];

/// Reads the details of an element into its capability.
pub(super) fn read(object: &Object<'_>, capability: &mut Capability) {
    let stated = ["skills", "capabilities"].iter().filter_map(|key| object.value(key)).flat_map(texts);
    let stated = stated.flat_map(|skills| skills.split(',')).map(str::trim).filter(|skill| !skill.is_empty());
    capability.tags = draft::tags(TAG_KEYS.iter().flat_map(|key| object.texts(key)).chain(stated));
    capability.examples =
        draft::tags(EXAMPLE_KEYS.iter().filter_map(|key| object.value(key)).flat_map(examples));
    let is_id = |text: &&str| !text.contains(char::is_whitespace);
    let needed =
        DEPENDENCY_KEYS.iter().filter_map(|key| object.list(key)).flatten().filter_map(Value::as_str);
    capability.depends_on = draft::tags(needed.filter(is_id));
    capability.version = draft::name(object.text("version"));
    capability.published.extend(mcp::payable_id(object));
    capability.published.extend(call_examples::shown(object));
    read_effects(object, capability);
}

/// Effects that are flags of the element itself.
fn read_effects(object: &Object<'_>, capability: &mut Capability) {
    let flag = |keys: &[&str]| keys.iter().find_map(|key| object.flag(key));
    let class = match (flag(READ_KEYS), flag(&["destructive"])) {
        (_, Some(true)) => Some(SafetyClass::Destructive),
        (Some(true), _) => Some(SafetyClass::Read),
        (Some(false), _) => Some(SafetyClass::Write),
        _ => access(object),
    };
    if let Some(class) = class {
        capability.safety = safety::declared(class);
    }
    if flag(CONFIRMATION_KEYS) == Some(true) {
        capability.safety.confirmation = Confirmation::Required;
    }
}

/// Adds the description and the media type of the response that an element states in members of their own.
pub(super) fn describe_response(object: &Object<'_>, capability: &mut Capability) {
    let described = object.text_of(&["response_description", "responseDescription"]);
    let is_media_type = |text: &&str| {
        let types = ["application/", "text/", "image/", "audio/", "video/"];
        types.iter().any(|start| text.starts_with(start)) && text.len() <= draft::NAME_BYTES_MAX
    };
    let media_type = object.text("type").filter(is_media_type);
    if described.is_none() && media_type.is_none() {
        return;
    }
    let response = capability.response.get_or_insert_with(|| Value::Object(Map::new()));
    let Some(response) = response.as_object_mut() else { return };
    if let Some(text) = draft::description(described) {
        response.entry("description").or_insert_with(|| Value::from(text));
    }
    if let Some(media_type) = media_type {
        response.entry("x-media-type").or_insert_with(|| Value::from(media_type));
    }
}

/// The effect that an element states in a word: `"access": "read"`.
fn access(object: &Object<'_>) -> Option<SafetyClass> {
    match object.text_of(&["access", "access_mode", "accessMode"])? {
        "read" | "read-only" | "read_only" | "readonly" => Some(SafetyClass::Read),
        "write" | "read-write" | "read_write" | "readwrite" => Some(SafetyClass::Write),
        _ => None,
    }
}

/// Requests in words: a text, a list of texts, or objects with a text.
fn examples(value: &Value) -> Vec<&str> {
    let of_object = |item| EXAMPLE_TEXT_KEYS.iter().find_map(|key| Value::as_str(Value::get(item, *key)?));
    match value {
        Value::Array(list) => {
            let objects = list.iter().take(EXAMPLES_MAX).filter(|item| item.is_object());
            texts(value).into_iter().chain(objects.filter_map(of_object)).collect()
        }
        Value::String(_) => texts(value),
        _ => Vec::new(),
    }
}

/// Marks a call as paid if it names its payment scheme: `"payment_method": "x402"`.
fn read_payment(object: &Object<'_>, capability: &mut Capability) {
    let named = object.text_of(&["payment_method", "paymentMethod", "payment_protocol", "paymentProtocol"]);
    let Some(scheme) = named.filter(|word| auth::scheme(word) == AuthScheme::Payment) else { return };
    let is_free = capability.price.as_ref().and_then(Payment::cost) == Some(Cost::Free);
    if let Some(price) = capability.price.as_mut().filter(|price| price.scheme.is_none()) {
        price.scheme = draft::name(Some(scheme));
    }
    if capability.auth == CapabilityAuth::default() && !is_free {
        capability.auth.required = Tristate::Yes;
        capability.auth.schemes.push(AuthScheme::Payment);
    }
}

/// Reads credentials, price, limits and status.
pub(super) fn read_access(object: &Object<'_>, context: &Context, capability: &mut Capability) {
    capability.deprecated = object.flag("deprecated").unwrap_or_default();
    if let Some(annotations) = object.object("annotations") {
        mcp::annotate(annotations.map, capability);
    }
    if let Some(scopes) = object.value("scopes") {
        capability.auth.scopes = draft::tags(texts(scopes));
    }
    capability.auth.required = context.needed(capability);
    lenient::read_own_auth(object, &mut capability.auth);
    lenient::read_prices(object, capability);
    read_payment(object, capability);
    request_headers::set_by_headers(object, &mut capability.auth);
    needed_credentials::set_described(capability);
    let limit = object.value_of(header::LIMIT_KEYS);
    capability.rate_limit = limit.and_then(lenient::rate_limit);
    let rates = limit.and_then(lenient::rates_of);
    capability.published.extend(rates.map(|rates| ("rate_limits".to_owned(), rates)));
}
