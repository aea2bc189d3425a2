//! Describes a manifest and its capabilities as entries of an AI catalog: identifier, media type, address of the artefact.
//!
//! ARD 0.91 §4.2 requires an identifier that begins with the publisher's domain. A published identifier is kept if its publisher serves and
//! publishes the catalog. Otherwise an identifier is generated from the host that served the document, and marked as generated. So a
//! publisher cannot list or describe an address under the identifier of another one. An identifier does not prove who published the entry.

use std::borrow::Cow;

use crate::format::dialects::dialect;
use crate::model::{Capability, CapabilityKind, Format, Manifest, Publisher};
use crate::name::{Host, ManifestUrl};

/// Maximum length in bytes of a native id that becomes part of an identifier unchanged. Longer ones are truncated and get a hash.
const NATIVE_ID_BYTES_MAX: usize = 80;
/// Characters of the hash that distinguishes shortened names: 40 bits.
const TAIL_CHARS: usize = 8;

/// The media type of a registry (ARD 0.91 §5.3).
pub const REGISTRY_MEDIA_TYPE: &str = "application/ai-registry+json";

/// An identifier of the form `urn:air:<publisher>:…:<name>`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identifier {
    pub urn: String,
    /// Whether agentdex made the identifier from the host and the native id, because the publisher gave none.
    pub is_minted: bool,
}

impl Identifier {
    /// The publisher's domain.
    pub fn publisher(&self) -> &str {
        publisher_of(&self.urn)
    }
}

/// The publisher's domain in an identifier.
pub fn publisher_of(urn: &str) -> &str {
    urn.split(':').nth(2).unwrap_or_default()
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry<'m> {
    pub identifier: Identifier,
    pub media_type: Cow<'m, str>,
    /// Address of the artefact that declares the capability; the address of the manifest if agents must not be sent to the artefact.
    pub url: &'m str,
}

/// The entry of a whole manifest.
pub fn of_manifest(manifest: &Manifest) -> Entry<'_> {
    let (publisher, _) = publisher(manifest);
    let urn = format!("urn:air:{publisher}:manifest:{}", manifest.id.as_str());
    Entry {
        identifier: Identifier { urn, is_minted: true },
        media_type: media_type_of(manifest.format()),
        url: manifest.url.as_str(),
    }
}

/// The entry of one capability. `of` is the publisher of the manifest.
pub fn of_capability<'m>(manifest: &'m Manifest, capability: &'m Capability, of: Publisher) -> Entry<'m> {
    let (media_type, url) = match manifest.format() {
        Format::Ard => catalog_entry(manifest, capability),
        Format::SkillsIndex => skill(manifest, capability),
        _ => None,
    }
    .filter(|(_, url)| manifest.address_for_agents(url).is_some())
    .unwrap_or_else(|| (media_type_of(manifest.format()), manifest.url.as_str()));
    Entry { identifier: identifier(manifest, capability, of), media_type, url }
}

fn identifier(manifest: &Manifest, capability: &Capability, of: Publisher) -> Identifier {
    let native_id = capability.native_id.as_str();
    if let Some(urn) = published(manifest.format(), &manifest.url, native_id, of) {
        return Identifier { urn: urn.to_owned(), is_minted: false };
    }
    let is_plain = native_id.len() <= NATIVE_ID_BYTES_MAX && native_id.split(':').all(is_segment);
    let (publisher, is_own_name) = publisher(manifest);
    let name = if is_plain && is_own_name && is_default_path(manifest) {
        native_id.to_owned()
    } else {
        let id = capability.id.as_str();
        let tail = id.get(id.len().saturating_sub(TAIL_CHARS)..).unwrap_or(id);
        format!("{}-{tail}", segment_of(native_id))
    };
    let format = manifest.format();
    Identifier { urn: format!("urn:air:{publisher}:{format}:{name}"), is_minted: true }
}

