//! Common members that describe the service as a whole: name, provider, contact, limits.

use serde_json::Value;

use crate::check::is_email;
use crate::draft::{self, Draft};
use crate::format::lenient;
use crate::model::{Contact, Format, RateLimit};
use crate::object::Object;
use crate::text;

/// Name, description, version, provider and contact under their usual names.
pub(crate) fn describe(root: &Object<'_>, draft: &mut Draft<'_>) {
    let about = root.object_of(&["agent", "site", "service", "app", "info"]);
    let inner = about.as_ref().unwrap_or(root);
    let either = |keys: &[&str]| root.text_of(keys).or_else(|| inner.text_of(keys));
    let manifest = &mut draft.manifest;
    manifest.name =
        draft::name(either(&["name", "title", "display_name", "displayName", "site_name", "service"]));
    manifest.description = description_of(root).or_else(|| description_of(inner));
    manifest.document_version = draft::name(either(&["version"]));
    manifest.updated_at = draft::name(either(&[
        "updated_at",
        "updatedAt",
        "updated",
        "last_updated",
        "lastUpdated",
        "generated_at",
        "dateUpdated",
        "dateModified",
    ]));
    manifest.language = draft::name(either(&["language", "lang", "inLanguage"]));
    manifest.tags = draft::tags(root.texts("tags").into_iter().chain(root.texts("keywords")));
    manifest.declared_origin = either(&["url", "website", "homepage", "domain", "origin", "site_url"])
        .filter(|origin| !origin.starts_with(['/', '.', '#']))
        .map(str::to_owned);
    match root.value("provider").or_else(|| root.value("publisher")).or_else(|| root.value("organization")) {
        Some(Value::String(name)) => manifest.provider.name = draft::name(Some(name)),
        Some(Value::Object(map)) => {
            let provider = Object { map, pointer: root.at("provider") };
            manifest.provider.name = draft::name(provider.text_of(&["name", "organization", "title"]));
            manifest.provider.url = provider.string_of(&["url", "website", "homepage"]);
        }
        _ => {}
    }
    manifest.contact =
        root.value("contact").or_else(|| inner.value("contact")).map(contact).unwrap_or_default();
}

/// Members that say who is behind a service.
const PARTIES: &[&str] = &[
    "provider",
    "publisher",
    "organization",
    "business",
    "merchant",
    "company",
    "owner",
    "author",
    "vendor",
    "site",
    "agent",
    "identity",
    "operator",
];
const EMAIL_KEYS: &[&str] = &[
    "email",
    "contact_email",
    "contactEmail",
    "support_email",
    "supportEmail",
    "contact",
    "support",
    "human_contact",
];
/// Members of a contact that are documents.
const TERMS: &[&str] = &["legal", "terms", "privacy", "terms_of_service", "privacy_policy"];
const LIMIT_KEYS: &[&str] =
    &["rate_limit", "rateLimit", "rate_limits", "rateLimits", "rate_limiting", "rateLimiting"];

/// Adds the contact, the provider's name and the rate limit that a reader has not read.
pub(crate) fn complete(root: &Object<'_>, draft: &mut Draft<'_>) {
    let parties = || PARTIES.iter().filter_map(|key| root.object(key));
    let manifest = &mut draft.manifest;
    if manifest.contact.email.is_none() {
        let email = |object: &Object<'_>| {
            let texts = EMAIL_KEYS.iter().filter_map(|key| object.text(key));
            texts
                .map(|text| text.strip_prefix("mailto:").unwrap_or(text))
                .find(|text| is_email(text))
                .map(str::to_owned)
        };
        manifest.contact.email = email(root).or_else(|| parties().find_map(|party| email(&party)));
    }
    if manifest.provider.name.is_none() {
        let name = |party: Object<'_>| draft::name(party.text_of(&["name", "organization", "title"]));
        manifest.provider.name = root.object_of(&["provider", "publisher", "organization"]).and_then(name);
    }
    // These formats define the member, and their readers report a wrong one.
    let is_defined = manifest.detection.format.is_core() || manifest.detection.format == Format::Ahp;
    if manifest.rate_limit.is_none() && !is_defined {
        let holders = std::iter::once(root.clone()).chain(root.object_of(&["policies", "policy", "limits"]));
        manifest.rate_limit = holders
            .filter_map(|holder| lenient::rate_limit(holder.value_of(LIMIT_KEYS)?))
            .find(|limit| *limit != RateLimit::default());
    }
}

/// A contact of any shape: an address, or an object with addresses.
pub(crate) fn contact(value: &Value) -> Contact {
    let mut contact = Contact::default();
    match value {
        Value::String(text) => sort_contact(&mut contact, text),
        Value::Object(map) => {
            let texts = map.iter().filter(|(name, _)| !TERMS.contains(&name.as_str()));
            texts.filter_map(|(_, value)| value.as_str()).for_each(|text| sort_contact(&mut contact, text));
        }
        Value::Array(list) => {
            list.iter().filter_map(Value::as_str).for_each(|text| sort_contact(&mut contact, text));
        }
        _ => {}
    }
    contact
}

fn sort_contact(contact: &mut Contact, text: &str) {
    let text = text::capped(text.trim(), draft::NAME_CHARS_MAX);
    let address = text.strip_prefix("mailto:").unwrap_or(text);
    let slot = if is_email(address) {
        &mut contact.email
    } else if text.starts_with("https://") || text.starts_with("http://") {
        &mut contact.url
    } else {
        &mut contact.other
    };
    if slot.is_none() && !text.is_empty() {
        *slot = Some(address.to_owned());
    }
}

pub(crate) fn description_of(object: &Object<'_>) -> Option<String> {
    let text = object.text_of(&["description", "summary", "purpose", "intent", "about", "tagline"]);
    draft::description(text).or_else(|| {
        let nested = object.object("description")?;
        draft::description(nested.text_of(&["long", "full", "what", "short", "text"]))
    })
}
