//! Credentials of A2A cards in three generations of the format.
//!
//! 0.1 names schemes as words, 0.2 and 0.3 use the security objects of OpenAPI, 1.0 wraps each scheme in a member named
//! after its kind and each requirement in `schemes`. A skill's own requirements replace the card's.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::rules;
use crate::auth;
use crate::draft::Draft;
use crate::format::{lenient, openapi, own_credentials};
use crate::model::{Auth, AuthScheme, CapabilityAuth, Tristate};
use crate::object::Object;

/// The kinds of OpenAPI's security schemes.
const KINDS: [&str; 5] = ["apiKey", "http", "oauth2", "openIdConnect", "mutualTLS"];

/// The credentials of a card.
pub(super) struct Schemes {
    by_name: BTreeMap<String, Auth>,
    card: CapabilityAuth,
}

impl Schemes {
    /// The requirements of one skill.
    pub(super) fn of_skill(&self, skill: &Object<'_>) -> CapabilityAuth {
        match requirements(skill) {
            Some(own) => openapi::requirement(Some(&own), &self.by_name),
            // The text of a skill takes precedence over the requirements of the card.
            None if skill.text("description").is_some_and(lenient::says_call_is_open) => {
                CapabilityAuth { required: Tristate::No, ..CapabilityAuth::default() }
            }
            // Its text states credentials of its own.
            None if skill.text("description").is_some_and(own_credentials::has_own) => {
                CapabilityAuth::default()
            }
            None => self.card.clone(),
        }
    }
}

/// Reads the card's schemes into the manifest and its requirements for the skills.
pub(super) fn read(root: &Object<'_>, draft: &mut Draft<'_>) -> Schemes {
    let mut by_name = BTreeMap::new();
    for (name, scheme) in root.object("securitySchemes").iter().flat_map(Object::members) {
        let kind = scheme.text("type");
        if let Some(kind) = kind.filter(|kind| !KINDS.contains(kind)) {
            let text = format!("\"{kind}\" is not a kind of security scheme");
            draft.report(&rules::SCHEME_TYPE, scheme.at("type"), text);
        }
        by_name.insert(name.to_owned(), scheme_of(scheme.map));
    }
    let requirements = requirements(root);
    rules::check_requirements(root, &by_name, draft);
    for skill in root.objects("skills") {
        rules::check_requirements(&skill, &by_name, draft);
    }
    let stated = root.value("authentication").map(|stated| partly_open(lenient::stated(stated)));
    let (legacy, needed) = stated.or_else(|| listed_schemes(root)).unwrap_or_default();
    let card = match requirements {
        Some(stated) => openapi::requirement(Some(&stated), &by_name),
        None if by_name.is_empty() => needed,
        None => CapabilityAuth::default(),
    };
    let named = by_name.values().cloned();
    draft.keep_all(if by_name.is_empty() { legacy } else { named.collect() });
    Schemes { by_name, card }
}

/// The schemes of a list that no version defines: `"authSchemes": [{"type": "bearer"}, {"type": "none"}]`.
fn listed_schemes(root: &Object<'_>) -> Option<(Vec<Auth>, CapabilityAuth)> {
    let listed = root.value_of(lenient::LISTED_SCHEMES).filter(|listed| listed.is_array())?;
    Some(partly_open(lenient::stated(listed)))
}

/// The credentials and the requirement of skills: unknown if "none" is one of several schemes.
fn partly_open((found, needed): (Vec<Auth>, CapabilityAuth)) -> (Vec<Auth>, CapabilityAuth) {
    let is_partly_open = found.len() > 1 && found.iter().any(|auth| auth.scheme == AuthScheme::None);
    (found, if is_partly_open { CapabilityAuth::default() } else { needed })
}

/// A scheme in the form of OpenAPI or in the wrapper of 1.0.
fn scheme_of(scheme: &Map<String, Value>) -> Auth {
    const WRAPPERS: [(&str, &str); 5] = [
        ("apiKeySecurityScheme", "apiKey"),
        ("httpAuthSecurityScheme", "http"),
        ("oauth2SecurityScheme", "oauth2"),
        ("openIdConnectSecurityScheme", "openIdConnect"),
        ("mtlsSecurityScheme", "mutualTLS"),
    ];
    for (wrapper, kind) in WRAPPERS {
        if let Some(inner) = scheme.get(wrapper).and_then(Value::as_object) {
            let mut unwrapped = inner.clone();
            unwrapped.insert("type".to_owned(), json!(kind));
            if let Some(location) = inner.get("location") {
                unwrapped.insert("in".to_owned(), location.clone());
            }
            return openapi::scheme_of(&unwrapped);
        }
    }
    match scheme.get("type").and_then(Value::as_str) {
        Some(kind) if KINDS.contains(&kind) => openapi::scheme_of(scheme),
        Some(kind) => Auth { declared: Some(kind.to_owned()), ..Auth::new(auth::scheme(kind)) },
        None => openapi::scheme_of(scheme),
    }
}

/// Requirements in the form of OpenAPI: a list of maps from scheme to scopes.
fn requirements(object: &Object<'_>) -> Option<Value> {
    if let Some(stated) = object.list("security") {
        return Some(Value::Array(stated.to_vec()));
    }
    let wrapped = object.list("securityRequirements")?;
    Some(wrapped.iter().map(unwrapped).collect())
}

/// 1.0: `{"schemes": {"name": {"list": ["scope"]}}}`.
fn unwrapped(requirement: &Value) -> Value {
    let Some(schemes) = requirement.get("schemes").and_then(Value::as_object) else {
        return requirement.clone();
    };
    let plain = schemes.iter().map(|(name, scopes)| {
        let list = scopes.get("list").unwrap_or(scopes);
        (name.clone(), if list.is_array() { list.clone() } else { json!([]) })
    });
    Value::Object(plain.collect())
}