/// The native id of a catalog's entry, if it is an identifier that the catalog's publisher may give ([`Publisher::may_use_name_of`]).
pub(crate) fn published<'n>(
    format: Format,
    url: &ManifestUrl,
    native_id: &'n str,
    of: Publisher,
) -> Option<&'n str> {
    let host = url.host();
    let is_own = |named: &Host| of.may_use_name_of(&host, named);
    let is_published =
        |id: &str| is_identifier(id) && Host::parse(publisher_of(id)).is_ok_and(|named| is_own(&named));
    Some(native_id).filter(|id| format == Format::Ard && is_published(id))
}

/// The host that served the document, with its underscores replaced, because ARD forbids them in a publisher; and whether it has none. The
/// name may otherwise be that of another host, so its identifiers end with a hash.
fn publisher(manifest: &Manifest) -> (String, bool) {
    let host = manifest.url.host();
    let publisher = host.as_str().replace('_', "-");
    let is_own_name = publisher == host.as_str();
    (publisher, is_own_name)
}

/// Whether the text is an identifier: `urn:air:<publisher>:…:<name>` (ARD 0.91 Appendix C).
pub fn is_identifier(text: &str) -> bool {
    let Some((publisher, name)) = text.strip_prefix("urn:air:").and_then(|rest| rest.split_once(':')) else {
        return false;
    };
    let is_domain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-');
    !publisher.is_empty() && publisher.chars().all(is_domain) && name.split(':').all(is_segment)
}

fn is_segment(text: &str) -> bool {
    !text.is_empty() && text.chars().all(is_segment_char)
}

fn is_segment_char(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '.' | '_' | '-')
}

/// A native id with each run of other characters replaced by one hyphen.
fn segment_of(native_id: &str) -> String {
    let mut segment = String::new();
    for character in native_id.chars() {
        if segment.len() >= NATIVE_ID_BYTES_MAX {
            break;
        }
        if is_segment_char(character) {
            segment.push(character);
        } else if !segment.ends_with('-') {
            segment.push('-');
        }
    }
    let segment = segment.trim_matches('-');
    if segment.is_empty() { "unnamed".to_owned() } else { segment.to_owned() }
}

/// Whether the document is at the path that its dialect defines. The same native id in another document of the host gets a
/// hash, so that identifiers are unique.
fn is_default_path(manifest: &Manifest) -> bool {
    let usual = dialect(manifest.format()).paths.first();
    usual.is_some_and(|usual| manifest.url.path_and_query() == *usual) && manifest.url.port() == 443
}

/// Type and address of an entry of a catalog, as published.
fn catalog_entry<'m>(manifest: &'m Manifest, capability: &'m Capability) -> Option<(Cow<'m, str>, &'m str)> {
    let invocation = &capability.invocation;
    let invoked = invocation.url.as_deref().or(invocation.described_by.as_deref())?;
    // A registry is called at a path below the address that its entry names.
    let is_registry = capability.kind == CapabilityKind::Registry;
    let registry = invoked.strip_suffix("/search").filter(|_| is_registry);
    let names_it =
        |url: &str| url == invoked || registry.is_some_and(|registry| registry == url.trim_end_matches('/'));
    let link = manifest.links.iter().find(|link| link.rel == "catalog-entry" && names_it(&link.url))?;
    Some((Cow::Borrowed(link.media_type.as_deref()?), link.url.as_str()))
}

/// Type and address of a skill, which is a separate artefact.
fn skill<'m>(manifest: &'m Manifest, capability: &'m Capability) -> Option<(Cow<'m, str>, &'m str)> {
    let url = capability.invocation.url.as_deref()?;
    let path = url.split(['?', '#']).next().unwrap_or(url);
    let media_type = match path.rsplit_once('.').map(|(_, extension)| extension) {
        Some("zip") => "application/agent-skills+zip",
        Some("gz" | "tgz") => "application/agent-skills+gzip",
        Some("md") => "text/markdown; profile=\"urn:air:agent-skills\"",
        _ => return Some((media_type_of(manifest.format()), manifest.url.as_str())),
    };
    Some((Cow::Borrowed(media_type), url))
}

