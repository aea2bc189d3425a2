//! Common members that describe the service as a whole: name, provider, contact, limits.

use serde_json::Value;

use crate::address::{is_method, split_method};
use crate::budget;
use crate::check::is_email;
use crate::draft::{self, Draft};
use crate::format::language::{language_of, languages_of};
use crate::format::{contacts, described_block, plan_limits};
use crate::identity::host_of;
use crate::model::{Contact, Format, RateLimit};
use crate::name::ManifestUrl;
use crate::object::{Members, Object};
use crate::text;

/// Reads name, description, version, provider and contact under their usual names.
pub(crate) fn describe(root: &Object<'_>, draft: &mut Draft<'_>) {
    let about = root.object_of(ABOUT).or_else(|| root.object(described_block::name_of(root.map)?));
    let inner = about.as_ref().unwrap_or(root);
    let either = |keys: &[&str]| root.text_of(keys).or_else(|| inner.text_of(keys));
    let served = draft.base();
    let manifest = &mut draft.manifest;
    manifest.name = draft::name(either(&[
        "name",
        "title",
        "display_name",
        "displayName",
        "site_name",
        "service",
        "platform",
        "label",
        "agent_name",
        "agentName",
        "name_for_model",
    ]));
    let other = || {
        draft::description(root.text_of(&["agent_description", "agentDescription", "description_for_model"]))
    };
    manifest.description = description_of(root).or_else(|| description_of(inner)).or_else(other);
    manifest.name = manifest.name.take().or_else(|| name_of_forms(root));
    manifest.document_version = draft::name(either(&["version"]));
    manifest.updated_at = draft::name(either(UPDATED_KEYS));
    manifest.language = language_of(root).or_else(|| language_of(inner));
    manifest.tags = draft::tags(root.texts("tags").into_iter().chain(root.texts("keywords")));
    let is_absolute = |origin: &&str| !origin.starts_with(['/', '.', '#']);
    let page = || either(HOME_KEYS).filter(|page| is_of_site(page, served));
    manifest.declared_origin = either(ORIGIN_KEYS).filter(is_absolute).or_else(page).map(str::to_owned);
    match root.value("provider").or_else(|| root.value("publisher")).or_else(|| root.value("organization")) {
        Some(Value::String(name)) => manifest.provider.name = draft::name(Some(name)),
        Some(Value::Object(map)) => {
            let provider = Object::new(map, root.at("provider"));
            manifest.provider.name = draft::name(provider.text_of(&["name", "organization", "title"]));
            manifest.provider.url = provider.string_of(&["url", "website", "homepage"]);
        }
        _ => {}
    }
    manifest.contact =
        root.value("contact").or_else(|| inner.value("contact")).map(contact).unwrap_or_default();
}

/// A name in several forms: `{"short": "Acme", "full": "Acme Rooms"}`.
fn name_of_forms(root: &Object<'_>) -> Option<String> {
    draft::name(root.object("name")?.text_of(&["full", "long", "short", "en", "default"]))
}

/// Blocks that describe the whole service.
const ABOUT: &[&str] =
    &["agent", "site", "service", "app", "info", "identity", "about", "profile", "project"];
const ORIGIN_KEYS: &[&str] = &[
    "url",
    "domain",
    "origin",
    "site_url",
    "canonical_origin",
    "canonicalOrigin",
    "canonical_url",
    "canonicalUrl",
];
/// Members with a home page, which may belong to the publisher instead of the described site.
const HOME_KEYS: &[&str] = &["website", "homepage"];
const UPDATED_KEYS: &[&str] = &[
    "updated_at",
    "updatedAt",
    "updated",
    "last_updated",
    "lastUpdated",
    "generated_at",
    "generatedAt",
    "generated",
    "dateUpdated",
    "dateModified",
    "last_modified",
    "lastModified",
];
/// Members with the provider of a service, as a text or an object.
const PROVIDER_KEYS: &[&str] = &[
    "provider",
    "publisher",
    "organization",
    "operator",
    "owner",
    "company",
    "vendor",
    "merchant",
    "business",
    "maintainer",
    "author",
    "creator",
    "developer",
    "builder",
];
/// Blocks about the service, which may name its provider.
const ABOUT_KEYS: &[&str] =
    &["identity", "agent", "service", "about", "site", "metadata", "serverInfo", "trust"];
const LOGO_KEYS: &[&str] = &["logo", "logo_url", "logoUrl", "icon", "icon_url", "iconUrl"];
const CONTACT_KEYS: &[&str] = &[
    "contact",
    "contacts",
    "support",
    "preferred_contact",
    "human_contact",
    "contact_url",
    "contactUrl",
    "support_url",
    "supportUrl",
];

