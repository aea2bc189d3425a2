//! The difference of two versions of a manifest in a few sentences: "Now needs OAuth 2: Book seat, Check in".
//!
//! Capabilities with the same change share a sentence. Changes that may break a caller come first.

use std::collections::HashMap;

use manifest::SafetyClass;
use manifest::model::{AuthScheme, Confirmation, Protocol};
use serde_json::Value;

use super::labels;
use crate::answers::diff::{Changed, Difference, FieldChange, Named};
use crate::text;

/// Maximum number of names in one sentence.
const NAMED_MAX: usize = 3;
/// Maximum number of sentences about one change of a manifest.
const SENTENCES_MAX: usize = 5;
/// Maximum length of a name and of a value, in characters.
const NAME_CHARS_MAX: usize = 60;

/// The difference in a few sentences.
pub(crate) fn sentences(difference: &Difference) -> Vec<String> {
    let mut sentences = Vec::new();
    for (list, verb) in [(&difference.added, "added"), (&difference.removed, "removed")] {
        if !list.is_empty() {
            let count = labels::counted(list.len() as u64, "capability", "capabilities");
            let named = names(list.iter().map(|named: &Named| named.name.as_str()), list.len());
            sentences.push(format!("{count} {verb}: {named}"));
        }
    }
    let mut alike = Alike::default();
    for changed in &difference.changed {
        for (predicate, breaks) in predicates(changed) {
            alike.add(predicate, breaks, &changed.capability.name);
        }
    }
    sentences.extend(alike.into_sentences());
    let more = sentences.len().saturating_sub(SENTENCES_MAX) as u64 + difference.fields_left_out;
    sentences.truncate(SENTENCES_MAX);
    if more > 0 {
        sentences.push(format!("And {}", labels::counted(more, "more change", "more changes")));
    }
    if sentences.is_empty() {
        sentences.push("The document changed, but no capability".to_owned());
    }
    sentences
}

/// The first names of a list, and how many others there are.
fn names<'a>(all: impl Iterator<Item = &'a str>, count: usize) -> String {
    let named =
        all.take(NAMED_MAX).map(|name| text::cut(name, NAME_CHARS_MAX)).collect::<Vec<_>>().join(", ");
    match count.saturating_sub(NAMED_MAX) {
        0 => named,
        more => format!("{named} and {} more", labels::grouped(more as u64)),
    }
}

/// Changes, each with its capabilities, in the order of their first occurrence.
#[derive(Default)]
struct Alike {
    changes: Vec<(String, bool, Vec<String>)>,
    places: HashMap<String, usize>,
}

impl Alike {
    fn add(&mut self, predicate: String, breaks: bool, name: &str) {
        let place = *self.places.entry(predicate.clone()).or_insert_with(|| {
            self.changes.push((predicate, false, Vec::new()));
            self.changes.len() - 1
        });
        if let Some((_, any_breaks, names)) = self.changes.get_mut(place) {
            *any_breaks |= breaks;
            names.push(name.to_owned());
        }
    }

    fn into_sentences(mut self) -> Vec<String> {
        self.changes.sort_by_key(|(_, breaks, _)| !breaks);
        let sentence = |(predicate, _, of): &(String, bool, Vec<String>)| {
            let named = names(of.iter().map(String::as_str), of.len());
            format!("{}: {named}", labels::capitalised(predicate))
        };
        self.changes.iter().map(sentence).collect()
    }
}

/// The changes of one capability, each with a flag that it may break a caller.
fn predicates(changed: &Changed) -> Vec<(String, bool)> {
    let mut found = Vec::new();
    let auth = changed.fields.iter().filter(|field| matches!(field.field.as_str(), "auth" | "auth_required"));
    if let Some(words) = auth_words(&auth.clone().collect::<Vec<_>>()) {
        found.push((words, auth.clone().any(|field| field.breaks.is_some())));
    }
    let others =
        changed.fields.iter().filter(|field| !matches!(field.field.as_str(), "auth" | "auth_required"));
    found.extend(others.map(|field| (field_words(field), field.breaks.is_some())));
    found
}

/// The new requirements for a caller, based on the accepted schemes and on whether authentication is required.
fn auth_words(fields: &[&FieldChange]) -> Option<String> {
    let to = |name: &str| fields.iter().find(|field| field.field == name).map(|field| &field.to);
    let required = to("auth_required").and_then(Value::as_str);
    let schemes = to("auth").and_then(Value::as_array).map(|schemes| {
        let scheme = |value: &Value| value.as_str()?.parse::<AuthScheme>().ok();
        let known = schemes
            .iter()
            .filter_map(scheme)
            .filter(|scheme| !matches!(scheme, AuthScheme::None | AuthScheme::Unknown));
        known.map(labels::auth).collect::<Vec<_>>()
    });
    let words = match (required, schemes) {
        (None, None) => return None,
        (Some("no"), None) => "no longer needs authentication".to_owned(),
        (Some("no"), Some(schemes)) if schemes.is_empty() => "no longer needs authentication".to_owned(),
        (_, Some(schemes)) if schemes.is_empty() => "no longer states how to authenticate".to_owned(),
        (Some("no"), Some(schemes)) => format!("takes {}, optional", schemes.join(" or ")),
        (_, Some(schemes)) => format!("now needs {}", schemes.join(" or ")),
        (Some("yes"), None) => "now needs authentication".to_owned(),
        (Some(_), None) => "no longer states whether it needs authentication".to_owned(),
    };
    Some(words)
}

