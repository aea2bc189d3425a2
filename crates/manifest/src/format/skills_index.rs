//! Indexes of agent skills: instructions that an agent may read, each with its address and digest.
//!
//! Decides one skill for each entry. A skill is a document to read, not a call to make, so it is never invocable. The digest
//! is kept for whoever fetches it; nobody here does.
//!
//! Follows the Agent Skills discovery RFC 0.2.0 (12 March 2026) and its predecessor 0.1, which lists `files`.

use super::{generic, loose};
use crate::draft::{self, Draft};
use crate::model::{CapabilityKind, Integrity, Protocol, Severity};
use crate::object::Object;
use crate::rule::{Dialect, Kind, Rule, Shape, may, must};

pub(crate) const DIALECT: Dialect = Dialect {
    title: "Agent Skills index",
    shapes: &[&INDEX, &SKILL],
    rules: &[&NO_SCHEMA, &UNKNOWN_SCHEMA, &DUPLICATE],
};

const SCHEMA_0_2: &str = "https://schemas.agentskills.io/discovery/0.2.0/schema.json";

const INDEX: Shape = Shape {
    code: "skills_index",
    spec: "Agent Skills discovery 0.2.0",
    fields: &[must("skills", Kind::List, "List the skills as objects.")],
};
const SKILL: Shape = Shape {
    code: "skills_index.skill",
    spec: "Agent Skills discovery 0.2.0",
    fields: &[
        must(
            "name",
            Kind::Form(is_skill_name, "1 to 64 lower-case letters, digits and single hyphens"),
            "Use lower-case letters, digits and hyphens.",
        ),
        must("type", Kind::OneOf(&["skill-md", "archive"]), "State skill-md or archive."),
        must(
            "description",
            Kind::Form(|text| text.chars().count() <= 1_024, "at most 1,024 characters"),
            "Say in at most 1,024 characters what the skill is for.",
        ),
        must("url", Kind::Reference, "Name the artefact's address."),
        must(
            "digest",
            Kind::Form(is_digest, "sha256: and 64 hexadecimal digits"),
            "Publish the artefact's SHA-256 as sha256:<hex>.",
        ),
        may("files", Kind::Texts, "List files as strings; 0.2.0 has none."),
    ],
};
const NO_SCHEMA: Rule = Rule {
    code: "skills_index.schema.missing",
    severity: Severity::Should,
    spec: "Agent Skills discovery 0.2.0",
    wrong: "`$schema` is missing, so the index is taken for version 0.1",
    fix: "Publish `$schema`: https://schemas.agentskills.io/discovery/0.2.0/schema.json.",
};
const UNKNOWN_SCHEMA: Rule = Rule {
    code: "skills_index.schema.unknown",
    severity: Severity::Must,
    spec: "Agent Skills discovery 0.2.0",
    wrong: "`$schema` is not a published one; clients must not read an index of an unknown schema",
    fix: "Publish `$schema`: https://schemas.agentskills.io/discovery/0.2.0/schema.json.",
};
const DUPLICATE: Rule = Rule {
    code: "skills_index.skill.name.duplicate",
    severity: Severity::Must,
    spec: "Agent Skills discovery 0.2.0",
    wrong: "two skills have the same name",
    fix: "Give every skill a name of its own.",
};

/// Reads an index.
pub(crate) fn read(root: &Object<'_>, draft: &mut Draft<'_>) {
    let schema = root.text("$schema");
    draft.dialect(Some(if schema.is_some() { "0.2.0" } else { "0.1" }), None);
    draft.judge("Agent Skills discovery 0.2.0", |code| code.starts_with("skills_index."));
    match schema {
        None => draft.report_plainly(&NO_SCHEMA, String::new()),
        Some(schema) if schema != SCHEMA_0_2 => draft.report_plainly(&UNKNOWN_SCHEMA, root.at("$schema")),
        Some(_) => {}
    }
    draft.check(root, &INDEX);
    generic::describe(root, draft);
    let mut names = std::collections::BTreeSet::new();
    for skill in root.objects("skills") {
        if draft.is_full() {
            return;
        }
        draft.check(&skill, &SKILL);
        if skill.text("name").is_some_and(|name| !names.insert(name)) {
            draft.report_plainly(&DUPLICATE, skill.at("name"));
        }
        read_skill(&skill, draft);
    }
}

fn read_skill(skill: &Object<'_>, draft: &mut Draft<'_>) {
    let name = skill.text_of(&["name", "id"]).unwrap_or_default();
    let mut capability = draft.capability(CapabilityKind::Skill, name, "", skill.pointer.clone());
    capability.description = draft::description(skill.text("description"));
    capability.tags = draft::tags(skill.texts("tags").into_iter().chain(skill.text("type")));
    capability.title = draft::name(skill.text_of(&["title", "displayName"]));
    let published = skill.text_of(&["url", "href", "path"]).map(str::to_owned);
    let published = published.or_else(|| skill.has("files").then(|| format!("{name}/SKILL.md")));
    if let Some(address) = published.and_then(|published| draft.on_document(&published, &skill.at("url"))) {
        generic::set_address(&mut capability, address);
        capability.invocation.protocol = Some(Protocol::Http);
        if let Some(url) = capability.invocation.url.clone() {
            draft.manifest.links.push(loose::link("skill", url, None));
        }
    }
    let digest = skill.text("digest").map(str::to_owned);
    let digest = digest.or_else(|| skill.text("sha256").map(|hex| format!("sha256:{hex}")));
    if digest.is_some() {
        capability.integrity = Some(Integrity { signed: false, verified: None, digest });
    }
    draft.push(capability);
}

fn is_skill_name(text: &str) -> bool {
    let plain = text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
    plain
        && (1..=64).contains(&text.len())
        && !text.starts_with('-')
        && !text.ends_with('-')
        && !text.contains("--")
}

fn is_digest(text: &str) -> bool {
    text.strip_prefix("sha256:")
        .is_some_and(|hex| hex.len() == 64 && hex.bytes().all(|byte| byte.is_ascii_hexdigit()))
}
