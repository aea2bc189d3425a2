//! Which dialect a document is written in. The body decides; the path only breaks ties; every decision names its
//! evidence.
//!
//! Strong markers are tried in the order of [`table::TABLE`]: the first hit wins and the others are kept as
//! `also_matches`. Without one, A2A is scored, then medium markers count where the path agrees, then the shape.

mod a2a;
mod table;
mod text;

use serde_json::{Map, Value};

use crate::address;
use crate::model::{Detection, Format, Strength};
pub(crate) use text::text;

/// What is looked at: the root object and the name of the file it was served as.
pub(crate) struct Candidate<'c> {
    pub(crate) root: &'c Map<String, Value>,
    pub(crate) path: &'c str,
}

impl<'c> Candidate<'c> {
    pub(crate) fn text(&self, key: &str) -> Option<&'c str> {
        self.root.get(key)?.as_str()
    }

    pub(crate) fn object(&self, key: &str) -> Option<&'c Map<String, Value>> {
        self.root.get(key)?.as_object()
    }

    pub(crate) fn list(&self, key: &str) -> Option<&'c [Value]> {
        self.root.get(key)?.as_array().map(Vec::as_slice)
    }

    pub(crate) fn has(&self, key: &str) -> bool {
        self.root.get(key).is_some_and(|value| !value.is_null())
    }

    /// Whether a list holds objects, which is more than a list of names.
    pub(crate) fn objects(&self, key: &str) -> Option<&'c [Value]> {
        self.list(key).filter(|list| list.first().is_some_and(Value::is_object))
    }

    /// The last segment of the path, and the whole path for names that need their folder.
    pub(crate) fn is_file(&self, names: &[&str]) -> bool {
        names.iter().any(|name| self.path.ends_with(name))
    }
}

/// What kind of syntax a text has to be read as.
pub(crate) enum Syntax {
    Json,
    Text,
}

/// JSON when it begins like JSON, or when it is empty of anything else that is known; files that are named as text and
/// begin with a Markdown link are text.
pub(crate) fn syntax(text: &str, path: &str) -> Syntax {
    let is_text_file = [".txt", ".md", ".yaml", ".yml"].iter().any(|ending| path.ends_with(ending));
    match text.trim_start().chars().next() {
        Some('{') => Syntax::Json,
        Some('[') if !is_text_file || is_bracketed_json(text) => Syntax::Json,
        Some('"' | '0'..='9' | '-') if !is_text_file && serde_json::from_str::<Value>(text).is_ok() => {
            Syntax::Json
        }
        _ => Syntax::Text,
    }
}

fn is_bracketed_json(text: &str) -> bool {
    let second = text.trim_start().get(1..).unwrap_or_default().trim_start().chars().next();
    matches!(second, Some('{' | '[' | '"' | ']'))
}

/// Detects the dialect of a JSON document.
pub(crate) fn json(value: &Value, path: &str) -> Detection {
    match value {
        Value::Object(root) => object(&Candidate { root, path }),
        Value::Array(list) => {
            let objects = list.iter().filter(|item| item.is_object()).count();
            let evidence =
                format!("the root is an array of {} elements, {objects} of them objects", list.len());
            found(Format::List, Strength::Strong, evidence)
        }
        _ => found(Format::Opaque, Strength::Strong, "the root is neither an object nor an array".to_owned()),
    }
}

fn object(candidate: &Candidate<'_>) -> Detection {
    let mut hits = table::TABLE.iter().filter_map(|row| Some((row, (row.test)(candidate)?)));
    let Some((row, evidence)) = hits.next() else { return without_marker(candidate) };
    let mut also_matches: Vec<Format> = Vec::new();
    let a2a = a2a::score(candidate);
    let scored = (a2a.points >= a2a::POINTS_MIN).then_some(Format::A2a);
    for format in hits.map(|(row, _)| row.format).chain(scored) {
        if format != row.format && !also_matches.contains(&format) {
            also_matches.push(format);
        }
    }
    Detection { also_matches, ..found(row.format, row.strength, evidence) }
}

fn without_marker(candidate: &Candidate<'_>) -> Detection {
    let a2a = a2a::score(candidate);
    if a2a.points >= a2a::POINTS_MIN {
        return Detection { evidence: a2a.evidence, ..found(Format::A2a, Strength::Strong, String::new()) };
    }
    if let Some((row, evidence)) = table::BY_PATH.iter().find_map(|row| Some((row, (row.test)(candidate)?))) {
        return found(row.format, row.strength, evidence);
    }
    if a2a.points > 0 && a2a::is_card_path(candidate) && candidate.objects("skills").is_some() {
        return Detection { evidence: a2a.evidence, ..found(Format::A2a, Strength::Medium, String::new()) };
    }
    by_shape(candidate)
}

/// Members under which services list what they offer.
pub(crate) const SERVICE_KEYS: &[&str] = &[
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
];

fn by_shape(candidate: &Candidate<'_>) -> Detection {
    if let Some(evidence) = pointer(candidate) {
        return found(Format::Pointer, Strength::Medium, evidence);
    }
    let listed = SERVICE_KEYS.iter().find(|key| {
        candidate.root.get(**key).is_some_and(|value| match value {
            Value::Array(list) => !list.is_empty(),
            Value::Object(map) => !map.is_empty(),
            _ => false,
        })
    });
    if let Some(key) = listed {
        return found(
            Format::Generic,
            Strength::Weak,
            format!("no known marker; `{key}` is a list or a map"),
        );
    }
    if let Some((key, inner)) = wrapper(candidate) {
        let evidence = format!("no known marker; everything is inside `{key}`");
        return Detection { evidence: vec![evidence], ..json(inner, candidate.path) };
    }
    found(Format::Opaque, Strength::Weak, "no known marker and no list of capabilities".to_owned())
}

/// `{"agent": {…}}` and the like: one member that holds the whole document.
pub(crate) fn wrapper<'c>(candidate: &Candidate<'c>) -> Option<(&'static str, &'c Value)> {
    ["agent", "manifest", "mcp", "card", "agentCard", "agent_card"].into_iter().find_map(|key| {
        let inner = candidate.root.get(key)?;
        (inner.is_object() && candidate.root.len() <= 3).then_some((key, inner))
    })
}

/// Members that describe a pointer itself rather than lead anywhere.
const POINTER_WORDS: &[&str] =
    &["name", "description", "version", "$schema", "schema", "title", "note", "comment"];

/// A document that holds nothing but addresses of other documents.
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

/// Whether a text is the address of a document that could be a manifest.
pub(crate) fn leads_to_manifest(text: &str) -> bool {
    let is_address = text.starts_with('/') || text.starts_with("https://");
    let is_document = [".json", ".txt", ".md", ".yaml"].iter().any(|ending| text.ends_with(ending))
        || text.contains("/.well-known/");
    is_address
        && is_document
        && !text.contains(char::is_whitespace)
        && address::split_method(text).0.is_none()
}

pub(crate) fn found(format: Format, strength: Strength, evidence: String) -> Detection {
    crate::draft::detection(format, strength, evidence)
}
