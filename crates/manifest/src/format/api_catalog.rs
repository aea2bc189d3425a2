//! API catalogs: link sets that name a publisher's APIs and their descriptions.
//!
//! Selects the links to documents that declare capabilities; a catalog declares none. Link sets with the relation inside
//! the link (`links: [{rel, href}]`) are read although RFC 9264 does not define them.
//!
//! Follows RFC 9727 (api-catalog), RFC 9264 §4.2 (JSON link sets), RFC 8631 (service-desc, service-doc, service-meta, status).

use serde_json::Value;

use crate::draft::{self, Draft};
use crate::format::detect::candidate::{Marker, strong};
use crate::format::link_class;
use crate::model::{Follow, Interface, Link, Protocol};
use crate::object::Object;
use crate::rule::{Kind, findings, may, must};

/// Maximum number of links of one catalog that are kept; the largest seen has 74.
const LINKS_MAX: usize = 1_000;

pub(crate) const MARKERS: &[Marker] =
    &[strong(|c| c.list("linkset").map(|_| "`linkset` is an array".to_owned()))];

findings! {
    shape CATALOG("api_catalog", "RFC 9264 §4.2.1") {
        must("linkset", Kind::List, "Publish `linkset` as an array of link contexts."),
    }
    shape CONTEXT("api_catalog.context", "RFC 9264 §4.2.2") {
        may("anchor", Kind::Reference, "State the API's address as the anchor."),
    }
    shape TARGET("api_catalog.target", "RFC 9264 §4.2.3") {
        must("href", Kind::Reference, "State the target's address."),
        may("type", Kind::Text, "State the media type in a string."),
        may("title", Kind::Text, "Publish the title in a string."),
    }
    rule EXTRA: Must("api_catalog.extra_member", "RFC 9264 §4.2.1")
        "a member other than `linkset` is at the top level" => "Move its content into link contexts, or remove it.";
    rule NOT_TARGETS: Must("api_catalog.relation.not_targets", "RFC 9264 §4.2.2")
        "a member of a link context is not an array of targets" => "Write every relation as an array of objects with `href`.";
    rule NO_DESCRIPTION: Should("api_catalog.service_desc.missing", "RFC 9727 §4")
        "no link has the relation service-desc, which leads to a description that a program can read" => "Link each API's OpenAPI document as `service-desc`.";
    rule REL_INSIDE: Should("api_catalog.target.rel_inside", "RFC 9264 §4.2.2")
        "the relation is written inside the target instead of naming the array" => "Use the relation as the member's name.";
}

pub(crate) fn read(root: &Object<'_>, draft: &mut Draft<'_>) {
    draft.assess("RFC 9727", |code| code.starts_with("api_catalog."));
    draft.check(root, &CATALOG);
    for key in root.map.keys().filter(|key| *key != "linkset") {
        draft.report(&EXTRA, root.at(key), format!("`{key}` is beside `linkset`"));
    }
    let has_api = !denies_api(root);
    for context in root.objects("linkset") {
        read_context(&context, has_api, draft);
    }
    if !draft.manifest.links.iter().any(|link| link.rel == "service-desc") {
        draft.report_rule(&NO_DESCRIPTION, root.at("linkset"));
    }
}

/// Whether a remark says that the site has no API, so that its home page is the anchor of other documents.
fn denies_api(root: &Object<'_>) -> bool {
    let remark = root.text_of(&["_comment", "comment", "description", "note"]);
    remark.is_some_and(|remark| {
        ["no REST API", "no HTTP API", "no public API"].iter().any(|no| remark.contains(no))
    })
}

fn is_home(anchor: &str) -> bool {
    anchor.splitn(4, '/').nth(3).is_none_or(str::is_empty)
}

