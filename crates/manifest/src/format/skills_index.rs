//! Indexes of agent skills: instructions that an agent may read, each with its address and digest.
//!
//! Each entry becomes one skill. A skill is a document and not a call, so it is never invocable. The digest is kept for clients.
//!
//! Follows the Agent Skills discovery RFC 0.2.0 (12 March 2026) and its predecessor 0.1, which lists `files`.

use crate::draft::{self, Draft};
use crate::format::detect::candidate::{Marker, strong};
use crate::format::{endpoint, header, lenient, link_class};
use crate::model::{CapabilityKind, Integrity, Link, Protocol};
use crate::object::Object;
use crate::rule::{Kind, findings, may, must};
use crate::walk::List;

pub(crate) const MARKERS: &[Marker] = &[
    strong(|c| {
        let schema = c.text("$schema").filter(|schema| schema.contains("agentskills"))?;
        Some(format!("`$schema` is {schema}"))
    }),
    strong(|c| {
        let skills = c.list("skills").is_some() && c.is_file(&["skills/index.json"]);
        skills.then(|| "`skills` in an index below /skills/".to_owned())
    }),
];

findings! {
    shape INDEX("skills_index", "Agent Skills discovery 0.2.0") {
        must("skills", Kind::List, "List the skills as objects."),
    }
    shape SKILL("skills_index.skill", "Agent Skills discovery 0.2.0") {
        must("name", Kind::Form(is_skill_name, "1 to 64 lower-case letters, digits and single hyphens"), "Use lower-case letters, digits and hyphens."),
        must("type", Kind::OneOf(&["skill-md", "archive"]), "State skill-md or archive."),
        must("description", Kind::Form(|text| text.chars().count() <= 1_024, "at most 1,024 characters"), "Describe the skill in at most 1,024 characters."),
        must("url", Kind::Reference, "State the artefact's address."),
        must("digest", Kind::Form(is_digest, "sha256: and 64 hexadecimal digits"), "Publish the artefact's SHA-256 as sha256:<hex>."),
        may("files", Kind::Texts, "List files as strings; 0.2.0 has none."),
    }
    rule NO_SCHEMA: Should("skills_index.schema.missing", "Agent Skills discovery 0.2.0")
        "`$schema` is missing, so the index is read as version 0.1"
            => "Publish `$schema`: https://schemas.agentskills.io/discovery/0.2.0/schema.json.";
    rule UNKNOWN_SCHEMA: Must("skills_index.schema.unknown", "Agent Skills discovery 0.2.0")
        "`$schema` is not a published one; clients must not read an index of an unknown schema"
            => "Publish `$schema`: https://schemas.agentskills.io/discovery/0.2.0/schema.json.";
    rule DUPLICATE: Must("skills_index.skill.name.duplicate", "Agent Skills discovery 0.2.0")
        "two skills have the same name" => "Give every skill a unique name.";
}

const SCHEMA_0_2: &str = "https://schemas.agentskills.io/discovery/0.2.0/schema.json";

pub(crate) fn read(root: &Object<'_>, draft: &mut Draft<'_>) {
    let schema = root.text("$schema");
    draft.dialect(Some(if schema.is_some() { "0.2.0" } else { "0.1" }), None);
    draft.assess("Agent Skills discovery 0.2.0", |code| code.starts_with("skills_index."));
    match schema {
        None => draft.report_rule(&NO_SCHEMA, String::new()),
        Some(schema) if schema != SCHEMA_0_2 => draft.report_rule(&UNKNOWN_SCHEMA, root.at("$schema")),
        Some(_) => {}
    }
    draft.check(root, &INDEX);
    header::describe(root, draft);
    let when = draft::description(root.text_of(&["whenToUse", "when_to_use"]));
    draft.manifest.description = draft.manifest.description.take().or(when);
    draft.each(root, "skills", &List::of(&SKILL).unique("name", &DUPLICATE), read_skill);
}

fn read_skill(skill: &Object<'_>, draft: &mut Draft<'_>) {
    let name = skill.text_of(&["name", "id"]).unwrap_or_default();
    // A name with spaces or capitals is a title; the id is then the name of the skill.
    let is_title = |name: &&str| name.contains(|letter: char| letter == ' ' || letter.is_uppercase());
    let title = skill.text("name").filter(is_title);
    let ids: &[&str] = if title.is_some() { &["id", "name"] } else { &["name", "id"] };
    let names: &[&str] = if title.is_some() { &["name"] } else { &[] };
    let mut capability = draft.begin(CapabilityKind::Skill, skill, ids, names);
    capability.version = draft::name(skill.text("version"));
    capability.tags = draft::tags(skill.texts("tags").into_iter().chain(skill.text("type")));
    capability.title = draft::name(skill.text_of(&["title", "displayName"]));
    let published = skill.string_of(&["url", "href", "path"]);
    let published = published.or_else(|| skill.has("files").then(|| format!("{name}/SKILL.md")));
    if let Some(address) = published.and_then(|published| draft.on_document(&published, &skill.at("url"))) {
        endpoint::set(&mut capability, address);
        capability.invocation.protocol = Some(Protocol::Http);
        if let Some(url) = capability.invocation.url.clone() {
            // An entry may be a description of an API or another manifest.
            let follow = link_class::classify(&url).follow.filter(|_| url.starts_with("https://"));
            draft.keep(Link::new("skill", url, follow));
        }
    }
    let digest = skill.string("digest");
    let digest = digest.or_else(|| skill.text("sha256").map(|hex| format!("sha256:{hex}")));
    if digest.is_some() {
        capability.integrity = Some(Integrity { digest, ..Integrity::default() });
    }
    lenient::read_own_auth(skill, &mut capability.auth);
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