fn field_words(change: &FieldChange) -> String {
    let word = |value: &Value| value.as_str().map(|value| text::cut(value, NAME_CHARS_MAX));
    let (from, to) = (word(&change.from), word(&change.to));
    let field = change.field.as_str();
    if let Some(name) = field.strip_prefix("parameters.") {
        return parameter_words(name, change);
    }
    if let Some(name) = field.strip_prefix("response.") {
        return response_words(name, change);
    }
    match (field, to) {
        ("name" | "title", Some(to)) => match from {
            Some(from) => format!("is now called \u{201c}{to}\u{201d} instead of \u{201c}{from}\u{201d}"),
            None => format!("is now called \u{201c}{to}\u{201d}"),
        },
        ("description", _) => "has another description".to_owned(),
        ("semantic_types", _) => "has other types".to_owned(),
        ("protocol", Some(to)) => {
            format!(
                "is now called over {}",
                to.parse().map_or(to.as_str(), |known: Protocol| labels::protocol(known))
            )
        }
        ("method", Some(to)) => format!("is now called with {to}"),
        ("endpoint", Some(to)) => format!("is now called at {to}"),
        ("endpoint", None) => "no longer states where it is called".to_owned(),
        ("safety", Some(to)) => safety_words(&to).to_owned(),
        ("confirmation", Some(to)) => confirmation_words(&to).to_owned(),
        ("scopes", _) => "needs other scopes".to_owned(),
        ("deprecated", _) if change.to == Value::Bool(true) => "is now deprecated".to_owned(),
        ("deprecated", _) => "is no longer deprecated".to_owned(),
        ("native", _) => "has another name at its endpoint".to_owned(),
        (field, _) => format!("changed its {}", field.replace(['_', '.', '/'], " ")),
    }
}

fn safety_words(slug: &str) -> &'static str {
    match slug.parse() {
        Ok(SafetyClass::Read) => "now only reads",
        Ok(SafetyClass::Write) => "now writes",
        Ok(SafetyClass::Destructive) => "is now destructive",
        Ok(SafetyClass::Irreversible) => "is now irreversible",
        Ok(SafetyClass::Unknown) | Err(_) => "no longer states its effect",
    }
}

fn confirmation_words(slug: &str) -> &'static str {
    match slug.parse() {
        Ok(Confirmation::Required) => "now requires that a person is asked first",
        Ok(Confirmation::Recommended) => "now recommends that a person is asked first",
        Ok(Confirmation::None) | Err(_) => "no longer requires that a person is asked",
    }
}

fn parameter_words(name: &str, change: &FieldChange) -> String {
    if let (Some(name), Value::Bool(is_required)) = (name.strip_suffix(".required"), &change.to) {
        let name = text::cut(name, NAME_CHARS_MAX);
        return if *is_required { format!("now requires {name}") } else { format!("{name} is now optional") };
    }
    let name = text::cut(name, NAME_CHARS_MAX);
    match (change.values_left_out, change.from.is_null(), change.to.is_null()) {
        (false, true, _) if change.breaks.is_some() => format!("now requires {name}"),
        (false, true, _) => format!("now takes {name}"),
        (false, _, true) => format!("no longer takes {name}"),
        _ if is_moved(change) => format!("takes {name} in another part of the request"),
        _ => format!("takes {name} with another schema"),
    }
}

/// Whether only the part of the request differs in which a parameter is sent.
fn is_moved(change: &FieldChange) -> bool {
    let without_part = |schema: &Value| {
        let mut schema = schema.clone();
        if let Some(members) = schema.as_object_mut() {
            members.remove("x-in");
        }
        schema
    };
    !change.values_left_out
        && change.from.get("x-in") != change.to.get("x-in")
        && without_part(&change.from) == without_part(&change.to)
}

fn response_words(name: &str, change: &FieldChange) -> String {
    let name = text::cut(name, NAME_CHARS_MAX);
    match (change.values_left_out, change.from.is_null(), change.to.is_null()) {
        (false, true, _) => format!("now returns {name}"),
        (false, _, true) => format!("no longer returns {name}"),
        _ => format!("returns {name} with another schema"),
    }
}

