//! Filters by terms that the index does not have: entries are compared one by one (ARD 0.91 §5.3.1).
//!
//! The names of an entry are resolved by its own context, so the prefixes of the query and of the publisher may differ.
//! No context is fetched.

use manifest::term::TermContext;
use serde_json::{Map, Value};

/// One constraint on an entry.
#[derive(Debug)]
pub(super) struct TermFilter {
    /// IRI of the term.
    pub(super) term: String,
    /// Literal path into the value of the term.
    pub(super) path: Vec<String>,
    /// Accepted values; at least one has to match.
    pub(super) values: Vec<String>,
}

/// Whether an entry satisfies all constraints.
pub(super) fn matches(entry: &Map<String, Value>, filters: &[TermFilter]) -> bool {
    let context = TermContext::of(entry.get("@context"));
    filters.iter().all(|filter| {
        let named = entry.iter().filter(|(name, _)| context.resolve(name) == filter.term);
        named.into_iter().any(|(_, value)| has(value, &filter.path, &filter.values))
    })
}

/// Whether one of the values is at the path. In an array, one matching element is enough.
fn has(value: &Value, path: &[String], wanted: &[String]) -> bool {
    match (value, path) {
        (Value::Array(elements), _) => elements.iter().any(|element| has(element, path, wanted)),
        (Value::Object(members), [step, rest @ ..]) => {
            members.get(step).is_some_and(|member| has(member, rest, wanted))
        }
        // Values and references of JSON-LD.
        (Value::Object(members), []) => {
            let held = members.get("@value").or_else(|| members.get("@id"));
            held.is_some_and(|held| !held.is_object() && has(held, &[], wanted))
        }
        (Value::String(text), []) => wanted.contains(text),
        (Value::Bool(_) | Value::Number(_), []) => wanted.contains(&value.to_string()),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn matching(entry: &Value, term: &str, path: &[&str], values: &[&str]) -> bool {
        let strings = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        let filter = TermFilter { term: term.to_owned(), path: strings(path), values: strings(values) };
        matches(entry.as_object().unwrap(), &[filter])
    }

    #[test]
    fn entries_are_compared_by_iri_and_literal_path() {
        let entry = json!({"@context": {"open": "https://okf.example/ns#"}, "open:taxonomy": ["us-gaap", {"@value": "ifrs"}],
            "open:home": {"@id": "https://a.example/"}, "version": "2", "metadata": {"seats": 3, "open": true},
            "trustManifest": {"attestations": [{"type": "ISO"}, {"type": "SOC2"}]}});
        let own = |name: &str| format!("https://agenticresourcediscovery.org/ns#{name}");
        for (term, path, value) in [
            ("https://okf.example/ns#taxonomy", &[][..], "us-gaap"),
            ("https://okf.example/ns#taxonomy", &[], "ifrs"),
            ("https://okf.example/ns#home", &[], "https://a.example/"),
            (&own("version"), &[], "2"),
            (&own("metadata"), &["seats"], "3"),
            (&own("metadata"), &["open"], "true"),
            (&own("trustManifest"), &["attestations", "type"], "SOC2"),
        ] {
            assert!(matching(&entry, term, path, &["other", value]), "{term} {path:?}");
            assert!(!matching(&entry, term, path, &["other"]), "{term} {path:?}");
        }
        assert!(!matching(&entry, "open:taxonomy", &[], &["us-gaap"]), "a prefix alone means nothing");
        assert!(!matching(&entry, &own("trustManifest"), &["attestations"], &["SOC2"]));
        assert!(!matching(&entry, &own("metadata"), &["seats", "deeper"], &["3"]));
    }
}