/// Members that name the operator of a service.
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
    "trust",
    "about",
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
/// Members of a contact with addresses of documents.
const TERMS: &[&str] = &["legal", "terms", "privacy", "terms_of_service", "privacy_policy"];
pub(crate) const LIMIT_KEYS: &[&str] = &[
    "rate_limit",
    "rateLimit",
    "rate_limits",
    "rateLimits",
    "rate_limiting",
    "rateLimiting",
    "rate_limit_policy",
    "rateLimitPolicy",
    "usage_limits",
    "usageLimits",
    "free_tier",
    "freeTier",
    "tiers",
    "plans",
];

/// Members that may contain a rate limit, separated by spaces.
const LIMIT_BLOCKS: &str =
    "policies policy limits usage api access authentication auth pricing endpoints capabilities safety mcp";

/// Adds values that the parser of the format has not set: contact, provider, rate limit, language, date, tags.
pub(crate) fn complete(root: &Object<'_>, draft: &mut Draft<'_>) {
    complete_contact(root, draft);
    let manifest = &mut draft.manifest;
    if manifest.provider.name.is_none() {
        let name = |party: Object<'_>| draft::name(party.text_of(&["name", "organization", "title"]));
        manifest.provider.name = root.object_of(&["provider", "publisher", "organization"]).and_then(name);
    }
    // The core formats define the members, and their parsers report wrong ones.
    let is_defined = manifest.detection.format.is_core() || manifest.detection.format == Format::Ahp;
    if is_defined {
        return;
    }
    if manifest.rate_limit.is_none() {
        let blocks = LIMIT_BLOCKS.split(' ').filter_map(|key| root.object(key));
        manifest.rate_limit = std::iter::once(root.clone())
            .chain(blocks)
            .filter_map(|holder| plan_limits::limit_of_all(&holder))
            .find(|limit| *limit != RateLimit::default());
    }
    if manifest.title.is_none() {
        let title = draft::name(root.text_of(&["title", "display_name", "displayName"]));
        manifest.title = title.filter(|title| manifest.name.as_ref() != Some(title));
    }
    for key in HINT_KEYS {
        let is_link = |hint: &Value| hint.as_str().is_some_and(|text| is_web(text) && !text.contains(' '));
        let hint = root.value(key).filter(|hint| budget::bytes_of(hint, HINT_BYTES_MAX) <= HINT_BYTES_MAX);
        let hint = hint.filter(|hint| !is_link(hint));
        manifest.hints.extend(hint.map(|hint| ((*key).to_owned(), hint.clone())));
    }
    manifest.language = manifest.language.take().or_else(|| language_of(root));
    let of_discovery = || root.object("discovery")?.text_of(UPDATED_KEYS);
    let updated = root.text_of(UPDATED_KEYS).or_else(of_discovery);
    manifest.updated_at = manifest.updated_at.take().or_else(|| draft::name(updated));
    if manifest.tags.is_empty() {
        let keys = ["tags", "keywords", "categories", "category", "topics"];
        manifest.tags = draft::tags(keys.iter().flat_map(|key| root.texts(key)));
    }
    if let Some(primary) = root.text_of(&["primary_category", "primaryCategory"]) {
        let all = manifest.tags.iter().map(String::as_str).chain(std::iter::once(primary));
        manifest.tags = draft::tags(all);
    }
    if let Some(languages) = languages_of(root) {
        manifest.features.other.entry("languages".to_owned()).or_insert(languages);
    }
    let features = root.object("features");
    for (name, value) in features.iter().flat_map(|features| features.map).take(FEATURES_MAX) {
        if value.is_boolean() || value.is_number() {
            manifest.features.other.entry(name.clone()).or_insert_with(|| value.clone());
        }
    }
    complete_rules(root, draft);
    complete_provider(root, draft);
    complete_queries(root, draft);
}

/// Keeps short rules of use as hints.
fn complete_rules(root: &Object<'_>, draft: &mut Draft<'_>) {
    for key in RULE_KEYS {
        let is_rule = |rule: &Value| rule.is_string() || rule.is_boolean() || rule.is_number();
        let are_rules = |rules: &&Value| match rules {
            Value::Array(rules) => !rules.is_empty() && rules.iter().all(Value::is_string),
            Value::Object(rules) => !rules.is_empty() && rules.values().all(is_rule),
            _ => false,
        };
        let rules = root.value(key).filter(are_rules);
        let rules = rules.filter(|rules| budget::bytes_of(rules, HINT_BYTES_MAX) <= HINT_BYTES_MAX);
        draft.manifest.hints.extend(rules.map(|rules| ((*key).to_owned(), rules.clone())));
    }
}