fn read_context(context: &Object<'_>, has_api: bool, draft: &mut Draft<'_>) {
    draft.check(context, &CONTEXT);
    let anchor = draft.url(context, "anchor");
    if let Some(anchor) = anchor.clone() {
        let known = draft.has_interface(&anchor);
        // A link context may describe a declaration instead of a server.
        let is_document = link_class::classify(&anchor).follow.is_some();
        if !known
            && !is_document
            && (has_api || !is_home(&anchor))
            && draft.manifest.interfaces.len() < LINKS_MAX
            && anchor != draft.base().as_str()
        {
            let protocol = protocol_of(context, &anchor);
            let mut interface = Interface::new(protocol, Some(anchor));
            let title = draft::name(context.text("title"));
            interface.settings.extend(title.map(|title| ("title".to_owned(), Value::String(title))));
            draft.keep(interface);
        }
    }
    for (relation, targets) in context.map.iter().filter(|(name, _)| *name != "anchor") {
        if !targets.as_array().is_some_and(|targets| targets.iter().all(Value::is_object)) {
            draft.report(
                &NOT_TARGETS,
                context.at(relation),
                format!("`{relation}` is not an array of targets"),
            );
            continue;
        }
        for target in context.objects(relation) {
            read_target(&target, relation, anchor.as_deref(), draft);
        }
    }
}

/// The protocol at an anchor: by its path, or by the card if it is the only description. A home page has cards of several servers.
fn protocol_of(context: &Object<'_>, anchor: &str) -> Protocol {
    let class = link_class::classify(anchor);
    if class.rel == "mcp" {
        return Protocol::Mcp;
    }
    let mut described = context.objects("service-desc");
    match (described.next(), described.next()) {
        (Some(card), None) if !is_home(anchor) && class.follow.is_none() => protocol_of_card(&card),
        _ => Protocol::Http,
    }
}

/// The protocol of the server that a card describes; HTTP for other descriptions.
fn protocol_of_card(target: &Object<'_>) -> Protocol {
    let (kind, href) = (target.text("type").unwrap_or_default(), target.text("href").unwrap_or_default());
    let is = |card: &str| kind.contains(card) || href.ends_with(&[card, ".json"].concat());
    if is("agent-card") {
        Protocol::A2a
    } else if is("server-card") {
        Protocol::Mcp
    } else {
        Protocol::Http
    }
}

fn read_target(target: &Object<'_>, relation: &str, anchor: Option<&str>, draft: &mut Draft<'_>) {
    draft.check(target, &TARGET);
    let inside = target.text("rel");
    if inside.is_some() {
        draft.report_rule(&REL_INSIDE, target.at("rel"));
    }
    let relation = inside.unwrap_or(relation);
    let Some(url) = draft.document_url(target, "href") else { return };
    let media_type = target.text("type").map(str::to_ascii_lowercase);
    if draft.manifest.links.len() >= LINKS_MAX
        || draft
            .manifest
            .links
            .iter()
            .any(|link| link.url == url && link.rel == relation && link.anchor.as_deref() == anchor)
    {
        return;
    }
    let class = link_class::classify(&url);
    let declares = media_type.as_deref().is_some_and(declares_agents);
    // The address of an MCP server is not a description of it.
    let is_server = class.rel == "mcp" && !declares;
    if is_server && !draft.has_interface(&url) && draft.manifest.interfaces.len() < LINKS_MAX {
        draft.keep(Interface::new(Protocol::Mcp, Some(url.clone())));
    }
    let follow = follow(relation, media_type.as_deref()).filter(|_| !is_server).or(class.follow);
    let mut link = Link::new(relation, url, follow);
    link.media_type = media_type;
    link.title = draft::title(target.text("title"));
    link.anchor = anchor.map(str::to_owned);
    if link.url == draft.base().as_str() {
        link.follow = None;
    }
    draft.keep(link);
}

/// Descriptions and catalogs are followed; documentation is not.
fn follow(relation: &str, media_type: Option<&str>) -> Option<Follow> {
    let readable = media_type
        .is_none_or(|kind| ["json", "yaml", "openapi", "linkset"].iter().any(|word| kind.contains(word)));
    let declares =
        matches!(relation, "service-desc" | "api-catalog") || media_type.is_some_and(declares_agents);
    (readable && declares).then_some(Follow::Manifest)
}

fn declares_agents(media_type: &str) -> bool {
    ["agent-card+json", "server-card+json", "ai-catalog+json", "woa+json", "openapi+json", "vnd.oai.openapi"]
        .iter()
        .any(|kind| media_type.contains(kind))
}