#[cfg(test)]
mod tests {
    use manifest::CapabilityId;
    use serde_json::json;

    use super::*;

    fn named(name: &str) -> Named {
        Named {
            id: CapabilityId::of_key(name),
            native_id: name.to_owned(),
            name: name.to_owned(),
            addresses_reader: false,
        }
    }

    #[test]
    fn a_parameter_that_moves_to_another_part_of_the_request_keeps_its_schema() {
        let (query, body) =
            (json!({"type": "string", "x-in": "query"}), json!({"type": "string", "x-in": "body"}));
        let words = |to: &Value| parameter_words("date", &field("parameters.date", &query, to, true));
        assert_eq!(words(&body), "takes date in another part of the request");
        assert_eq!(words(&json!({"type": "integer", "x-in": "body"})), "takes date with another schema");
    }

    fn field(field: &str, from: &Value, to: &Value, breaks: bool) -> FieldChange {
        let breaks = breaks.then(|| "it breaks".to_owned());
        FieldChange {
            field: field.to_owned(),
            from: from.clone(),
            to: to.clone(),
            values_left_out: false,
            breaks,
        }
    }

    fn difference(changed: Vec<Changed>) -> Difference {
        Difference {
            added: Vec::new(),
            removed: Vec::new(),
            changed,
            fields_left_out: 0,
            breaking: false,
            breaking_changes: Vec::new(),
            major_version_raised: None,
            breaking_without_major_version: false,
        }
    }

    /// The sentence about one changed field.
    fn sentence(name: &str, from: &Value, to: &Value) -> String {
        let changed = Changed { capability: named("Book"), fields: vec![field(name, from, to, false)] };
        sentences(&difference(vec![changed])).join(". ")
    }

    #[test]
    fn every_field_has_its_own_description() {
        let null = Value::Null;
        for (field, from, to, expected) in [
            ("auth", json!(["none"]), json!(["oauth2"]), "Now needs OAuth 2: Book"),
            ("auth", json!(["oauth2"]), json!(["api_key", "oauth2"]), "Now needs API key or OAuth 2: Book"),
            ("auth", json!(["oauth2"]), json!([]), "No longer states how to authenticate: Book"),
            ("auth_required", json!("no"), json!("yes"), "Now needs authentication: Book"),
            ("auth_required", json!("yes"), json!("no"), "No longer needs authentication: Book"),
            ("safety", json!("write"), json!("destructive"), "Is now destructive: Book"),
            (
                "confirmation",
                json!("none"),
                json!("required"),
                "Now requires that a person is asked first: Book",
            ),
            ("method", json!("GET"), json!("POST"), "Is now called with POST: Book"),
            ("protocol", json!("http"), json!("mcp"), "Is now called over MCP: Book"),
            ("deprecated", json!(false), json!(true), "Is now deprecated: Book"),
            ("parameters.day", null.clone(), json!({}), "Now takes day: Book"),
            ("parameters.day", json!({}), null.clone(), "No longer takes day: Book"),
            ("parameters.day.required", json!(false), json!(true), "Now requires day: Book"),
            ("response.fare", null, json!({}), "Now returns fare: Book"),
            ("description", json!("a"), json!("b"), "Has another description: Book"),
        ] {
            assert_eq!(sentence(field, &from, &to), expected, "{field}");
        }
        let renamed = sentence("name", &json!("Reserve"), &json!("Book"));
        assert_eq!(renamed, "Is now called \u{201c}Book\u{201d} instead of \u{201c}Reserve\u{201d}: Book");
    }

    #[test]
    fn equal_changes_share_a_sentence_and_breaking_ones_come_first() {
        let of = |name: &str| Changed {
            capability: named(name),
            fields: vec![
                field("description", &json!("a"), &json!("b"), false),
                field("auth", &json!(["none"]), &json!(["oauth2"]), true),
                field("auth_required", &json!("no"), &json!("yes"), true),
            ],
        };
        let mut found = difference(["A", "B", "C", "D", "E"].map(of).into());
        found.added = vec![named("New")];
        assert_eq!(
            sentences(&found),
            [
                "1 capability added: New",
                "Now needs OAuth 2: A, B, C and 2 more",
                "Has another description: A, B, C and 2 more",
            ]
        );
    }

    #[test]
    fn further_changes_are_counted() {
        let fields = (0..9).map(|at| field(&format!("parameters.p{at}"), &Value::Null, &json!({}), false));
        let changed = Changed { capability: named("Book"), fields: fields.collect() };
        let found = sentences(&difference(vec![changed]));
        assert_eq!((found.len(), found.last().unwrap().as_str()), (6, "And 4 more changes"));
        assert_eq!(sentences(&difference(Vec::new())), ["The document changed, but no capability"]);
    }
}
