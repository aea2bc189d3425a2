//! Terms of ARD entries and queries as IRIs (ARD 0.91 §4.1, §5.3.1).
//!
//! The base context is built in. The context of an entry or of a query is applied after it and cannot remove it. A context that is given as
//! a URL is a third-party document: it is not fetched, and its definitions are not used. Only the parts of JSON-LD 1.1 that name terms are
//! supported: prefixes, term definitions and `@vocab`. Parts that describe values are not.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// The namespace of terms without a prefix.
const ARD_NAMESPACE: &str = "https://agenticresourcediscovery.org/ns#";
/// Members whose content is not a graph, so that paths into them are literal.
pub const UNEXPANDED: [&str; 3] = ["trustManifest", "metadata", "data"];

/// Maximum number of definitions of one context, and of its parts; published ones have one or two.
const DEFINITIONS_MAX: usize = 64;
/// Longest name of a term, and longest IRI.
const IRI_BYTES_MAX: usize = 512;
/// Maximum length of a chain of definitions that refer to each other; the examples of JSON-LD have at most two.
const CHAIN_MAX: usize = 4;

/// Definitions of terms: the base context, and the definitions applied after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TermContext {
    vocabulary: String,
    definitions: BTreeMap<String, String>,
}

impl Default for TermContext {
    /// The base context alone.
    fn default() -> Self {
        let own = |name: &str| format!("{ARD_NAMESPACE}{name}");
        let core = CORE_TERMS.iter().map(|term| ((*term).to_owned(), own(term)));
        let others = [("ard", ARD_NAMESPACE.to_owned()), ("type", own("mediaType"))];
        let others = others.map(|(term, iri)| (term.to_owned(), iri));
        Self { vocabulary: ARD_NAMESPACE.to_owned(), definitions: core.chain(others).collect() }
    }
}

/// The terms that the base context defines, apart from `type`, which means the media type.
const CORE_TERMS: [&str; 13] = [
    "capabilities",
    "data",
    "description",
    "displayName",
    "identifier",
    "mediaType",
    "metadata",
    "representativeQueries",
    "tags",
    "trustManifest",
    "updatedAt",
    "url",
    "version",
];

impl TermContext {
    /// The base context and then the `@context` of an entry or a query.
    pub fn of(context: Option<&Value>) -> Self {
        let mut of = Self::default();
        match context {
            Some(Value::Object(definitions)) => of.define(definitions),
            Some(Value::Array(parts)) => {
                parts
                    .iter()
                    .take(DEFINITIONS_MAX)
                    .filter_map(Value::as_object)
                    .for_each(|part| of.define(part));
            }
            _ => {}
        }
        of
    }

    fn define(&mut self, definitions: &Map<String, Value>) {
        let mut stated = BTreeMap::new();
        for (term, definition) in definitions.iter().take(DEFINITIONS_MAX) {
            let iri = match definition {
                Value::String(iri) => iri,
                Value::Object(expanded) => match expanded.get("@id") {
                    Some(Value::String(iri)) => iri,
                    _ => continue,
                },
                _ => continue,
            };
            if !term.is_empty() && term.len() <= IRI_BYTES_MAX && iri.len() <= IRI_BYTES_MAX {
                stated.insert(term.as_str(), iri.as_str());
            }
        }
        let vocabulary = stated.remove("@vocab").and_then(|iri| self.iri_of(iri, &stated, CHAIN_MAX));
        let terms = stated.iter().filter(|(term, _)| !term.starts_with('@'));
        let defined: Vec<(String, String)> = terms
            .filter_map(|(term, iri)| Some(((*term).to_owned(), self.iri_of(iri, &stated, CHAIN_MAX)?)))
            .collect();
        self.vocabulary = vocabulary.unwrap_or_else(|| std::mem::take(&mut self.vocabulary));
        for (term, iri) in defined {
            if self.definitions.len() < DEFINITIONS_MAX || self.definitions.contains_key(&term) {
                self.definitions.insert(term, iri);
            }
        }
    }

    /// The IRI in a definition. It may be abbreviated with a prefix from the same or an earlier context.
    fn iri_of(&self, text: &str, stated: &BTreeMap<&str, &str>, chain: usize) -> Option<String> {
        let chain = chain.checked_sub(1)?;
        let defined = |term: &str| match stated.get(term) {
            Some(iri) if *iri != text => self.iri_of(iri, stated, chain),
            _ => self.definitions.get(term).cloned(),
        };
        let iri = match text.split_once(':') {
            Some((_, rest)) if rest.starts_with("//") => text.to_owned(),
            Some((prefix, rest)) => defined(prefix).map_or_else(|| text.to_owned(), |iri| iri + rest),
            None => defined(text)?,
        };
        (iri.len() <= IRI_BYTES_MAX).then_some(iri)
    }

    /// Whether every core term has the meaning of the base context.
    pub(crate) fn keeps_core_terms(&self) -> bool {
        let base = Self::default();
        base.definitions.iter().all(|(term, iri)| self.definitions.get(term) == Some(iri))
    }

