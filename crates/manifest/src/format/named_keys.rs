//! Keys with a name of their own: "Authenticated via a write key" beside calls with the parameter `writeKey`.

use serde_json::Value;

use crate::draft::{DESCRIPTION_CHARS_MAX, Draft, NAME_CHARS_MAX};
use crate::format::clauses::clauses;
use crate::format::{credential_headers, instructed_credentials};
use crate::model::{AppliesTo, Auth, AuthScheme, Capability, CapabilityAuth, Tristate};
use crate::text::{self, capped};

/// Maximum number of texts of one document, and of parameters of one call, that are searched.
const TEXTS_MAX: usize = 1_000;
const PARAMETERS_MAX: usize = 200;
/// Words between the verb and the name of the key.
const BETWEEN: &[&str] = &["a", "an", "the", "your", "its", "project"];
/// Words behind the verb.
const LEADING: &[&str] = &["via", "with", "by", "using"];
/// Words that name no key, but a kind of credential that other parsers know.
const KINDS: &[&str] = &["api", "bearer", "access", "jwt", "oauth", "secret", "private", "public"];

/// Requires the key that a sentence names, for the calls from `first` on that have its parameter and no other statement.
pub(crate) fn read(first: usize, draft: &mut Draft<'_>) {
    let manifest = &mut draft.manifest;
    let of_calls = manifest.capabilities.iter().filter_map(|call| call.description.as_deref());
    let mut texts = manifest.description.as_deref().into_iter().chain(of_calls).take(TEXTS_MAX);
    let Some(name) = texts.find_map(key_in) else { return };
    let (mut ids, mut found): (Vec<String>, Option<(String, Option<String>)>) = (Vec::new(), None);
    for call in
        manifest.capabilities.iter_mut().skip(first).filter(|call| call.auth == CapabilityAuth::default())
    {
        let Some((parameter, location)) = parameter_of(call, &name) else { continue };
        call.auth.required = Tristate::Yes;
        call.auth.schemes.push(AuthScheme::ApiKey);
        ids.push(call.native_id.clone());
        found.get_or_insert((parameter, location));
    }
    let Some((parameter, location)) = found else { return };
    let mut issuing = manifest.capabilities.iter().filter(|call| issues(call, &name)).take(2);
    let only = issuing.next().filter(|_| issuing.next().is_none());
    let registration_url = only.and_then(|call| call.invocation.url.clone());
    let (name, applies_to) = (Some(parameter), AppliesTo::Ids { ids });
    draft.keep(Auth { location, name, registration_url, applies_to, ..Auth::new(AuthScheme::ApiKey) });
}

/// The name of the key in "Authenticated via a write key": `write`.
fn key_in(text: &str) -> Option<String> {
    if !text::has_four(text, *b"uthe") || !text::has_four(text, *b" key") {
        return None;
    }
    clauses(capped(text, DESCRIPTION_CHARS_MAX)).find_map(|clause| {
        let words = text::words(capped(clause, NAME_CHARS_MAX));
        let verb = words.iter().position(|word| word.starts_with("authenticate"))?;
        let rest = words
            .get(verb + 1..)
            .filter(|rest| rest.first().is_some_and(|word| LEADING.contains(&word.as_str())))?;
        let rest = rest.get(1..)?;
        let between = rest.iter().take_while(|word| BETWEEN.contains(&word.as_str())).count();
        match rest.get(between..)? {
            [name, key, ..] if key == "key" && !KINDS.contains(&name.as_str()) => Some(name.clone()),
            _ => None,
        }
    })
}

/// The parameter for the key of this name, and its location. It is marked in the schema.
fn parameter_of(call: &mut Capability, key: &str) -> Option<(String, Option<String>)> {
    let properties = call.parameters.as_mut()?.get_mut("properties")?.as_object_mut()?;
    let is_key =
        |name: &str| matches!(text::words(name).as_slice(), [first, last] if first == key && last == "key");
    let (name, property) = properties.iter_mut().take(PARAMETERS_MAX).find(|(name, _)| is_key(name))?;
    let property = property.as_object_mut()?;
    let location = property.get("x-in").and_then(Value::as_str).map(str::to_owned);
    property
        .insert(credential_headers::CREDENTIAL_KEYWORD.to_owned(), Value::from(AuthScheme::ApiKey.as_str()));
    Some((name.clone(), location))
}

/// Whether a call issues the key: "Returns a write key."
fn issues(call: &Capability, key: &str) -> bool {
    call.description.as_deref().is_some_and(|text| {
        let names =
            || capped(text, DESCRIPTION_CHARS_MAX).to_ascii_lowercase().contains(&[key, " key"].concat());
        instructed_credentials::issues_credential(text) && names()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_name_of_the_key() {
        for text in [
            "Analytics. Authenticated via a write key (safe to ship).",
            "Authenticates via the write key itself",
            "Authenticate with your write key.",
        ] {
            assert_eq!(key_in(text).as_deref(), Some("write"), "{text}");
        }
        for text in
            ["Authenticate with an API key.", "Authenticates the write key", "Returns a write key.", "Keys"]
        {
            assert_eq!(key_in(text), None, "{text}");
        }
    }
}
