//! agent-json.org facts: statements about a subject, with evidence. They declare nothing that can be called.
//!
//! Follows agent-json/spec 1.0 (February 2026).

use crate::draft::{self, Draft};
use crate::format::detect::candidate::{Marker, strong};
use crate::format::{contacts, lenient};
use crate::model::{Interface, Protocol};
use crate::object::Object;
use crate::rule::{Kind, findings, may, must};
use crate::walk::List;

pub(crate) const MARKERS: &[Marker] = &[strong(|c| {
    let dated = c.object("subject").is_some() && c.has("last_reviewed");
    dated.then(|| "`subject` beside `last_reviewed`".to_owned())
})];

findings! {
    shape ROOT("facts", "agent-json 1.0") {
        must("schema_version", Kind::Text, "State the version, 1.0."),
        must("subject", Kind::Object, "Describe the subject of the facts."),
        must("facts", Kind::List, "List the facts as objects with `key` and `value`."),
        must("last_reviewed", Kind::Text, "State the date of the last review."),
    }
    shape SUBJECT("facts.subject", "agent-json 1.0") {
        must("name", Kind::Text, "Name the subject."),
        must("domain", Kind::Text, "Name the subject's domain."),
        may("type", Kind::Text, "Publish the type in a string."),
        may("urls", Kind::Object, "Publish addresses as a map from purpose to URL."),
    }
    shape FACT("facts.fact", "agent-json 1.0") {
        must("key", Kind::Text, "Name the fact."),
        must("value", Kind::Any, "State the fact."),
        may("evidence", Kind::List, "Publish evidence as an array of addresses."),
    }
}

/// Reads the subject, its addresses and the two facts that name a contact.
pub(crate) fn read(root: &Object<'_>, draft: &mut Draft<'_>) {
    draft.dialect(root.text("schema_version"), None);
    draft.assess("agent-json 1.0", |code| code.starts_with("facts."));
    draft.check(root, &ROOT);
    draft.manifest.updated_at = root.string("last_reviewed");
    if let Some(subject) = draft.checked(root, "subject", &SUBJECT) {
        draft.manifest.name = draft::name(subject.text("name"));
        draft.manifest.provider.name.clone_from(&draft.manifest.name);
        draft.manifest.declared_origin = subject.string("domain");
        if let Some(urls) = subject.object("urls") {
            for purpose in urls.map.keys() {
                match purpose.as_str() {
                    "terms" => draft.manifest.policies.terms_url = draft.url(&urls, purpose),
                    "privacy" => draft.manifest.policies.privacy_url = draft.url(&urls, purpose),
                    "support" => draft.manifest.contact.url = draft.url(&urls, purpose),
                    _ => draft.link(&urls, purpose, purpose, None),
                }
            }
        }
    }
    draft.each(root, "facts", &List::of(&FACT), |fact, draft| {
        match (fact.text("key"), fact.text("value")) {
            (Some("status_page" | "status_url"), Some(url)) => {
                draft.manifest.status.status_url = draft.origin_url(url);
            }
            (Some("api_base_url" | "api_url"), Some(url)) => {
                let url = draft.origin_url(url);
                draft.keep_all(url.map(|url| Interface::new(Protocol::Http, Some(url))));
            }
            (Some("rate_limit" | "rate_limits"), _) => {
                draft.manifest.rate_limit = fact.value("value").and_then(lenient::rate_limit);
            }
            _ => {}
        }
        let contact = &mut draft.manifest.contact;
        if matches!(fact.text("key"), Some("support_email" | "contact_email")) && contact.email.is_none() {
            contact.email = fact.string("value");
        } else if let (Some(purpose), Some(address)) = (fact.text("key"), fact.text("value")) {
            contacts::keep_for_purpose(purpose, address, draft);
        }
    });
}
