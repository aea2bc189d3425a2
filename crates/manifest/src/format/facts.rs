//! agent-json.org facts: statements about a subject, with evidence. There is nothing to call in them.
//!
//! Follows agent-json/spec 1.0 (February 2026).

use crate::draft::{self, Draft};
use crate::format::loose;
use crate::object::Object;
use crate::rule::{Dialect, Kind, Shape, may, must};

pub(crate) const DIALECT: Dialect =
    Dialect { title: "agent.json facts", shapes: &[&ROOT, &SUBJECT, &FACT], rules: &[] };

const ROOT: Shape = Shape {
    code: "facts",
    spec: "agent-json 1.0",
    fields: &[
        must("schema_version", Kind::Text, "State the version, 1.0."),
        must("subject", Kind::Object, "Say whom the facts are about."),
        must("facts", Kind::List, "List the facts as objects with `key` and `value`."),
        must("last_reviewed", Kind::Text, "State the date of the last review."),
    ],
};
const SUBJECT: Shape = Shape {
    code: "facts.subject",
    spec: "agent-json 1.0",
    fields: &[
        must("name", Kind::Text, "Name the subject."),
        must("domain", Kind::Text, "Name the subject's domain."),
        may("type", Kind::Text, "Publish the type in a string."),
        may("urls", Kind::Object, "Publish addresses as a map from purpose to URL."),
    ],
};
const FACT: Shape = Shape {
    code: "facts.fact",
    spec: "agent-json 1.0",
    fields: &[
        must("key", Kind::Text, "Name the fact."),
        must("value", Kind::Any, "State the fact."),
        may("evidence", Kind::List, "Publish evidence as an array of addresses."),
    ],
};

/// Reads the subject, its addresses and the two facts that say whom to write to.
pub(crate) fn read(root: &Object<'_>, draft: &mut Draft<'_>) {
    draft.dialect(root.text("schema_version"), None);
    draft.judge("agent-json 1.0", |code| code.starts_with("facts."));
    draft.check(root, &ROOT);
    draft.manifest.updated_at = root.text("last_reviewed").map(str::to_owned);
    if let Some(subject) = root.object("subject") {
        draft.check(&subject, &SUBJECT);
        draft.manifest.name = draft::name(subject.text("name"));
        draft.manifest.provider.name.clone_from(&draft.manifest.name);
        draft.manifest.declared_origin = subject.text("domain").map(str::to_owned);
        if let Some(urls) = subject.object("urls") {
            for purpose in urls.map.keys() {
                if let Some(url) = draft.url(&urls, purpose) {
                    draft.manifest.links.push(loose::link(purpose, url, None));
                }
            }
        }
    }
    for fact in root.objects("facts") {
        draft.check(&fact, &FACT);
        let contact = &mut draft.manifest.contact;
        if matches!(fact.text("key"), Some("support_email" | "contact_email")) && contact.email.is_none() {
            contact.email = fact.text("value").map(str::to_owned);
        }
    }
}