/// Members that list typical requests to a service.
const QUERY_KEYS: &[&str] = &[
    "representative_queries",
    "representativeQueries",
    "example_queries",
    "exampleQueries",
    "sample_queries",
    "sampleQueries",
    "example_prompts",
    "examplePrompts",
    "sample_prompts",
    "samplePrompts",
    "suggested_prompts",
    "suggestedPrompts",
    "solves",
    "use_cases",
    "useCases",
    "when_to_use",
    "whenToUse",
    "examples",
];

/// Keeps the typical requests to the whole service, unless the parser of the format did.
fn complete_queries(root: &Object<'_>, draft: &mut Draft<'_>) {
    if !draft.manifest.representative_queries.is_empty() {
        return;
    }
    let is_call = |text: &&str| text.contains("://") || text.contains('/') && split_method(text).0.is_some();
    let listed = QUERY_KEYS.iter().filter(|key| root.list(key).is_some()).flat_map(|key| root.texts(key));
    draft.manifest.representative_queries = draft::tags(listed.filter(|text| !is_call(text)));
}

/// Members with advice to the agents that call a service, rules for its content and calls that they must not make.
const HINT_KEYS: &[&str] = &[
    "agent_notes",
    "agentNotes",
    "agent_hints",
    "agentHints",
    "agent_instructions",
    "agentInstructions",
    "usage_notes",
    "usageNotes",
    "aiUsagePolicy",
    "ai_usage_policy",
    "usage_policy",
    "usagePolicy",
    "ai_policy",
    "aiPolicy",
    "content_policy",
    "contentPolicy",
    "crawl_policy",
    "crawlPolicy",
    "disallowedOperations",
    "disallowed_operations",
    "excludedActions",
    "excluded_actions",
];
/// Maximum number of features of one document that are kept.
const FEATURES_MAX: usize = 50;
/// Members with a list of rules in words, or a map of rules, for the agents that call a service.
const RULE_KEYS: &[&str] =
    &["norms", "rules", "guidelines", "restrictions", "constraints", "agent_rules", "agentRules"];
/// Maximum number of bytes of one piece of advice.
const HINT_BYTES_MAX: usize = 8_192;

/// Whether the home page of a service is on the site that served the document.
pub(crate) fn is_of_site(page: &str, served: &ManifestUrl) -> bool {
    host_of(page).is_some_and(|host| host.site() == served.site())
}

fn complete_contact(root: &Object<'_>, draft: &mut Draft<'_>) {
    let parties = || PARTIES.iter().filter_map(|key| root.object(key));
    let contact = &mut draft.manifest.contact;
    if *contact == Contact::default() && !draft.manifest.detection.format.is_core() {
        // Of several agents, the first one with a contact is used.
        let server = ["serverInfo", "server_info"].iter().filter_map(|key| root.object(key));
        let agents = root.objects("agents").take(CONTACTS_MAX);
        let stated = std::iter::once(root.clone()).chain(parties()).chain(server).chain(agents);
        let stated = stated.flat_map(|object| CONTACT_KEYS.iter().filter_map(move |key| object.value(key)));
        let stated = stated.map(self::contact).find(|stated| stated.email.is_some() || stated.url.is_some());
        *contact = stated.unwrap_or_default();
    }
    if contact.email.is_none() {
        let email = |object: &Object<'_>| {
            let texts = EMAIL_KEYS.iter().filter_map(|key| object.text(key));
            texts
                .map(|text| text.strip_prefix("mailto:").unwrap_or(text))
                .find(|text| is_email(text))
                .map(str::to_owned)
        };
        contact.email = email(root).or_else(|| parties().find_map(|party| email(&party)));
    }
    if !draft.manifest.detection.format.is_core() {
        complete_from_contacts(root, &mut draft.manifest.contact);
        contacts::keep_others(root, draft);
    }
}

/// Adds the kinds of contact that only another member states: `secondary_contact`, `securityContact`.
fn complete_from_contacts(root: &Object<'_>, contact: &mut Contact) {
    let may_be = |name: &str| ["ontact", "upport"].iter().any(|part| name.contains(part));
    for (name, value) in root.map.iter().filter(|(name, _)| may_be(name)) {
        let mut is_contact = false;
        text::each_word(name, |word| is_contact |= matches!(word, "contact" | "contacts" | "support"));
        if is_contact {
            let stated = self::contact(value);
            contact.email = contact.email.take().or(stated.email);
            contact.url = contact.url.take().or(stated.url);
        }
    }
}

