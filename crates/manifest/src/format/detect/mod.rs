//! Detects the dialect of a document. The body decides, the path only breaks ties, and every decision states its evidence.
//!
//! Markers are tried in the order of the table of dialects. The first hit decides; the others are kept in `also_matches`.
//! Without a hit, the A2A score decides, then markers that need a matching path, then the shape.

mod a2a;
pub(crate) mod candidate;
mod plain;

use serde::de::IgnoredAny;
use serde_json::{Map, Value};

use super::addresses::leads_to_manifest;
use super::dialects::DIALECTS;
use super::generic;
use super::outbound;
use crate::json::push_name;
use crate::model::{Detection, Format, Strength};
use candidate::{Candidate, Trust, detected};
pub(crate) use plain::text;

/// The syntax of a text.
pub(crate) enum Syntax {
    Json,
    Text,
}

/// JSON if the text begins like JSON, except for text files that begin with a Markdown link.
pub(crate) fn syntax(text: &str, path: &str) -> Syntax {
    let is_text_file = [".txt", ".md", ".yaml", ".yml"].iter().any(|ending| path.ends_with(ending));
    match text.trim_start().chars().next() {
        Some('{') => Syntax::Json,
        Some('[') if !is_text_file || is_bracketed_json(text) => Syntax::Json,
        Some('"' | '0'..='9' | '-' | 't' | 'f' | 'n')
            if !is_text_file && serde_json::from_str::<IgnoredAny>(text).is_ok() =>
        {
            Syntax::Json
        }
        _ => Syntax::Text,
    }
}

fn is_bracketed_json(text: &str) -> bool {
    let second = text.trim_start().get(1..).unwrap_or_default().trim_start().chars().next();
    matches!(second, Some('{' | '[' | '"' | ']'))
}

/// The detected dialect of a JSON document, and the part to which it applies: the whole document or the content of a wrapper.
pub(crate) struct DetectedPart<'v> {
    pub(crate) detection: Detection,
    pub(crate) body: &'v Value,
    /// Pointer of the part.
    pub(crate) pointer: String,
}

/// Deepest nesting of wrappers.
const WRAPPERS_MAX: usize = 3;

/// Detects the dialect of a JSON document or of the content of its wrapper.
pub(crate) fn json<'v>(document: &'v Value, path: &str) -> DetectedPart<'v> {
    let whole = whole(document, path);
    if let Some(only) = only_element(document, path) {
        return only;
    }
    if !matches!(whole.format, Format::Generic | Format::Opaque | Format::Pointer) {
        return DetectedPart { detection: whole, body: document, pointer: String::new() };
    }
    let (mut body, mut pointer) = (document, String::new());
    for _ in 0..WRAPPERS_MAX {
        let Some((key, inner)) =
            body.as_object().and_then(|root| wrapper(root).or_else(|| any_wrapper(root, path)))
        else {
            break;
        };
        push_name(&mut pointer, key);
        let mut detection = self::whole(inner, path);
        let is_enveloped = body.as_object().is_some_and(|root| envelope(root).is_some());
        if is_enveloped || !matches!(detection.format, Format::Generic | Format::Opaque | Format::Pointer) {
            detection
                .evidence
                .insert(0, format!("everything is inside `{}`", &pointer.trim_start_matches('/')));
            return DetectedPart { detection, body: inner, pointer };
        }
        body = inner;
    }
    DetectedPart { detection: whole, body: document, pointer: String::new() }
}

/// The only element of an array, if it is a whole manifest of a core dialect.
fn only_element<'v>(document: &'v Value, path: &str) -> Option<DetectedPart<'v>> {
    let [body] = document.as_array()?.as_slice() else { return None };
    let mut detection = object(body.as_object()?, path);
    is_whole_manifest(&detection).then(|| {
        detection.evidence.insert(0, "everything is inside an array".to_owned());
        DetectedPart { detection, body, pointer: "/0".to_owned() }
    })
}

fn is_whole_manifest(found: &Detection) -> bool {
    found.format.is_core() && found.strength == Strength::Strong
}