    /// The usual name of the core term to which a term of an entry or a filter refers.
    pub fn core_term(&self, term: &str) -> Option<&'static str> {
        let iri = self.resolve(term);
        let name = iri.strip_prefix(ARD_NAMESPACE)?;
        let core = CORE_TERMS.iter().find(|core| **core == name)?;
        Some(if *core == "mediaType" { "type" } else { core })
    }

    /// The IRI of a term as an entry or a filter writes it: a name, a name with a prefix, or an IRI.
    pub fn resolve(&self, term: &str) -> String {
        if let Some(iri) = self.definitions.get(term) {
            return iri.clone();
        }
        match term.split_once(':') {
            Some((_, rest)) if rest.starts_with("//") => term.to_owned(),
            Some((prefix, rest)) => {
                self.definitions.get(prefix).map_or_else(|| term.to_owned(), |iri| format!("{iri}{rest}"))
            }
            None => format!("{}{term}", self.vocabulary),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn of(context: &Value) -> TermContext {
        TermContext::of(Some(context))
    }

    #[test]
    fn core_terms_need_no_context() {
        let base = TermContext::default();
        assert_eq!(base.resolve("tags"), format!("{ARD_NAMESPACE}tags"));
        assert_eq!(base.resolve("type"), base.resolve("mediaType"));
        assert_eq!(base.resolve("ard:tags"), base.resolve("tags"));
        assert_eq!(base.resolve("seats"), format!("{ARD_NAMESPACE}seats"));
        assert_eq!(base.resolve("urn:example:x"), "urn:example:x");
        assert_eq!(base.resolve("https://a.example/v#x"), "https://a.example/v#x");
    }

    #[test]
    fn prefixes_of_different_publishers_lead_to_one_iri() {
        let one = of(&json!({"okf": "https://okf.example/ns#"}));
        let two = of(&json!(["https://agenticresourcediscovery.org/context/v1",
                             {"open": "https://okf.example/ns#", "topic": {"@id": "open:taxonomy", "@container": "@set"}}]));
        let iri = "https://okf.example/ns#taxonomy";
        assert_eq!(one.resolve("okf:taxonomy"), iri);
        assert_eq!(two.resolve("open:taxonomy"), iri);
        assert_eq!(two.resolve("topic"), iri);
        assert_eq!(TermContext::default().resolve(iri), iri);
        assert_eq!(TermContext::default().resolve("okf:taxonomy"), "okf:taxonomy");
    }

    #[test]
    fn contexts_override_terms_and_keep_the_base() {
        let other = of(
            &json!({"tags": "https://a.example/labels", "@vocab": "https://a.example/v#", "@base": "x", "no": null}),
        );
        assert_eq!(other.resolve("tags"), "https://a.example/labels");
        assert_eq!(other.resolve("seats"), "https://a.example/v#seats");
        assert_eq!(other.resolve("version"), format!("{ARD_NAMESPACE}version"));
        assert_eq!(of(&json!([null, {}])), TermContext::default());
        assert!(!other.keeps_core_terms() && TermContext::default().keeps_core_terms());
    }

    #[test]
    fn recognises_core_terms_in_every_spelling() {
        let context = of(&json!({"a": ARD_NAMESPACE, "labels": "a:tags", "version": "https://a.example/v"}));
        let core = ["a:mediaType", "type", "labels", "ard:displayName", "version", "seats"]
            .map(|term| context.core_term(term));
        assert_eq!(core, [Some("type"), Some("type"), Some("tags"), Some("displayName"), None, None]);
    }

    #[test]
    fn contexts_by_url_define_nothing() {
        assert_eq!(of(&json!("https://a.example/context.jsonld")), TermContext::default());
        assert_eq!(of(&json!(["https://a.example/context.jsonld", 3])), TermContext::default());
        assert_eq!(of(&json!({"@import": "https://a.example/context.jsonld"})), TermContext::default());
    }

    #[test]
    fn circular_and_oversized_definitions_are_left_out() {
        let circular = of(&json!({"a": "b:x", "b": "a:y", "c": "c:z"}));
        assert!(circular.resolve("a").len() < 40, "{circular:?}");
        let many: Map<String, Value> =
            (0..1_000).map(|number| (format!("p{number:04}"), json!("https://a.example/"))).collect();
        assert!(of(&Value::Object(many)).definitions.len() <= DEFINITIONS_MAX);
        let long = of(
            &json!({"a": "x".repeat(600), "b": format!("https://{}", "y".repeat(500)), "c": "b:zzzzzzzz"}),
        );
        assert_eq!(long.resolve("a"), format!("{ARD_NAMESPACE}a"));
        assert_eq!(long.resolve("c"), format!("{ARD_NAMESPACE}c"));
    }

    proptest! {
        #[test]
        fn any_context_resolves_any_term(terms in prop::collection::btree_map("[a-c@:]{0,4}", "[a-c:/#]{0,6}", 0..8), term in ".{0,12}") {
            let context: Map<String, Value> = terms.into_iter().map(|(name, iri)| (name, Value::String(iri))).collect();
            let iri = of(&Value::Object(context)).resolve(&term);
            prop_assert!(iri.len() <= term.len() + 2 * IRI_BYTES_MAX);
        }
    }
}