/// The media type of a dialect. Dialects without a registered type get a vendor type, which is used for filters only.
pub fn media_type_of(format: Format) -> Cow<'static, str> {
    match dialect(format).media_type {
        Some(media_type) => Cow::Borrowed(media_type),
        None => Cow::Owned(format!("application/vnd.agentdex.{}+json", format.as_str().replace('_', "-"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Discovery, Document, read};
    use serde_json::json;

    fn url(text: &str) -> ManifestUrl {
        ManifestUrl::parse(text).unwrap()
    }

    fn manifest(at: &str, body: &serde_json::Value) -> Manifest {
        let url = url(at);
        let bytes = body.to_string().into_bytes();
        read(&Document {
            bytes: &bytes,
            url: &url,
            final_url: None,
            discovery: Discovery::WellKnown,
            served: None,
            linked: &[],
            force: None,
        })
    }

    fn awp(ids: &[&str]) -> serde_json::Value {
        let actions: Vec<_> = ids
            .iter()
            .map(|id| {
                json!({"id": id, "description": "d", "auth_required": false, "inputs": {}, "outputs": {},
                             "endpoint": "/x", "method": "GET"})
            })
            .collect();
        json!({"awp_version": "0.1", "domain": "shop.example", "intent": "x", "actions": actions})
    }

    fn urns(manifest: &Manifest) -> Vec<String> {
        let entries = manifest
            .capabilities
            .iter()
            .map(|capability| of_capability(manifest, capability, Publisher::Site));
        entries.map(|entry| entry.identifier.urn).collect()
    }

    #[test]
    fn minted_identifiers_contain_host_format_and_native_id() {
        let manifest = manifest("https://shop.example/agent.json", &awp(&["book_seat", "a b/c", "", "x:y"]));
        let urns = urns(&manifest);
        assert_eq!(urns[0], "urn:air:shop.example:awp:book_seat");
        assert!(urns[1].starts_with("urn:air:shop.example:awp:a-b-c-"), "{urns:?}");
        assert_eq!(urns[3], "urn:air:shop.example:awp:x:y");
        assert!(urns.iter().all(|urn| is_identifier(urn)), "{urns:?}");
        let entry = of_capability(&manifest, &manifest.capabilities[0], Publisher::Site);
        assert!(entry.identifier.is_minted);
        assert_eq!(
            (entry.media_type.as_ref(), entry.url),
            ("application/vnd.agentdex.awp+json", "https://shop.example/agent.json")
        );
    }

    #[test]
    fn identifiers_differ_between_documents_of_one_host() {
        let one = manifest("https://shop.example/agent.json", &awp(&["book"]));
        let two = manifest("https://shop.example/.well-known/agent.json", &awp(&["book"]));
        let three = manifest("https://shop.example:8443/agent.json", &awp(&["book"]));
        let mut all: Vec<String> = [&one, &two, &three].into_iter().flat_map(urns).collect();
        all.extend([&one, &two, &three].map(|manifest| of_manifest(manifest).identifier.urn));
        all.sort();
        all.dedup();
        assert_eq!(all.len(), 6, "{all:?}");
        assert!(all.iter().all(|urn| is_identifier(urn)), "{all:?}");
    }

    #[test]
    fn identifiers_differ_between_hosts_that_differ_in_underscores() {
        let hosts = ["pay-pal.plat.example", "pay_pal.plat.example", "p_ay-pal.plat.example"];
        let documents = hosts.map(|host| manifest(&format!("https://{host}/agent.json"), &awp(&["book"])));
        assert_eq!(urns(&documents[0]), ["urn:air:pay-pal.plat.example:awp:book"]);
        let suffixed = &urns(&documents[1])[0];
        assert!(suffixed.starts_with("urn:air:pay-pal.plat.example:awp:book-"), "{suffixed}");
        let mut all: Vec<String> = documents.iter().flat_map(urns).collect();
        all.extend(documents.iter().map(|document| of_manifest(document).identifier.urn));
        all.sort();
        all.dedup();
        assert_eq!(all.len(), 6, "{all:?}");
        assert!(all.iter().all(|urn| is_identifier(urn)), "{all:?}");
    }

    #[test]
    fn catalog_entries_keep_their_published_identifier_type_and_url() {
        let catalog = json!({"specVersion": "1.0", "entries": [
            {"identifier": "urn:air:hub.example:agent:one", "displayName": "One",
             "type": "application/a2a-agent-card+json", "url": "https://one.example/card.json"},
            {"identifier": "urn:air:hub.example:registry", "displayName": "Hub", "type": REGISTRY_MEDIA_TYPE,
             "url": "https://hub.example/api/"},
            {"identifier": "https://hub.example/not-a-urn", "displayName": "Two",
             "type": "application/mcp-server-card+json", "url": "https://two.example/mcp.json"}]});
        let manifest = manifest("https://hub.example/.well-known/ai-catalog.json", &catalog);
        let entries: Vec<_> = manifest
            .capabilities
            .iter()
            .map(|capability| of_capability(&manifest, capability, Publisher::Site))
            .collect();
        assert_eq!(entries[0].identifier.urn, "urn:air:hub.example:agent:one");
        assert!(!entries[0].identifier.is_minted);
        assert_eq!(
            (entries[0].media_type.as_ref(), entries[0].url),
            ("application/a2a-agent-card+json", "https://one.example/card.json")
        );
        assert_eq!(
            (entries[1].media_type.as_ref(), entries[1].url),
            (REGISTRY_MEDIA_TYPE, "https://hub.example/api/")
        );
        let kinds: Vec<_> = manifest.capabilities.iter().map(|capability| capability.kind).collect();
        assert!(kinds[0] != CapabilityKind::Registry && kinds[1] == CapabilityKind::Registry, "{kinds:?}");
        assert!(entries[2].identifier.is_minted && is_identifier(&entries[2].identifier.urn));
    }

    #[test]
    fn an_identifier_is_kept_only_in_a_catalog_of_its_publisher() {
        let entry = |name: &str, url: &str| {
            json!({"identifier": format!("urn:air:shop.example:agent:{name}"), "displayName": "Pay",
                   "type": "application/a2a-agent-card+json", "url": url})
        };
        let catalog = json!({"specVersion": "1.0", "entries": [
            entry("pay", "https://cards.shop.example/card.json"), entry("wire", "https://thief.example/card.json")]});
        let minted = |url: &str, of: Publisher| {
            let manifest = manifest(url, &catalog);
            let entry = |capability| of_capability(&manifest, capability, of);
            manifest.capabilities.iter().map(|one| entry(one).identifier.is_minted).collect::<Vec<_>>()
        };
        for own in [
            "https://shop.example/.well-known/ai-catalog.json",
            "https://www.shop.example/.well-known/ai-catalog.json",
            "https://agents.shop.example/.well-known/ard.json",
            "https://shop.example/",
            "https://shop.example/maps/entries.json",
        ] {
            assert_eq!(minted(own, Publisher::Site), [false, false], "{own}");
            assert_eq!(minted(own, Publisher::Unknown), [true, true], "{own}");
        }
        let other = "https://thief.example/.well-known/ai-catalog.json";
        assert_eq!(minted(other, Publisher::Site), [true, true]);
    }

    #[test]
    fn the_customer_of_a_host_uses_the_name_of_this_host_alone() {
        let host = "https://agents.shop.example/.well-known/ard.json";
        for (name, site, customer) in [
            ("agents.shop.example", true, true),
            ("one.agents.shop.example", true, true),
            ("shop.example", true, false),
            ("other.shop.example", false, false),
        ] {
            let id = format!("urn:air:{name}:agent:pay");
            let is_published = |of| published(Format::Ard, &url(host), &id, of).is_some();
            assert_eq!(
                (is_published(Publisher::Site), is_published(Publisher::Host)),
                (site, customer),
                "{name}"
            );
        }
    }

    #[test]
    fn rejects_malformed_urn_air_identifiers() {
        for text in [
            "urn:air:a.example",
            "urn:air::x",
            "urn:air:a.example:",
            "urn:air:a_b.example:x",
            "urn:ai:a.example:x",
            "urn:air:a.example:x y",
            "urn:air:a.example:x::y",
            "",
        ] {
            assert!(!is_identifier(text), "{text}");
        }
        assert!(is_identifier("urn:air:a.example:x") && is_identifier("urn:air:a.example:ns:x_1.2-b"));
    }
}