fn whole(value: &Value, path: &str) -> Detection {
    match value {
        Value::Object(root) => object(root, path),
        Value::Array(list) if is_about_people(list) => detected(
            Format::Unrelated,
            Strength::Weak,
            format!("the root is an array of {} elements, none of which offers anything", list.len()),
        ),
        Value::Array(list) if !list.iter().any(Value::is_object) => detected(
            Format::Opaque,
            Strength::Strong,
            format!("the root is an array of {} elements, none of them an object", list.len()),
        ),
        Value::Array(list) => {
            let objects = list.iter().filter(|item| item.is_object()).count();
            let evidence =
                format!("the root is an array of {} elements, {objects} of them objects", list.len());
            detected(Format::List, Strength::Strong, evidence)
        }
        _ => detected(
            Format::Opaque,
            Strength::Strong,
            "the root is neither an object nor an array".to_owned(),
        ),
    }
}

/// Detects the dialect of an object.
pub(crate) fn object(root: &Map<String, Value>, path: &str) -> Detection {
    let candidate = &Candidate::new(root, path);
    let mut hits = hits(candidate, |trust| trust != Trust::AtPath);
    let Some(mut detection) = hits.next() else { return without_marker(candidate) };
    let a2a = a2a::score(candidate);
    let scored = (a2a.points >= a2a::POINTS_MIN).then_some(Format::A2a);
    for format in hits.map(|hit| hit.format).chain(scored) {
        if format != detection.format && !detection.also_matches.contains(&format) {
            detection.also_matches.push(format);
        }
    }
    detection
}

/// The hits of the markers with the given trust, in the order of the dialects.
fn hits(candidate: &Candidate<'_>, tried: fn(Trust) -> bool) -> impl Iterator<Item = Detection> {
    DIALECTS.iter().flat_map(move |dialect| {
        let markers = dialect.markers.iter().filter(move |marker| tried(marker.trust));
        markers
            .filter_map(|marker| Some(detected(dialect.format, marker.strength(), (marker.test)(candidate)?)))
    })
}

fn without_marker(candidate: &Candidate<'_>) -> Detection {
    let a2a = a2a::score(candidate);
    if a2a.points >= a2a::POINTS_MIN {
        return Detection {
            evidence: a2a.evidence,
            ..detected(Format::A2a, Strength::Strong, String::new())
        };
    }
    if let Some(detection) = hits(candidate, |trust| trust == Trust::AtPath).next() {
        return detection;
    }
    if a2a.points > 0 && a2a::is_card_path(candidate) && candidate.objects("skills").is_some() {
        return Detection {
            evidence: a2a.evidence,
            ..detected(Format::A2a, Strength::Medium, String::new())
        };
    }
    if a2a::is_card_path(candidate) && a2a::is_without_skills(candidate) {
        let evidence = "a card of A2A whose `skills` are empty".to_owned();
        return detected(Format::A2a, Strength::Medium, evidence);
    }
    by_shape(candidate)
}

fn by_shape(candidate: &Candidate<'_>) -> Detection {
    if let Some(evidence) = pointer(candidate) {
        return detected(Format::Pointer, Strength::Medium, evidence);
    }
    let listed = generic::first_list(candidate.root);
    if let Some(key) = listed.as_deref().filter(|key| lists_people(candidate, key)) {
        let evidence = format!("`{key}` lists people: names with ways to reach them, and nothing to call");
        return detected(Format::Unrelated, Strength::Weak, evidence);
    }
    if let Some(key) = listed {
        return detected(
            Format::Generic,
            Strength::Weak,
            format!("no known marker; `{key}` is a list or a map"),
        );
    }
    if generic::is_call(candidate.root) {
        let evidence = "no known marker; a method beside an address".to_owned();
        return detected(Format::Generic, Strength::Weak, evidence);
    }
    if wrapper(candidate.root).is_some() {
        let evidence = "no known marker; everything is inside one member".to_owned();
        return detected(Format::Generic, Strength::Weak, evidence);
    }
    if let Some(key) = generic::first_call(candidate.root) {
        let evidence = format!("no known marker; `{key}` is the address of a call");
        return detected(Format::Generic, Strength::Weak, evidence);
    }
    if let Some(names) = outbound::first_declaration(candidate.root) {
        let evidence =
            format!("no list of capabilities; `{names}` is the address of a declaration or a server");
        return detected(Format::Pointer, Strength::Weak, evidence);
    }
    detected(Format::Opaque, Strength::Weak, "no known marker and no list of capabilities".to_owned())
}

