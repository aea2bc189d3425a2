//! Reads the members of an OpenAPI document about the service as a whole.

use serde_json::Value;

use super::{rules, servers};
use crate::draft::{self, Draft};
use crate::model::{Interface, Link, Protocol};
use crate::object::Object;

/// Reads `info`, servers, tags and the external documentation.
pub(super) fn read(root: &Object<'_>, draft: &mut Draft<'_>) {
    let version = root.text_of(&["openapi", "swagger"]);
    draft.dialect(version, None);
    rules::check_document(root, draft);
    if let Some(info) = root.object("info") {
        draft.manifest.policies.terms_url = draft.url(&info, "termsOfService");
        let manifest = &mut draft.manifest;
        manifest.name = draft::name(info.text("title"));
        manifest.description = draft::description(info.text_of(&["description", "summary"]));
        manifest.document_version = draft::name(info.text("version"));
        if let Some(contact) = info.object("contact") {
            let manifest = &mut draft.manifest;
            manifest.contact.email = contact.string("email");
            manifest.contact.url = contact.string("url");
            manifest.provider.name = draft::name(contact.text("name"));
        }
    }
    draft.manifest.tags = draft::tags(root.objects("tags").filter_map(|tag| tag.text("name")));
    draft.manifest.features.webhooks = root.object("webhooks").map(|webhooks| !webhooks.map.is_empty());
    let license = root.object("info").and_then(|info| info.object("license"));
    let named = license.as_ref().and_then(|license| draft::name(license.text_of(&["identifier", "name"])));
    let other = &mut draft.manifest.features.other;
    other.extend(named.map(|name| ("license".to_owned(), Value::String(name))));
    let license = license.and_then(|license| draft.url(&license, "url"));
    draft.keep_all(license.map(|url| Link::new("license", url, None)));
    let docs = root.object("externalDocs").and_then(|docs| draft.url(&docs, "url"));
    if let Some(url) = docs {
        draft.keep(Link::new("docs", url, None));
    }
    let base = servers::base_url(&[root.value("servers")], root.map, draft.base());
    let Some(base) = base else { return };
    draft.manifest.declared_origin = servers::is_declared(root.map).then(|| base.clone());
    draft.keep(Interface::new(Protocol::Http, Some(base)));
}