/// Name, page and logo of the provider, from members under their usual names.
fn complete_provider(root: &Object<'_>, draft: &mut Draft<'_>) {
    let blocks = ABOUT_KEYS.iter().filter_map(|key| root.object(key));
    let holders: Vec<Object<'_>> = std::iter::once(root.clone()).chain(blocks).collect();
    let parties =
        || holders.iter().flat_map(|holder| PROVIDER_KEYS.iter().filter_map(|key| holder.value(key)));
    if draft.manifest.provider.name.is_none() {
        draft.manifest.provider.name = parties().find_map(|party| match party {
            Value::String(name) if !name.contains("://") && !is_email(name) => draft::name(Some(name)),
            Value::Object(map) => {
                let party = Object::root(map);
                draft::name(party.text_of(&[
                    "name",
                    "organization",
                    "legal_name",
                    "legalName",
                    "entity",
                    "title",
                ]))
            }
            _ => None,
        });
    }
    if draft.manifest.provider.url.is_none() {
        let url = parties().find_map(|party| {
            ["url", "website", "homepage"]
                .iter()
                .find_map(|key| party.get(*key)?.as_str())
                .filter(|url| is_web(url))
        });
        draft.manifest.provider.url = url.map(|url| text::capped(url, URL_CHARS_MAX).to_owned());
    }
    if draft.manifest.provider.logo.is_none() {
        let logo = holders.iter().find_map(|holder| holder.text_of(LOGO_KEYS));
        let logo = logo.filter(|logo| is_web(logo) || logo.starts_with('/'));
        draft.manifest.provider.logo = logo.and_then(|logo| draft.origin_url(logo));
    }
}

fn is_web(text: &str) -> bool {
    text.starts_with("https://") || text.starts_with("http://")
}

/// Maximum number of characters of the address of a provider.
const URL_CHARS_MAX: usize = 2_048;

/// A contact of any shape: an address, or an object with addresses.
pub(crate) fn contact(value: &Value) -> Contact {
    let mut contact = Contact::default();
    match value {
        Value::String(text) => sort_contact(&mut contact, text),
        Value::Object(map) => {
            let members = Members::of(map);
            let first = REACHABLE_KEYS.iter().filter_map(|key| members.get(key));
            let texts = map.iter().filter(|(name, _)| !TERMS.contains(&name.as_str()));
            let texts = first.chain(texts.map(|(_, value)| value)).filter_map(Value::as_str);
            texts.for_each(|text| sort_contact(&mut contact, text));
        }
        Value::Array(list) => {
            list.iter().filter_map(Value::as_str).for_each(|text| sort_contact(&mut contact, text));
            let parts = list.iter().take(CONTACTS_MAX).filter(|part| part.is_object()).map(self::contact);
            for part in parts {
                contact.email = contact.email.take().or(part.email);
                contact.url = contact.url.take().or(part.url);
                contact.other = contact.other.take().or(part.other);
            }
        }
        _ => {}
    }
    contact
}

/// Maximum number of contacts of one list that are read.
const CONTACTS_MAX: usize = 20;
/// Words for means of contact that are not contacts themselves.
const WAYS: &[&str] =
    &["whatsapp", "email", "phone", "github_issue", "github_issues", "issue", "issues", "form"];

/// Members of a contact that take precedence over others, such as the hours and the name of a person.
const REACHABLE_KEYS: &[&str] = &[
    "email",
    "support",
    "general",
    "sales",
    "url",
    "form",
    "phone",
    "telephone",
    "phoneInternational",
    "phone_international",
    "mobile",
    "whatsapp",
    "discord",
    "telegram",
];

/// The contact among the words of a line: an e-mail address, a page, or the line itself.
pub(crate) fn sort_contact_words(contact: &mut Contact, words: &str) {
    let bare =
        |word: &str| word.trim_matches(['<', '>', '(', ')', ',', ';', '"']).trim_end_matches('.').to_owned();
    let found = words.split_whitespace().map(bare).find(|word| is_email(word) || is_web(word));
    sort_contact(contact, found.as_deref().unwrap_or(words));
}

fn sort_contact(contact: &mut Contact, text: &str) {
    let text = text::capped(text.trim(), draft::NAME_CHARS_MAX);
    let address = text.strip_prefix("mailto:").unwrap_or(text);
    if WAYS.contains(&text) || is_method(text) {
        return;
    }
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