/// Members of elements that can be called or read.
const CALLABLE_KEYS: &[&str] = &[
    "url",
    "endpoint",
    "endpoints",
    "href",
    "uri",
    "link",
    "path",
    "api",
    "card",
    "agent_card",
    "agentCard",
    "manifest",
    "skills",
    "capabilities",
    "tools",
    "actions",
    "services",
    "intents",
    "method",
    "protocol",
    "protocols",
    "mcp",
    "a2a",
    "inputs",
    "input",
    "parameters",
    "transport",
    "server",
    "command",
    "prompt",
    "instructions",
];
/// Members that describe people, not services.
const PERSONAL: &[&str] = &[
    "email",
    "phone",
    "mobile",
    "affiliation",
    "room",
    "license",
    "licence",
    "license_number",
    "first_name",
    "last_name",
    "firstName",
    "lastName",
    "birthday",
    "age",
];

fn has_any(element: &Value, names: &[&str]) -> bool {
    names.iter().any(|name| element.get(name).is_some())
}

/// A list of objects that cannot be called or read: estate agents, characters of a game.
fn is_about_people(list: &[Value]) -> bool {
    !list.is_empty() && list.iter().all(|element| element.is_object() && !has_any(element, CALLABLE_KEYS))
}

/// Whether a member that services also use (`agents`, `data`) lists people: only if a personal member is present.
fn lists_people(candidate: &Candidate<'_>, key: &str) -> bool {
    matches!(key, "agents" | "data")
        && candidate.list(key).is_some_and(|list| {
            is_about_people(list) && list.iter().any(|element| has_any(element, PERSONAL))
        })
}

/// The member that contains the whole document, such as `{"agent": {…}}`.
fn wrapper(root: &Map<String, Value>) -> Option<(&str, &Value)> {
    if let Some(signed) = envelope(root) {
        return Some(signed);
    }
    ["agent", "manifest", "mcp", "card", "agentCard", "agent_card"].into_iter().find_map(|key| {
        let inner = root.get(key)?;
        (inner.is_object() && root.len() <= 3).then_some((key, inner))
    })
}

/// The signed document of an envelope: `{"document": {…}, "signatures": […]}`.
fn envelope(root: &Map<String, Value>) -> Option<(&str, &Value)> {
    let is_signed = ["signature", "signatures", "proof"].iter().any(|key| root.contains_key(*key));
    let (key, inner) = ["document", "payload"].iter().find_map(|key| Some((*key, root.get(*key)?)))?;
    let is_document = inner.get("name").is_some_and(Value::is_string);
    (is_signed && is_document && root.len() <= 6).then_some((key, inner))
}

/// A member of any name that contains a whole manifest of a core dialect, or a member that does.
fn any_wrapper<'v>(root: &'v Map<String, Value>, path: &str) -> Option<(&'v str, &'v Value)> {
    wrapper_within(root, path, WRAPPERS_MAX)
}

fn wrapper_within<'v>(
    root: &'v Map<String, Value>,
    path: &str,
    depth: usize,
) -> Option<(&'v str, &'v Value)> {
    let depth = depth.checked_sub(1)?;
    let few = root.iter().filter(|_| root.len() <= 3);
    few.map(|(key, inner)| (key.as_str(), inner)).find(|(_, inner)| {
        inner.as_object().is_some_and(|inner| {
            is_whole_manifest(&object(inner, path)) || wrapper_within(inner, path, depth).is_some()
        })
    })
}

/// Members with which a pointer document describes itself.
const POINTER_WORDS: &[&str] =
    &["name", "description", "version", "$schema", "schema", "title", "note", "comment"];

/// Evidence of a document that contains only addresses of other documents.
fn pointer(candidate: &Candidate<'_>) -> Option<String> {
    let mut leads = 0;
    for (key, value) in candidate.root {
        match value {
            Value::String(text) if leads_to_manifest(text) => leads += 1,
            _ if POINTER_WORDS.contains(&key.as_str()) => {}
            _ => return None,
        }
    }
    (leads > 0).then(|| format!("nothing but {leads} addresses of other documents"))
}
